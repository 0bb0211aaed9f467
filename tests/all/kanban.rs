//! Boards of Obsidian's Kanban plugin: columns in any language, and what is left of Tavern's by a save of the plugin.

use std::fmt::Write;

use crate::support::{Scratch, has};

const HEAD: &str = "---\n\nkanban-plugin: board\n\n---\n\n";

const SETTINGS: &str = "\n\n%% kanban:settings\n```\n{\"kanban-plugin\":\"board\"}\n```\n%%";

/// A board as the plugin's writer leaves it (2.0.51): its front matter, each heading with the mark of what is done and the first list
/// under it, and the settings. All else is dropped.
fn saved_by_the_plugin(text: &str) -> String {
    let (front, rest) = text[3..]
        .split_once("\n---\n")
        .expect("there is front matter");
    let front: serde_yaml::Mapping = serde_yaml::from_str(front).expect("it is YAML");
    let front = serde_yaml::to_string(&front).expect("it can be written");
    let (board, settings) = rest
        .split_once("\n%% kanban:settings\n")
        .expect("the settings are there");
    let (lanes, archive) = board.split_once("\n***\n").unwrap_or((board, ""));
    let columns = |text: &str, end: &str| {
        let mut columns = String::new();
        for column in format!("\n{text}").split("\n## ").skip(1) {
            let (name, rest) = column.split_once('\n').unwrap_or((column, ""));
            let _ = write!(columns, "## {name}\n\n");
            if rest.trim_start().starts_with("**Complete**\n") {
                columns.push_str("**Complete**\n");
            }
            first_list(rest)
                .iter()
                .for_each(|card| columns.push_str(&saved_card(card)));
            columns.push_str(end);
        }
        columns
    };
    let archive = if archive.is_empty() {
        String::new()
    } else {
        format!("***\n\n{}", columns(archive, ""))
    };
    format!(
        "---\n\n{front}---\n\n{}{archive}\n\n%% kanban:settings\n{settings}",
        columns(lanes, "\n\n\n")
    )
}

/// The cards of the first list: from its first bullet to what is at the margin and no bullet like it.
fn first_list(text: &str) -> Vec<String> {
    let mut cards: Vec<String> = Vec::new();
    let is_card = |line: &str| {
        ["- ", "* ", "+ "]
            .iter()
            .any(|bullet| line.starts_with(bullet))
    };
    let from_first = text.lines().skip_while(|line| !is_card(line));
    for line in from_first {
        let is_like = cards
            .first()
            .is_none_or(|first| line.starts_with(&first[..2]));
        match line.chars().next() {
            Some(_) if is_card(line) && is_like => cards.push(format!("{line}\n")),
            None | Some(' ' | '\t') => {
                if let Some(card) = cards.last_mut() {
                    card.push_str(line);
                    card.push('\n');
                }
            }
            _ => break,
        }
    }
    cards
}

/// A card with what it holds: four blanks or a tab taken from each line that begins so, and four blanks before each.
fn saved_card(card: &str) -> String {
    let (mark, content) = card[2..].split_once("] ").expect("a card has a box");
    let content = content.replace("<br>", "\n");
    let mut lines = content.trim().lines().map(|line| {
        line.strip_prefix("    ")
            .or(line.strip_prefix('\t'))
            .unwrap_or(line)
    });
    let first = lines.next().unwrap_or("");
    lines.fold(format!("- {mark}] {first}"), |card, line| {
        format!("{card}\n    {line}")
    }) + "\n"
}

