//! Three versions of a queue document made into one: item by item, and an item field by field.
//!
//! What one side changed is taken; what both changed, each in its own way, stands in the result from both sides, in a
//! form that parses, and is reported. An item is what is compared, not its place: a side that moves it and one that
//! retitles it are both heard. Knows nothing of git, files or leases.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use crate::board::document::{Document, Item, parse};
use crate::board::edit::said;
use crate::board::lane::{self, Place};
use crate::board::markup;
use crate::board::task::{State, Status, TaskId};

use fields::Taken;
use lines::by_lines;
use weave::{Stretch, matches, weave};
use written::{Mark, Piece, ended, pieces, written};

pub use changed::{Changed, changes, prose};
pub use pair::are_alike;
pub use written::marks;

mod changed;
mod fields;
mod lines;
mod pair;
#[cfg(test)]
mod tests;
mod weave;
mod written;

/// The document made of three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    pub text: String,
    pub conflicts: Vec<Conflict>,
    /// The documents were too odd to tell their items apart, and what contradicts stands between git's markers: the
    /// text does not parse before a person has settled it.
    pub has_markers: bool,
}

/// Something that both sides changed, each in its own way. Both versions stand in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The item that it is in, by ID or title; nothing for prose.
    pub item: Option<String>,
    /// What it is about: `title`, `status`, a key, `text`, `removed`.
    pub what: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(item) = &self.item {
            write!(f, "`{item}`: ")?;
        }
        match self.what.as_str() {
            "removed" => f.write_str("one side removed it and the other changed it; it stays, as changed"),
            "status" => f.write_str("each side gave it another status; the one that is further on its way counts"),
            what => write!(f, "each side changed the {what} in its own way; both versions stand in the file"),
        }
    }
}

/// Merges what `ours` and `theirs` made of `base`. Items that `is_held` knows of stay as they are in `ours` as far as
/// presence and status go: whoever holds them is still at work.
pub fn merge(base: &str, ours: &str, theirs: &str, is_held: &dyn Fn(&TaskId) -> bool) -> Merged {
    let whole = |text: &str| Merged { text: text.to_owned(), conflicts: Vec::new(), has_markers: false };
    if ours == theirs || base == theirs {
        return whole(ours);
    }
    let is_safe = || parse(ours).0.items().iter().all(|item| item.id.as_ref().is_none_or(|id| !is_held(id)));
    if base == ours && is_safe() {
        return whole(theirs);
    }
    let mut merge = Merge {
        base: Version::of(base),
        ours: Version::of(ours),
        theirs: Version::of(theirs),
        is_held,
        conflicts: Vec::new(),
        expected: Vec::new(),
    };
    let pieces = merge.region(&[merge.base.top(), merge.ours.top(), merge.theirs.top()], Kind::Document);
    let [was, mine, other] = [base, ours, theirs].map(|text| text.is_empty() || text.ends_with(['\n', '\r']));
    let (newline, ends) = (markup::newline(ours), if was == mine { other } else { mine });
    for is_apart in [false, true] {
        let text = ended(written(&pieces, "", newline, is_apart), newline, ends);
        if merge.reads_right(&text) {
            return Merged { text, conflicts: merge.conflicts, has_markers: false };
        }
    }
    by_lines(base, ours, theirs)
}

/// A side of the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Ours,
    Theirs,
}

/// One of the three versions.
struct Version<'t> {
    document: Document<'t>,
}

impl<'t> Version<'t> {
    fn of(text: &'t str) -> Version<'t> {
        Version { document: parse(text).0 }
    }

    fn text(&self) -> &'t str {
        self.document.text()
    }

    fn item(&self, index: usize) -> &Item<'t> {
        &self.document.items()[index]
    }

    fn title(&self, index: usize) -> &'t str {
        self.document.title(self.item(index))
    }

    /// The item's text, whatever its line ends.
    fn bare_block(&self, index: usize) -> String {
        bare(self.document.block(self.item(index)))
    }

    fn lane(&self, index: usize) -> Option<&str> {
        self.item(index).lane.map(|lane| self.document.lanes()[lane].name)
    }

    fn top(&self) -> Part {
        self.part(0..self.text().len(), None)
    }

    /// The items directly within `parent` that begin a line in `range`.
    fn part(&self, range: Range<usize>, parent: Option<usize>) -> Part {
        let begins_line = |at: usize| at == 0 || self.text()[..at].ends_with(['\n', '\r', '\u{feff}']);
        let items = self.document.items().iter().enumerate();
        let items = items
            .filter(|(_, item)| {
                item.within == parent && range.contains(&item.span.start) && begins_line(item.span.start)
            })
            .map(|(index, _)| index)
            .collect();
        Part { range, items, ..Part::default() }
    }
}

