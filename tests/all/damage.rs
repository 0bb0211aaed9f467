//! Files that can't be written, and what damage to Tavern's own files and folders does to work.
#![expect(clippy::print_stdout, reason = "whoever damages all is told how much")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tavern::PROGRAMS;
use xxhash_rust::xxh3::xxh3_64;

use crate::dice::is_in_slice;
use crate::state::{State, board, id as task};
use crate::support::{QUEUE, Ran, Scratch, item, program, wait_until};

#[test]
fn a_claim_that_nobody_is_told_of_holds_nothing() {
    let scratch = Scratch::pending("- [ ] T-1: One\n");
    for form in ["text", "json", "env"] {
        let claim = scratch.program("tavern-claim").args(&["--format", form]);
        claim.told_to(Path::new("/dev/full")).run().ends(1);
        scratch.stands("T-1", "pending", 0);
    }
    scratch
        .run("tavern-log", &["--last", "1"])
        .ends(0)
        .says("the claimed item could not be printed");
    scratch.run("tavern-claim", &[]).ends(0);
}

#[test]
fn what_could_not_be_printed_is_told_with_the_error() {
    let scratch = Scratch::board("");
    let line = format!(
        "exec '{}' One --id T-7 > /dev/full",
        program("tavern-add").display()
    );
    let add = scratch.command(Path::new("sh")).args(&["-c", &line]).run();
    add.ends(1)
        .says("can't write standard output; the output would have been: T-7");
}

#[test]
fn who_renews_a_lease_that_is_over_waits_for_who_gives_it_back() {
    let scratch = Scratch::pending("- [ ] T-1: One\n");
    let token = scratch.claim("T-1", &["--lease", "1m"]);
    let lease = fs::File::options()
        .write(true)
        .open(scratch.work().join(".git/tavern/leases/T-1.yaml"));
    let lease = lease.expect("it is there");
    lease
        .set_modified(SystemTime::now() - Duration::from_secs(90))
        .expect("it is ours");
    let reap = scratch.holding("log.appended", "tavern-reap", &[]);
    let mut renew = scratch
        .line(&format!("tavern-renew T-1 --token {token}"))
        .start();
    let pid = format!(" {} ", renew.pid().as_raw_nonzero());
    let waits = || {
        fs::read_to_string("/proc/locks").is_ok_and(|locks| {
            locks
                .lines()
                .any(|lock| lock.contains("->") && lock.contains(&pid))
        })
    };
    wait_until("it waits, or has ended", || renew.has_ended() || waits());
    reap.goes_on().ends(0);
    renew.end().ends(4);
    scratch.stands("T-1", "pending", 1);
}

#[test]
fn a_lease_that_a_power_cut_has_emptied_is_made_again_from_the_log() {
    for verb in [
        "tavern-renew T-1",
        "tavern-report T-1 --failed x",
        "tavern-release T-1",
    ] {
        let scratch = Scratch::pending("- [ ] T-1: One\n");
        let token = scratch.claim("T-1", &[]);
        scratch.write(".git/tavern/leases/T-1.yaml", "");
        let applied = scratch.read(".git/tavern/applied");
        let last = applied
            .split(' ')
            .next()
            .expect("the number of the last event");
        scratch.write(
            ".git/tavern/applied",
            format!("{last} 0000000000 another-boot\n"),
        );
        let ran = scratch.line(&format!("{verb} --token {token}")).run();
        assert!(matches!(ran.code, Some(0 | 1)), "{verb}: {ran}");
    }
}

/// What becomes of a board whose leases were removed while T-1 and T-2 are held.
fn without_leases(path: &str) -> (Scratch, String) {
    let scratch = Scratch::pending("- [ ] T-1: One\n- [ ] T-2: Two\n- [ ] T-3: Three\n");
    let token = scratch.claim("T-1", &["--lease", "1h"]);
    scratch.claim("T-2", &["--lease", "1h"]);
    let path = scratch.work().join(".git/tavern").join(path);
    if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
    .expect("it is there");
    (scratch, token)
}

