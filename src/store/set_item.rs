//! An item made what it was at an event. Knows nothing of the log or the lock.

use crate::board::document::{Document, Item};
use crate::board::markup;
use crate::board::task::Status;
use crate::board::text::Edit;

/// The edits that make `item` (nothing: it is not there) read as `was`, where its lane is; `None` for `was` takes it
/// out. Without a status it keeps the one that its place and its text give it.
pub(super) fn set_item(
    document: &Document<'_>,
    item: Option<&Item<'_>>,
    was: Option<(&str, Option<Status>)>,
) -> Vec<Edit> {
    match (item, was) {
        (None, None) => Vec::new(),
        (Some(item), None) => document.taken_out(item),
        (None, Some((text, status))) => {
            document.add(status.unwrap_or(Status::Pending), &ended(text, markup::newline(document.text()), true))
        }
        (Some(item), Some((text, status))) => {
            let is_ended = document.block(item).ends_with(['\n', '\r']);
            document.rewritten(item, &ended(text, markup::newline(document.text()), is_ended), status)
        }
    }
}

/// With the document's line ends, and one at the end if `is_ended`.
fn ended(text: &str, newline: &str, is_ended: bool) -> String {
    let bare = text.replace("\r\n", "\n");
    let bare = bare.trim_end_matches('\n').replace('\n', newline);
    if is_ended { bare + newline } else { bare }
}
