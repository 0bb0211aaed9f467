//! What an item waits for, and what else guards it, in the words of people: read as meant, or told, and its item left; prose is words.

use crate::lists::{drain, item, waits, with_list, worked};
use crate::support::{Ran, Scratch};

const SCRIPT: &str = "  ```sh\n  echo x >$TAVERN_TASK\n  ```\n";

/// Items of many names: by their IDs, numbers, titles and headings.
fn others() -> String {
    [
        "A-1: One",
        "A-2: Two words",
        "1.1 Three",
        "1.2. Four",
        "[T-1] Five",
        "#7 Six",
        "T012 Seven",
        "Set up CI / CD",
    ]
    .map(|title| format!("- [ ] {title}\n{SCRIPT}"))
    .concat()
}

/// That the item with this first line and these lines below it waits for the items with these titles, also where it is read by itself.
fn assert_waits(line: &str, below: &str, needed: &[&str]) {
    let text = format!("- [ ] {line}\n{below}{SCRIPT}\n{}", others());
    let scratch = with_list(&text);
    let check = scratch.run("tavern-check", &["TODO.md"]);
    let title = line.split(" (").next().unwrap_or(line);
    let known = ["A-1", "A-2", "Three", "Four", "Five", "Six", "Seven", "CI"];
    let words = waits(&scratch, line) + &waits(&scratch, title);
    for name in known {
        let is_needed = needed.contains(&name);
        assert_eq!(
            words.contains(name),
            is_needed,
            "{line}\n{below}{name}: {words} {check}"
        );
    }
    check.ends(0);
    let claim = scratch.run("tavern-claim", &["--task", "TODO.md:1"]);
    claim.ends(3).says(needed[0]);
}

/// That `check` calls a key of the list misplaced.
fn is_told(scratch: &Scratch) -> Ran {
    let check = scratch.run("tavern-check", &["TODO.md"]).ends(5);
    check.says("is not read here")
}

#[test]
fn names_are_read_among_all_that_people_put_between_them() {
    for (value, needed) in [
        ("A-1.", &["A-1"][..]),
        ("A-1, and A-2.", &["A-1", "A-2"]),
        ("A-1 and A-2", &["A-1", "A-2"]),
        ("A-1 A-2", &["A-1", "A-2"]),
        ("A-1; A-2", &["A-1", "A-2"]),
        ("A-1/A-2", &["A-1", "A-2"]),
        ("A-1 / A-2", &["A-1", "A-2"]),
        ("A-1 | A-2: Two words", &["A-1", "A-2"]),
        ("A-1 & A-2", &["A-1", "A-2"]),
        ("A-1 + A-2", &["A-1", "A-2"]),
        ("A-1, then A-2", &["A-1", "A-2"]),
        ("A-1 -> A-2", &["A-1", "A-2"]),
        ("both A-1 and A-2", &["A-1", "A-2"]),
        ("A-1 (for x)", &["A-1"]),
        ("A-1 (for x, y), A-2 (see 3)", &["A-1", "A-2"]),
        ("A-1: One", &["A-1"]),
        ("A-1 (One)", &["A-1"]),
        ("(A-1, A-2)", &["A-1", "A-2"]),
        ("[A-1, A-2]", &["A-1", "A-2"]),
        ("[\"A-1\", 'A-2']", &["A-1", "A-2"]),
        ("**A-1**, `A-2`", &["A-1", "A-2"]),
        ("_A-1_ and *A-2*.", &["A-1", "A-2"]),
        ("[A-1](#a-1)", &["A-1"]),
        ("task A-1", &["A-1"]),
        ("Two words and 1.1", &["A-2", "Three"]),
        ("1.1", &["Three"]),
        ("1.1, 1.2.", &["Three", "Four"]),
        ("#7", &["Six"]),
        ("T-1 & T012", &["Five", "Seven"]),
        ("Set up CI / CD, A-1", &["CI", "A-1"]),
        ("A-1,\n  A-2", &["A-1", "A-2"]),
        ("A-1\n  and A-2", &["A-1", "A-2"]),
        ("[A-1,\n    A-2]", &["A-1", "A-2"]),
    ] {
        for name in ["Dependencies", "Depends on"] {
            assert_waits("Last", &format!("  {name}: {value}\n"), needed);
        }
    }
}

