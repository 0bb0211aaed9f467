//! Why a drain ended before it was done.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use tavern_core::task::{TaskId, Timestamp};
use tavern_store::config::Period;
use tavern_sys::clock;
use tavern_sys::interrupt::InterruptCause;
use tavern_sys::process::argument;

/// The reason why a drain ended before it was done.
pub(super) enum Cut {
    OutOfTime(Period),
    /// No item can be taken within the time limit; the first can at this time.
    TooEarly(Period, Timestamp),
    /// This item has used up its attempts.
    Failure(TaskId),
    /// A signal or a `STOP` file.
    Asked(InterruptCause),
}

impl Cut {
    /// Returns the command line that continues the drain.
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
                    "ended at once: no agent can claim an item before {first}, after the limit of {time} (--max-time)"
                )
            }
            Cut::Failure(task) => {
                write!(f, "ended: the attempts of {task} are used up (--fail-fast)")
            }
            Cut::Asked(InterruptCause::Interrupted) => f.write_str("ended by Ctrl-C"),
            Cut::Asked(InterruptCause::Terminated) => f.write_str("ended by a signal"),
            Cut::Asked(InterruptCause::Stopped) => f.write_str("ended by .tavern/STOP"),
        }
    }
}
