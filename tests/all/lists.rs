//! Lists as people write them: what they meant is worked, and what can't be read as meant is told, and its item left.

use crate::support::{Ran, Scratch};

/// An item whose script adds its name to a file of its own.
pub fn item(name: &str) -> String {
    format!("- [ ] {name}\n  ```sh\n  echo {name} >> {name}.txt\n  ```\n")
}

/// A repository with a board, in which `text` is TODO.md.
pub fn with_list(text: &str) -> Scratch {
    let scratch = Scratch::initialized();
    scratch.write("TODO.md", text);
    scratch
}

pub fn drain(scratch: &Scratch) -> Ran {
    let arguments = ["TODO.md", "--runner", "shell", "--agents", "1"];
    scratch.run("tavern-drain", &arguments)
}

/// The titles of what a drain would work, in the order of the list.
pub fn worked(scratch: &Scratch) -> Vec<String> {
    let arguments = ["TODO.md", "--runner", "shell", "--dry-run"];
    let ran = scratch.run("tavern-drain", &arguments);
    let is_worked = |line: &&str| !line.starts_with("left: ");
    let titles = ran
        .stdout
        .lines()
        .filter(is_worked)
        .filter_map(|line| line.split_once(" pending "));
    titles.map(|(_, title)| title.to_owned()).collect()
}

#[test]
fn a_script_that_is_empty_open_or_half_indented_stops_its_item_and_tells_of_the_boxes_that_it_hides()
 {
    let (b, c) = (item("B"), item("C"));
    // What stands below the item A in line 3, what is told, and what is worked.
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "  ```sh\n  ```\n",
            "empty `sh` fence in line 4",
            &["B", "C"],
        ),
        (
            "  ~~~bash\n\n  ~~~\n",
            "empty `bash` fence in line 4",
            &["B", "C"],
        ),
        (
            "  ```sh\n  echo a\n",
            "unclosed `sh` fence in line 4",
            &["B", "C"],
        ),
        (
            "  ~~~shell\n  echo a\n  ```\n",
            "unclosed `shell` fence in line 4",
            &["B", "C"],
        ),
        (
            "\t```sh\n\techo a\n",
            "unclosed `sh` fence in line 4",
            &["B", "C"],
        ),
        (
            "  ```sh\n  - [ ] a\n",
            "unclosed `sh` fence in line 4 hides 1 box",
            &["B", "C"],
        ),
        // Its closing line opens a fence, up to the end of B's.
        (
            "  ```sh\n  echo a\n```\n",
            "unclosed `sh` fence in line 4 hides 1 box",
            &["C"],
        ),
        (
            "  ```sh\necho a\n  ```\n",
            "unclosed `sh` fence in line 4 hides 1 box",
            &["C"],
        ),
        (
            "  ```sh\n  echo a\n# a\n  ```\n- [ ] D\n  - [ ] d\n",
            "unclosed `sh` fence in line 4 hides 3 boxes",
            &["C"],
        ),
        (
            "  ```json\n  {}\n```\n",
            "unclosed `json` fence in line 4 hides 1 box",
            &["C"],
        ),
        (
            "```sh\necho a\n```\n",
            "badly indented `sh` fence in line 4",
            &["B", "C"],
        ),
        (
            "\n ~~~sh\n echo a\n ~~~\n",
            "badly indented `sh` fence in line 5",
            &["B", "C"],
        ),
        (
            "  ```sh\n  echo a\n  ```sh\n  echo b\n  ```\n",
            "`sh` fence in line 4 holds the beginning of another",
            &["B", "C"],
        ),
        // Its true end is the last line.
        (
            "  ```sh\n  echo a\n  ```\n  echo b\n  ```\n",
            "unclosed fence in line 8",
            &["B", "C"],
        ),
        (
            "```bash\necho a\n",
            "badly indented `bash` fence in line 4 hides 1 box",
            &["C"],
        ),
    ];
    for (below, told, rest) in cases {
        for newline in ["\n", "\r\n"] {
            let text = format!("# List\n\n- [ ] A\n{below}{b}{c}").replace('\n', newline);
            let scratch = with_list(&text);
            let ran = scratch.run("tavern-check", &["TODO.md"]).ends(5).says(told);
            assert_eq!(worked(&scratch), *rest, "{text}\n{ran}");
        }
    }
    // The words of an item with a number begin further in.
    let scratch = with_list(&format!("1. [ ] A\n  ```sh\n  echo a\n  ```\n\n{b}"));
    let ran = scratch.run("tavern-check", &["TODO.md"]).ends(5);
    ran.says("badly indented `sh` fence in line 2");
    // A drain tells it and works the rest.
    let scratch = with_list(&format!("- [ ] A\n  ```sh\n  echo a\n```\n{b}{c}"));
    let ran = drain(&scratch).ends(5);
    let ran = ran.says("unclosed `sh` fence in line 2 hides 1 box");
    ran.says("1 of 2 completed");
    // What is closed, another language's, a step's or below a blank line at the margin is well.
    for below in [
        "  ```sh\n  cat <<E\n  - [ ] x\n  E\n  ```\n",
        "  ```json\n  {}\n",
        "  - [ ] step\n    ```sh\n    ```\n",
        "\n```sh\nmake\n```\n\n",
        "\n```\n- [ ] an example\n```\n\n",
    ] {
        let scratch = with_list(&format!("- [ ] A\n{below}{b}"));
        scratch.run("tavern-check", &["TODO.md"]).ends(0);
    }
}

