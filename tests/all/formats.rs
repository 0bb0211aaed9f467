//! Task files of other programs and of people: Tavern works them, and gives back every byte that is not its own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::support::{Scratch, has};

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/boards")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines that aren't blank, but for what Tavern writes into an item: IDs, keys and ticks.
fn bare_lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let line = line
                .replacen("- [x] ", "- [ ] ", 1)
                .replacen(". [x] ", ". [ ] ", 1);
            let (head, rest) = line.split_once("[ ] ").unwrap_or(("", &line));
            let rest = match rest.split_once(": ") {
                Some((id, rest)) if id.starts_with("T-") && !id.contains(' ') => rest,
                _ => rest,
            };
            let known = [
                "started:",
                "completed:",
                "agent:",
                "attempt:",
                "commit:",
                "after:",
            ];
            let (rest, block_id) = rest.split_once(" ^").unwrap_or((rest, ""));
            let keys = rest
                .rfind('(')
                .filter(|at| known.iter().any(|key| rest[at + 1..].starts_with(key)));
            format!(
                "{head}|{}|{block_id}",
                rest[..keys.unwrap_or(rest.len())].trim_end()
            )
        })
        // Keys stand below what is done.
        .filter(|line| line != "||")
        .collect()
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

/// A board as the plugin reads it: each lane's cards, ticked or not; the archive; the settings.
fn as_the_plugin_reads(
    text: &str,
) -> (
    BTreeMap<String, Vec<String>>,
    Vec<String>,
    serde_json::Value,
) {
    let (board, settings) = text
        .split_once("\n%% kanban:settings\n```\n")
        .expect("the settings are there");
    let settings = settings
        .strip_suffix("\n```\n%%")
        .expect("nothing is behind the settings");
    let (lanes, archive) = board
        .split_once("\n***\n\n## Archive\n")
        .expect("the archive is there");
    let cards = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.starts_with("- ["))
            .map(str::to_owned)
            .collect()
    };
    let lanes = lanes.split("\n## ").skip(1).map(|lane| {
        let (name, rest) = lane.split_once('\n').expect("a lane has lines");
        let name = if rest.trim_start().starts_with("**Complete**\n") {
            format!("{name}, complete")
        } else {
            name.to_owned()
        };
        (name, cards(rest))
    });
    (
        lanes.collect(),
        cards(archive),
        serde_json::from_str(settings).expect("they are JSON"),
    )
}

#[test]
fn a_board_of_obsidians_kanban_plugin_is_worked_and_stays_one() {
    let scratch = Scratch::initialized();
    let before = fixture("obsidian.md").replace("- [x] 2026-10-01 T-9: Long ago\n", "");
    scratch.write("Board.md", &before);
    let added = scratch.run(
        "tavern-add",
        &[
            "--queue",
            "Board.md",
            "Wash up",
            "-m",
            "```sh\necho clean > clean.txt\n```",
        ],
    );
    let added = added.succeeds();
    let drained = scratch
        .run("tavern-drain", &["Board.md", "--agents", "2"])
        .ends(0);
    // What stands in a lane of its owner's own is not worked, and is told.
    drained
        .says("4 of 4 completed, 0 left")
        .says("`Ideas` is not a lane, so agents skip the 2 items under it");
    let after = scratch.read("Board.md");
    let (was_lanes, was_archive, was_settings) = as_the_plugin_reads(&before);
    let (lanes, archive, settings) = as_the_plugin_reads(&after);
    assert_eq!((archive, settings), (was_archive, was_settings), "{after}");
    assert_eq!(
        lanes.keys().collect::<Vec<_>>(),
        was_lanes.keys().collect::<Vec<_>>(),
        "{after}"
    );
    assert_eq!(lanes["Ideas"], was_lanes["Ideas"]);
    assert_eq!(
        (lanes["Backlog"].len(), lanes["Doing (3)"].len()),
        (0, 0),
        "{after}"
    );
    let complete = &lanes["Complete, complete"];
    assert_eq!(complete[..2], was_lanes["Complete, complete"], "{after}");
    assert_eq!(complete.len(), 6, "{after}");
    assert!(
        complete.iter().all(|card| card.starts_with("- [x] ")),
        "{after}"
    );
    assert!(
        complete
            .iter()
            .any(|card| card.contains(&format!("{}: Wash up", added.trim()))),
        "{after}"
    );
    // Byte for byte, before the first lane and behind the last.
    let head = before.find("\n## ").expect("there are lanes");
    assert_eq!(after[..head], before[..head]);
    assert!(
        after.ends_with(&before[before.find("\n\n***").expect("there is an archive")..]),
        "{after}"
    );
    let mine = bare_lines(&format!(
        "{before}\n- [ ] Wash up\n    ```sh\n    echo clean > clean.txt\n    ```\n"
    ));
    assert_eq!(sorted(bare_lines(&after)), sorted(mine), "{after}");
    let named = complete
        .iter()
        .find(|card| card.contains("T-2: Shout it"))
        .expect("it is there");
    assert!(
        named.ends_with("Shout it (after: T-1, T-9) ^k3j9ab"),
        "what links to the card is kept: {named}"
    );
    for (file, text) in [
        ("hello.txt", "Hello"),
        ("mug.txt", "mug"),
        ("clean.txt", "clean"),
    ] {
        assert_eq!(
            scratch.git(&["show", &format!("tavern/integration:{file}")]),
            text
        );
    }
}

