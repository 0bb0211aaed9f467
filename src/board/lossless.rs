//! Property tests: whatever the document, reading it can't fail, and a change touches nothing but its item.

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use proptest::test_runner::TestCaseError;
use serde_yaml::Value;

use crate::board::document::{Document, Item, parse};
use crate::board::edit::{NewItem, Patch, render};
use crate::board::metadata::Meaning;
use crate::board::problem;
use crate::board::state::Facts;
use crate::board::task::{Status, Task, TaskId};
use crate::board::text::{Edit, apply};

/// Lines of which half-sane documents are made.
const LINES: &[&str] = &[
    "## Pending",
    "## In Progress",
    "## In Review",
    "## Waiting",
    "## Completed",
    "## Dead Letter",
    "# Draft",
    "### Done",
    "## Notes",
    "## Archive",
    "#### Part",
    "Pending",
    "-------",
    "=======",
    "---",
    "***",
    "",
    "",
    "",
    "  ",
    "\t",
    "Some prose.",
    "  indented prose",
    "    deep prose",
    "\ttabbed prose",
    "- [ ] plain item",
    "- [ ] plain item",
    "- [x] done item",
    "- [X] T-1: done (completed: 2026-11-21T15:00:00Z, commit: 1a2b3c4)",
    "- [ ] T-2: with keys (priority: 1, after: T-1, role: coder, tags: [a, b])",
    "- [ ] T-3: held (agent: Frodo, attempt: 1)",
    "- [ ] T-4: odd (priority: 1, foo: bar)",
    "- [ ] odd (priority: 1) (role: coder)",
    "- [ ] blanks behind (role: coder)  ",
    "- [ ] (see: this)",
    "- [ ] T-7: with a block's name (priority: 1) ^k3j-9ab",
    "- [ ] ^k3j9ab",
    "- [ ] \u{a0}behind an odd blank",
    "- [ ]\u{b}T-8: behind a control character",
    "%% kanban:settings",
    "- [ ]",
    "- [ ] ",
    "- [ ] 😀 ümläut",
    "* [ ] star",
    "+ [ ] plus",
    "1. [ ] first",
    "2. [ ] second",
    "3) [ ] third",
    "10. [x] tenth",
    " - [ ] one in",
    "  - [ ] two in",
    "   - [ ] three in",
    "    - [ ] four in",
    "-   [ ] wide",
    "-\t[ ] tabbed",
    "\t- [ ] behind a tab",
    "  - [ ] T-5: named step (status: in_progress)",
    "    - [ ] T-6: deeper named step",
    "  - [x] step",
    "- bullet",
    "  - inner bullet",
    "- - [ ] second bullet on a line",
    "1. number",
    "> - [ ] quoted",
    "> quote",
    "  text of an item",
    "     text of an item",
    "  ```yaml task",
    "  done_when: cargo test",
    "  priority: 4",
    "  touches:",
    "    - src/**",
    "  - docs/**",
    "  ```",
    "```",
    "```sh",
    "  ```sh",
    "  echo hello",
    "   ```",
    "~~~",
    "<div>",
    "</div>",
    "<!-- comment -->",
    "<!--",
    "-->",
    "  <!-- inner -->",
    "[ref]: /url",
    "| a | b |",
    "|---|---|",
    "%% kanban:settings",
    "**Complete**",
];

pub(super) fn documents() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        8 => select(LINES).prop_map(str::to_owned),
        1 => (0usize..8, select(LINES)).prop_map(|(indent, line)| format!("{}{}", " ".repeat(indent), line.trim_start())),
    ];
    let front =
        select(vec!["", "", "", "---\nid: main\npriority: 3\n---\n", "---\nid: main\n---\n\n", "---\n", "\u{feff}"]);
    (front, vec(line, 0..24), select(vec!["\n", "\n", "\r\n"]), any::<bool>()).prop_map(
        |(front, lines, newline, ends)| {
            let mut text = front.replace('\n', newline);
            text.push_str(&lines.join(newline));
            if ends {
                text.push_str(newline);
            }
            text
        },
    )
}

