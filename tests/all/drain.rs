//! A queue of 40 items with dependencies over a repository of 1,000 files is drained by 4 agents, while supervisors and
//! agents' programs are killed at random: every item ends completed exactly once, and nothing is left behind.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tavern_core::task::Status;

use crate::dice::{Dice, number};
use crate::state::{State, temp_files};
use crate::support::{CONFIG, QUEUE, Running, Scratch, wait_until};

const ITEMS: usize = 40;
const FILES: usize = 1_000;
/// How many processes are killed before the rest may work in peace.
const KILLS: usize = 40;
/// Far beyond what it takes.
const PATIENCE: Duration = Duration::from_secs(600);

#[test]
fn a_queue_is_drained_whoever_is_killed() {
    let scratch = repository();
    let before = Photograph::of(&scratch);
    let seed = number("TAVERN_TEST_SEED", 0x7461_7665_726e_0001);
    let most = usize::try_from(number("TAVERN_TEST_KILLS", KILLS as u64)).expect("a small number");
    let mut dice = Dice(seed);
    let begun = Instant::now();
    let (mut kills, mut drains) = (Kills::default(), 0);
    let mut drain = start(&scratch, drains);
    loop {
        assert!(
            begun.elapsed() < PATIENCE,
            "not done after {kills:?}\n{}",
            told(&scratch)
        );
        if drain.has_ended() {
            let ran = drain.end();
            if ran.code == Some(0) {
                break;
            }
            drains += 1;
            assert!(drains < 200, "{ran}\n{}", told(&scratch));
            drain = start(&scratch, drains);
        }
        if kills.sum() < most {
            kills.one(&scratch, most, &mut dice);
        }
        std::thread::sleep(Duration::from_millis(50 + dice.below(200)));
    }
    // Agents of drains that were killed end by themselves.
    scratch.has_no_process();
    let is_wild = kills.agents >= 5 && kills.programs >= 5 && kills.drains >= 1;
    assert!(is_wild, "all kinds were killed: {kills:?}");

    everything_is_done_once(&scratch);
    let ran = scratch.at("+3600", "tavern-reap", &[]).ends(0);
    nothing_is_left(&scratch, &ran.stdout);
    assert_eq!(
        Photograph::of(&scratch),
        before,
        "the user's own checkout, index and files"
    );
}

fn everything_is_done_once(scratch: &Scratch) {
    let state = State::of(scratch);
    state.agrees();
    assert_eq!(state.items.len(), ITEMS);
    let merges = scratch.git(&[
        "log",
        "--first-parent",
        "--reverse",
        "--format=%h %s",
        "tavern/integration",
    ]);
    let mut commits: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (commit, subject) in merges.lines().filter_map(|line| line.split_once(' ')) {
        if let Some((id, _)) = subject.split_once(": ") {
            commits.entry(id).or_default().push(commit);
        }
    }
    let files = scratch.git(&["ls-tree", "-r", "--name-only", "tavern/integration"]);
    for number in 0..ITEMS {
        let id = id(number);
        assert_eq!(
            state.status(&id),
            Some(Status::Completed),
            "{id}\n{}",
            told(scratch)
        );
        let found = commits.get(id.as_str()).cloned().unwrap_or_default();
        assert_eq!(found.len(), 1, "merges of {id}: {found:?}\n{merges}");
        let task = state.task(&id);
        let commit = task.commit().expect("a completed item names its commit");
        assert_eq!(commit, found[0], "{id} names its merge\n{merges}");
        assert_eq!(
            scratch.git(&["show", &format!("tavern/integration:done/{id}")]),
            format!("{id} is done")
        );
        let changed = scratch.git(&["show", &format!("tavern/integration:{}", file(number))]);
        assert_eq!(changed, format!("file {number}\nchanged for {id}"));
    }
    let unmerged = scratch.git(&[
        "for-each-ref",
        "--no-merged=tavern/integration",
        "--exclude=refs/heads/tavern/board",
        "refs/heads/tavern/",
    ]);
    assert_eq!(unmerged, "", "branches with work that is not merged");
    assert_eq!(
        files.lines().count(),
        FILES + ITEMS + 1,
        "all files, and no other"
    );
}

