//! Exit codes: the table of `specs/exit-codes.md`, which a test holds against this.

use std::process::ExitCode;

use crate::interrupt::Cause;

/// How a program ends. The numbers are a promise to scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    Done,
    Failed,
    Usage,
    NothingToDo,
    Refused,
    BoardHasErrors,
    VerificationFailed,
    BudgetSpent,
    WaitingForPerson,
    Busy,
    Interrupted,
    Terminated,
}

impl Exit {
    /// Each of them, by number.
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

    /// What the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NothingToDo => 3,
            Exit::Refused => 4,
            Exit::BoardHasErrors => 5,
            Exit::VerificationFailed => 6,
            Exit::BudgetSpent => 7,
            Exit::WaitingForPerson => 8,
            // sysexits.h: EX_TEMPFAIL.
            Exit::Busy => 75,
            // 128 and the number of the signal, as a shell has it.
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        }
    }

    /// In the words of the table.
    pub fn meaning(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::Failed => "failed",
            Exit::Usage => "wrong usage",
            Exit::NothingToDo => "nothing to do",
            Exit::Refused => "refused by a rule",
            Exit::BoardHasErrors => "the board has errors",
            Exit::VerificationFailed => "verification failed",
            Exit::BudgetSpent => "the budget is spent",
            Exit::WaitingForPerson => "waiting for a person",
            Exit::Busy => "busy, try again",
            Exit::Interrupted => "interrupted",
            Exit::Terminated => "terminated",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

impl From<Cause> for Exit {
    fn from(cause: Cause) -> Exit {
        match cause {
            Cause::Interrupted => Exit::Interrupted,
            Cause::Terminated => Exit::Terminated,
            // Asked to stop, and stopped: that is success.
            Cause::Stopped => Exit::Done,
        }
    }
}
