//! Errors around a run that are not about its work: the board, the repository, the runner's program.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};

use crate::prompt::TemplateError;
use tavern_core::eligible::{NotReady, Untrusted};
use tavern_git::{GitError, not_removed};
use tavern_store::config::ConfigError;

/// Why a run could not be made or finished, through no fault of the agent's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] tavern_store::Error),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    NotReady(#[from] NotReady),
    #[error(transparent)]
    NotTrusted(#[from] Untrusted),
    /// Its agent, or a person, has removed or damaged its files.
    #[error(
        "the activity of run `{0}` can't be read: its `metadata.json` or `activity.json` is gone or broken"
    )]
    Unwatched(String),
    /// With the known roles.
    #[error("there is no role `{name}`")]
    NoRole { name: String, known: Vec<String> },
    #[error("runner `{0}` is not in config.yaml")]
    NoRunner(String),
    #[error("the repository has no commits yet")]
    NoCommits,
    /// `base` of config.yaml names nothing; with the branch that was probably meant.
    #[error("`base` in config.yaml names the branch `{name}`, which does not exist")]
    NoBase { name: String, near: Option<String> },
    /// The item's own fault: the work to review does not exist.
    #[error("{0}")]
    NothingToReview(String),
    #[error("set-up command `{command}` {how}")]
    SetUp {
        command: String,
        how: String,
        output: String,
    },
    #[error("can't {action} `{}`", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl Error {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io {
            action,
            path,
            source,
        }
    }

    /// Returns the whole error in one line: the event, its cause, and the next step.
    pub fn in_words(&self) -> String {
        let mut words = self.to_string();
        // Some messages include their cause.
        let cause = self
            .source()
            .map(ToString::to_string)
            .filter(|cause| !words.contains(cause));
        words.extend(cause.map(|cause| format!(": {cause}")));
        words.extend(self.hint().map(|hint| format!("; {hint}")));
        words
    }

    /// Returns the next step, unless it needs a program of Tavern.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Io {
                action: "remove",
                path,
                source,
            } if source.kind() == io::ErrorKind::PermissionDenied => Some(not_removed(path)),
            Error::Store(tavern_store::Error::Io { path, source, .. })
            | Error::Io { path, source, .. } => tavern_store::not_written(path, source.kind()),
            // Callers that can name a program give the hint; the message of `NothingToReview` needs none.
            Error::Store(_)
            | Error::NothingToReview(_)
            | Error::NotTrusted(_)
            | Error::Unwatched(_) => None,
            Error::Git(error) => Some(error.hint()),
            Error::Config(error) => error.hint(),
            Error::Template(error) => Some(error.hint()),
            Error::NotReady(error) => error.hint.clone(),
            Error::NoRole { known, .. } => {
                let more = "others are added under `roles:` in .tavern/config.yaml";
                Some(format!("one of: {}; {more}", known.join(", ")))
            }
            Error::NoRunner(_) => {
                Some("add it under `runners:` in .tavern/config.yaml, or use --runner shell".into())
            }
            Error::NoCommits => {
                Some("make a first one: git add -A && git commit -m 'first'".into())
            }
            Error::NoBase {
                near: Some(near), ..
            } => Some(format!("did you mean `{near}`?")),
            Error::NoBase { near: None, .. } => {
                Some("name a branch that `git branch` lists, or remove `base`".into())
            }
            Error::SetUp { .. } => {
                Some("run the command by hand in a fresh clone, and fix `worktree.setup`".into())
            }
        }
    }
}

impl From<Error> for NotReady {
    fn from(error: Error) -> NotReady {
        match error {
            Error::NotReady(not_ready) => not_ready,
            error => NotReady {
                message: error.to_string(),
                hint: error.hint(),
            },
        }
    }
}
