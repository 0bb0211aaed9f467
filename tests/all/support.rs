//! A scratch folder with the real programs in reach: cleared environment, no git configuration but its own, a fixed
//! identity. Everything in it goes when the value does.

use std::fmt;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tavern::{PROGRAMS, SMALL};
use tempfile::TempDir;

/// How long a condition may take before the test fails; never how long anything should take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The queue that a board begins with, and its settings.
pub const QUEUE: &str = ".tavern/queues/main.md";
pub const CONFIG: &str = ".tavern/config.yaml";
pub const ARCHIVE: &str = ".tavern/queues/archive/main.md";

/// A queue of several lanes, with words of its owner's and an item without an ID.
pub const OWNED: &str = "\
---
id: main
---

Words of the owner.

## Pending

- [ ] T-1: one
- [ ] T-2: two
- [ ] T-3: three
- [ ] four

## In Progress

## Waiting

## Completed
";

/// An item whose script says that it runs, and then runs for ever.
pub const ENDLESS: &str = "- [ ] T-1: Sleep\n  ```sh\n  echo begun > begun.txt\n  echo $$ > ../../../pid\n  sleep 600\n  ```\n";

/// Settings by which no test waits for a back-off.
pub const AT_ONCE: &str =
    "outcomes: {failed: {backoff: 0s}, empty: {backoff: 0s}, not_ready: {backoff: 0s}}\n";

/// A folder for one test: `work/` is where programs run, `home/` and `tmp/` are theirs.
pub struct Scratch {
    folder: TempDir,
    /// How many programs were held.
    holds: AtomicU32,
}

impl Scratch {
    /// An empty folder that is in no repository.
    pub fn empty() -> Scratch {
        let folder = tempfile::Builder::new()
            .prefix("tavern-")
            .tempdir()
            .expect("a temporary folder can be made");
        let scratch = Scratch {
            folder,
            holds: AtomicU32::new(0),
        };
        for part in ["work", "home", "tmp"] {
            fs::create_dir(scratch.folder().join(part)).expect("the folder is ours");
        }
        scratch
    }

    /// A git repository on branch `main` with one commit of one file.
    pub fn repository() -> Scratch {
        let scratch = Scratch::empty();
        scratch.git(&["init", "--quiet", "--initial-branch=main"]);
        scratch.write("README.md", "# A project\n");
        scratch.git(&["add", "--all"]);
        scratch.git(&["commit", "--quiet", "--message=Begin"]);
        scratch
    }

    /// A repository with a board for the shell runner, as it is made.
    pub fn initialized() -> Scratch {
        let scratch = Scratch::repository();
        scratch
            .run("tavern-init", &["--quiet", "--runner", "shell"])
            .succeeds();
        scratch
    }

    /// The same, whose queue `main` and settings, if there are any, read so.
    pub fn shell(queue: &str, config: &str) -> Scratch {
        let scratch = Scratch::initialized();
        if !config.is_empty() {
            scratch.write(CONFIG, config);
        }
        scratch.write(QUEUE, queue);
        scratch
    }

    /// The same with these items alone.
    pub fn pending(items: &str) -> Scratch {
        Scratch::shell(&format!("## Pending\n\n{items}"), "")
    }

    /// The same with the settings that it was made with, known to Tavern.
    pub fn board(queue: &str) -> Scratch {
        let scratch = Scratch::shell(queue, "");
        scratch.settle();
        scratch
    }

    /// A board whose agents are this script of `sh`, whatever their role. It reads in `$STEPS` what the test has written
    /// to `home/steps`, and what it keeps in `$NOTES` the test finds in `home/notes`. One that neither reads what it does there nor says DONE
    /// ends with that. Nothing waits
    /// for a back-off.
    pub fn with_agent(script: &str, queue: &str, config: &str) -> Scratch {
        let scratch = Scratch::repository();
        let done = if ["DONE", "$STEPS"].iter().any(|word| script.contains(word)) {
            ""
        } else {
            "\necho DONE\n"
        };
        scratch.executable("../home/agent.sh", &format!("{script}{done}"));
        scratch.run("tavern-init", &["--quiet"]).succeeds();
        let now = "{backoff: 0s}";
        let own = format!(
            "base: main\nroles: {{coder: {{runner: own}}}}\nrunners:\n  own:\n    command: [{0}/agent.sh]\n    \
             env: {{NOTES: {0}/notes, STEPS: {0}/steps}}\n\
             outcomes: {{failed: {now}, empty: {now}, crashed: {now}, not_ready: {now}}}\n{config}",
            scratch.folder().join("home").display()
        );
        scratch.write(CONFIG, own);
        scratch.write(QUEUE, queue);
        scratch
    }

