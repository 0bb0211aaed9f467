//! Documents as people write them, odd ones above all, and the expected result of reading them.

use crate::document::{Document, Item, open, parse, parse_as_markdown};
use crate::lane::LaneKind;
use crate::parse_with_states::with_states;
use crate::problem::Severity;
use crate::state::Phase;
use crate::task::{Budget, Consent, Expected, Mode, OnFailure, State, Status, Task, TaskId};

/// An item with these keys, as it reads with the status.
pub(super) fn task_with(status: Status, keys: &str) -> Task {
    let keys = if keys.is_empty() {
        String::new()
    } else {
        format!(" ({keys})")
    };
    let document = with_states(&format!("- [ ] T-k3f9: Do it{keys}\n"));
    assert_eq!(problems(document.text()), [] as [&str; 0]);
    document.task_as(
        &document.items()[0],
        "T-k3f9".parse().expect("it is an ID"),
        status,
    )
}

/// Each item as `line status ID? title`, with `!` before it if it is quarantined and `~` if it is nested.
fn items(text: &str) -> Vec<String> {
    let (document, _) = parse(text);
    document
        .items()
        .iter()
        .map(|item| shown(&document, item))
        .collect()
}

fn shown(document: &Document<'_>, item: &Item<'_>) -> String {
    let marks = format!(
        "{}{}",
        if item.quarantined { "!" } else { "" },
        if item.nested { "~" } else { "" }
    );
    let id = item
        .id
        .as_ref()
        .map(|id| format!("{id}: "))
        .unwrap_or_default();
    format!(
        "{marks}{} {} {id}{}",
        item.line,
        item.status.as_str(),
        document.title(item)
    )
}

/// Each problem as `code "text of its span"`, with `?` before a warning.
fn problems(text: &str) -> Vec<String> {
    let mark = |severity| {
        if severity == Severity::Warning {
            "?"
        } else {
            ""
        }
    };
    let (_, problems) = parse(text);
    problems
        .iter()
        .map(|p| format!("{}{} {:?}", mark(p.severity), p.code, &text[p.span.clone()]))
        .collect()
}

fn task(text: &str) -> Task {
    let (document, problems) = parse(text);
    assert_eq!(problems, [], "{text}");
    document.task(
        &document.items()[0],
        "T-1".parse::<TaskId>().expect("it is an ID"),
    )
}

#[test]
fn items_are_found_wherever_markdown_has_them() {
    let rows: &[(&str, &[&str])] = &[
        ("", &[]),
        ("\u{feff}", &[]),
        ("\0", &[]),
        ("no items here\n", &[]),
        ("- [ ] a", &["1 pending a"]),
        ("- [ ] a\r\n- [x] b\r\n", &["1 pending a", "2 completed b"]),
        ("\u{feff}- [ ] a\n", &["1 pending a"]),
        ("- [ ] a\r- [x] b\r", &["1 pending a", "1 completed b"]),
        (
            "* [ ] a\n+ [X] b\n1. [ ] c\n2) [ ] d\n",
            &["1 pending a", "2 completed b", "3 pending c", "4 pending d"],
        ),
        ("   - [ ] a\n", &["1 pending a"]),
        // Indented by four columns it is code, as in a fence; quotes and HTML are text.
        ("    - [ ] a\n", &[]),
        ("```\n- [ ] a\n```\n- [ ] b\n", &["4 pending b"]),
        ("> - [ ] a\n\n- [ ] b\n", &["3 pending b"]),
        ("<div>\n- [ ] a\n</div>\n\n- [ ] b\n", &["5 pending b"]),
        ("<!--\n- [ ] a\n-->\n- [ ] b\n", &["4 pending b"]),
        // No blank behind the box, or none in it.
        ("- [ ]a\n- [] b\n- [x]: c\n", &[]),
        // A plain list groups items; an item's own list are its steps, unless they are named.
        (
            "- Backend\n  - [ ] a\n  - [ ] b\n",
            &["2 pending a", "3 pending b"],
        ),
        (
            "- [ ] a\n  - [ ] step\n  - [ ] T-2: part\n    - [x] step\n    - [x] T-3: deep\n",
            &[
                "1 pending a",
                "~3 pending T-2: part",
                "~5 completed T-3: deep",
            ],
        ),
        ("- - [ ] a\n", &["~1 pending a"]),
        // Titles are kept as typed.
        ("- [ ]   spaced out  \n", &["1 pending spaced out"]),
        (
            "- [ ] first line\n  second line\n",
            &["1 pending first line"],
        ),
        (
            "- [ ] 😀 done? (see above)\n",
            &["1 pending 😀 done? (see above)"],
        ),
        ("- [ ] # not a heading\n", &["1 pending # not a heading"]),
        ("- [ ] title\n  ===\n", &["1 pending title"]),
        // The name of a block, as Obsidian has it, stays at the line's end and belongs to no title.
        (
            "- [ ] T-1: a (priority: 1) ^k3j9ab\n- [ ] 2 ^2 b\n- [ ] ^x\n",
            &["1 pending T-1: a", "2 pending 2 ^2 b", "3 pending ^x"],
        ),
        // All kinds of blanks.
        (
            "- [ ] \u{a0}T-1: a\n- [ ]\u{b}b\n",
            &["1 pending T-1: a", "2 pending b"],
        ),
        // IDs.
        (
            "- [ ] AUTH-7: a\n- [ ] WI-001:b\n- [ ] Fix: c\n- [ ] T-k3f9.1: d\n- [ ] HTTP-2://x\n- [ ] t-1: e\n",
            &[
                "1 pending AUTH-7: a",
                "2 pending WI-001: b",
                "3 pending Fix: c",
                "4 pending T-k3f9.1: d",
                "5 pending HTTP-2://x",
                "6 pending t-1: e",
            ],
        ),
        // An empty item is a field to fill in. With any content it is reported and not worked.
        (
            "- [ ]\n- [x] \n\n- [ ] T-1:\n- [ ] (role: coder)\n- [ ]\n  a\n- [ ] a\n  - [ ]\n",
            &[
                "!4 pending T-1: ",
                "!5 pending ",
                "!6 pending ",
                "8 pending a",
            ],
        ),
        ("- [ ]", &[]),
    ];
    for (text, expected) in rows {
        assert_eq!(items(text), *expected, "{text:?}");
    }
}