#[test]
fn a_fence_that_hides_boxes_is_told_and_the_drain_does_not_end_as_done() {
    for opening in ["```sh", "~~~", "``` text"] {
        let text = format!(
            "{}\nWords.\n\n{opening}\n- [ ] B\n* [ ] C\n- [x] D\n",
            item("A")
        );
        let scratch = with_list(&text);
        let ran = scratch.run("tavern-check", &["TODO.md", "--format", "json"]);
        let fault = &ran.ends(5).records()[0];
        assert_eq!(fault["code"], "hidden-items", "{fault}");
        let ran = drain(&scratch).ends(5).says("1 of 1 completed");
        ran.says("fence in line 8 hides 2 boxes");
        // Nothing else is open now.
        drain(&scratch).ends(5).says("hides 2 boxes");
    }
    // One of an item that is done hides them, too.
    let scratch = with_list(&format!(
        "- [x] A\n  ```sh\n  echo\n```\n{}{}",
        item("B"),
        item("C")
    ));
    scratch.run("tavern-check", &["TODO.md"]).ends(5);
    // What hides nothing is no error.
    let scratch = with_list(&format!("{}\n```\nwords\n", item("A")));
    scratch.run("tavern-check", &["TODO.md"]).ends(0);
    drain(&scratch).ends(0);
}