#[test]
fn a_lease_whose_file_has_gone_is_still_that_of_its_holder() {
    for path in ["leases", "leases/T-1.yaml"] {
        for verb in ["renew T-1", "report T-1 --failed x", "release T-1"] {
            let (scratch, token) = without_leases(path);
            scratch
                .run("tavern-status", &["T-1"])
                .ends(0)
                .says_not("not in this clone");
            scratch
                .run("tavern-release", &["T-1"])
                .ends(4)
                .says("is held by");
            scratch
                .run("tavern-check", &[])
                .says("write the lease of T-1 again")
                .says_not("died");
            let ran = scratch
                .line(&format!("tavern-{verb} --token {token}"))
                .run();
            assert!(matches!(ran.code, Some(0 | 1)), "{path}: {verb}: {ran}");
        }
        let (scratch, token) = without_leases(path);
        scratch
            .run("tavern-reap", &[])
            .ends(0)
            .says("write the lease of T-1 again");
        assert_eq!(scratch.item("T-1")["lease"]["token"].to_string(), token);
        scratch.run("tavern-claim", &[]).ends(0).says("T-3");
        State::of(&scratch).agrees();
    }
}

#[test]
fn a_run_whose_lease_has_gone_goes_on() {
    let script = "until [ -e ~/go ]; do sleep 0.1; done";
    let queue = format!("- [ ] T-1: One\n  ```sh\n  touch ~/begun; {script}; echo 1 >one\n  ```\n");
    let scratch = Scratch::shell(&queue, "lease: 2s\nroles: {coder: {runner: shell}}\n");
    let agent = scratch.program("tavern-agent").args(&["--once"]).start();
    let (home, leases) = (
        scratch.folder().join("home"),
        scratch.work().join(".git/tavern/leases"),
    );
    wait_until("the script runs", || home.join("begun").exists());
    // A heartbeat may write there meanwhile.
    let remove = || {
        wait_until("the leases are removed", || {
            fs::remove_dir_all(&leases).is_ok()
        });
    };
    remove();
    scratch
        .run("tavern-reap", &[])
        .ends(0)
        .says_not("end the processes");
    remove();
    wait_until("it is written again", || leases.join("T-1.yaml").exists());
    fs::write(home.join("go"), "").expect("it is ours");
    agent.end().ends(0).says("merged as");
    scratch.stands("T-1", "completed", 1);
}

#[test]
fn a_claim_counts_though_its_files_could_not_be_written() {
    for place in ["log.appended", "submit.replaced", "submit.leased"] {
        for verb in [
            "tavern-renew",
            "tavern-report --failed x",
            "tavern-spawn",
            "tavern-release",
        ] {
            let scratch = Scratch::board("- [ ] T-1: One\n  ```sh\n  echo 1 > one.txt\n  ```\n");
            let claimed = scratch
                .failing(
                    format!("{place}=error"),
                    "tavern-claim",
                    &["--format", "json"],
                )
                .ends(0);
            let token = claimed.json()["lease"]["token"].to_string();
            let ran = scratch.line(&format!("{verb} T-1 --token {token}")).run();
            assert!(ran.code != Some(4), "{place}: {verb}: {ran}");
        }
    }
}

