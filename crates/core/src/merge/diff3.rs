//! Three-way merge of sequences: changes of one side are taken, and changes of both are returned to the caller.
//!
//! The classic algorithm (Khanna, Kunal, Pierce: "A Formal Investigation of Diff3") over any comparable things.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// A stretch of the three sequences, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stretch {
    /// The same in all three; indices of ours.
    Same(Range<usize>),
    /// Only ours differs from the base, or both differ in the same way.
    Ours(Range<usize>),
    /// Only theirs differs from the base.
    Theirs(Range<usize>),
    /// Both differ from the base, and from each other.
    Both {
        base: Range<usize>,
        ours: Range<usize>,
        theirs: Range<usize>,
    },
}

/// Merges three sequences. The stretches cover all of both sides, except parts that the other side removed or changed.
pub(super) fn weave<T: Eq + Hash>(base: &[T], ours: &[T], theirs: &[T]) -> Vec<Stretch> {
    // Numbers compare faster than lines.
    let mut numbers = HashMap::new();
    let [base, ours, theirs] =
        [base, ours, theirs].map(|things| numbered(&mut numbers, things.iter()));
    let in_ours = matched(&base, &ours);
    let in_theirs = matched(&base, &theirs);
    let mut stretches = Vec::new();
    let (mut at_base, mut at_ours, mut at_theirs) = (0, 0, 0);
    loop {
        let same = (at_base..base.len())
            .take_while(|at| {
                in_ours[*at] == Some(at_ours + at - at_base)
                    && in_theirs[*at] == Some(at_theirs + at - at_base)
            })
            .count();
        if same > 0 {
            stretches.push(Stretch::Same(at_ours..at_ours + same));
            (at_base, at_ours, at_theirs) = (at_base + same, at_ours + same, at_theirs + same);
        }
        let meet = (at_base..base.len()).find_map(|at| Some((at, in_ours[at]?, in_theirs[at]?)));
        let (to_base, to_ours, to_theirs) = meet.unwrap_or((base.len(), ours.len(), theirs.len()));
        let (old, mine, other) = (
            &base[at_base..to_base],
            &ours[at_ours..to_ours],
            &theirs[at_theirs..to_theirs],
        );
        if !(old.is_empty() && mine.is_empty() && other.is_empty()) {
            stretches.push(if old == mine {
                Stretch::Theirs(at_theirs..to_theirs)
            } else if old == other || mine == other {
                Stretch::Ours(at_ours..to_ours)
            } else {
                Stretch::Both {
                    base: at_base..to_base,
                    ours: at_ours..to_ours,
                    theirs: at_theirs..to_theirs,
                }
            });
        }
        (at_base, at_ours, at_theirs) = (to_base, to_ours, to_theirs);
        if meet.is_none() {
            return stretches;
        }
    }
}

/// Returns the index in `side` of each thing of `base` that is still there.
pub(super) fn matches<T: Eq + Hash>(base: &[T], side: &[T]) -> Vec<Option<usize>> {
    // Numbers compare faster.
    let mut numbers = HashMap::new();
    let [base, side] = [base, side].map(|things| numbered(&mut numbers, things.iter()));
    matched(&base, &side)
}

/// Maps equal things to equal numbers, so that the diff algorithm is compiled once, not once for each type.
pub(super) fn numbered<T: Eq + Hash>(
    numbers: &mut HashMap<T, usize>,
    things: impl Iterator<Item = T>,
) -> Vec<usize> {
    let number = |thing| {
        let next = numbers.len();
        *numbers.entry(thing).or_insert(next)
    };
    things.map(number).collect()
}

fn matched(base: &[usize], side: &[usize]) -> Vec<Option<usize>> {
    let mut found = vec![None; base.len()];
    for op in capture_diff_slices(Algorithm::Patience, base, side) {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        {
            for step in 0..len {
                found[old_index + step] = Some(new_index + step);
            }
        }
    }
    // Of several equal things, such as empty lines, match the last before the next match, on both sides alike.
    let mut next = side.len();
    for (at, place) in found.iter_mut().enumerate().rev() {
        if place.is_some() && next > 0 && side[next - 1] == base[at] {
            *place = Some(next - 1);
        }
        next = place.unwrap_or(next);
    }
    found
}