fn nothing_is_left(scratch: &Scratch, reaped: &str) {
    let state = State::of(scratch);
    assert!(state.leases.is_empty(), "{state:#?}");
    scratch.has_no_process();
    assert_eq!(temp_files(scratch), Vec::<PathBuf>::new(), "{reaped}");
    let branches = scratch.git(&[
        "for-each-ref",
        "--format=%(refname:short)",
        "refs/heads/tavern/",
    ]);
    assert_eq!(branches, "tavern/board\ntavern/integration", "{reaped}");
    let board = scratch.work().join(".tavern");
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(board.join(folder)).expect("the folder is there");
        entries
            .map(|entry| {
                entry
                    .expect("it can be read")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    };
    assert_eq!(names("agents"), Vec::<String>::new());
    assert_eq!(
        names("worktrees"),
        ["integration"],
        "the scratch worktree of merges, and no other: {reaped}"
    );
    for slot in names("../.git/tavern/slots") {
        let file =
            fs::File::open(board.join("../.git/tavern/slots").join(&slot)).expect("it is there");
        assert!(file.try_lock().is_ok(), "slot {slot} is held");
    }
    let lock = fs::File::open(board.join("../.git/tavern/lock")).expect("it is there");
    assert!(lock.try_lock().is_ok(), "the board's lock is held");
    drop(lock);
    let locks: Vec<PathBuf> = walkdir::WalkDir::new(scratch.work().join(".git"))
        .into_iter()
        .filter_map(|entry| entry.ok().map(walkdir::DirEntry::into_path))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "lock")
        })
        .collect();
    assert_eq!(locks, Vec::<PathBuf>::new(), "git's own locks");
    // The repository is as whole as it was.
    scratch.git(&["fsck", "--connectivity-only", "--no-dangling"]);
    let again = scratch.run("tavern-reap", &["--dry-run"]).succeeds();
    assert_eq!(again, "", "nothing is left to clear");
}

/// A thousand files, a queue, and a user who is in the middle of something.
fn repository() -> Scratch {
    let scratch = Scratch::repository();
    for number in 0..FILES {
        scratch.write(file(number), format!("file {number}\n"));
    }
    scratch.commit(&["--all"], "A thousand files");
    scratch
        .run("tavern-init", &["--runner", "shell", "-q"])
        .succeeds();
    let again = "attempt: true, backoff: 0s, max_backoff: 0s";
    scratch.write(
        CONFIG,
        format!(
            "base: main\ngrace: 1s\nlease: 5s\nmax_attempts: 1000\nmax_returns: 1000\noutcomes:\n  \
             failed: {{{again}}}\n  crashed: {{{again}}}\n  empty: {{{again}}}\n  \
             not_ready: {{attempt: false, backoff: 1s, max_backoff: 1s}}\n",
        ),
    );
    scratch.write(QUEUE, queue());
    scratch.write(file(FILES - 1), "changed by the user\n");
    scratch.write(file(FILES - 2), "staged by the user\n");
    scratch.git(&["add", "--", &file(FILES - 2)]);
    scratch.write("notes.txt", "the user's own\n");
    scratch
}

fn file(number: usize) -> String {
    format!("src/{:02}/{number:04}.txt", number % 20)
}

fn id(number: usize) -> String {
    format!("T-{number:03}")
}

fn queue() -> String {
    let mut text = String::from("# Main\n\n## Pending\n\n");
    for number in 0..ITEMS {
        let mut after = Vec::new();
        if number >= 6 {
            after.push(id(number - 6));
        }
        if number >= 10 && number % 3 == 0 {
            after.push(id(number - 10));
        }
        let depends = if after.is_empty() {
            String::new()
        } else {
            format!(" (after: [{}])", after.join(", "))
        };
        text.push_str(&format!(
            "- [ ] {}: Change file {number}{depends}\n  ```sh\n",
            id(number)
        ));
        for line in script(number, &after).lines() {
            text.push_str(&format!("  {line}\n"));
        }
        text.push_str("  ```\n\n");
        if number % 2 == 0 {
            let name = id(number);
            text.push_str(&format!(
                "  ```yaml task\n  done_when: [\"grep -q is done/{name}\", \"! test -e left\"]\n  ```\n\n"
            ));
        }
    }
    text.push_str("## Completed\n");
    text
}

