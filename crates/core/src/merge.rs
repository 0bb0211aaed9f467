//! Three-way merge of a queue document: item by item, and within an item field by field.
//!
//! Changes of one side are taken. Where both sides differ, the result has both, in a form that parses, and
//! the conflict is reported. Items are compared, not their places: if one side moves an item and the other
//! retitles it, both changes are kept. Knows nothing of git, files or leases.

use std::collections::{HashMap, HashSet};

use crate::document::{Document, Item, parse};
use crate::markup;
use crate::patch::said;
use crate::task::{Status, TaskId};

use conflict::Bound;
use diff3::{Stretch, matches, weave};
use fields::{bodies, line_and_block};
use lines::by_lines;
use merge_item::{One, Region, Side, directly_in};
use minimize_conflicts::{Part, narrowed, take_items, without_beginnings};
use output::{Atom, BareLine, Piece, Resolution, Stand, pieces, written};
use repair::{Expected, settled};
use versions::{by_contradiction, common_head, marked, marked_versions, versions};

pub use changed::{Changed, changes, prose};
pub use conflict::is_called;
pub use conflict::{Conflict, marks};
pub use matching::Named;
pub use matching::is_typed_on;
pub(crate) use matching::{ALIKE, likeness};
pub use merge_item::bare;

mod changed;
mod conflict;
mod diff3;
mod fields;
mod lines;
mod matching;
mod merge_item;
mod minimize_conflicts;
mod output;
mod repair;
#[cfg(test)]
mod tests;
mod versions;

/// The byte order mark.
const MARK: char = '\u{feff}';

/// The merged document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedText {
    pub text: String,
    pub conflicts: Vec<Conflict>,
    /// True if the items could not be distinguished, so that conflicts stand between git's markers. The text
    /// does not parse until a person has resolved them.
    pub has_markers: bool,
}

/// Merges `ours` and `theirs` with the merge base `base`. Items for which `is_held` is true keep their
/// presence and status from `ours`: their holders are still at work.
pub fn merge(
    base: &str,
    ours: &str,
    theirs: &str,
    is_held: &dyn Fn(&TaskId) -> bool,
) -> MergedText {
    merge_named(base, &Named::new(), ours, theirs, is_held)
}

/// As [`merge`]. `named` maps items of `base` to their items in `ours`.
pub fn merge_named(
    base: &str,
    named: &Named,
    ours: &str,
    theirs: &str,
    is_held: &dyn Fn(&TaskId) -> bool,
) -> MergedText {
    let whole = |text: &str| MergedText {
        text: text.to_owned(),
        conflicts: Vec::new(),
        has_markers: false,
    };
    if ours == theirs || base == theirs {
        return whole(ours);
    }
    let is_safe = || {
        parse(ours)
            .0
            .items()
            .iter()
            .all(|item| item.id.as_ref().is_none_or(|id| !is_held(id)))
    };
    if base == ours && is_safe() {
        return whole(theirs);
    }
    // The encoding mark is no part of the first line.
    let [was, mine, other] = [base, ours, theirs].map(|text| text.starts_with(MARK));
    if was || mine || other {
        let [base, ours, theirs] =
            [base, ours, theirs].map(|text| text.strip_prefix(MARK).unwrap_or(text));
        let is_marked = if mine == was { other } else { mine };
        let mut merged = merge_named(base, named, ours, theirs, is_held);
        if is_marked {
            merged.text.insert(0, MARK);
        }
        return merged;
    }
    // Line ends are ignored in comparisons. A side that changed all of them means the other side's lines, too.
    if let [Some(was), Some(mine), Some(other)] = [base, ours, theirs].map(markup::only_newline)
        && was == mine
        && mine != other
    {
        let [base, ours] = [base, ours].map(|text| text.replace(mine, other));
        return merge_named(&base, named, &ours, theirs, is_held);
    }
    let documents = [base, ours, theirs].map(|text| parse(text).0);
    let documents = documents.each_ref();
    let mut merge = Merging {
        documents,
        named,
        is_held,
        conflicts: Vec::new(),
        expected: Vec::new(),
    };
    let pieces = merge.region(&documents.map(Region::whole), None);
    let is_ended = |text: &str| text.is_empty() || text.ends_with(['\n', '\r']);
    let (newline, last) = (
        markup::newline(ours),
        if is_ended(base) == is_ended(ours) {
            theirs
        } else {
            ours
        },
    );
    let ended = |mut text: String| {
        if is_ended(last) && !is_ended(&text) {
            text.push_str(newline);
        } else if !is_ended(last) && is_ended(&text) {
            text.truncate(markup::without_line_end(&text).len());
        }
        text
    };
    let texts = ["", newline].map(|gap| ended(written(&pieces, "", newline, gap)));
    let right = texts.iter().find(|text| merge.reads_right(text)).cloned();
    let [plain, _] = texts;
    let words: Vec<Piece> = pieces
        .into_iter()
        .filter(|piece| matches!(piece, Piece::Line(_)))
        .collect();
    let prose = ended(written(&words, "", newline, ""));
    let settled = |text| settled(text, &prose, &merge.expected);
    if let Some(text) = right.or_else(|| settled(plain)) {
        return MergedText {
            text,
            conflicts: merge.conflicts,
            has_markers: false,
        };
    }
    let (text, conflicts) = by_lines(base, ours, theirs);
    let has_markers = !conflicts.is_empty();
    // Items that are set in anew lose their order, which is better than a text that does not parse.
    if has_markers && let Some(text) = settled(prose.clone()) {
        return MergedText {
            text,
            conflicts: merge.conflicts,
            has_markers: false,
        };
    }
    MergedText {
        text,
        conflicts,
        has_markers,
    }
}

