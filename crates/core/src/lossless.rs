//! Property tests: reading any document succeeds, and a change touches only its item.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::{
    BoxedStrategy, Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof,
    proptest,
};
use proptest::sample::{select, subsequence};
use proptest::test_runner::TestCaseError;
use serde_yaml::Value;

use crate::document::{Document, Item, Written, parse};
use crate::key::Shape;
use crate::metadata::{self, Field, Fields, Key, Meaning, Owner, read_field};
use crate::new_item::{NewItem, render};
use crate::patch::Patch;
use crate::problem;
use crate::rewrite::set_item_by;
use crate::states::{StateKeys, States};
use crate::task::{Mode, OnFailure, State, Status, TaskId, Timestamp};
use crate::text::{Edit, apply};

/// Lines of half-sane documents.
pub(super) const LINES: &[&str] = &[
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
    "- [X] T-1: done (due: 2026-11-21T15:00:00Z, model: 1a2b3c4)",
    "- [ ] T-2: with keys (priority: 1, after: T-1, role: coder, tags: [a, b])",
    "- [ ] T-3: held (agent: Frodo, attempt: 1)",
    "- [ ] T-4: odd (priority: 1, foo: bar)",
    "- [ ] odd (priority: 1) (role: coder)",
    "- [ ] blanks behind (role: coder)  ",
    "- [ ] (see: this)",
    "- [ ] T-11: in code `(touches: src/*.rs lib/*.rs)`",
    "- [ ] the `*` key ``(priority: 1, model: a ` and <T>)``",
    "  (priority: 1)",
    "  `(role: coder, model: expected <T>)`",
    "- [ ] T-7: with a block's name (priority: 1) ^k3j-9ab",
    "- [ ] ^k3j9ab",
    "- [ ] T-9: with fields (priority: 1) ⏫ 📅 2026-12-01 #tag %%why%% ^k3j9ab",
    "- [ ] fields alone 🔁 every week",
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
    "  model: cargo test",
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
    let front = select(vec![
        "",
        "",
        "",
        "---\nid: main\npriority: 3\n---\n",
        "---\nid: main\n---\n\n",
        "---\nkanban-plugin: board\n---\n",
        "---\nlanes: {Notes: pending}\n---\n",
        "---\n",
        "\u{feff}",
    ]);
    (
        front,
        vec(line, 0..24),
        select(vec!["\n", "\n", "\r\n"]),
        any::<bool>(),
    )
        .prop_map(|(front, lines, newline, ends)| {
            let mut text = front.replace('\n', newline);
            text.push_str(&lines.join(newline));
            if ends {
                text.push_str(newline);
            }
            text
        })
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
            "", " ", "a, b", "a: b", "true", "12", "1e3", "null", "~", "- x", "a #b", "#", "(x)",
            "it's", "\"q\"", "a\nb", "\u{85}", "*.rs", "a `", "&lt;", "\\(x)", "_a_ ~b~"
        ])
        .prop_map(str::to_owned),
        select(vec!["src/*.rs lib/*.rs", "expected <T>", "`a` ``b``"]).prop_map(str::to_owned),
    ]
}