/// Does its work from whatever an earlier attempt has left. `done/` shows which dependencies are merged.
fn script(number: usize, after: &[String]) -> String {
    let (id, file) = (id(number), file(number));
    let mut lines: Vec<String> = after
        .iter()
        .map(|id| format!("test -f done/{id} || exit 9"))
        .collect();
    if number % 5 == 3 {
        // Fails at the first attempt, having begun.
        lines.push(format!(
            "if mkdir -p ~/tried && mkdir ~/tried/{id} 2>/dev/null; then echo half >done-half; exit 1; fi"
        ));
        lines.push("rm -f done-half".to_owned());
    }
    if number % 5 == 4 {
        // Something that would outlive its agent.
        lines.push("setsid sleep 600 >/dev/null 2>&1 &".to_owned());
    }
    if number % 5 == 2 {
        lines.push("sleep 0.3".to_owned());
    }
    lines.push(format!(
        "printf 'file {number}\\nchanged for {id}\\n' >{file}"
    ));
    // One that is killed ends the script: on the left of `&&` it would be passed over.
    lines.push("mkdir -p done".to_owned());
    lines.push(format!("echo '{id} is done' >done/{id}"));
    if number % 5 != 1 {
        lines.push(format!(
            "git add --all && (git diff --cached --quiet || git commit --quiet -m 'Work on {id}')"
        ));
    }
    lines.join("\n")
}

fn start(scratch: &Scratch, number: usize) -> Running {
    let run = scratch
        .program("tavern-drain")
        .args(&["--agents", "4", "--runner", "shell"]);
    run.told_to(&scratch.folder().join(format!("drain-{number:03}.log")))
        .start()
}

/// What the drains have said, and where the queue stands, for a test that fails.
fn told(scratch: &Scratch) -> String {
    let mut text = String::new();
    let mut logs: Vec<PathBuf> = fs::read_dir(scratch.folder())
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    logs.sort();
    for log in logs {
        text.push_str(&format!(
            "== {}\n{}",
            log.display(),
            fs::read_to_string(&log).unwrap_or_default()
        ));
    }
    format!("{text}\n{}\n{:#?}", scratch.queue(), scratch.processes())
}

/// What must be as it was: the user's branch, index and files.
#[derive(Debug, PartialEq)]
struct Photograph {
    head: String,
    status: String,
    index: String,
    files: String,
}

impl Photograph {
    fn of(scratch: &Scratch) -> Photograph {
        Photograph {
            head: scratch.git(&["rev-parse", "HEAD", "--abbrev-ref", "HEAD"]),
            status: scratch.git(&[
                "--no-optional-locks",
                "status",
                "--porcelain=v2",
                "--branch",
            ]),
            index: scratch.git(&["ls-files", "--stage"]),
            files: scratch.git(&[
                "ls-files",
                "--others",
                "--exclude=.tavern",
                "--modified",
                "--cached",
            ]) + &scratch.read(file(FILES - 1))
                + &scratch.read(file(FILES - 2))
                + &scratch.read("notes.txt"),
        }
    }
}

/// Whom we have killed.
#[derive(Debug, Default)]
struct Kills {
    drains: usize,
    agents: usize,
    programs: usize,
}

impl Kills {
    fn sum(&self) -> usize {
        self.drains + self.agents + self.programs
    }

    /// Kills one process of ours, if there is one of the kind that the dice say, and not all of its kind's share of `most` are
    /// killed: on a slow machine no agent would live until its program runs.
    fn one(&mut self, scratch: &Scratch, most: usize, dice: &mut Dice) {
        let (count, tenths, kind): (&mut usize, usize, fn(&str) -> bool) = match dice.below(10) {
            0 => (&mut self.drains, 1, |line| line.contains("tavern-drain ")),
            1..6 => (&mut self.agents, 5, |line| line.contains("tavern agent ")),
            _ => (&mut self.programs, 4, |line| {
                !(line.contains("tavern-") || line.contains("tavern agent "))
                    || line.contains("script.sh")
            }),
        };
        if *count * 10 >= most * tenths {
            return;
        }
        let lines = scratch.processes();
        let candidates: Vec<&String> = lines.iter().filter(|line| kind(line)).collect();
        if candidates.is_empty() {
            return;
        }
        let chosen = candidates[dice.below(candidates.len() as u64) as usize];
        let pid = chosen
            .split(' ')
            .next()
            .and_then(|pid| pid.parse().ok())
            .and_then(Pid::from_raw);
        // It may have ended meanwhile; by its handle no other process of the same number is hit.
        let Ok(handle) = pidfd_open(pid.expect("a pid"), PidfdFlags::empty()) else {
            return;
        };
        if scratch.processes().contains(chosen) && pidfd_send_signal(&handle, Signal::KILL).is_ok()
        {
            *count += 1;
        }
    }
}

