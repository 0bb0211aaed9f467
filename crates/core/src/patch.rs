//! Changes to an item, as edits of its own bytes: its box, its ID and its keys, in place.

use std::ops::Range;

use serde_yaml::Value;

use crate::document::{Document, Item, parse};
use crate::lane::{self, LanePlace, LaneSet, Said};
use crate::markup::{self, STRIKE};
use crate::metadata::{self, Fields, Key, Owner};
use crate::state::State;
use crate::task::{Status, TaskId};
use crate::text::{Edit, apply, difference};

/// Changes to an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// The ID to assign.
    pub id: Option<TaskId>,
    pub status: Option<Status>,
    /// Keys to set, or with `None` to remove. Not for `status`.
    pub set: Vec<(Key, Option<Value>)>,
}

impl From<&State> for Patch {
    /// Returns the patch that makes an item's text show this state, without facts of an earlier one.
    fn from(state: &State) -> Patch {
        let said = |(key, value): (Key, Option<Value>)| (key, value.filter(|_| !key.is_apart()));
        Patch {
            status: Some(state.status()),
            set: state.keys().into_iter().map(said).collect(),
            ..Patch::default()
        }
    }
}
/// Returns the item's own edits: box, ID, keys. `status` comes with whether a key must show it.
pub(super) fn in_place(
    document: &Document<'_>,
    item: &Item<'_>,
    patch: &Patch,
    status: Option<(Status, bool)>,
) -> Vec<Edit> {
    let (text, mut edits) = (document.text(), Vec::new());
    let box_span = item.box_char..item.box_char + 1;
    match status {
        Some((status, _)) if lane::is_ticked(status) && !item.checked => {
            edits.push(Edit::replace(box_span, "x"));
        }
        Some((status, _)) if !lane::is_ticked(status) && item.checked => {
            edits.push(Edit::replace(box_span, " "));
        }
        _ => {}
    }
    let rest = item.id_span().map_or(item.head.start, |id| id.end + 1);
    match (&patch.id, item.id_span()) {
        (Some(id), Some(span)) if item.id.as_ref() != Some(id) => {
            edits.push(Edit::replace(span, id.as_str()));
        }
        (Some(id), None) => {
            let is_bare = item.head.start == item.box_char + 2;
            let (before, after) = (
                if is_bare { " " } else { "" },
                if item.head.is_empty() { "" } else { " " },
            );
            edits.push(Edit::insert(
                item.head.start,
                format!("{before}{id}:{after}"),
            ));
        }
        _ => {}
    }

    let written = |value: &Option<Value>| {
        value
            .as_ref()
            .filter(|value| !value.is_null())
            .map(metadata::flow)
    };
    let set = patch
        .set
        .iter()
        .map(|(key, value)| (key.as_str(), written(value)));
    let said = status.map(|(status, needs_key)| {
        (
            Key::Status.as_str(),
            needs_key.then(|| status.as_str().to_owned()),
        )
    });
    let line_span = rest.min(item.head.end)..item.head.end;
    let block_span = item.block.as_ref().map(|block| block.content.clone());
    let as_it_stands = &text[line_span.clone()];
    let mut title = item
        .title
        .end
        .saturating_sub(line_span.start)
        .min(as_it_stands.len());
    let old_line = &metadata::bare(as_it_stands, title);
    let old_block = block_span.clone().map_or("", |span| &text[span]);
    let (mut line, mut block) = (old_line.clone(), old_block.to_owned());
    for (key, value) in set.chain(said) {
        let on_line = metadata::line_has(&line, title, key);
        let in_block = !block.is_empty() && metadata::block_has(&block, key);
        if in_block && (!on_line || value.is_none()) {
            block = metadata::set_in_block(&block, key, value.as_deref()).unwrap_or(block);
        }
        if on_line || !in_block {
            line = metadata::set_in_line(&line, title, key, value.as_deref());
        }
    }
    let has_id = patch.id.is_some() || item.id.is_some();
    // A parenthesis below is prose so far. Under an ID it would be read as keys if it came next.
    let under = &text[markup::line_end(text, item.head.end, item.span.end)..item.span.end];
    let has_words_below = has_id && metadata::find_parenthesis_below(under, Owner::State).is_some();
    if metadata::parenthesis_behind(&line, title).is_none() {
        line = match has_words_below {
            true => metadata::set_in_line(&line, title, Key::Status.as_str(), Some("null")),
            // Without the keys behind it, the end of the title may read as keys.
            false if has_id && (item.id.is_none() || item.metadata.is_some()) => {
                metadata::closed(&line, title)
            }
            false => line,
        };
    }
    let start = item.title.start.saturating_sub(line_span.start).min(title);
    let paragraph_end =
        markup::paragraph_end(text, item.head.end, item.span.end).max(line_span.end);
    match (status, item.is_struck_out(text)) {
        (Some((Status::Cancelled, _)), false)
            if line != *old_line
                && may_be_struck(&line, start..title, &text[line_span.end..paragraph_end]) =>
        {
            line.insert_str(title, STRIKE);
            line.insert_str(start, STRIKE);
            title += STRIKE.len();
        }
        (Some((status, _)), true) if status != Status::Cancelled => {
            line.replace_range(title..title + STRIKE.len(), "");
            line.replace_range(start - STRIKE.len()..start, "");
            title -= STRIKE.len();
            if has_id && metadata::parenthesis_behind(&line, title).is_none() {
                line = metadata::closed(&line, title);
            }
        }
        _ => {}
    }
    line = match line == *old_line {
        true => as_it_stands.to_owned(),
        // In a line without an ID it would be part of the title.
        false if !has_id => line,
        false => metadata::legible(&line, title),
    };
    let mut line_span = line_span;
    if has_words_below && let Some(below) = set_below(document, item, &line, line_span.end, title) {
        (line_span.end, line) = below;
    }
    edits.extend(difference(&text[line_span.clone()], &line, line_span.start));
    edits.extend(block_span.and_then(|span| difference(old_block, &block, span.start)));
    edits
}

