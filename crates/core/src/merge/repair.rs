//! Repairs items of a merged text that read otherwise than expected, as under headings that only one side
//! has, one by one.

use std::collections::HashMap;

use super::merge_item::{One, directly_in};
use crate::document::{Document, Item, parse};
use crate::rewrite::{apply_each, set_item};
use crate::task::Status;

/// An item as it must read in the result.
pub(super) struct Expected {
    pub text: String,
    /// `None`: the status of its place.
    pub status: Option<Status>,
    /// Its status on the side that it comes from.
    pub own: Status,
    /// Whether it had no problem there.
    pub is_sound: bool,
}

impl Expected {
    /// Removes the matching item from those `found` by this name. Returns false if there is none.
    pub fn take(&self, found: &mut HashMap<String, Vec<&Item<'_>>>, name: &str) -> bool {
        let Some(same) = found.get_mut(name) else {
            return false;
        };
        same.iter()
            .position(|item| self.is(item))
            .map(|at| same.swap_remove(at))
            .is_some()
    }

    fn is(&self, item: &Item<'_>) -> bool {
        self.status.is_none_or(|status| item.status == status) && !self.is_astray(item)
    }

    /// Returns true if it is now under a heading that is no lane's, where it is not worked, and was not before.
    fn is_astray(&self, item: &Item<'_>) -> bool {
        self.is_sound && item.quarantined
    }
}

/// Returns `text`, or its `prose` if items were lost, with all `expected` items. Those that read otherwise
/// are moved to where their status is.
pub(super) fn settled(text: String, prose: &str, expected: &[Expected]) -> Option<String> {
    let mut names = HashMap::new();
    let wanted: Vec<Wanted<'_>> = expected.iter().map(Wanted::of).collect();
    wanted
        .iter()
        .for_each(|item| *names.entry(item.name.as_str()).or_default() += 1);
    let placed = |text: String| {
        let missing = missing(&parse(&text).0, &wanted);
        let text = apply_each(text, missing.clone(), &|document, item| {
            let misread = item
                .misread(document)
                .filter(|misread| item.expected.is_astray(misread));
            misread.map_or_else(Vec::new, |misread| set_item(document, Some(misread), None))
        });
        let text = apply_each(text, missing, &|document, item| {
            let Expected {
                text, status, own, ..
            } = item.expected;
            set_item(
                document,
                item.misread(document),
                Some((text, Some(status.unwrap_or(*own)))),
            )
        });
        holds(&parse(&text).0, &wanted, &names).then_some(text)
    };
    // A missing item may be in a fence, and would then be there twice.
    let is_movable = {
        let (document, _) = parse(&text);
        missing(&document, &wanted)
            .iter()
            .all(|item| item.misread(&document).is_some())
    };
    placed(if is_movable { text } else { prose.to_owned() })
}

/// Number of expected items by name.
type Counts<'w> = HashMap<&'w str, usize>;

/// An expected item, parsed.
struct Wanted<'e> {
    expected: &'e Expected,
    name: String,
    words: String,
}

impl<'e> Wanted<'e> {
    fn of(expected: &'e Expected) -> Wanted<'e> {
        let (document, _) = parse(&expected.text);
        let first = directly_in(&document, None).into_iter().next();
        let (name, words) =
            first.map_or_else(Default::default, |one| (one.name().to_owned(), words(one)));
        Wanted {
            expected,
            name,
            words,
        }
    }

    /// Returns the item with its text that stands where it reads otherwise.
    fn misread<'d, 't>(&self, document: &'d Document<'t>) -> Option<&'d Item<'t>> {
        let mut named = directly_in(document, None)
            .into_iter()
            .filter(|one| one.name() == self.name);
        named
            .find(|one| !self.expected.is(one.item) && words(*one) == self.words)
            .map(|one| one.item)
    }
}

/// Returns name, title and lines. Bullet, indent and `status:` depend on the place, and so does a block with
/// nothing else.
fn words(one: One<'_, '_>) -> String {
    let lines = one.block().lines().skip(1).map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with("status:"))
        .collect();
    let lines = format!("{}\n{}\n{}\n", one.name(), one.title(), lines.join("\n"));
    lines.replacen("\n```yaml task\n```\n", "\n", 1)
}

/// Returns those that do not read in the document as they must.
fn missing<'w, 'e>(document: &Document<'_>, wanted: &'w [Wanted<'e>]) -> Vec<&'w Wanted<'e>> {
    let mut found: HashMap<String, Vec<&Item<'_>>> = HashMap::new();
    for one in directly_in(document, None) {
        found.entry(words(one)).or_default().push(one.item);
    }
    wanted
        .iter()
        .filter(|item| !item.expected.take(&mut found, &item.words))
        .collect()
}

/// Returns true if all are there, and none more than once.
fn holds(document: &Document<'_>, wanted: &[Wanted<'_>], names: &Counts<'_>) -> bool {
    let mut left = names.clone();
    let is_once = |one: One<'_, '_>| {
        left.get_mut(one.name())
            .is_none_or(|left| left.checked_sub(1).inspect(|less| *left = *less).is_some())
    };
    missing(document, wanted).is_empty() && directly_in(document, None).into_iter().all(is_once)
}
