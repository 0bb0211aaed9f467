//! The position of an item among the others of its lane, so that it can return there even if they change.

use std::ops::Range;

use memchr::memmem;
use serde::{Deserialize, Serialize};

use super::document::{Document, Item};
use super::id::TaskId;
use super::lane::LaneKind;
use super::markup::without_line_end;
use super::text::Edit;

/// Number of neighbors remembered on either side.
const NEAR: usize = 8;

/// Characters of a title that name an item without an ID.
const NAME: usize = 80;

/// The present or former position of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemPosition {
    /// The lane's heading; `None`: before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lane: Option<String>,
    /// The heading within the lane above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    under: Option<String>,
    /// The items before it under that heading, by ID or title, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
    /// Whether blank lines separate it from one of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_spaced: bool,
}

/// A place in a lane.
pub(super) struct Insertion {
    /// `None`: before the first heading.
    pub lane: Option<usize>,
    /// The text under its heading.
    pub section: Option<Range<usize>>,
    /// The items before and after it; one of them may be unknown.
    pub before: Option<usize>,
    pub after: Option<usize>,
}

impl Document<'_> {
    /// Returns the names by which neighbors may remember an item.
    pub fn names<'a>(&'a self, item: &'a Item<'_>) -> Vec<&'a str> {
        let title = self.title(item);
        let end = title
            .char_indices()
            .nth(NAME)
            .map_or(title.len(), |(end, _)| end);
        let title = Some(&title[..end]).filter(|title| !title.is_empty());
        item.id
            .as_ref()
            .map(TaskId::as_str)
            .into_iter()
            .chain(title)
            .collect()
    }

    /// Returns the items that begin within `bounds` and have that ID or title.
    fn going_by<'a>(
        &'a self,
        name: &'a str,
        bounds: Range<usize>,
    ) -> impl Iterator<Item = usize> + 'a {
        let (start, mut last) = (bounds.start, None);
        let found = memmem::find_iter(&self.text.as_bytes()[bounds], name);
        let items = found.filter_map(move |at| self.index_from(start + at + 1).checked_sub(1));
        let is_named = move |index: &usize| {
            self.item(*index).span.start >= start && self.names(self.item(*index)).contains(&name)
        };
        items
            .filter(move |index| last.replace(*index) != Some(*index))
            .filter(is_named)
    }

    /// Returns the positions from which and to which `edits` move the item; neither if it stays.
    pub fn way(&self, item: Option<&Item<'_>>, edits: &[Edit]) -> [Option<ItemPosition>; 2] {
        let (insertion, from) = match (item, edits) {
            (None, [insertion]) => (insertion, None),
            (Some(item), [_, insertion]) if !is_within(&item.span, insertion) => {
                (insertion, Some(self.stood(item)))
            }
            _ => return [None, None],
        };
        let at = insertion.span.clone();
        [from, Some(self.stood_at(self.lane_at(at.start), at))]
    }

    /// Returns the item's position.
    pub fn stood(&self, item: &Item<'_>) -> ItemPosition {
        let end = without_line_end(&self.text[..item.span.end]).len();
        self.stood_at(item.lane, item.span.start..end)
    }

    /// Returns the position of the range `at` in that lane.
    fn stood_at(&self, lane: Option<usize>, at: Range<usize>) -> ItemPosition {
        let sections = self.sections(&self.bounds(lane, at.start));
        let own = sections.iter().rfind(|(_, own)| own.start <= at.start);
        let (under, bounds) = own.map_or((None, 0..0), |(names, own)| {
            (names.last().cloned(), own.clone())
        });
        let near = self.near(lane, &bounds, &at);
        let [before, after] = [near[0].first(), near[1].first()];
        let start = before.map_or(bounds.start, |before| self.item(*before).span.end);
        let start = without_line_end(&self.text[..start]).len();
        let end = after.map_or(bounds.end, |after| self.item(*after).span.start);
        let is_blank = |text: &str| text.trim().is_empty() && text.matches('\n').count() > 1;
        let is_spaced = before.is_some() && is_blank(&self.text[start.min(at.start)..at.start])
            || after.is_some() && is_blank(&self.text[at.end..end.max(at.end)]);
        let name = |index: usize| Some((*self.names(self.item(index)).first()?).to_owned());
        let [before, after] = near.map(|all| all.into_iter().filter_map(name).collect());
        ItemPosition {
            lane: lane.map(|lane| self.lane_name(&self.lanes()[lane]).to_owned()),
            under,
            before,
            after,
            is_spaced,
        }
    }

    /// Returns the items of the lane before and behind `at`, nearest first.
    fn near(
        &self,
        lane: Option<usize>,
        bounds: &Range<usize>,
        at: &Range<usize>,
    ) -> [Vec<usize>; 2] {
        let is_here =
            |index: &usize| self.item(*index).lane == lane && self.item(*index).within.is_none();
        let in_lane = |index: &usize| bounds.contains(&self.item(*index).span.start);
        let before = (0..self.index_from(at.start)).rev().take_while(in_lane);
        let after = (self.index_from(at.end)..self.count()).take_while(in_lane);
        [
            before.filter(is_here).take(NEAR).collect(),
            after.filter(is_here).take(NEAR).collect(),
        ]
    }

    /// Returns the range from the end of the lane's heading to the next lane, or to other text outside of the lane.
    pub(super) fn bounds(&self, lane: Option<usize>, at: usize) -> Range<usize> {
        let next = self
            .lanes()
            .iter()
            .map(|lane| lane.heading.start)
            .find(|start| *start >= at);
        let next = next.unwrap_or(self.text.len());
        lane.map_or(self.body..next, |lane| {
            let lane = &self.lanes()[lane];
            lane.heading.end..lane.body.end.min(next)
        })
    }

    fn lane_at(&self, at: usize) -> Option<usize> {
        self.lanes()
            .iter()
            .rposition(|lane| lane.heading.end <= at && at <= lane.body.end)
    }

    /// Returns the place in a lane of that kind for an item that stood there. It goes under its heading,
    /// before the first known item that followed it, else behind the last that preceded it; between neither
    /// if none is there. Without a lane of that kind any lane will do. `None`: the place no longer exists.
    pub(super) fn berth(&self, stood: &ItemPosition, kind: LaneKind) -> Option<Insertion> {
        let may_be = |here| here == kind || !self.lane_set.has(kind);
        let lane = match &stood.lane {
            Some(name) => Some(
                self.lanes()
                    .iter()
                    .position(|lane| may_be(lane.kind) && self.lane_name(lane) == name)?,
            ),
            None if may_be(LaneKind::Pending) => None,
            None => return None,
        };
        let heading_end = lane.map_or(self.body, |lane| self.lanes()[lane].heading.end);
        let bounds = self.bounds(lane, heading_end);
        let is_here =
            |index: &usize| self.item(*index).lane == lane && self.item(*index).within.is_none();
        // A title of several items identifies none.
        let only = |name: &String, own: &Range<usize>| {
            let mut named = self.going_by(name, own.clone()).filter(is_here);
            named.next().filter(|_| named.next().is_none())
        };
        let mut sections = self.sections(&bounds);
        sections.retain(|(names, _)| names.last() == stood.under.as_ref());
        let has_neighbour = |own: &Range<usize>| {
            let mut known = stood.before.iter().chain(&stood.after);
            known.any(|name| only(name, own).is_some())
        };
        let found = sections.iter().position(|(_, own)| has_neighbour(own));
        let found = found.or((!sections.is_empty()).then_some(0));
        let section = found.map(|at| sections.swap_remove(at).1);
        let own = section.clone().unwrap_or_else(|| bounds.clone());
        let known = |names: &[String]| names.iter().find_map(|name| only(name, &own));
        let within = |index: &usize| bounds.contains(&self.item(*index).span.start);
        let previous = |index: usize| (0..index).rev().take_while(within).find(is_here);
        let following = |index: usize| (index..self.count()).take_while(within).find(is_here);
        let [before, after] = match (known(&stood.after), known(&stood.before)) {
            (Some(next), _) => [previous(next), Some(next)],
            (None, Some(last)) => [Some(last), following(last + 1)],
            (None, None) if section.is_some() => {
                let end = self.index_from(own.end);
                [previous(end), following(end)]
            }
            (None, None) => [None, None],
        };
        Some(Insertion {
            lane,
            section,
            before,
            after,
        })
    }
}

fn is_within(span: &Range<usize>, edit: &Edit) -> bool {
    span.start <= edit.span.start && edit.span.end <= span.end
}