    /// What was saved by hand is taken over, as by any program that takes the lock.
    pub fn settle(&self) {
        self.run("tavern-reap", &[]).succeeds();
    }

    /// Another queue from the beginning: what was known of the one before is forgotten.
    pub fn begin(&self, queue: &str) {
        fs::remove_dir_all(self.work().join(".git/tavern")).expect("it is there");
        drop(fs::remove_file(
            self.work().join(".tavern/queues/main.state.yaml"),
        ));
        self.write(QUEUE, queue);
        self.settle();
    }

    /// Where programs run.
    pub fn work(&self) -> PathBuf {
        self.folder().join("work")
    }

    /// The whole folder, without symbolic links in its path.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("it is there")
    }

    /// Adds an empty queue, as a person does in an editor.
    pub fn add_queue(&self, name: &str) {
        self.write(
            format!(".tavern/queues/{name}.md"),
            format!("---\nid: {name}\n---\n\n## Completed\n\n## Pending\n"),
        );
    }

    /// Writes `text` to `path` under `work/`, with the folders above it.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().expect("a file has a folder"))
            .expect("the folder is ours");
        fs::write(&path, text).expect("the folder is ours");
        path
    }

    /// Writes a program to `path` under `work/`. A shell writes it: a file that this process had open for writing while
    /// another thread started a child could not be run for a moment ("text file busy").
    pub fn executable(&self, path: &str, text: &str) -> PathBuf {
        let line = r#"mkdir -p "$(dirname "$0")" && cat >"$0" && chmod +x "$0""#;
        self.command(Path::new("sh"))
            .args(&["-c", line, path])
            .input(text)
            .run()
            .succeeds();
        self.work().join(path)
    }

    /// The text of `path` under `work/`.
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.work().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Writes `path` anew with `to` for each `from`, of which there is one at least.
    #[track_caller]
    pub fn change(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "`{from}` is not in\n{text}");
        self.write(path, text.replace(from, to));
    }

    /// The text of the queue `main`.
    pub fn queue(&self) -> String {
        self.read(QUEUE)
    }

    /// A file that an agent's script has written to `$NOTES`.
    pub fn note(&self, name: impl AsRef<Path>) -> String {
        self.read(Path::new("../home/notes").join(name))
    }

    /// Commits these files on the branch that is checked out. A board whose queues are among them is tracked from then on.
    pub fn commit(&self, paths: &[&str], message: &str) {
        let is_of_board = |path: &&str| {
            ["--all", ".", ".tavern"].contains(path) || path.starts_with(".tavern/queues")
        };
        if paths.iter().any(is_of_board) {
            self.track();
        }
        self.git(&[&["add"], paths].concat());
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// Gives the item up, long ago.
    pub fn cancel_long_ago(&self, id: &str) {
        let then = "2026-01-01T00:00:00Z";
        self.at(then, "tavern-release", &[id, "--cancel"])
            .succeeds();
    }

    /// Has the queues versioned with the code, whatever its settings are like.
    pub fn track(&self) {
        let ignored = fs::read_to_string(self.work().join(".tavern/.gitignore"));
        if ignored.is_ok_and(|text| text.contains("\n/queues/\n")) {
            self.run("tavern-init", &["--quiet", "--tracked"]);
        }
    }

    /// The same board, tracked.
    pub fn tracked(self) -> Scratch {
        self.track();
        self
    }

    /// The files of the integration branch, a line each.
    pub fn merged(&self) -> String {
        self.git(&["ls-tree", "--name-only", "tavern/integration"])
    }

    /// What git prints, without the last newline; it must succeed.
    pub fn git(&self, arguments: &[&str]) -> String {
        let ran = self.command(Path::new("git")).args(arguments).run();
        assert_eq!(ran.code, Some(0), "git {arguments:?}\n{ran}");
        ran.stdout.trim_end().to_owned()
    }

    /// Runs one of Tavern's programs and waits for its end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Ran {
        self.program(program).args(arguments).run()
    }

    /// A line of words, those with blanks between `'`: a program and its arguments, to be run.
    pub fn line(&self, line: &str) -> Run {
        let mut words = line.split('\'').enumerate().flat_map(|(at, piece)| {
            let is_quoted = at % 2 == 1;
            if is_quoted {
                vec![piece]
            } else {
                piece.split_whitespace().collect()
            }
        });
        let program = words.next().expect("a line has a first word");
        self.program(program).args(&words.collect::<Vec<_>>())
    }

    /// Runs it `+N` seconds from now, or at that time.
    pub fn at(&self, now: impl AsRef<std::ffi::OsStr>, program: &str, arguments: &[&str]) -> Ran {
        self.program(program)
            .args(arguments)
            .variable("TAVERN_TEST_NOW", now)
            .run()
    }

    /// Runs it with this fault, such as `log.torn=kill`.
    pub fn failing(
        &self,
        fault: impl AsRef<std::ffi::OsStr>,
        program: &str,
        arguments: &[&str],
    ) -> Ran {
        self.program(program)
            .args(arguments)
            .variable("TAVERN_FAILPOINT", fault)
            .run()
    }

    /// Starts it, and returns once it stands still at `place`, such as `run.ended` or `log.torn@3`.
    pub fn holding(&self, place: &str, program: &str, arguments: &[&str]) -> Held {
        let (place, nth) = place
            .split_once('@')
            .map_or((place, String::new()), |(place, nth)| {
                (place, format!("@{nth}"))
            });
        let go = self
            .folder()
            .join(format!("go-{}", self.holds.fetch_add(1, Ordering::Relaxed)));
        let plan = format!("{place}=hold:{}{nth}", go.display());
        let running = self
            .program(program)
            .args(arguments)
            .variable("TAVERN_FAILPOINT", plan)
            .start();
        wait_until(&format!("{program} is at {place}"), || {
            go.with_extension("held").exists()
        });
        Held { running, go }
    }

    /// What a program prints as JSON, an object a line.
    #[track_caller]
    pub fn records(&self, program: &str, arguments: &[&str]) -> Vec<Value> {
        self.run(program, &[arguments, &["--format", "json"]].concat())
            .records()
    }

    /// The last object that a program prints as JSON; it must succeed.
    #[track_caller]
    pub fn json(&self, program: &str, arguments: &[&str]) -> Value {
        self.run(program, &[arguments, &["--format", "json"]].concat())
            .ends(0)
            .json()
    }

    /// All about an item.
    #[track_caller]
    pub fn item(&self, id: &str) -> Value {
        self.json("tavern-status", &[id])
    }

    /// An item has this status and so many attempts; gives all about it.
    #[track_caller]
    pub fn stands(&self, id: &str, status: &str, attempt: u32) -> Value {
        let item = self.item(id);
        assert_eq!(
            (&item["status"], &item["attempt"]),
            (&status.into(), &attempt.into()),
            "{item:#}"
        );
        item
    }

    /// The files in the inbox of an item.
    pub fn letters(&self, id: &str) -> Vec<PathBuf> {
        let folder = fs::read_dir(self.work().join(".tavern/inbox").join(id))
            .into_iter()
            .flatten();
        folder
            .map(|entry| entry.expect("it is there").path())
            .collect()
    }

    /// Takes an item; gives its token.
    #[track_caller]
    pub fn claim(&self, id: &str, more: &[&str]) -> String {
        self.json("tavern-claim", &[&["--task", id], more].concat())["lease"]["token"].to_string()
    }

    /// One of Tavern's programs, to be run.
    pub fn program(&self, name: &str) -> Run {
        self.command(&program(name))
    }

    /// A script of ours, with Tavern's programs on the PATH.
    pub fn script(&self, name: &str) -> Run {
        self.command(
            &Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("scripts")
                .join(name),
        )
    }

    /// The processes that were started for a run in this folder, or work in it: pid and command line.
    pub fn processes(&self) -> Vec<String> {
        let folder = self.folder();
        let mark = format!("TAVERN_RUN={}/", folder.display());
        let own = std::process::id().to_string();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("there is a /proc").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_process = name.bytes().all(|byte| byte.is_ascii_digit()) && name != own;
            if !is_process {
                continue;
            }
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            let is_marked = environ
                .split(|byte| *byte == 0)
                .any(|one| one.starts_with(mark.as_bytes()));
            let is_here =
                fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
            if is_marked || is_here {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push(format!(
                    "{name} {}",
                    String::from_utf8_lossy(&line).replace('\0', " ")
                ));
            }
        }
        found
    }

    /// No process is left; one that is on its way out is waited for.
    #[track_caller]
    pub fn has_no_process(&self) {
        wait_until(&format!("these have ended: {:?}", self.processes()), || {
            self.processes().is_empty()
        });
    }

    /// Any program, in the same surroundings.
    pub fn command(&self, program: &Path) -> Run {
        let mut command = Command::new(program);
        let folder = self.folder();
        // Tavern's own programs come first, as for somebody who has installed them.
        let own = Path::new(env!("CARGO_BIN_EXE_tavern"))
            .parent()
            .expect("it is in a folder")
            .to_owned();
        let path = std::env::var_os("PATH").expect("PATH is set");
        let path = std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&path)));
        let path = path.expect("no folder of PATH has a colon in its name");
        command
            .current_dir(folder.join("work"))
            .env_clear()
            .env("PATH", path)
            .env("HOME", folder.join("home"))
            .env("TMPDIR", folder.join("tmp"))
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CEILING_DIRECTORIES", &folder)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_AUTHOR_NAME", "Rosie")
            .env("GIT_AUTHOR_EMAIL", "rosie@example.org")
            .env("GIT_COMMITTER_NAME", "Rosie")
            .env("GIT_COMMITTER_EMAIL", "rosie@example.org");
        Run {
            command,
            input: None,
            output: None,
        }
    }
}

