//! Separates two successive changes of a text: returns the second one alone, line by line.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use git2::{DiffOptions, Patch};

/// The part of a line that is compared, always without its newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    All,
    /// All except a carriage return at its end, since git may store it otherwise than it is checked out.
    ButItsEnd,
}

/// Returns `now` with the changes from `before` to `held` undone, except those that `others` has too. Lines that both
/// changed stay as they are. `None` if undecidable: an inserted piece is left only in part, a piece of several lines
/// was moved, or no neighbor of a removed piece is left.
pub(super) fn separated(
    before: &[u8],
    held: &[u8],
    now: &[u8],
    others: Option<&[u8]>,
    compared: Compared,
) -> Result<Option<Vec<u8>>, git2::Error> {
    let text = |text| Lines::of(text, compared);
    let (before, held, now) = (text(before), text(held), text(now));
    let place = Places::of(&held, &now)?;
    let theirs = others
        .map(|others| Places::of(&held, &text(others)))
        .transpose()?;
    let known: HashSet<&[u8]> = (0..before.count()).map(|nth| before.content(nth)).collect();
    let mut is_out = vec![false; now.count()];
    let mut back = Vec::new();
    for (old, new) in pieces(&before, &held)? {
        if theirs.as_ref().is_some_and(|theirs| theirs.has_all(&new)) {
            continue;
        }
        let found: Vec<usize> = new.clone().filter_map(|nth| place.now[nth]).collect();
        // A line without letters or digits, or one that `before` has too, can't be attributed.
        let is_own =
            |line: &[u8]| line.iter().any(u8::is_ascii_alphanumeric) && !known.contains(line);
        let moved = |nth: usize| {
            place
                .new
                .get(held.content(nth))
                .filter(|_| is_own(held.content(nth)))
        };
        if new.is_empty() {
            let Some(at) = place.beside(new.start) else {
                return Ok(None);
            };
            back.push((at, old));
        } else if found.len() == new.len() {
            found.iter().for_each(|nth| is_out[*nth] = true);
            back.push((found[0], old));
        } else if !found.is_empty() {
            return Ok(None);
        } else if let (1, Some(Some(at))) = (new.len(), moved(new.start)) {
            is_out[*at] = true;
            back.push((*at, old));
        } else if new.clone().any(|nth| moved(nth).is_some()) {
            return Ok(None);
        }
    }
    back.sort_by_key(|(at, _)| *at);
    let mut own: Vec<u8> = Vec::new();
    let mut push = |line: &[u8]| {
        if own.last().is_some_and(|last| *last != b'\n') {
            own.push(b'\n');
        }
        own.extend(line);
    };
    let mut back = back.into_iter().peekable();
    for (nth, is_out) in is_out.into_iter().chain([true]).enumerate() {
        while let Some((_, old)) = back.next_if(|(at, _)| *at <= nth) {
            old.for_each(|line| push(before.line(line)));
        }
        if !is_out {
            push(now.line(nth));
        }
    }
    Ok(Some(own))
}

/// A text, the starts of its lines, and its compared form.
struct Lines<'t> {
    text: &'t [u8],
    starts: Vec<usize>,
    compared: Vec<u8>,
    contents: Vec<Range<usize>>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t [u8], compared: Compared) -> Lines<'t> {
        let mut lines = Lines {
            text,
            starts: vec![0],
            compared: Vec::with_capacity(text.len() + 1),
            contents: Vec::new(),
        };
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            lines.starts.push(lines.starts[lines.count()] + line.len());
            let mut line = line.strip_suffix(b"\n").unwrap_or(line);
            if compared == Compared::ButItsEnd {
                line = line.strip_suffix(b"\r").unwrap_or(line);
            }
            let start = lines.compared.len();
            lines.compared.extend(line);
            lines.contents.push(start..lines.compared.len());
            lines.compared.push(b'\n');
        }
        lines
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    fn line(&self, nth: usize) -> &'t [u8] {
        &self.text[self.starts[nth]..self.starts[nth + 1]]
    }

    fn content(&self, nth: usize) -> &[u8] {
        &self.compared[self.contents[nth].clone()]
    }
}