/// A block of text to be compared, whatever its line ends.
pub(crate) fn bare(block: &str) -> String {
    block.trim_end().replace("\r\n", "\n")
}

/// A stretch of a version: the whole document, or what stands under an item's first line.
#[derive(Default)]
struct Part {
    range: Range<usize>,
    /// The items that are taken as such, by index; all else is lines.
    items: Vec<usize>,
    /// The lines of a `yaml task` block, which are merged key by key.
    block: Option<Range<usize>>,
    /// The block is not compared: its keys go elsewhere.
    is_block_hidden: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Document,
    /// What stands under an item's first line, so many columns in.
    Body(usize),
}

/// What versions are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Atom<'t> {
    Line(Line<'t>),
    /// By its place among the slots.
    Item(usize),
    Block,
}

impl Atom<'_> {
    fn is_blank(&self) -> bool {
        matches!(self, Atom::Line(line) if line.0.trim().is_empty())
    }

    fn is_item(&self) -> bool {
        matches!(self, Atom::Item(_) | Atom::Block)
    }
}

/// A line with its line end, which doesn't count where lines are compared.
#[derive(Clone, Copy, Debug)]
struct Line<'t>(&'t str);

impl<'t> Line<'t> {
    fn bare(self) -> &'t str {
        self.0.trim_end_matches(['\n', '\r'])
    }
}

impl PartialEq for Line<'_> {
    fn eq(&self, other: &Line<'_>) -> bool {
        self.bare() == other.bare()
    }
}

impl Eq for Line<'_> {}

impl Hash for Line<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bare().hash(state);
    }
}

/// An item in the versions that have it, by index.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    base: Option<usize>,
    ours: Option<usize>,
    theirs: Option<usize>,
}

/// What becomes of an item.
struct Fate {
    stand: Stand,
    text: String,
    /// What it must read as.
    status: Option<Status>,
}

/// The version in whose order and lane an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Nowhere,
    /// Nobody has moved it.
    Still,
    As(Side),
}

struct Merge<'m, 't> {
    base: Version<'t>,
    ours: Version<'t>,
    theirs: Version<'t>,
    is_held: &'m dyn Fn(&TaskId) -> bool,
    conflicts: Vec<Conflict>,
    /// The items of the document's top level as they must read in the result.
    expected: Vec<(String, Option<Status>)>,
}