/// Returns true if a cancelled item's title can be struck out and its line has a status, so that it does not
/// look done.
fn may_be_struck(line: &str, title: Range<usize>, below: &str) -> bool {
    !title.is_empty()
        && markup::shows_struck(
            &line[title.clone()],
            &format!("{}{below}", &line[title.end..]),
        )
        && metadata::line_has(line, title.end, Key::Status.as_str())
}

/// Returns a title line, from behind its ID up to `end`, with its parenthesis on a line of its own, and the
/// end of the replaced text. `None` if the parenthesis is there already.
fn set_below(
    document: &Document<'_>,
    item: &Item<'_>,
    line: &str,
    end: usize,
    title: usize,
) -> Option<(usize, String)> {
    let text = document.text();
    let span = metadata::parenthesis_behind(line, title)?;
    let next = text[end..item.span.end.max(end)]
        .lines()
        .nth(1)
        .unwrap_or("")
        .trim();
    // An underline makes a title a heading or the head of a table.
    let is_underlined = !next.is_empty() && next.chars().all(|c| "=-|: \t".contains(c));
    if line[title..].contains(['\n', '\r']) || is_underlined {
        return None;
    }
    let (words, parenthesis) = (line[..span.start].trim_end(), &line[span]);
    // Text that other programs read at the end of a line stays there: names of blocks, line breaks.
    let tail = text[end..item.span.end.max(end)]
        .split(['\n', '\r'])
        .next()
        .unwrap_or("");
    let own_end = &text[end..];
    let newline = markup::newline(if own_end.contains('\n') {
        own_end
    } else {
        text
    });
    let indent = indent_below(document, item, end);
    Some((
        end + tail.len(),
        format!("{words}{tail}{newline}{indent}{parenthesis}"),
    ))
}

/// Returns the indent for a line under an item's first one: that of the next line, unless that is code.
fn indent_below(document: &Document<'_>, item: &Item<'_>, end: usize) -> String {
    let mut below = document.text()[end..item.span.end.max(end)]
        .lines()
        .skip(1)
        .filter(|line| !line.trim().is_empty());
    let indent = below
        .next()
        .map(|line| &line[..line.len() - line.trim_start().len()]);
    let columns = item.content_column..item.content_column + 4;
    let usual = if document.front().is_kanban {
        "    "
    } else {
        ""
    };
    let usual = format!("{usual:width$}", width = item.content_column);
    indent
        .filter(|indent| columns.contains(&markup::columns(indent)))
        .map_or(usual, str::to_owned)
}

/// Returns a rendered block whose box and `status:` key show the status, at that place of a document with
/// those lanes.
pub(super) fn said(block: &str, status: Status, place: LanePlace, lanes: LaneSet) -> String {
    let (document, _) = parse(block);
    let needs_key = lane::needs_key(status, place, lanes);
    match document.items().first() {
        Some(item) => apply(
            block,
            &in_place(
                &document,
                item,
                &Patch::default(),
                Some((status, needs_key)),
            ),
        ),
        None => block.to_owned(),
    }
}