#[test]
fn a_fence_that_is_closed_by_the_line_of_another_one_hides_the_boxes_between() {
    let (a, b, c) = (item("A"), item("B"), item("C"));
    let words = "- [ ] D\n  ```\n  words\n  ```\n";
    // The list, how many boxes are hidden, and what is worked.
    let cases: &[(String, &str, &[&str])] = &[
        (format!("{a}```js\ncode\n{b}{c}"), "1 box", &["A", "C"]),
        (format!("Words.\n\n```js\n\n{a}{b}"), "1 box", &["B"]),
        (
            format!("{a}~~~\n{}{c}", b.replace("```", "~~~~")),
            "1 box",
            &["A", "C"],
        ),
        (format!("{a}```js\n{words}{c}"), "2 boxes", &["A"]),
        (
            format!("{a}```js\n{words}{words}{c}{b}"),
            "3 boxes",
            &["A", "B"],
        ),
        (
            format!("- [ ] A\n  ```js\n  - [ ] a\n    ```sh\n    a\n    ```\n{b}"),
            "1 box",
            &["B"],
        ),
    ];
    for (text, hidden, rest) in cases {
        let scratch = with_list(text);
        let ran = scratch.run("tavern-check", &["TODO.md", "--format", "json"]);
        let fault = &ran.ends(5).records()[0];
        assert_eq!(fault["code"], "hidden-items", "{text}{fault}");
        let message = fault["message"].to_string();
        assert!(
            message.contains(&format!("hides {hidden}")),
            "{text}{fault}"
        );
        assert_eq!(worked(&scratch), *rest, "{text}");
    }
    let scratch = with_list(&cases[0].0);
    let ran = drain(&scratch).ends(5).says("2 of 2 completed");
    ran.says("unclosed `js` fence in line 5 hides 1 box");
    // An example is none.
    for example in [
        "```md\n- [ ] a\n- [ ] b\n```\n",
        "````md\n- [ ] a\n  ```sh\n  a\n  ```\n````\n",
        "~~~md\n- [ ] a\n  ```sh\n  a\n  ```\n~~~\n",
        "  ```md\n  - [ ] a\n\n  - [ ] b\n  ```\n",
        "  - See:\n    ```md\n    - [ ] a\n      b\n    ```\n",
        " ```md\n- [ ] a\n ```\n",
    ] {
        let scratch = with_list(&format!("{a}\n{example}\n{b}"));
        scratch.run("tavern-check", &["TODO.md"]).ends(0);
        assert_eq!(worked(&scratch), ["A", "B"], "{example}");
    }
}

#[test]
fn a_script_that_is_not_indented_as_the_words_of_its_item_is_told_with_how_far_in_it_belongs() {
    for (below, told) in [
        (
            "      ```sh\n      a\n      ```\n",
            "no ```sh block behind 2 blanks, which",
        ),
        (
            "\n      ```bash\n      a\n      ```\n",
            "no ```sh block behind 2 blanks, which",
        ),
        (
            "  ```SH\n  a\n  ```\n",
            "no ```sh block behind 2 blanks, which",
        ),
        (
            "  - [ ] step\n    ```sh\n    a\n    ```\n",
            "no ```sh block behind 2 blanks, which",
        ),
        ("  ```zsh\n  a\n  ```\n", "no ```sh block, which"),
    ] {
        let scratch = with_list(&format!("- [ ] A\n{below}{}", item("B")));
        drain(&scratch).says("1 of 2 completed").says(told);
    }
}

#[test]
fn a_script_that_a_fence_in_its_here_document_cuts_is_not_run() {
    for (begin, end) in [("<<EOF", "EOF"), ("<<-'E_1'", "\tE_1"), ("<< \\END", "END")] {
        let text = format!(
            "- [ ] A\n  ```sh\n  cat >README {begin}\n  # T\n  ```\n  text\n  ```\n  {end}\n  echo >a\n  ```\n{}",
            item("B")
        );
        let scratch = with_list(&text);
        let ran = scratch.run("tavern-check", &["TODO.md", "--format", "json"]);
        let fault = &ran.ends(5).records()[0];
        assert_eq!(fault["code"], "torn-script", "{fault}");
        let ran = drain(&scratch).ends(5).says("1 of 2 completed");
        ran.says("`sh` fence in line 2 ends within `<<")
            .says("````sh");
        // In a longer fence it is whole.
        let whole = text
            .replacen("```sh", "````sh", 1)
            .replacen(">a\n  ```", ">a\n  ````", 1);
        let scratch = with_list(&whole);
        scratch.run("tavern-check", &["TODO.md"]).ends(0);
        assert_eq!(worked(&scratch), ["A", "B"], "{whole}");
    }
    for script in ["echo $((1<<2))", "cat <<E\n  E", "cat <<<E"] {
        let text = format!(
            "- [ ] A\n  ```sh\n  {script}\n  ```\n  - 2\n\n  2 <<\n{}",
            item("B")
        );
        with_list(&text).run("tavern-check", &["TODO.md"]).ends(0);
    }
}