impl<'t> Merge<'_, 't> {
    fn region(&mut self, parts: &[Part; 3], kind: Kind) -> Vec<Piece> {
        let slots = self.slots(parts);
        let mut fates: Vec<Fate> = slots.iter().map(|slot| self.fate(*slot, kind)).collect();
        let all = self.atoms(parts, &slots);
        let only_still = |atoms: &[Atom<'t>], fates: &[Fate]| -> Vec<Atom<'t>> {
            let is_still = |atom: &Atom<'_>| !matches!(atom, Atom::Item(slot) if fates[*slot].stand != Stand::Still);
            atoms.iter().copied().filter(is_still).collect()
        };
        // Those that only changed their place within a lane. Without them others may turn out to have, too.
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
            all[version].iter().copied().filter(|atom| stands(atom, sides[version])).collect()
        });
        let mut atoms: Vec<Atom<'t>> = Vec::new();
        let mut marked: Vec<(usize, Mark)> = Vec::new();
        for stretch in weave(&base, &ours, &theirs) {
            match stretch {
                Stretch::Same(range) | Stretch::Ours(range) => atoms.extend(&ours[range]),
                Stretch::Theirs(range) => atoms.extend(&theirs[range]),
                Stretch::Both { base: old, ours: mine, theirs: other } => {
                    let (old, mine, other) = (&base[old], &ours[mine], &theirs[other]);
                    match united(old, mine, other) {
                        Some(united) => atoms.extend(united),
                        None => {
                            self.conflicts.push(Conflict { item: None, what: "text".into() });
                            marked.push((atoms.len(), Mark::Ours));
                            atoms.extend(mine);
                            marked.push((atoms.len(), Mark::Theirs));
                            atoms.extend(other.iter().filter(|atom| !mine.contains(atom) || !atom.is_item()));
                            marked.push((atoms.len(), Mark::End));
                        }
                    }
                }
            }
        }
        if kind == Kind::Document {
            let kept = fates.iter().filter(|fate| fate.stand != Stand::Nowhere);
            self.expected.extend(kept.map(|fate| (bare(&fate.text), fate.status)));
        }
        let (front, indent) = match kind {
            Kind::Document => (self.ours.document.body, 0),
            Kind::Body(indent) => (0, indent),
        };
        pieces(&atoms, &marked, &fates, front, indent)
    }

    /// Which items of the three are the same.
    fn slots(&self, [base, ours, theirs]: &[Part; 3]) -> Vec<Slot> {
        let in_ours = pair::pair(&self.base, &base.items, &self.ours, &ours.items);
        let in_theirs = pair::pair(&self.base, &base.items, &self.theirs, &theirs.items);
        let mut slots = Vec::with_capacity(base.items.len());
        for (place, item) in base.items.iter().enumerate() {
            let ours = in_ours[place].map(|place| ours.items[place]);
            let theirs = in_theirs[place].map(|place| theirs.items[place]);
            slots.push(Slot { base: Some(*item), ours, theirs });
        }
        let rest = |items: &[usize], found: &[Option<usize>]| -> Vec<usize> {
            let found: HashSet<usize> = found.iter().flatten().copied().collect();
            (0..items.len()).filter(|place| !found.contains(place)).map(|place| items[place]).collect()
        };
        let (mine, others) = (rest(&ours.items, &in_ours), rest(&theirs.items, &in_theirs));
        let same = pair::pair(&self.ours, &mine, &self.theirs, &others);
        let mut is_taken = vec![false; others.len()];
        for (item, place) in mine.iter().zip(same) {
            // Two new items without a common ID that are only called much alike are two.
            let is_same = |place: &usize| {
                let (id, other) = (&self.ours.item(*item).id, &self.theirs.item(others[*place]).id);
                (id.is_some() && id == other) || self.ours.title(*item) == self.theirs.title(others[*place])
            };
            let place = place.filter(is_same);
            if let Some(place) = place {
                is_taken[place] = true;
            }
            slots.push(Slot { base: None, ours: Some(*item), theirs: place.map(|place| others[place]) });
        }
        let left = others.iter().zip(is_taken).filter(|(_, is_taken)| !is_taken);
        slots.extend(left.map(|(item, _)| Slot { base: None, ours: None, theirs: Some(*item) }));
        slots
    }

    fn atoms(&self, parts: &[Part; 3], slots: &[Slot]) -> [Vec<Atom<'t>>; 3] {
        let versions = [&self.base, &self.ours, &self.theirs];
        let of: [fn(&Slot) -> Option<usize>; 3] = [|slot| slot.base, |slot| slot.ours, |slot| slot.theirs];
        [0, 1, 2].map(|side| {
            let of_item: HashMap<usize, usize> =
                slots.iter().enumerate().filter_map(|(slot, items)| Some((of[side](items)?, slot))).collect();
            let (version, part) = (versions[side], &parts[side]);
            let text = version.text();
            let starts: HashMap<usize, usize> =
                part.items.iter().map(|item| (version.item(*item).span.start, *item)).collect();
            let mut atoms = Vec::new();
            let mut at = part.range.start;
            while at < part.range.end {
                if let Some(item) = starts.get(&at) {
                    atoms.push(Atom::Item(of_item[item]));
                    at = version.item(*item).span.end;
                } else if let Some(block) = part.block.as_ref().filter(|block| block.start == at) {
                    if !part.is_block_hidden {
                        atoms.push(Atom::Block);
                    }
                    at = block.end;
                } else {
                    let end = markup::line_end(text, at, part.range.end);
                    atoms.push(Atom::Line(Line(&text[at..end])));
                    at = end;
                }
            }
            atoms
        })
    }

    fn fate(&mut self, slot: Slot, kind: Kind) -> Fate {
        let ours = |merge: &Self, index| merge.ours.document.block(merge.ours.item(index)).to_owned();
        let theirs = |merge: &Self, index| merge.theirs.document.block(merge.theirs.item(index)).to_owned();
        let as_ours = |text: String| Fate { stand: Stand::As(Side::Ours), text, status: None };
        let as_theirs = |text: String| Fate { stand: Stand::As(Side::Theirs), text, status: None };
        match (slot.base, slot.ours, slot.theirs) {
            (base, Some(mine), Some(other)) => self.both(base, mine, other, kind),
            (Some(base), Some(mine), None) => {
                let is_held = self.is_held(mine);
                if !is_held && !differ(&self.base, base, &self.ours, mine) {
                    return Fate { stand: Stand::Nowhere, text: String::new(), status: None };
                }
                self.note(mine, Side::Ours, "removed");
                as_ours(ours(self, mine))
            }
            (Some(base), None, Some(other)) => {
                if !differ(&self.base, base, &self.theirs, other) {
                    return Fate { stand: Stand::Nowhere, text: String::new(), status: None };
                }
                self.note(other, Side::Theirs, "removed");
                as_theirs(theirs(self, other))
            }
            (None, Some(mine), None) => as_ours(ours(self, mine)),
            (None, None, Some(other)) => as_theirs(theirs(self, other)),
            (_, None, None) => Fate { stand: Stand::Nowhere, text: String::new(), status: None },
        }
    }

    fn is_held(&self, mine: usize) -> bool {
        self.ours.item(mine).id.as_ref().is_some_and(self.is_held)
    }

    fn note(&mut self, item: usize, side: Side, what: &str) {
        let version = if side == Side::Ours { &self.ours } else { &self.theirs };
        let name = version.item(item).id.as_ref().map_or(version.title(item), TaskId::as_str);
        self.conflicts.push(Conflict { item: Some(name.to_owned()), what: what.to_owned() });
    }

    /// An item that both sides have.
    fn both(&mut self, base: Option<usize>, mine: usize, other: usize, kind: Kind) -> Fate {
        let old_status = base.map(|base| self.base.item(base).status);
        let (my_status, other_status) = (self.ours.item(mine).status, self.theirs.item(other).status);
        let is_held = self.is_held(mine);
        let winner = if my_status == other_status {
            None
        } else if is_held {
            if old_status != Some(other_status) {
                self.note(mine, Side::Ours, "status");
            }
            Some(Side::Ours)
        } else if old_status == Some(my_status) {
            Some(Side::Theirs)
        } else if old_status == Some(other_status) {
            Some(Side::Ours)
        } else {
            self.note(mine, Side::Ours, "status");
            Some(if rank(my_status) >= rank(other_status) { Side::Ours } else { Side::Theirs })
        };
        let old_lane = base.map(|base| self.base.lane(base));
        let (my_lane, other_lane) = (self.ours.lane(mine), self.theirs.lane(other));
        let stand = match winner {
            _ if kind != Kind::Document || my_lane == other_lane => {
                if old_lane == Some(my_lane) || (kind != Kind::Document && base.is_some()) {
                    Stand::Still
                } else {
                    Stand::As(Side::Ours)
                }
            }
            Some(side) => Stand::As(side),
            None if old_lane == Some(my_lane) => Stand::As(Side::Theirs),
            None => Stand::As(Side::Ours),
        };
        let [was, mine_is, other_is] = [
            base.map(|base| self.base.bare_block(base)),
            Some(self.ours.bare_block(mine)),
            Some(self.theirs.bare_block(other)),
        ];
        let (text, source) = if mine_is == other_is || was == other_is {
            (self.ours.document.block(self.ours.item(mine)).to_owned(), Some(Side::Ours))
        } else if was == mine_is && !is_held {
            (self.theirs.document.block(self.theirs.item(other)).to_owned(), Some(Side::Theirs))
        } else {
            let state = self.state(base, mine, other, winner);
            (self.fields(base, mine, other, winner, state.as_ref()), None)
        };
        let side = match (winner, stand) {
            (Some(side), _) | (None, Stand::As(side)) => side,
            (None, _) => Side::Ours,
        };
        let status = if side == Side::Ours { my_status } else { other_status };
        if kind != Kind::Document || source == Some(side) || (winner.is_none() && source.is_some()) {
            let status = (kind == Kind::Document).then_some(status);
            return Fate { stand, text, status };
        }
        // Words of one side in the place of the other: box and key are made to say the status there.
        let (version, index) = match side {
            Side::Ours => (&self.ours, mine),
            Side::Theirs => (&self.theirs, other),
        };
        let item = version.item(index);
        let place = item.lane.map_or(Place::Loose, |lane| Place::Lane(version.document.lanes()[lane].kind));
        let needs_key = lane::needs_key(status, place, version.document.lane_set);
        Fate { stand, text: said(&text, status, needs_key), status: Some(status) }
    }

    /// Whose state is taken, whole, where the sides' states differ. `winner` is the side whose status is taken.
    fn state(&mut self, base: Option<usize>, mine: usize, other: usize, winner: Option<Side>) -> Option<Taken> {
        let state = |version: &Version<'_>, index: usize| version.document.task_of(version.item(index)).state;
        let old = base.map(|base| state(&self.base, base).without_answer());
        let ours = state(&self.ours, mine).without_answer();
        let theirs = state(&self.theirs, other).without_answer();
        let side = match winner {
            Some(side) => side,
            None if ours == theirs => return None,
            None if self.is_held(mine) || old.as_ref() == Some(&theirs) => Side::Ours,
            None if old.as_ref() == Some(&ours) => Side::Theirs,
            None if progress(&theirs) > progress(&ours) => Side::Theirs,
            None => Side::Ours,
        };
        let (taken, left) = if side == Side::Ours { (ours, theirs) } else { (theirs, ours) };
        let approvals = taken.with_approvals_of(&left, old.as_ref()).map(|united| united.facts().approvals);
        Some(Taken { side, approvals })
    }

    /// Every item is there, once, and reads as it was meant to.
    fn reads_right(&self, text: &str) -> bool {
        let version = Version::of(text);
        let mut found: HashMap<String, Vec<Status>> = HashMap::new();
        let items = version.top().items;
        for index in &items {
            found.entry(version.bare_block(*index)).or_default().push(version.item(*index).status);
        }
        items.len() == self.expected.len()
            && self.expected.iter().all(|(block, status)| {
                let Some(statuses) = found.get_mut(block) else { return false };
                let place = match status {
                    Some(status) => statuses.iter().position(|found| found == status),
                    None => statuses.len().checked_sub(1),
                };
                place.map(|place| statuses.swap_remove(place)).is_some()
            })
    }
}