/// Returns true if a rendered block has the status by its place and its box, without a key that contradicts.
pub(super) fn is_said(block: &str, status: Status, place: LanePlace, lanes: LaneSet) -> bool {
    let (document, _) = parse(block);
    document.items().first().is_some_and(|item| {
        let Fields(keys) = document.fields(item);
        let has = |wanted| keys.iter().any(|(key, _)| *key == wanted);
        let key = has(Key::Status).then_some(item.status);
        let said = Said {
            ticked: item.checked,
            status: key,
        };
        key.is_none_or(|key| key == status) && lane::status(place, said, lanes) == status
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> TaskId {
        text.parse().expect("a test's ID is one")
    }

    #[test]
    fn ids_and_keys_change_where_they_stand() {
        let id = |text| Patch {
            id: Some(id(text)),
            ..Patch::default()
        };
        let set = |key, value| Patch {
            set: vec![(key, value)],
            ..Patch::default()
        };
        let block = "- [ ] a (role: x)\n  ```yaml task\n  role: y\n  touches: [b]  # why\n  ```\n";
        let without_role = block.replace(" (role: x)", "").replace("  role: y\n", "");
        for (text, patch, expected) in [
            ("- [ ] a\n", id("T-9"), "- [ ] T-9: a\n"),
            (
                "- [ ]  a (role: x)\n",
                id("T-9"),
                "- [ ]  T-9: a (role: x)\n",
            ),
            ("- [ ] T-1: a\n", id("T-9"), "- [ ] T-9: a\n"),
            (
                "- [ ] a (answer: bob)\n",
                id("T-9"),
                "- [ ] T-9: a (answer: bob) (status: null)\n",
            ),
            (
                "- [ ] a (agent: bob)\n",
                id("T-9"),
                "- [ ] T-9: a (agent: bob)\n",
            ),
            ("- [ ] T-1:\n", id("T-9"), "- [ ] T-9:\n"),
            (
                "- [ ] a\n  (priority: 1)\n",
                id("T-9"),
                "- [ ] T-9: a\n  (status: null)\n  (priority: 1)\n",
            ),
            (
                "- [ ] a (role: x)\n(role: y)\n",
                id("T-9"),
                "- [ ] T-9: a\n  (role: x)\n(role: y)\n",
            ),
            (
                block,
                set(Key::Touches, Some(vec!["c"].into())),
                &block.replace("[b]", "[c]"),
            ),
            (
                block,
                set(Key::Tags, Some(vec!["t"].into())),
                &block.replace("x)", "x, tags: [t])"),
            ),
            // Of a key that stands twice the first one counts; removed, both go.
            (
                block,
                set(Key::Role, Some("z".into())),
                &block.replace(": x", ": z"),
            ),
            (block, set(Key::Role, None), &without_role),
        ] {
            let (document, _) = parse(text);
            assert_eq!(
                apply(text, &document.change(&document.items()[0], &patch)),
                expected,
                "{text:?}"
            );
        }
    }

    #[test]
    fn keys_below_the_title_change_where_they_stand() {
        let change = |text: &str, status, model: Option<&str>| {
            let (document, _) = parse(text);
            let patch = Patch {
                status: Some(status),
                set: vec![(Key::Model, model.map(Value::from))],
                ..Patch::default()
            };
            apply(text, &document.change(&document.items()[0], &patch))
        };
        for (text, expected) in [
            (
                "- [ ] T-1: Bump it\n  (model: opus)\n",
                "- [x] T-1: Bump it\n  (model: x)\n",
            ),
            (
                "1. [ ] T-1: a  \r\n   (model: opus)\r\n\r\n   text\r\n",
                "1. [x] T-1: a  \r\n   (model: x)\r\n\r\n   text\r\n",
            ),
            (
                "- [ ] T-1: a ^k3j\n  (model: opus)\n- [ ] b\n",
                "- [x] T-1: a ^k3j\n  (model: x)\n- [ ] b\n",
            ),
            (
                "- [ ] T-1: a\n  (role: x)\n  text\n",
                "- [x] T-1: a\n  (role: x, model: x)\n  text\n",
            ),
            (
                "- [ ] T-1: a\n(model: opus)\n",
                "- [x] T-1: a\n(model: x)\n",
            ),
        ] {
            assert_eq!(
                change(text, Status::Completed, Some("x")),
                expected,
                "{text:?}"
            );
            let (document, _) = parse(expected);
            let item = &document.items()[0];
            assert_eq!(
                document.task_of(item).model.as_deref(),
                Some("x"),
                "{expected:?}"
            );
            assert!(!document.title(item).contains(['(', '^']), "{expected:?}");
            assert!(
                !document.description(item).contains("model"),
                "{expected:?}"
            );
            let back = change(expected, Status::Pending, None);
            let (document, _) = parse(&back);
            assert_eq!(
                document.task_of(&document.items()[0]).model,
                None,
                "{back:?}"
            );
            assert!(!back.contains("()") && !back.contains("null"), "{back:?}");
        }
        for text in [
            "- [ ] T-1: a\n  (see: below)\n",
            "- [ ] T-1: a\n\n  (role: x)\n",
            "- [ ] T-1: a\n  (role: x) and\n",
        ] {
            let (document, _) = parse(text);
            assert_eq!(document.items()[0].metadata, None, "{text:?}");
        }
    }
}
