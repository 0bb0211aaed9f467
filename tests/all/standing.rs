//! What comes back to a lane stands beside the neighbours that it had.

use crate::support::{QUEUE, Scratch, has};
use crate::undo::words;

/// Lanes as people write them; `four` has no ID.
const BOARDS: [&str; 6] = [
    "## Todo\n\n- [ ] T-1: one\n  Words.\n- [ ] T-2: two\n- [ ] T-3: three\n- [ ] four\n\n## Doing\n\n## Done\n",
    "## Todo\n\n- [ ] T-1: one\n\n- [ ] T-2: two\n\n  More.\n\n- [ ] T-3: three\n\n- [ ] four\n\n## Doing\n\n## Done\n",
    "# Board\r\n## Todo\r\n- [ ] T-1: one\r\n- [ ] T-2: two\r\n- [ ] T-3: three\r\n- [ ] four\r\n## Doing\r\n- [ ] five\r\n## Done\r\n",
    "## Doing\n\n* [ ] five\n\n\n\n## Todo\n\nWords.\n\n* [ ] T-1: one\n* [ ] T-2: two\n\t* step\n* [ ] T-3: three\n* [ ] four\n\nThe end.",
    "- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n- [ ] four\n\n## Todo\n\n## Doing\n\n## Done",
    "## Doing\n\n## Todo\n\n1. [ ] T-1: one\n2. [ ] T-2: two\n3. [ ] T-3: three\n4. [ ] four",
];

fn claim(scratch: &Scratch, id: &str) {
    scratch
        .run("tavern-claim", &["--task", id, "--agent", id])
        .succeeds();
}

fn release(scratch: &Scratch, id: &str) {
    scratch.run("tavern-release", &[id, "--force"]).succeeds();
}

/// A queue whose cards are moved between its lanes.
fn live(board: &str) -> String {
    format!("---\nlive: true\n---\n{board}")
}

fn cancel(scratch: &Scratch, id: &str) {
    scratch.run("tavern-release", &[id, "--cancel"]).succeeds();
}

/// What was done last to `id` is taken back.
fn undo(scratch: &Scratch, id: &str) {
    scratch.run("tavern-undo", &[id]).succeeds();
}

const ORDERS: [[&str; 3]; 4] = [
    ["T-1", "T-2", "T-3"],
    ["T-3", "T-2", "T-1"],
    ["T-2", "T-3", "T-1"],
    ["T-1", "T-3", "T-2"],
];

#[test]
fn what_is_claimed_and_given_back_stands_beside_its_neighbours_on_a_live_board() {
    let board = live(BOARDS[0]);
    let scratch = Scratch::board(&board);
    for id in ORDERS[0] {
        claim(&scratch, id);
        assert_ne!(scratch.queue(), board);
        release(&scratch, id);
        assert_eq!(words(&scratch.queue()), words(&board));
    }
}

/// What was cancelled last is taken back first.
#[test]
fn a_held_item_is_cancelled_by_force_alone() {
    let scratch = Scratch::board("- [ ] T-1: One\n");
    scratch.claim("T-1", &["--agent", "Frodo"]);
    scratch
        .run("tavern", &["cancel", "T-1", "not wanted"])
        .ends(4)
        .says("error: `T-1` is held by Frodo\nhint: end its run and cancel it: tavern cancel T-1 --force\n");
    scratch
        .run("tavern", &["cancel", "T-1", "not wanted", "--force"])
        .ends(0)
        .says("T-1 is cancelled");
    assert!(!scratch.work().join(".git/tavern/leases/T-1.yaml").exists());
    scratch
        .run("tavern-status", &["T-1"])
        .says("cancelled")
        .says("not wanted");
}

#[test]
fn what_is_cancelled_and_taken_back_stands_beside_its_neighbours_whatever_else_was_cancelled() {
    for board in BOARDS {
        let scratch = Scratch::board(board);
        for taken in ORDERS {
            taken.iter().for_each(|id| cancel(&scratch, id));
            taken.iter().rev().for_each(|id| undo(&scratch, id));
            assert_eq!(words(&scratch.queue()), words(board), "{taken:?}");
        }
    }
}

#[test]
fn what_has_neighbours_of_one_title_comes_back_under_its_own_heading() {
    let board = "## Todo\n\n### Login\n\n- [ ] Tests\n- [ ] Docs\n\n### Cart\n\n- [ ] Tests\n- [ ] Docs\n\n## Doing\n\n## Done\n";
    for line in [5, 6, 10, 11] {
        let scratch = Scratch::board(board);
        let claimed = scratch.json("tavern-claim", &["--task", &format!("{QUEUE}:{line}")]);
        let id = claimed["id"].as_str().expect("it got one");
        release(&scratch, id);
        cancel(&scratch, id);
        undo(&scratch, id);
        let bare = scratch.queue().replace(&format!("{id}: "), "");
        assert_eq!(words(&bare), words(board), "line {line}");
    }
}