/// Returns any value that a key may have.
pub(super) fn values(key: Key) -> BoxedStrategy<Value> {
    let ids = "T-[0-9]{1,3}";
    let words = vec("[A-Za-z][a-z0-9_@. -]{0,9}[a-z0-9]", 0..3);
    match key.shape() {
        Shape::Priority => (0u32..10).prop_map(Value::from).boxed(),
        Shape::Id => ids.prop_map(Value::from).boxed(),
        Shape::Ids => vec(ids, 0..3).prop_map(Value::from).boxed(),
        Shape::Text if key == Key::Commit => "([0-9a-f]{40}|[0-9a-f]{7,12}|[g-z]{1,9})"
            .prop_map(Value::from)
            .boxed(),
        Shape::Text => texts().prop_map(Value::from).boxed(),
        Shape::Word => "[A-Za-z0-9._-]{1,9}".prop_map(Value::from).boxed(),
        Shape::Words if key == Key::Approvals => words.prop_map(Value::from).boxed(),
        Shape::Words | Shape::Commands => {
            vec(texts().prop_map(|text| text.replace('\0', "")), 0..3)
                .prop_map(Value::from)
                .boxed()
        }
        Shape::Budget => (0u32..9)
            .prop_map(|usd| Value::Mapping([("usd".into(), usd.into())].into_iter().collect()))
            .boxed(),
        Shape::Flag | Shape::Watch => any::<bool>().prop_map(Value::from).boxed(),
        Shape::Expected => select(vec!["answer", "change"])
            .prop_map(Value::from)
            .boxed(),
        Shape::Count => (0u32..100).prop_map(Value::from).boxed(),
        Shape::Period => select(vec!["0s", "90m", "2d"])
            .prop_map(Value::from)
            .boxed(),
        Shape::Time => (0i64..4_000_000_000)
            .prop_map(|seconds| Timestamp::from_timestamp(seconds, 0).expect("a time"))
            .prop_map(|time| {
                time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
                    .into()
            })
            .boxed(),
        Shape::Status => select(&Status::ALL[..])
            .prop_map(|status| status.as_str().into())
            .boxed(),
        Shape::Lane => select(vec!["draft", "pending"])
            .prop_map(Value::from)
            .boxed(),
        Shape::Lanes => unreachable!("no item has it"),
        Shape::Moments => vec(select(vec!["start", "merge"]), 0..3)
            .prop_map(Value::from)
            .boxed(),
        Shape::Mode => select(&Mode::ALL[..])
            .prop_map(|mode| mode.as_str().into())
            .boxed(),
        Shape::OnFailure => select(&OnFailure::ALL[..])
            .prop_map(|then| then.as_str().into())
            .boxed(),
    }
}

/// Returns any keys that are `is_wanted`, each once.
fn keys(is_wanted: fn(Key) -> bool, most: usize) -> impl Strategy<Value = Vec<(Key, Value)>> {
    let keys: Vec<Key> = Key::ALL
        .into_iter()
        .filter(|key| *key != Key::Status && is_wanted(*key))
        .collect();
    subsequence(keys, 0..most).prop_flat_map(|keys| {
        keys.into_iter()
            .map(|key| values(key).prop_map(move |value| (key, value)))
            .collect::<Vec<_>>()
    })
}

/// Returns true if a text may have the key.
fn is_of_text(key: Key) -> bool {
    Key::of_text(key.as_str()).is_some()
}

fn sets() -> impl Strategy<Value = Vec<(Key, Option<Value>)>> {
    let absent = subsequence(
        Key::ALL
            .into_iter()
            .filter(|key| *key != Key::Status && is_of_text(*key))
            .collect::<Vec<_>>(),
        0..4,
    );
    (keys(is_of_text, 5), absent).prop_map(|(set, absent)| {
        let absent = absent
            .into_iter()
            .filter(|key| set.iter().all(|(other, _)| other != key))
            .map(|key| (key, None));
        let set: Vec<_> = set
            .iter()
            .cloned()
            .map(|(key, value)| (key, Some(value)))
            .chain(absent)
            .collect();
        set
    })
}

/// Returns the meaning of a key's value to a reader.
fn meant(key: Key, value: &Value) -> Option<Field<'static>> {
    let text: &'static str = String::leak(format!("({}: {})", key.as_str(), metadata::flow(value)));
    let mut meant = None;
    metadata::read_parenthesis(text, 0..text.len(), &mut |entry| {
        if let Meaning::Known(_, field) = entry.meaning {
            meant = Some(field);
        }
    });
    meant
}

fn patches() -> impl Strategy<Value = Patch> {
    (
        prop_oneof![1 => Just(None), 4 => select(&Status::ALL[..]).prop_map(Some)],
        sets(),
    )
        .prop_map(|(status, set)| Patch {
            id: Some(marker()),
            status,
            set,
        })
}

/// The ID by which a test finds its item again.
fn marker() -> TaskId {
    "ZZ-999".parse().expect("it is an ID")
}

/// Lines that aren't blank and no separator, without line ends.
fn filled_lines(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(|line| line.trim_start_matches('\u{feff}').trim_end());
    lines
        .filter(|line| !line.is_empty() && line.trim() != "<!-- -->")
        .map(str::to_owned)
        .collect()
}

