//! Keys of an item, for the reader of its document.

use std::ops::Range;

use memchr::memmem;

use super::{Item, ItemPlace};
use crate::metadata::{self, Field, Key, KeyEntry, Meaning, Owner, TaskBlock, Unread, Why};
use crate::problem::Problem;
use crate::status::Status;

/// Maximum dependencies of one item.
const MOST_AFTER: usize = 100;

/// Clears the known status or priority of items that may have their own key for it, and marks those that may
/// be due. A key counts only if it is spelt exactly.
pub(super) fn leave_to_keys(text: &str, places: &mut [ItemPlace]) {
    let mut leave = |spelling: &str, set: &dyn Fn(&mut ItemPlace)| {
        let mut found = memmem::find_iter(text.as_bytes(), spelling).peekable();
        for place in places.iter_mut() {
            while found.next_if(|at| *at < place.span.start).is_some() {}
            match found.peek() {
                None => break,
                Some(at) if *at < place.span.end => set(place),
                Some(_) => {}
            }
        }
    };
    leave(Key::Status.as_str(), &|place| place.status = None);
    leave(Key::Priority.as_str(), &|place| place.priority = None);
    leave(Key::Due.as_str(), &|place| place.may_be_due = true);
}

/// End of a hint about a key that is not read.
pub const STAYS_TITLE: &str = "; here it is part of the title";

const IS_TITLE: &str = ", so this parenthesis is part of the title";

/// Reports the reason why a parenthesis is not metadata. Returns whether it is an error: its author relies on
/// the keys.
pub(super) fn tell_unread(problems: &mut Vec<Problem>, text: &str, unread: Unread) -> bool {
    let written = &text[unread.name.clone()];
    let near = Key::nearest(written).or(Key::named(written));
    let (code, message, hint) = match unread.why {
        Why::NotTyped => (
            "misplaced-key",
            format!("`{written}` can't be set in a text{IS_TITLE}"),
            "put the other keys into parentheses of their own, at the end of the line".to_owned(),
        ),
        Why::WrongValue => (
            "wrong-type",
            format!("invalid value for `{written}`"),
            format!(
                "{}{STAYS_TITLE}",
                near.map_or("", |key| key.shape().expects())
            ),
        ),
        Why::Unclosed => (
            "unknown-key",
            format!("`{written}` does not end with the line{IS_TITLE}"),
            "put values with parentheses in double quotes".to_owned(),
        ),
        Why::ReliedOn | Why::Misspelt => (
            "unknown-key",
            format!("unknown key `{written}`{IS_TITLE}"),
            format!("did you mean `{}`?", near.map_or("", Key::as_str)),
        ),
    };
    let is_error = matches!(unread.why, Why::Unclosed | Why::ReliedOn);
    let make = if is_error {
        Problem::error
    } else {
        Problem::warning
    };
    problems.push(make(code, unread.name, message, hint));
    is_error
}

/// Reports a status at the end of `line`, a title line with its keys below: it is not read, though its author
/// relies on it. Returns whether there is one.
pub(super) fn tell_status_beside(
    problems: &mut Vec<Problem>,
    text: &str,
    line: Range<usize>,
) -> bool {
    let Ok(Some(span)) = metadata::find_parenthesis(&text[line.clone()], Owner::State) else {
        return false;
    };
    let mut found = None;
    metadata::read_parenthesis(
        text,
        line.start + span.start..line.start + span.end,
        &mut |entry| {
            let is_held_back = matches!(entry.meaning, Meaning::Known(Key::Status, Field::Status(to)) if to != Status::Pending);
            found = found
                .take()
                .or(is_held_back.then(|| entry.at..entry.at + entry.name.len()));
        },
    );
    let is_found = found.is_some();
    problems.extend(
        found.map(|name| misplaced(text, name, "put it into the parenthesis of the line below")),
    );
    is_found
}

