//! Matches the items of two versions: by ID and title, by ID, else by text, by title, and without an ID by a
//! similar title.

use std::collections::{HashMap, HashSet};

use similar::{Algorithm, capture_diff_slices, diff_ratio};

use super::diff3::numbered;
use super::merge_item::One;
use crate::task::TaskId;

/// Maximum pairs of titles that are compared letter by letter.
const MOST_COMPARED: usize = 20_000;

/// Minimum similarity of two titles, from 0 to 1, for one to count as the other, retyped.
pub(crate) const ALIKE: f32 = 0.6;

/// Maps the bare text of an item without an ID to its ID in another version.
pub type Named = HashMap<String, TaskId>;

/// A function that returns an item's key for matching.
type Naming<'n> = &'n dyn Fn(One<'_, '_>) -> Option<String>;

/// Returns the index in `new` for each of the items `old`. An item that lost its ID, or got one, is still the
/// same. Two with different IDs are not, unless two shared an ID and one of them got its own.
pub(super) fn pair(old: &[One<'_, '_>], new: &[One<'_, '_>]) -> Vec<Option<usize>> {
    let mut found: Vec<Option<usize>> = vec![None; old.len()];
    let mut taken = vec![false; new.len()];
    let mut count: HashMap<(bool, &TaskId), usize> = HashMap::new();
    let ids = |is_old, id| Some((is_old, Option::as_ref(id)?));
    let (olds, news) = (
        old.iter().map(|one| &one.item.id),
        new.iter().map(|one| &one.item.id),
    );
    for id in olds
        .filter_map(|id| ids(true, id))
        .chain(news.filter_map(|id| ids(false, id)))
    {
        *count.entry(id).or_default() += 1;
    }
    let is_double = |id: &TaskId| {
        [true, false]
            .iter()
            .any(|is_old| count.get(&(*is_old, id)).is_some_and(|count| *count > 1))
    };
    let ways: [Naming<'_>; 5] = [
        // Of two with the same ID the one that reads as before matches.
        &|one| {
            one.item
                .id
                .as_ref()
                .filter(|id| is_double(id))
                .map(|id| format!("{id} {}", one.bare_block()))
        },
        // Of two with the same typed ID the one with the title matches.
        &|one| Some(format!("{} {}", one.item.id.as_ref()?, one.title())),
        &|one| one.item.id.as_ref().map(ToString::to_string),
        &|one| Some(one.bare_block()),
        &|one| Some(one.title().to_owned()).filter(|title| !title.is_empty()),
    ];
    for way in ways {
        let mut open: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, one) in new
            .iter()
            .enumerate()
            .rev()
            .filter(|(place, _)| !taken[*place])
        {
            if let Some(name) = way(*one) {
                open.entry(name).or_default().push(place);
            }
        }
        for (place, one) in old.iter().enumerate() {
            if found[place].is_some() {
                continue;
            }
            let Some(places) = way(*one).and_then(|name| open.get_mut(&name)) else {
                continue;
            };
            let can_be = |other: &usize| !are_named_apart(*one, new[*other]);
            let is_same =
                |other: &usize| can_be(other) && one.bare_block() == new[*other].bare_block();
            // If a copy was changed since, the other one matches.
            let same = if places.len() > 1 {
                places.iter().rposition(is_same)
            } else {
                None
            };
            if let Some(at) = same.or_else(|| places.iter().rposition(can_be)) {
                let other = places.remove(at);
                (found[place], taken[other]) = (Some(other), true);
            }
        }
    }
    // Of two with the same ID one may get a new one and otherwise read as before.
    let is_new = |at: &usize| {
        new[*at]
            .item
            .id
            .as_ref()
            .is_some_and(|id| !count.contains_key(&(true, id)))
    };
    for (place, one) in old
        .iter()
        .enumerate()
        .filter(|(_, one)| one.item.id.as_ref().is_some_and(is_double))
    {
        let is_it = |at: &usize| !taken[*at] && is_new(at) && new[*at].is_renamed(*one);
        if found[place].is_none()
            && let Some(at) = (0..new.len()).find(is_it)
        {
            (found[place], taken[at]) = (Some(at), true);
        }
    }
    // An ID distinguishes an item from a line that only reads like it. A new ID may be that of an item that
    // had none.
    let known: HashSet<&TaskId> = old.iter().filter_map(|one| one.item.id.as_ref()).collect();
    let may_be_new = |at: &usize| {
        new[*at]
            .item
            .id
            .as_ref()
            .is_none_or(|id| !known.contains(id))
    };
    let mut left: Vec<usize> = (0..new.len())
        .filter(|at| !taken[*at] && may_be_new(at))
        .collect();
    let alone = (0..old.len()).filter(|at| found[*at].is_none() && old[*at].item.id.is_none());
    let alone: Vec<usize> = alone.collect();
    if alone.len() * left.len() > MOST_COMPARED {
        return found;
    }
    for place in alone {
        let likeness = |other: &usize| {
            let [title, other_title] = [old[place].title(), new[*other].title()];
            match &new[*other].item.id {
                None => likeness(title, other_title),
                Some(_) if is_typed_on(title, other_title) => 1.0,
                Some(_) => 0.0,
            }
        };
        let all = left.iter().map(|other| (likeness(other), *other));
        if let Some((ratio, other)) = all.max_by(|x, y| x.0.total_cmp(&y.0).then(y.1.cmp(&x.1)))
            && ratio >= ALIKE
        {
            found[place] = Some(other);
            left.retain(|place| *place != other);
        }
    }
    found
}