/// With conflict markers, lone carriage returns and stray characters too: for reading only.
pub(super) fn wild_documents() -> impl Strategy<Value = String> {
    let wild = select(vec![
        "<<<<<<< HEAD",
        "=======",
        ">>>>>>> theirs",
        "|||||||",
        "\r",
        "\0",
        "\u{2028}",
        "\u{feff}",
        "- [ ] \u{1b}",
    ]);
    let line = prop_oneof![4 => select(LINES).prop_map(str::to_owned), 1 => wild.prop_map(str::to_owned), 1 => any::<String>()];
    prop_oneof![
        any::<String>(),
        "(?s).{0,80}",
        "[-*+ \t\n\\[\\]x#`>:(),a-zA-Z0-9\"'{}<!=~|\\\\\r]{0,120}",
        vec(line, 0..24).prop_map(|lines| lines.join("\n")),
    ]
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,20}",
        select(vec![
            "", " ", "a, b", "a: b", "true", "12", "1e3", "null", "~", "- x", "a #b", "#", "(x)", "it's", "\"q\"",
            "a\nb", "\u{85}", "*.rs"
        ])
        .prop_map(str::to_owned),
    ]
}

type Set = Vec<(&'static str, Option<Value>)>;

fn sets() -> impl Strategy<Value = Set> {
    let entry = prop_oneof![
        texts().prop_map(|text| ("reason", Some(Value::from(text)))),
        texts().prop_map(|text| ("agent", Some(Value::from(text)))),
        vec(texts(), 0..3).prop_map(|texts| ("touches", Some(Value::from(texts)))),
        vec(texts(), 0..3).prop_map(|texts| ("done_when", Some(Value::from(texts)))),
        (0u64..10).prop_map(|number| ("priority", Some(Value::from(number)))),
        (0u64..100).prop_map(|number| ("attempt", Some(Value::from(number)))),
        Just(("started", Some(Value::from("2026-11-22T10:00:00Z")))),
        Just(("completed", Some(Value::from("2026-11-22T10:00:00Z")))),
        Just(("commit", Some(Value::from("1234567")))),
        select(vec![
            "role",
            "priority",
            "agent",
            "attempt",
            "after",
            "completed",
            "tags",
            "done_when",
            "touches",
            "reason"
        ])
        .prop_map(|key| (key, None)),
    ];
    vec(entry, 0..4).prop_map(|mut set: Set| {
        let mut seen = Vec::new();
        set.retain(|(key, _)| {
            !seen.contains(key) && {
                seen.push(*key);
                true
            }
        });
        set
    })
}

fn patches() -> impl Strategy<Value = Patch> {
    (prop_oneof![1 => Just(None), 4 => select(&Status::ALL[..]).prop_map(Some)], sets())
        .prop_map(|(status, set)| Patch { id: Some(marker()), status, set })
}

/// The ID by which a test finds its item again.
fn marker() -> TaskId {
    "ZZ-999".parse().expect("it is an ID")
}

/// What must stay the same about an item that isn't touched.
fn view(document: &Document<'_>, item: &Item<'_>) -> (String, Status, Option<TaskId>, bool, bool) {
    let block = document.block(item).trim_end_matches(['\n', '\r']).to_owned();
    (block, item.status, item.id.clone(), item.nested, item.quarantined)
}

/// Lines that aren't blank and no separator, without line ends.
fn filled_lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim_start_matches('\u{feff}').trim_end());
    lines.filter(|line| !line.is_empty() && line.trim() != "<!-- -->").map(str::to_owned).collect()
}

