//! Agent programs behind one interface: a [`Runner`] starts a [`Session`]; its output becomes typed events and, in
//! the end, one [`Outcome`]. It is decided from structure and never from words that an agent may have echoed.
//!
//! Read in this order: [`job`] (the input), [`event`] (observations), [`outcome`], [`signal`], [`question`],
//! [`answer`], [`discovery`], [`mended_commands`] and [`form`] (how it ended and the agent's report). Then come
//! [`session`], one running program, and the runners: [`shell`] and [`command`] over `plain`; [`claude`] and [`acp`]
//! over `conversation` and `reading`, each with a link and a reader of its lines. [`programs`] are the known ones.
//!
//! Knows nothing of tasks or git. Of the board it knows why something is not ready, and the rules for calls. The layers
//! above assign jobs to agents, and apply outcomes to items.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use tavern_core::eligible::NotReady;
use tavern_core::task::Budget;
use tavern_sys::process::{Spec, find_program_on};

pub mod acp;
pub mod acp_lines;
mod acp_link;
pub mod answer;
pub mod claude;
mod claude_link;
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
pub mod programs;
mod provider;
pub mod question;
mod reading;
pub mod session;
pub mod shell;
pub mod signal;
pub mod stream;
pub mod thread;
pub mod tool_rules;
mod transcript;

#[cfg(test)]
mod samples;

pub use acp::Acp;
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

/// The log, in the run's folder, of an agent that writes JSON lines.
pub const THREAD_LOG: &str = "thread.jsonl";
/// The log, in the run's folder, of any other program: both of its outputs, in the order in which they were seen.
pub const OUTPUT_LOG: &str = "output.log";
/// The two outputs of such a program, until the log holds all of them.
pub const OUTPUT_PARTS: [&str; 2] = ["stdout.part", "stderr.part"];
/// The standard error, in the run's folder, of an agent that writes JSON lines.
const STDERR_LOG: &str = "stderr.log";
/// The logs that people read.
pub const LOGS: [&str; 3] = [THREAD_LOG, OUTPUT_LOG, STDERR_LOG];

/// The most bytes kept of an agent's last message, from both ends; its log has all of it.
pub const MOST_ANSWER: usize = 256 << 10;
/// The most MiB of a run's log.
pub const LOG_MIB: u64 = 512;

/// A kind of agent program.
pub trait Runner: Send + Sync {
    /// Checks that the program is installed and can work unattended. `env` is its environment. Looks at files only and
    /// starts nothing.
    ///
    /// # Errors
    /// Returns the missing part, and how to fix it.
    fn check(&self, env: &[(String, String)]) -> Result<Ready, NotReady>;

    /// Like [`Runner::check`], but also starts the program for its version, if that is supported. Begins no session.
    ///
    /// # Errors
    /// As for [`Runner::check`]; or the program can't be started.
    fn try_out(&self, env: &[(String, String)]) -> Result<Ready, NotReady> {
        self.check(env)
    }

    /// Returns whether the program will find its account, judged by the existence of files, not by their content.
    fn access(&self, _env: &[(String, String)]) -> Access {
        Access::NotAsked
    }

    /// Returns the names of the variables that the program reads, its keys among them. A name that ends in `*` matches
    /// a prefix.
    fn variables(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Returns the limits of a run that it enforces.
    fn keeps(&self) -> Kept {
        Kept::default()
    }

    /// Returns where the program writes its own state when it works in `worktree`: account, sessions and caches. `env`
    /// is as in [`Runner::check`].
    fn state(&self, _env: &[(String, String)], _worktree: &Path) -> ProgramState {
        ProgramState::default()
    }

    /// Returns the files and folders of the repository that can make it run something: settings, hooks, servers.
    fn obeyed_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns true if files of the repository may influence it: settings, hooks, memory files.
    fn is_led_by_repository(&self) -> bool {
        true
    }

    /// Returns true if it receives messages while it runs. Other programs get them at the start of the next run.
    fn hears(&self) -> bool {
        false
    }

    /// Returns true if nothing but its agent's own words can be taken for its answer, so that a verdict, plan or question
    /// needs no nonce.
    fn keeps_words_apart(&self) -> bool {
        false
    }

    /// Returns true if it is given [`Job::rules`] apart from the prompt, at the start of each run.
    fn is_told_rules(&self) -> bool {
        false
    }

    /// Returns true if its agent may run commands that begin with these words without asking.
    fn may_run(&self, _words: &[&str]) -> bool {
        true
    }

    /// Returns the tool with which an agent answers in [`Job::form`]; `None` if the program supports no forms.
    fn answer_tool(&self) -> Option<&'static str> {
        None
    }