/// A board with something in each of its folders. T-0 is archived, T-1 done, T-2 and T-3 are held by hand, T-4 and T-5 pending.
/// T-6 is in review, T-7 held after a run, T-8 waits for an answer, T-9 was edited, and that undone. `TODO.md` was drained, and
/// a save was set aside.
fn used_board() -> Scratch {
    let items: String = (1..=9)
        .map(|number| item(&format!("T-{number}"), reviewed(number)))
        .collect();
    let ended = "- [ ] T-0: Do T-0";
    let config = "archive: {after: 30d}\nroles: {coder: {runner: shell}}\n";
    let scratch = Scratch::shell(
        &format!("## Pending\n\n{items}\n{ended}\n\n## Completed\n"),
        config,
    )
    .tracked();
    scratch.cancel_long_ago("T-0");
    for says in ["in review", "merged as"] {
        scratch
            .run("tavern-agent", &["--once", "--name", "Frodo"])
            .ends(0)
            .says(says);
        scratch.write("README.md", says);
        scratch.commit(&["README.md"], "Go on");
    }
    let tokens = ["T-2", "T-3", "T-7", "T-8"].map(|id| scratch.claim(id, &["--lease", "1h"]));
    scratch
        .run("tavern-tell", &["T-2", "Use argon2."])
        .succeeds();
    scratch
        .line(&format!("tavern-spawn T-7 --token {}", tokens[2]))
        .run()
        .ends(0);
    scratch
        .line(&format!(
            "tavern-report T-8 --token {} --waiting Which?",
            tokens[3]
        ))
        .run()
        .ends(8);
    scratch.change(QUEUE, "Do T-9", "Do nothing");
    scratch.run("tavern-undo", &["T-9"]).ends(0);
    scratch.write(
        "TODO.md",
        "- [ ] T-10: One\n  ```sh\n  echo 1 > one.txt\n  ```\n",
    );
    scratch
        .run("tavern-drain", &["TODO.md", "--runner", "shell"])
        .ends(0);
    scratch.write(
        ".tavern/quota/other.yaml",
        "closed_until: 2020-01-01T00:00:00Z\nreason: spent\n",
    );
    scratch.write(".tavern/templates/own.md", "Do it.\n");
    let learning = "---\nkind: fact\nby: Sam\ncreated: 2026-01-31T12:00:00Z\n---\n\nIt is so.\n";
    scratch.write(".tavern/knowledge/own.md", learning);
    for program in ["tavern-commit", "tavern-reap"] {
        scratch.run(program, &[]).succeeds();
    }
    scratch.write(QUEUE, "garbage\n");
    scratch.settle();
    scratch
        .run("tavern-log", &["--last", "1"])
        .says("set aside");
    // An agent that is killed leaves its file.
    let agent = scratch
        .program("tavern-agent")
        .args(&["--name", "Gone", "--role", "drone"])
        .start();
    wait_until("the agent shows itself", || {
        scratch.work().join(".tavern/agents/Gone.yaml").exists()
    });
    agent.kill();
    scratch.write(".git/tavern/leases/looks.json", "{}");
    scratch.write(".git/tavern/watch.json", "{}");
    scratch.write(".git/tavern/notices.json", "{}");
    scratch.write(
        ".git/tavern-cells/.broken-T-7@1/git/HEAD",
        "ref: refs/heads/main\n",
    );
    scratch
}

fn reviewed(number: u32) -> &'static str {
    if number == 6 {
        " (priority: 0, review: person)"
    } else {
        ""
    }
}

/// Of each kind of Tavern's files and folders one that is on the used board: the gate damages these.
const KINDS: [&str; 49] = [
    ".tavern",
    ".tavern/.gitattributes",
    ".tavern/.gitignore",
    ".tavern/agents",
    ".tavern/agents/Gone.yaml",
    ".tavern/config.yaml",
    ".tavern/inbox",
    ".tavern/inbox/T-2",
    ".tavern/knowledge",
    ".tavern/knowledge/own.md",
    ".tavern/queues",
    ".tavern/queues/archive",
    ".tavern/queues/archive/main.md",
    ".tavern/queues/main.md",
    ".tavern/queues/main.state.yaml",
    ".tavern/quota/other.yaml",
    ".tavern/runs",
    ".tavern/templates/own.md",
    ".tavern/worktrees",
    ".tavern/worktrees/T-7",
    ".git/tavern",
    ".git/tavern/applied",
    ".git/tavern-cells",
    ".git/tavern-cells/.broken-T-7@1",
    ".git/tavern/events",
    ".git/tavern/files",
    ".git/tavern/followed",
    ".git/tavern/leases",
    ".git/tavern/leases/T-2.yaml",
    ".git/tavern/leases/looks.json",
    ".git/tavern/lock",
    ".git/tavern/seen",
    ".git/tavern/seen/TODO.md.md",
    ".git/tavern/seen/TODO.md.state.yaml",
    ".git/tavern/seen/main.1.aside",
    ".git/tavern/seen/main.md",
    ".git/tavern/seen/main.old",
    ".git/tavern/seen/main.spare",
    ".git/tavern/seen/main.spent",
    ".git/tavern/slots",
    ".git/tavern/slots/committed",
    ".git/tavern/slots/run-0",
    ".git/tavern/tips",
    ".git/tavern/tips/tavern%2Fintegration",
    ".git/tavern/typed",
    ".git/tavern/typed/config.yaml",
    ".git/tavern/typed/templates/own.md",
    ".git/tavern/notices.json",
    ".git/tavern/watch.json",
];

