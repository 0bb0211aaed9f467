//! Narrows a stretch that both sides changed. Its conflicts are lines that one side changed and the other one
//! changed differently or removed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::diff3::matches;
use super::output::Atom;

/// A part of such a stretch.
#[derive(Debug, PartialEq)]
pub(super) enum Part<'t> {
    Agreed(Vec<Atom<'t>>),
    Contradiction {
        ours: Vec<Atom<'t>>,
        theirs: Vec<Atom<'t>>,
    },
}

/// Returns the parts of the stretch, in order. An item is only at its first place.
pub(super) fn narrowed<'t>(
    base: &[Atom<'t>],
    ours: &[Atom<'t>],
    theirs: &[Atom<'t>],
) -> Vec<Part<'t>> {
    if let Some(united) = united(base, ours, theirs) {
        return vec![Part::Agreed(united)];
    }
    let is_bound = |atom: &Atom<'t>| atom.bound().is_some();
    // A common ending that both sides added is taken once.
    let same = ours
        .iter()
        .rev()
        .zip(theirs.iter().rev())
        .take_while(|(mine, other)| mine == other && !is_bound(mine));
    let same = same.count();
    if same > 0 {
        let before = |side: &'_ [Atom<'t>]| side.len() - same;
        let in_all = base
            .iter()
            .rev()
            .zip(ours.iter().rev())
            .take(same)
            .take_while(|(old, mine)| old == mine)
            .count();
        let (mine, behind) = ours.split_at(before(ours));
        let mut parts = narrowed(
            &base[..base.len() - in_all],
            mine,
            &theirs[..before(theirs)],
        );
        parts.push(Part::Agreed(behind.to_vec()));
        return parts;
    }
    // An earlier conflict is resolved as a whole; text written around it stays.
    if let Some((first, last)) = ours
        .iter()
        .position(is_bound)
        .zip(ours.iter().rposition(is_bound))
    {
        let (before, behind) = (&ours[..first], &ours[last + 1..]);
        let is_around =
            |atom: &Atom<'t>| !atom.is_blank() && (before.contains(atom) || behind.contains(atom));
        let more = without(theirs, is_around);
        let ours = ours[first..=last].to_vec();
        let settled = if says(&more) || !says(theirs) {
            Part::Contradiction { ours, theirs: more }
        } else {
            Part::Agreed([more.into_iter().filter(Atom::is_item).collect(), ours].concat())
        };
        return vec![
            Part::Agreed(before.to_vec()),
            settled,
            Part::Agreed(behind.to_vec()),
        ];
    }
    let (mut seen, in_both) = (HashSet::new(), new_in_both(base, ours, theirs));
    let mut once = |atoms: Vec<Atom<'t>>| {
        without(&atoms, |atom| {
            (atom.is_item() || in_both.contains(atom)) && !seen.insert(*atom)
        })
    };
    let (mut parts, mut at) = (Vec::new(), 0);
    for Overlap { range, mine, other } in overlaps(&hunks(base, ours), &hunks(base, theirs)) {
        parts.push(Part::Agreed(once(base[at..range.start].to_vec())));
        at = range.end;
        let (my_new, other_new) = (new(mine, ours), new(other, theirs));
        let is_told = says(&my_new) || says(&other_new);
        match united(&base[range], &my_new, &other_new) {
            Some(united) => parts.push(Part::Agreed(once(united))),
            // One side changed lines that the other one changed or removed.
            None if is_told && !mine.is_empty() && !other.is_empty() => {
                parts.extend(contradiction(once(my_new), once(other_new)));
            }
            None => parts.push(Part::Agreed(once([my_new, other_new].concat()))),
        }
    }
    parts.push(Part::Agreed(once(base[at..].to_vec())));
    parts
}

/// Removes lines, and the blank ones behind each.
fn without<'t>(atoms: &[Atom<'t>], mut is_out: impl FnMut(&Atom<'t>) -> bool) -> Vec<Atom<'t>> {
    let mut is_left_out = false;
    let mut stays = |atom: &&Atom<'t>| {
        is_left_out = (is_left_out && atom.is_blank()) || is_out(atom);
        !is_left_out
    };
    atoms.iter().filter(|atom| stays(atom)).copied().collect()
}

/// Returns the text lines that both sides added once: one of them had loaded it from the other.
fn new_in_both<'t>(base: &[Atom<'t>], ours: &[Atom<'t>], theirs: &[Atom<'t>]) -> HashSet<Atom<'t>> {
    let times = |side: &[Atom<'t>]| {
        let mut times: HashMap<Atom<'t>, usize> = HashMap::new();
        side.iter()
            .filter(|atom| words(atom).is_some())
            .for_each(|atom| *times.entry(*atom).or_default() += 1);
        times
    };
    let [base, mine, other] = [base, ours, theirs].map(times);
    let is_one = |atom: &Atom<'t>| {
        !base.contains_key(atom) && mine[atom] == 1 && other.get(atom) == Some(&1)
    };
    mine.keys().filter(|atom| is_one(atom)).copied().collect()
}

