//! A worktree, a home and a scripted provider for one run of the real CLI, in a temporary folder, with an environment
//! that holds nothing of the user's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tavern_run::runner::job::Opening;
use tavern_run::runner::{AgentEvent, Claude, Job, Limits, Next, Prods, Runner, Session, Usage};

use super::stand_in::StandIn;
use crate::dice::slice;
use crate::support::{Scratch, wait_until};

pub struct Workshop {
    pub scratch: Scratch,
    pub provider: StandIn,
    pub claude: Claude,
    pub job: Job,
}

impl Workshop {
    /// A repository with one commit, and a provider that follows `steps`.
    pub fn new(steps: Value) -> Workshop {
        let scratch = Scratch::repository();
        let provider = StandIn::start(steps);
        let env = [
            ("PATH", std::env::var("PATH").expect("tests need programs")),
            ("HOME", scratch.folder().join("home").display().to_string()),
            ("TMPDIR", scratch.folder().join("tmp").display().to_string()),
            ("ANTHROPIC_BASE_URL", provider.url()),
            ("ANTHROPIC_API_KEY", "sk-ant-test-not-real".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
        ];
        // Nothing that whoever runs the tests has set for the CLI or for Node has a part in it.
        let is_users = |name: &String| {
            ["ANTHROPIC", "CLAUDE", "NODE", "XDG"]
                .iter()
                .any(|set| name.starts_with(set))
        };
        let users = std::env::vars()
            .map(|(name, _)| (name, String::new()))
            .filter(|(name, _)| is_users(name));
        let own = env
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        let env: Vec<(String, String)> = users.chain(own).collect();
        let prompt = "make hello\n".to_owned();
        let run_dir = scratch.folder().join("run");
        scratch.write("../run/prompt.md", &prompt);
        let job = Job {
            task: "T-1".to_owned(),
            run: "T-1-1".to_owned(),
            name: String::new(),
            run_dir,
            worktree: scratch.work(),
            rules: String::new(),
            prompt,
            session: uuid::Uuid::new_v4().to_string(),
            opening: Opening::New,
            before: Usage::default(),
            model: None,
            wrapper: Vec::new(),
            env,
            // A safety net: no test waits for it.
            limits: Limits {
                wall: Some(Duration::from_secs(120)),
                ..Limits::default()
            },
            grace: Duration::from_secs(5),
            prods: Prods::default(),
            permits: Vec::new(),
            forbids: std::collections::BTreeMap::new(),
            is_proven_live: false,
            form: None,
            nonce: None,
            script: None,
        };
        let claude = Claude {
            program: installed(),
            permission_mode: "acceptEdits".to_owned(),
            effort: None,
            fallback_model: None,
            obeys_repository: true,
            allowed_tools: ["Bash", "Read", "Edit", "Write", "Glob", "Grep"]
                .map(str::to_owned)
                .to_vec(),
            denied_tools: Vec::new(),
            extra_args: Vec::new(),
        };
        Workshop {
            scratch,
            provider,
            claude,
            job,
        }
    }

    pub fn start(&self) -> Session {
        self.claude.start(&self.job).expect("the CLI is installed")
    }

    /// Returns once an agent's command has made the file `begun`.
    pub fn has_begun(&self) {
        wait_until("the command has begun", || {
            self.scratch.work().join("begun").exists()
        });
    }
}

/// The CLI's records of sessions and of their sub-agents. It writes them late.
pub fn records(scratch: &Scratch) -> Vec<PathBuf> {
    let files = walkdir::WalkDir::new(scratch.folder().join("home/.claude/projects"))
        .into_iter()
        .flatten();
    let files = files.map(walkdir::DirEntry::into_path);
    files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect()
}

/// Returns once the CLI has written `text` into one of its records.
#[track_caller]
pub fn wait_for_record(scratch: &Scratch, text: &str) {
    let has_text =
        |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|record| record.contains(text));
    wait_until(&format!("`{text}` is recorded"), || {
        records(scratch).iter().any(has_text)
    });
}

/// The next event that `wanted` likes; the others are passed over.
pub fn wait_for(session: &mut Session, wanted: impl Fn(&AgentEvent) -> bool) -> AgentEvent {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut seen = Vec::new();
    loop {
        match session.next(Duration::from_secs(1)) {
            Next::Event(event) if wanted(&event) => return event,
            Next::Event(event) => seen.push(event),
            Next::Quiet => assert!(Instant::now() < deadline, "it never came; seen: {seen:#?}"),
            Next::Over => panic!("it is over; seen: {seen:#?}"),
        }
    }
}

/// Every event until the end.
pub fn watch(session: &mut Session) -> Vec<AgentEvent> {
    let mut seen = Vec::new();
    loop {
        match session.next(Duration::from_secs(60)) {
            Next::Event(event) => seen.push(event),
            Next::Quiet => {}
            Next::Over => return seen,
        }
    }
}

/// The CLI's program that all tests drive.
pub fn installed() -> PathBuf {
    versions()[0].clone()
}

/// The programs that a test tries: the oldest version, and all of them where all cases are asked for.
pub fn versions() -> &'static [PathBuf] {
    let all = all_versions();
    if slice().is_some() { &all[..1] } else { all }
}

/// The program of each version, oldest first, installed into the build folder by `scripts/install-claude`.
pub fn all_versions() -> &'static [PathBuf] {
    static PROGRAMS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/install-claude");
        let output = Command::new(&script)
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(PathBuf::from)
            .collect()
    })
}
