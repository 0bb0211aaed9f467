//! Why a drain was ended before there was nothing left to do.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use tavern_core::task::{TaskId, Timestamp};
use tavern_store::config::Period;
use tavern_sys::clock;
use tavern_sys::interrupt::InterruptCause;
use tavern_sys::process::argument;

/// Why a drain was ended before there was nothing left to do.
pub(super) enum Cut {
    OutOfTime(Period),
    /// Nothing could be taken within that time, but from then on.
    TooEarly(Period, Timestamp),
    /// This item has used up its attempts.
    Failure(TaskId),
    /// By a signal, or by a `STOP` file.
    Asked(InterruptCause),
}

impl Cut {
    /// What has it go on: the command line once more, as it was typed.
    pub(super) fn again() -> String {
        let mut args = std::env::args();
        let program = args.next().unwrap_or_default();
        let is_verb = Path::new(&program).file_name() == Some(OsStr::new("tavern"));
        let mut args: Vec<String> = args.collect();
        if let Some(verb) = args.iter().position(|arg| is_verb && arg == "drain") {
            args.remove(verb);
        }
        let args: String = args
            .iter()
            .map(|arg| format!(" {}", argument(arg)))
            .collect();
        format!("to go on where it was: tavern drain{args}")
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::OutOfTime(time) => write!(f, "ended after {time} (--max-time)"),
            Cut::TooEarly(time, first) => {
                let first = clock::dated(*first);
                write!(
                    f,
                    "ended at once: nothing may be taken before {first}, and by then {time} (--max-time) are over"
                )
            }
            Cut::Failure(task) => write!(
                f,
                "ended since {task} has used up its attempts (--fail-fast)"
            ),
            Cut::Asked(InterruptCause::Interrupted) => f.write_str("ended by Ctrl-C"),
            Cut::Asked(InterruptCause::Terminated) => f.write_str("ended by a signal"),
            Cut::Asked(InterruptCause::Stopped) => f.write_str("ended by .tavern/STOP"),
        }
    }
}