/// What the item with this title waits for, in words.
pub fn waits(scratch: &Scratch, title: &str) -> String {
    let items = scratch.records("tavern-status", &["TODO.md", "--items"]);
    let found = items.iter().find(|item| item["title"] == title);
    found.map_or_else(String::new, |item| item["waits_for"].to_string())
}

#[test]
fn what_an_item_waits_for_may_stand_on_a_line_below_its_title() {
    let script = "  ```sh\n  true\n  ```\n";
    for line in [
        "**Blocked by**: One",
        "**Blocked by:** `One`",
        "- **Blocked by**: first-1",
        "- **Blocked by**: \"one\"",
        "Depends on: One",
        "* depends on: First-1",
        "after: One",
        "- After: One and Three, four",
        "blocked_by: T07",
        "**Depends on**: E-5",
        "Requires: One",
        "**Dependencies**: One",
        "Its colour.\n  Waits for: One",
        "Depends on: One <!-- soon -->",
        "Depends on:\n  - One\n  - T07 <!-- soon -->",
        "- **Blocked by**:\n\n    - `One`\n    * first-1\n  - Details: words",
    ] {
        let list = format!(
            "- [ ] Two (role: admin)\n  {line}\n{script}- [ ] One\n  **ID**: first-1\n{script}- [ ] Three, four\n{script}- [ ] T07 seven\n  - ID: E-5\n{script}"
        );
        for text in [list.clone(), format!("{list}\n> A quote.\n")] {
            let scratch = with_list(&text.replace(", four", ""));
            scratch.run("tavern-check", &["TODO.md"]).ends(0);
            let words = waits(&scratch, "Two (role: admin)");
            let needed = if line.contains("07") || line.contains("E-5") {
                "T07 seven"
            } else {
                "One"
            };
            assert!(words.contains(needed), "{line}: {words}");
            // Also where one item alone is asked for.
            let claim = scratch.run("tavern-claim", &["--task", "TODO.md:1"]);
            claim.ends(3).says(needed);
        }
    }
    // What names nothing stops its item. No name is nothing that is waited for, and other words are words.
    for (line, code) in [
        ("Depends on: the mood of the day", 5),
        ("After: T-99", 5),
        ("**Blocked by**: T-99", 5),
        ("- **Blocked by**: One, Nine", 5),
        ("Depends on:", 5),
        ("**Depends on:**\n  - One\n  - Nine", 5),
        ("- Depends on:\n  - One", 5),
        ("Depends on: none (can start at once)", 0),
        ("Depends on: nothing yet, go on", 0),
        ("Depends on: n/a (see above)", 0),
        ("Depends on: -", 0),
        ("<!-- Depends on: Nine -->", 0),
        ("- Needs:\n    - Python\n    - time", 0),
        ("Blocked by: none", 0),
        ("**Blocked by**: —", 0),
        ("Requires: Python", 0),
        ("After: he sees the page", 0),
        ("- Before: 3 s\n  - After: 1 s", 0),
        ("The colour of the page\n  depends on: the weather", 0),
        ("<!-- internal\n  Depends on: the vendor\n  -->", 0),
        ("`Depends on: the weather`", 0),
        ("Note: after: Nine", 0),
        ("> after: Nine", 0),
        ("- [ ] step\n    after: Nine", 0),
        ("~~~\n  after: Nine\n  ~~~", 0),
    ] {
        let two = format!("- [ ] Two\n  {line}\n\n{script}");
        let scratch = with_list(&format!("{two}{}", item("One")));
        let ran = scratch.run("tavern-check", &["TODO.md"]).ends(code);
        assert_eq!(
            worked(&scratch).len(),
            if code == 0 { 2 } else { 1 },
            "{line}: {ran}"
        );
        if code == 5 {
            drain(&scratch).ends(5).says("to wait for");
        }
    }
}

