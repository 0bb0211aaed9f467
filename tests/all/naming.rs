//! Items that are named by the line at which they start.

use crate::support::{Scratch, has};

const LIST: &str = "# List\n\n- [ ] One\n  - [ ] a step\n- [ ] Two\n- [ ] Two\n- [ ] T-4: Four\n";

/// With a list beside the board.
fn listed() -> Scratch {
    let scratch = Scratch::initialized();
    scratch.write("TODO.md", LIST);
    scratch.write("sub/other.md", "- [ ] Elsewhere\n");
    scratch
}

#[test]
fn an_item_without_an_id_is_claimed_by_its_line() {
    let scratch = listed();
    assert_eq!(
        scratch
            .run("tavern-claim", &["-n", "--task", "TODO.md:6"])
            .succeeds(),
        "TODO.md:6 Two\n"
    );
    let taken = scratch.json(
        "tavern-claim",
        &["--task", "./TODO.md:6", "--agent", "Frodo"],
    );
    let id = taken["id"].as_str().expect("it got an ID").to_owned();
    let text = scratch.read("TODO.md");
    has(
        &text,
        &[
            "- [ ] One\n  - [ ] a step\n- [ ] Two\n",
            &format!("{id}: Two"),
            "- [ ] T-4: Four\n",
        ],
    );
    // It has an ID from now on, and that is what its line means.
    let again = scratch
        .run("tavern-claim", &["--task", "TODO.md:6"])
        .ends(3);
    again.says(&format!("error: `{id}` is held by Frodo\n"));
    let root = scratch.work().join("TODO.md");
    for name in [
        format!("{}:6", root.display()),
        "../TODO.md:6".to_owned(),
        "TODO.md:6".to_owned(),
    ] {
        let shown = scratch
            .program("tavern-status")
            .args(&[&name])
            .within(&scratch.work().join("sub"))
            .run();
        assert!(
            shown.succeeds().starts_with(&format!("{id} Two\n")),
            "{name}"
        );
    }
    for (program, more) in [("tavern-log", None), ("tavern-release", Some("--force"))] {
        let words: Vec<&str> = Some("TODO.md:6").into_iter().chain(more).collect();
        assert!(
            scratch.run(program, &words).succeeds().contains(&id),
            "{program}"
        );
    }
}

#[test]
fn an_item_without_an_id_is_shown_and_edited_by_its_line() {
    let scratch = listed();
    let shown = scratch.run("tavern-status", &["TODO.md:3"]).succeeds();
    assert!(
        shown.starts_with("TODO.md:3 One\n  status      pending\n  queue       TODO.md, line 3\n"),
        "{shown}"
    );
    let list = scratch
        .run("tavern-status", &["--items", "TODO.md"])
        .succeeds();
    has(&list, &["  TODO.md:3 pending ", "  T-4       pending "]);
    let record = scratch.json("tavern-status", &["TODO.md:3"]);
    assert_eq!(
        (&record["id"], &record["line"]),
        (&serde_json::Value::Null, &3.into())
    );
    let editor = scratch.executable("../editor", "#!/bin/sh\nsed -i 's/Two/Second/' \"$1\"\n");
    scratch
        .program("tavern-edit")
        .args(&["TODO.md:6"])
        .variable("EDITOR", editor)
        .run()
        .succeeds();
    assert_eq!(
        scratch.read("TODO.md"),
        LIST.replace("- [ ] Two\n- [ ] Two", "- [ ] Two\n- [ ] Second")
    );
}

#[test]
fn where_no_item_starts_the_nearest_is_named_and_who_needs_an_id_says_so() {
    let scratch = listed();
    for (line, exit, told) in [
        (
            "tavern-status TODO.md:4",
            2,
            "error: no item starts at line 4 of TODO.md\nhint: one starts at line 3: One\n",
        ),
        (
            "tavern-claim --task TODO.md:99",
            2,
            "hint: one starts at line 7: Four\n",
        ),
        (
            "tavern-edit TODO.md:1",
            2,
            "hint: one starts at line 3: One\n",
        ),
        (
            "tavern-status main:3",
            2,
            "error: no item starts at line 3 of main\nhint: list the items: tavern list main",
        ),
        ("tavern-status nope.md:3", 2, "no queue or file `nope.md`"),
        (
            "tavern-status TODO.md:0",
            2,
            "`TODO.md:0` is neither an item nor a queue",
        ),
        (
            "tavern-claim --task x/../y",
            2,
            "or name its line, such as TODO.md:12",
        ),
    ] {
        scratch.line(line).run().ends(exit).says(told);
    }
    for line in [
        "release",
        "renew",
        "report",
        "diff",
        "log",
        "undo",
        "merge",
        "tell",
        "runs list",
        "runs show",
    ] {
        let told = "error: the item at `TODO.md:3` has no ID, as it was never claimed\nhint: edit its line, where `[-]` cancels it: tavern edit TODO.md:3";
        scratch
            .line(&format!("tavern-{line} TODO.md:3"))
            .run()
            .ends(2)
            .says(told);
    }
}

