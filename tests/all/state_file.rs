//! `queues/<id>.state.yaml` shows who works on what, and is only to look at.

use std::fs;

use serde_json::Value;

use crate::support::{QUEUE, Scratch, has, item};

const STATES: &str = ".tavern/queues/main.state.yaml";

fn board() -> Scratch {
    let items = [item("T-1", ""), item("T-2", ""), item("T-3", "")].concat();
    Scratch::shell(&format!("## Pending\n\n{items}"), "base: main\n")
}

/// The file, as YAML.
fn states(scratch: &Scratch) -> Value {
    serde_yaml::from_str(&scratch.read(STATES)).expect("it is YAML")
}

#[test]
fn who_works_on_what_stands_beside_the_queue() {
    let scratch = board();
    let queue = scratch.queue();
    assert!(!scratch.work().join(STATES).exists());
    let token = scratch.claim("T-2", &["--agent", "Sam"]);
    assert_eq!(scratch.queue(), queue, "a claim writes nothing into it");
    let shown = states(&scratch);
    assert_eq!(shown["T-2"]["status"], "in_progress");
    assert_eq!(shown["T-2"]["agent"], "Sam");
    has(&scratch.read(STATES), &["} # Do T-2\n"]);
    scratch.run("tavern-release", &["T-1", "--cancel"]).ends(0);
    let question = ["T-2", "--token", &token, "--waiting", "Which: a #1?"];
    scratch.run("tavern-report", &question).ends(8);
    scratch.run("tavern-release", &["T-3", "--cancel"]).ends(0);
    let shown = states(&scratch);
    assert_eq!(shown["T-2"]["question"], "Which: a #1?");
    let lines = scratch.read(STATES);
    let ids: Vec<&str> = lines.lines().skip(1).map(|line| &line[..3]).collect();
    assert_eq!(ids, ["T-1", "T-2", "T-3"], "{lines}");
    // git sees none of it.
    let seen = ["status", "--porcelain", "--untracked-files=all", STATES];
    assert_eq!(scratch.git(&seen), "");
}

#[test]
fn an_edit_of_it_does_nothing_and_is_told() {
    let scratch = board();
    scratch.claim("T-1", &["--agent", "Sam"]);
    let edited = scratch.read(STATES).replace("in_progress", "completed");
    scratch.write(STATES, &edited);
    scratch.stands("T-1", "in_progress", 1);
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says("main.state.yaml: warning: Tavern ignores edits of this file")
        .says("`tavern release`");
    scratch.run("tavern-release", &["T-2", "--cancel"]).ends(0);
    assert_eq!(states(&scratch)["T-1"]["status"], "in_progress");
    fs::remove_file(scratch.work().join(STATES)).expect("it is there");
    scratch.run("tavern-check", &[]).ends(0).says_not("state");
    scratch.run("tavern-release", &["T-3", "--cancel"]).ends(0);
    assert_eq!(states(&scratch)["T-1"]["agent"], "Sam");
}

#[test]
fn the_board_s_branch_has_it() {
    let scratch = board();
    scratch.claim("T-1", &["--agent", "Sam"]);
    scratch.run("tavern-commit", &[]).ends(0);
    let shown = scratch.git(&["show", &format!("tavern/board:{STATES}")]);
    has(&shown, &["T-1: {status: in_progress, agent: Sam"]);
    let subject = scratch.git(&["log", "-1", "--format=%s", "tavern/board"]);
    has(&subject, &["T-1 Do T-1: pending → in progress"]);
}

#[test]
fn a_task_file_has_it_in_the_private_part() {
    let scratch = Scratch::repository();
    let list = "- [ ] T-1: Ask\n  ```sh\n  echo a > a && git add a\n  ```\n";
    scratch.write("TODO.md", list);
    scratch.commit(&["TODO.md"], "A list");
    scratch
        .run("tavern-drain", &["TODO.md", "--agents", "1"])
        .ends(0);
    assert_eq!(scratch.read("TODO.md"), list.replace("[ ]", "[x]"));
    let left = scratch.git(&["status", "--porcelain", "--untracked-files=all"]);
    assert_eq!(left, " M TODO.md");
}