/// Returns the way an item reads. If `named` comes or goes, its text may become an error.
fn told(document: &Document<'_>, item: &Item<'_>, named: Option<&TaskId>) -> String {
    let (block, status, id, nested, quarantined) = document.summary(item);
    format!(
        "{:?}",
        (block, status, id, nested, quarantined && named.is_none())
    )
}

fn check_change(text: &str, pick: usize, patch: &Patch) -> Result<(), TestCaseError> {
    let (document, _) = parse(text);
    let fit: Vec<&Item<'_>> = document
        .items()
        .iter()
        .filter(|item| !item.quarantined)
        .collect();
    if fit.is_empty() {
        return Ok(());
    }
    let item = fit[pick % fit.len()];
    let edits = document.change(item, patch);
    let result = apply(text, &edits);
    let (new, _) = parse(&result);
    let Some(changed) = new.find(&marker()) else {
        return Err(TestCaseError::fail(format!(
            "lost `{}` in {result:?}",
            document.block(item)
        )));
    };

    // The item is as patched. A change without a status does not set it.
    let id = marker();
    prop_assert!(!changed.quarantined, "quarantined in {:?}", result);
    if let Some(status) = patch.status {
        prop_assert_eq!(changed.status, status, "in {:?}", result);
        prop_assert_eq!(
            changed.checked,
            matches!(status, Status::Completed | Status::Cancelled)
        );
        let written = document.written(Some(item), &edits, &id, status);
        let (block, task) = (new.block(changed).to_owned(), new.task(changed, id));
        prop_assert_eq!(written, Some(Written { block, task }));
    }
    prop_assert_eq!(new.title(changed), document.title(item));
    prop_assert_eq!(new.description(changed), document.description(item));
    let (was, is) = (document.fields(item), new.fields(changed));
    for key in Key::ALL.into_iter().filter(|key| *key != Key::Status) {
        let expected = match patch.set.iter().find(|(other, _)| *other == key) {
            Some((_, value)) => value.as_ref().and_then(|value| meant(key, value)),
            None => was.get(key).cloned(),
        };
        prop_assert_eq!(is.get(key), expected.as_ref(), "{:?} in {:?}", key, result);
    }

    // All others are as before.
    let in_block = |span: &std::ops::Range<usize>, other: &Item<'_>| {
        span.start < other.span.start && other.span.start < span.end
    };
    let is_around = |item: &Item<'_>, other: &Item<'_>| {
        other.span.start < item.span.start && item.span.end <= other.span.end
    };
    let is_other = |item: &Item<'_>, other: &Item<'_>| {
        other.span != item.span && !in_block(&item.span, other) && !is_around(item, other)
    };
    let named = item.id.as_ref();
    let are = new
        .items()
        .iter()
        .filter(|other| is_other(changed, other))
        .map(|other| told(&new, other, named));
    let were = document
        .items()
        .iter()
        .filter(|other| is_other(item, other))
        .map(|other| told(&document, other, named));
    prop_assert_eq!(
        are.collect::<Vec<_>>(),
        were.collect::<Vec<_>>(),
        "in {:?}",
        result
    );
    let parts = |document: &Document<'_>, item: &Item<'_>| -> Vec<Option<TaskId>> {
        document
            .items()
            .iter()
            .filter(|other| in_block(&item.span, other))
            .map(|other| other.id.clone())
            .collect()
    };
    prop_assert_eq!(
        parts(&new, changed),
        parts(&document, item),
        "in {:?}",
        result
    );

    // All other bytes stay: those of other lines when the block moves, every single one when it doesn't.
    let without = |text: &str, item: &Item<'_>| {
        format!("{}\n{}", &text[..item.span.start], &text[item.span.end..])
    };
    let mut old_lines = filled_lines(&without(text, item));
    let mut new_lines = filled_lines(&without(&result, changed));
    if item.nested
        || edits
            .iter()
            .all(|edit| item.span.start <= edit.span.start && edit.span.end <= item.span.end)
    {
        prop_assert_eq!(&new_lines, &old_lines);
        prop_assert_eq!(&result[..item.span.start], &text[..item.span.start]);
        prop_assert!(result.ends_with(&text[item.span.end..]));
    }
    old_lines.sort();
    new_lines.sort();
    prop_assert_eq!(new_lines, old_lines, "in {:?}", result);
    // A missing last line end stays missing, unless the last line was the item's.
    let was_last = text[item.span.end..].trim().is_empty();
    prop_assert!(
        was_last || result.ends_with('\n') == text.ends_with('\n'),
        "{:?}",
        result
    );
    if !text.contains("\r\n") {
        prop_assert!(!result.contains('\r') || text.contains('\r'));
    } else if !text.replace("\r\n", "").contains('\n') {
        prop_assert!(
            !result.replace("\r\n", "").contains('\n'),
            "mixed line ends in {:?}",
            result
        );
    }
    Ok(())
}

