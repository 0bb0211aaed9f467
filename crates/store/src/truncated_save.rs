//! Detects truncated saves, which lack their end or most of their words. A full disk, a killed editor or a `>` causes
//! that more often than a person. Knows no board.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::recovery::text_lines;
use tavern_core::document::{Document, Item, Lane, parse};
use tavern_core::task::TaskId;

/// The fewest open items missing at the end, one of them held, that show a truncation.
const FEW_ITEMS: usize = 2;

/// Fewer words may be removed at once without confirmation.
const FEW_WORDS: usize = 80;

/// Returns true if `saved` seems truncated:
/// - It ends in the middle of a line of `loaded` or `ours`, and nothing of the rest follows.
/// - It ends where `loaded` goes on with lanes that it lacks, and with items or words in them. Missing empty lanes
///   alone don't count.
/// - It lacks open items behind its end, one of which is `held`.
pub(super) fn is_cut_short([loaded, ours]: [&str; 2], saved: &str, held: &HashSet<TaskId>) -> bool {
    let lines: Vec<&str> = text_lines(saved).collect();
    let Some(last) = lines.last() else {
        return false;
    };
    let has: HashSet<&str> = lines.iter().copied().collect();
    let is_torn = |whole: &str| !saved.ends_with('\n') && is_torn(whole, last, &has);
    if !text_lines(loaded).any(|line| line == *last) {
        return is_torn(loaded) || is_torn(ours);
    }
    let times = lines.iter().filter(|line| *line == last).count();
    let Some((_, end)) = ends(loaded).filter(|(line, _)| line == last).nth(times - 1) else {
        return false;
    };
    if !has_most(&text_lines(&loaded[..end]).collect::<Vec<_>>(), &has) {
        return false;
    }
    let (whole, theirs) = (parse(loaded).0, parse(saved).0);
    let is_in_tail = |item: &&Item<'_>| item.within.is_none() && item.span.start >= end;
    let items: Vec<&Item<'_>> = whole.items().iter().filter(is_in_tail).collect();
    let is_lost = |item: &&&Item<'_>| match &item.id {
        Some(id) => theirs.find(id).is_none(),
        None => !has.contains(first_line(whole.block(item))),
    };
    let lost: Vec<&&Item<'_>> = items.iter().filter(is_lost).collect();
    let heading = |lane: &Lane| first_line(&loaded[lane.heading.clone()]).to_owned();
    let headings: HashSet<String> = whole
        .lanes()
        .iter()
        .filter(|lane| lane.heading.start >= end)
        .map(heading)
        .collect();
    if headings
        .iter()
        .all(|heading| has.contains(heading.as_str()))
    {
        let is_held = |item: &&&Item<'_>| item.id.as_ref().is_some_and(|id| held.contains(id));
        let open = lost.iter().filter(|item| !item.status.is_ended());
        return open.count() >= FEW_ITEMS && lost.iter().any(is_held);
    }
    let is_words = |(_, line_end): &(&str, usize)| {
        *line_end > end
            && !items
                .iter()
                .any(|item| (item.span.start..=item.span.end).contains(line_end))
    };
    let mut words = ends(loaded).filter(is_words);
    !lost.is_empty() || words.any(|(line, _)| !headings.contains(line) && !has.contains(line))
}

fn first_line(block: &str) -> &str {
    block.lines().next().unwrap_or_default().trim_end()
}

/// Returns true if `last` is the beginning of a line of `whole`, and the text with the lines `has` lacks most lines
/// from there on.
fn is_torn(whole: &str, last: &str, has: &HashSet<&str>) -> bool {
    let lines: Vec<&str> = text_lines(whole).collect();
    let begun =
        (0..lines.len()).filter(|at| lines[*at].starts_with(last) && !has.contains(lines[*at]));
    begun.map(|at| lines.split_at(at)).any(|(head, rest)| {
        has_most(head, has) && !has_most(rest, has) && (rest.len() > 1 || whole.ends_with('\n'))
    })
}

/// Returns true if at least half of the lines are in `has`; otherwise it is a different text.
fn has_most(lines: &[&str], has: &HashSet<&str>) -> bool {
    2 * lines.iter().filter(|line| has.contains(*line)).count() >= lines.len()
}

/// Returns the lines that are not blank, each with the offset of its end.
fn ends(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let lines = text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((line.trim_end(), *end))
    });
    lines.filter(|(line, _)| !line.is_empty())
}

/// Returns true if `after` lacks most words of `before` between open items and in surviving items, and adds few others.
pub(super) fn takes_most_words(before: &str, after: &str) -> bool {
    let [was, is] = [before, after].map(|text| parse(text).0);
    let had = || open_text(&was, &is).flat_map(str::split_whitespace);
    let (lost, brought) = (
        missing_words(had(), after),
        missing_words(after.split_whitespace(), before),
    );
    lost >= FEW_WORDS && 2 * lost > had().count() && 2 * brought < lost
}

/// Returns how many of `words` are not in `text`.
fn missing_words<'t>(words: impl Iterator<Item = &'t str>, text: &'t str) -> usize {
    let mut left: HashMap<&str, usize> = HashMap::new();
    text.split_whitespace()
        .for_each(|word| *left.entry(word).or_default() += 1);
    let mut missing = 0;
    for word in words {
        match left.get_mut(word) {
            Some(left) if *left > 0 => *left -= 1,
            _ => missing += 1,
        }
    }
    missing
}

/// Returns the text without front matter, lane headings, ended items, and items that are not in `left`.
fn open_text<'t>(document: &Document<'t>, left: &Document<'_>) -> impl Iterator<Item = &'t str> {
    let is_there = |item: &Item<'_>| match &item.id {
        Some(id) => left.find(id).is_some(),
        None => left
            .items()
            .iter()
            .any(|other| left.title(other) == document.title(item)),
    };
    let is_left_out =
        |item: &&Item<'t>| item.within.is_none() && (item.status.is_ended() || !is_there(item));
    let lanes = document.lanes().iter().map(|lane| lane.heading.clone());
    let items = document
        .items()
        .iter()
        .filter(is_left_out)
        .map(|item| item.span.clone());
    let mut holes: Vec<Range<usize>> = lanes.chain(items).collect();
    holes.sort_by_key(|hole| hole.start);
    let (text, mut at) = (document.text(), document.body);
    let holes = holes
        .into_iter()
        .chain(std::iter::once(text.len()..text.len()));
    holes.map(move |hole| {
        let open = text.get(at..hole.start).unwrap_or_default();
        at = at.max(hole.end);
        open
    })
}
