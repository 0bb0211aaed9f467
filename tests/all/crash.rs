//! Every failpoint, at each time a verb reaches it, killed there and failing there: the board is as before or as after,
//! a retry works, `tavern-reap` clears what is left.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use tavern_core::task::Status;
use tavern_sys::failpoint::LIST;

use crate::dice::is_in_slice;
use crate::state::{State, temp_files};
use crate::support::{CONFIG, QUEUE, Ran, Run, Scratch};

/// A verb, and a board on which it has something to do.
struct Verb {
    name: &'static str,
    /// The queue `main`, below its headings.
    queue: &'static str,
    /// Programs that are run first, each a line; `$TOKEN` is that of T-1's lease.
    first: &'static [&'static str],
    /// The one under test.
    command: &'static str,
    /// What T-1 may be afterwards, if all went well.
    after: Status,
    /// It is one change of the board: when it says that it failed, nothing has changed.
    is_one_change: bool,
    /// What a retry after a full success may answer, beside 0.
    late: &'static [i32],
}

/// One change of the board, whose retry after a full success succeeds too.
const fn change(
    name: &'static str,
    queue: &'static str,
    first: &'static [&'static str],
    command: &'static str,
    after: Status,
) -> Verb {
    Verb {
        name,
        queue,
        first,
        command,
        after,
        is_one_change: true,
        late: &[],
    }
}

impl Verb {
    const fn of_many(self) -> Verb {
        Verb {
            is_one_change: false,
            ..self
        }
    }

    const fn late(self, late: &'static [i32]) -> Verb {
        Verb { late, ..self }
    }
}

const PLAIN: &str =
    "- [ ] T-1: Write one (worktree: false)\n- [ ] T-2: Stay as you are, ünchanged\n";
const WORK: &str = "- [ ] T-1: Write one\n  ```sh\n  echo one >one.txt\n  ```\n\n  \
    ```yaml task\n  done_when: [\"test -f one.txt\"]\n  ```\n\n- [ ] T-2: Stay as you are (role: nobody)\n";

/// A person has to approve it.
const REVIEWED: &str =
    "- [ ] T-1: Write one (worktree: false, review: person)\n- [ ] T-2: Stay (role: nobody)\n";

const CLAIM: &str = "tavern-claim --task T-1 --agent Frodo";
/// The item is held by a process that is gone when the line has ended.
const CLAIM_OF_THE_DEAD: &str = "dead: tavern-claim --task T-1 --agent Frodo";
const SPAWN: &str = "tavern-spawn T-1 --token $TOKEN";
const DONE: &str = "tavern-report T-1 --token $TOKEN --done";
const FAIL: &str = "tavern-report T-1 --token $TOKEN --failed no";
const ASK: &str = "tavern-report T-1 --token $TOKEN --waiting which?";

const NAMELESS: &str = "- [ ] Write one (worktree: false)\n- [ ] T-2: Stay (role: nobody)\n";
const PARENT: &str =
    "- [ ] T-1: Write one (worktree: false)\n- [ ] T-2: A part of it (parent: T-1)\n";
/// It dies of its first failure.
const MORTAL: &str =
    "- [ ] T-1: Write one (worktree: false, max_attempts: 1)\n- [ ] T-2: Stay (role: nobody)\n";
const STEPS: &str =
    "- [ ] T-1: Write one (worktree: false)\n  - [x] a\n  - [ ] b\n- [ ] T-2: Stay\n";
const ENDED: &str = "- [x] T-1: Write one\n- [ ] T-2: Stay\n";
const LONG_AGO: &str = "- [ ] T-1: Write one\n- [ ] T-3: Once\n- [ ] T-2: Stay\n";
const ARCHIVED: &str = "- [ ] T-2: Stay\n- [ ] T-1: Write one\n";
const TWICE: &str = "- [ ] T-1: Write one\n- [ ] T-2: Stay\n- [ ] T-1: Write another\n";
const TO_PLAN: &str = "- [ ] T-1: Write one (role: planner)\n- [ ] T-2: Stay\n";
const CLAIM_OF_PLAN: &str = "tavern-claim --role planner --task T-1 --agent Rosie";
const PLAN: &str = "plan: - [ ] P-1: One (done_when: \"true\")\n- [ ] P-2: Two (after: P-1, done_when: \"true\")\n";
const CANCEL: &str = "tavern-release T-1 --cancel";
const RELEASE: &str = "tavern-release T-1 --token $TOKEN";
const REOPEN: &str = "tavern-release T-1 --reopen";
const EDIT_BACK: &str =
    "edit: /T-1/d; s/^## Pending$/## Pending\\n\\n- [ ] T-1: Write one (worktree: false)/";