/// With this variable every file is damaged, and every program run on each damage: `1/1`, or `2/8` for the second of eight parts.
fn part() -> Option<(usize, usize)> {
    let part = std::env::var("TAVERN_TEST_DAMAGE").ok()?;
    let (part, parts) = part
        .split_once('/')
        .expect("a part of the whole, as in 1/8");
    Some((
        part.parse().expect("a number"),
        parts.parse().expect("a number"),
    ))
}

/// The files and folders of Tavern's own on the board, but for what stands in a worktree, which is its agent's.
fn own_paths(scratch: &Scratch) -> Vec<PathBuf> {
    let walk = |root| {
        walkdir::WalkDir::new(scratch.work().join(root))
            .into_iter()
            .filter_map(Result::ok)
    };
    let found = [".tavern", ".git/tavern", ".git/tavern-cells"]
        .into_iter()
        .flat_map(walk)
        .map(walkdir::DirEntry::into_path);
    let mut paths: Vec<PathBuf> = found
        .map(|path| {
            path.strip_prefix(scratch.work())
                .expect("it is in there")
                .to_owned()
        })
        .collect();
    let worktrees = Path::new(".tavern/worktrees");
    paths.retain(|path| {
        path.parent()
            .is_none_or(|above| above == worktrees || !above.starts_with(worktrees))
    });
    paths.sort();
    paths
}