/// A range of lines, and its replacement in another text.
type Change = (Range<usize>, Range<usize>);

/// Returns the changes from one text to the other.
fn changes(old: &Lines<'_>, new: &Lines<'_>) -> Result<Vec<Change>, git2::Error> {
    let mut options = DiffOptions::new();
    options
        .context_lines(0)
        .interhunk_lines(0)
        .force_text(true)
        .patience(true);
    let patch = Patch::from_buffers(&old.compared, None, &new.compared, None, Some(&mut options))?;
    let mut changes = Vec::new();
    for nth in 0..patch.num_hunks() {
        let (hunk, _) = patch.hunk(nth)?;
        // For an empty range the number is that of the line above.
        let range = |start: u32, count: u32| {
            let start = if count == 0 { start } else { start - 1 } as usize;
            start..start + count as usize
        };
        changes.push((
            range(hunk.old_start(), hunk.old_lines()),
            range(hunk.new_start(), hunk.new_lines()),
        ));
    }
    Ok(changes)
}

/// Like `changes`, but lines replaced by the same number of lines are separate pieces.
fn pieces(old: &Lines<'_>, new: &Lines<'_>) -> Result<Vec<Change>, git2::Error> {
    let mut pieces = Vec::new();
    for (old, new) in changes(old, new)? {
        if old.len() == new.len() {
            pieces.extend(old.zip(new).map(|(old, new)| (old..old + 1, new..new + 1)));
        } else {
            pieces.push((old, new));
        }
    }
    Ok(pieces)
}

/// The positions of one text's lines in another.
struct Places {
    now: Vec<Option<usize>>,
    /// Lines of the other text that are new, with their position if they occur once.
    new: HashMap<Vec<u8>, Option<usize>>,
    end: usize,
}

impl Places {
    fn of(text: &Lines<'_>, other: &Lines<'_>) -> Result<Places, git2::Error> {
        let mut now = vec![None; text.count()];
        let mut new = HashMap::new();
        let (mut at, mut there) = (0, 0);
        for (old, other_lines) in changes(text, other)? {
            while at < old.start {
                (now[at], at, there) = (Some(there), at + 1, there + 1);
            }
            for nth in other_lines.clone() {
                let is_known = new.contains_key(other.content(nth));
                new.insert(other.content(nth).to_vec(), Some(nth).filter(|_| !is_known));
            }
            (at, there) = (old.end, other_lines.end);
        }
        while at < text.count() {
            (now[at], at, there) = (Some(there), at + 1, there + 1);
        }
        Ok(Places {
            now,
            new,
            end: other.count(),
        })
    }

    /// Returns true if the lines are contiguous in the other text; for an empty range, if its neighbors are adjacent.
    fn has_all(&self, lines: &Range<usize>) -> bool {
        if lines.is_empty() {
            return self.behind(lines.start) == self.before(lines.start);
        }
        let first = self.now[lines.start];
        let in_a_row = lines
            .clone()
            .zip(first.into_iter().flat_map(|first| first..));
        first.is_some()
            && in_a_row
                .into_iter()
                .all(|(nth, at)| self.now[nth] == Some(at))
    }

    /// Returns the position in the other text: after the line above, if that exists, else before the line itself.
    fn beside(&self, line: usize) -> Option<usize> {
        self.behind(line).or(self.before(line))
    }

    /// Both ends of a text always have a position.
    fn behind(&self, line: usize) -> Option<usize> {
        match line.checked_sub(1) {
            None => Some(0),
            Some(above) => self.now[above].map(|at| at + 1),
        }
    }