#[test]
fn what_a_column_in_another_language_has_is_left_alone_until_it_is_said_to_be_a_lane() {
    let scratch = Scratch::initialized();
    let script = "\t```sh\n\techo hi > hi.txt\n\t```\n";
    let columns = format!(
        "## Задачи\n\n- [ ] Написать\n{script}\n\n\n## В работе (2)\n\n- [ ] Пишу\n\n\n\n## Готово\n\n**Выполнено**\n- [ ] Вчера\n\n\n\n## Сделано\n\n- [ ] Закончено\n- [ ] Ещё\n\n\n\n***\n\n## Архив\n\n- [ ] Старое\n"
    );
    let text = format!("{HEAD}{columns}{SETTINGS}");
    scratch.write("Board.md", &text);
    let drained = scratch
        .run("tavern-drain", &["Board.md"])
        .ends(3)
        .says("nothing to do: no item is open");
    let drained = drained.says("Board.md:7: `Задачи` is not a lane, so agents skip the item under it: `kanban-plugin` in the front matter makes this a board\nhint: write `lanes: {Задачи: pending}` in the front matter, or another lane in place of pending:");
    drained
        .says("`В работе (2)` is not a lane")
        .says("`Сделано` is not a lane, so agents skip the 2 items under it")
        .says_not("Готово");
    assert_eq!(scratch.read("Board.md"), text);
    scratch
        .run("tavern-status", &["Board.md"])
        .ends(0)
        .says("`lanes: {Задачи: pending}`");
    scratch
        .run("tavern-add", &["--queue", "Board.md", "New"])
        .ends(4)
        .says("no heading of `Board.md` is a lane for new items");
    let lanes = "lanes: {Сделано: completed, \"в работе\": in_progress, Задачи: pending}";
    scratch.write(
        "Board.md",
        text.replace(
            "kanban-plugin: board",
            &format!("kanban-plugin: board\n{lanes}"),
        ),
    );
    scratch
        .run("tavern-check", &["Board.md"])
        .ends(0)
        .says_not("is not a lane");
    let drained = scratch
        .run("tavern-drain", &["Board.md"])
        .ends(0)
        .says("1 of 1 completed, 0 left");
    drained.says("Board.md:19: 1 item is in progress by hand; agents skip it");
    let after = scratch.read("Board.md");
    let done = after
        .split("## Готово\n")
        .nth(1)
        .and_then(|rest| rest.split("## Сделано").next())
        .expect("it is there");
    has(
        done,
        &[
            "**Выполнено**\n- [ ] Вчера\n- [x] T-",
            &format!(": Написать\n{script}"),
        ],
    );
    assert_eq!(scratch.git(&["show", "tavern/integration:hi.txt"]), "hi");
    assert!(
        after.ends_with(&text[text.find("\n\n***").expect("it is there")..]),
        "{after}"
    );
}

#[test]
fn headings_in_other_words_are_lanes_of_any_queue_that_says_so() {
    let scratch = Scratch::initialized();
    let queue = "---\nlanes: {Offen: pending, \"Sprint 1\": archive, Fertig: completed}\n---\n# Sprint 1\n\n- [ ] old\n\n# Sprint 2\n\n- [ ] mine\n\n# 📋 Offen\n\n- [ ] T-1: do it (worktree: false, result: answer)\n\n# Fertig\n";
    scratch.write("TODO.md", queue);
    let token = scratch.claim("T-1", &["--queue", "TODO.md"]);
    scratch
        .run("tavern-report", &["T-1", "--token", &token, "--done"])
        .succeeds();
    assert!(
        scratch.read("TODO.md").contains(
            "# 📋 Offen\n\n# Fertig\n\n- [x] T-1: do it (worktree: false, result: answer)\n"
        ),
        "{}",
        scratch.read("TODO.md")
    );
    let told = "`Sprint 2` is not a lane, so agents skip the item under it: `lanes` in the front matter makes this a board";
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(0)
        .says(told)
        .says("write `Sprint 2: pending` at `lanes`");
    scratch.write("TODO.md", queue.replace("completed", "finished"));
    scratch
        .run("tavern-check", &["TODO.md"])
        .says("invalid value for the queue's `lanes`")
        .says("{Fertig: completed, Offen: pending}");
}