/// Whoever holds an item does so by the log alone.
#[test]
fn where_the_log_is_lost_it_tells_the_states() {
    let scratch = board();
    let token = scratch.claim("T-1", &["--agent", "Sam"]);
    let failed = ["T-1", "--token", &token, "--failed", "no disk"];
    scratch.run("tavern-report", &failed).ends(1);
    let token = scratch.claim("T-2", &["--agent", "Sam"]);
    let asked = ["T-2", "--token", &token, "--waiting", "which?"];
    scratch.run("tavern-report", &asked).ends(8);
    scratch.claim("T-3", &["--agent", "Sam"]);
    scratch.run("tavern-commit", &[]).ends(0);
    fs::remove_dir_all(scratch.work().join(".git/tavern")).expect("it is there");
    scratch.settle();
    assert_eq!(scratch.stands("T-1", "pending", 1)["reason"], "no disk");
    assert_eq!(scratch.stands("T-2", "waiting", 0)["question"], "which?");
    scratch.stands("T-3", "pending", 1);
    let log = scratch.run("tavern-log", &[]).succeeds();
    has(&log, &["the log is lost: read from main.state.yaml"]);
}

/// What was ended by a run is opened again by a command alone: an old buffer and an untick read the same.
#[test]
fn no_text_opens_again_what_a_run_has_ended() {
    let script = |id: &str| format!("  ```sh\n  echo {id} >> {id} && git add {id}\n  ```\n");
    let list = format!(
        "# Now\n\n- [ ] T-1: Alpha\n{}- [ ] T-2: Beta\n{}",
        script("a"),
        script("b")
    );
    for buffer in [
        list.replace("# Now", "# Next"),
        list.replace("[ ] T-2", "[x] T-2"),
        list.replace("[ ] T-2", "[x] T-2") + "- [ ] T-3: Gamma\n",
    ] {
        let scratch = Scratch::repository();
        scratch.write("TODO.md", &list);
        let drain = || scratch.run("tavern-drain", &["TODO.md", "--agents", "1"]);
        drain().ends(0);
        scratch.write("TODO.md", &buffer);
        drop(drain());
        has(
            &scratch.read("TODO.md"),
            &["[x] T-1: Alpha", "[x] T-2: Beta"],
        );
        assert_eq!(
            scratch.git(&["show", "tavern/integration:a"]),
            "a",
            "{buffer}"
        );
        scratch
            .run("tavern-log", &[])
            .says("items that a run has ended keep their status");
        scratch.run("tavern-release", &["T-1", "--reopen"]).ends(0);
        scratch.stands("T-1", "pending", 0);
    }
    // What a person has ticked they may untick.
    let scratch = Scratch::board("## Pending\n\n## Completed\n\n- [x] T-1: one\n");
    scratch.change(QUEUE, "[x] T-1", "[ ] T-1");
    scratch.settle();
    assert_eq!(
        scratch.queue(),
        "## Pending\n\n- [ ] T-1: one\n\n## Completed\n"
    );
    scratch.stands("T-1", "pending", 0);
}

/// Whoever moves headings in an old buffer moves nothing that was added since.
#[test]
fn what_was_added_since_stays_in_its_lane_whatever_lanes_are_moved() {
    for (board, buffer) in [
        (
            "## Completed\n\n## Dead Letter\n\n## Pending\n\n- [ ] T-1: one\n",
            "## Pending\n\n- [ ] T-1: one\n\n## Completed\n\n## Dead Letter\n",
        ),
        (
            "## Todo\n\n- [ ] T-1: one\n\n## Done\n",
            "## Backlog\n\n- [ ] T-1: one\n\n## Done\n\n## Archive\n",
        ),
    ] {
        let scratch = Scratch::board(board);
        scratch.run("tavern-add", &["two", "--id", "T-2"]).ends(0);
        scratch.write(QUEUE, buffer);
        scratch.settle();
        scratch.stands("T-2", "pending", 0);
    }
}

