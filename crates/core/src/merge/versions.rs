//! The versions of a conflicting stretch or field. An editor that saves an old text repeatedly continues its
//! own version, which adds no new version each time.

use std::collections::HashMap;

use super::conflict::{Bound, MARK};
use super::output::Atom;

/// Returns the atoms of each side, each with the number of its contradiction, if any; equal contradictions
/// have equal numbers. So atoms between markers match only those between the same markers, and a
/// contradiction is taken as a whole.
pub(super) fn by_contradiction<'t>(sides: [&[Atom<'t>]; 3]) -> [Vec<(Atom<'t>, Option<usize>)>; 3] {
    let mut numbers: HashMap<&[Atom<'t>], usize> = HashMap::new();
    sides.map(|side| {
        let ends = ends(side);
        let (mut numbered, mut at) = (Vec::with_capacity(side.len()), 0);
        while at < side.len() {
            let end = ends.get(&at).copied();
            let next = numbers.len();
            let number = end.map(|end| *numbers.entry(&side[at..end]).or_insert(next));
            let until = end.unwrap_or(at + 1);
            numbered.extend(side[at..until].iter().map(|atom| (*atom, number)));
            at = until;
        }
        numbered
    })
}

/// Maps the start of each contradiction to its end.
fn ends(atoms: &[Atom<'_>]) -> HashMap<usize, usize> {
    let (mut begun, mut ends) = (Vec::new(), HashMap::new());
    for (at, atom) in atoms.iter().enumerate() {
        match atom.bound() {
            Some(Bound::Ours) => begun.push(at),
            Some(Bound::End) => ends.extend(begun.pop().map(|begin| (begin, at + 1))),
            _ => {}
        }
    }
    ends
}

/// Returns the versions of a stretch: those of `mine`, and those of `other` that add something. A version
/// adds nothing if another one, or the text between other markers, has it all.
pub(super) fn versions<'t>(
    mine: &[Atom<'t>],
    other: &[Atom<'t>],
    marked: &[String],
) -> Vec<Vec<Atom<'t>>> {
    let mut versions = standing(mine);
    let is_marked = versions.len() > 1;
    for other in standing(other) {
        let texts: Vec<String> = versions.iter().map(|version| said(version)).collect();
        let new = said(&other);
        if (is_marked && texts.iter().any(|version| says_all_of(version, &new)))
            || marked.contains(&new)
        {
            continue;
        }
        match gone_on(&texts, &new).filter(|_| is_marked) {
            Some(at) => versions[at] = other,
            None => versions.push(other),
        }
    }
    versions
}

/// Removes the lines that all versions begin with, and returns them: they go before the markers.
pub(super) fn common_head<'t>(versions: &mut [Vec<Atom<'t>>]) -> Vec<Atom<'t>> {
    let [first, others @ ..] = versions else {
        return Vec::new();
    };
    let is_common = |(at, atom): &(usize, &Atom<'t>)| {
        others.iter().all(|version| version.get(*at) == Some(atom))
    };
    let len = first.iter().enumerate().take_while(is_common).count();
    versions
        .iter_mut()
        .fold(Vec::new(), |_, version| version.drain(..len).collect())
}

/// Returns the versions between the markers of an earlier merge, else all as one.
fn standing<'t>(mine: &[Atom<'t>]) -> Vec<Vec<Atom<'t>>> {
    let is_said = |atom: &Atom<'_>| !atom.is_blank();
    let (first, last) = (
        mine.iter().position(is_said),
        mine.iter().rposition(is_said),
    );
    let within = first
        .zip(last)
        .and_then(|(first, last)| mine.get(first..=last));
    if let Some([begin, inner @ .., end]) = within
        && (begin.bound(), end.bound()) == (Some(Bound::Ours), Some(Bound::End))
        && inner
            .iter()
            .all(|atom| matches!(atom.bound(), None | Some(Bound::Theirs)))
    {
        return inner
            .split(|atom| atom.bound().is_some())
            .map(<[Atom<'t>]>::to_vec)
            .collect();
    }
    vec![mine.to_vec()]
}

/// Returns the versions between the markers of earlier merges in a text.
pub(super) fn marked_versions(atoms: &[Atom<'_>]) -> Vec<String> {
    let pieces = atoms.split_inclusive(|atom| atom.bound().is_some());
    let versions = pieces.filter_map(|piece| match piece.split_last() {
        Some((last, version)) if matches!(last.bound(), Some(Bound::Theirs | Bound::End)) => {
            Some(said(version))
        }
        _ => None,
    });
    versions.filter(|version| !version.is_empty()).collect()
}

fn said(version: &[Atom<'_>]) -> String {
    let lines = version.iter().filter_map(|atom| match atom {
        Atom::Line(line) => Some(line.0.trim()).filter(|line| !line.is_empty()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns true if the version has every line of `new` in that order; an empty text is only in an empty one.
fn says_all_of(version: &str, new: &str) -> bool {
    let mut lines = version.lines();
    version == new || !new.is_empty() && new.lines().all(|line| lines.any(|other| other == line))
}

/// Returns the version in `texts` that `new` continues: every word of it is still there. A version that is
/// only similar has no known author.
fn gone_on(texts: &[String], new: &str) -> Option<usize> {
    texts.iter().position(|version| {
        let mut words = words(new);
        self::words(version).all(|word| words.any(|later| later == word))
    })
}

/// Returns the words without punctuation around them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let signs = |c: char| c.is_ascii_punctuation();
    text.split_whitespace().map(move |word| {
        Some(word.trim_matches(signs))
            .filter(|bare| !bare.is_empty())
            .unwrap_or(word)
    })
}

/// Returns an item's `text` with a marker that the other side's `part` is `theirs`.
pub(super) fn marked(
    text: String,
    [part, theirs]: [&str; 2],
    indent: usize,
    newline: &str,
) -> String {
    let start = format!("{MARK}{part}: ");
    let mark = format!("{start}{} -->", theirs.replace("-->", "--&gt;"));
    if text.contains(&mark) {
        return text;
    }
    let mark_of = |line: &str| {
        Some(
            line.trim()
                .strip_prefix(&start)?
                .strip_suffix(" -->")?
                .to_owned(),
        )
    };
    let others: Vec<String> = text.lines().filter_map(mark_of).collect();
    if let Some(at) = gone_on(&others, theirs) {
        return text.replacen(&format!("{start}{} -->", others[at]), &mark, 1);
    }
    let gap = if text.ends_with(['\n', '\r']) {
        ""
    } else {
        newline
    };
    format!("{text}{gap}{}{mark}{newline}", " ".repeat(indent))
}