const VERBS: &[Verb] = &[
    change(
        "add",
        PLAIN,
        &[],
        "tavern-add --id T-9 something else",
        Status::Pending,
    )
    .late(&[4]),
    change("claim", PLAIN, &[], CLAIM, Status::InProgress).late(&[3]),
    change(
        "claim of an item without ID",
        NAMELESS,
        &[],
        "tavern-claim --agent Frodo",
        Status::InProgress,
    )
    .late(&[3]),
    change("spawn", WORK, &[CLAIM], SPAWN, Status::InProgress).of_many(),
    change(
        "report --done",
        WORK,
        &[CLAIM, SPAWN],
        DONE,
        Status::Approved,
    )
    .late(&[4]),
    change("report --failed", PLAIN, &[CLAIM], FAIL, Status::Pending).late(&[1, 4]),
    change("report --waiting", PLAIN, &[CLAIM], ASK, Status::Waiting).late(&[4, 8]),
    change(
        "report --approve",
        REVIEWED,
        &[CLAIM, DONE],
        "tavern-report T-1 --approve",
        Status::Completed,
    )
    .late(&[4]),
    change(
        "report --reject",
        REVIEWED,
        &[CLAIM, DONE],
        "tavern-report T-1 --reject no",
        Status::Pending,
    )
    .late(&[4]),
    change(
        "report --done of a parent",
        PARENT,
        &[CLAIM],
        DONE,
        Status::Waiting,
    )
    .late(&[4]),
    change(
        "tell an answer",
        PLAIN,
        &[CLAIM, ASK],
        "tavern-tell T-1 blue",
        Status::Pending,
    ),
    change(
        "report --step",
        STEPS,
        &[CLAIM],
        "tavern-report T-1 --token $TOKEN --step 2",
        Status::InProgress,
    ),
    change("release", PLAIN, &[CLAIM], RELEASE, Status::Pending).late(&[4]),
    change(
        "release --force",
        PLAIN,
        &[CLAIM],
        "tavern-release T-1 --force",
        Status::Pending,
    )
    .late(&[4]),
    change(
        "release of a waiting item",
        PLAIN,
        &[CLAIM, ASK],
        "tavern-release T-1",
        Status::Pending,
    )
    .late(&[4]),
    change(
        "release --revive",
        MORTAL,
        &[CLAIM, FAIL],
        "tavern-release T-1 --revive",
        Status::Pending,
    )
    .late(&[4]),
    change("release --reopen", ENDED, &[], REOPEN, Status::Pending).late(&[4]),
    change("release --cancel", PLAIN, &[], CANCEL, Status::Cancelled).late(&[4]),
    change(
        "merge",
        WORK,
        &[CLAIM, SPAWN, DONE],
        "tavern-merge",
        Status::Completed,
    )
    .of_many(),
    change(
        "reap of a dead holder",
        WORK,
        &[CLAIM_OF_THE_DEAD, SPAWN],
        "tavern-reap",
        Status::Pending,
    )
    .of_many(),
    change(
        "reap of a cancelled item's worktree",
        WORK,
        &[CLAIM, SPAWN, RELEASE, CANCEL],
        "tavern-reap",
        Status::Cancelled,
    )
    .of_many(),
    change(
        "reap of what ended long ago",
        LONG_AGO,
        &["past: tavern-release T-3 --cancel"],
        "tavern-reap",
        Status::Pending,
    )
    .of_many(),
    change(
        "add --parent",
        PLAIN,
        &[],
        "tavern-add --parent T-2 --id T-9 a part of it",
        Status::Pending,
    )
    .late(&[4]),
    change(
        "edit",
        PLAIN,
        &[],
        "edit: s/- \\[ \\] T-1/- [x] T-1/; s/# Main/# The main one/",
        Status::Completed,
    ),
    // What it makes of the item reads as an older version of it, and must not be taken for an old save.
    change("edit back", PLAIN, &[CANCEL], EDIT_BACK, Status::Pending),
    change("undo", PLAIN, &[CANCEL], "tavern-undo T-1", Status::Pending).late(&[3]),
    change(
        "undo --redo",
        PLAIN,
        &[CANCEL, "tavern-undo T-1"],
        "tavern-undo T-1 --redo",
        Status::Cancelled,
    )
    .late(&[3]),
    change(
        "release --reopen from the archive",
        ARCHIVED,
        &["past: tavern-release T-1 --cancel", "tavern-reap"],
        REOPEN,
        Status::Pending,
    )
    .late(&[4]),
    change(
        "check --fix",
        TWICE,
        &[],
        "tavern-check --fix",
        Status::Pending,
    )
    .late(&[5]),
    change("plan", TO_PLAN, &[CLAIM_OF_PLAN], PLAN, Status::Completed).late(&[4]),
    change(
        "init",
        PLAIN,
        &["lost: .tavern/.gitignore .tavern/.gitattributes"],
        "tavern-init --tracked",
        Status::Pending,
    ),
    // A save is there before anybody logs it, so a program that fails of it has changed nothing, and the save stands.
    change(
        "hand",
        PLAIN,
        &["tavern-status"],
        "hand: s/- \\[ \\] T-1/- [x] T-1/",
        Status::Completed,
    )
    .of_many(),
    change(
        "agent",
        WORK,
        &[],
        "tavern-agent --until-empty --name Sam",
        Status::Completed,
    )
    .of_many(),
];