/// Damages what is at `path`; false if that can't be done to it.
fn damage(path: &Path, how: &str) -> bool {
    let is_folder = path.is_dir();
    let remove = || {
        if is_folder {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
    };
    let bytes = fs::read(path).unwrap_or_default();
    let done = match how {
        "missing" => remove(),
        "empty" if is_folder => remove().and_then(|()| fs::create_dir(path)),
        "another kind" if is_folder => remove().and_then(|()| fs::write(path, "x")),
        "another kind" => remove()
            .and_then(|()| fs::create_dir(path))
            .and_then(|()| fs::write(path.join("x"), "x")),
        "mode 0" => {
            fs::set_permissions(path, PermissionsExt::from_mode(0o0)).expect("it is ours");
            Ok(())
        }
        _ if is_folder => return false,
        "empty" => fs::write(path, ""),
        "half" => fs::write(path, &bytes[..bytes.len() / 2]),
        "garbage" => fs::write(path, b"\xff\xfe garbage: [\x80 }{\n"),
        _ => fs::write(path, vec![0; bytes.len().max(1)]),
    };
    done.expect("the folder is ours");
    true
}

/// All but `tavern-merge-driver`, which is git's and knows no board, and `tavern-serve`, which does not end. `@T-2` stands for the token of its holder.
const LINES: [&str; 36] = [
    "tavern-status",
    "tavern-status T-2",
    "tavern-top",
    "tavern-diff T-1",
    "tavern-log",
    "tavern-check",
    "tavern-runs",
    "tavern-runs show T-1",
    "tavern-report-html -o -",
    "tavern-add new",
    "tavern-learn new --tag x",
    "tavern-learn list",
    "tavern-ask what?",
    "tavern-watch --once",
    "tavern-notify",
    "tavern-schedule",
    "tavern-plan new",
    "tavern-queue",
    "tavern-add x --queue new --create",
    "tavern-claim --agent Sam",
    "tavern-agent --once --name Sam",
    "tavern-agent --dry-run --name Sam",
    "tavern-drain --dry-run --runner shell",
    "tavern-edit main",
    "tavern-tell T-3 word",
    "tavern-renew T-2 --token @T-2",
    "tavern-spawn T-7 --token @T-7",
    "tavern-report T-3 --token @T-3 --failed x",
    "tavern-report T-6 --approve",
    "tavern-release T-2 --force",
    "tavern-undo T-4",
    "tavern-merge",
    "tavern-commit",
    "tavern-reap",
    "tavern-init --dry-run",
    "tavern-trust --dry-run",
];

/// A user who is not root, to whom a mode means something.
const NOBODY: u32 = 65534;

/// Who owns the board runs the programs.
fn runner(scratch: &Scratch) -> Vec<String> {
    let owner = fs::metadata(scratch.work()).expect("it is there").uid();
    let is_ours = owner == rustix::process::getuid().as_raw();
    let user = [
        "setpriv",
        "--clear-groups",
        &format!("--reuid={owner}"),
        &format!("--regid={owner}"),
    ]
    .map(str::to_owned);
    let wait = ["timeout", "60"].map(str::to_owned);
    wait.into_iter()
        .chain(user.into_iter().filter(|_| !is_ours))
        .collect()
}

/// Its exit code and output; it neither hangs nor crashes.
fn run(scratch: &Scratch, line: &str) -> Result<Ran, String> {
    let ran = run_words(scratch, &line.split(' ').collect::<Vec<_>>());
    if matches!(ran.code, None | Some(101 | 124..)) {
        Err(format!("{line}: {ran}"))
    } else {
        Ok(ran)
    }
}

fn run_words(scratch: &Scratch, words: &[&str]) -> Ran {
    let runner = runner(scratch);
    let words: Vec<&str> = runner[1..]
        .iter()
        .map(String::as_str)
        .chain(words.iter().copied())
        .collect();
    scratch
        .command(Path::new(&runner[0]))
        .args(&words)
        .variable("EDITOR", "true")
        .run()
}

/// Work goes on, and no item is lost.
fn works(scratch: &Scratch, with_agent: bool) -> Result<(), String> {
    // The second gives back what nobody holds any more.
    for _ in 0..2 {
        run(scratch, "tavern-reap")?;
    }
    for number in 0..=9 {
        let id = format!("T-{number}");
        if board(scratch).task(&task(&id)).is_err()
            && run(scratch, &format!("tavern-undo {id}"))?.code != Some(0)
        {
            // Else it was taken out by what looks like a person's save, and the log has it.
            return Err(format!("{id} is lost"));
        }
    }
    let claimed = run(scratch, "tavern-claim --task T-4 --format json")?;
    if claimed.code != Some(0) {
        return Err(format!("claim: {claimed}"));
    }
    let token = claimed.json()["lease"]["token"].to_string();
    let report = format!("tavern-report T-4 --token {token} --failed x");
    // Where the log is lost that T-6 is in review, it is worked again.
    let agent = with_agent.then_some((
        "tavern-agent --once --name Sam --runner shell",
        &["merged as", "T-6 done, now in review"][..],
    ));
    let report = (report.as_str(), &["T-4 pending"][..]);
    for (line, says) in [report].into_iter().chain(agent) {
        let ran = run(scratch, line)?;
        if !says.iter().any(|says| ran.to_string().contains(says)) {
            return Err(format!("{line}: {ran}"));
        }
    }
    let state = State::of(scratch);
    let held = state
        .items
        .iter()
        .filter(|(_, (status, _))| status.is_held());
    // Where the whole log is lost they are like those of another clone: a person is told how to take them.
    let told = |id: &str| {
        run(scratch, &format!("tavern-status {id}")).map(|ran| ran.stdout.contains("release"))
    };
    for (id, _) in held.filter(|(id, _)| !state.leases.contains_key(*id)) {
        if !told(id)? {
            return Err(format!("nobody holds {id}"));
        }
    }
    Ok(())
}

/// What `tavern check` says to type for its errors; nothing if it has none.
fn told_to_type(scratch: &Scratch, path: &Path) -> Result<Vec<String>, String> {
    let checked = run(scratch, "tavern-check --format json")?;
    let is_to_mend =
        |fault: &Value| fault["severity"] == "error" || fault["code"] == "lost-archive";
    let errors = checked.records().into_iter().filter(is_to_mend);
    let mut hints: Vec<String> = errors
        .filter_map(|fault| Some(fault["hint"].as_str()?.to_owned()))
        .collect();
    hints.extend(
        checked
            .stderr
            .lines()
            .filter_map(|line| Some(line.strip_prefix("hint: ")?.to_owned())),
    );
    let name = path
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or_default()
        .trim_start_matches('.');
    // What is kept of a branch may be told by the branch's name.
    let told = |name: &str| checked.to_string().contains(name);
    let is_told = told(name) || told(&name.replace("%2F", "/"));
    // What was set aside on the used board waits for a person.
    if hints.is_empty() && matches!(checked.code, Some(0 | 8)) {
        return Ok(Vec::new());
    }
    if hints.is_empty() || !is_told {
        return Err(format!("check tells nothing of it: {checked}"));
    }
    let command = |hint: &String| {
        let quoted = hint.split('`').nth(1);
        let first = hint
            .split("; or ")
            .next()
            .and_then(|hint| Some(hint.split_once(": ")?.1));
        quoted.or(first).unwrap_or(hint).to_owned()
    };
    Ok(hints.iter().map(command).collect())
}

/// The used board, what each program ends with on it, and who holds what.
struct Used {
    scratch: Scratch,
    lines: Vec<String>,
    sound: Vec<Ran>,
    tokens: BTreeMap<String, u64>,
}

impl Used {
    fn new() -> Used {
        let scratch = used_board();
        let tokens = State::of(&scratch).leases;
        let with_token = |line: &str| match line.split_once('@') {
            Some((head, rest)) => {
                let (id, tail) = rest.split_once(' ').unwrap_or((rest, ""));
                format!("{head}{} {tail}", tokens[id]).trim_end().to_owned()
            }
            None => line.to_owned(),
        };
        let lines = LINES.map(with_token).to_vec();
        let mut used = Used {
            scratch,
            lines,
            sound: Vec::new(),
            tokens,
        };
        // What the gate looks at compares with none of them.
        if part().is_some() {
            used.sound = used
                .lines
                .iter()
                .map(|line| run(&used.copy(), line).expect("it is sound"))
                .collect();
        }
        used
    }

    fn copy(&self) -> Scratch {
        let copy = Scratch::empty();
        let from = format!("{}/.", self.scratch.work().display());
        copy.command(Path::new("cp"))
            .args(&["-a", &from, "."])
            .run()
            .succeeds();
        // git knows its worktrees by their paths.
        let [from, to] = [&self.scratch, &copy].map(|of| of.work().display().to_string());
        let line =
            format!("sed -i 's|{from}|{to}|' .git/worktrees/*/gitdir .tavern/worktrees/*/.git");
        copy.command(Path::new("sh"))
            .args(&["-c", &line])
            .run()
            .succeeds();
        copy
    }

    /// Nothing if that can't be done to it.
    fn damaged(&self, path: &Path, how: &str) -> Option<Scratch> {
        let scratch = self.copy();
        let is_done = damage(&scratch.work().join(path), how);
        if how == "mode 0" && rustix::process::getuid().is_root() {
            let folder = scratch.folder();
            let all = [
                "-R",
                "--no-dereference",
                &format!("{NOBODY}:{NOBODY}"),
                &folder.to_string_lossy(),
            ];
            scratch
                .command(Path::new("chown"))
                .args(&all)
                .run()
                .succeeds();
        }
        is_done.then_some(scratch)
    }
}

/// Each program does on the damage what it does without, or tells of it; gives how many ran, and what is wrong.
fn each_works_or_tells(used: &Used, path: &Path, how: &str) -> (usize, Vec<String>) {
    let (mut ran, mut wrong) = (0, Vec::new());
    let mut tells = false;
    let mut others = Vec::new();
    for (line, sound) in used.lines.iter().zip(&used.sound) {
        let Some(scratch) = used.damaged(path, how) else {
            break;
        };
        ran += 1;
        match run(&scratch, line) {
            Err(why) => wrong.push(why),
            Ok(end) if line == "tavern-check" => {
                tells = end.code != sound.code
                    || end.stdout.lines().any(|line| !sound.stdout.contains(line));
            }
            Ok(end) if end.code == sound.code || end.code == Some(0) => {}
            Ok(end) if end.stderr.contains("hint: ") => others.push(format!("{line}: {end}")),
            Ok(end) => wrong.push(format!("without a hint: {line}: {end}")),
        }
    }
    if !tells {
        wrong.extend(
            others
                .into_iter()
                .map(|other| format!("check finds nothing, and {other}")),
        );
    }
    (ran, wrong)
}

/// `nth`: of the cells, for each of which some of the programs are run.
fn survives(used: &Used, nth: usize, path: &Path, how: &str) -> Result<(), String> {
    let begin = || used.damaged(path, how);
    let Some(scratch) = begin() else {
        return Ok(());
    };
    for line in used.lines.iter().skip((nth / SLICES) % 3).step_by(3) {
        run(&scratch, line)?;
    }
    let scratch = begin().expect("it can be damaged");
    for _ in 0..4 {
        let commands = told_to_type(&scratch, path)?;
        if commands.is_empty() {
            break;
        }
        for command in commands {
            run_words(&scratch, &["sh", "-c", &command]);
        }
        if how == "mode 0" {
            run_words(
                &scratch,
                &["chmod", "-R", "u+rwX", ".tavern", ".git/tavern"],
            );
        }
    }
    works(&scratch, part().is_some() || how == "another kind")?;
    // Where the log is as it was, who held an item holds it still.
    let is_of_log = [".git/tavern", ".git/tavern/events"]
        .map(Path::new)
        .contains(&path)
        || path.ends_with("jsonl");
    let tokens = State::of(&scratch).leases;
    if !is_of_log && tokens != used.tokens {
        return Err(format!("held were {:?}, and are {tokens:?}", used.tokens));
    }
    Ok(())
}

/// One test a damage.
macro_rules! damages {
    ($($test:ident: $how:literal,)*) => {
        const DAMAGES: &[&str] = &[$($how),*];

        $(#[test]
        fn $test() {
            heals_or_tells($how);
        })*
    };
}

damages! {
    what_is_missing_is_healed_or_told_with_what_to_type: "missing",
    what_is_empty_is_healed_or_told_with_what_to_type: "empty",
    what_is_cut_in_half_is_healed_or_told_with_what_to_type: "half",
    what_is_garbage_is_healed_or_told_with_what_to_type: "garbage",
    what_is_full_of_nuls_is_healed_or_told_with_what_to_type: "NULs",
    what_is_of_another_kind_is_healed_or_told_with_what_to_type: "another kind",
    what_cannot_be_read_is_healed_or_told_with_what_to_type: "mode 0",
}

/// So many slices has the gate; the files and folders are dealt out to them.
const SLICES: usize = 12;

fn heals_or_tells(how: &str) {
    let used = Used::new();
    let mut paths = own_paths(&used.scratch);
    let missing: Vec<&str> = KINDS
        .into_iter()
        .filter(|kind| !paths.iter().any(|path| path == Path::new(kind)))
        .collect();
    assert_eq!(missing, <[&str; 0]>::default(), "{paths:#?}");
    for program in PROGRAMS
        .iter()
        .map(|program| program.name)
        .filter(|name| !["tavern-merge-driver", "tavern-serve"].contains(name))
    {
        assert!(
            LINES
                .iter()
                .any(|line| line.split(' ').next() == Some(program)),
            "{program} is tried on no damage"
        );
    }
    if part().is_none() {
        paths.retain(|path| KINDS.iter().any(|kind| path == Path::new(kind)));
    }
    let cells = paths.iter().map(|path| (path.as_path(), how)).enumerate();
    // A slot more or less in another run changes no part.
    let is_wanted = |cell: &(&Path, &str)| {
        part().is_none_or(|(part, parts)| {
            xxh3_64(format!("{cell:?}").as_bytes()) as usize % parts == part - 1
        })
    };
    let is_dealt = |nth: usize| part().is_some() || is_in_slice(nth, SLICES);
    let cells: Vec<_> = cells
        .filter(|(nth, cell)| is_wanted(cell) && is_dealt(*nth))
        .collect();
    let (next, triples, failures) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        Mutex::new(Vec::new()),
    );
    let work = || {
        while let Some((nth, (path, how))) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut wrong = Vec::new();
            if part().is_some() {
                let (ran, found) = each_works_or_tells(&used, path, how);
                triples.fetch_add(ran, Ordering::Relaxed);
                wrong = found;
            }
            wrong.extend(survives(&used, *nth, path, how).err());
            let told: Vec<_> = wrong
                .into_iter()
                .map(|why| format!("{} {how}: {why}", path.display()))
                .collect();
            told.iter().for_each(|told| println!("{told}"));
            failures.lock().expect("no thread panics").extend(told);
        }
    };
    thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().expect("no thread panics");
    println!(
        "{} files and folders, {} damages, {} programs on them",
        paths.len(),
        cells.len(),
        triples.into_inner()
    );
    assert!(
        failures.is_empty(),
        "{} wrong\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn a_lost_log_is_told_of_and_no_token_is_given_twice() {
    let scratch = used_board();
    let last = State::of(&scratch)
        .log
        .last()
        .expect("there are events")
        .seq;
    for name in ["events", "applied", "leases"] {
        let path = scratch.work().join(".git/tavern").join(name);
        if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
        .expect("it is there");
    }
    let token: u64 = scratch.claim("T-4", &[]).parse().expect("a number");
    assert!(token > last, "{token} after {last}");
    scratch
        .run("tavern-log", &[])
        .ends(0)
        .says(&format!("and there had been {last}"));
    scratch
        .run("tavern-renew", &["T-4", "--token", &last.to_string()])
        .ends(4);
}