/// Returns the text of a line that begins with a word.
fn words<'t>(atom: &Atom<'t>) -> Option<&'t str> {
    match atom {
        Atom::Line(line) => {
            Some(line.0.trim()).filter(|line| line.starts_with(char::is_alphanumeric))
        }
        Atom::Item(_) | Atom::Block => None,
    }
}

/// Returns `side` without new lines that a new line of `other` continues: its author had loaded them.
pub(super) fn without_beginnings<'t>(
    base: &[Atom<'t>],
    side: &[Atom<'t>],
    other: &[Atom<'t>],
) -> Vec<Atom<'t>> {
    let known: HashSet<&str> = base.iter().filter_map(words).collect();
    let new = |atom: &Atom<'t>| words(atom).filter(|line| !known.contains(line));
    let longer: BTreeSet<&str> = other.iter().filter_map(new).collect();
    let goes_on = |line: &str, longer: &str| longer[line.len()..].starts_with(char::is_whitespace);
    let is_beginning = |line: &str| {
        let mut all = longer
            .range(line..)
            .take_while(|longer| longer.starts_with(line));
        all.any(|longer| goes_on(line, longer))
    };
    side.iter()
        .filter(|atom| !new(atom).is_some_and(is_beginning))
        .copied()
        .collect()
}

/// A range of the base, with the range of one side that replaces it.
#[derive(Clone)]
struct Hunk {
    base: Range<usize>,
    side: Range<usize>,
}

/// A range of the base that one side or both changed.
struct Overlap<'h> {
    range: Range<usize>,
    mine: &'h [Hunk],
    other: &'h [Hunk],
}

fn hunks(base: &[Atom<'_>], side: &[Atom<'_>]) -> Vec<Hunk> {
    let (mut hunks, mut from) = (Vec::new(), (0, 0));
    let end = (base.len(), Some(side.len()));
    for (at, place) in matches(base, side).into_iter().enumerate().chain([end]) {
        let Some(place) = place else { continue };
        if (at, place) != from {
            hunks.push(Hunk {
                base: from.0..at,
                side: from.1..place,
            });
        }
        from = (at + 1, place + 1);
    }
    hunks
}

fn overlaps<'h>(mut mine: &'h [Hunk], mut other: &'h [Hunk]) -> Vec<Overlap<'h>> {
    let mut overlaps = Vec::new();
    while let Some(start) = mine
        .first()
        .into_iter()
        .chain(other.first())
        .map(|hunk| hunk.base.start)
        .min()
    {
        // An insertion before a line leaves the line unchanged.
        let is_insertion = [mine, other].iter().any(|hunks| {
            hunks
                .first()
                .is_some_and(|hunk| hunk.base == (start..start))
        });
        let mut range = if is_insertion {
            start..start
        } else {
            start..start + 1
        };
        let (mut mine_in, mut other_in) = (0, 0);
        loop {
            let is_in = |hunk: &Hunk| {
                if is_insertion {
                    hunk.base == range
                } else {
                    hunk.base.start < range.end
                }
            };
            if let Some(hunk) = mine.get(mine_in).filter(|hunk| is_in(hunk)) {
                (range.end, mine_in) = (range.end.max(hunk.base.end), mine_in + 1);
            } else if let Some(hunk) = other.get(other_in).filter(|hunk| is_in(hunk)) {
                (range.end, other_in) = (range.end.max(hunk.base.end), other_in + 1);
            } else {
                break;
            }
        }
        overlaps.push(Overlap {
            range,
            mine: &mine[..mine_in],
            other: &other[..other_in],
        });
        (mine, other) = (&mine[mine_in..], &other[other_in..]);
    }
    overlaps
}

/// Returns the atoms that the hunks add.
fn new<'t>(hunks: &[Hunk], side: &[Atom<'t>]) -> Vec<Atom<'t>> {
    hunks
        .iter()
        .flat_map(|hunk| side[hunk.side.clone()].to_vec())
        .collect()
}

fn says(atoms: &[Atom<'_>]) -> bool {
    atoms.iter().any(|atom| !atom.is_item() && !atom.is_blank())
}

/// Returns the contradiction, with common lines at its start and end split off.
fn contradiction<'t>(mut ours: Vec<Atom<'t>>, mut theirs: Vec<Atom<'t>>) -> [Part<'t>; 3] {
    let same = |(one, other): &(&Atom<'t>, &Atom<'t>)| one == other;
    let head = ours.iter().zip(&theirs).take_while(same).count();
    theirs.drain(..head);
    let head = ours.drain(..head).collect();
    let tail = ours
        .iter()
        .rev()
        .zip(theirs.iter().rev())
        .take_while(same)
        .count();
    theirs.truncate(theirs.len() - tail);
    let tail = ours.split_off(ours.len() - tail);
    [
        Part::Agreed(head),
        Part::Contradiction { ours, theirs },
        Part::Agreed(tail),
    ]
}

