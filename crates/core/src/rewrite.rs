//! Adds, rewrites, moves and removes items in one change, however many they are.

use std::collections::HashMap;

use crate::document::{Document, Item, parse};
use crate::markup;
use crate::position::ItemPosition;
use crate::task::Status;
use crate::text::{Edit, apply};

/// Returns `text` with the `edits` of each of `things`, in order. The text is read again only where some
/// would touch each other, or where text behind them would join other text: an indented line, or a heading
/// next to a rule.
pub fn apply_each<T>(
    mut text: String,
    mut things: Vec<T>,
    edits: &dyn Fn(&Document<'_>, &T) -> Vec<Edit>,
) -> String {
    while !things.is_empty() {
        let (document, _) = parse(&text);
        let meet = |one: &Edit, next: &Edit| {
            let mut behind = next
                .text
                .chars()
                .chain(text[next.span.end..].chars())
                .skip_while(|c| "\r\n".contains(*c));
            let between = text.get(one.span.end..next.span.start);
            match behind.next() {
                Some(' ' | '\t') => between == Some(""),
                Some('#') => {
                    document.front().is_kanban
                        && between.is_some_and(|between| between.trim().is_empty())
                }
                _ => false,
            }
        };
        let mut made: Vec<Edit> = Vec::new();
        things.retain(|thing| {
            let own = edits(&document, thing);
            let is_apart = |edit: &Edit, other: &Edit| {
                edit.is_apart(other)
                    && !meet(other, edit)
                    && (edit.span == other.span || !meet(edit, other))
            };
            let is_apart = own
                .iter()
                .all(|edit| made.iter().all(|other| is_apart(edit, other)));
            made.extend(own.into_iter().filter(|_| is_apart));
            !is_apart
        });
        text = apply(&text, &made);
    }
    text
}

/// Returns the edits that make `item` (`None`: it is not there) read as `was`, in its lane; `None` for `was`
/// removes it. Without a status it keeps that of its place and text.
pub fn set_item(
    document: &Document<'_>,
    item: Option<&Item<'_>>,
    was: Option<(&str, Option<Status>)>,
) -> Vec<Edit> {
    set_item_by(document, item, was, None)
}

/// As [`set_item`], but the item goes to where it `stood`.
pub fn set_item_by(
    document: &Document<'_>,
    item: Option<&Item<'_>>,
    was: Option<(&str, Option<Status>)>,
    stood: Option<&ItemPosition>,
) -> Vec<Edit> {
    match (item, was) {
        (None, None) => Vec::new(),
        (Some(item), None) => document.taken_out(item),
        (None, Some((text, status))) => {
            let newline = markup::newline(document.text());
            let block = with_newlines(text, newline) + newline;
            document.put_in(status.unwrap_or(Status::Pending), &block, stood)
        }
        (Some(item), Some((text, status))) => {
            let text = with_newlines_of(document, document.block(item), text);
            document.rewritten(item, &text, status, stood)
        }
    }
}

/// Returns the text with the document's line ends, and none at the end.
fn with_newlines(text: &str, newline: &str) -> String {
    text.replace("\r\n", "\n")
        .trim_end_matches('\n')
        .replace('\n', newline)
}

/// Returns the lines of `text` with their line ends in `block`. New lines get that of its first line, or keep
/// their own if both text and document are mixed. The last line gets that of `block` by the same rule.
fn with_newlines_of(document: &Document<'_>, block: &str, text: &str) -> String {
    let is_mixed = |text: &str| text.contains('\n') && markup::only_newline(text).is_none();
    let is_own = is_mixed(text) && is_mixed(document.text());
    let newline = markup::newline(if block.contains('\n') {
        block
    } else {
        document.text()
    });
    let cut = |line| str::split_at(line, markup::without_line_end(line).len());
    let ends: HashMap<&str, &str> = block
        .split_inclusive('\n')
        .map(cut)
        .filter(|(_, end)| !end.is_empty())
        .collect();
    let ended = text
        .trim_end_matches(['\r', '\n'])
        .split_inclusive('\n')
        .map(cut)
        .flat_map(|(line, own)| {
            let other = if is_own && !own.is_empty() {
                own
            } else {
                newline
            };
            [line, ends.get(line).unwrap_or(&other)]
        });
    let last = match (cut(text).1, cut(block).1) {
        (own, end) if is_own && !own.is_empty() && !end.is_empty() => own,
        (_, end) => end,
    };
    markup::without_line_end(&ended.collect::<String>()).to_owned() + last
}