#[test]
fn a_lease_that_cannot_be_read_is_written_again_from_the_log() {
    let used = used_board();
    let path = used.work().join(".git/tavern/leases/T-2.yaml");
    let token = State::of(&used).leases["T-2"].to_string();
    for how in ["missing", "empty", "half", "garbage", "another kind"] {
        damage(&path, how);
        used.run("tavern-check", &[])
            .says("write the lease of T-2 again");
        used.run("tavern-status", &["T-2"])
            .ends(0)
            .says("in progress");
        used.run("tavern-release", &["T-2"])
            .ends(4)
            .says("is held by");
        used.run("tavern-claim", &["--task", "T-2"]).ends(3);
        used.run("tavern-reap", &[])
            .ends(0)
            .says("write the lease of T-2 again");
        used.run("tavern-log", &["T-2"])
            .ends(0)
            .says("its lease file was lost and is restored");
        used.run("tavern-check", &[]).says_not("lease");
        damage(&path, how);
        used.run("tavern-renew", &["T-2", "--token", &token])
            .ends(0);
        assert_eq!(State::of(&used).leases["T-2"].to_string(), token, "{how}");
    }
    // Nobody holds that one.
    used.write(".git/tavern/leases/T-5.yaml", "garbage");
    used.run("tavern-reap", &[])
        .ends(0)
        .says("remove the lease of T-5, which can't be read");
    used.run("tavern-claim", &["--task", "T-5"]).ends(0);
}