/// What happens at the failpoint.
struct Fault {
    place: String,
    nth: usize,
    action: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}@{}", self.place, self.action, self.nth)
    }
}

/// One test a verb: both cores stay busy, and its name says what broke.
macro_rules! verbs {
    ($($test:ident: $name:literal,)*) => {
        const TESTED: &[&str] = &[$($name),*];

        $(#[test]
        fn $test() {
            survives_each_fault($name);
        })*
    };
}

verbs! {
    add: "add",
    claim: "claim",
    claim_of_an_item_without_id: "claim of an item without ID",
    spawn: "spawn",
    report_done: "report --done",
    report_failed: "report --failed",
    report_waiting: "report --waiting",
    report_approve: "report --approve",
    report_reject: "report --reject",
    report_done_of_a_parent: "report --done of a parent",
    tell_an_answer: "tell an answer",
    report_step: "report --step",
    release: "release",
    release_force: "release --force",
    release_of_a_waiting_item: "release of a waiting item",
    release_revive: "release --revive",
    release_reopen: "release --reopen",
    release_cancel: "release --cancel",
    merge: "merge",
    reap_of_a_dead_holder: "reap of a dead holder",
    reap_of_a_cancelled_items_worktree: "reap of a cancelled item's worktree",
    reap_of_what_ended_long_ago: "reap of what ended long ago",
    add_parent: "add --parent",
    edit: "edit",
    edit_back: "edit back",
    undo: "undo",
    undo_redo: "undo --redo",
    release_reopen_from_the_archive: "release --reopen from the archive",
    check_fix: "check --fix",
    plan: "plan",
    init: "init",
    hand: "hand",
    agent: "agent",
}

/// So many slices has the gate; the faults of a verb are dealt out to them.
const SLICES: usize = 12;

#[test]
fn every_failpoint_is_reached_by_a_verb_that_has_a_test() {
    let names: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
    assert_eq!(TESTED, names);
    let reached: BTreeSet<String> = VERBS.iter().flat_map(hits).collect();
    // Not every machine has sandboxes: `sandbox.rs` has what is left in one survive. And `notify.rs` has who tells people.
    let missing: Vec<&str> = LIST
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !["cell.taken", "notices.sent"].contains(name))
        .filter(|name| !reached.contains(*name))
        .collect();
    assert!(
        missing.is_empty(),
        "failpoints that no verb reaches: {missing:?}"
    );
}

fn survives_each_fault(name: &str) {
    let verb = VERBS
        .iter()
        .find(|verb| verb.name == name)
        .expect("it is in the table");
    let faults = faults(verb, &hits(verb));
    let mut fatal = Vec::new();
    for (_, fault) in faults
        .iter()
        .enumerate()
        .filter(|(nth, _)| is_in_slice(*nth, SLICES))
    {
        if std::panic::catch_unwind(|| survives(verb, fault)).is_err() {
            fatal.push(fault.to_string());
        }
    }
    assert!(
        fatal.is_empty(),
        "{name} did not survive (see above): {}",
        fatal.join(", ")
    );
}

/// Each failpoint at each time that it is hit, killed and failing. A verb of many changes replaces many files, and is not
/// tried before each of the steps of each.
fn faults(verb: &Verb, hits: &[String]) -> Vec<Fault> {
    let mut faults = Vec::new();
    // Who ends while they only read has changed nothing.
    for (at, place) in hits
        .iter()
        .enumerate()
        .filter(|(_, place)| *place != "queue.open")
    {
        let nth = hits[..=at].iter().filter(|other| *other == place).count();
        let is_early = matches!(place.as_str(), "replace.staged" | "replace.written");
        let is_file = place.starts_with("replace.");
        for action in ["kill", "error"] {
            let is_again =
                verb.name == "agent" && nth > 1 && (is_early || (is_file && action == "error"));
            if !is_again {
                faults.push(Fault {
                    place: place.clone(),
                    nth,
                    action,
                });
            }
        }
    }
    faults
}

