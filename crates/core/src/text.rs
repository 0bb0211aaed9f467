//! Edits: the only way in which a document's bytes change.
//!
//! Knows nothing of Markdown: an edit is a byte range and its replacement.

use std::ops::Range;

/// A replacement of the bytes of `span` (offsets into the old text) by `text`. An empty span inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub span: Range<usize>,
    pub text: String,
}

impl Edit {
    pub fn replace(span: Range<usize>, text: impl Into<String>) -> Edit {
        Edit {
            span,
            text: text.into(),
        }
    }

    pub fn insert(at: usize, text: impl Into<String>) -> Edit {
        Edit {
            span: at..at,
            text: text.into(),
        }
    }

    pub fn delete(span: Range<usize>) -> Edit {
        Edit {
            span,
            text: String::new(),
        }
    }

    /// Returns true if both may be applied at once.
    pub fn is_apart(&self, other: &Edit) -> bool {
        self.span.end <= other.span.start || other.span.end <= self.span.start
    }
}

/// Returns `text` with all `edits` applied at once. They must not overlap; insertions at the same place keep
/// their order. All other bytes stay the same.
pub fn apply(text: &str, edits: &[Edit]) -> String {
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    sorted.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let grown: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut result = String::with_capacity(text.len() + grown);
    let mut done = 0;
    for edit in sorted {
        debug_assert!(
            done <= edit.span.start,
            "edits overlap at byte {}",
            edit.span.start
        );
        result.push_str(&text[done..edit.span.start]);
        result.push_str(&edit.text);
        done = edit.span.end;
    }
    result.push_str(&text[done..]);
    result
}

/// As [`apply`], in place, so that a long text is not copied for one item.
pub fn apply_in_place(text: &mut String, edits: &[Edit]) {
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    sorted.sort_by_key(|edit| (edit.span.start, edit.span.end));
    // From the end, so that earlier offsets stay valid.
    sorted
        .into_iter()
        .rev()
        .for_each(|edit| text.replace_range(edit.span.clone(), &edit.text));
}

/// Returns `block`, which begins at `start` of a document, after `edits` of that document within it.
pub fn apply_within(block: &str, start: usize, edits: &[Edit]) -> String {
    let shift = |edit: &Edit| Edit {
        span: edit.span.start - start..edit.span.end - start,
        text: edit.text.clone(),
    };
    apply(block, &edits.iter().map(shift).collect::<Vec<_>>())
}

/// Returns the edit that turns `old`, which begins at `at`, into `new`, without their common start and end.
pub fn difference(old: &str, new: &str, at: usize) -> Option<Edit> {
    if old == new {
        return None;
    }
    let start = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let start = new.floor_char_boundary(old.floor_char_boundary(start));
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let same = old_rest
        .bytes()
        .rev()
        .zip(new_rest.bytes().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let same = old_rest.len() - old_rest.ceil_char_boundary(old_rest.len() - same);
    let end = old.len() - same;
    Some(Edit::replace(
        at + start..at + end,
        &new_rest[..new_rest.len() - same],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_place_it_comes_to_the_same() {
        let text = "a\nbär\nc\n";
        let (moved, before, behind) = (
            Edit::delete(0..2),
            Edit::insert(2, "x"),
            Edit::insert(2, "yy"),
        );
        let end = [Edit::replace(2..6, "ö"), Edit::insert(text.len(), "a\n")];
        for edits in [
            vec![],
            end.to_vec(),
            vec![moved.clone(), end[1].clone()],
            vec![behind, before, moved, end[0].clone()],
        ] {
            let mut changed = text.to_owned();
            apply_in_place(&mut changed, &edits);
            assert_eq!(changed, apply(text, &edits), "{edits:?}");
        }
    }
}