#[test]
fn an_item_is_named_by_its_line_wherever_an_id_is_taken() {
    let scratch = listed();
    let five = scratch
        .run(
            "tavern-add",
            &["-n", "--queue", "TODO.md", "--after", "TODO.md:7", "Five"],
        )
        .succeeds();
    assert_eq!(five, "- [ ] Five (after: T-4)\n");
    // The board knows nothing of the file before.
    assert_eq!(
        scratch
            .run("tavern-add", &["--parent=TODO.md:7:3", "Six"])
            .succeeds(),
        "T-4.1\n"
    );
    let none = "error: the item at `TODO.md:3` has no ID, as it was never claimed\nhint: edit its line, where `[-]` cancels it: tavern edit TODO.md:3";
    for line in [
        "tavern-add --after TODO.md:3 Five",
        "tavern-add --parent=TODO.md:3 Five",
        "tavern-agent -n --chat TODO.md:3",
    ] {
        scratch.line(line).run().ends(2).says(none);
    }
    // As editors and grep print it.
    for (name, line) in [
        ("TODO.md:6:7", "TODO.md:6 Two"),
        ("./TODO.md:3:1", "TODO.md:3 One"),
    ] {
        assert!(
            scratch
                .run("tavern-claim", &["-n", "--task", name])
                .succeeds()
                .starts_with(line),
            "{name}"
        );
    }
    scratch
        .run("tavern-claim", &["-n", "TODO.md:3"])
        .ends(0)
        .says("TODO.md:3 One");
    let told = "error: `TODO.md:6` is in no queue that --queue names\nhint: leave --queue out\n";
    scratch
        .run("tavern-claim", &["--queue", "main", "--task", "TODO.md:6"])
        .ends(2)
        .says(told);
    scratch
        .run(
            "tavern-claim",
            &["-n", "--queue", "TODO.md", "--task", "TODO.md:6"],
        )
        .ends(0);
    // What has ended is not to be taken.
    scratch.write(
        "TODO.md",
        scratch.read("TODO.md").replace("[ ] One", "[x] One"),
    );
    let again = "to redo it, write `[ ]` there: tavern edit TODO.md";
    let told = format!("error: `TODO.md:3` can't be taken: it is completed\nhint: {again}\n");
    scratch
        .run("tavern-claim", &["--task", "TODO.md:3"])
        .ends(3)
        .says(&told);
    scratch
        .run("tavern-release", &["TODO.md:3", "--reopen"])
        .ends(2)
        .says(&format!("hint: it is completed; {again}:3; or"));
}

/// Also where the claim was the first that Tavern saw of the list.
#[test]
fn an_old_text_that_is_saved_over_a_claim_gives_the_item_to_nobody_else() {
    for first in [&["--task", "TODO.md:3"][..], &["--queue", "TODO.md"]] {
        let scratch = listed();
        let taken = scratch.json("tavern-claim", &[first, &["--agent", "Frodo"]].concat());
        scratch.write("TODO.md", LIST);
        let other = scratch.json("tavern-claim", &["--queue", "TODO.md", "--agent", "Sam"]);
        assert_eq!(
            (&taken["title"], &other["title"]),
            (&"One".into(), &"Two".into())
        );
        let id = taken["id"].as_str().expect("it got an ID");
        has(&scratch.read("TODO.md"), &[&format!("{id}: One\n")]);
        assert_eq!(scratch.stands(id, "in_progress", 1)["agent"], "Frodo");
        let log = scratch.run("tavern-log", &[]).succeeds();
        assert!(!log.contains("by hand"), "{log}");
    }
}

#[test]
fn an_item_goes_by_the_number_at_the_start_of_its_title() {
    let scratch = Scratch::initialized();
    let item = |title: &str| format!("- [ ] {title}\n\n  ```sh\n  echo 1 >> done.txt\n  ```\n");
    let told = ["depends on T012, T013", "blocked by T012", "requires US-12"];
    let rest = told.map(|words| item(&format!("Told ({words})"))).concat();
    let first = [
        item("T014 [US1] Next (after: T012)"),
        item("T012 [P] One"),
        item("T013 Two"),
        item("US-12 Three"),
    ];
    // What two go by names neither.
    let twice = [
        item("T020 a"),
        item("T020 b"),
        item("Unclear (after: T020)"),
    ]
    .concat();
    scratch.write(
        "tasks.md",
        [&first.concat(), &rest, &twice]
            .map(String::as_str)
            .concat(),
    );
    let check = scratch.run("tavern-check", &["tasks.md"]).ends(5);
    check
        .says("depends")
        .says("blocked by")
        .says("requires")
        .says("there is no item `T020` to wait for, or more than one");
    let drained = scratch
        .run("tavern-drain", &["tasks.md"])
        .ends(5)
        .says("6 of 10 completed, 4 left");
    drained.says("claimed: T014 [US1] Next\n");
    let text = scratch.read("tasks.md");
    for words in told {
        assert!(text.contains(&format!("- [ ] Told ({words})\n")), "{text}");
    }
}