/// The failpoints that the verb passes, in order.
fn hits(verb: &Verb) -> Vec<String> {
    let scratch = prepared(verb);
    let all: Vec<String> = LIST
        .iter()
        .map(|(name, _)| format!("{name}=sleep:0"))
        .collect();
    let ran = command(&scratch, verb.command)
        .variable("TAVERN_FAILPOINT", all.join(";"))
        .run();
    let state = State::of(&scratch);
    assert_eq!(
        subject(verb, &state),
        Some(verb.after),
        "{}\n{ran}",
        verb.name
    );
    ran.stderr
        .lines()
        .filter_map(|line| line.strip_prefix("failpoint: ").map(str::to_owned))
        .collect()
}

fn survives(verb: &Verb, fault: &Fault) {
    let scratch = prepared(verb);
    let before = State::of(&scratch);
    let ran = command(&scratch, verb.command)
        .variable("TAVERN_FAILPOINT", fault.to_string())
        .run();
    let told = format!("{} with {fault}:\n{ran}", verb.name);
    assert!(
        ran.stderr
            .contains(&format!("failpoint: {}\n", fault.place)),
        "the place was reached: {told}"
    );
    assert_eq!(ran.code.is_none(), fault.action == "kill", "{told}");

    // The next program that takes the lock, whatever it is, finishes or forgets what was begun.
    command(&scratch, "tavern-add --id T-8 the next program")
        .run()
        .succeeds();
    let state = State::of(&scratch);
    // (What is there twice is what it mends.)
    if verb.name != "check --fix" || subject(verb, &state).is_some() {
        state.agrees();
    }
    assert_eq!(
        state.items.get("T-2"),
        before.items.get("T-2"),
        "the other item is untouched: {told}"
    );
    let is_before =
        subject(verb, &state) == subject(verb, &before) && state.leases == before.leases;
    if verb.is_one_change {
        let is_after = subject(verb, &state) == Some(verb.after);
        assert!(is_before || is_after, "{told}\n{state:#?}");
        match (fault.action, ran.code) {
            ("error", Some(0)) => assert!(is_after, "it said that it was done: {told}\n{state:#?}"),
            ("error", _) if !verb.late.contains(&ran.code.unwrap_or(-1)) => {
                assert!(is_before, "it said that it had failed: {told}\n{state:#?}");
                assert!(ran.stderr.contains("error:"), "{told}");
            }
            _ => {}
        }
    }

    retry(verb, &scratch, &told);
    let late = command(&scratch, "tavern-reap")
        .variable("TAVERN_TEST_NOW", "+100000")
        .run();
    assert_eq!(late.code, Some(0), "reap after {told}\n{late}");
    let state = State::of(&scratch);
    state.agrees();
    assert!(state.leases.is_empty(), "{told}\n{state:#?}");
    assert!(
        state.items.values().all(|(status, _)| !status.is_held()),
        "{told}\n{state:#?}"
    );
    assert_eq!(
        temp_files(&scratch),
        Vec::<std::path::PathBuf>::new(),
        "{told}\n{late}"
    );
    assert_eq!(
        state.items.len(),
        before.items.len() + 1 + added(verb, &before) - archived(verb),
        "{told}\n{state:#?}"
    );
    if verb.after == Status::Completed && verb.queue == WORK {
        let merges = scratch.git(&["log", "--first-parent", "--format=%s", "tavern/integration"]);
        assert_eq!(
            merges
                .lines()
                .filter(|line| *line == "T-1: Write one")
                .count(),
            1,
            "{told}\n{merges}"
        );
        assert_eq!(scratch.git(&["show", "tavern/integration:one.txt"]), "one");
        let commit = scratch.git(&[
            "log",
            "--first-parent",
            "--format=%h",
            "--grep=^T-1: ",
            "tavern/integration",
        ]);
        assert_eq!(state.task("T-1").commit(), Some(commit.as_str()), "{told}");
    }
    scratch.has_no_process();
    assert_eq!(scratch.git(&["status", "--porcelain"]), "?? .tavern/");
}

