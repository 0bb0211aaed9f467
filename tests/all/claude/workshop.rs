//! A worktree, a home and a scripted provider for one run of the real CLI, in a temporary folder, with an environment
//! that holds nothing of the user's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tavern::process::table;
use tavern::runner::job::Opening;
use tavern::runner::{AgentEvent, Claude, Job, Limits, Next, Prods, Runner, Session};
use tempfile::TempDir;

use super::stand_in::StandIn;

pub struct Workshop {
    folder: TempDir,
    pub provider: StandIn,
    pub claude: Claude,
    pub job: Job,
}

impl Workshop {
    /// A git worktree with one commit, and a provider that follows `steps`.
    pub fn new(steps: Value) -> Workshop {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).expect("the folder is writable");
            path
        };
        let (worktree, run_dir, home, scratch) = (path("worktree"), path("run"), path("home"), path("scratch"));
        let provider = StandIn::start(steps);
        let env = [
            ("PATH", std::env::var("PATH").expect("tests need programs")),
            ("HOME", home.display().to_string()),
            ("TMPDIR", scratch.display().to_string()),
            ("ANTHROPIC_BASE_URL", provider.url()),
            ("ANTHROPIC_API_KEY", "sk-ant-test-not-real".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_AUTHOR_NAME", "A".to_owned()),
            ("GIT_AUTHOR_EMAIL", "a@example.com".to_owned()),
            ("GIT_COMMITTER_NAME", "A".to_owned()),
            ("GIT_COMMITTER_EMAIL", "a@example.com".to_owned()),
        ];
        // Nothing that whoever runs the tests has set for the CLI or for Node has a part in it.
        let is_users = |name: &String| ["ANTHROPIC", "CLAUDE", "NODE", "XDG"].iter().any(|set| name.starts_with(set));
        let users = std::env::vars().map(|(name, _)| (name, String::new())).filter(|(name, _)| is_users(name));
        let own = env.into_iter().map(|(name, value)| (name.to_owned(), value));
        let env: Vec<(String, String)> = users.chain(own).collect();
        let prompt = "make hello\n".to_owned();
        std::fs::write(run_dir.join("prompt.md"), &prompt).expect("the folder is writable");
        let job = Job {
            task: "T-1".to_owned(),
            run: "T-1-1".to_owned(),
            run_dir,
            worktree,
            prompt,
            session: uuid::Uuid::new_v4().to_string(),
            opening: Opening::New,
            model: None,
            wrapper: Vec::new(),
            env,
            // A safety net: no test waits for it.
            limits: Limits { wall: Some(Duration::from_secs(120)), ..Limits::default() },
            grace: Duration::from_secs(5),
            prods: Prods::default(),
            script: None,
        };
        let claude = Claude {
            program: installed(),
            permission_mode: "acceptEdits".to_owned(),
            allowed_tools: ["Bash", "Read", "Edit", "Write", "Glob", "Grep"].map(str::to_owned).to_vec(),
            extra_args: Vec::new(),
        };
        let workshop = Workshop { folder, provider, claude, job };
        workshop.git(&["init", "--quiet", "--initial-branch=main"]);
        workshop.git(&["commit", "--quiet", "--allow-empty", "--message=first"]);
        workshop
    }

    pub fn start(&self) -> Session {
        self.claude.start(&self.job).expect("the CLI is installed")
    }

    pub fn git(&self, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(args).current_dir(&self.job.worktree).env_clear().envs(self.job.env.iter().cloned());
        let output = git.output().expect("git is on PATH");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.job.worktree.join(name)
    }

    /// Wait until the CLI has written `text` into one of its records, the session's or a sub-agent's.
    pub fn wait_for_transcript(&self, text: &str) {
        let projects = self.folder.path().join("home/.claude/projects");
        let has_text = || {
            let files = walkdir::WalkDir::new(&projects).into_iter().flatten();
            let records = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "jsonl"));
            let mut texts = records.filter_map(|file| std::fs::read_to_string(file.path()).ok());
            texts.any(|record| record.contains(text))
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !has_text() {
            assert!(Instant::now() < deadline, "`{text}` was never recorded");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Living processes of the run.
    pub fn left_running(&self) -> Vec<table::ProcessEntry> {
        table::marked(&self.job.mark())
    }
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

/// Wait until `path` is there.
pub fn wait_for_file(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < deadline, "`{}` never came", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The CLI's program, installed into the build folder by the project's own script once per test program.
pub fn installed() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let install = || {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/install-claude");
        let output = Command::new(&script).output().unwrap_or_else(|error| panic!("{}: {error}", script.display()));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
    };
    PROGRAM.get_or_init(install).clone()
}