#[test]
fn an_item_is_known_by_all_that_it_is_called_in_its_key_and_below() {
    for (title, name) in [
        ("Build\n  - **ID**: BLD-1", "BLD-1"),
        ("Build\n  ID: `T001`", "T001"),
        ("**T001** Build", "T001"),
        ("`T001` Build", "T001"),
        ("[T001] Build", "T001"),
        ("**[US-12]:** Build", "US-12"),
        ("T001: Build", "T001"),
        ("US-12 Build", "US-12"),
    ] {
        let build = item("Build").replace("Build\n", &format!("{title}\n"));
        for two in [
            format!("Two (after: {name})"),
            format!("Two\n  Depends on: {name}"),
            format!("Two\n  Blocked by:\n  - {name}"),
        ] {
            let two = item("Two").replace("Two\n", &format!("{two}\n"));
            let scratch = with_list(&format!("{two}{build}"));
            scratch.run("tavern-check", &["TODO.md"]).ends(0);
            let words = waits(&scratch, "Two");
            assert!(words.contains("Build"), "{two}{build}{words}");
            let claim = scratch.run("tavern-claim", &["--task", "TODO.md:1"]);
            claim.ends(3).says("Build");
            drain(&scratch).ends(0).says("2 of 2 completed");
        }
    }
    // An ID is that of the item that has it, and two that are called so are neither.
    let build = item("Build").replace("Build\n", "Build\n  ID: T-1\n");
    let scratch = with_list(&format!(
        "{}{build}{}",
        item("Two (after: T-1)"),
        item("T-1: One")
    ));
    assert!(waits(&scratch, "Two").contains("T-1"));
    let scratch = with_list(&format!("{}{build}{build}", item("Two (after: T-1)")));
    scratch.run("tavern-check", &["TODO.md"]).ends(5);
}

#[test]
fn a_list_in_the_form_of_tasks_md_is_worked_by_its_priorities_blockers_and_claims() {
    let task = |name: &str, blocked: &str| {
        format!(
            "- [ ] {name}\n  - **ID**: {name}-id\n  - **Blocked by**: {blocked}\n  - **Details**: words\n\n  ```sh\n  echo {name} >> ~/order\n  echo x > {name}\n  ```\n"
        )
    };
    for heading in ["# Tasks", "# TODO"] {
        let text = format!(
            "{heading}\n\n## P2 — Nice to have\n\n{}\n## P1 (soon)\n\n### Server\n\n{}\n## P0\n\n{}{}\n- [ ] theirs (@cascade-1 — in progress)\n- [ ] theirs (@bob)\n",
            task("last", "none"),
            task("second", "first-id"),
            task("third", "second-id"),
            task("first", "none"),
        );
        let scratch = with_list(&text);
        let check = scratch.run("tavern-check", &["TODO.md"]).ends(0);
        check.says("`(@…)` is claimed by its title: 2 lines like this are skipped");
        let ran = drain(&scratch).ends(0).says("4 of 4 completed");
        ran.says("claimed by its title");
        assert_eq!(
            scratch.read("../home/order"),
            "first\nsecond\nthird\nlast\n"
        );
    }
    // One key of its own counts more than the heading, and so it is where an item is read by itself.
    let keyed = "## P1\n- [ ] T-1: no priority\n## P3\n- [ ] T-2: b (priority: 0)\n- [ ] T-3: c\n";
    let scratch = with_list(keyed);
    let items = scratch.records("tavern-status", &["TODO.md", "--items"]);
    let priorities: Vec<_> = items
        .iter()
        .filter(|item| item["priority"].is_u64())
        .map(|item| item["priority"].to_string())
        .collect();
    assert_eq!(priorities, ["1", "0", "3"]);
    // What is claimed and done is done.
    let scratch = with_list(&format!(
        "- [x] One (@bob)\n- [ ] Two (after: One)\n- [ ] Ask @bob\n{}{}",
        item("A"),
        item("Upgrade the parser (@babel/core)")
    ));
    assert_eq!(worked(&scratch), ["A", "Upgrade the parser (@babel/core)"]);
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(0)
        .says_not("claimed");
}

