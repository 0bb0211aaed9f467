//! The versions of a stretch that contradicts, and of a field: who saves an old text again and again goes on in what they said, and
//! is not said to say something more each time.

use super::conflict::{Bound, MARK};
use super::pair::{ALIKE, likeness};
use super::written::Atom;

/// The versions of a stretch: those that stand in `mine`, and `other`.
pub(super) fn versions<'t>(mine: &[Atom<'t>], other: &[Atom<'t>]) -> Vec<Vec<Atom<'t>>> {
    if mine.iter().chain(other).any(Atom::is_item) {
        let new = other.iter().copied().filter(|atom| !mine.contains(atom) || !atom.is_item());
        return vec![mine.to_vec(), new.collect()];
    }
    let mut versions = standing(mine);
    let said: Vec<String> = versions.iter().map(|version| said(version)).collect();
    let new = self::said(other);
    if versions.len() > 1 && said.contains(&new) {
        return versions;
    }
    match gone_on(&said[0], &said[1..], &new) {
        Some(at) => versions[at + 1] = other.to_vec(),
        None => versions.push(other.to_vec()),
    }
    versions
}

/// Between the marks of an earlier merge, else all of it.
fn standing<'t>(mine: &[Atom<'t>]) -> Vec<Vec<Atom<'t>>> {
    let mark = |atom: &Atom<'_>| match atom {
        Atom::Line(line) => Bound::of(line.0),
        _ => None,
    };
    let is_said = |atom: &Atom<'_>| !atom.is_blank();
    let (first, last) = (mine.iter().position(is_said), mine.iter().rposition(is_said));
    let within = first.zip(last).and_then(|(first, last)| mine.get(first..=last));
    if let Some([begin, inner @ .., end]) = within
        && (mark(begin), mark(end)) == (Some(Bound::Ours), Some(Bound::End))
        && inner.iter().all(|atom| matches!(mark(atom), None | Some(Bound::Theirs)))
    {
        return inner.split(|atom| mark(atom).is_some()).map(<[Atom<'t>]>::to_vec).collect();
    }
    vec![mine.to_vec()]
}

fn said(version: &[Atom<'_>]) -> String {
    let lines = version.iter().filter_map(|atom| match atom {
        Atom::Line(line) => Some(line.0.trim()).filter(|line| !line.is_empty()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Which of the `others` it is that has become `new`: the one most like it, and no less so than `ours`.
fn gone_on(ours: &str, others: &[String], new: &str) -> Option<usize> {
    let all = others.iter().enumerate().map(|(at, other)| (likeness(other, new), at));
    let (ratio, at) = all.max_by(|x, y| x.0.total_cmp(&y.0))?;
    (ratio >= ALIKE && ratio >= likeness(ours, new)).then_some(at)
}

/// `text` of an item whose `what` says `ours`, with a mark that the other side says `theirs`, in lines that end so.
pub(super) fn marked(text: String, [what, ours, theirs]: [&str; 3], indent: usize, newline: &str) -> String {
    let start = format!("{MARK}{what}: ");
    let mark = format!("{start}{} -->", theirs.replace("-->", "--&gt;"));
    if text.contains(&mark) {
        return text;
    }
    let mark_of = |line: &str| Some(line.trim().strip_prefix(&start)?.strip_suffix(" -->")?.to_owned());
    let others: Vec<String> = text.lines().filter_map(mark_of).collect();
    if let Some(at) = gone_on(ours, &others, theirs) {
        return text.replacen(&format!("{start}{} -->", others[at]), &mark, 1);
    }
    let gap = if text.ends_with(['\n', '\r']) { "" } else { newline };
    format!("{text}{gap}{}{mark}{newline}", " ".repeat(indent))
}