/// Returns the path of the program `name`, as it is installed: beside `tavern`, and a link to it where it has no file of its own.
pub fn program(name: &str) -> PathBuf {
    static LINKS: OnceLock<()> = OnceLock::new();
    let one = Path::new(env!("CARGO_BIN_EXE_tavern"));
    LINKS.get_or_init(|| {
        for linked in PROGRAMS
            .iter()
            .filter(|linked| linked.name != SMALL[0].name)
        {
            let link = one.with_file_name(linked.name);
            let is_small = SMALL.iter().any(|small| small.name == linked.name);
            let target = if is_small { SMALL[0].name } else { "tavern" };
            if fs::read_link(&link).is_ok_and(|found| found == Path::new(target)) {
                continue;
            }
            // Another test process may be about to do the same.
            let fresh = one.with_file_name(format!("{}.{}", linked.name, std::process::id()));
            std::os::unix::fs::symlink(target, &fresh).expect("the build folder is ours");
            fs::rename(&fresh, &link).expect("the build folder is ours");
        }
    });
    let path = one.with_file_name(name);
    assert!(path.exists(), "{} is not built", path.display());
    path
}

/// A program about to be run.
pub struct Run {
    command: Command,
    input: Option<Vec<u8>>,
    output: Option<fs::File>,
}