#[test]
fn parallel_tasks_of_spec_kit_wait_for_nothing() {
    let task = |title: &str| format!("- [ ] {title}\n  ```sh\n  true\n  ```\n");
    let titles = [
        "T001 Set up",
        "T002 [P] Make",
        "T003 [P] [US1] Mend",
        "T004 [US1] End",
    ];
    let scratch = with_list(&format!(
        "# Tasks: Feature\n\n## Phase 1\n\n{}",
        titles.map(task).concat()
    ));
    scratch.run("tavern-check", &["TODO.md"]).ends(0);
    assert_eq!(worked(&scratch), titles);
    for title in titles {
        assert_eq!(waits(&scratch, title), "null");
    }
}

#[test]
fn steps_under_the_heading_of_a_task_and_conditions_are_not_worked_as_items() {
    let text = format!(
        "# Plan\n\n### Task 1: Build the parser\n\n- [ ] **Step 1: Write the test**\n  ```sh\n  echo a\n  ```\n\nRun it.\n\n- [ ] Step 2 go\n\n\
         ## Rest\n\n{}\n## Success Criteria\n\n- [ ] All tests pass\n- [ ] It is fast\n\n## Definition of Done\n\n{}\n### More\n\n- [ ] x\n",
        item("A"),
        item("Shipped"),
    );
    let scratch = with_list(&text);
    let check = scratch.run("tavern-check", &["TODO.md"]).ends(5);
    let check = check
        .says("the boxes under `Task 1: Build the parser` (2) are steps of one task, not items");
    let check = check.says("the boxes under `Success Criteria` (2) are conditions, not items");
    check.says("the boxes under `Definition of Done` (2) are conditions, not items");
    assert_eq!(worked(&scratch), ["A"]);
    scratch
        .run("tavern-claim", &["--task", "TODO.md:5"])
        .ends(3);
    let ran = drain(&scratch).ends(5).says("are steps of one task");
    ran.says("the boxes under `Success Criteria` (2) are conditions");
    // Written as the hint says it is one item with steps.
    let one = "- [ ] Task 1: Build\n  ```sh\n  echo a > a\n  ```\n  - [x] Step 1\n  - [x] Step 2\n\n## Acceptance criteria\n\n- [ ] fast\n";
    let scratch = with_list(one);
    scratch.run("tavern-check", &["TODO.md"]).ends(0);
    drain(&scratch).ends(0).says("1 of 1 completed");
    for heading in [
        "3. Acceptance criteria",
        "Definition of Done (DoD)",
        "User acceptance criteria",
    ] {
        let scratch = with_list(&format!("{}## {heading}\n\n{}", item("A"), item("B")));
        assert_eq!(worked(&scratch), ["A"], "{heading}");
    }
    // Other boxes under such a heading are items.
    let scratch = with_list(&format!("### Task 1: Build\n\n{}", item("A")));
    assert_eq!(worked(&scratch), ["A"]);
}

#[test]
fn a_table_of_tasks_is_not_read_and_told_so() {
    let table = "# Plan\n\n| Task | Status |\n|------|:---|\n| Build | todo |\n";
    for (text, code) in [
        (table.to_owned(), 3),
        (
            "Tasks:\nTask | Status\n--- | ---\nBuild | todo\n".to_owned(),
            3,
        ),
        (format!("```\n{table}```\n"), 0),
        ("a | b\n\n- | -\n".to_owned(), 3),
        (format!("{table}\n{}", item("A")), 0),
    ] {
        let scratch = with_list(&text);
        let ran = drain(&scratch).ends(code);
        let is_told = ran.stderr.contains("tables are not read");
        assert_eq!(is_told, code == 3 && text.contains("Build"), "{ran}");
    }
}
