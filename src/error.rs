//! The one error that programs end with, and the one place that prints it.

use std::error::Error;
use std::io::{self, ErrorKind, Write};

use anstyle::{AnsiColor, Style};

use tavern_core::eligible::{Doubt, NotReady};
use tavern_git::{GitError, GitErrorKind};

use tavern_store::config::ConfigError;
use tavern_store::{Obstacle, Switch};
use tavern_sys::files;
use tavern_sys::process::TOO_MANY;

use super::exit::Exit;
use super::format::{self, Painted};
use super::hints;

/// The reason why a program failed. Library errors are converted into it; these conversions hold the rules
/// for exit codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliError {
    pub exit: Exit,
    /// Lower case, without a final period; may have several lines.
    pub message: String,
    /// The causes, nearest first.
    pub causes: Vec<String>,
    /// The command to type next.
    pub hint: Option<String>,
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

impl CliError {
    pub fn new(exit: Exit, message: impl Into<String>) -> CliError {
        CliError {
            exit,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
        }
    }

    /// Returns an error for an invalid command line.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> CliError {
        CliError::new(Exit::Usage, message).with_hint(hint.into())
    }

    /// Returns an error for a rule that refuses.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> CliError {
        CliError::new(Exit::Refused, message).with_hint(hint.into())
    }

    /// Converts `error` with its sources.
    pub fn from_error(exit: Exit, error: &dyn Error) -> CliError {
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        CliError {
            exit,
            message: error.to_string(),
            causes,
            hint: None,
        }
    }

    /// Adds a hint, if there is one.
    pub fn with_hint(mut self, hint: impl Into<Option<String>>) -> CliError {
        self.hint = hint.into();
        self
    }

    /// Returns an error if a `PAUSE` or `STOP` file is set; `None` if not.
    pub fn switched(exit: Exit, switch: &Switch) -> Option<CliError> {
        let (state, reason) = match switch {
            Switch::On => return None,
            Switch::Paused(reason) => ("paused", reason),
            Switch::Stopped(reason) => ("stopped", reason),
        };
        let reason = if reason.is_empty() {
            String::new()
        } else {
            format!(": {reason}")
        };
        let message = format!("the board is {state}{reason}");
        Some(CliError::new(exit, message).with_hint("to go on: tavern resume".to_owned()))
    }

    /// Returns an error for standard output that can't be written. A reader that has ended (`tavern log |
    /// head`) is no failure and gives no message.
    pub fn output(error: &io::Error) -> CliError {
        if error.kind() == ErrorKind::BrokenPipe {
            return CliError::new(Exit::Done, "");
        }
        let hint = "check where standard output goes, and whether that disk is full".to_owned();
        CliError {
            causes: vec![error.to_string()],
            ..CliError::new(Exit::Failed, "can't write standard output")
        }
        .with_hint(hint)
    }

    /// Prints it for people, on standard error.
    pub(super) fn print(&self) {
        let message = Some(&self.message).filter(|message| !message.is_empty());
        let parts = message
            .map(|message| (ERROR, "error:", message))
            .into_iter();
        let parts = parts.chain(self.causes.iter().map(|cause| (ERROR, "caused by:", cause)));
        let parts = parts.chain(self.hint.iter().map(|hint| (HINT, "hint:", hint)));
        let width = format::columns_of(io::stderr());
        let add = |text: Painted, (style, name, words): (Style, &str, &String)| {
            let folded = format::fold(width, &format!("{name} {words}\n"));
            text.and(style, name)
                .and(Style::new(), &folded[name.len()..])
        };
        let text = parts.fold(Painted::default(), add);
        // A closed standard error can't be reported anywhere.
        let _ = anstream::stderr()
            .lock()
            .write_all(text.as_str().as_bytes());
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        let hint = (error.kind() == ErrorKind::WouldBlock).then(|| TOO_MANY.to_owned());
        CliError::from_error(Exit::Failed, &error).with_hint(hint)
    }
}