#[test]
fn the_lines_of_an_item_keep_their_line_ends_whatever_becomes_of_it() {
    let mixed = "- [ ] T-1: one\n  Words.\r\n  More.\n\n- [ ] T-2: two\r\n";
    for board in [
        format!("# Mixed\r\n\r\n{mixed}"),
        live(&format!(
            "## Todo\r\n\r\n{mixed}\n## Doing\r\n\r\n## Done\n"
        )),
    ] {
        let lines = |text: &str| {
            let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
            lines.retain(|line| !line.trim().is_empty());
            lines.sort();
            lines
        };
        let scratch = Scratch::board(&board);
        claim(&scratch, "T-1");
        release(&scratch, "T-1");
        assert_eq!(lines(&scratch.queue()), lines(&board));
        scratch.run("tavern-undo", &[]).succeeds();
        assert_eq!(lines(&scratch.queue()), lines(&board));
    }
}

#[test]
fn what_comes_back_from_a_failure_or_a_question_stands_beside_its_neighbours() {
    let board =
        live("## Todo\n\n- [ ] first\n- [ ] T-2: two\n\n## Doing\n\n## Waiting\n\n## Done\n");
    let scratch = Scratch::board(&board);
    let claimed = scratch.json("tavern-claim", &[]);
    let lease = &claimed["lease"];
    let (id, token) = (
        lease["task"].as_str().expect("it has one"),
        lease["token"].to_string(),
    );
    scratch
        .run(
            "tavern-report",
            &[id, "--token", &token, "--waiting", "red?"],
        )
        .ends(8);
    has(
        &scratch.queue(),
        &["## Todo\n\n- [ ] T-2: two\n\n## Doing\n\n## Waiting\n\n- [ ] T-"],
    );
    assert_eq!(scratch.stands(id, "waiting", 0)["question"], "red?");
    scratch.run("tavern-release", &[id]).succeeds();
    let named = board.replace("first", &format!("{id}: first"));
    assert_eq!(words(&scratch.queue()), words(&named));
    let token = scratch.claim(id, &[]);
    scratch
        .run("tavern-report", &[id, "--token", &token, "--failed", "no"])
        .ends(1);
    assert_eq!(words(&scratch.queue()), words(&named));
    assert_eq!(scratch.stands(id, "pending", 1)["reason"], "no");
    scratch.run("tavern-undo", &[]).succeeds();
    assert_eq!(words(&scratch.queue()), words(&named));
    scratch.stands(id, "pending", 0);
}

#[test]
fn what_comes_back_stands_under_its_heading_though_that_has_no_item() {
    let board = "## Todo\n\n### Login\n\n- [ ] T-1: Tests\n- [ ] T-2: Docs\n\n### Cart\n\nWords.\n\n\
                 - [ ] T-3: Tests\n- [ ] T-4: Docs\n\n## Doing\n\n## Done\n";
    let ids = ["T-1", "T-2", "T-3", "T-4"];
    let scratch = Scratch::board(board);
    for (taken, given) in [
        (&ids[..2], [0, 1].as_slice()),
        (&ids[..2], &[1, 0]),
        (&ids[2..], &[0, 1]),
        (&ids[..], &[3, 2, 1, 0]),
        (&ids[..], &[2, 0, 3, 1]),
    ] {
        taken.iter().for_each(|id| cancel(&scratch, id));
        given.iter().for_each(|at| undo(&scratch, taken[*at]));
        assert_eq!(
            words(&scratch.queue()),
            words(board),
            "{taken:?}, {given:?}"
        );
    }
}