/// The same command again comes to what it should have come to at first.
fn retry(verb: &Verb, scratch: &Scratch, told: &str) {
    // A supervisor that was killed left its task to the next one: `tavern-reap` frees it.
    if verb.name == "agent" {
        command(scratch, "tavern-reap").run().succeeds();
    }
    let again = command(scratch, verb.command).run();
    let code = again.code.expect("nobody kills it");
    assert!(
        code == 0 || verb.late.contains(&code),
        "retry of {told}\n{again}"
    );
    let state = State::of(scratch);
    state.agrees();
    assert_eq!(
        subject(verb, &state),
        Some(verb.after),
        "retry of {told}\n{again}\n{state:#?}"
    );
    assert!(
        scratch.read(".tavern/.gitignore").contains("leases/"),
        "retry of {told}\n{again}"
    );
    assert!(
        scratch
            .read(".tavern/.gitattributes")
            .contains("merge=tavern"),
        "retry of {told}\n{again}"
    );
}

/// How many items the verb gives an ID or adds.
fn added(verb: &Verb, before: &State) -> usize {
    match verb.name {
        "plan" => 2,
        name => usize::from(name.starts_with("add") || !before.items.contains_key("T-1")),
    }
}

/// How many items the verb takes out of the queue.
fn archived(verb: &Verb) -> usize {
    usize::from(verb.queue == LONG_AGO)
}

/// The status of the item that the verb is about: T-1, T-9 if it adds that, else the one without an ID.
fn subject(verb: &Verb, state: &State) -> Option<Status> {
    match verb.name {
        "add" | "add --parent" => state.status("T-9"),
        "check --fix" => state
            .status("T-1")
            .filter(|_| !state.items.contains_key("T-1#2")),
        "claim of an item without ID" => {
            let named: Vec<_> = state
                .items
                .iter()
                .filter(|(id, _)| !["T-2", "T-8"].contains(&id.as_str()))
                .collect();
            assert!(named.len() < 2, "{state:#?}");
            named.first().map(|(_, (status, _))| *status)
        }
        _ => state.status("T-1"),
    }
}

fn prepared(verb: &Verb) -> Scratch {
    let scratch = Scratch::repository();
    scratch
        .run("tavern-init", &["--runner", "shell", "-q", "--tracked"])
        .succeeds();
    scratch.write(
        CONFIG,
        "grace: 1s\nbase: main\noutcomes: {failed: {backoff: 0s}, not_ready: {backoff: 1s}}\n",
    );
    scratch.write(
        QUEUE,
        format!(
            "# Main\n\n## Pending\n\n{}\n## Completed\n\n## Notes\n",
            verb.queue
        ),
    );
    for line in verb.first {
        let ran: Ran = command(&scratch, line).run();
        let code = match *line {
            ASK => 8,
            FAIL => 1,
            _ => 0,
        };
        assert_eq!(ran.code, Some(code), "{line}\n{ran}");
    }
    scratch
}

/// A line of blank-separated words, with what only the scratch folder knows filled in.
fn command(scratch: &Scratch, line: &str) -> Run {
    let token = if line.contains("$TOKEN") || line.starts_with("plan: ") {
        // The token of the lease, or, where that has ended, of the last one.
        let state = State::of(scratch);
        let last = state.log.iter().rev().find_map(|entry| entry.token);
        state
            .leases
            .get("T-1")
            .copied()
            .or(last)
            .unwrap_or(0)
            .to_string()
    } else {
        String::new()
    };
    let line = line.replace("$TOKEN", &token);
    if let Some(line) = line.strip_prefix("dead: ") {
        return scratch
            .command(Path::new("sh"))
            .args(&["-c", &format!("{line} --pid $$")]);
    }
    if let Some(line) = line.strip_prefix("past: ") {
        let past = "2020-01-01T00:00:00Z";
        return scratch.line(line).variable("TAVERN_TEST_NOW", past);
    }
    if let Some(files) = line.strip_prefix("lost: ") {
        return scratch
            .command(Path::new("rm"))
            .args(&files.split(' ').collect::<Vec<_>>());
    }
    if let Some(plan) = line.strip_prefix("plan: ") {
        scratch.write(format!(".tavern/runs/T-1@{token}/plan.md"), plan);
        return scratch
            .program("tavern-report")
            .args(&["T-1", "--token", &token, "--done"]);
    }
    if let Some(edits) = line.strip_prefix("edit: ") {
        let editor = scratch.executable(
            "../editor",
            &format!("#!/bin/sh\nsed -i '{edits}' \"$1\"\n"),
        );
        return scratch.program("tavern-edit").variable("EDITOR", editor);
    }
    if let Some(edits) = line.strip_prefix("hand: ") {
        scratch
            .command(Path::new("sed"))
            .args(&["-i", edits, QUEUE])
            .run()
            .succeeds();
        return scratch.program("tavern-reap");
    }
    scratch.line(&line)
}
