//! Who comes back to a lane stands where they stood, and the file has the bytes that it had.

use crate::support::{QUEUE, Scratch, has};

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

/// Without what tells that items were given back.
fn bare(text: &str) -> String {
    text.replace(" (reason: given back)", "")
}

#[test]
fn what_is_claimed_and_given_back_stands_where_it_stood_whatever_else_was_claimed() {
    let orders = [
        ["T-1", "T-2", "T-3"],
        ["T-3", "T-2", "T-1"],
        ["T-2", "T-3", "T-1"],
        ["T-1", "T-3", "T-2"],
    ];
    for board in BOARDS {
        let scratch = Scratch::board(board);
        for id in orders[0] {
            claim(&scratch, id);
            assert_ne!(bare(&scratch.queue()), board);
            release(&scratch, id);
            assert_eq!(bare(&scratch.queue()), board);
            scratch.run("tavern-undo", &[]).succeeds();
            assert_eq!(scratch.queue(), board);
        }
        for (taken, given) in orders
            .iter()
            .flat_map(|taken| orders.iter().map(move |given| (taken, given)))
        {
            taken.iter().for_each(|id| claim(&scratch, id));
            given.iter().for_each(|id| release(&scratch, id));
            assert_eq!(bare(&scratch.queue()), board, "{taken:?}, {given:?}");
            scratch.begin(board);
        }
    }
}

#[test]
fn what_has_neighbours_of_one_title_comes_back_under_its_own_heading() {
    let lanes = "\n## Doing\n\n## Done\n";
    let lists = [
        "### Login\n\n- [ ] Tests\n- [ ] Docs\n\n### Cart\n\n- [ ] Tests\n- [ ] Docs\n",
        "- Login\n  - [ ] Tests\n  - [ ] Docs\n- Cart\n  - [ ] Tests\n  - [ ] Docs\n",
        "### Shop\n\n#### Web\n\n- [ ] Tests\n- [ ] Docs\n\n### Cart\n\n#### Web\n\n- [ ] Tests\n\n> Words.\n\n- [ ] Docs\n",
    ];
    let scratch = Scratch::board("");
    for board in lists.map(|list| format!("## Todo\n\n{list}{lanes}")) {
        let lines: Vec<usize> = (1..)
            .zip(board.lines())
            .filter(|(_, line)| line.contains("[ ]"))
            .map(|it| it.0)
            .collect();
        let claim =
            |line: usize| scratch.json("tavern-claim", &["--task", &format!("{QUEUE}:{line}")]);
        let id = |line: usize| claim(line)["id"].as_str().expect("it got one").to_owned();
        let bare = |ids: &[String]| {
            ids.iter().fold(bare(&scratch.queue()), |text, id| {
                text.replace(&format!("{id}: "), "")
            })
        };
        for line in &lines {
            scratch.begin(&board);
            let ids = [id(*line)];
            release(&scratch, &ids[0]);
            assert_eq!(bare(&ids), board, "line {line}");
        }
        // One that stands above it, and goes and comes meanwhile.
        for (first, second) in [
            (lines[2], lines[0]),
            (lines[3], lines[1]),
            (lines[3], lines[0]),
        ] {
            scratch.begin(&board);
            let ids = [id(first), id(second)];
            ids.iter().for_each(|id| release(&scratch, id));
            assert_eq!(bare(&ids), board, "lines {first} and {second}");
        }
    }
}

#[test]
fn the_lines_of_an_item_keep_their_line_ends_whatever_becomes_of_it() {
    let mixed = "- [ ] T-1: one\n  Words.\r\n  More.\n\n- [ ] T-2: two\r\n";
    for board in [
        format!("# Mixed\r\n\r\n{mixed}"),
        format!("## Todo\r\n\r\n{mixed}\n## Doing\r\n\r\n## Done\n"),
    ] {
        let scratch = Scratch::board(&board);
        claim(&scratch, "T-1");
        release(&scratch, "T-1");
        assert_eq!(bare(&scratch.queue()), board);
        scratch.run("tavern-undo", &[]).succeeds();
        assert_eq!(scratch.queue(), board);
    }
}

#[test]
fn what_comes_back_from_a_failure_or_a_question_stands_where_it_stood() {
    let board = "## Todo\n\n- [ ] first\n- [ ] T-2: two\n\n## Doing\n\n## Waiting\n\n## Done\n";
    let scratch = Scratch::board(board);
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
    scratch.run("tavern-release", &[id]).succeeds();
    let named = board.replace("first", &format!("{id}: first"));
    assert_eq!(scratch.queue(), named);
    let token = scratch.claim(id, &[]);
    scratch
        .run("tavern-report", &[id, "--token", &token, "--failed", "no"])
        .ends(1);
    let (head, rest) = (
        format!("## Todo\n\n- [ ] {id}: first (reason: no"),
        ")\n- [ ] T-2: two\n\n## Doing\n\n## Waiting\n",
    );
    has(&scratch.queue(), &[&head, rest]);
    scratch.stands(id, "pending", 1);
    scratch.run("tavern-undo", &[]).succeeds();
    assert_eq!(scratch.queue(), named);
    scratch.stands(id, "pending", 0);
}

