//! An agent says which steps of its item it has done: their boxes are ticked in the queue's file, and nothing else of it.

use serde_json::json;

use crate::claude::project::{Project, bash, say};
use crate::sandbox::is_boxed;
use crate::support::{AT_ONCE, CONFIG, QUEUE, Scratch, has};

/// Steps in all forms, above and below the keys, with line ends of both kinds; four of them, of which the first is done.
const ITEM: &str = "* [ ] T-1: Build (worktree: false)\r\n\tWords.\n\n\t- [x] the frame\r\n\t- [ ] the door\n\t  ```yaml task\n\t  ```\n\
    \n  ```yaml task\n  done_when: []\n  ```\n  1. [ ] the roof \r\n     > - [ ] quoted\n  2.  [ ] the bell\n  - [ ] T-2: The garden (worktree: false)\n    - [ ] its hedge\n";

fn claimed() -> (Scratch, String) {
    let scratch = Scratch::board(&format!("## Pending\n\n{ITEM}\nWords of the owner.\n"));
    let token = scratch.claim("T-1", &["--agent", "Frodo"]);
    (scratch, token)
}

#[test]
fn the_holder_ticks_steps_by_their_numbers_and_no_other_byte_changes() {
    let (scratch, token) = claimed();
    let before = scratch.queue();
    let report = |more: &[&str]| {
        scratch.run(
            "tavern-report",
            &[&["T-1", "--token", &token], more].concat(),
        )
    };
    report(&["--step", "2", "--dry-run"])
        .ends(0)
        .says("T-1 2 of 4 steps, now with the door");
    report(&["--step", "5"])
        .ends(4)
        .says("`T-1` has no step 5: it has 4\nhint: ");
    report(&["--step", "2", "--step", "0"])
        .ends(4)
        .says("`T-1` has no step 0");
    report(&["--step", "2", "--done"]).ends(2);
    let stranger = (token.parse::<u64>().expect("a number") + 1).to_string();
    scratch
        .run(
            "tavern-report",
            &["T-1", "--token", &stranger, "--step", "2"],
        )
        .ends(4)
        .says("is stale");
    scratch
        .run("tavern-report", &["T-1", "--step", "2"])
        .ends(2)
        .says("--token");
    assert_eq!(scratch.queue(), before);

    report(&["--step", "3", "--step", "2"])
        .ends(0)
        .says("T-1 3 of 4 steps, now with the roof; the door\n");
    let after = before
        .replace("[ ] the door", "[x] the door")
        .replace("[ ] the roof", "[x] the roof");
    assert_eq!(scratch.queue(), after);
    report(&["--step", "2"])
        .ends(0)
        .says("T-1 3 of 4 steps; step 2 is ticked already\n");
    report(&["--step", "1", "--step", "4", "--dry-run"])
        .says("T-1 4 of 4 steps, now with the bell; step 1 is ticked already\n");
    let told = report(&[
        "--step", "4", "--step", "4", "--step", "1", "--format", "json",
    ])
    .ends(0)
    .json();
    assert_eq!(
        told,
        json!({"task": "T-1", "ticked": ["the bell", "the bell", "the frame"], "steps": {"done": 4, "open": []}})
    );
    assert_eq!(
        scratch.queue(),
        after.replace("[ ] the bell", "[x] the bell")
    );
    scratch
        .run("tavern-log", &["T-1"])
        .ends(0)
        .says("Frodo ticked steps of T-1: 3, 2\n");
}

#[test]
fn a_tick_stays_with_what_is_given_back_and_is_taken_back_with_the_claim_or_by_its_own_event() {
    // What is taken back is written with line ends of one kind.
    let item = ITEM.replace("\r\n", "\n");
    let scratch = Scratch::board(&item);
    let token = scratch.claim("T-1", &["--agent", "Frodo"]);
    scratch
        .run("tavern-report", &["T-1", "--token", &token, "--step", "2"])
        .ends(0);
    let event = scratch.json("tavern-log", &["T-1", "--last", "1"]);
    assert_eq!(event["kind"], "ticked");
    let event = event["seq"].to_string();
    scratch
        .run("tavern-undo", &["--event", &event])
        .ends(4)
        .says("`T-1` is held");
    scratch
        .run("tavern-release", &["T-1", "--token", &token])
        .ends(0);
    scratch
        .run("tavern-report", &["T-1", "--token", &token, "--step", "3"])
        .ends(4);
    has(&scratch.queue(), &["[x] the door"]);
    scratch.run("tavern-undo", &["T-1"]).ends(0);
    has(&scratch.queue(), &[&item]);
    scratch.run("tavern-undo", &["T-1", "--redo"]).ends(0);
    has(&scratch.queue(), &["[x] the door"]);
    scratch.run("tavern-undo", &["--event", &event]).ends(0);
    has(&scratch.queue(), &["[ ] the door"]);
    let item = scratch.stands("T-1", "pending", 0);
    assert_eq!(
        (&item["returns"], &item["reason"]),
        (&1.into(), &"given back".into())
    );
}