fn check_reading(text: &str) -> Result<(), TestCaseError> {
    let (document, problems) = parse(text);
    prop_assert_eq!(document.text(), text);
    prop_assert_eq!(apply(text, &[]), text);
    let mut last = 0;
    for item in document.items() {
        prop_assert!(
            last <= item.span.start
                && item.span.start < item.span.end
                && item.span.end <= text.len()
        );
        last = item.span.start;
        let block = document.block(item);
        prop_assert!(
            block.ends_with(['\n', '\r']) || item.span.end == text.len(),
            "{:?} doesn't end its line",
            block
        );
        let begins_line =
            item.span.start == 0 || text[..item.span.start].ends_with(['\n', '\r', '\u{feff}']);
        prop_assert!(item.nested || begins_line);
        prop_assert_eq!(item.line, problem::Position::of(text, item.span.start).line);
        let (id, title) = (&text[item.id_span().unwrap_or(0..0)], document.title(item));
        prop_assert_eq!(id, item.id.as_ref().map_or("", TaskId::as_str));
        prop_assert!(block.contains(title) && title.trim() == title);
        let box_char = &text[item.box_char - 1..item.box_char + 2];
        prop_assert_eq!(
            item.checked,
            matches!(box_char, "[x]" | "[X]"),
            "{}",
            box_char
        );
        document.task(item, marker());
        document.shell(item);
        for entry in document.entries(item) {
            prop_assert!(!entry.name.is_empty() && text[entry.at..].starts_with(entry.name));
        }
    }
    for lane in document.lanes() {
        prop_assert!(lane.heading.end <= lane.body.start && lane.body.end <= text.len());
    }
    for problem in &problems {
        prop_assert!(
            problem.span.start <= problem.span.end && problem.span.end <= text.len(),
            "{:?}",
            problem
        );
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

/// A line without markup in its title is shown as it is spelt: as text and code.
fn check_shown(document: &Document<'_>, item: &Item<'_>) -> Result<(), TestCaseError> {
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
    let line = document.text()[item.head.clone()].replace("~~", "");
    let spelt: String = line.lines().map(str::trim).collect();
    let mut shown = String::new();
    for event in Parser::new_ext(&format!("x {line}"), Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Text(text) => shown.push_str(&text),
            Event::Code(code) => {
                let ticks = (line.len() - line.trim_end_matches('`').len()).max(1);
                shown.push_str(&format!("{0}{code}{0}", "`".repeat(ticks)));
            }
            Event::SoftBreak | Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph) => {}
            markup => prop_assert!(false, "{:?} in {:?}", markup, line),
        }
    }
    prop_assert_eq!(shown, format!("x {spelt}"));
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
        return Err(TestCaseError::fail(format!(
            "the new item isn't in {result:?}"
        )));
    };
    prop_assert_eq!(added.status, status, "in {:?}", result);
    prop_assert_eq!(after.title(added), &new.title);
    let fields = after.fields(added);
    for (key, value) in new.fields.iter().chain(&new.yaml_fields) {
        prop_assert_eq!(
            fields.get(*key).cloned(),
            meant(*key, value),
            "{:?} in {:?}",
            key,
            result
        );
    }
    check_shown(&after, added)?;
    let (block, task) = (after.block(added).to_owned(), after.task(added, marker()));
    let written = document.written(None, &edits, &marker(), status);
    prop_assert_eq!(written, Some(Written { block, task }));
    let is_other =
        |item: &&Item<'_>| item.span.start < added.span.start || added.span.end <= item.span.start;
    // Words of other items may name an item that comes along.
    let brought = after
        .items()
        .iter()
        .find(|item| !is_other(item) && item.id != added.id);
    let named = brought.and_then(|item| item.id.as_ref());
    let others = after
        .items()
        .iter()
        .filter(is_other)
        .map(|item| told(&after, item, named));
    let old = document
        .items()
        .iter()
        .map(|item| told(&document, item, named));
    prop_assert_eq!(
        others.collect::<Vec<_>>(),
        old.collect::<Vec<_>>(),
        "in {:?}",
        result
    );
    Ok(())
}

