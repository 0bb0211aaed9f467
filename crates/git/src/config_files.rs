//! The configuration files that git reads, if variables override the usual ones.

use std::env;
use std::path::{Path, PathBuf};

use git2::{Config, ConfigLevel};

/// The configuration files above the repository's own. libgit2 knows their usual places, but not the variables that
/// override them.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfigFiles {
    pub(super) system: Option<PathBuf>,
    /// Later ones win.
    pub(super) global: Vec<PathBuf>,
    /// Whether `GIT_AUTHOR_*` and `GIT_COMMITTER_*` count beside them.
    pub(super) with_names: bool,
}

impl ConfigFiles {
    /// Returns `None` if git uses the usual places, which libgit2 knows by itself.
    pub(super) fn from_environment() -> Option<ConfigFiles> {
        let given = |name: &str| env::var_os(name).map(PathBuf::from);
        let (system, global) = (given("GIT_CONFIG_SYSTEM"), given("GIT_CONFIG_GLOBAL"));
        let no_system = given("GIT_CONFIG_NOSYSTEM").is_some_and(|value| is_true(&value));
        if system.is_none() && global.is_none() && !no_system {
            return None;
        }
        let system = if no_system {
            None
        } else {
            system.or_else(|| Config::find_system().ok())
        };
        let usual = || {
            [Config::find_xdg(), Config::find_global()]
                .into_iter()
                .flatten()
                .collect()
        };
        Some(ConfigFiles {
            system,
            global: global.map_or_else(usual, |path| vec![path]),
            with_names: true,
        })
    }

    pub(super) fn with_local(
        &self,
        common_dir: &Path,
        git_dir: &Path,
    ) -> Result<Config, git2::Error> {
        let mut config = Config::new()?;
        let mut add = |path: &Path, level| {
            if path.is_file() {
                config.add_file(path, level, true)
            } else {
                Ok(())
            }
        };
        if let Some(system) = &self.system {
            add(system, ConfigLevel::System)?;
        }
        for (path, level) in self
            .global
            .iter()
            .rev()
            .zip([ConfigLevel::Global, ConfigLevel::XDG])
        {
            add(path, level)?;
        }
        add(&common_dir.join("config"), ConfigLevel::Local)?;
        add(&git_dir.join("config.worktree"), ConfigLevel::Worktree)?;
        Ok(config)
    }
}

/// Parses a boolean as git does in the environment.
fn is_true(value: &Path) -> bool {
    let text = value.to_string_lossy().to_lowercase();
    !matches!(text.as_str(), "" | "0" | "false" | "no" | "off")
}
