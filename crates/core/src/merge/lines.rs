//! Plain merge by lines, for documents with items that can't be distinguished.

use super::conflict::Conflict;
use super::diff3::{Stretch, weave};

/// Merges as git does, with conflicts between git's markers.
pub(super) fn by_lines(base: &str, ours: &str, theirs: &str) -> (String, Vec<Conflict>) {
    let [old, mine, other] =
        [base, ours, theirs].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let mut text = String::new();
    let mut conflicts = Vec::new();
    for stretch in weave(&old, &mine, &other) {
        match stretch {
            Stretch::Same(range) | Stretch::Ours(range) => text.extend(mine[range].iter().copied()),
            Stretch::Theirs(range) => text.extend(other[range].iter().copied()),
            Stretch::Both { ours, theirs, .. } => {
                conflicts.push(Conflict {
                    item: None,
                    what: "text".into(),
                });
                for (mark, lines) in [
                    ("<<<<<<< one side", &mine[ours]),
                    ("=======", &other[theirs]),
                    (">>>>>>> the other", &[]),
                ] {
                    if !text.is_empty() && !text.ends_with('\n') {
                        text.push('\n');
                    }
                    text.push_str(mark);
                    text.push('\n');
                    text.extend(lines.iter().copied());
                }
            }
        }
    }
    (text, conflicts)
}