/// Makes an open line of `theirs` that has no ID a new item where it has other words than the item of `ours` that has
/// ended meanwhile: new words are not done.
pub(super) fn keep_ended_apart(
    base: &[One<'_, '_>],
    [ours, theirs]: [&[One<'_, '_>]; 2],
    pairs: &mut [Vec<Option<usize>>; 2],
) {
    for (place, was) in base.iter().enumerate() {
        let (Some(mine), Some(other)) = (pairs[0][place], pairs[1][place]) else {
            continue;
        };
        let (mine, other) = (ours[mine], theirs[other]);
        let is_open = other.item.id.is_none() && !other.item.status.is_ended();
        let is_same = other.title() == was.title() || is_typed_on(was.title(), other.title());
        if is_open && mine.item.status.is_ended() && !is_same {
            pairs[1][place] = None;
        }
    }
}

/// Pairs items by their known ID in `side`, even if another item there reads as in `base`.
pub(super) fn know_named(
    base: &[One<'_, '_>],
    named: &Named,
    side: &[One<'_, '_>],
    pairs: &mut [Option<usize>],
) {
    if named.is_empty() {
        return;
    }
    let places = places(side);
    let mut taken: HashSet<usize> = pairs.iter().flatten().copied().collect();
    for (one, pair) in base
        .iter()
        .zip(pairs)
        .filter(|(one, _)| one.item.id.is_none())
    {
        let known = named.get(&one.bare_block()).and_then(|id| places.get(id));
        if let Some(at) = known.filter(|at| taken.insert(**at)) {
            *pair = Some(*at);
        }
    }
}

/// Pairs an item that got its ID in one of the `sides` with the one that has it in the other, even if another
/// item there reads as in `base`. `pairs` has the index in each side for each item of `base`.
pub(super) fn agree_on_ids(
    base: &[One<'_, '_>],
    sides: [&[One<'_, '_>]; 2],
    pairs: &mut [Vec<Option<usize>>; 2],
) {
    let nameless: Vec<usize> = (0..base.len())
        .filter(|place| base[*place].item.id.is_none())
        .collect();
    if nameless.is_empty() {
        return;
    }
    let places = sides.map(places);
    for (one, other) in [(0, 1), (1, 0)] {
        let mut taken: HashSet<usize> = pairs[other].iter().flatten().copied().collect();
        for place in &nameless {
            let id = pairs[one][*place].and_then(|at| sides[one][at].item.id.as_ref());
            if let Some(at) = id
                .and_then(|id| places[other].get(id))
                .filter(|at| taken.insert(**at))
            {
                pairs[other][*place] = Some(*at);
            }
        }
    }
}

/// Returns the index of each ID.
fn places<'m>(side: &[One<'m, '_>]) -> HashMap<&'m TaskId, usize> {
    side.iter()
        .enumerate()
        .filter_map(|(place, one)| Some((one.item.id.as_ref()?, place)))
        .collect()
}

/// Returns the similarity of two titles from 0 to 1, letter by letter; one that continues the other counts as
/// the same. Titles that differ in a number (`Chapter 1` and `Chapter 2`) are different.
pub(crate) fn likeness(title: &str, other: &str) -> f32 {
    let goes_on = !title.is_empty()
        && !other.is_empty()
        && (title.starts_with(other) || other.starts_with(title));
    if goes_on {
        return 1.0;
    }
    if lacks_number(title, other) && lacks_number(other, title) {
        return 0.0;
    }
    let mut numbers = HashMap::new();
    let [one, other] = [title, other].map(|title| numbered(&mut numbers, beginning(title).chars()));
    diff_ratio(
        &capture_diff_slices(Algorithm::Myers, &one, &other),
        one.len(),
        other.len(),
    )
}

/// Returns true if a number of `title` is not in `other`.
fn lacks_number(title: &str, other: &str) -> bool {
    let numbers =
        |text| str::split(text, |c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    numbers(title).any(|number| numbers(other).all(|known| known != number))
}

/// Returns true if `longer` begins with the whole words of `title`.
pub fn is_typed_on(title: &str, longer: &str) -> bool {
    let rest = longer.strip_prefix(title).filter(|_| !title.is_empty());
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Returns the compared part of a title: comparing megabytes would take minutes.
fn beginning(title: &str) -> &str {
    title
        .char_indices()
        .nth(500)
        .map_or(title, |(end, _)| &title[..end])
}

/// Returns true if both have IDs, and different ones.
fn are_named_apart(one: One<'_, '_>, other: One<'_, '_>) -> bool {
    matches!((&one.item.id, &other.item.id), (Some(id), Some(other)) if id != other)
}