#[test]
fn a_line_that_says_what_is_waited_for_is_known_by_its_name() {
    for below in [
        "  **Dependencies**: A-1\n",
        "  - **Depends on:** A-1\n",
        "  - **Dependencies**\n    - A-1\n",
        "  - **Dependencies**:\n    - A-1\n",
        "  - Dependencies:\n    1. A-1\n",
        "  Dependencies\n  - A-1 (for x)\n",
        "  *Depends on*: A-1\n",
        "  _depends_on_: A-1\n",
        "  `depends_on`: A-1\n",
        "  after = A-1\n",
        "  AFTER: A-1\n",
        "  depends_on: [A-1]\n",
        "  depends_on:\n    - A-1\n",
        "  depends-on: A-1\n",
        "  dependsOn: A-1\n",
        "  Its colour is\n  depends_on: A-1\n",
        "  Waiting for: A-1\n",
        "  Prerequisite: A-1\n",
        "  Depends on A-1.\n",
        "  - **Depends on** A-1 (for x)\n",
        "  Blocked by A-1\n",
        "  - Needs A-1\n",
        "  ```\n  x\n  ```\n  after: A-1\n",
        "  1. step\n  after：A-1\n",
        "  ### Dependencies\n  - A-1\n",
        "  Dependencies:\n  A-1\n",
        "  Blockers: “A-1”\n",
        "  Blocked by: [A-1](https://x.y/A-2)\n",
        "  - x\n    - y\n\n        Depends on: A-1\n",
        "  x\n      Depends on: A-1\n",
        "  ⛔ Blocked by: A-1\n",
        "  - 🔗 Depends on: A-1\n",
        "  **⛔ Blocked by:** A-1\n",
        "  ↳ depends on: A-1\n",
        "  – depends on: A-1\n",
        "  -> after: A-1\n",
        "  Priority: high | Depends on: A-1 | Effort: 2h\n",
        "  **Priority**: high · **Depends on**: A-1\n",
        "  - Effort: 2h • Depends on: A-1 • Blocks: the release\n",
        "  `depends_on: A-1`\n",
        "  | Depends on: A-1 | Effort: 2h |\n",
    ] {
        assert_waits("Last", below, &["A-1"]);
    }
    // So are the names in its keys.
    for line in [
        "Last (after: A-1 and T012)",
        "Last (after: A-1 & T012.)",
        "Last (after: [\"T012\", A-1])",
    ] {
        assert_waits(line, "", &["A-1", "Seven"]);
    }
}

#[test]
fn what_is_to_come_before_another_is_waited_for_by_that() {
    for (line, below) in [
        ("B-1: Go (before: A-2)", ""),
        ("B-1: Go [blocks A-2] now", ""),
        ("B-1: Go (priority: 1, before: A-2)", ""),
        ("B-1: Go", "  Blocks: A-2\n"),
        ("B-1: Go", "  - **Blocks**: `A-2` (for x)\n"),
        ("B-1: Go", "  Before:\n  - Build\n"),
        ("Go", "  blocks: [A-2]\n"),
    ] {
        let text = format!("- [ ] A-2: Build\n{SCRIPT}- [ ] {line}\n{below}{SCRIPT}");
        let scratch = with_list(&text);
        let claim = scratch.run("tavern-claim", &["--task", "TODO.md:1"]);
        claim.ends(3).says("it waits for");
        let check = scratch.run("tavern-check", &["TODO.md"]);
        check.ends(0);
        drain(&scratch).ends(0).says("2 of 2 completed");
    }
    // What is named there and is no item stops who says so; prose does not.
    for (below, code) in [
        ("  Blocks: A-2, A-9\n", 5),
        ("  Blocks: A-9\n", 5),
        ("  Blocks: the release\n", 0),
        ("  Before: 3 s\n", 0),
    ] {
        let scratch = with_list(&format!(
            "- [ ] B-1: Go\n{below}{SCRIPT}- [ ] A-2: Build\n{SCRIPT}"
        ));
        scratch.run("tavern-check", &["TODO.md"]).ends(code);
    }
}