#[test]
fn what_had_a_step_ticked_has_its_words_when_its_question_is_undone() {
    let lanes = "\n## Doing\n\n- [ ] T-5: five\n\n## Done\n";
    for list in [
        "- [ ] T-1: one\n\t- [ ] step\n\t- [ ] more\n- [ ] T-2: two\n",
        "1. [ ] T-1: one\n\t- [ ] step\n2. [ ] T-2: two\n",
        "- Web\n\t- [ ] T-1: one\n\t\t- [ ] step\n\t- [ ] T-2: two\n",
        "- Web\n  - [ ] T-1: one\n    - [ ] step\n",
    ] {
        let board = live(&format!("## Todo\n\n{list}{lanes}"));
        let scratch = Scratch::board(&board);
        let token = scratch.claim("T-1", &[]);
        scratch
            .run("tavern-report", &["T-1", "--token", &token, "--step", "1"])
            .succeeds();
        scratch
            .run(
                "tavern-report",
                &["T-1", "--token", &token, "--waiting", "red?"],
            )
            .ends(8);
        let asked = scratch.queue();
        let sorted = |text: &str| {
            let mut lines: Vec<String> = words(text).into_iter().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        scratch.run("tavern-undo", &[]).succeeds();
        assert_eq!(sorted(&scratch.queue()), sorted(&board));
        scratch.run("tavern-undo", &["--redo"]).succeeds();
        assert_eq!(sorted(&scratch.queue()), sorted(&asked));
    }
}

#[test]
fn the_id_of_a_claim_goes_with_it_and_what_was_typed_meanwhile_stays() {
    let board = "## Todo\n\n- [ ] one\n  Words.\n- [ ] two\n\n## Doing\n\n## Done\n";
    let scratch = Scratch::board(board);
    let claimed = scratch.json("tavern-claim", &[]);
    let id = claimed["lease"]["task"].as_str().expect("it has one");
    scratch.change(QUEUE, "  Words.", "  Words, and more.");
    release(&scratch, id);
    scratch.run("tavern-undo", &[id]).succeeds();
    assert_eq!(scratch.queue(), board.replace("Words.", "Words, and more."));
    scratch.run("tavern-undo", &["--redo"]).succeeds();
    has(
        &scratch.queue(),
        &[&format!("- [ ] {id}: one\n  Words, and more.\n- [ ] two")],
    );
    assert_eq!(scratch.stands(id, "pending", 0)["returns"], 1);
    // What was typed may be taken back, too.
    for _ in 0..2 {
        scratch.run("tavern-undo", &[]).succeeds();
    }
    assert_eq!(scratch.queue(), board);
}

#[test]
fn who_was_moved_by_hand_comes_back_to_there() {
    let board = live(BOARDS[0]);
    let scratch = Scratch::board(&board);
    let (first, last) = ("- [ ] T-1: one\n  Words.\n", "- [ ] four\n");
    claim(&scratch, "T-1");
    release(&scratch, "T-1");
    let moved = board
        .replace(first, "")
        .replace(last, &format!("{last}{first}"));
    scratch.write(QUEUE, &moved);
    claim(&scratch, "T-1");
    // Who stood behind it is elsewhere by then.
    scratch.change(QUEUE, "- [ ] T-2: two\n", "");
    release(&scratch, "T-1");
    assert_eq!(scratch.queue(), moved.replace("- [ ] T-2: two\n", ""));
}

#[test]
fn what_lost_a_race_to_merge_keeps_its_turn() {
    let item = |id: &str| format!("- [ ] {id}: Note it\n  ```sh\n  echo {id} >> same.txt\n  ```\n");
    let scratch = Scratch::shell(&item("T-1"), "");
    let lanes = "\n## In Progress\n\n## In Review\n\n## Completed\n";
    let other = format!(
        "---\nid: other\n---\n## Pending\n\n{}- [ ] T-3: Later\n{lanes}",
        item("T-2")
    );
    scratch.write(".tavern/queues/other.md", &other);
    let token = scratch.claim("T-2", &["--agent", "Sam"]);
    scratch
        .run("tavern-spawn", &["T-2", "--token", &token])
        .succeeds();
    scratch
        .run("tavern-report", &["T-2", "--token", &token])
        .succeeds();
    scratch
        .run("tavern-agent", &["--until-empty", "--queue", "main"])
        .succeeds();
    scratch
        .run("tavern-merge", &[])
        .ends(1)
        .says("T-2 sent back");
    let queue = scratch.read(".tavern/queues/other.md");
    let bare: String = queue
        .split_inclusive('\n')
        .map(|line| {
            line.split(" (")
                .next()
                .unwrap_or(line)
                .trim_end()
                .to_owned()
                + "\n"
        })
        .collect();
    assert_eq!(bare, other);
}

#[test]
fn an_undone_addition_leaves_the_bytes_but_for_the_last_line_end() {
    for board in BOARDS.iter().chain(&[
        "- [ ] a\n- [ ] b",
        "# Words",
        "- [ ] a\n\n- [ ] b\n\nWords.\n",
        "1. [ ] a\n\n\n",
    ]) {
        let scratch = Scratch::board(board);
        scratch
            .run("tavern-add", &["New", "-m", "Words."])
            .succeeds();
        scratch.run("tavern-undo", &[]).succeeds();
        assert_eq!(scratch.queue().trim_end(), board.trim_end());
    }
}
