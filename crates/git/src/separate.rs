//! Of a text that one changed before another did: the part of the second. Line by line; how a line ends is no part of it.

use std::collections::HashSet;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// `now` without what `held` has otherwise than `before`, but where `others` have that too. A line that both have changed stays as it is.
/// `None` if it can't be told: of a piece that was put there as a whole only a part is left, or it was moved; or nothing is left
/// beside which a piece that was taken out had been.
pub(super) fn separated(
    before: &[u8],
    held: &[u8],
    now: &[u8],
    others: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let [before, held, now] = [before, held, now].map(lines);
    let others = others.map(lines);
    let place = Places::of(&held, &now);
    let theirs = others.as_ref().map(|others| Places::of(&held, others));
    let known: HashSet<&[u8]> = before.iter().map(|line| content(line)).collect();
    let mut is_out = vec![false; now.len()];
    let mut back = Vec::new();
    for (old, new) in pieces(&before, &held) {
        if theirs.as_ref().is_some_and(|theirs| theirs.has_all(&new)) {
            continue;
        }
        let found: Vec<usize> = new.clone().filter_map(|nth| place.now[nth]).collect();
        if new.is_empty() {
            back.push((place.beside(new.start)?, old));
        } else if found.len() == new.len() {
            found.iter().for_each(|nth| is_out[*nth] = true);
            back.push((found[0], old));
        } else if !found.is_empty() || new.clone().any(|nth| place.is_moved(held[nth], &known)) {
            return None;
        }
    }
    let mut own: Vec<u8> = Vec::new();
    let mut push = |line: &[u8]| {
        if own.last().is_some_and(|last| *last != b'\n') {
            own.push(b'\n');
        }
        own.extend(line);
    };
    let mut back = back.into_iter().peekable();
    for nth in 0..=now.len() {
        while let Some((_, old)) = back.next_if(|(at, _)| *at <= nth) {
            before[old].iter().for_each(|line| push(line));
        }
        if nth < now.len() && !is_out[nth] {
            push(now[nth]);
        }
    }
    Some(own)
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// A line without its end.
fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn compared(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    let [old, new] =
        [old, new].map(|text| text.iter().map(|line| content(line)).collect::<Vec<_>>());
    capture_diff_slices(Algorithm::Histogram, &old, &new)
}

/// What was changed from the one to the other: lines that were replaced by as many are a piece each.
fn pieces(old: &[&[u8]], new: &[&[u8]]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut pieces = Vec::new();
    for op in compared(old, new) {
        let (old, new) = (op.old_range(), op.new_range());
        match op {
            DiffOp::Equal { .. } => {}
            DiffOp::Replace { .. } if old.len() == new.len() => {
                pieces.extend(old.zip(new).map(|(old, new)| (old..old + 1, new..new + 1)));
            }
            _ => pieces.push((old, new)),
        }
    }
    pieces
}

/// Where the lines of one text stand in another.
struct Places<'t> {
    now: Vec<Option<usize>>,
    /// The lines of the other that have no place in the first.
    new: HashSet<&'t [u8]>,
    end: usize,
}

impl<'t> Places<'t> {
    fn of(text: &[&[u8]], other: &[&'t [u8]]) -> Places<'t> {
        let mut now = vec![None; text.len()];
        let mut new = HashSet::new();
        for op in compared(text, other) {
            if let DiffOp::Equal {
                old_index,
                new_index,
                len,
            } = op
            {
                (0..len).for_each(|nth| now[old_index + nth] = Some(new_index + nth));
            } else {
                new.extend(other[op.new_range()].iter().map(|line| content(line)));
            }
        }
        let end = other.len();
        Places { now, new, end }
    }

    /// The lines stand there in one piece; of none, what they stood between stands together.
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

    /// Where something stood before the line: behind the one above, if that is there, or else before the line itself.
    fn beside(&self, line: usize) -> Option<usize> {
        self.behind(line).or(self.before(line))
    }

    /// The ends of a text are always there.
    fn behind(&self, line: usize) -> Option<usize> {
        match line.checked_sub(1) {
            None => Some(0),
            Some(above) => self.now[above].map(|at| at + 1),
        }
    }

    fn before(&self, line: usize) -> Option<usize> {
        self.now.get(line).copied().unwrap_or(Some(self.end))
    }

    /// The line has no place, and stands elsewhere; one that says nothing, or that others have too, may be anybody's.
    fn is_moved(&self, line: &[u8], known: &HashSet<&[u8]>) -> bool {
        let line = content(line);
        line.iter().any(u8::is_ascii_alphanumeric)
            && !known.contains(line)
            && self.new.contains(line)
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
            ("b\nd\n", "b\nd\nset\n", "set\nb\nd\n", None),
        ] {
            let found = separated(before.as_bytes(), held.as_bytes(), now.as_bytes(), None);
            assert_eq!(
                found.as_deref().map(String::from_utf8_lossy).as_deref(),
                own,
                "{before:?} {held:?} {now:?}"
            );
        }
    }

    #[test]
    fn what_others_have_by_now_stays() {
        for (others, now, own) in [
            ("a\nset\n", "a\nset\nx\n", "a\nset\nx\n"),
            ("b\na\n", "b\na\nset\nx\n", "b\na\nx\n"),
        ] {
            let found = separated(b"a\n", b"a\nset\n", now.as_bytes(), Some(others.as_bytes()));
            assert_eq!(found.as_deref(), Some(own.as_bytes()), "{others:?}");
        }
    }
}
