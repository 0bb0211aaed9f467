//! Author and committer of new commits: the user, as git reports, else Tavern.

use std::time::Duration;

use git2::Signature;

use super::program::Call;
use super::{GitError, Repository};
use tavern_sys::clock;

/// How long git's answer is cached in a long-running process.
const FRESH: Duration = Duration::from_secs(60);

const NAME: &str = "Tavern";
const EMAIL: &str = "tavern@localhost";

/// Author and committer of a new commit, at the present time.
pub(super) struct Identity {
    pub(super) author: Signature<'static>,
    pub(super) committer: Signature<'static>,
}

impl Repository {
    /// Returns git's identity for the main work tree, by variables and by settings for a folder, a branch or a
    /// remote. Tests of this crate use the configuration alone, to be independent of the user.
    pub(super) fn identity(&self) -> Result<Identity, GitError> {
        if self.config.as_ref().is_some_and(|files| !files.with_names) {
            let own = || {
                self.git
                    .signature()
                    .or_else(|_| Signature::now(NAME, EMAIL))
            };
            let made = || own().map_err(GitError::library("make a signature"));
            return Ok(Identity {
                author: made()?,
                committer: made()?,
            });
        }
        let known = self.known_identity.borrow().clone();
        let said = match known.filter(|(asked, _)| asked.elapsed() < FRESH) {
            Some((_, said)) => said,
            None => {
                let said = [
                    self.ident("GIT_AUTHOR_IDENT")?,
                    self.ident("GIT_COMMITTER_IDENT")?,
                ];
                *self.known_identity.borrow_mut() = Some((clock::instant(), said.clone()));
                said
            }
        };
        let [author, committer] = said.map(|who| {
            let (name, email) = who.unwrap_or_else(|| (NAME.to_owned(), EMAIL.to_owned()));
            Signature::now(&name, &email).map_err(GitError::library("make a signature"))
        });
        Ok(Identity {
            author: author?,
            committer: committer?,
        })
    }

    /// Parses the output of `git var`: a name, an address in angle brackets, and a time. `None` if no identity is
    /// configured.
    fn ident(&self, variable: &str) -> Result<Option<(String, String)>, GitError> {
        let call = self.call(&self.main_checkout()).args([
            "-c",
            "user.useConfigOnly=true",
            "var",
            variable,
        ]);
        let ran = call.ending(&[0, 128])?;
        let line = String::from_utf8_lossy(&ran.stdout);
        let parts = line.split_once(" <").zip(line.rsplit_once('>'));
        Ok(parts.map(|((name, _), (before, _))| {
            let email = before.split_once(" <").map_or("", |(_, email)| email);
            (name.to_owned(), email.to_owned())
        }))
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