impl Run {
    pub fn args(mut self, arguments: &[&str]) -> Run {
        self.command.args(arguments);
        self
    }

    pub fn variable(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Run {
        self.command.env(name, value);
        self
    }

    /// Without a variable that all have.
    pub fn without(mut self, name: &str) -> Run {
        self.command.env_remove(name);
        self
    }

    /// In a process group of its own, as a terminal starts it: see [`Running::signal_group`].
    pub fn in_a_group(mut self) -> Run {
        self.command.process_group(0);
        self
    }

    /// Runs it elsewhere than in `work/`.
    pub fn within(mut self, folder: &Path) -> Run {
        self.command.current_dir(folder);
        self
    }

    /// What it reads on standard input; nothing unless set.
    pub fn input(mut self, text: impl AsRef<[u8]>) -> Run {
        self.input = Some(text.as_ref().to_vec());
        self
    }

    /// Both of its outputs go to the end of this file: for one that runs long and says much.
    pub fn told_to(mut self, path: &Path) -> Run {
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .expect("the folder is ours");
        self.output = Some(file);
        self
    }

    /// Runs it to its end.
    pub fn run(self) -> Ran {
        self.start().end()
    }

    /// Starts it and goes on.
    pub fn start(mut self) -> Running {
        let stdin = if self.input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        self.command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(file) = self.output {
            let copy = file.try_clone().expect("a file can be shared");
            self.command.stdout(file).stderr(copy);
        }
        let mut child = None;
        // What a test has just written its other threads' children have open until they are programs of their own.
        wait_until("the program can be run", || {
            child = match self.command.spawn() {
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => None,
                spawned => {
                    Some(spawned.unwrap_or_else(|error| panic!("{:?}: {error}", self.command)))
                }
            };
            child.is_some()
        });
        let mut child = child.expect("it runs");
        if let (Some(input), Some(mut stdin)) = (self.input, child.stdin.take()) {
            // A program that ends without reading its input is fine.
            let _ = stdin.write_all(&input);
        }
        Running { child: Some(child) }
    }
}

/// A program that runs; killed if the test ends before it does.
pub struct Running {
    child: Option<Child>,
}

impl Running {
    pub fn pid(&self) -> rustix::process::Pid {
        let child = self.child.as_ref().expect("it is taken only at its end");
        rustix::process::Pid::from_child(child)
    }