#[test]
fn a_line_that_is_meant_so_and_names_what_is_no_item_stops_its_item_and_prose_does_not() {
    for (line, told) in [
        ("Dependencies: A-1, A-9", "A-9"),
        ("Dependencies: A-1 or A-2", "or A-2"),
        ("Dependencies: A-1 for x", "for x"),
        ("After: A-9", "A-9"),
        ("After: a-1", "a-1"),
        ("Requires: 1.9", "1.9"),
        ("Requires: #9", "#9"),
        ("Requires: T099", "T099"),
        ("Dependencies:\n  - A-1\n  - Python", "Python"),
        ("Depends on: A-1..A-2", "A-1..A-2"),
        ("Depends on: [A-1, Nine]", "Nine"),
        ("Prerequisites: completion of A-1", "completion of A-1"),
        ("Dependencies: after completing A-1", "after completing A-1"),
        ("Requires: the image of A-1", "the image of A-1"),
        ("Requires: the image of A-9", "the image of A-9"),
        ("Dependencies: T012 must be finished", "must be finished"),
        ("Prerequisites: completion of T012", "completion of T012"),
        ("After: T012 is merged", "is merged"),
        ("Dependencies: Phase 1 complete", "complete"),
        ("Dependencies: all of Phase 1", "all of Phase 1"),
    ] {
        let others = others() + "## Phase 1\n\n" + &item("Vite");
        let scratch = with_list(&format!("- [ ] Last\n  {line}\n{SCRIPT}\n{others}"));
        let check = scratch.run("tavern-check", &["TODO.md"]).ends(5);
        check.says(&format!("there is no item `{told}`"));
        assert!(!worked(&scratch).contains(&"Last".to_owned()), "{line}");
    }
    for line in [
        "Requires: Python 3",
        "Requires: Node, 2 cores and time",
        "After: he sees the page",
        "After: 7 PM",
        "Dependencies: none.",
        "Dependencies: serde (1.0), tokio",
        "Depends on the weather.",
        "Needs two words about it",
        "After the release A-1 is old.",
        "Prerequisites:\n  - Python\n  - time",
        "Before: 3 s\n  After: 1 s",
        "Blocked: Bob is ill",
        "Requires: the plugin of Vite",
        "| Task | Depends on | Effort |\n  |---|---|---|\n  | x | y | z |",
        "| Depends on |\n  |---|\n  | x |",
        "x\n\n      Depends on: A-1\n\n      After: A-2",
        "- x\n\n        Depends on: A-1\n        After: A-2",
        "Requires: Python 1.1 of the T series",
    ] {
        let others = others() + &item("Vite");
        let scratch = with_list(&format!("- [ ] Last\n  {line}\n{SCRIPT}\n{others}"));
        scratch.run("tavern-check", &["TODO.md"]).ends(0);
        assert!(worked(&scratch).contains(&"Last".to_owned()), "{line}");
    }
}

#[test]
fn what_is_stated_right_below_an_item_and_is_not_indented_as_its_words_stops_it() {
    for below in [
        "Depends on: A-1\n",
        " **Depends on**: A-1\n",
        "- Depends on: A-1\n",
        "Effort: 2h\nDependencies: A-1\n",
        "Dependencies:\n- A-1\n",
        "Blocks: A-1\n",
        "done_when: make\n",
        "Depends on: A-1\n# More\n",
    ] {
        let scratch = with_list(&format!("- [ ] Last\n{SCRIPT}{below}\n{}", others()));
        is_told(&scratch);
        assert!(!worked(&scratch).contains(&"Last".to_owned()), "{below}");
        let claim = scratch.run("tavern-claim", &["--task", "TODO.md:1"]);
        claim.ends(3);
    }
    for below in [
        "\nDepends on: A-1\n",
        "Requires: Python 3\n",
        "# Dependencies\n",
        "> Depends on: A-1\n",
        "- Notes\n  Depends on: A-1\n",
        "- [x] Done\n  Depends on: A-1\n",
    ] {
        let scratch = with_list(&format!("- [ ] Last\n{SCRIPT}{below}\n{}", others()));
        scratch.run("tavern-check", &["TODO.md"]).ends(0);
        assert!(worked(&scratch).contains(&"Last".to_owned()), "{below}");
    }
}

#[test]
fn a_command_in_a_code_span_is_run_as_it_stands_there() {
    for keys in ["(done_when: `ls f1`)", "(done_when: [`ls f1`, test -e f1])"] {
        let scratch = with_list(&format!(
            "- [ ] Last {keys}\n  ```sh\n  echo x > f1\n  ```\n"
        ));
        drain(&scratch).ends(0).says("1 of 1 completed");
    }
}

#[test]
fn a_line_that_names_nothing_is_told_where_it_stands() {
    let scratch = with_list(&format!("- [ ] Last\n  x\n  **Blocked by**:\n{SCRIPT}"));
    let check = scratch.run("tavern-check", &["TODO.md"]).ends(5);
    check
        .says("TODO.md:3:")
        .says("`Blocked by` names no item to wait for");
}

#[test]
fn what_names_an_item_in_brackets_of_a_title_is_not_worked_too_early() {
    for line in [
        "Last (depends on: #7)",
        "Last (dependencies: A-1)",
        "Last [after: T-1]",
        "Last [depends: T-1]",
        "Last (requires A-1 and x)",
        "Last (depends on A-9)",
        "Last (after: A-9) now",
        "Last after: T-1",
        "Last | after: T-1",
        "Last, depends on: T-1",
        "Last - done_when: false",
        "Last not_before: 2099-01-01",
        "Last max_attempts: 1",
        "Last (done_when false)",
        "Last (max_attempts 1)",
    ] {
        is_told(&with_list(&format!("- [ ] {line}\n{SCRIPT}\n{}", others())));
    }
    for line in [
        "Last (requires UTF-8)",
        "Last (after: 7 days of rest)",
        "Last (depends on the weather)",
        "Last (needs 2 cores)",
        "Last after: the launch",
        "Read `done_when: x`",
        "Call retry(a, max_attempts: 3)",
        "Blocker: the page",
    ] {
        let scratch = with_list(&format!("- [ ] {line}\n{SCRIPT}\n{}", others()));
        scratch.run("tavern-check", &["TODO.md"]).ends(0);
        assert!(worked(&scratch).contains(&line.to_owned()), "{line}");
    }
}

