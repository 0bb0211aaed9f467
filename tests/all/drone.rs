//! Drones: one run of a cheaper model, no second one, a few minutes, gone after it.

use crate::support::{CONFIG, Scratch};

fn board(script: &str, config: &str) -> Scratch {
    let items = "- [ ] T-1: Small (role: drone)\n- [ ] T-2: Smaller (role: drone)\n";
    let queue = format!("## Pending\n\n{items}\n## Completed\n\n## Dead Letter\n");
    let scratch = Scratch::with_agent(
        &format!("#!/bin/sh -eu\ncat >\"$NOTES\"\n{script}\n"),
        &queue,
        config,
    );
    scratch.change(CONFIG, "agent.sh]", "agent.sh, \"{model}\"]");
    scratch
}

fn dead_letters(scratch: &Scratch) -> String {
    scratch
        .queue()
        .split("## Dead Letter")
        .nth(1)
        .expect("the lane is there")
        .to_owned()
}

#[test]
fn a_drone_does_one_item_with_its_model_and_ends() {
    let scratch = board("echo \"$1\" >model.txt; echo DONE", "");
    scratch
        .run("tavern-agent", &["--role", "drone", "--until-empty"])
        .ends(0)
        .says("T-1 merged as")
        .says_not("T-2");
    assert_eq!(
        scratch.git(&["show", "tavern/integration:model.txt"]),
        "haiku"
    );
    assert!(
        scratch
            .read("../home/notes")
            .contains("one small task, one try, a few minutes")
    );
}

#[test]
fn a_drone_that_fails_is_not_tried_again_and_leaves_no_worktree() {
    let scratch = board("echo half >half.txt; exit 3", "");
    scratch
        .run("tavern-agent", &["--role", "drone", "--until-empty"])
        .ends(0)
        .says("T-1 failed, now dead");
    assert!(
        dead_letters(&scratch).contains("T-1: Small"),
        "{}",
        dead_letters(&scratch)
    );
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1);
    let kept = scratch.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/tavern/salvage/T-1",
    ]);
    assert_eq!(
        scratch.git(&["show", &format!("{kept}:half.txt")]),
        "half",
        "what it made is kept"
    );
}

#[test]
fn a_drone_has_a_few_minutes() {
    let scratch = board("sleep 600", "grace: 1s\n");
    scratch.change(
        CONFIG,
        "{runner: own}",
        "{runner: own}, drone: {budget: {minutes: 0.01}}",
    );
    scratch
        .run("tavern-agent", &["--role", "drone", "--until-empty"])
        .ends(0)
        .says("T-1 timeout, now dead");
    scratch.has_no_process();
}

#[test]
fn a_drone_whose_supervisor_dies_has_had_its_run() {
    let scratch = board("echo half >half.txt; kill -KILL $PPID; sleep 600", "");
    scratch
        .run("tavern-agent", &["--role", "drone", "--until-empty"])
        .ends(None);
    scratch
        .run("tavern-reap", &[])
        .ends(0)
        .says("give T-1 back");
    assert!(
        dead_letters(&scratch).contains("T-1: Small"),
        "{}",
        dead_letters(&scratch)
    );
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1);
    scratch.has_no_process();
    // One that was only claimed has had none.
    scratch
        .run(
            "tavern-claim",
            &["--role", "drone", "--task", "T-2", "--format", "json"],
        )
        .ends(0)
        .says("T-2");
    scratch
        .run("tavern-release", &["T-2", "--force"])
        .ends(0)
        .says("T-2 is pending");
}

#[test]
fn a_drone_whose_work_is_rejected_has_had_its_run() {
    let scratch = board("echo half >half.txt; echo DONE", "review: [person]\n");
    scratch
        .run("tavern-agent", &["--role", "drone", "--until-empty"])
        .ends(0)
        .says("now in review");
    scratch
        .run(
            "tavern-report",
            &["T-1", "--reject", "The other half is missing."],
        )
        .ends(0)
        .says("T-1 is dead");
    assert!(
        dead_letters(&scratch).contains("T-1: Small"),
        "{}",
        dead_letters(&scratch)
    );
}