fn differ(base: &Version<'_>, old: usize, side: &Version<'_>, new: usize) -> bool {
    base.bare_block(old) != side.bare_block(new) || base.lane(old) != side.lane(new)
}

/// Of two statuses that two sides gave an item, the one that is further on its way counts.
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

/// Of two states of the same status the one with more behind it counts.
fn progress(state: &State) -> (u32, u32, u32, bool) {
    (state.attempt, state.rounds, state.returns, state.commit().is_some())
}

/// Both sides' versions of a stretch in one, if they don't contradict each other: items beside items, and lines that
/// only one of them changed.
fn united<'t>(old: &[Atom<'t>], mine: &[Atom<'t>], other: &[Atom<'t>]) -> Option<Vec<Atom<'t>>> {
    let lines = |atoms: &[Atom<'t>]| -> Vec<Atom<'t>> {
        atoms.iter().copied().filter(|atom| !atom.is_item() && !atom.is_blank()).collect()
    };
    let (was, mine_are, others_are) = (lines(old), lines(mine), lines(other));
    let (first, second) = if was == others_are || mine_are == others_are {
        (mine, other)
    } else if was == mine_are {
        (other, mine)
    } else if was.is_empty() && holds(other, mine) {
        return Some(other.to_vec());
    } else if was.is_empty() && holds(mine, other) {
        return Some(mine.to_vec());
    } else if was.is_empty() {
        return Some(side_by_side(mine, other, |_| true));
    } else {
        return None;
    };
    // The lines are those of the first; of the second only its items.
    Some(side_by_side(first, second, Atom::is_item))
}

/// All of `few` stands in `many`, in the same order.
fn holds(many: &[Atom<'_>], few: &[Atom<'_>]) -> bool {
    let mut rest = many.iter();
    few.iter().all(|atom| rest.any(|other| other == atom))
}

/// One after the other: of the second what `is_wanted` and isn't an item of the first, with one blank line where both
/// have one.
fn side_by_side<'t>(first: &[Atom<'t>], second: &[Atom<'t>], is_wanted: impl Fn(&Atom<'t>) -> bool) -> Vec<Atom<'t>> {
    let more: Vec<Atom<'t>> =
        second.iter().copied().filter(|atom| is_wanted(atom) && !(atom.is_item() && first.contains(atom))).collect();
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
    if tail_blanks > 0 && head.first().is_some_and(Atom::is_blank) == more.first().is_some_and(Atom::is_blank) {
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