/// An ended item that is opened again goes back between the same items.
fn check_way_back(text: &str, pick: usize) -> Result<(), TestCaseError> {
    let (document, _) = parse(text);
    let open = |item: &&Item<'_>| {
        item.status == Status::Pending && !item.quarantined && !item.nested && item.within.is_none()
    };
    let open: Vec<&Item<'_>> = document.items().iter().filter(open).collect();
    let names = |document: &Document<'_>| -> Vec<String> {
        let names = document
            .items()
            .iter()
            .map(|item| document.names(item).concat());
        names.collect()
    };
    let mut sorted = names(&document);
    sorted.sort_unstable();
    let mut lanes: Vec<&str> = document
        .lanes()
        .iter()
        .map(|lane| document.lane_name(lane))
        .collect();
    lanes.sort_unstable();
    // Beside items without a name or with equal names it may stand elsewhere, and also in an indented list.
    let is_indented = document.items().iter().any(|item| item.column > 0);
    let are_alike = lanes.windows(2).any(|two| two[0] == two[1]);
    if is_indented
        || are_alike
        || open.is_empty()
        || sorted[0].is_empty()
        || sorted.windows(2).any(|two| two[0] == two[1])
    {
        return Ok(());
    }
    let item = open[pick % open.len()];
    let to = |status| Patch {
        id: Some(marker()),
        status: Some(status),
        ..Patch::default()
    };
    let edits = document.change(item, &to(Status::Completed));
    let [stood, _] = document.way(Some(item), &edits);
    let was = document.block(item);
    let ended = apply(text, &edits);
    let (after, _) = parse(&ended);
    let item = after.find(&marker());
    let back = set_item_by(
        &after,
        item,
        Some((was, Some(Status::Pending))),
        stood.as_ref(),
    );
    let back = apply(&ended, &back);
    prop_assert_eq!(
        names(&parse(&back).0),
        names(&document),
        "by way of {:?}",
        ended
    );
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
    fn who_comes_back_stands_between_the_same(text in documents(), pick in 0usize..8) {
        check_way_back(&text, pick)?;
    }

    #[test]
    fn what_is_added_reads_back(
        text in documents(),
        status in select(&Status::ALL[..]),
        title in "[a-z]{1,9}",
        description in prop_oneof![Just(String::new()), documents()],
        (fields, yaml_fields) in keys(is_of_text, 9).prop_flat_map(|keys| (0..=keys.len()).prop_map(move |at| {
            (keys[..at].to_vec(), keys[at..].to_vec())
        })),
    ) {
        let new = NewItem { id: Some(marker()), title, fields, yaml_fields, description };
        check_add(&text, status, &new)?;
    }

    #[test]
    fn a_second_change_back_gives_the_same_item(text in documents(), pick in 0usize..8, status in select(&Status::ALL[..])) {
        let (document, _) = parse(&text);
        let Some(item) = document.items().get(pick).filter(|item| !item.quarantined) else { return Ok(()) };
        let there = Patch { id: Some(marker()), status: Some(status), ..Patch::default() };
        let moved = apply(&text, &document.change(item, &there));
        let (document, _) = parse(&moved);
        let item = document.find(&marker()).expect("the other test looks for it");
        // Setting the present values changes nothing.
        let again: Vec<Edit> = document.change(item, &there);
        prop_assert_eq!(apply(&moved, &again), moved);
    }
}

#[test]
fn what_a_tab_indents_reads_the_same_in_a_numbered_list() {
    let new = NewItem {
        id: Some(marker()),
        title: "a".into(),
        description: "-\t[ ] tabbed\n  ```".into(),
        yaml_fields: vec![(Key::Role, "coder".into())],
        ..NewItem::default()
    };
    let text = "## Pending\n1. [ ] first";
    check_add(text, Status::Pending, &new).unwrap_or_else(|fault| panic!("{text:?}: {fault}"));
}