#[test]
fn what_is_archived_is_never_taken_and_satisfies_dependencies() {
    let scratch = Scratch::initialized();
    scratch.write(
        "Board.md",
        fixture("obsidian.md").replace("- [x] 2026-10-01 T-9: Long ago\n", ""),
    );
    scratch
        .run("tavern-add", &["--queue", "Board.md", "One more"])
        .succeeds();
    let claim = |task: &str| {
        scratch.run(
            "tavern-claim",
            &["--queue", "Board.md", "--task", task, "--agent", "Sam"],
        )
    };
    claim("T-10").ends(3).says("completed");
    claim("T-2").succeeds();
    // Nobody's tail: what is added with nothing but an archive there goes before it.
    scratch.write("Old.md", "# Ideas\n\n## Archive\n\n- [x] done\n");
    let id = scratch
        .run("tavern-add", &["--queue", "Old.md", "New"])
        .succeeds();
    assert_eq!(
        scratch.read("Old.md"),
        format!(
            "# Ideas\n\n- [ ] {}: New\n\n## Archive\n\n- [x] done\n",
            id.trim()
        )
    );
    // The first item of an empty lane at the end stands before the settings.
    let settings = "%% kanban:settings\n```\n{\"kanban-plugin\":\"board\"}\n```\n%%";
    scratch.write(
        "Empty.md",
        format!("---\n\nkanban-plugin: board\n\n---\n\n## Todo\n\n\n\n\n{settings}"),
    );
    let id = scratch
        .run("tavern-add", &["--queue", "Empty.md", "New"])
        .succeeds();
    let text = scratch.read("Empty.md");
    assert!(
        text.contains(&format!("## Todo\n\n- [ ] {}: New\n\n", id.trim()))
            && text.ends_with(settings),
        "{text}"
    );
}

#[test]
fn a_todo_md_of_a_vs_code_board_is_worked_and_stays_one() {
    let scratch = Scratch::initialized();
    let before = fixture("todo-kanban.md");
    scratch.write("TODO.md", &before);
    scratch
        .run("tavern-drain", &["TODO.md", "--agents", "2"])
        .succeeds();
    let after = scratch.read("TODO.md");
    assert_eq!(
        sorted(bare_lines(&after)),
        sorted(bare_lines(&before)),
        "{after}"
    );
    let lanes: Vec<&str> = after.split("\n### ").collect();
    assert_eq!(
        lanes[0],
        before
            .split("\n### ")
            .next()
            .expect("a text has a first part")
    );
    assert_eq!(lanes[1..3].concat().matches("[ ]").count(), 0, "{after}");
    let done: Vec<&str> = lanes[3]
        .lines()
        .filter(|line| line.starts_with("- [x] "))
        .collect();
    assert_eq!(done.len(), 4, "{after}");
    assert_eq!(
        done[..2],
        [
            "- [x] Completed task title  ",
            "- [x] 🐞 Another one 05/21/2021"
        ]
    );
    assert!(
        done[2..].iter().all(|line| line.ends_with("  ")),
        "the line breaks behind titles stay\n{after}"
    );
}