/// Unites `ours` and `theirs` without a known merge base, keeping everything. Items stay in the order of
/// `ours`. `None` if the items could not be distinguished.
pub fn unite(ours: &str, theirs: &str) -> Option<String> {
    let merged = merge("", ours, theirs, &|_| true);
    (!merged.has_markers).then_some(merged.text)
}

/// An item in the versions that have it: base, ours, theirs.
type Trio<'m, 't> = [Option<One<'m, 't>>; 3];

struct Merging<'m, 't> {
    /// Base, ours, theirs.
    documents: [&'m Document<'t>; 3],
    named: &'m Named,
    is_held: &'m dyn Fn(&TaskId) -> bool,
    conflicts: Vec<Conflict>,
    /// The top-level items as they must read in the result.
    expected: Vec<Expected>,
}

impl<'m, 't> Merging<'m, 't> {
    /// Merges a stretch: the whole document, or the text under an item's first line, `indent` columns in.
    fn region(&mut self, parts: &[Region<'m, 't>; 3], indent: Option<usize>) -> Vec<Piece> {
        let slots = self.slots(parts);
        let mut fates: Vec<Resolution> =
            slots.iter().map(|slot| self.fate(*slot, indent)).collect();
        let all = self.atoms(parts, &slots);
        let only_still = |atoms: &[Atom<'t>], fates: &[Resolution]| -> Vec<Atom<'t>> {
            let is_still = |atom: &Atom<'_>| !matches!(atom, Atom::Item(slot) if fates[*slot].stand != Stand::Still);
            atoms.iter().copied().filter(is_still).collect()
        };
        // Find the items that only moved within a lane. Removing them may reveal more of them.
        loop {
            let [base, ours, theirs] = [0, 1, 2].map(|side| only_still(&all[side], &fates));
            let mut is_still = true;
            for (side, other) in [(Side::Theirs, &theirs), (Side::Ours, &ours)] {
                for (atom, place) in base.iter().zip(matches(&base, other)) {
                    if let (Atom::Item(slot), None) = (atom, place) {
                        fates[*slot].stand = Stand::As(side);
                        is_still = false;
                    }
                }
            }
            if is_still {
                break;
            }
        }
        let stands = |atom: &Atom<'_>, side: Option<Side>| match atom {
            Atom::Item(slot) => match fates[*slot].stand {
                Stand::Nowhere => false,
                Stand::Still => true,
                Stand::As(here) => side == Some(here),
            },
            Atom::Line(_) | Atom::Block => true,
        };
        let sides = [None, Some(Side::Ours), Some(Side::Theirs)];
        let [base, ours, theirs] = [0, 1, 2].map(|version| -> Vec<Atom<'t>> {
            all[version]
                .iter()
                .copied()
                .filter(|atom| stands(atom, sides[version]))
                .collect()
        });
        let (ours, theirs) = (
            without_beginnings(&base, &ours, &theirs),
            without_beginnings(&base, &theirs, &ours),
        );
        let mut atoms: Vec<Atom<'t>> = Vec::new();
        let mut marked: Vec<(usize, Bound)> = Vec::new();
        // The other side may have removed text that it had loaded between markers.
        let [loaded, mut said] = [&base, &ours].map(|atoms| marked_versions(atoms));
        said.retain(|version| !loaded.contains(version));
        let [was, mine, other] = by_contradiction([&base, &ours, &theirs]);
        for stretch in weave(&was, &mine, &other) {
            match stretch {
                Stretch::Same(range) | Stretch::Ours(range) => atoms.extend(&ours[range]),
                Stretch::Theirs(range) => atoms.extend(&theirs[range]),
                Stretch::Both {
                    base: old,
                    ours: mine,
                    theirs: other,
                } => {
                    let (old, mine, other) = (&base[old], &ours[mine], &theirs[other]);
                    for part in narrowed(old, mine, other) {
                        match part {
                            Part::Agreed(agreed) => atoms.extend(agreed),
                            Part::Contradiction {
                                mut ours,
                                mut theirs,
                            } => {
                                atoms.extend(take_items(&mut ours, &mut theirs));
                                let mut versions = versions(&ours, &theirs, &said);
                                if let [only] = &versions[..] {
                                    atoms.extend(only);
                                    continue;
                                }
                                atoms.extend(common_head(&mut versions));
                                self.conflicts.push(Conflict {
                                    item: None,
                                    what: "text".into(),
                                });
                                let mut bound = Bound::Ours;
                                for version in versions {
                                    marked.push((atoms.len(), bound));
                                    atoms.extend(version);
                                    bound = Bound::Theirs;
                                }
                                marked.push((atoms.len(), Bound::End));
                            }
                        }
                    }
                }
            }
        }
        let Some(indent) = indent else {
            let kept = fates
                .iter()
                .zip(&slots)
                .filter(|(fate, _)| fate.stand != Stand::Nowhere);
            let expected = kept.filter_map(|(fate, [_, mine, other])| {
                let is_sound = [mine, other]
                    .into_iter()
                    .flatten()
                    .all(|one| !one.item.quarantined);
                let own = mine.or(*other)?.item.status;
                Some(Expected {
                    text: fate.text.clone(),
                    status: fate.status,
                    own,
                    is_sound,
                })
            });
            self.expected.extend(expected);
            return pieces(&atoms, &marked, &fates, self.documents[1].body, 0);
        };
        pieces(&atoms, &marked, &fates, 0, indent)
    }

    /// Matches the items of the three versions.
    fn slots(&self, [base, ours, theirs]: &[Region<'m, 't>; 3]) -> Vec<Trio<'m, 't>> {
        let mut pairs = [ours, theirs].map(|side| matching::pair(&base.items, &side.items));
        matching::know_named(&base.items, self.named, &ours.items, &mut pairs[0]);
        matching::agree_on_ids(&base.items, [&ours.items, &theirs.items], &mut pairs);
        matching::keep_ended_apart(&base.items, [&ours.items, &theirs.items], &mut pairs);
        let [to_ours, to_theirs] = pairs;
        let found =
            |side: &Region<'m, 't>, place: Option<usize>| place.map(|place| side.items[place]);
        let in_all = base.items.iter().zip(to_ours.iter().zip(&to_theirs));
        let mut slots: Vec<Trio<'m, 't>> = in_all
            .map(|(one, (mine, other))| [Some(*one), found(ours, *mine), found(theirs, *other)])
            .collect();
        let rest = |side: &Region<'m, 't>, found: &[Option<usize>]| -> Vec<One<'m, 't>> {
            let found: HashSet<usize> = found.iter().flatten().copied().collect();
            (0..side.items.len())
                .filter(|place| !found.contains(place))
                .map(|place| side.items[place])
                .collect()
        };
        let (mine, others) = (rest(ours, &to_ours), rest(theirs, &to_theirs));
        let same = matching::pair(&mine, &others);
        let mut left: Vec<Option<One<'m, 't>>> = others.into_iter().map(Some).collect();
        for (one, place) in mine.into_iter().zip(same) {
            // Two new items without a common ID, and only with similar titles, are different items.
            let is_same = |other: &One<'m, 't>| {
                let (id, other_id) = (&one.item.id, &other.item.id);
                (id.is_some() && id == other_id) || one.title() == other.title()
            };
            let theirs = place
                .filter(|place| left[*place].as_ref().is_some_and(is_same))
                .and_then(|place| left[place].take());
            slots.push([None, Some(one), theirs]);
        }
        slots.extend(
            left.into_iter()
                .flatten()
                .map(|one| [None, None, Some(one)]),
        );
        slots
    }

    fn atoms(&self, parts: &[Region<'m, 't>; 3], slots: &[Trio<'m, 't>]) -> [Vec<Atom<'t>>; 3] {
        [0, 1, 2].map(|side| {
            let (text, part) = (self.documents[side].text(), &parts[side]);
            let start = |slot: &Trio<'m, 't>| slot[side].map(|one| one.item.span.start);
            let starts: HashMap<usize, usize> = slots
                .iter()
                .enumerate()
                .filter_map(|(place, slot)| Some((start(slot)?, place)))
                .collect();
            let mut atoms = Vec::new();
            let mut at = part.range.start;
            while at < part.range.end {
                if let Some((slot, one)) = starts
                    .get(&at)
                    .and_then(|slot| Some((*slot, slots[*slot][side]?)))
                {
                    atoms.push(Atom::Item(slot));
                    at = one.item.span.end;
                } else if let Some(block) = part.block.as_ref().filter(|block| block.start == at) {
                    if !part.is_block_hidden {
                        atoms.push(Atom::Block);
                    }
                    at = block.end;
                } else {
                    let end = markup::line_end(text, at, part.range.end);
                    atoms.push(Atom::Line(BareLine(&text[at..end])));
                    at = end;
                }
            }
            atoms
        })
    }

    fn fate(&mut self, slot: Trio<'m, 't>, indent: Option<usize>) -> Resolution {
        let nowhere = Resolution {
            stand: Stand::Nowhere,
            text: String::new(),
            status: None,
        };
        let (one, side) = match slot {
            [base, Some(mine), Some(other)] => return self.both(base, mine, other, indent),
            [_, Some(mine), None] => (mine, Side::Ours),
            [_, None, Some(other)] => (other, Side::Theirs),
            [_, None, None] => return nowhere,
        };
        if let Some(base) = slot[0] {
            // Of two items with the same ID one may go.
            let is_double = || {
                one.item
                    .id
                    .as_ref()
                    .is_some_and(|id| self.documents[2].find(id).is_some())
            };
            let is_held = side == Side::Ours && self.is_held(one) && !is_double();
            let is_named = one.item.id.is_some() && one.is_renamed(base);
            if !is_held
                && (is_named || base.bare_block() == one.bare_block())
                && base.lane() == one.lane()
            {
                return nowhere;
            }
            self.note(one, "removed");
        }
        // A new item takes the status of its place.
        let status = slot[0].map(|_| one.item.status);
        Resolution {
            stand: Stand::As(side),
            text: one.block().to_owned(),
            status,
        }
    }

    fn is_held(&self, mine: One<'m, 't>) -> bool {
        mine.item.id.as_ref().is_some_and(self.is_held)
    }

    fn note(&mut self, item: One<'m, 't>, what: &str) {
        self.conflicts.push(Conflict {
            item: Some(item.name().to_owned()),
            what: what.to_owned(),
        });
    }

    /// Merges an item that both sides have; `indent` as in [`Merging::region`].
    fn both(
        &mut self,
        base: Option<One<'m, 't>>,
        mine: One<'m, 't>,
        other: One<'m, 't>,
        indent: Option<usize>,
    ) -> Resolution {
        let is_whole = indent.is_none();
        let old_status = base.map(|base| base.item.status);
        let (my_status, other_status) = (mine.item.status, other.item.status);
        let is_held = self.is_held(mine);
        let winner = if my_status == other_status {
            None
        } else if is_held {
            if old_status != Some(other_status) {
                self.note(mine, "status");
            }
            Some(Side::Ours)
        } else if old_status == Some(my_status) {
            Some(Side::Theirs)
        } else if old_status == Some(other_status) {
            Some(Side::Ours)
        } else {
            self.note(mine, "status");
            Some(if rank(my_status) >= rank(other_status) {
                Side::Ours
            } else {
                Side::Theirs
            })
        };
        let is_still = match base {
            Some(base) => !is_whole || base.lane() == mine.lane(),
            None => false,
        };
        let stand = match winner {
            _ if !is_whole || mine.lane() == other.lane() => {
                if is_still {
                    Stand::Still
                } else {
                    Stand::As(Side::Ours)
                }
            }
            Some(side) => Stand::As(side),
            None if is_still => Stand::As(Side::Theirs),
            None => Stand::As(Side::Ours),
        };
        // Blanks at the end count, too: Markdown may read a line break from them.
        let was = base.map(One::block);
        let (mine_is, other_is) = (mine.block(), other.block());
        let (text, source) = if mine_is == other_is {
            let side = winner.unwrap_or(Side::Ours);
            (
                if side == Side::Ours { mine } else { other }
                    .block()
                    .to_owned(),
                Some(side),
            )
        } else if was == Some(other_is) {
            (mine_is.to_owned(), Some(Side::Ours))
        } else if was == Some(mine_is) && (!is_held || mine.is_held_as(other)) {
            (other_is.to_owned(), Some(Side::Theirs))
        } else {
            (self.fields(base, mine, other, winner), None)
        };
        if !is_whole {
            return Resolution {
                stand,
                text,
                status: None,
            };
        }
        let side = match (winner, stand) {
            (Some(side), _) | (None, Stand::As(side)) => side,
            (None, _) => Side::Ours,
        };
        let One { document, item } = if side == Side::Ours { mine } else { other };
        let status = item.status;
        if source == Some(side) || (winner.is_none() && source.is_some()) {
            return Resolution {
                stand,
                text,
                status: Some(status),
            };
        }
        // The text of one side goes to the place of the other, so box and key must show that place's status.
        let text = said(&text, status, document.place(item), document.lane_set);
        Resolution {
            stand,
            text,
            status: Some(status),
        }
    }

    /// Returns the ID of an item that both sides changed.
    fn id(
        &self,
        base: Option<One<'m, 't>>,
        mine: One<'m, 't>,
        other: One<'m, 't>,
    ) -> Option<&'m TaskId> {
        match (&mine.item.id, &other.item.id) {
            (None, theirs) => theirs.as_ref(),
            (ours, None) if base.is_some_and(|base| base.item.id == *ours) => None,
            // If both sides added an ID, the smaller one wins, whichever side merges.
            (Some(ours), Some(theirs)) if !self.is_held(mine) => Some(ours.min(theirs)),
            (ours, _) => ours.as_ref(),
        }
    }

    /// Merges the text of an item that both sides changed: its first line, its keys, and the text beneath.
    fn fields(
        &mut self,
        base: Option<One<'m, 't>>,
        mine: One<'m, 't>,
        other: One<'m, 't>,
        winner: Option<Side>,
    ) -> String {
        let conflicts_before = self.conflicts.len();
        let mut marks = Vec::new();
        let id = self.id(base, mine, other);
        let (mut text, block) = line_and_block(base, mine, other, winner, id, &mut marks);
        let content_column = mine.item.content_column;
        let pieces = self.region(&bodies(base, mine, other), Some(content_column));
        let newline = markup::newline(mine.document.text());
        let body = written(&pieces, &block.unwrap_or_default(), newline, "");
        if !body.is_empty() && !text.ends_with(['\n', '\r']) {
            text.push_str(newline);
        }
        text.push_str(&body);
        for (what, theirs) in marks {
            text = marked(text, [&what, &theirs], content_column, newline);
            self.conflicts.push(Conflict { item: None, what });
        }
        for conflict in self.conflicts[conflicts_before..]
            .iter_mut()
            .filter(|conflict| conflict.item.is_none())
        {
            conflict.item = Some(mine.name().to_owned());
        }
        text
    }

    /// Returns true if every item is present once and reads as intended.
    fn reads_right(&self, text: &str) -> bool {
        let (document, _) = parse(text);
        let mut found: HashMap<String, Vec<&Item<'_>>> = HashMap::new();
        let items = directly_in(&document, None);
        for one in &items {
            found.entry(one.bare_block()).or_default().push(one.item);
        }
        items.len() == self.expected.len()
            && self
                .expected
                .iter()
                .all(|expected| expected.take(&mut found, &bare(&expected.text)))
    }
}

/// Ranks statuses: of two different ones, the one further along wins.
fn rank(status: Status) -> u8 {
    match status {
        Status::Draft => 0,
        Status::Pending => 1,
        Status::Waiting => 2,
        Status::InProgress => 3,
        Status::InReview => 4,
        Status::Reviewing => 5,
        Status::Approved => 6,
        Status::Dead => 7,
        Status::Cancelled => 8,
        Status::Completed => 9,
    }
}