/// Takes the items out of a contradiction, each once: only the lines around them contradict.
pub(super) fn take_items<'t>(
    ours: &mut Vec<Atom<'t>>,
    theirs: &mut Vec<Atom<'t>>,
) -> Vec<Atom<'t>> {
    let mut items: Vec<Atom<'t>> = ours.extract_if(.., |atom| atom.is_item()).collect();
    for item in theirs.extract_if(.., |atom| atom.is_item()) {
        if !items.contains(&item) {
            items.push(item);
        }
    }
    items
}

/// Unites both sides' versions of a stretch if they don't contradict: items side by side, and lines that only
/// one side changed.
fn united<'t>(old: &[Atom<'t>], mine: &[Atom<'t>], other: &[Atom<'t>]) -> Option<Vec<Atom<'t>>> {
    let lines = |atoms: &[Atom<'t>]| -> Vec<Atom<'t>> {
        atoms
            .iter()
            .copied()
            .filter(|atom| !atom.is_item() && !atom.is_blank())
            .collect()
    };
    let (was, mine_are, others_are) = (lines(old), lines(mine), lines(other));
    let (first, second) = if was == others_are || mine_are == others_are {
        (mine, other)
    } else if was == mine_are {
        (other, mine)
    } else if was.is_empty() {
        return Some(
            interleaved(mine, other).unwrap_or_else(|| side_by_side(mine, other, |_| true)),
        );
    } else {
        return None;
    };
    // The lines are those of the first; the second adds only its items.
    Some(side_by_side(first, second, Atom::is_item))
}

/// Interleaves new lines of both sides, common ones once: an editor that continues a saved text has it in
/// both. `None` if none are common, or if there are fences, which would be split.
fn interleaved<'t>(mine: &[Atom<'t>], other: &[Atom<'t>]) -> Option<Vec<Atom<'t>>> {
    let said = |atoms: &[Atom<'t>]| -> Vec<usize> {
        (0..atoms.len())
            .filter(|at| !atoms[*at].is_blank())
            .collect()
    };
    let (my_places, other_places) = (said(mine), said(other));
    let [my_words, other_words] =
        [(mine, &my_places), (other, &other_places)].map(|(atoms, places)| {
            places
                .iter()
                .map(|at| atoms[*at])
                .collect::<Vec<Atom<'t>>>()
        });
    let found = matches(&my_words, &other_words);
    let common = found.iter().flatten().count();
    let is_fence = |atom: &Atom<'_>| matches!(atom, Atom::Line(line) if line.0.trim_start().starts_with(['`', '~']));
    let is_apart =
        common < my_words.len().min(other_words.len()) && mine.iter().chain(other).any(is_fence);
    if common == 0 || is_apart {
        return None;
    }
    let found: HashMap<usize, usize> = my_places
        .iter()
        .zip(found)
        .filter_map(|(at, place)| Some((*at, other_places[place?])))
        .collect();
    let (mut all, mut next) = (Vec::new(), 0);
    let mut push = |atoms: &[Atom<'t>]| {
        for atom in atoms {
            if !(atom.is_blank() && all.last().is_some_and(Atom::is_blank)) {
                all.push(*atom);
            }
        }
    };
    let is_new = |atom: &&Atom<'t>| !(atom.is_item() && mine.contains(atom));
    let new = |from: usize, to: usize| {
        other[from..to]
            .iter()
            .filter(is_new)
            .copied()
            .collect::<Vec<_>>()
    };
    for (at, atom) in mine.iter().enumerate() {
        if let Some(place) = found.get(&at) {
            push(&new(next, *place));
            next = place + 1;
        }
        push(&[*atom]);
    }
    push(&new(next, other.len()));
    Some(all)
}

/// Joins both: of the second, atoms that are `is_wanted` and no item of the first. Where both have a blank
/// line, one stays.
fn side_by_side<'t>(
    first: &[Atom<'t>],
    second: &[Atom<'t>],
    is_wanted: impl Fn(&Atom<'t>) -> bool,
) -> Vec<Atom<'t>> {
    let more: Vec<Atom<'t>> = second
        .iter()
        .copied()
        .filter(|atom| is_wanted(atom) && !(atom.is_item() && first.contains(atom)))
        .collect();
    let is_more = more.iter().any(|atom| !atom.is_blank());
    if !is_more {
        return first.to_vec();
    }
    let (mut head, mut more) = (first, &more[..]);
    if !head.iter().any(|atom| !atom.is_blank()) {
        return more.to_vec();
    }
    let tail_blanks = head.iter().rev().take_while(|atom| atom.is_blank()).count();
    let mut behind: &[Atom<'t>] = &[];
    if tail_blanks > 0
        && head.first().is_some_and(Atom::is_blank) == more.first().is_some_and(Atom::is_blank)
    {
        let cut = head.len() - tail_blanks;
        if more.last().is_some_and(Atom::is_blank) {
            head = &head[..cut];
        } else if more.iter().all(Atom::is_item) {
            (head, behind) = head.split_at(cut);
        }
    }
    if head.first().is_some_and(Atom::is_blank) && more.first().is_some_and(Atom::is_blank) {
        let blanks = more.iter().take_while(|atom| atom.is_blank()).count();
        more = &more[blanks..];
    }
    [head, more, behind].concat()
}
