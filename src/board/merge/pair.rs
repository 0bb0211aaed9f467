//! Which item of one version is which of another: by ID and title, by ID, else by text, by title, without one by a title much like it.

use std::collections::HashMap;

use similar::{Algorithm, capture_diff_slices, diff_ratio};

use super::revision::Revision;
use super::weave::numbered;

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
    // An ID tells an item from a line that only reads like it.
    let is_nameless = |revision: &Revision<'_>, item: usize| revision.item(item).id.is_none();
    let mut left: Vec<usize> = (0..new.len()).filter(|place| !taken[*place] && is_nameless(b, new[*place])).collect();
    let alone = (0..old.len()).filter(|place| found[*place].is_none() && is_nameless(a, old[*place]));
    let alone: Vec<usize> = alone.collect();
    if alone.len() * left.len() > MOST_COMPARED {
        return found;
    }
    for place in alone {
        let likeness = |other: &usize| likeness(a.title(old[place]), b.title(new[*other]));
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

/// From 0 (nothing is the same) to 1, letter by letter; one that goes on where the other ends is the same.
fn likeness(title: &str, other: &str) -> f32 {
    let goes_on = !title.is_empty() && !other.is_empty() && (title.starts_with(other) || other.starts_with(title));
    if goes_on {
        return 1.0;
    }
    let mut numbers = HashMap::new();
    let [one, other] = [title, other].map(|title| numbered(&mut numbers, beginning(title).chars()));
    diff_ratio(&capture_diff_slices(Algorithm::Myers, &one, &other), one.len(), other.len())
}

/// As much of a title as is compared: to compare two of megabytes takes minutes.
fn beginning(title: &str) -> &str {
    title.char_indices().nth(500).map_or(title, |(end, _)| &title[..end])
}

/// Both have IDs, and not the same.
fn are_named_apart(a: &Revision<'_>, item: usize, b: &Revision<'_>, other: usize) -> bool {
    match (&a.item(item).id, &b.item(other).id) {
        (Some(one), Some(two)) => one != two,
        _ => false,
    }
}