fn check_change(text: &str, pick: usize, patch: &Patch) -> Result<(), TestCaseError> {
    let (document, _) = parse(text);
    let fit: Vec<&Item<'_>> = document.items().iter().filter(|item| !item.quarantined).collect();
    if fit.is_empty() {
        return Ok(());
    }
    let item = fit[pick % fit.len()];
    let edits = document.change(item, patch);
    let result = apply(text, &edits);
    let (new, _) = parse(&result);
    let Some(changed) = new.find(&marker()) else {
        return Err(TestCaseError::fail(format!("lost `{}` in {result:?}", document.block(item))));
    };

    // The item is as patched.
    let id = marker();
    let before = document.task_and_facts(item, id.clone());
    let after = new.task_and_facts(changed, id.clone());
    if let Some(status) = patch.status {
        prop_assert_eq!(changed.status, status, "in {:?}", result);
        prop_assert_eq!(changed.checked, matches!(status, Status::Completed | Status::Cancelled));
    }
    prop_assert!(!changed.quarantined, "quarantined in {:?}", result);
    // A change without a status says nothing of what it should be.
    let written = patch.status.and_then(|status| document.written(Some(item), &edits, &id, status));
    if let Some(written) = written {
        prop_assert_eq!(written, (new.block(changed).to_owned(), new.task(changed, id)), "in {:?}", result);
    }
    prop_assert_eq!(&after.0.title, &before.0.title);
    prop_assert_eq!(&after.0.description, &before.0.description);
    for (key, value) in &patch.set {
        check_key(&after, key, value.as_ref());
    }
    let mut expected = before.clone();
    let mut seen = after.clone();
    for (key, _) in &patch.set {
        forget(&mut expected, key);
        forget(&mut seen, key);
    }
    prop_assert_eq!(seen, expected);

    // All others are as before.
    let in_block =
        |span: &std::ops::Range<usize>, other: &Item<'_>| span.start < other.span.start && other.span.start < span.end;
    let is_around =
        |item: &Item<'_>, other: &Item<'_>| other.span.start < item.span.start && item.span.end <= other.span.end;
    let others = |document: &Document<'_>, item: &Item<'_>| -> Vec<_> {
        document
            .items()
            .iter()
            .filter(|other| other.span != item.span && !in_block(&item.span, other) && !is_around(item, other))
            .map(|other| view(document, other))
            .collect()
    };
    prop_assert_eq!(others(&new, changed), others(&document, item), "in {:?}", result);
    let parts = |document: &Document<'_>, item: &Item<'_>| -> Vec<Option<TaskId>> {
        document.items().iter().filter(|other| in_block(&item.span, other)).map(|other| other.id.clone()).collect()
    };
    prop_assert_eq!(parts(&new, changed), parts(&document, item), "in {:?}", result);

    // All other bytes stay: those of other lines when the block moves, every single one when it doesn't.
    let without = |text: &str, item: &Item<'_>| format!("{}\n{}", &text[..item.span.start], &text[item.span.end..]);
    let mut old_lines = filled_lines(&without(text, item));
    let mut new_lines = filled_lines(&without(&result, changed));
    if item.nested || edits.iter().all(|edit| item.span.start <= edit.span.start && edit.span.end <= item.span.end) {
        prop_assert_eq!(&new_lines, &old_lines);
        prop_assert_eq!(&result[..item.span.start], &text[..item.span.start]);
        prop_assert!(result.ends_with(&text[item.span.end..]));
    }
    old_lines.sort();
    new_lines.sort();
    prop_assert_eq!(new_lines, old_lines, "in {:?}", result);
    // A missing last line end stays missing, unless the last line was the item's.
    let was_last = text[item.span.end..].trim().is_empty();
    prop_assert!(was_last || result.ends_with('\n') == text.ends_with('\n'), "{:?}", result);
    if !text.contains("\r\n") {
        prop_assert!(!result.contains('\r') || text.contains('\r'));
    } else if !text.replace("\r\n", "").contains('\n') {
        prop_assert!(!result.replace("\r\n", "").contains('\n'), "mixed line ends in {:?}", result);
    }
    Ok(())
}

