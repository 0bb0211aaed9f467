//! Which item of one version is which of another: by ID and title, by ID, else by text, by title, by a title much like it.

use std::collections::HashMap;

use crate::board::likeness;

use super::revision::Revision;

/// More pairs of titles than this are not compared letter by letter.
const MOST_COMPARED: usize = 20_000;

/// How alike two titles are at least, from 0 to 1, so that one is taken for the other, retyped.
const ALIKE: f32 = 0.6;

/// What an item goes by.
type Naming<'n> = &'n dyn Fn(&Revision<'_>, usize) -> Option<String>;

/// For each of the items `old` (indices into its document) its place in `new`. One that has lost its ID, or got one,
/// is still the same; two with different IDs never are.
pub(super) fn pair(a: &Revision<'_>, old: &[usize], b: &Revision<'_>, new: &[usize]) -> Vec<Option<usize>> {
    let mut found: Vec<Option<usize>> = vec![None; old.len()];
    let mut taken = vec![false; new.len()];
    let ways: [Naming<'_>; 4] = [
        // Of two with the same ID, which somebody has typed twice, the one with the title is meant.
        &|version, item| Some(format!("{} {}", version.item(item).id.as_ref()?, version.title(item))),
        &|version, item| version.item(item).id.as_ref().map(ToString::to_string),
        &|version, item| Some(version.bare_block(item)),
        &|version, item| Some(version.title(item).to_owned()).filter(|title| !title.is_empty()),
    ];
    for way in ways {
        let mut open: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, item) in new.iter().enumerate().rev().filter(|(place, _)| !taken[*place]) {
            if let Some(name) = way(b, *item) {
                open.entry(name).or_default().push(place);
            }
        }
        for (place, item) in old.iter().enumerate() {
            if found[place].is_some() {
                continue;
            }
            let Some(places) = way(a, *item).and_then(|name| open.get_mut(&name)) else { continue };
            let can_be = |other: &usize| !are_named_apart(a, *item, b, new[*other]);
            if let Some(at) = places.iter().rposition(can_be) {
                let other = places.remove(at);
                (found[place], taken[other]) = (Some(other), true);
            }
        }
    }
    let left: Vec<usize> = (0..new.len()).filter(|place| !taken[*place]).collect();
    let alone = found.iter().filter(|other| other.is_none()).count();
    if alone * left.len() > MOST_COMPARED {
        return found;
    }
    for place in 0..old.len() {
        if found[place].is_some() {
            continue;
        }
        let likeness = |other: &usize| {
            if taken[*other] || are_named_apart(a, old[place], b, new[*other]) {
                return 0.0;
            }
            likeness_of_titles(a.title(old[place]), b.title(new[*other]))
        };
        let best =
            left.iter().map(|other| (likeness(other), *other)).max_by(|x, y| x.0.total_cmp(&y.0).then(y.1.cmp(&x.1)));
        if let Some((ratio, other)) = best
            && ratio >= ALIKE
        {
            (found[place], taken[other]) = (Some(other), true);
        }
    }
    found
}

/// From 0 to 1; one that goes on where the other ends is the same.
fn likeness_of_titles(title: &str, other: &str) -> f32 {
    let goes_on = !title.is_empty() && !other.is_empty() && (title.starts_with(other) || other.starts_with(title));
    if goes_on { 1.0 } else { likeness::of_chars(beginning(title), beginning(other)) }
}

/// As much of a title as is compared: to compare two of megabytes takes minutes.
fn beginning(title: &str) -> &str {
    title.char_indices().nth(500).map_or(title, |(end, _)| &title[..end])
}

/// One title may be the other, retyped.
pub fn are_alike(title: &str, other: &str) -> bool {
    likeness_of_titles(title, other) >= ALIKE
}

/// Both have IDs, and not the same.
fn are_named_apart(a: &Revision<'_>, item: usize, b: &Revision<'_>, other: usize) -> bool {
    match (&a.item(item).id, &b.item(other).id) {
        (Some(one), Some(two)) => one != two,
        _ => false,
    }
}