#[test]
fn lanes_are_headings_of_any_level() {
    let rows: &[(&str, &[&str])] = &[
        (
            "## Pending\n- [ ] a\n## Doing\n- [ ] b\n## Done\n- [ ] c\n- [x] d\n",
            &[
                "2 pending a",
                "4 in_progress b",
                "6 completed c",
                "7 completed d",
            ],
        ),
        (
            "Pending\n---\n- [ ] a\n\nIn Review\n===\n- [ ] b\n- [ ] c (status: approved)\n",
            &["3 pending a", "7 in_review b", "8 approved c"],
        ),
        // Deeper headings belong to the lane, until one that is a lane itself.
        (
            "# Waiting\n## Part\n- [ ] a\n## Failed\n- [ ] b\n## Other\n- [ ] c\n",
            &["3 waiting a", "5 dead b", "7 waiting c"],
        ),
        ("- [ ] a\n# Draft\n- [ ] b\n", &["1 pending a", "3 draft b"]),
        // If there are lanes, items under other headings are not worked.
        (
            "# Notes\n- [ ] a\n- [ ] b\n# Pending\n- [ ] c\n# Done",
            &["!2 pending a", "!3 pending b", "5 pending c"],
        ),
        (
            "# Notes\n- [ ] a\n# More\n- [x] b\n",
            &["2 pending a", "4 completed b"],
        ),
        // Headings inside items, quotes and fences are no lanes.
        (
            "- [ ] a\n  ## Done\n- [ ] b\n",
            &["1 pending a", "3 pending b"],
        ),
        ("> ## Done\n\n- [ ] b\n", &["3 pending b"]),
        // Named parts of a draft are drafts; otherwise only a part's own line counts.
        (
            "## Draft\n- [ ] a\n  - [ ] T-1: b\n## Completed\n- [x] c\n  - [ ] T-2: d\n",
            &[
                "2 draft a",
                "~3 draft T-1: b",
                "5 completed c",
                "~6 pending T-2: d",
            ],
        ),
        (
            "- [ ] a (status: waiting)\n- [x] b (status: cancelled)\n",
            &["1 waiting a", "2 cancelled b"],
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(items(text), *expected, "{text:?}");
    }
    let (document, _) = parse("intro\n# Todo\n\ntext\n## Part\n- [ ] a\n# Done ##\n");
    let lanes: Vec<_> = document
        .lanes()
        .iter()
        .map(|lane| {
            (
                lane.kind,
                document.lane_name(lane),
                &document.text()[lane.body.clone()],
            )
        })
        .collect();
    assert_eq!(
        lanes,
        [
            (LaneKind::Pending, "Todo", "\ntext\n## Part\n- [ ] a\n"),
            (LaneKind::Completed, "Done", "")
        ]
    );
    assert!(document.has_lanes());
}

#[test]
fn lanes_are_those_of_a_board_alone() {
    let rows: &[(&str, &[&str])] = &[
        // A single heading never makes lanes, regardless of its place and content.
        (
            "## A\n- [ ] a\n## TODO\n- [ ] b\n## Done\n## B\n- [ ] c\n",
            &["2 pending a", "4 pending b", "7 pending c"],
        ),
        (
            "## Done\n- [ ] a\n## A\n- [ ] b\n",
            &["2 pending a", "4 pending b"],
        ),
        (
            "## A\n- [ ] a (status: draft)\n## Draft\n- [x] b\n",
            &["2 draft a", "4 completed b"],
        ),
        // Lanes count with or without items, other headings only with items right under them. Headings in a
        // lane don't count.
        (
            "## A\n- [ ] a\n## Doing\n## Done\n- [ ] b\n",
            &["!2 pending a", "5 completed b"],
        ),
        (
            "# Doing\n## A\n- [ ] a\n## B\n- [ ] b\n",
            &["3 in_progress a", "5 in_progress b"],
        ),
        (
            "# A\n## B\ntext\n- plain\n## Doing\n- [ ] a\n",
            &["6 in_progress a"],
        ),
        (
            "# A\n- plain\n\n  - [ ] a\n# Doing\n- [ ] b\n",
            &["4 pending a", "6 pending b"],
        ),
        (
            "- [ ] a\n# Doing\n- [ ] b\n",
            &["1 pending a", "3 in_progress b"],
        ),
        // A typo of a lane's name counts as neither; an archive counts anywhere.
        (
            "# Complted\n- [ ] a\n# Doing\n- [ ] b\n",
            &["!2 pending a", "4 in_progress b"],
        ),
        (
            "# A\n- [ ] a\n# Doing\n- [ ] b\n# Archive\n- [ ] c\n",
            &["2 pending a", "4 pending b", "6 completed c"],
        ),
        // Front matter makes it a board.
        (
            "---\nid: x\n---\n# A\n- [ ] a\n# Done\n- [ ] b\n",
            &["!5 pending a", "7 completed b"],
        ),
        (
            "---\nkanban-plugin: board\n---\n# A\n- [ ] a\n# Done\n- [ ] b\n",
            &["!5 pending a", "7 completed b"],
        ),
        (
            "---\ntitle: x\n---\n# A\n- [ ] a\n# Done\n- [ ] b\n",
            &["5 pending a", "7 pending b"],
        ),
        // Keys that other programs use, too, count only where none of theirs is beside them.
        (
            "---\nname: x\nabout: y\n---\n# A\n- [ ] a\n# Done\n- [ ] b\n",
            &["6 pending a", "8 pending b"],
        ),
        (
            "---\nname: x\nabout: y\nrole: z\n---\n# A\n- [ ] a\n# Done\n- [ ] b\n",
            &["!7 pending a", "9 completed b"],
        ),
        // Text between two rules is no front matter.
        (
            "---\n\n- [ ] a\n\n---\n\n- [ ] b\n",
            &["3 pending a", "7 pending b"],
        ),
        (
            "---\n- [x] a: b\n---\n- [ ] b\n",
            &["2 completed a: b", "4 pending b"],
        ),
        (
            "---\n+ [ ] a: b\n---\n- [ ] b\n",
            &["2 pending a: b", "4 pending b"],
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(items(text), *expected, "{text:?}");
        // An underlined heading is never plain.
        for text in [(*text).to_owned(), format!("{text}\nEnd\n===\n")] {
            let (opened, (markdown, _)) = (open(&text), parse_as_markdown(&text));
            for document in [&opened, &markdown] {
                let told: Vec<_> = (0..document.count())
                    .map(|at| document.status_at(at))
                    .collect();
                let items: Vec<_> = document
                    .items()
                    .iter()
                    .map(|item| shown(document, item))
                    .collect();
                assert_eq!(items, *expected, "{text:?}");
                assert_eq!(
                    told,
                    document
                        .items()
                        .iter()
                        .map(|item| item.status)
                        .collect::<Vec<_>>(),
                    "{text:?}"
                );
            }
        }
    }
    let (_, found) = parse("# A\n- [ ] a\n# Archive\n# Doing\n# Done\n");
    assert_eq!(
        found[0].message,
        "`A` is not a lane, so agents skip the item under it: `Doing` in line 4 makes this a board"
    );
    let (_, found) =
        parse("---\ntitle: x\nmax_attempts: 2\n---\n# A\n- [ ] a\n# B\n- [ ] b\n# Done\n");
    assert_eq!(
        found[0].message,
        "`A` is not a lane, so agents skip the item under it: `max_attempts` in the front matter makes this a board"
    );
}

#[test]
fn what_people_write_wrongly_is_told() {
    let rows: &[(&str, &[&str])] = &[
        (
            "- [ ] a (priorty: 1)\n- [ ] T-1: b (Due: friday)\n",
            &["?unknown-key \"priorty\"", "?unknown-key \"Due\""],
        ),
        (
            "- [ ] T-1: a (priority: 1, Tags: x)\n",
            &["unknown-key \"Tags\""],
        ),
        (
            "- [ ] a (priority: 1, rolle: coder)\n",
            &["?unknown-key \"rolle\""],
        ),
        ("- [ ] a (see: this)\n", &[]),
        // Words that differ from a key by more than one typo are no keys.
        ("- [ ] a (pages: 3)\n- [ ] T-1: b (note: this)\n", &[]),
        ("- [ ] a (note: so, afer: b)\n", &["unknown-key \"afer\""]),
        (
            "- [ ] a (After: T-1)\n- [ ] b (role: x, Done-When: c)\n",
            &["unknown-key \"After\"", "unknown-key \"Done-When\""],
        ),
        ("- [ ] a (See: b, Re-do: c)\n", &[]),
        ("- [x] a (priorty: 1)\n", &["?unknown-key \"priorty\""]),
        (
            "- [x] a (priority: urgent)\n  - [ ] T-1: b (priority: urgent)\n",
            &["?wrong-type \"priority\"", "?wrong-type \"priority\""],
        ),
        (
            "- [ ] a (priority: urgent)\n",
            &["?wrong-type \"priority\""],
        ),
        ("- [ ] a (after: {b: c})\n", &["wrong-type \"{b: c}\""]),
        (
            "- [ ] a (status: done)\n- [ ] T-1: b (status: done)\n",
            &["wrong-type \"done\"", "wrong-type \"done\""],
        ),
        (
            "- [ ] a (started: yesterday, completed: soon)\n- [x] T-1: b (completed: soon)\n",
            &[],
        ),
        (
            "- [ ] T-1: a (not_before: 2026-11-22 10:00, due: 2026-11-22)\n",
            &[],
        ),
        (
            "- [ ] a (not_before: tomorrow)\n",
            &["wrong-type \"tomorrow\""],
        ),
        (
            "- [ ] a (model: \"half)\n- [ ] T-1: a (model: \"half)\n",
            &["?wrong-type \"model\"", "wrong-type \"\\\"half\""],
        ),
        (
            "- [ ] a (role: coder, role: reviewer)\n",
            &["duplicate-key \"role\""],
        ),
        (
            "- [ ]\n- [ ] T-1:\n",
            &["?empty-box \"[ ]\"", "empty-title \"[ ] T-1:\""],
        ),
        (
            "- [] a\n- [-] b\n- [x]c\n- [1] d\n- [x](link)\n",
            &["?odd-box \"[]\"", "?own-state \"[-]\"", "?odd-box \"[x]\""],
        ),
        (
            "- [/] a\n- [/] b\n- [<] c\n",
            &["?own-state \"[/]\"", "?own-state \"[<]\""],
        ),
        (
            "- [ ] ~~a~~\n- [x] ~~b~~\n- [ ] ~~c~~ d ~~e~~\n",
            &["?own-state \"~~a~~\""],
        ),
        (
            "- [ ] a\n\n%%\n- [] b\n%%\n\n```\n%% x\n```\n- [] c\n",
            &["?odd-box \"[]\""],
        ),
        ("Text.\n\n1. a\n   - b\n2. c\n", &["?plain-list \"1. a\""]),
        (
            "Text\n-[ ] a\n\n  [x] b\n\n- [ ] c\n  [ ] d\n",
            &["?odd-box \"-[ ]\"", "?odd-box \"[x]\""],
        ),
        ("Text\n    - [ ] a\n", &["?odd-box \"- [ ]\""]),
        (
            "- [ ] a\n-[ ] b\n- [ ] c\n[x] d\n  [ ] e\n",
            &["?odd-box \"-[ ]\"", "?odd-box \"[x]\""],
        ),
        (
            "1.[ ] a\n2.[ ] b\n\n• [ ] c\n\n–[ ] d\n",
            &[
                "?odd-box \"1.[ ]\"",
                "?odd-box \"2.[ ]\"",
                "?odd-box \"• [ ]\"",
                "?odd-box \"–[ ]\"",
            ],
        ),
        ("[x]: /there\n\n[x] (of 3)\n*[x]*\n", &["?odd-box \"[x]\""]),
        // Guarding keys are not read in the middle of a title.
        (
            "- [ ] a\n- [ ] b (after: a).\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] a\n- [ ] b [after: a] (role: x)\n> b\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] T-1: a\n- [ ] T-2: b (after: T-1\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] a （done_when: x） b\n",
            &["misplaced-key \"done_when\""],
        ),
        (
            "- [ ] a (approve: merge) <!-- b -->\n",
            &["misplaced-key \"approve\""],
        ),
        (
            "- [ ] a (priority: 1, agent: bob)\n",
            &["?misplaced-key \"agent\""],
        ),
        (
            "- [ ] a\n- [ ] b (reason: x, after: a)\n",
            &["?misplaced-key \"reason\"", "misplaced-key \"after\""],
        ),
        // Keys kept apart from the text are prose behind an ID, too: title if alone, else reported. In a
        // block they have no effect.
        (
            "- [ ] T-1: a (agent: bob)\n- [ ] T-2: b (answer: 42)\n- [ ] T-3: c (approvals: Anna)\n",
            &[],
        ),
        (
            "- [ ] T-1: a (priority: 1, commit: abc123)\n",
            &["?misplaced-key \"commit\""],
        ),
        (
            "- [ ] T-1: a (author: Anna, role: x)\n- [ ] T-2: b (answer: 42, role: x)\n",
            &["?misplaced-key \"author\""],
        ),
        (
            "- [ ] a\n  ```yaml task\n  question: which?\n  ```\n",
            &["?unknown-key \"question\""],
        ),
        (
            "- [ ] a (answer: 42)\n- [ ] b (question: which, priority: 1)\n",
            &["?misplaced-key \"question\""],
        ),
        (
            "- [ ] T-1: a (question: may we?) (status: null)\n- [ ] T-2: b (attempt: 1, commit: abc123)\n",
            &[],
        ),
        (
            "- [x] T-1: a (commit: abc123)\n- [ ] T-2: b (reason: late)\n- [ ] T-3: c (agent: x, status: in_progress)\n",
            &["?misplaced-key \"agent\""],
        ),
        // A number or a flag has no words that could be lost.
        (
            "- [ ] T-1: a (attempt: 3, priority: 1, allowed: true)\n",
            &["?unknown-key \"attempt\"", "?unknown-key \"allowed\""],
        ),
        // Nor where its parenthesis continues or begins below.
        (
            "- [ ] a\n- [ ] b (after: a,\n  c)\n- [ ] c\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] a\n- [ ] b (after:\n  a)\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] a\n- [ ] b (priority: 1,\n  after: a)\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] b (done_when:\n  \"false\")\n",
            &["misplaced-key \"done_when\""],
        ),
        (
            "- [ ] b (done_when=false)\n- [ ] c (approve=start)\n",
            &["misplaced-key \"done_when\"", "misplaced-key \"approve\""],
        ),
        (
            "- [ ] a\n- [ ] ![after a](x.png)\n- [ ] b <i t=\"(after: a)\">\n",
            &[],
        ),
        (
            "- [ ] a\n- [ ] b\n  (after: a)\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] T-1: a\n- [ ] T-2: b (after: T-1,\n  T-1)\n",
            &["misplaced-key \"after\""],
        ),
        // Nor further below, where it names an item that is no dependency yet.
        (
            "- [ ] T-1: a\n- [ ] T-2: b\n  Words (after: T-1).\n- [ ] c\n\n  (after: a)\n",
            &["misplaced-key \"after\"", "misplaced-key \"after\""],
        ),
        (
            "- [ ] T-1: a\n- [ ] T-2: b (after: T-1)\n\n  It needs it (after: T-1, after lunch).\n",
            &[],
        ),
        (
            "- [ ] a\n- [ ] b\n\n  > (after: a)\n\n  ````\n  ```\n  (after: a)\n  ````\n  `(after: a)` (done_when: x, y: z)\n  - [ ] c (after: a)\n",
            &[],
        ),
        // Anywhere in its brackets, also with a typo.
        (
            "- [ ] a\n- [ ] b (priority: 1, after: a).\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] a\n- [ ] b (x --> y, after: a) z\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] a\n- [ ] b (@bob (or Sam), after: a)\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] a\n- [ ] b (depends_on: a).\n",
            &["misplaced-key \"depends_on\""],
        ),
        (
            "- [ ] a\n- [ ] b (After: a) x\n",
            &["misplaced-key \"After\""],
        ),
        (
            "- [ ] a\n- [ ] b (tags: x; after: a).\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] a\n- [ ] b (tags: x; after: a; due: 2026-12-01)\n",
            &[],
        ),
        // A parenthesis that begins below an ID and continues is keys; other text is prose.
        (
            "- [ ] a\n- [ ] T-1: b\n  (priority: 1,\n  after: a)\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] a\n- [ ] T-1: b\n  (see: c,\n  d)\n  (after: d)\n",
            &[],
        ),
        // Nor with other brackets, in a link to a note, or with other words for it that name an item.
        (
            "- [ ] a\n- [ ] b {after: a}\n- [ ] c（after：a）\n",
            &["misplaced-key \"after\"", "misplaced-key \"after\""],
        ),
        (
            "- [ ] a\n- [ ] b (after: [[a]]) c\n",
            &["misplaced-key \"after\""],
        ),
        (
            "- [ ] a: b\n- [ ] c (depends on a)\n- [ ] d (2h, Blocked by: c and a)\n- [ ] e [after a]\n",
            &[
                "misplaced-key \"depends on\"",
                "misplaced-key \"Blocked by\"",
                "misplaced-key \"after\"",
            ],
        ),
        (
            "- [ ] a\n- [ ] b (requires: a)\n- [ ] c (depends: a) d\n",
            &["misplaced-key \"requires\"", "misplaced-key \"depends\""],
        ),
        (
            "- [ ] a\n- [ ] b (dependsOn: d)\n- [ ] c (tags: x, depends on: a)\n",
            &["unknown-key \"dependsOn\"", "unknown-key \"depends on\""],
        ),
        (
            "# a\n- [ ] b (requires: pip install)\n- [ ] c (blocked by Bob)\n- [ ] d (requires a) e\n- [ ] T-1: f (depends on: you)\n- [ ] g depends on b\n",
            &[],
        ),
        (
            "- [ ] a\n- [ ] b (blocked: a)\n- [ ] T-1: c (waits for: a)\n- [ ] d (needs a, after = a)\n",
            &[
                "misplaced-key \"blocked\"",
                "misplaced-key \"waits for\"",
                "misplaced-key \"needs\"",
            ],
        ),
        (
            "- [ ] e\n- [ ] a <!-- after: e -->\n- [ ] b (done when: x)\n- [ ] c (not before: 2126-12-01)\n- [ ] d (not before: noon)\n",
            &[
                "misplaced-key \"after\"",
                "misplaced-key \"done when\"",
                "misplaced-key \"not before\"",
            ],
        ),
        (
            "- [ ] T-1: a (blocked: Bob is ill)\n- [ ] T-2: b (requires: x)\n",
            &["unknown-key \"requires\""],
        ),
        // A blank before the colon, a full-width colon and `|` are read.
        (
            "- [ ] a\n- [ ] b (after : a)\n- [ ] c (after：a)\n- [ ] d (tags: x | after: a)\n",
            &[],
        ),
        // Code and links are prose.
        (
            "- [ ] a\n- [ ] b `f(needs: x)` `(after: a)`\n- [ ] c f(needs: x) {budget: {usd: 2}}\n- [ ] d [after: a](b) c\n",
            &[],
        ),
        ("- [ ] a\n- [ ] b(after: a)\n", &[]),
        (
            "- [ ] a\n- [ ] b (after: lunch) c\n- [x] c (after: a).\n- [ ] d (see: a) (priority: 1).\n",
            &[],
        ),
        (
            "- [ ] a\n  ```yaml task\n  priority: 1\n  prority: 2\n  ```\n",
            &["unknown-key \"prority\""],
        ),
        // A key counts as spelt: quotes are accepted only in the block, escapes nowhere.
        (
            "- [ ] a (\"priority\": 1)\n",
            &["?unknown-key \"\\\"priority\\\"\""],
        ),
        (
            "- [ ] a (tags: x, mood: good)\n- [ ] b (mood: good, tags: x)\n",
            &[],
        ),
        (
            "- [ ] T-1: a (tags: x, mood: good)\n- [ ] b (tags: x, role: y, mood: good)\n",
            &["?unknown-key \"mood\"", "?unknown-key \"mood\""],
        ),
        ("- [ ] a (tags: x, afer: T-1)\n", &["unknown-key \"afer\""]),
        (
            "- [ ] a (tags: x, \"priority\": 1)\n",
            &["unknown-key \"\\\"priority\\\"\""],
        ),
        (
            "- [ ] a (priority: 1, 'x\\u0041': 1)\n",
            &["?unknown-key \"'x\\\\u0041'\""],
        ),
        (
            "- [ ] a\n  ```yaml task\n  tags: [b]\n  \"rolle\": x\n  ```\n",
            &["?unknown-key \"rolle\""],
        ),
        (
            "- [ ] a\n  ```yaml task\n  \"r\\u006fle\": x\n  \"tags\": b\n  ```\n",
            &["broken-task-block \"\\\"r\\\\u006fle\\\": x\""],
        ),
        (
            "- [ ] a\n  ```yaml task\n  \"\\u0061\": x\n  \"tags\": b\n  ```\n",
            &["broken-task-block \"\\\"\\\\u0061\\\": x\""],
        ),
        (
            "- [ ] a (role: x)\n  ```yaml task\n  role: y\n  ```\n",
            &["?duplicate-key \"role\""],
        ),
        (
            "- [ ] a\n  ```yaml task\n  role: y\n  touches: *.rs\n  ```\n",
            &["broken-task-block \"touches: *.rs\""],
        ),
        (
            "- [ ] a\n  ```yaml task\n  - role\n  ```\n",
            &["broken-task-block \"- role\""],
        ),
        (
            "- [ ] a\n  ```yaml task\n  ```\n  ```yaml task\n  ```\n",
            &["?second-task-block \"```yaml task\""],
        ),
        (
            "- [ ] a\n  ```sh\n  x\n- [ ] b\n",
            &["unclosed-fence \"```sh\""],
        ),
        ("```\n- [ ] a\n", &["hidden-items \"```\""]),
        ("- [ ] a\n\n```\nb\n", &["?unclosed-fence \"```\""]),
        ("<!-- note\n- [ ] a\n", &["?unclosed-comment \"<!--\""]),
        (
            "## Pendign\n- [ ] a\n## Done\n",
            &["unknown-lane \"## Pendign\""],
        ),
        (
            "<<<<<<< HEAD\n- [ ] a\n=======\n- [ ] b\n>>>>>>> theirs\n",
            &["conflict-markers \"<<<<<<< HEAD\""],
        ),
        (
            "<<<<<<< HEAD\n- [ ] a\n",
            &["conflict-markers \"<<<<<<< HEAD\""],
        ),
        (
            "---\nid: [\n---\n- [ ] a\n",
            &["broken-front-matter \"---\""],
        ),
        (
            "---\npriority: 0.8\n---\n- [ ] a\n",
            &["?wrong-type \"priority: 0.8\""],
        ),
        // Without a key of Tavern's it belongs to another program.
        (
            "---\nlayout: x\npriority: 0.8\nlabels: y\ndate: z\n---\n- [ ] a\n",
            &[],
        ),
        (
            "---\nlayout: x\nlanez: y\n---\n- [ ] a\n",
            &["unknown-key \"lanez: y\""],
        ),
        ("---\ntitle: a: b\nauthor:\n  name: [\n---\n- [ ] a\n", &[]),
    ];
    for (text, expected) in rows {
        assert_eq!(problems(text), *expected, "{text:?}");
    }
    let (_, found) = parse("## Pendign\n- [ ] a\n## Done\n");
    assert_eq!(
        found[0].message,
        "`Pendign` is not a lane, so agents skip the item under it: `Done` in line 3 makes this a board"
    );
    assert_eq!(found[0].hint, "did you mean `Pending`?");
}

#[test]
fn a_tab_behind_a_closing_fence_is_a_blank() {
    for (opening, closing) in [("```sh", "```\t"), ("~~~", "~~~ \t "), ("```", "````\t\r")] {
        for end in ["", "\n> quoted\n"] {
            let text = format!("- [ ] a\n  {opening}\n  x\n  {closing}\n- [ ] b\n{end}");
            assert_eq!(
                (items(&text), problems(&text).len()),
                (vec!["1 pending a".into(), "5 pending b".into()], 0),
                "{text:?}"
            );
        }
    }
}

#[test]
fn one_wrong_item_stops_no_other() {
    let text = "\
- [ ] z
<<<<<<< HEAD
- [ ] a
=======
- [ ] a, changed
>>>>>>> theirs
- [ ] b
- [ ] c (max_attempts: many)
- [ ] d
  ```yaml task
  {
  ```
- [ ] e
  text
<<<<<<< HEAD
  ours
||||||| base
=======
  theirs
>>>>>>> theirs
- [ ] f
";
    let expected = [
        "1 pending z",
        "!3 pending a",
        "!5 pending a, changed",
        "7 pending b",
        "!8 pending c",
        "!9 pending d",
    ];
    assert_eq!(items(text)[..6], expected);
    assert_eq!(items(text)[6..], ["!13 pending e", "21 pending f"]);
}

#[test]
fn all_fields_are_read() {
    let text = "\
---
id: main
priority: 4
runner: claude
role: coder
max_attempts: 5
---
- [ ] T-1: Add a login endpoint (priority: HIGH, needs: [docker, ./.env], due: 2026-12-01T10:00:00+01:00, after: T-2, AUTH-7, tags: [auth, 'web app'], parent: T-0, model: opus, attempt: 2, returns: 1, not_before: 2026-11-22T10:00:00+01:00, agent: Frodo, started: 2026-11-22T10:00:00Z, completed: 2026-11-22T11:00:00.5Z, commit: 1e10, reason: \"it's, well\", result: answer, worktree: false, review: person, question: why, answer: because, answers: 1, approve: [start, merge], allowed: true, author: Sam, approvals: [reviewer/Merry], rounds: 2, mode: unify, on_failure: retry, retried: true, trigger: \"T-9 died\", lane: draft)
  Follow the spec:

      indented

  ```sh
  cargo test
    indented
  ```

  ```yaml task
  # comment
  done_when:
    - cargo test login
    - \"cargo: clippy\"
  touches: [src/auth/**, \"*.md\"]
  budget: {usd: 2.00, minutes: 30, tokens: 1000, turns: 9, memory_mb: 512}
  max_attempts: 3   # few
  role: reviewer
  ```

  - [ ] step
";
    let time = |text: &str| text.parse().ok();
    let expected = Task {
        id: "T-1".parse().expect("it is an ID"),
        title: "Add a login endpoint".into(),
        description:
            "Follow the spec:\n\n    indented\n\n```sh\ncargo test\n  indented\n```\n\n- [ ] step"
                .into(),
        priority: 1,
        due: time("2026-12-01T09:00:00Z"),
        after: vec![
            "T-2".parse().expect("it is an ID"),
            "AUTH-7".parse().expect("it is an ID"),
        ],
        role: Some("reviewer".into()),
        tags: vec!["auth".into(), "web app".into()],
        parent: "T-0".parse().ok(),
        runner: Some("claude".into()),
        model: Some("opus".into()),
        needs: vec!["docker".into(), "./.env".into()],
        done_when: vec!["cargo test login".into(), "cargo: clippy".into()],
        touches: vec!["src/auth/**".into(), "*.md".into()],
        budget: Budget {
            usd: Some(2.0),
            minutes: Some(30.0),
            tokens: Some(1000),
            turns: Some(9),
            memory_mb: Some(512),
        },
        worktree: false,
        result: Some(Expected::Answer),
        max_attempts: Some(3),
        max_wait: None,
        approve: Consent::ALL.to_vec(),
        review: Some(vec!["person".into()]),
        on_failure: OnFailure::Retry,
        trigger: Some("T-9 died".into()),
        queued_for: None,
        lane: Some(Status::Draft),
        watch: Vec::new(),
        state: State {
            attempt: 2,
            returns: 1,
            reason: Some("it's, well".into()),
            ..State::default()
        },
        typed_answer: Some("because".into()),
    };
    let state = State {
        allowed: true,
        rounds: 2,
        mode: Mode::Unify,
        retried: true,
        ..expected.state
    };
    let expected = Task {
        state: State {
            phase: Phase::Pending {
                not_before: time("2026-11-22T09:00:00Z"),
            },
            ..state
        },
        ..expected
    };
    // The same with other line ends.
    for text in [text.to_owned(), text.replace('\n', "\r\n")] {
        let document = with_states(&text);
        assert_eq!(problems(document.text()), [] as [&str; 0]);
        assert_eq!(
            document.task(&document.items()[0], expected.id.clone()),
            expected
        );
    }
    let (document, _) = parse(text);
    assert_eq!(
        document.shell(&document.items()[0]).as_deref(),
        Some("cargo test\n  indented\n")
    );
}

#[test]
fn queue_defaults_fill_what_the_item_leaves_open() {
    let read = task(
        "---\nrunner: shell\nrole: tester\nmax_attempts: 7\napprove: start\nreview: 2\n---\n- [ ] a\n",
    );
    assert_eq!(read.max_attempts, Some(7));
    assert_eq!(
        (read.runner.as_deref(), read.role.as_deref()),
        (Some("shell"), Some("tester"))
    );
    assert_eq!(
        (read.approve, read.review),
        (vec![Consent::Start], Some(vec!["2".into()]))
    );
    let bare = task("- [ ] a\n");
    assert_eq!(
        (
            bare.priority,
            bare.worktree,
            bare.result.is_some(),
            bare.max_attempts
        ),
        (2, true, false, None)
    );
}

#[test]
fn descriptions_lose_their_margin_only() {
    let rows = [
        ("- [ ] a\n  b\n  c\n", "b\nc"),
        ("- [ ] a\n\n      b\n", "b"),
        ("- [ ] a\n  b\n\n      code\n", "b\n\n    code"),
        ("- [ ] a\nlazy\n", "lazy"),
        ("10. [ ] a\n    b\n      c\n", "b\n  c"),
        ("-\t[ ] a\n\tb\n", "b"),
        ("- [ ] a\r\n\r\n  b  \r\n\r\n\r\n  c", "b  \n\n\nc"),
        ("- [ ] a\n  ```yaml task\n  role: x\n  ```\n  b\n", "b"),
        ("- [ ] a\n  b\n\n  ```yaml task\n  ```\n", "b"),
        ("- plain\n  - [ ] a\n    b\n", "b"),
        (
            "- [ ] a\n  ```make\n  all:\n  \techo\n  ```\n",
            "```make\nall:\n\techo\n```",
        ),
        (
            "- [ ] a\n  ```yaml\n  role: not ours\n  ```\n",
            "```yaml\nrole: not ours\n```",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(task(text).description, expected, "{text:?}");
    }
}

/// Shapes of megabytes that would take minutes with quadratic reading.
#[test]
fn huge_documents_are_read_in_linear_time() {
    let n = 50_000;
    let shapes = [
        format!("- [ ] {}", "x".repeat(2_000_000)),
        format!("- [ ] {}", "(a: ".repeat(n)),
        format!("- [ ] {})", "(priority: (".repeat(n)),
        format!("- [ ] a ({}role: x)", "b: 'c, ".repeat(n)),
        format!("- [ ] a (tags: [{}])", "x, ".repeat(n)),
        "- ".repeat(n),
        "> ".repeat(n),
        "<<<<<<< a\n".repeat(n),
        format!("{}>>>>>>> b\n", "<<<<<<< a\n".repeat(n)),
        "- [ ] a\n\n\n\n".repeat(n),
        "# Notes\n- [ ] a\n".repeat(n / 10) + "# Done\n",
        "```\n".repeat(n),
        "- [ ] a\n  ```yaml task\n  role: x\n  ```\n".repeat(n / 10),
        format!(
            "- [ ] a\n  ```yaml task\n{}  ```\n",
            "  touches: [a]\n".repeat(n)
        ),
        format!("---\n{}", "id: x\n".repeat(n)),
        "\r".repeat(n),
        "- [ ] \0\u{2028}😀\n".repeat(n),
    ];
    for text in &shapes {
        let (document, problems) = parse(text);
        for item in document.items().iter().take(3) {
            document.task(item, "T-1".parse::<TaskId>().expect("it is an ID"));
        }
        for problem in problems.iter().take(3) {
            crate::problem::render("path", text, problem);
        }
    }
}

#[test]
fn what_was_put_away_has_ended() {
    let rows: &[(&str, &[&str])] = &[
        // As Obsidian's Kanban writes it, with lanes.
        (
            "## Todo\n\n- [ ] a\n\n\n## Done\n\n**Complete**\n- [x] b\n\n\n***\n\n## Archive\n\n- [x] c\n- [ ] d\n  - [ ] T-1: e\n",
            &[
                "3 pending a",
                "9 completed b",
                "16 completed c",
                "17 completed d",
                "~18 completed T-1: e",
            ],
        ),
        // An archive alone makes no lanes.
        (
            "# Ideas\n- [ ] a\n# Archive\n- [ ] b\n- [ ] c (status: pending)\n",
            &["2 pending a", "4 completed b", "5 pending c"],
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(items(text), *expected, "{text:?}");
        assert_eq!(problems(text), [] as [&str; 0]);
    }
}
