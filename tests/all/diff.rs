//! What an item's commits change, shown as a whole; and what becomes of work that is approved.

use rustix::process::Signal;

use crate::support::{AT_ONCE, Scratch, has, wait_until};

/// Two commits, and a word that is not committed.
const TWO: &str = "- [ ] T-1: Count (review: person, done_when: test -s two.txt)\n  ```sh\n  echo 1 > one.txt; git add .; git commit -qm First\n  \
                   echo 2 > two.txt; git add .; git commit -qm Second\n  ```\n";

fn board() -> Scratch {
    Scratch::shell(
        &format!("## Pending\n\n{TWO}"),
        &format!("base: main\n{AT_ONCE}"),
    )
}

#[test]
fn all_commits_of_an_item_are_shown_against_where_they_began() {
    let scratch = board();
    scratch
        .run("tavern-diff", &["T-1"])
        .ends(3)
        .says("no commit of T-1 here");
    scratch
        .run("tavern-diff", &["T-404"])
        .ends(2)
        .says("no item `T-404`");
    scratch.run("tavern-agent", &["--until-empty"]).succeeds();
    // What others merge meanwhile is no part of it.
    scratch
        .run(
            "tavern-add",
            &[
                "Other",
                "--id",
                "T-2",
                "--description",
                "```sh\necho x > other.txt\n```",
            ],
        )
        .succeeds();
    scratch.run("tavern-agent", &["--until-empty"]).succeeds();
    let shown = scratch.run("tavern-diff", &["T-1"]).succeeds();
    has(
        &shown,
        &[
            ": 2 commits since ",
            " First\n",
            " Second\n",
            "+++ b/one.txt",
            "+++ b/two.txt",
            "+2",
        ],
    );
    assert!(!shown.contains("other.txt"), "{shown}");
    let told = "tavern diff T-1, then tavern approve T-1, or tavern reject T-1";
    scratch.run("tavern-status", &[]).says(told);
    scratch
        .run("tavern-status", &["T-1"])
        .says(&format!("to do       {told}"))
        .says("its work    tavern diff T-1 (tavern/T-1)");
    let next = "T-1 is approved: the next agent merges it, or now: tavern merge T-1\nits changes: tavern diff T-1\n";
    assert_eq!(
        scratch
            .run("tavern-report", &["T-1", "--approve"])
            .succeeds(),
        next
    );
    scratch.run("tavern-merge", &["T-1"]).succeeds();
    // Its branch is gone.
    let merged = scratch.json("tavern-diff", &["T-1"]);
    let subjects: Vec<&str> = merged["commits"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|commit| commit["subject"].as_str())
        .collect();
    assert_eq!(subjects, ["First", "Second", "T-1: Count"]);
    let patch = merged["patch"].as_str().expect("a text");
    has(patch, &["+++ b/one.txt", "+++ b/two.txt"]);
    assert!(!patch.contains("other.txt"), "{patch}");
    scratch
        .run("tavern-status", &["T-1"])
        .says("its work    tavern diff T-1\n");
}

#[test]
fn what_an_agent_has_not_committed_yet_is_shown_while_it_works() {
    let held = "echo 1 > one.txt; git add .; git commit -qm First; echo 2 > two.txt; touch ../held; until [ -e ../go ]; do sleep 0.02; done";
    let scratch = Scratch::pending(&format!("- [ ] T-1: Half\n  ```sh\n  {held}\n  ```\n"));
    let agent = scratch.program("tavern-agent").args(&["--once"]).start();
    wait_until("it works", || {
        scratch.work().join(".tavern/worktrees/held").exists()
    });
    let shown = scratch.run("tavern-diff", &["T-1"]).succeeds();
    has(
        &shown,
        &[
            "tavern/T-1: 1 commit since ",
            "+++ b/one.txt",
            "\nnot committed yet:\n",
            "+++ b/two.txt\n@@ -0,0 +1,1 @@\n+2\n",
        ],
    );
    let parts = scratch.records("tavern-diff", &["T-1"]);
    let folder = scratch
        .work()
        .canonicalize()
        .expect("it is there")
        .join(".tavern/worktrees/T-1");
    assert_eq!(
        (parts.len(), &parts[1]["worktree"]),
        (2, &folder.to_str().into())
    );
    scratch.write(".tavern/worktrees/go", "");
    agent.end().ends(0);
    scratch
        .run("tavern-diff", &["T-1"])
        .ends(0)
        .says_not("not committed yet")
        .says("+++ b/two.txt");
}

#[test]
fn what_an_agent_left_uncommitted_is_shown_after_its_commits() {
    let queue = "- [ ] T-1: Half (max_attempts: 1)\n  ```sh\n  echo 1 > one.txt; git add .; git commit -qm First\n  echo 2 > two.txt; exit 3\n  ```\n";
    let scratch = Scratch::pending(queue);
    let drained = scratch.run("tavern-drain", &["--agents", "1"]);
    drained.ends(1).says("  its work: tavern diff T-1\n");
    let parts = scratch.records("tavern-diff", &["T-1"]);
    let names: Vec<String> = parts
        .iter()
        .map(|part| part["place"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(
        names.len() == 2
            && names[0] == "tavern/T-1"
            && names[1].starts_with("refs/tavern/salvage/T-1/"),
        "{names:?}"
    );
    for (part, own, other) in [
        (&parts[0], "one.txt", "two.txt"),
        (&parts[1], "two.txt", "one.txt"),
    ] {
        let patch = part["patch"].as_str().expect("a text");
        assert!(patch.contains(own) && !patch.contains(other), "{patch}");
    }
}

#[test]
fn who_approves_is_told_that_an_agent_is_at_work() {
    let scratch = board();
    scratch.run("tavern-agent", &["--until-empty"]).succeeds();
    let agent = scratch
        .program("tavern-agent")
        .args(&["--name", "Sam", "--role", "reviewer"])
        .start();
    wait_until("it waits", || {
        scratch
            .run("tavern-status", &[])
            .stdout
            .contains("Sam        waiting")
    });
    scratch
        .run("tavern-report", &["T-1", "--approve"])
        .ends(0)
        .says("the first agent that is free merges it");
    agent.signal(Signal::INT);
    agent.end();
}