fn check_key((task, facts): &(Task, Facts), key: &str, value: Option<&Value>) {
    let texts = |value: Option<&Value>| -> Vec<String> {
        let list = value.and_then(Value::as_sequence).cloned().unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let text = value.and_then(Value::as_str);
    let number = |default: u64| value.and_then(Value::as_u64).unwrap_or(default);
    match key {
        "reason" => assert_eq!(facts.reason.as_deref(), text),
        "agent" => assert_eq!(facts.agent.as_deref(), text),
        "commit" => assert_eq!(facts.commit.as_deref(), text),
        "touches" => assert_eq!(task.touches, texts(value)),
        "done_when" => assert_eq!(task.done_when, texts(value)),
        "attempt" => assert_eq!(u64::from(facts.attempt), number(0)),
        "priority" if value.is_some() => assert_eq!(u64::from(task.priority), number(0)),
        "started" => assert_eq!(facts.started.is_some(), value.is_some()),
        "completed" => assert_eq!(facts.completed.is_some(), value.is_some()),
        "role" => assert!(value.is_none() && task.role.is_none()),
        "after" => assert!(value.is_none() && task.after.is_empty()),
        "tags" => assert!(value.is_none() && task.tags.is_empty()),
        _ => {}
    }
}

/// Makes two tasks comparable but for one key.
fn forget((task, facts): &mut (Task, Facts), key: &str) {
    match key {
        "reason" => facts.reason = None,
        "agent" => facts.agent = None,
        "commit" => facts.commit = None,
        "touches" => task.touches.clear(),
        "done_when" => task.done_when.clear(),
        "attempt" => facts.attempt = 0,
        "priority" => task.priority = 0,
        "started" => facts.started = None,
        "completed" => facts.completed = None,
        "role" => task.role = None,
        "after" => task.after.clear(),
        "tags" => task.tags.clear(),
        _ => {}
    }
}

fn check_reading(text: &str) -> Result<(), TestCaseError> {
    let (document, problems) = parse(text);
    prop_assert_eq!(document.text(), text);
    prop_assert_eq!(apply(text, &[]), text);
    let mut last = 0;
    for item in document.items() {
        prop_assert!(last <= item.span.start && item.span.start < item.span.end && item.span.end <= text.len());
        last = item.span.start;
        let block = document.block(item);
        prop_assert!(block.ends_with(['\n', '\r']) || item.span.end == text.len(), "{:?} doesn't end its line", block);
        let begins_line = item.span.start == 0 || text[..item.span.start].ends_with(['\n', '\r', '\u{feff}']);
        prop_assert!(item.nested || begins_line);
        prop_assert_eq!(item.line, problem::Position::of(text, item.span.start).line);
        let (id, title) = (&text[item.id_span().unwrap_or(0..0)], document.title(item));
        prop_assert_eq!(id, item.id.as_ref().map_or("", TaskId::as_str));
        prop_assert!(block.contains(title) && title.trim() == title);
        let box_char = &text[item.box_char - 1..item.box_char + 2];
        prop_assert_eq!(item.checked, matches!(box_char, "[x]" | "[X]"), "{}", box_char);
        document.task(item, marker());
        document.shell(item);
        document
            .entries(item, &mut |entry| assert!(!entry.name.is_empty() && text[entry.at..].starts_with(entry.name)));
    }
    for lane in document.lanes() {
        prop_assert!(lane.heading.end <= lane.body.start && lane.body.end <= text.len());
        prop_assert!(text[lane.heading.clone()].contains(lane.name));
    }
    for problem in &problems {
        prop_assert!(problem.span.start <= problem.span.end && problem.span.end <= text.len(), "{:?}", problem);
        prop_assert!(
            text.is_char_boundary(problem.span.start) && text.is_char_boundary(problem.span.end),
            "{:?}",
            problem
        );
        prop_assert!(!problem.hint.is_empty() && !problem.message.ends_with('.'));
        problem::render("path", text, problem);
    }
    Ok(())
}

fn check_add(text: &str, status: Status, new: &NewItem) -> Result<(), TestCaseError> {
    let (document, _) = parse(text);
    let edits = document.add(status, &render(new));
    prop_assert_eq!(edits.len(), 1);
    prop_assert!(edits[0].span.is_empty());
    let result = apply(text, &edits);
    let (after, _) = parse(&result);
    let Some(added) = after.find(&marker()) else {
        return Err(TestCaseError::fail(format!("the new item isn't in {result:?}")));
    };
    prop_assert_eq!(added.status, status, "in {:?}", result);
    if let Some((block, task)) = document.written(None, &edits, &marker(), status) {
        prop_assert_eq!((block.as_str(), task), (after.block(added), after.task(added, marker())), "in {:?}", result);
    }
    let is_other = |item: &&Item<'_>| item.span.start < added.span.start || added.span.end <= item.span.start;
    let others: Vec<_> = after.items().iter().filter(is_other).map(|item| view(&after, item)).collect();
    let old: Vec<_> = document.items().iter().map(|item| view(&document, item)).collect();
    prop_assert_eq!(others, old, "in {:?}", result);
    Ok(())
}

proptest! {
    // Failures become rows of the tables beside the code instead of files.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_never_fails(text in prop_oneof![documents(), wild_documents()]) {
        check_reading(&text)?;
    }

    #[test]
    fn changing_wild_documents_never_fails(text in wild_documents(), pick in 0usize..8, patch in patches()) {
        let (document, _) = parse(&text);
        if let Some(item) = document.items().get(pick) {
            apply(&text, &document.change(item, &patch));
        }
        apply(&text, &document.add(Status::Pending, &render(&NewItem { title: "new".into(), ..NewItem::default() })));
    }

    #[test]
    fn a_change_touches_only_its_item(text in documents(), pick in 0usize..8, patch in patches()) {
        check_change(&text, pick, &patch)?;
    }

    #[test]
    fn what_is_added_reads_back(text in documents(), status in select(&Status::ALL[..]), title in "[a-z]{1,9}", description in prop_oneof![Just(String::new()), documents()]) {
        let new = NewItem {
            id: Some(marker()),
            title,
            fields: vec![("priority", Value::from(1))],
            yaml_fields: vec![("done_when", Value::from(vec!["cargo test"]))],
            description,
        };
        check_add(&text, status, &new)?;
    }

    #[test]
    fn a_second_change_back_gives_the_same_item(text in documents(), pick in 0usize..8, status in select(&Status::ALL[..])) {
        let (document, _) = parse(&text);
        let Some(item) = document.items().get(pick).filter(|item| !item.quarantined) else { return Ok(()) };
        let there = Patch { id: Some(marker()), status: Some(status), set: vec![] };
        let moved = apply(&text, &document.change(item, &there));
        let (document, _) = parse(&moved);
        let item = document.find(&marker()).expect("the other test looks for it");
        // Saying what is so already changes nothing.
        let again: Vec<Edit> = document.change(item, &there);
        prop_assert_eq!(apply(&moved, &again), moved);
    }
}

#[test]
fn unknown_keys_are_kept_by_every_change() {
    let text = "- [ ] T-1: a (foo: bar, priority: 1,baz: [x,  y])\n";
    let (document, _) = parse(text);
    let patch = Patch { set: vec![("priority", None), ("role", Some("coder".into()))], ..Patch::default() };
    let result = apply(text, &document.change(&document.items()[0], &patch));
    let mut names = Vec::new();
    let (new, _) = parse(&result);
    new.entries(&new.items()[0], &mut |entry| {
        if entry.meaning == Meaning::Unknown {
            names.push((entry.name.to_owned(), result[entry.value].to_owned()));
        }
    });
    assert_eq!(names, [("foo".to_owned(), "bar".to_owned()), ("baz".to_owned(), "[x,  y]".to_owned())], "{result}");
}