/// Copies the facts of a key that eligibility needs, and reports its problems.
pub(super) fn note<'t>(
    item: &mut Item<'t>,
    problems: &mut Vec<Problem>,
    seen: &mut u64,
    entry: KeyEntry<'t>,
) {
    let name_span = entry.at..entry.at + entry.name.len();
    if *seen & entry.meaning.bit() != 0 {
        item.quarantined = true;
        problems.push(Problem::error(
            "duplicate-key",
            name_span,
            format!("duplicate key `{}`", entry.name),
            "remove one of them",
        ));
        return;
    }
    *seen |= entry.meaning.bit();
    match entry.meaning {
        Meaning::Known(key, field) => match (key, field) {
            (Key::Priority, Field::Number(number)) => {
                item.priority = u8::try_from(number).unwrap_or(u8::MAX);
            }
            (Key::Role, Field::Text(role)) => item.role = Some(role),
            (Key::NotBefore, Field::Time(time)) => item.not_before = Some(time),
            (Key::Due, Field::Time(time)) => item.due = Some(time),
            (Key::After, Field::Ids(ids, names)) if ids.len() + names.len() > MOST_AFTER => {
                item.quarantined = true;
                let count = ids.len() + names.len();
                let message =
                    format!("this waits for {count} items; at most {MOST_AFTER} are allowed");
                let hint = "add an item that waits for some of them, and have this one wait for it";
                problems.push(Problem::error(
                    "too-many-dependencies",
                    name_span,
                    message,
                    hint,
                ));
            }
            (Key::After, Field::Ids(ids, names)) => (item.after, item.after_names) = (ids, names),
            (Key::Parent, Field::Id(id)) => item.parent = Some(id),
            (Key::Status, Field::Status(status)) => item.said.status = Some(status),
            _ => {}
        },
        Meaning::Absent(_) => {}
        Meaning::Wrong(key) => {
            // This key must not hold up the item: people use it in prose, too.
            let is_record = key == Key::Due;
            item.quarantined |= !is_record;
            let span = if entry.value.is_empty() {
                name_span
            } else {
                entry.value
            };
            let make = if is_record {
                Problem::warning
            } else {
                Problem::error
            };
            let message = format!("invalid value for `{}`", entry.name);
            problems.push(make(
                "wrong-type",
                span,
                message,
                key.shape().expects().to_owned(),
            ));
        }
        Meaning::Unknown => {
            let hint = match Key::nearest(entry.name) {
                _ if Key::named(entry.name).is_some() => {
                    "Tavern stores it outside of the text: here it has no effect".to_owned()
                }
                Some(near) => format!("did you mean `{}`?", near.as_str()),
                None => "it is kept, but ignored".to_owned(),
            };
            let message = format!("unknown key `{}`", entry.name);
            // Among keys that are read, it was meant as one.
            let is_mistyped = Key::is_mistyped(entry.name);
            item.quarantined |= is_mistyped;
            let make = if is_mistyped {
                Problem::error
            } else {
                Problem::warning
            };
            problems.push(make("unknown-key", name_span, message, hint));
        }
    }
}

/// Returns the first guarding key in a block that is no `yaml task` but has only keys of items: its author
/// relies on it.
pub(super) fn guard_in_example(text: &str, block: &TaskBlock) -> Option<Problem> {
    let mut keys = Vec::new();
    metadata::read_block(text, block, &mut |entry| {
        let of_programs = || Key::is_of_programs(entry.name).then_some(Key::After);
        let key = Key::named(entry.name).or_else(of_programs);
        keys.push((key, entry.at..entry.at + entry.name.len()));
    })
    .ok()?;
    let keys: Option<Vec<(Key, Range<usize>)>> = keys
        .into_iter()
        .map(|(key, name)| Some((key?, name)))
        .collect();
    let (_, name) = keys?.into_iter().find(|(key, _)| key.is_guard())?;
    Some(misplaced(
        text,
        name,
        "write ```yaml task above it, or remove it from the item",
    ))
}

/// Returns the problem that the guarding key at `name` is not read.
pub(super) fn misplaced(text: &str, name: Range<usize>, hint: impl Into<String>) -> Problem {
    let message = format!("`{}` is not read here", &text[name.clone()]);
    Problem::error("misplaced-key", name, message, hint)
}

/// Reads the keys of the item's `yaml task` block, and reports its problems.
pub(super) fn read_task_block<'t>(text: &'t str, item: &mut Item<'t>, problems: &mut Vec<Problem>) {
    let Some(block) = item.block.clone() else {
        return;
    };
    // The title line's keys come first, and are already read.
    let mut seen = 0;
    if let Some(span) = item.metadata.clone() {
        metadata::read_parenthesis(text, span, &mut |entry| seen |= entry.meaning.bit());
    }
    let on_line = seen;
    let mut seen = 0;
    let read = metadata::read_block(text, &block, &mut |entry| {
        if on_line & entry.meaning.bit() != 0 {
            problems.push(Problem::warning(
                "duplicate-key",
                entry.at..entry.at + entry.name.len(),
                format!(
                    "`{}` is also on the title line, which takes precedence",
                    entry.name
                ),
                "remove one of them",
            ));
            return;
        }
        note(item, problems, &mut seen, entry);
    });
    if let Err(broken) = read {
        item.quarantined = true;
        let end = broken.at
            + text[broken.at..]
                .find(['\n', '\r'])
                .unwrap_or(text.len() - broken.at);
        problems.push(Problem::error(
            "broken-task-block",
            broken.at..end,
            format!("this `yaml task` block can't be read: {}", broken.message),
            "fix the YAML; put texts with colons, stars or hashes in double quotes",
        ));
    }
}