#[test]
fn where_the_log_is_lost_a_tick_counts_and_a_clone_takes_the_states_up() {
    let scratch = board();
    scratch.commit(&[".tavern/config.yaml", ".tavern/.gitignore"], "Settings");
    for id in ["T-1", "T-2"] {
        let token = scratch.claim(id, &["--agent", "Sam"]);
        let asked = [id, "--token", &token, "--waiting", "which?"];
        scratch.run("tavern-report", &asked).ends(8);
    }
    scratch.run("tavern-commit", &[]).ends(0);
    let clone = Scratch::empty();
    let from = scratch.work();
    clone.git(&["clone", "--quiet", &from.to_string_lossy(), "."]);
    // Whether it has the branch already or not.
    clone.git(&["branch", "--quiet", "tavern/board", "origin/tavern/board"]);
    clone.run("tavern-init", &["--quiet"]).ends(0);
    assert_eq!(clone.stands("T-1", "waiting", 0)["question"], "which?");
    scratch.change(QUEUE, "[ ] T-1", "[x] T-1");
    fs::remove_dir_all(scratch.work().join(".git/tavern")).expect("it is there");
    scratch.settle();
    assert_eq!(scratch.item("T-1")["status"], "completed");
    scratch.stands("T-2", "waiting", 0);
}

#[test]
fn what_stands_in_its_place_and_is_no_file_stays() {
    let scratch = board();
    scratch.write(".tavern/queues/main.state.yaml/mine", "mine\n");
    scratch.claim("T-1", &["--agent", "Sam"]);
    assert_eq!(
        scratch.read(".tavern/queues/main.state.yaml/mine"),
        "mine\n"
    );
}

#[test]
fn a_permission_is_taken_back() {
    let scratch = Scratch::board("## Pending\n\n- [ ] T-1: one (approve: start)\n");
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
    assert_eq!(scratch.item("T-1")["allowed"], true);
    scratch.run("tavern-undo", &["T-1"]).ends(0);
    assert_eq!(scratch.item("T-1")["allowed"], false);
}

/// Two in one second, and a title with what is no character of YAML.
#[test]
fn each_change_is_shown_at_once() {
    let scratch = Scratch::shell("- [ ] T-1: one \u{fffe}\n- [ ] T-2: two\n", "");
    for id in ["T-1", "T-2"] {
        let token = scratch.claim(id, &["--agent", "Sam"]);
        assert_eq!(states(&scratch)[id]["status"], "in_progress");
        scratch
            .run("tavern-release", &[id, "--token", &token])
            .succeeds();
        assert_eq!(states(&scratch)[id]["status"], "pending");
    }
    assert!(!scratch.read(STATES).contains('\u{fffe}'));
}

#[test]
fn what_shows_a_queue_that_is_gone_goes_with_it() {
    let scratch = board();
    scratch.add_queue("two");
    scratch
        .run("tavern-add", &["Do it", "--queue", "two", "--id", "T-9"])
        .ends(0);
    scratch.claim("T-9", &["--agent", "Sam"]);
    let [two, three] = ["two", "three"].map(|name| format!(".tavern/queues/{name}"));
    assert!(scratch.read(format!("{two}.state.yaml")).contains("T-9"));
    let text = scratch
        .read(format!("{two}.md"))
        .replace("id: two", "id: three");
    scratch.write(format!("{three}.md"), text);
    fs::remove_file(scratch.work().join(format!("{two}.md"))).expect("it is there");
    scratch.settle();
    assert!(!scratch.work().join(format!("{two}.state.yaml")).exists());
    assert!(scratch.read(format!("{three}.state.yaml")).contains("T-9"));
    scratch.stands("T-9", "in_progress", 1);
}

#[test]
fn an_agent_that_ends_commits_states_too() {
    let scratch = Scratch::board("- [ ] T-1: one (approve: start)\n");
    scratch.run("tavern-commit", &[]).ends(0);
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
    scratch
        .run("tavern-agent", &["--until-empty", "--role", "reviewer"])
        .ends(0);
    let shown = scratch.git(&["show", &format!("tavern/board:{STATES}")]);
    has(&shown, &["T-1: {status: pending, allowed: true}"]);
}

/// Nobody holds it, and it keeps its question.
#[test]
fn an_item_that_waits_is_known_without_its_id() {
    for name in ["", "X-1: "] {
        let scratch = board();
        let token = scratch.claim("T-1", &["--agent", "Sam"]);
        let asked = ["T-1", "--token", &token, "--waiting", "which?"];
        scratch.run("tavern-report", &asked).ends(8);
        scratch.change(QUEUE, "T-1: ", name);
        scratch.settle();
        assert_eq!(scratch.stands("T-1", "waiting", 0)["question"], "which?");
        scratch
            .run("tavern-log", &["T-1"])
            .says("by hand; it keeps its ID");
    }
}