    /// It has ended; [`Running::end`] returns at once.
    pub fn has_ended(&mut self) -> bool {
        let child = self.child.as_mut().expect("it is taken only at its end");
        child.try_wait().expect("it is our child").is_some()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("it runs, and is ours");
    }

    /// Stops it, until it is sent `CONT`.
    pub fn stops(&self) {
        use rustix::process::{Signal, WaitOptions, waitpid};
        self.signal(Signal::STOP);
        let waited = waitpid(Some(self.pid()), WaitOptions::UNTRACED);
        let (_, status) = waited.expect("it is ours").expect("it is waited for");
        assert!(status.stopped(), "{status:?}");
    }

    /// Sends a signal to all of its group, as a terminal does at Ctrl-C.
    pub fn signal_group(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process_group(self.pid(), signal).expect("it runs, and is ours");
    }

    /// Kills it, and leaves what it has started to itself.
    pub fn kill(self) {
        drop(self);
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ran {
        let child = self.child.take().expect("it is taken only here");
        Ran::from(child.wait_with_output().expect("it can be waited for"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Scratch {
    /// Fails the test that leaves something behind. What a killed program had started, such as git, may write for a moment yet.
    fn drop(&mut self) {
        let path = self.folder.path().to_owned();
        if !std::thread::panicking() {
            wait_until(&format!("{} can be removed", path.display()), || {
                fs::remove_dir_all(&path).is_ok()
            });
        }
    }
}

/// A program that stands still, until it is let go on.
pub struct Held {
    running: Running,
    go: PathBuf,
}

impl Held {
    /// Lets it go on, to its end.
    pub fn goes_on(self) -> Ran {
        fs::write(&self.go, "").expect("the folder is ours");
        self.running.end()
    }
}

/// A program that has ended. It prints as its exit code and both of its outputs, to be compared whole.
#[derive(Debug, PartialEq)]
pub struct Ran {
    /// `None`: ended by a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// It ended with exit code 0; gives what it printed.
    #[track_caller]
    pub fn succeeds(self) -> String {
        assert_eq!(self.code, Some(0), "{self}");
        self.stdout
    }

    /// It ended with this exit code; `None`: by a signal.
    #[track_caller]
    pub fn ends(self, code: impl Into<Option<i32>>) -> Ran {
        assert_eq!(self.code, code.into(), "{self}");
        self
    }

    /// What it printed as JSON, an object a line.
    #[track_caller]
    pub fn records(&self) -> Vec<Value> {
        let record =
            |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}\n{self}"));
        self.stdout.lines().map(record).collect()
    }

    /// The last of them.
    #[track_caller]
    pub fn json(&self) -> Value {
        self.records()
            .pop()
            .unwrap_or_else(|| panic!("no JSON in\n{self}"))
    }

    /// One of its outputs has this text.
    #[track_caller]
    pub fn says(self, text: &str) -> Ran {
        assert!(
            self.stdout.contains(text) || self.stderr.contains(text),
            "`{text}` is not in\n{self}"
        );
        self
    }

    /// None of its outputs has this text.
    #[track_caller]
    pub fn says_not(self, text: &str) -> Ran {
        assert!(
            !self.stdout.contains(text) && !self.stderr.contains(text),
            "`{text}` is in\n{self}"
        );
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("programs print UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("programs print UTF-8"),
        }
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => writeln!(f, "exit {code}")?,
            None => writeln!(f, "ended by a signal")?,
        }
        write!(f, "--- stdout\n{}--- stderr\n{}", self.stdout, self.stderr)
    }
}

/// Returns once `holds` does; fails with `what` if that takes far too long.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns a folder that a sandboxed agent sees, unlike one below /dev/shm: there a sandbox has its own.
pub fn seen_in_a_box() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build folder is ours")
}

/// The text of a queue of this name.
pub fn queue_named(name: &str, items: &str) -> String {
    format!("---\nid: {name}\n---\n{items}")
}

/// An item whose script writes its name to `NAME.txt`; `notes` follow its title.
pub fn item(id: &str, notes: &str) -> String {
    format!("- [ ] {id}: Do {id}{notes}\n  ```sh\n  echo {id} > {id}.txt\n  ```\n")
}

/// The text has all of these parts.
#[track_caller]
pub fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}
