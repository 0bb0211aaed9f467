//! Exit codes: the table of `specs/exit-codes.md`; a test compares the two.

use std::process::ExitCode;

use tavern_sys::interrupt::InterruptCause;

/// How a program ends. Scripts rely on the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    NothingToDo = 3,
    Refused = 4,
    BoardHasErrors = 5,
    VerificationFailed = 6,
    BudgetSpent = 7,
    WaitingForPerson = 8,
    /// sysexits.h: EX_TEMPFAIL.
    Busy = 75,
    /// 128 plus the number of the signal, as in a shell.
    Interrupted = 130,
    Terminated = 143,
}

impl Exit {
    /// All of them, by number.
    pub const ALL: [Exit; 12] = [
        Exit::Done,
        Exit::Failed,
        Exit::Usage,
        Exit::NothingToDo,
        Exit::Refused,
        Exit::BoardHasErrors,
        Exit::VerificationFailed,
        Exit::BudgetSpent,
        Exit::WaitingForPerson,
        Exit::Busy,
        Exit::Interrupted,
        Exit::Terminated,
    ];

    /// Returns the exit code for the shell.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

impl From<InterruptCause> for Exit {
    fn from(cause: InterruptCause) -> Exit {
        match cause {
            InterruptCause::Interrupted => Exit::Interrupted,
            InterruptCause::Terminated => Exit::Terminated,
            // A requested stop is success.
            InterruptCause::Stopped => Exit::Done,
        }
    }
}
