//! Environment variables passed to programs that Tavern starts for items. Knows names only.

use serde::{Deserialize, Serialize};

/// Names of variables. A name that ends in `*` matches all that begin so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pass(Vec<String>);

/// Variables that every program gets: locations, language, terminal, committer. None holds a key.
const BASE: &str = "PATH HOME USER LOGNAME SHELL TERM COLORTERM NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE \
    LANG LANGUAGE LC_* TZ TMPDIR TMP TEMP XDG_* HOSTNAME CI SOURCE_DATE_EPOCH TAVERN_* \
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy \
    SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS NIX_SSL_CERT_FILE \
    GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE \
    GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM GIT_CEILING_DIRECTORIES GIT_EXEC_PATH GIT_TEMPLATE_DIR \
    GIT_SSL_CAINFO GIT_SSH GIT_SSH_COMMAND \
    CC CXX AR LD CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS CMAKE_* PKG_CONFIG_PATH LD_LIBRARY_PATH LIBRARY_PATH CPATH \
    CARGO_HOME CARGO_TARGET_DIR CARGO_BUILD_JOBS CARGO_INCREMENTAL CARGO_NET_* CARGO_PROFILE_* CARGO_TERM_COLOR \
    RUSTUP_* RUSTFLAGS RUSTDOCFLAGS RUSTC_WRAPPER RUST_BACKTRACE RUST_LOG LLVM_PROFILE_FILE \
    GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOTOOLCHAIN CGO_ENABLED \
    JAVA_HOME MAVEN_HOME GRADLE_HOME GRADLE_USER_HOME ANDROID_HOME ANDROID_SDK_ROOT DOTNET_ROOT NUGET_PACKAGES \
    NODE_ENV NODE_PATH NODE_OPTIONS NVM_DIR NVM_BIN FNM_DIR VOLTA_HOME PNPM_HOME COREPACK_HOME BUN_INSTALL DENO_DIR \
    PYTHONPATH PYTHONHOME PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_* \
    PIP_CACHE_DIR UV_CACHE_DIR GEM_HOME GEM_PATH RBENV_* BUNDLE_PATH NIX_PATH NIX_PROFILES IN_NIX_SHELL ASDF_* SDKROOT";

impl Pass {
    /// Returns true if the variable `name` is passed to programs, by this list or by the base list.
    pub fn lets(&self, name: &str) -> bool {
        self.0
            .iter()
            .map(String::as_str)
            .chain(BASE.split_ascii_whitespace())
            .any(|pattern| covers(pattern, name))
    }

    /// Returns true if a pattern of this list other than `*` matches `name`.
    pub fn names_one(&self, name: &str) -> bool {
        self.names()
            .any(|pattern| pattern != "*" && covers(pattern, name))
    }

    /// Returns these names and `others`.
    #[must_use]
    pub fn and<'p>(&self, others: impl IntoIterator<Item = &'p str>) -> Pass {
        Pass(
            self.0
                .iter()
                .cloned()
                .chain(others.into_iter().map(str::to_owned))
                .collect(),
        )
    }

    /// Returns the names as written.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns an entry that can't be a name, or has its `*` elsewhere than at the end.
    pub(super) fn fault(&self) -> Option<&str> {
        let is_odd = |name: &str| name.is_empty() || name.contains(['=', '*', ' ', '$']);
        self.names()
            .find(|name| *name != "*" && is_odd(name.strip_suffix('*').unwrap_or(name)))
    }
}

fn covers(pattern: &str, name: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == name, |beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_goes_and_what_every_program_gets() {
        let pass = Pass(["DATABASE_URL", "AWS_*"].map(str::to_owned).to_vec());
        for name in [
            "PATH",
            "LC_ALL",
            "TAVERN_TEST_NOW",
            "CARGO_HOME",
            "DATABASE_URL",
            "AWS_PROFILE",
        ] {
            assert!(pass.lets(name), "{name}");
        }
        for name in [
            "CARGO_REGISTRY_TOKEN",
            "DATABASE_URL_2",
            "AWS",
            "SSH_AUTH_SOCK",
            "PATHS",
            "GITHUB_TOKEN",
        ] {
            assert!(!pass.lets(name), "{name}");
        }
        assert!(Pass::default().and(["*"]).lets("GITHUB_TOKEN"));
    }

    #[test]
    fn what_can_be_no_name_is_told() {
        let fault = |name: &str| Pass(vec![name.to_owned()]).fault().is_some();
        assert!(
            ["", "*_KEY", "A=b", "$A", "A B", "A**"]
                .into_iter()
                .all(fault)
        );
        assert!(!["*", "A", "A_*", "npm_config_x"].into_iter().any(fault));
    }
}
