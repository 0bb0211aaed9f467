//! `max_wait`: what waits for a person, or for its children, waits no longer than it may, and nothing is lost by that.

use crate::support::{CONFIG, QUEUE, Scratch};

/// T-1 waits for an answer from now on.
fn asking(queue: &str, config: &str) -> Scratch {
    let scratch = Scratch::shell(queue, config);
    ask(&scratch);
    scratch
}

fn ask(scratch: &Scratch) {
    let token = scratch.claim("T-1", &[]);
    scratch
        .run(
            "tavern-report",
            &["T-1", "--token", &token, "--waiting", "Red or blue?"],
        )
        .ends(8);
}

const AN_HOUR: &str = "+4000";

const WHY: &str = "no answer within 1h: Red or blue?";

#[test]
fn what_nobody_answers_in_time_is_dead_and_can_be_brought_back() {
    let scratch = asking(
        "- [ ] T-1: Paint it (max_wait: 1h)\n  ```sh\n  echo > a.txt\n  ```\n",
        "",
    );
    scratch.at("+3000", "tavern-reap", &[]).ends(0);
    scratch.stands("T-1", "waiting", 0);
    scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says("  waits until ")
        .says(", then it is dead\n");
    let told = format!("move T-1 to the dead letter lane: {WHY}\n");
    assert_eq!(
        scratch
            .at(AN_HOUR, "tavern-reap", &["--dry-run"])
            .succeeds(),
        told
    );
    scratch.at(AN_HOUR, "tavern-check", &[]).says(&told);
    scratch.stands("T-1", "waiting", 0);
    assert_eq!(scratch.at(AN_HOUR, "tavern-reap", &[]).succeeds(), told);
    assert_eq!(scratch.stands("T-1", "dead", 0)["reason"], WHY);
    scratch
        .run("tavern-log", &["T-1"])
        .ends(0)
        .says("T-1 waited for too long");
    scratch
        .run("tavern-undo", &["T-1"])
        .ends(0)
        .says("T-1 is waiting again");
    scratch
        .run("tavern-undo", &["T-1", "--redo"])
        .ends(0)
        .says("T-1 is dead again");
    scratch.run("tavern-release", &["T-1", "--revive"]).ends(0);
    scratch.run("tavern-agent", &["--until-empty"]).ends(0);
    scratch.stands("T-1", "completed", 1);
}

#[test]
fn an_answer_in_time_counts_however_late_it_is_taken_up() {
    let scratch = asking("- [ ] T-1: Paint it (max_wait: 1h)\n", "");
    scratch.write(QUEUE, scratch.queue() + "  Answer: Blue.\n");
    assert_eq!(scratch.at(AN_HOUR, "tavern-reap", &[]).succeeds(), "");
    scratch.stands("T-1", "waiting", 0);
}

#[test]
fn the_limit_of_an_item_is_named_when_it_is_added() {
    let scratch = Scratch::initialized();
    scratch
        .run(
            "tavern-add",
            &["--id", "T-1", "--max-wait", "1h", "Paint it"],
        )
        .ends(0);
    ask(&scratch);
    assert_eq!(
        scratch.at(AN_HOUR, "tavern-reap", &[]).succeeds(),
        format!("move T-1 to the dead letter lane: {WHY}\n")
    );
}

#[test]
fn the_items_own_limit_goes_before_that_of_its_queue_and_that_before_the_boards() {
    for (item, front, config, is_over) in [
        ("", "", "", false),
        ("", "", "max_wait: 1h\n", true),
        ("", "max_wait: 1h\n", "max_wait: 9d\n", true),
        ("", "max_wait: 0\n", "max_wait: 1h\n", false),
        (" (max_wait: 1h)", "max_wait: 9d\n", "", true),
        (" (max_wait: 0s)", "max_wait: 1h\n", "", false),
    ] {
        let queue = format!(
            "---\nid: main\n{front}---\n- [ ] T-1: Paint it{item}\n- [ ] T-2: Wait (role: nobody)\n"
        );
        let scratch = asking(&queue, config);
        // An agent sees to it, too.
        let ran = scratch
            .at(AN_HOUR, "tavern-agent", &["--until-empty", "--name", "Sam"])
            .ends(0);
        assert_eq!(
            ran.stdout.contains(WHY),
            is_over,
            "{item} {front} {config}: {ran}"
        );
        scratch.stands("T-1", if is_over { "dead" } else { "waiting" }, 0);
    }
    let scratch = Scratch::shell("- [ ] T-1: Paint it (max_wait: soon)\n", "");
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says("= hint: write a duration such as 12h or 2d; 0 for no limit");
    scratch.write(QUEUE, "- [ ] T-1: Paint it\n");
    scratch.write(CONFIG, "max_wait: soon\n");
    scratch.run("tavern-check", &[]).says("is not a duration");
}

#[test]
fn what_waits_for_its_children_waits_no_longer_than_it_may() {
    let scratch = Scratch::shell("- [ ] T-1: Paint it (max_wait: 1h, worktree: false)\n", "");
    let token = scratch.claim("T-1", &[]);
    scratch
        .run("tavern-add", &["Buy paint", "--parent=T-1", "--draft"])
        .ends(0);
    scratch
        .run("tavern-report", &["T-1", "--token", &token, "--done"])
        .ends(0);
    scratch.stands("T-1", "waiting", 0);
    scratch.run("tavern-reap", &[]).ends(0);
    let dry = || {
        scratch
            .at(AN_HOUR, "tavern-reap", &["--dry-run"])
            .succeeds()
    };
    assert_eq!(
        dry(),
        "move T-1 to the dead letter lane: its children did not end within 1h\n"
    );
    scratch
        .run("tavern-release", &["T-1.1", "--cancel"])
        .ends(0);
    assert_eq!(dry(), "", "it may be taken up");
}