#[test]
fn a_guard_on_a_line_of_its_own_is_told_and_not_worked_where_it_can_be_no_prose() {
    for below in [
        "done_when: make",
        "- done_when: make",
        "**done_when**: make",
        "`done_when`: make",
        "done-when: make",
        "doneWhen = make",
        "DONE_WHEN: make",
        "Done when: `make`",
        "done_when:\n  - make\n  - make x",
        "Approve: yes",
        "approve: true",
        "- **Approve**: merge",
        "approve: [start, merge]",
        "Approve:\n  - start",
        "review: person",
        "Max attempts: 1",
        "max_attempts: 1",
        "Budget: {usd: 2}",
        "Not before: 2126-12-01",
        "needs: [docker]",
        "✅ done_when: `make`",
        "- `done_when: false`",
        "Priority: high | Max attempts: 1 | Effort: 2h",
    ] {
        let scratch = with_list(&format!("- [ ] Last\n  {below}\n{SCRIPT}{}", item("A")));
        is_told(&scratch).says("at the end of the first line");
        assert_eq!(worked(&scratch), ["A"], "{below}");
        scratch
            .run("tavern-claim", &["--task", "TODO.md:1"])
            .ends(3);
    }
    // Where it may be prose it is told, and the item is worked.
    for below in [
        "Done when: cargo test",
        "Done when: the page loads in a second",
        "Review: Bob and Ann",
    ] {
        let scratch = with_list(&format!("- [ ] Last\n  {below}\n{SCRIPT}{}", item("A")));
        let check = scratch.run("tavern-check", &["TODO.md"]).ends(0);
        check.says("is read as prose, not as a key");
        drain(&scratch).ends(0).says("is read as prose");
    }
    for below in [
        "Review the done_when: it is long",
        "Approve the invoice: Bob",
        "> done_when: make",
        "- [ ] done_when: make",
        "--done-when: make",
        "| done | when |\n  |---|---|",
        "[done_when]: x",
        "The words say\n  review: all of it",
        "(done when the page loads)",
        "Needs: Python",
    ] {
        let scratch = with_list(&format!("- [ ] Last\n  {below}\n\n{SCRIPT}{}", item("A")));
        let check = scratch.run("tavern-check", &["TODO.md"]).ends(0);
        check.says_not("is read as prose");
    }
    // What the item has is said again.
    let scratch = with_list(&format!(
        "- [ ] Last (done_when: make)\n  done_when: make\n{}",
        item("A")
    ));
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(0)
        .says_not("guards");
}

#[test]
fn what_a_heading_waits_for_all_that_is_under_it_waits_for() {
    let list = |heading: &str| {
        let [one, two, three] =
            ["One", "Two", "Three"].map(|name| format!("- [ ] {name}\n{SCRIPT}\n"));
        format!(
            "## Phase 1: Set-up (soon)\n\n{one}{heading}\n\n{two}### More\n\n{three}## Rest\n\n{}",
            item("A")
        )
    };
    for heading in [
        "## Phase 2 (after: Phase 1)",
        "## Phase 2: Go (depends on Phase 1)",
        "## Phase 2 [after One]",
        "## Phase 2 (2 d, after: One and A)",
    ] {
        for rest in ["", "\n> A quote.\n"] {
            let scratch = with_list(&(list(heading) + rest));
            scratch.run("tavern-check", &["TODO.md"]).ends(0);
            assert!(waits(&scratch, "One") == "null", "{heading}");
            assert!(waits(&scratch, "Two").contains("One"), "{heading}");
            assert!(waits(&scratch, "Three").contains("One"), "{heading}");
            let claim = scratch.run("tavern-claim", &["--task", "TODO.md:10"]);
            claim.ends(3).says("it waits for");
        }
    }
    for heading in [
        "## Phase 2 (after: Phase 9)",
        "## Phase 2 (approve: start)",
        "## Phase 2 (done_when: make)",
        "## Phase 2 (after: One, Nine)",
    ] {
        let scratch = with_list(&list(heading));
        scratch.run("tavern-check", &["TODO.md"]).ends(5);
        assert_eq!(worked(&scratch), ["One", "A"], "{heading}");
    }
    for heading in [
        "## Phase 2 (after the launch)",
        "## Phase 2 (needs review)",
        "## Phase 2 (done when the page loads)",
    ] {
        let scratch = with_list(&list(heading));
        scratch.run("tavern-check", &["TODO.md"]).ends(0);
        assert_eq!(worked(&scratch), ["One", "Two", "Three", "A"], "{heading}");
    }
}
