//! In whose name commits are made: the user's, as git would find it, else Tavern's own.

use git2::Signature;

use super::program::Call;
use super::{GitError, Repository};

const NAME: &str = "Tavern";
const EMAIL: &str = "tavern@localhost";

/// Author and committer of a new commit, at the present time.
pub(super) struct Identity {
    pub(super) author: Signature<'static>,
    pub(super) committer: Signature<'static>,
}

impl Repository {
    /// From `GIT_AUTHOR_*` and `GIT_COMMITTER_*`, then `user.name` and `user.email`; in tests of this room, which must not
    /// depend on who runs them, from the configuration alone.
    pub(super) fn identity(&self) -> Result<Identity, GitError> {
        let (author, committer) = if self.config.as_ref().is_some_and(|files| !files.with_names) {
            (self.git.signature(), self.git.signature())
        } else {
            (self.git.author_from_env(), self.git.committer_from_env())
        };
        Ok(Identity {
            author: or_tavern(author)?,
            committer: or_tavern(committer)?,
        })
    }
}

impl Identity {
    pub(super) fn give_to<'r>(&self, call: Call<'r>) -> Call<'r> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        call.env("GIT_AUTHOR_NAME", text(self.author.name_bytes()))
            .env("GIT_AUTHOR_EMAIL", text(self.author.email_bytes()))
            .env("GIT_COMMITTER_NAME", text(self.committer.name_bytes()))
            .env("GIT_COMMITTER_EMAIL", text(self.committer.email_bytes()))
    }
}

fn or_tavern(
    found: Result<Signature<'static>, git2::Error>,
) -> Result<Signature<'static>, GitError> {
    found
        .or_else(|_| Signature::now(NAME, EMAIL))
        .map_err(GitError::library("make a signature"))
}
