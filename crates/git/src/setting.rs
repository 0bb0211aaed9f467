//! Settings of the repository: read as git reads them, and written into its own configuration.

use git2::ErrorCode;

use super::{GitError, Repository};

impl Repository {
    /// Returns the value of a setting, from any of git's configuration files.
    pub fn setting(&self, key: &str) -> Result<Option<String>, GitError> {
        let config = self
            .git
            .config()
            .map_err(GitError::library("read the configuration"))?;
        match config.get_string(key) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(GitError::library(format!("read the setting `{key}`"))(
                error,
            )),
        }
    }

    /// Writes a setting into the repository's own configuration (`.git/config`), which all of its worktrees share.
    ///
    /// Fails with [`GitError::LockedByGit`] if another program is writing there.
    pub fn set(&self, key: &str, value: &str) -> Result<(), GitError> {
        let checkout = self.main_checkout();
        match self
            .call(&checkout)
            .args(["config", "--local", key, value])
            .read()
        {
            Err(GitError::Program { stderr, .. }) if stderr.contains("File exists") => {
                Err(GitError::LockedByGit {
                    path: checkout.git_dir.join("config.lock"),
                })
            }
            other => other.map(drop),
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use std::fs;

    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn a_setting_is_written_beside_the_others() {
        let fixture = Fixture::new();
        let repository = fixture.repository();
        let file = fixture.root().join(".git/config");
        let before = fs::read_to_string(&file).expect("it is there");
        assert_eq!(
            repository
                .setting("merge.x.driver")
                .expect("it can be read"),
            None
        );
        let value = "'/a b/c' %O \"%P\" || true # not a comment";
        repository
            .set("merge.x.driver", value)
            .expect("it can be written");
        assert_eq!(
            repository
                .setting("merge.x.driver")
                .expect("it can be read")
                .as_deref(),
            Some(value)
        );
        assert!(
            fs::read_to_string(&file)
                .expect("it is there")
                .starts_with(&before)
        );
        let lock = fixture.root().join(".git/config.lock");
        fs::write(&lock, "").expect("the folder is ours");
        let refused = repository.set("merge.x.driver", "other");
        assert!(
            matches!(&refused, Err(GitError::LockedByGit { path }) if *path == lock),
            "{refused:?}"
        );
        assert_eq!(
            repository
                .setting("merge.x.driver")
                .expect("it can be read")
                .as_deref(),
            Some(value)
        );
    }
}