impl From<serde_json::Error> for CliError {
    fn from(error: serde_json::Error) -> CliError {
        CliError::from_error(Exit::Failed, &error)
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> CliError {
        let exit = match &error {
            // The file exists, but is not text.
            ConfigError::Read { source, .. }
                if [
                    ErrorKind::InvalidData,
                    ErrorKind::IsADirectory,
                    files::REFUSED,
                ]
                .contains(&source.kind()) =>
            {
                Exit::BoardHasErrors
            }
            ConfigError::Read { .. } => Exit::Failed,
            ConfigError::Flawed(_) => Exit::BoardHasErrors,
        };
        CliError::from_error(exit, &error).with_hint(hints::config(&error))
    }
}

impl From<tavern_store::Error> for CliError {
    fn from(error: tavern_store::Error) -> CliError {
        let exit = match &error {
            tavern_store::Error::Refused(_) | tavern_store::Error::Quarantined { .. } => {
                Exit::Refused
            }
            tavern_store::Error::SecondAgent(_)
            | tavern_store::Error::Taken(_)
            | tavern_store::Error::NoLane(_) => Exit::Refused,
            tavern_store::Error::NotUndone(obstacle) => match **obstacle {
                Obstacle::Nothing => Exit::NothingToDo,
                Obstacle::NoEvent(_) => Exit::Usage,
                _ => Exit::Refused,
            },
            tavern_store::Error::Archived { .. } | tavern_store::Error::ArchivedPart { .. } => {
                Exit::Refused
            }
            tavern_store::Error::Busy(_) => Exit::Busy,
            tavern_store::Error::BadId(_)
            | tavern_store::Error::NoTask(_)
            | tavern_store::Error::NoItemAt { .. } => Exit::Usage,
            tavern_store::Error::NoQueue(_) | tavern_store::Error::Folder(_) => Exit::Usage,
            tavern_store::Error::Changed { .. } => Exit::Refused,
            tavern_store::Error::Damaged { .. }
            | tavern_store::Error::NotText { .. }
            | tavern_store::Error::TooMany(_) => Exit::BoardHasErrors,
            tavern_store::Error::NoRepository(_)
            | tavern_store::Error::Bare(_)
            | tavern_store::Error::NoWorktree(_)
            | tavern_store::Error::NoBoard(_)
            | tavern_store::Error::OlderBoard(_) => Exit::Failed,
            tavern_store::Error::Io { .. } => Exit::Failed,
        };
        CliError::from_error(exit, &error).with_hint(hints::store(&error))
    }
}

impl From<GitError> for CliError {
    fn from(error: GitError) -> CliError {
        let exit = match error.kind() {
            GitErrorKind::Refused => Exit::Refused,
            GitErrorKind::Busy => Exit::Busy,
            GitErrorKind::Failed => Exit::Failed,
        };
        CliError::from_error(exit, &error).with_hint(Some(error.hint()))
    }
}

impl From<NotReady> for CliError {
    fn from(error: NotReady) -> CliError {
        CliError::new(Exit::Failed, error.message).with_hint(error.hint)
    }
}

impl From<tavern_run::Error> for CliError {
    fn from(error: tavern_run::Error) -> CliError {
        match error {
            tavern_run::Error::Store(error) => error.into(),
            tavern_run::Error::Git(error) => error.into(),
            tavern_run::Error::Config(error) => error.into(),
            tavern_run::Error::NotTrusted(ref untrusted) => {
                let in_ci = if untrusted.doubt == Doubt::Since {
                    ""
                } else {
                    " (in CI: TAVERN_TRUST=1)"
                };
                CliError::new(Exit::Refused, format!("{error}{in_ci}"))
                    .with_hint(hints::run(&error))
            }
            tavern_run::Error::NoRole { .. } | tavern_run::Error::NoRunner(_) => {
                CliError::from_error(Exit::Usage, &error).with_hint(hints::run(&error))
            }
            error => CliError::from_error(Exit::Failed, &error).with_hint(hints::run(&error)),
        }
    }
}