#[test]
fn a_drain_that_is_ended_tells_of_what_is_left_in_a_few_lines() {
    let scratch = Scratch::initialized();
    let items = (2..=500)
        .map(|number| format!("- [ ] T-{number}: Other (after: T-1)\n  ```sh\n  true\n  ```\n"))
        .collect::<String>();
    scratch.write(
        QUEUE,
        format!("- [ ] T-1: Work\n  ```sh\n  : >begun\n  sleep 1000\n  ```\n{items}"),
    );
    let drain = scratch.program("tavern-drain").start();
    wait_until("it works", || {
        scratch.work().join(".tavern/worktrees/T-1/begun").exists()
    });
    drain.signal(Signal::INT);
    let ran = drain.end();
    assert!(ran.stdout.lines().count() < 30, "{ran}");
    ran.says("  stopped: the drain was ended by Ctrl-C\n")
        .says("0 of 500 completed, 500 left")
        .says("… and 489 more: main: pending");
}

#[test]
fn who_would_work_is_told_by_the_items() {
    let own = "runners: {own: {command: [cat]}}\n";
    let scratch = Scratch::shell(
        "- [ ] T-1: Write (runner: own)\n- [ ] T-2: Other (role: nobody)\n",
        own,
    );
    let dry = scratch.run("tavern-drain", &["--dry-run"]);
    dry.says("draining 1 item with 1 agent, runner own; 1 skipped\n");
    scratch.write(
        QUEUE,
        "- [ ] T-1: Write (runner: own)\n- [ ] T-3: Build\n  ```sh\n  true\n  ```\n",
    );
    scratch
        .run("tavern-drain", &["--dry-run"])
        .says("draining 2 items with 2 agents, runners own, shell\n");
}

#[test]
fn a_drain_says_where_it_begins_what_is_not_seen_and_what_it_may_cost() {
    let script = "```sh\n  touch one.txt\n  ```\n";
    let scratch = Scratch::shell(&format!("- [ ] T-1: One\n  {script}"), "base: main\n");
    scratch.commit(&["--all"], "Board");
    let at = scratch.git(&["rev-parse", "--short=7", "main"]);
    scratch.write("mine.txt", "mine\n");
    scratch.write("README.md", "changed\n");
    let queue = scratch.queue();
    scratch.write(
        ".tavern/queues/main.md",
        format!("{queue}- [ ] T-2: Two\n  {script}"),
    );
    let ran = scratch.run("tavern-drain", &[]).ends(0);
    let told = format!(
        "with 2 agents, runner shell\nfrom `main` at {at}; 2 uncommitted files that agents don't see: README.md, mine.txt\n"
    );
    assert!(ran.stderr.contains(&told), "{ran}");
    assert!(
        ran.stdout.ends_with(
            "merged work is on branch tavern/integration: git merge tavern/integration\n"
        ),
        "{ran}"
    );
    // A program that costs is told of with what it may cost.
    for (config, cap, told) in [
        ("", &[][..], "; no limit of cost: --max-usd N sets one\n"),
        (
            "budget: {day: {usd: 5}}\n",
            &["--max-usd", "2"],
            "; at most $2, at most $5 a day\n",
        ),
    ] {
        let scratch = Scratch::with_agent("true", "- [ ] T-1: One (result: answer)\n", config);
        let ran = scratch.run("tavern-drain", cap);
        assert!(ran.stderr.contains(told), "{ran}");
    }
}