#[test]
fn a_task_list_of_github_is_ticked_in_place() {
    let scratch = Scratch::initialized();
    let before = fixture("github.md");
    scratch.write("PR.md", &before);
    scratch
        .run("tavern-drain", &["PR.md", "--agents", "2"])
        .succeeds();
    let after = scratch.read("PR.md");
    let is_title = |line: &&str| !line.trim_start().starts_with("(commit: ");
    let (was, is): (Vec<&str>, Vec<&str>) = (
        before.split('\n').collect(),
        after.split('\n').filter(is_title).collect(),
    );
    assert_eq!(is.len(), was.len(), "{after}");
    let changed: Vec<&str> = was
        .iter()
        .zip(&is)
        .filter(|(was, is)| was != is)
        .map(|(was, _)| *was)
        .collect();
    assert_eq!(changed.len(), 3, "{changed:?}");
    assert!(
        changed.iter().all(|line| line.contains("[ ] ")),
        "{changed:?}"
    );
    assert_eq!(bare_lines(&after), bare_lines(&before));
}

/// Odd but real shapes around one item, `TARGET`.
const SHAPES: &[(&str, &str)] = &[
    (
        "nested",
        "- Backend\n  - [ ] one\n  - [ ] TARGET: two\n    - [ ] step\n    - [x] step\n\n      more\n  - three\n\n\n- [ ] last\n",
    ),
    (
        "table",
        "| a | b |\n|---|--:|\n| - [ ] x | y |\n\n- [ ] TARGET: two\n\n| c |\n|---|\n| d |\n",
    ),
    (
        "comments",
        "<!-- - [ ] no -->\n- [ ] TARGET: two <!-- why -->\n<!--\n- [ ] no\n-->\n- [ ] three\n",
    ),
    (
        "html",
        "<div>\n- [ ] no\n</div>\n\n* [ ] TARGET: two<br/>and\n\n<details><summary>x</summary>\n\n- [ ] in\n\n</details>\n",
    ),
    (
        "front-dots",
        "---\nid: q\nunknown: {a: [1, 2]}\n# comment\n...\n- [ ] TARGET: two\n",
    ),
    (
        "front-blank",
        "---\n\nname:   'Odd  name'\ntype: \"x\"\n\n---\n\n\n- [ ] TARGET: two\n",
    ),
    ("front-empty", "---\n---\n- [ ] TARGET: two\n"),
    (
        "front-toml",
        "+++\ntitle = \"x\"\n+++\n\n- [ ] TARGET: two\n",
    ),
    (
        "front-bom",
        "\u{feff}---\nname: x\n---\n- [ ] TARGET: two\n- [ ] three\n",
    ),
    ("bom", "\u{feff}- [ ] TARGET: two\n"),
    (
        "crlf",
        "# A\r\n\r\n- [ ] one\r\n- [ ] TARGET: two  \r\n  more\r\n- [ ] three\r\n",
    ),
    (
        "mixed-ends",
        "- [ ] one\r\n- [ ] TARGET: two\n- [ ] three\r\n\r\nend\n",
    ),
    (
        "tabs",
        "-\t[ ] one\n\t- [ ] TARGET: two\n\t\ttext\n\t- x\n\n\tdeep\n",
    ),
    (
        "ordered",
        "1. [ ] one\n2. [ ] TARGET: two\n   text\n10. [ ] ten\n\n3) [ ] other\n0. [x] zero\n",
    ),
    (
        "footnotes",
        "Text[^1] and [a link][ref].\n\n- [ ] TARGET: two[^note]\n\n[^1]: A note.\n[^note]: With\n    more.\n[ref]: <https://example.org/> 'Title'\n",
    ),
    (
        "quotes",
        "> - [ ] no\n> > deeper\n\n- [ ] TARGET: two\n  > quoted in it\n\n> [!note]- folded\n> text\n",
    ),
    (
        "fences",
        "~~~~md\n- [ ] no\n```\n~~~\n~~~~\n- [ ] TARGET: two\n  ```text\n- [ ] out of it\n```\n- [ ] three\n",
    ),
    (
        "code",
        "    - [ ] no\n\n- [ ] TARGET: two\n\n      indented code\n\n  text\n",
    ),
    (
        "rules",
        "***\n- [ ] one\n---\n- [ ] TARGET: two\n* * *\n\nTitle\n=====\n_ _ _\n",
    ),
    (
        "blanks",
        "\n\n  \n\t\n- [ ] one\n\n\n\n- [ ] TARGET: two   \n\n\n   \n- [ ] three\n\n\n\n",
    ),
    ("no-last-end", "- [ ] one\n- [ ] TARGET: two"),
    (
        "keys",
        "- [ ] TARGET: two (odd: [a,  b], priority: 1,role: coder ,tags: ['x', \"y\"])\n- [ ] x (see: this)\n",
    ),
    (
        "task-block",
        "- [ ] TARGET: two\n\n  ```yaml task\n  # why\n  done_when:\n    - 'true'   # sure\n  unknown:   {x: 1}\n  ```\n  after\n",
    ),
    (
        "unicode",
        "- [ ] ümläut 😀\n- [ ] TARGET: שלום مرحبا e\u{301} \u{200b}zero\u{2028}width\n- [ ] \u{a0}nbsp\n",
    ),
    (
        "obsidian",
        "- [ ] one [due:: 2026-11-30] ➕ 2026-11-01 ⏫ #tag/sub\n- [ ] TARGET: ![[image.png|100]] $x_1$ ==mark== ~~no~~ ^block-id\n%% hidden %%\n",
    ),
    (
        "math",
        "$$\n- [ ] is an item\n$$\n\n- [ ] TARGET: $a (b: c)$\n",
    ),
    (
        "odd-boxes",
        "- [/] half\n- [-] dropped\n- [>] moved\n- [?] asked\n- [ ] TARGET: two\n- [] no\n- [x]no\n",
    ),
    (
        "markers",
        "+ [ ] one\n+ [ ] TARGET: two\n* [ ] three\n- [ ] four\n- - [ ] five\n",
    ),
    (
        "broken",
        "- [ ] TARGET: two\n- [ ] bad (priority: lots, role: [)\n- [ ]\n\n```\nnever closed\n- [ ] no\n",
    ),
    (
        "definition",
        "Term\n: - [ ] no\n\n- [ ] TARGET: two\n: text\n",
    ),
];