    fn before(&self, line: usize) -> Option<usize> {
        self.now.get(line).copied().unwrap_or(Some(self.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_wrote_goes_and_all_else_stays() {
        for (before, held, now, own) in [
            ("a\nb\n", "a\nb\nset\n", "a\nb\nset\n", Some("a\nb\n")),
            (
                "a\nb\n",
                "a\nb\nset\n",
                "a\nb\nset\nset\nx\n",
                Some("a\nb\nset\nx\n"),
            ),
            ("a\nb\n", "a\nb\nset\n", "x\na\nb\nset\n", Some("x\na\nb\n")),
            (
                "a\nb\n",
                "a\nb\nset\n",
                "a\nb\nset, mine\n",
                Some("a\nb\nset, mine\n"),
            ),
            ("a\nb\nc\n", "a\nc\n", "a\nc\nx\n", Some("a\nb\nc\nx\n")),
            ("a\nb\nc\n", "a\nc\n", "a\nx\nc\n", Some("a\nb\nx\nc\n")),
            ("a\nb\nc\n", "a\nc\n", "a\nC\n", Some("a\nb\nC\n")),
            ("a\nb\nc\n", "a\nc\n", "A\nc\n", Some("A\nb\nc\n")),
            ("a\nb\nc\n", "a\nc\n", "A\nC\n", None),
            ("a\n", "", "x\n", Some("a\nx\n")),
            ("a\n", "a\nset", "a\nset", Some("a\n")),
            ("a", "a\nset\n", "a\nset\nx\n", Some("a\nx\n")),
            (
                "a\nb\nc\nd\n",
                "a\nb_\nc_\nd\n",
                "a\nb_\nC\nd\n",
                Some("a\nb\nC\nd\n"),
            ),
            (
                "a\nb\nc\nd\n",
                "a\nb_\nc_\nd\n",
                "a\nb_\nx\nc_\nd\n",
                Some("a\nb\nx\nc\nd\n"),
            ),
            (
                "1\n2\n3\n",
                "one\n2\nthree\n",
                "one\ntwo\nthree\n",
                Some("1\ntwo\n3\n"),
            ),
            ("a\r\nb\r\n", "a\nb\n", "a\nx\nb\n", Some("a\nx\nb\n")),
            (
                "a\r\nb\r\n",
                "a\nb\nset\n",
                "a\nb\nset\nx\n",
                Some("a\nb\nx\n"),
            ),
            ("a\n", "a\n1\n2\n3\n", "a\n1\nx\n3\n", None),
            ("a\n", "a\n1\n2\n3\n", "a\n1\n2\nx\n3\n", Some("a\nx\n")),
            ("a\n", "a\n1\n2\n3\n", "a\nx\n", Some("a\nx\n")),
            ("b\nd\n", "b\nd\nset\na\n", "a\nb\nd\nset\n", None),
            ("b\nd\n", "b\nd\nset\n", "set\nb\nd\n", Some("b\nd\n")),
        ] {
            let found = separated(
                before.as_bytes(),
                held.as_bytes(),
                now.as_bytes(),
                None,
                Compared::ButItsEnd,
            )
            .expect("texts can be compared");
            assert_eq!(
                found.as_deref().map(String::from_utf8_lossy).as_deref(),
                own,
                "{before:?} {held:?} {now:?}"
            );
        }
    }

    #[test]
    fn the_end_of_a_line_is_part_of_it_where_git_leaves_it_alone() {
        let (before, held, now) = (b"a\r\nb\r\n", b"a\nb\n", b"a\nb\nx\n");
        for (compared, own) in [
            (Compared::All, &b"a\r\nb\r\nx\n"[..]),
            (Compared::ButItsEnd, now),
        ] {
            let found = separated(before, held, now, None, compared);
            assert_eq!(found.expect("texts can be compared").as_deref(), Some(own));
        }
    }

    #[test]
    fn what_others_have_by_now_stays() {
        for (others, now, own) in [
            ("a\nset\n", "a\nset\nx\n", "a\nset\nx\n"),
            ("b\na\n", "b\na\nset\nx\n", "b\na\nx\n"),
        ] {
            let found = separated(
                b"a\n",
                b"a\nset\n",
                now.as_bytes(),
                Some(others.as_bytes()),
                Compared::All,
            )
            .expect("texts can be compared");
            assert_eq!(found.as_deref(), Some(own.as_bytes()), "{others:?}");
        }
    }
}