#[test]
fn a_save_of_the_plugin_takes_nothing_of_tavern() {
    let scratch = Scratch::initialized();
    scratch.write("Board.md", format!("{HEAD}lanes: {{Offen: pending, In Arbeit: in_progress}}\n\n## Offen\n\n\n\n## In Arbeit\n\n\n\n## Fertig\n\n**Complete**\n\n\n\n{}", SETTINGS.trim_start()).replace("board\n\n---\n\nlanes", "board\nlanes").replace("progress}\n", "progress}\n---\n"));
    let add = |more: &[&str]| {
        scratch
            .run("tavern-add", &[&["--queue", "Board.md"], more].concat())
            .succeeds()
    };
    let description =
        "In two paragraphs.\n\n- with a list\n\n```sh\nif true; then\n  echo hi > hi.txt\nfi\n```";
    let id = add(&[
        "Say hi",
        "-m",
        description,
        "--done-when",
        "true",
        "--priority",
        "1",
    ]);
    let id = id.trim();
    add(&["Another", "--after", id]);
    scratch.change(
        "Board.md",
        "(priority: 1",
        "(worktree: false, result: answer, priority: 1",
    );
    let told = || {
        let mut item = scratch.item(id);
        item["line"].take();
        item
    };
    let before = told();
    let save = || {
        let saved = saved_by_the_plugin(&scratch.read("Board.md"));
        scratch.write("Board.md", &saved);
        assert_eq!(saved_by_the_plugin(&saved), saved);
    };
    save();
    scratch
        .run("tavern-check", &["Board.md"])
        .ends(0)
        .says_not("Obsidian's Kanban");
    assert_eq!(told(), before);
    let token = scratch.claim(id, &["--queue", "Board.md"]);
    let held = told();
    save();
    assert_eq!(told(), held);
    scratch
        .run("tavern-report", &[id, "--token", &token, "--done"])
        .succeeds();
    save();
    assert_eq!(scratch.item(id)["status"], "completed");
    let after = scratch.read("Board.md");
    has(
        &after,
        &[
            "**Complete**\n- [x] ",
            ": Say hi (worktree: false, result: answer, priority: 1)\n",
            "    ```yaml task\n    done_when:\n      - \"true\"\n    ```\n",
        ],
    );
}

#[test]
fn a_card_that_died_goes_back_to_its_column_and_what_is_done_moves() {
    let scratch = Scratch::repository();
    let card = |title: &str, indent: &str, script: &str| {
        format!("- [ ] {title} (max_attempts: 1)\n{indent}```sh\n{indent}{script}\n{indent}```\n")
    };
    let (dies, tab) = (
        card("Dies", "    ", "exit 3"),
        card("Tab", "\t", "echo > tab.txt"),
    );
    let cards = format!(
        "{dies}{}{tab}- [ ] Bare\n",
        card("Four", "    ", "echo > four.txt")
    );
    scratch.write(
        "B.md",
        format!("{HEAD}## Todo\n\n{cards}\n## Doing\n\n\n## Done\n{SETTINGS}"),
    );
    scratch
        .run("tavern-drain", &["B.md", "--agents", "1"])
        .ends(1)
        .says("2 of 4 completed, 1 failed, 1 left");
    let after = scratch.read("B.md");
    let (todo, rest) = after.split_once("## Doing\n").expect("it stands");
    has(todo, &[": Dies (max_attempts: 1)\n    ```sh\n    exit 3\n"]);
    let dead = todo.lines().find(|line| line.contains(": Dies ("));
    let id = dead.and_then(|line| line.strip_prefix("- [ ] ")?.split(':').next());
    scratch.stands(id.expect("it got one"), "dead", 1);
    assert!(rest.trim_start().starts_with("## Done\n"), "{after}");
    has(
        rest,
        &[
            ": Four (max_attempts: 1)\n    ```sh\n    echo > four.txt\n",
            ": Tab (max_attempts: 1)\n\t```sh\n\techo > tab.txt\n",
        ],
    );
}

#[test]
fn what_a_save_of_the_plugin_would_take_is_told() {
    let scratch = Scratch::initialized();
    let text = format!(
        "{HEAD}- [ ] before\n\n## Todo\n\n- [ ] a\n  ```sh\n  true\n  ```\n- [ ] b\n\n  ```yaml task\n  priority: 1\n  ```\n- [ ] c\n  - [ ] T-1: part\n- [ ] d\n\n    ```sh\n    true\n    ```\n* [ ] second\n{SETTINGS}"
    );
    scratch.write("Board.md", &text);
    let saved = saved_by_the_plugin(&text);
    assert!(
        !saved.contains("before") && !saved.contains("second"),
        "{saved}"
    );
    let checked = scratch.run("tavern-check", &["Board.md"]).ends(0);
    let told = |line: &str| format!("Board.md:{line}: warning: Obsidian's Kanban ");
    let checked = checked.says(&format!("{}drops this card when it saves", told("7:7")));
    let checked = checked.says(&format!("{}indents this script further", told("13:3")));
    let checked = checked.says(&format!("{}indents this task block further", told("17:3")));
    let checked = checked.says(&format!("{}indents this part further", told("21:3")));
    checked
        .says(&format!("{}drops this card when it saves", told("27:7")))
        .says("6 warnings");
}
