//! Lists as people write them: what they meant is worked, and what can't be read as meant is told, and its item left.

use crate::support::{Ran, Scratch};

/// An item whose script adds its name to a file of its own.
fn item(name: &str) -> String {
    format!("- [ ] {name}\n  ```sh\n  echo {name} >> {name}.txt\n  ```\n")
}

/// A repository with a board, in which `text` is TODO.md.
fn with_list(text: &str) -> Scratch {
    let scratch = Scratch::initialized();
    scratch.write("TODO.md", text);
    scratch
}

fn drain(scratch: &Scratch) -> Ran {
    let arguments = ["TODO.md", "--runner", "shell", "--agents", "1"];
    scratch.run("tavern-drain", &arguments)
}

/// The titles of what a drain would work, in the order of the list.
fn worked(scratch: &Scratch) -> Vec<String> {
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
