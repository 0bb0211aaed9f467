//! The job of a runner. Knows nothing of its purpose.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::form::Form;
use super::outcome::Usage;
use tavern_core::rule::BoardRules;
use tavern_sys::process::Mark;

/// The exact prompt of a run, in the run's folder.
pub const PROMPT: &str = "prompt.md";
/// The rules that a run was given apart from the prompt, in the same folder.
pub const RULES: &str = "rules.md";

/// One run of one agent program.
#[derive(Clone, Debug)]
pub struct Job {
    /// Names for `{task}` and `{run}` in command lines.
    pub task: String,
    pub run: String,
    /// The session's name for people, in one line; may be empty.
    pub name: String,
    /// The folder for logs and for a copy of the prompt; must exist.
    pub run_dir: PathBuf,
    /// The folder the agent works in; must exist.
    pub worktree: PathBuf,
    pub prompt: String,
    /// The rules for every task of its role, for a program that takes them apart from the prompt; else empty.
    pub rules: String,
    /// A UUID; new for each new session, since a program refuses to begin one twice.
    pub session: String,
    /// Whether to begin or resume the session.
    pub opening: Opening,
    /// The usage of earlier runs of the session to resume.
    pub before: Usage,
    /// The program's own name of a model; `None` for its default.
    pub model: Option<String>,
    /// A command line before the program's own: a sandbox.
    pub wrapper: Vec<OsString>,
    /// Its complete environment; of two entries with one name the later counts.
    pub env: Vec<(String, String)>,
    pub limits: Limits,
    /// How long each polite step of an ending may take before the next one.
    pub grace: Duration,
    pub prods: Prods,
    /// Calls that a person has allowed, as [`super::permission::called`] formats them.
    pub permits: Vec<String>,
    /// The rules of the board: calls that break one are refused, if the program asks before a call.
    pub forbids: BoardRules,
    /// Whether its answer is verified while its session is open, as often as it may be prodded.
    pub is_proven_live: bool,
    /// The form of its answer, if its program supports forms.
    pub form: Option<Form>,
    /// A random value that a verdict, plan or question must name, if its program may print more than the agent's words.
    pub nonce: Option<String>,
    /// The item's own script, for the shell runner.
    pub script: Option<String>,
}

impl Job {
    /// Returns the mark of the run's processes: its folder, which is unique on this host.
    pub fn mark(&self) -> Mark {
        Mark::run(self.run_dir.to_string_lossy())
    }

    /// Returns the variable `name` as the agent sees it.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        variable_of(&self.env, name)
    }
}

/// Returns the variable `name` of the environment `env`.
pub fn variable_of(env: &[(String, String)], name: &str) -> Option<OsString> {
    let set = env.iter().rev().find(|(key, _)| key == name);
    set.map(|(_, value)| OsString::from(value))
}

/// How a session opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    New,
    Resumed,
}

/// Limits of a run that apply from outside of any model; `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    pub usd: Option<f64>,
    /// Model turns.
    pub turns: Option<u32>,
    /// Tokens as [`super::Usage::fresh`] counts them.
    pub tokens: Option<u64>,
    /// From start to end.
    pub wall: Option<Duration>,
    /// Without a sign of life. While a tool runs it is at least eleven minutes, since the Claude CLI lets a command of
    /// its model run for ten.
    pub idle: Option<Duration>,
    /// Resident memory of the whole process tree.
    pub memory_mib: Option<u64>,
    /// Length of the run's log.
    pub log_mib: Option<u64>,
}

/// How an agent is prodded in its live session, before its answer is accepted or it is ended. Programs that take no
/// messages are not prodded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prods {
    /// How often in a run, for any reason; 0: never.
    pub most: u32,
    /// The message when it ends its turn without stating that it is done or waits for a person.
    pub undecided: String,
    /// The message when it shows no sign of life for [`Limits::idle`]; its current work is interrupted.
    pub silent: String,
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
impl Job {
    /// A job in `folder`, which holds the worktree and the run's folder, with no limits.
    pub(crate) fn in_folder(folder: &std::path::Path) -> Job {
        let (run_dir, worktree) = (folder.join("run"), folder.join("worktree"));
        for path in [&run_dir, &worktree] {
            std::fs::create_dir_all(path).expect("the test's own folder is writable");
        }
        std::fs::write(run_dir.join(PROMPT), "do it\n").expect("the test's own folder is writable");
        Job {
            task: "T-1".to_owned(),
            run: "T-1-1".to_owned(),
            name: String::new(),
            run_dir,
            worktree,
            prompt: "do it\n".to_owned(),
            rules: String::new(),
            session: uuid::Uuid::new_v4().to_string(),
            opening: Opening::New,
            before: Usage::default(),
            model: None,
            wrapper: Vec::new(),
            env: std::env::vars().collect(),
            limits: Limits::default(),
            grace: Duration::from_millis(500),
            prods: Prods::default(),
            permits: Vec::new(),
            forbids: BoardRules::new(),
            is_proven_live: false,
            form: None,
            nonce: None,
            script: None,
        }
    }
}