#[test]
fn an_editor_that_knows_of_no_claim_leaves_the_ticks_and_a_person_takes_one_back() {
    let scratch = Scratch::board(&format!("## Pending\n\n{ITEM}\nWords of the owner.\n"));
    let loaded = scratch.queue();
    let token = scratch.claim("T-1", &["--agent", "Frodo"]);
    scratch
        .run(
            "tavern-report",
            &["T-1", "--token", &token, "--step", "2", "--step", "4"],
        )
        .ends(0);
    scratch.write(
        QUEUE,
        loaded.replace("of the owner.", "of the owner, and more."),
    );
    scratch.settle();
    has(
        &scratch.queue(),
        &[
            "[x] the door",
            "[ ] the roof",
            "[x] the bell",
            "and more.\n",
        ],
    );
    scratch.change(QUEUE, "[x] the door", "[ ] the door");
    scratch.settle();
    has(&scratch.queue(), &["[ ] the door", "[x] the bell"]);
}

#[test]
fn an_agent_is_told_the_numbers_of_its_open_steps_and_ticks_them() {
    let item = "- [ ] T-1: Build\n  - [x] the frame\n  1. [ ] the door\n  2. [ ] the roof\n";
    let script = "#!/bin/sh -eu\nmkdir -p $NOTES\ncat >$NOTES/told\ntavern report --step 2\ntavern-report --step 3\necho 1 >one.txt\n";
    let scratch = Scratch::with_agent(
        script,
        &format!("{item}- [ ] T-2: Paint (role: nobody)\n"),
        "",
    );
    scratch
        .run("tavern-agent", &["--name", "Frodo", "--until-empty"])
        .ends(0)
        .says("T-1 merged as");
    let told = scratch.note("told");
    has(
        &told,
        &["`tavern report --step N`\n    2. the door\n    3. the roof\n</assigned-task>"],
    );
    let queue = scratch.queue();
    has(
        &queue,
        &[
            "- [x] T-1: Build",
            "  - [x] the frame\n  1. [x] the door\n  2. [x] the roof\n",
        ],
    );
    scratch.stands("T-1", "completed", 1);
}

#[test]
fn an_item_that_git_has_brought_stays_trusted_when_a_step_of_it_is_ticked() {
    let origin = Scratch::initialized();
    let item = "- [ ] T-1: Build\n  - [ ] the door\n\n  ```sh\n  tavern report --step 1 --quiet; test -e ../../../go && echo 1 >one.txt\n  ```\n";
    origin.write(QUEUE, item);
    origin.write(CONFIG, AT_ONCE);
    origin.commit(&["--all", "--force"], "A board");
    let clone = Scratch::empty();
    clone.git(&[
        "clone",
        "--quiet",
        &origin.work().display().to_string(),
        ".",
    ]);
    clone.run("tavern-trust", &["--yes"]).ends(0);
    clone
        .run("tavern-agent", &["--once"])
        .ends(0)
        .says("T-1 failed");
    has(&clone.queue(), &["- [ ] T-1: Build", "- [x] the door\n"]);
    clone.write("go", "");
    clone
        .run("tavern-trust", &[])
        .ends(0)
        .says("no untrusted changes");
    clone
        .run("tavern-agent", &["--once"])
        .ends(0)
        .says("T-1 merged as");
}

#[test]
fn claude_is_told_to_tick_steps_where_it_may_run_what_does_it() {
    let item = "- [ ] T-1: Build\n  - [ ] the door\n  - [ ] the roof\n";
    let project = Project::new(
        item,
        json!([
            bash("tavern report --step 2; echo hi > hello; git add -A; git commit -qm Hi"),
            say("DONE")
        ]),
    );
    project.work();
    has(
        &project.scratch.queue(),
        &["- [ ] the door\n", "- [x] the roof\n"],
    );
    has(
        &project.provider.calls()[0].prompt(),
        &["`tavern report --step N`\n    1. the door\n    2. the roof\n"],
    );
    let project = Project::with(
        json!({"roles": {"coder": {"allowed_tools": ["Read", "Bash(git *)"]}}}),
        item,
        json!([say("DONE")]),
    );
    project.agent().run();
    assert!(
        !project.provider.calls()[0].prompt().contains("--step"),
        "{}",
        project.provider.calls()[0].prompt()
    );
}

#[test]
fn steps_are_ticked_from_a_sandbox() {
    let scratch = Scratch::initialized();
    let script = "```sh\n  tavern report --step 1 --quiet\n  echo 1 >one.txt\n  ```";
    scratch.write(
        QUEUE,
        format!("- [ ] T-1: Build\n  - [ ] the door\n  - [ ] the roof\n\n  {script}\n"),
    );
    scratch.write(CONFIG, "base: main\nroles: {coder: {sandbox: true}}\n");
    if is_boxed(&scratch) {
        scratch.run("tavern-agent", &["--until-empty"]).ends(0);
        has(
            &scratch.queue(),
            &["- [x] T-1: Build", "- [x] the door\n", "- [ ] the roof\n"],
        );
    }
}