#[test]
fn what_comes_back_stands_under_its_heading_though_that_has_no_item_or_another_name() {
    let board = "## Todo\n\n- [ ] T-0: Plan\n\n### Login\n\n- [ ] T-1: Tests\n- [ ] T-2: Docs\n\n### Cart\n\nWords.\n\n\
                 - [ ] T-3: Tests\n- [ ] T-4: Docs\n\n## Doing\n\n## Done\n";
    let ids = ["T-0", "T-1", "T-2", "T-3", "T-4"];
    let scratch = Scratch::board(board);
    for (taken, given) in [
        (&ids[1..3], [0, 1].as_slice()),
        (&ids[1..3], &[1, 0]),
        (&ids[3..], &[0, 1]),
        (&ids[..], &[4, 3, 2, 1, 0]),
        (&ids[..], &[2, 0, 3, 1, 4]),
    ] {
        taken.iter().for_each(|id| claim(&scratch, id));
        given.iter().for_each(|at| release(&scratch, taken[*at]));
        assert_eq!(bare(&scratch.queue()), board, "{taken:?}, {given:?}");
        scratch.begin(board);
    }
    let nameless = ids.iter().fold(board.to_owned(), |text, id| {
        text.replace(&format!("{id}: "), "")
    });
    scratch.begin(&nameless);
    let id = scratch.json("tavern-claim", &["--task", &format!("{QUEUE}:7")])["id"]
        .as_str()
        .map(str::to_owned);
    let id = id.expect("it got one");
    scratch.change(QUEUE, "### Login", "### Sign-in");
    release(&scratch, &id);
    let back = bare(&scratch.queue()).replace(&format!("{id}: "), "");
    assert_eq!(back, nameless.replace("### Login", "### Sign-in"));
}

#[test]
fn a_question_and_its_answer_leave_blank_lines_as_they_are() {
    for lanes in ["## Doing\n\n\n## Done\n", "## Doing\n## Done\n"] {
        let board = format!("## Todo\n\n- [ ] T-1: one\n\n{lanes}");
        let scratch = Scratch::board(&board);
        let token = scratch.claim("T-1", &[]);
        scratch
            .run(
                "tavern-report",
                &["T-1", "--token", &token, "--waiting", "red?"],
            )
            .ends(8);
        scratch
            .run("tavern-release", &["T-1", "-m", "blue"])
            .succeeds();
        assert_eq!(scratch.queue().replace(" (reason: blue)", ""), board);
    }
}

#[test]
fn what_had_a_step_ticked_comes_back_byte_for_byte_when_its_question_is_undone() {
    let lanes = "\n## Doing\n\n- [ ] T-5: five\n\n## Done\n";
    for list in [
        "- [ ] T-1: one\n\t- [ ] step\n\t- [ ] more\n- [ ] T-2: two\n",
        "1. [ ] T-1: one\n\t- [ ] step\n2. [ ] T-2: two\n",
        "- Web\n\t- [ ] T-1: one\n\t\t- [ ] step\n\t- [ ] T-2: two\n",
        "- Web\n  - [ ] T-1: one\n    - [ ] step\n",
    ] {
        let board = format!("## Todo\n\n{list}{lanes}");
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
        scratch.run("tavern-undo", &[]).succeeds();
        assert_eq!(scratch.queue(), board);
        scratch.run("tavern-undo", &["--redo"]).succeeds();
        assert_eq!(scratch.queue(), asked);
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
        &[&format!(
            "- [ ] {id}: one (reason: given back)\n  Words, and more.\n- [ ] two"
        )],
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
    let scratch = Scratch::board(BOARDS[0]);
    let (first, last) = ("- [ ] T-1: one\n  Words.\n", "- [ ] four\n");
    claim(&scratch, "T-1");
    release(&scratch, "T-1");
    let moved = BOARDS[0]
        .replace(first, "")
        .replace(last, &format!("{last}{first}"));
    scratch.write(QUEUE, &moved);
    claim(&scratch, "T-1");
    // Who stood behind it is elsewhere by then.
    scratch.change(QUEUE, "- [ ] T-2: two\n", "");
    release(&scratch, "T-1");
    assert_eq!(
        bare(&scratch.queue()),
        moved.replace("- [ ] T-2: two\n", "")
    );
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
fn an_undone_addition_leaves_the_very_bytes() {
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
        assert_eq!(scratch.queue(), *board);
    }
}