/// What is trusted is a file of the user's own: damaged, it is only asked again.
#[test]
fn what_is_trusted_is_asked_again_where_its_file_is_damaged() {
    let origin = Scratch::shell(
        "## Pending\n\n- [ ] T-1: One (result: answer)\n  ```sh\n  true\n  ```\n",
        "",
    );
    origin.commit(&["--all"], "A board");
    let clone = Scratch::empty();
    clone.git(&[
        "clone",
        "--quiet",
        &origin.work().display().to_string(),
        ".",
    ]);
    clone.run("tavern-init", &["--quiet"]).succeeds();
    clone.run("tavern-trust", &["--yes"]).succeeds();
    let folder = clone.folder().join("home/.local/state/tavern/trust");
    let files = || {
        fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .map(|file| file.expect("it is there").path())
    };
    let file = files().next().expect("something is trusted");
    let whole = fs::read(&file).expect("it is there");
    for path in [&file, &folder] {
        for how in DAMAGES.iter().filter(|how| **how != "mode 0") {
            if !damage(path, how) {
                continue;
            }
            let told = format!("{} {how}", path.display());
            run(&clone, "tavern-status")
                .and_then(|_| run(&clone, "tavern-check"))
                .expect(&told);
            let ran = clone.run("tavern-agent", &["--once"]);
            let has_said = |text: &str| ran.to_string().contains(text);
            assert!(
                has_said("tavern trust") || has_said(&folder.to_string_lossy()),
                "{told}: {ran}"
            );
            clone.stands("T-1", "pending", 0);
            for path in [&file, &folder] {
                let is_another = if path == &file {
                    path.is_dir()
                } else {
                    path.is_file()
                };
                let remove = || {
                    if path.is_dir() {
                        fs::remove_dir_all(path)
                    } else {
                        fs::remove_file(path)
                    }
                };
                is_another.then(remove).transpose().expect("it is ours");
            }
            fs::create_dir_all(&folder).expect("it is ours");
            fs::write(&file, &whole).expect("it is ours");
        }
    }
    clone
        .run("tavern-agent", &["--once"])
        .ends(0)
        .says("T-1 merged");
}