#[test]
fn odd_shapes_keep_every_byte_but_the_items_own() {
    let long: String = (0..3_000).fold(String::new(), |mut text, number| {
        let _ = writeln!(
            text,
            "- [ ] Item {number} (priority: {})\n  Its text.",
            number % 10
        );
        text
    });
    let wide = format!(
        "{}\n\n- [ ] TARGET: {}\n- [x] three\n",
        "word ".repeat(50_000),
        "title ".repeat(5_000)
    );
    let long = format!("{long}- [ ] TARGET: two\n{long}");
    let shapes = SHAPES
        .iter()
        .copied()
        .chain([("long", long.as_str()), ("wide", wide.as_str())]);
    for (number, (name, text)) in shapes.enumerate() {
        let scratch = Scratch::initialized();
        let id = format!("T-{}", number + 100);
        let before = text.replace("TARGET", &id);
        let queue = format!("{name}.md");
        let path = scratch.write(&queue, &before);
        let others = |text: &str| -> Vec<String> {
            let mut is_below = false;
            let is_other = |line: &&str| {
                let is_keys = is_below && line.trim_start().starts_with('(');
                is_below = line.contains(&format!("{id}: "));
                !is_below && !is_keys
            };
            let lines = text.split_inclusive('\n').filter(is_other);
            lines.map(str::to_owned).collect()
        };
        let stays = |how: &str| {
            let after = fs::read_to_string(&path).expect("it is there");
            assert!(
                others(&after) == others(&before),
                "{name}: {how}\n{}",
                &after[..after.len().min(2000)]
            );
            let line = |text: &str| {
                text.lines()
                    .find(|line| line.contains(&format!("{id}: ")))
                    .map(str::to_owned)
            };
            line(&after).unwrap_or_else(|| panic!("{name}: the item is gone"))
        };
        let claim = scratch.run(
            "tavern-claim",
            &["--queue", &queue, "--task", &id, "--agent", "Sam"],
        );
        assert_eq!(claim.code, Some(0), "{name}: {claim}");
        assert!(fs::read(&path).expect("it is there") == before.as_bytes());
        scratch.stands(&id, "in_progress", 1);
        scratch.run("tavern-release", &[&id, "--force"]).succeeds();
        assert!(fs::read(&path).expect("it is there") == before.as_bytes());
        scratch.stands(&id, "pending", 0);
        scratch.run("tavern-release", &[&id, "--cancel"]).succeeds();
        assert!(stays("cancelled").contains("[x] "));
        scratch.run("tavern-release", &[&id, "--reopen"]).succeeds();
        assert!(stays("opened again").contains("[ ] "));
        // Programs that only look, and what is refused, write nothing.
        let now = fs::read(&path).expect("it is there");
        scratch.run("tavern-status", &[&id]).succeeds();
        scratch.run("tavern-check", &[&queue]);
        scratch.run("tavern-release", &[&id, "--revive"]).ends(4);
        assert!(fs::read(&path).expect("it is there") == now, "{name}");
    }
}

