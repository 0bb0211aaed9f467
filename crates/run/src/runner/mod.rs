//! Agent programs behind one interface: a [`Runner`] starts a [`Session`], whose output becomes typed events and, in
//! the end, one [`Outcome`], decided from structure and never from words that an agent may have echoed.
//!
//! Read in this order: [`job`] (what to run), [`event`] (what is seen of it), [`outcome`], [`signal`], [`question`],
//! [`answer`], [`discovery`], [`mended_commands`] and [`form`] (how it ended and what the agent says of it). Then come [`session`], one running program, and the runners:
//! [`shell`] and [`command`] over `plain`, [`claude`] over `conversation`, `stream`, `reading` and `transcript`.
//!
//! Knows nothing of tasks or of git, and of the board only why something is not ready, and its rules for calls: who runs what, and what an outcome
//! means for an item, is decided above.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use tavern_core::eligible::NotReady;
use tavern_sys::process::{Spec, find_program_on};

pub mod answer;
pub mod claude;
pub mod command;
mod conversation;
pub mod discovery;
pub mod event;
pub mod forbidden;
pub mod form;
pub mod job;
pub mod mended_commands;
pub mod outcome;
pub mod permission;
mod plain;
pub mod question;
mod reading;
pub mod session;
pub mod shell;
pub mod signal;
pub mod stream;
pub mod thread;
mod transcript;

#[cfg(test)]
mod samples;

pub use claude::Claude;
pub use command::CommandRunner;
pub use discovery::discoveries;
pub use event::{AgentEvent, Nesting, Prodding, RateWindow};
pub use form::Form;
pub use job::{Job, Limits, PROMPT, Prods, RULES, variable_of};
pub use mended_commands::MendedCommands;
pub use outcome::{Denial, EndReason, Outcome, SessionEnd, Usage};
pub use reading::{Reading, may_change};
pub use session::{Next, Session};
pub use shell::Shell;
pub use signal::Signal;

/// The log of a run of an agent that writes JSON lines, in the run's folder.
pub const THREAD_LOG: &str = "thread.jsonl";
/// The log of a run of any other program, in the run's folder: what it wrote to both outputs, in the order in which it was seen.
pub const OUTPUT_LOG: &str = "output.log";
/// What such a program has written to each, until it is all in the log.
pub const OUTPUT_PARTS: [&str; 2] = ["stdout.part", "stderr.part"];
/// What an agent that writes JSON lines says besides, in the run's folder.
const STDERR_LOG: &str = "stderr.log";
/// What people read of what programs write.
pub const LOGS: [&str; 3] = [THREAD_LOG, OUTPUT_LOG, STDERR_LOG];

/// Bytes that are kept of an agent's last words, from both ends; its log has all of them.
pub const MOST_ANSWER: usize = 256 << 10;
/// The longest log of a run.
pub const LOG_MIB: u64 = 512;

/// A kind of agent program.
pub trait Runner: Send + Sync {
    /// Checks that the program is there and can work unattended. `env` is its environment.
    /// Looks at files only: nothing is started.
    ///
    /// # Errors
    /// What is missing, with the way to mend it.
    fn check(&self, env: &[(String, String)]) -> Result<Ready, NotReady>;

    /// As [`Runner::check`], and starts the program for its version where it is known how. No session is begun.
    ///
    /// # Errors
    /// As [`Runner::check`]; or it can't be started.
    fn try_out(&self, env: &[(String, String)]) -> Result<Ready, NotReady> {
        self.check(env)
    }

    /// Returns whether the program will find its account, judged by where files are, never by their content.
    fn access(&self, _env: &[(String, String)]) -> Access {
        Access::NotAsked
    }

    /// Names of the variables that the program itself reads, its keys among them; one that ends in `*` stands for all that begin
    /// so.
    fn variables(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// What the program writes of its own accord when it works in `worktree`: its account, sessions and caches. `env` is as
    /// in [`Runner::check`].
    fn state(&self, _env: &[(String, String)], _worktree: &Path) -> ProgramState {
        ProgramState::default()
    }

    /// Returns whether files of the repository that it works in may lead it: settings, hooks, memory files.
    fn is_led_by_repository(&self) -> bool {
        true
    }

    /// Returns whether it hears messages while it runs. Others are told them at the beginning of the next run.
    fn hears(&self) -> bool {
        false
    }

    /// Returns whether it is told [`Job::rules`] apart from the prompt, at the beginning of each run.
    fn is_told_rules(&self) -> bool {
        false
    }

    /// Returns whether its agent may run what begins with these words in its shell, and nobody is asked.
    fn may_run(&self, _words: &[&str]) -> bool {
        true
    }

    /// The tool with which an agent answers in [`Job::form`]; `None`: it can't be held to one, and answers in words.
    fn answer_tool(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether an agent of `job` could go on with its session; false for programs that keep none.
    fn knows_session(&self, _job: &Job) -> bool {
        false
    }

    /// What a run of `session` that began at `since` has used up, as its program has recorded it: for a run that nobody
    /// follows any more. `env` is what was set for it. Nothing for programs that record nothing.
    fn recorded(&self, _session: &str, _env: &[(String, String)], _since: DateTime<Utc>) -> Usage {
        Usage::default()
    }

    /// What [`Runner::start`] starts for `job`. Writes nothing.
    ///
    /// # Errors
    /// What the job lacks for it.
    fn spec(&self, job: &Job) -> Result<Spec, NotReady>;

    /// What a person starts who talks with the agent in its worktree: it has the terminal, and nobody follows it. Writes
    /// nothing.
    ///
    /// # Errors
    /// What the job lacks for it.
    fn attended(&self, job: &Job) -> Result<Spec, NotReady> {
        self.spec(job)
    }

    /// Start the program for `job`. Writes only into the run's folder.
    ///
    /// # Errors
    /// It could not be started; nothing is left running.
    fn start(&self, job: &Job) -> Result<Session, NotReady>;
}

/// What a [`Runner::check`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    pub program: String,
    /// The version, as the program tells it; empty where it isn't asked.
    pub version: String,
}

/// What is known of a program's account before it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// It needs none, or nobody knows where it keeps it.
    NotAsked,
    /// By what it will get in: a variable's name, or a file.
    Found(String),
    /// Nothing was found where it is kept. That is no proof: the first run will tell.
    Unknown { looked: String, hint: &'static str },
}

/// Where a program keeps its own state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramState {
    /// Folders in which there is nothing that anybody obeys.
    pub folders: Vec<PathBuf>,
    /// Folders in which its settings are too.
    pub homes: Vec<ProgramHome>,
    /// Files with its state and its settings, which it writes anew.
    pub files: Vec<PathBuf>,
}

/// A folder in which a program keeps settings beside its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramHome {
    pub folder: PathBuf,
    /// What it has to find again, relative to the folder. Files have an extension.
    pub kept: Vec<String>,
    /// What it makes anew whenever it is not there: patterns of names. A database is among that, since what is written to one
    /// that others have open has to be seen by them.
    pub passing: Vec<&'static str>,
}

/// The file of `program`, as it is found when it is started with `env`.
fn found(program: &OsStr, env: &[(String, String)]) -> Option<PathBuf> {
    find_program_on(&variable_of(env, "PATH").unwrap_or_default(), program)
}