    /// Returns true if an agent of `job` can resume its session; false for programs without sessions.
    fn knows_session(&self, _job: &Job) -> bool {
        false
    }

    /// Returns the usage of `session` since `since`, from the program's own record, for a run without supervisor. `env`
    /// is the environment set for it. Empty for programs without a record.
    fn recorded(&self, _session: &str, _env: &[(String, String)], _since: DateTime<Utc>) -> Usage {
        Usage::default()
    }

    /// Returns the command that [`Runner::start`] starts for `job`. Writes nothing.
    ///
    /// # Errors
    /// Returns what the job lacks.
    fn spec(&self, job: &Job) -> Result<Spec, NotReady>;

    /// Returns the command for a chat with the agent in its worktree: it owns the terminal and is not followed.
    /// Writes nothing.
    ///
    /// # Errors
    /// Returns what the job lacks.
    fn attended(&self, job: &Job) -> Result<Spec, NotReady> {
        self.spec(job)
    }

    /// Starts the program for `job`. Writes only into the run's folder.
    ///
    /// # Errors
    /// It could not be started; nothing is left running.
    fn start(&self, job: &Job) -> Result<Session, NotReady>;
}

/// The limits of a run that a runner enforces, because its program reports the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub usd: bool,
    pub tokens: bool,
    pub turns: bool,
}

impl Kept {
    /// Returns the limits of `budget` that are not enforced.
    pub fn lacks(self, budget: &Budget) -> Vec<&'static str> {
        let asked = [
            ("usd", budget.usd.is_some() && !self.usd),
            ("tokens", budget.tokens.is_some() && !self.tokens),
            ("turns", budget.turns.is_some() && !self.turns),
        ];
        let lacking = asked.into_iter().filter(|(_, is_lacking)| *is_lacking);
        lacking.map(|(name, _)| name).collect()
    }
}

/// The result of [`Runner::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    pub program: String,
    /// The version that the program reports; empty if it was not asked.
    pub version: String,
}

/// The known state of a program's account before it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// It needs none, or the location is unknown.
    NotAsked,
    /// How it will sign in: the name of a variable, or a file.
    Found(String),
    /// Nothing was found in the usual places. This is no proof; only the first run shows it.
    Unknown { looked: String, hint: &'static str },
}

/// Where a program keeps its own state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramState {
    /// Folders without any settings.
    pub folders: Vec<PathBuf>,
    /// Folders that hold settings too.
    pub homes: Vec<ProgramHome>,
    /// Files that hold both state and settings, and that the program rewrites.
    pub files: Vec<PathBuf>,
}

/// A folder in which a program keeps settings beside its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramHome {
    pub folder: PathBuf,
    /// Files and folders that must persist, relative to the folder. Files have an extension.
    pub kept: Vec<String>,
    /// Name patterns of files that the program recreates when missing. That includes databases, since other processes
    /// that have one open must see its changes.
    pub passing: Vec<&'static str>,
}

/// Returns the file of `program`, as looked up when it is started with `env`.
fn found(program: &OsStr, env: &[(String, String)]) -> Option<PathBuf> {
    find_program_on(&variable_of(env, "PATH").unwrap_or_default(), program)
}