/// Markdown reads no emphasis, no link and no HTML in `text`.
fn assert_shown_as_spelt(text: &str) {
    use pulldown_cmark::{Event, Options, Parser, Tag};
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH) {
        let is_markup = matches!(
            event,
            Event::InlineHtml(_)
                | Event::Html(_)
                | Event::Start(
                    Tag::Emphasis
                        | Tag::Strong
                        | Tag::Strikethrough
                        | Tag::Link { .. }
                        | Tag::HtmlBlock
                )
        );
        assert!(!is_markup, "{event:?} in {text}");
    }
}

#[test]
fn globs_and_angle_brackets_in_keys_are_shown_as_they_are_spelt() {
    let item = "- [ ] T-1: Fix the parser (touches: [src/*.rs, lib/*.rs])\n  ```sh\n  mkdir -p src && echo ok > src/ok.rs\n  ```\n";
    let board = &format!("## Pending\n\n{item}\n## In Progress\n\n## In Review\n\n## Completed\n");
    let scratch = Scratch::board(board);
    let step = |program: &str, arguments: &[&str], code: i32| {
        scratch.run(program, arguments).ends(code);
        // But for its box it stays as it was typed.
        has(&scratch.queue().replace("[x]", "[ ]"), &[item]);
    };
    let token = || scratch.item("T-1")["lease"]["token"].to_string();
    step("tavern-claim", &["--task", "T-1"], 0);
    step(
        "tavern-report",
        &[
            "T-1",
            "--token",
            &token(),
            "--failed",
            "expected <T>, got *x*",
        ],
        1,
    );
    step("tavern-claim", &["--task", "T-1"], 0);
    scratch
        .run("tavern-spawn", &["T-1", "--token", &token()])
        .succeeds();
    step("tavern-report", &["T-1", "--token", &token()], 0);
    step("tavern-merge", &[], 0);
    let touches = serde_json::json!(["src/*.rs", "lib/*.rs"]);
    assert_eq!(scratch.stands("T-1", "completed", 2)["touches"], touches);
    scratch.run("tavern-undo", &[]).ends(4).says("revert");
    // What Tavern writes anew is shown as it is spelt.
    scratch.begin(board);
    for how in ["--cancel", "--reopen"] {
        scratch.run("tavern-release", &["T-1", how]).succeeds();
        assert_shown_as_spelt(&scratch.queue().replace("~~", ""));
        assert_eq!(scratch.item("T-1")["touches"], touches);
    }
}

#[test]
fn keys_that_a_person_quotes_in_a_line_without_an_id_are_words() {
    for words in [
        "`(status: completed)`",
        "`(status: draft)`",
        "`(role: nobody)`",
        "`(status: null)`",
    ] {
        let scratch = Scratch::pending(&format!("- [ ] Document {words}\n"));
        let claimed = scratch.json("tavern-claim", &[]);
        let id = claimed["lease"]["task"].as_str().expect("it has one");
        assert_eq!(claimed["title"], format!("Document {words}"));
        scratch.run("tavern-release", &[id, "--force"]).succeeds();
        scratch.run("tavern-release", &[id, "--cancel"]).succeeds();
        scratch.run("tavern-release", &[id, "--reopen"]).succeeds();
        assert_eq!(
            scratch.item(id)["title"],
            format!("Document {words}"),
            "{}",
            scratch.queue()
        );
    }
}