#[test]
fn neighbours_never_run_together() {
    for (text, pick) in [
        // A paragraph and the underline behind the item.
        ("# Done\n# Todo\ntext\n- [ ] a\n---\n- [ ] b\n", 0),
        // A list that could not interrupt the paragraph.
        ("# Done\n# Todo\ntext\n1. [ ] a\n2. [ ] b\n", 0),
        // A rule that would become front matter.
        ("- [ ] a\n---\nid: x\n---\n# Done\n", 0),
        // The same where both are in a list of their own.
        ("# Done\n# Todo\n- - [ ] z\n   - [ ] a\n    - [ ] b\n", 1),
        // An indented item that would become the part of another one.
        (
            "# Done\n# Todo\n- [ ] T-1: z\n-   [ ] a\n  - [ ] T-2: b\n",
            1,
        ),
        // A paragraph that would go on with the item before.
        ("# Done\n# Todo\n- [ ] z\n- [ ] a\n  ```\n  ```\ntext\n", 1),
        // An underlined heading that would go on with the item before.
        ("# Todo\n- [ ] z\n- [ ] a\n  <!-- -->\nDone\n----\n", 1),
    ] {
        let patch = Patch {
            id: Some(marker()),
            status: Some(Status::Completed),
            ..Patch::default()
        };
        check_change(text, pick, &patch).unwrap_or_else(|fault| panic!("{text:?}: {fault}"));
    }
}

/// Returns any state that keys can express.
fn states() -> impl Strategy<Value = State> {
    let is_of_state = |key: Key| key.owner() == Owner::State || key == Key::Answer;
    (select(&Status::ALL[..]), keys(is_of_state, 18)).prop_map(|(status, keys)| {
        let fields = Fields(
            keys.iter()
                .filter_map(|(key, value)| Some((*key, read_field(key.shape(), value)?)))
                .collect(),
        );
        State::read(status, &fields)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// A written state is read back the same, independent of the earlier state and the place of its keys: in the
    /// text or kept apart.
    #[test]
    fn a_state_is_read_as_it_was_written(old in states(), new in states(), is_in_block in any::<bool>()) {
        let line = |(key, value): (Key, Option<Value>)| format!("  {}: {}\n", key.as_str(), metadata::flow(&value.unwrap_or_default()));
        let keys: String = old.keys().into_iter().filter(|(key, _)| is_of_text(*key)).map(line).collect();
        let block = if is_in_block { format!("\n  ```yaml task\n{keys}  ```\n") } else { String::new() };
        let mut text = format!("- [ ] T-1: a\n{block}");
        let remembered = |state: &State| {
            let mut states = States::default();
            states.set("T-1".parse().expect("an ID"), StateKeys::of(state));
            Arc::new(States::read(&states.write()).expect("it was just written"))
        };
        let mut states = remembered(&old);
        for state in [&old, &new] {
            let (document, problems) = parse(&text);
            prop_assert_eq!(problems, vec![], "{}", text);
            let document = document.with_states(states);
            let result = apply(&text, &document.change(&document.items()[0], &Patch::from(state)));
            let (document, problems) = parse(&result);
            prop_assert_eq!(problems, vec![], "{}", result);
            if !is_in_block {
                check_shown(&document, &document.items()[0])?;
            }
            states = remembered(state);
            let document = document.with_states(states.clone());
            prop_assert_eq!(&document.task_of(&document.items()[0]).state, state, "{}", result);
            text = result;
        }
    }
}

#[test]
fn unknown_keys_are_kept_by_every_change() {
    let text = "- [ ] T-1: a (foo: bar, priority: 1,baz: [x,  y])\n";
    let (document, _) = parse(text);
    let patch = Patch {
        set: vec![(Key::Priority, None), (Key::Role, Some("coder".into()))],
        ..Patch::default()
    };
    let result = apply(text, &document.change(&document.items()[0], &patch));
    let (new, _) = parse(&result);
    let unknown = new
        .entries(&new.items()[0])
        .into_iter()
        .filter(|entry| entry.meaning == Meaning::Unknown);
    let names: Vec<_> = unknown
        .map(|entry| (entry.name.to_owned(), result[entry.value].to_owned()))
        .collect();
    assert_eq!(
        names,
        [
            ("foo".to_owned(), "bar".to_owned()),
            ("baz".to_owned(), "[x,  y]".to_owned())
        ],
        "{result}"
    );
}