#[test]
fn what_is_words_below_an_item_stays_words_when_it_gets_its_id() {
    for words in ["(priority: 1)", "`(commit: 1a2b3c4, reason: expected <T>)`"] {
        for title in ["Fix it", "Fix it (priority: 3) (role: coder)"] {
            let scratch = Scratch::board(&format!(
                "## Pending\n\n- [ ] {title}\n  {words}\n\n## Completed\n"
            ));
            let told = || {
                let records = scratch.records("tavern-status", &["--items"]);
                let item = records
                    .iter()
                    .find(|record| record["kind"] == "item")
                    .expect("it is there");
                ["title", "priority"].map(|key| item[key].clone())
            };
            let was = told();
            let claimed = scratch.json("tavern-claim", &[]);
            let id = claimed["lease"]["task"].as_str().expect("it has one");
            assert_eq!(told(), was, "{}", scratch.queue());
            scratch.run("tavern-release", &[id, "--force"]).succeeds();
            assert_eq!(told(), was, "{}", scratch.queue());
            scratch.run("tavern-check", &[]).succeeds();
            assert_eq!(
                scratch.queue().matches(words).count(),
                1,
                "{}",
                scratch.queue()
            );
        }
    }
}

#[test]
fn a_box_in_a_text_of_front_matter_is_no_item() {
    let front = "---\nname: Bug\nabout: What is broken\nbody: |\n  - [ ] not an item\n\n  - [ ] nor this\n---\n";
    let scratch = Scratch::pending("");
    for front in [
        front,
        &front.replace("name: Bug\nabout", "title"),
        &front.replace("name: Bug\nabout: What is broken\n", ""),
        // Another program's may be broken, or in TOML.
        "---\ntitle: \"x\nlist:\n  - [ ] not an item\n---\n",
        "+++\n# Hugo\n\ntitle = \"x\"\nbody = \"\"\"\n- [ ] not an item\n\"\"\"\n+++\n",
        "+++\n[params]\nbody = \"\"\"\n- [ ] not an item\n\"\"\"\n+++\n",
    ] {
        scratch.write("TODO.md", format!("{front}- [ ] T-1: real\n"));
        scratch.run("tavern-check", &["TODO.md"]).succeeds();
        scratch
            .run("tavern-status", &["TODO.md"])
            .ends(0)
            .says("TODO.md: 1 pending, 1 that no");
    }
}

#[test]
fn what_stands_between_two_rules_at_the_head_is_worked() {
    for text in [
        "---\nTo do:\n- [ ] a\n- [ ] b\n---\n",
        "---\nNote: \"mine\n- [ ] a\n- [ ] b\n---\n",
        "+++\n\n- [ ] a\n- [ ] b = c\n+++\n",
    ] {
        let scratch = Scratch::pending("");
        scratch.write("TODO.md", text);
        scratch
            .run("tavern-status", &["TODO.md"])
            .ends(0)
            .says("TODO.md: 2 pending");
    }
}

#[test]
fn keys_do_not_come_between_a_title_and_what_is_drawn_under_it() {
    for drawn in ["===", "---", "--- | :---", "|---|---|\n  | 1 | 2 |"] {
        let item = format!("- [ ] T-1: a | b (worktree: false, result: answer)\n  {drawn}\n");
        let scratch = Scratch::board(&format!("## Pending\n\n{item}\n## Completed\n"));
        let token = scratch.json("tavern-claim", &[])["lease"]["token"].to_string();
        scratch
            .run("tavern-report", &["T-1", "--token", &token, "--done"])
            .ends(0);
        let done = scratch.queue();
        let title = done
            .lines()
            .position(|line| line.starts_with("- [x] T-1: a | b ("))
            .expect("its keys are there");
        assert_eq!(
            done.lines().nth(title + 1),
            format!("  {drawn}").lines().next(),
            "{done}"
        );
        scratch.run("tavern-check", &[]).ends(0);
    }
}
