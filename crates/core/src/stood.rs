//! Where an item stands among the others of its lane, told so that it can come back there whatever became of them.

use std::collections::HashMap;
use std::ops::Range;
use std::slice;

use memchr::memmem;
use serde::{Deserialize, Serialize};

use super::document::{ABOVE, Document, Item};
use super::id::TaskId;
use super::lane::LaneKind;
use super::markup::without_line_end;
use super::text::{Edit, apply_within};

/// So many neighbours on either side are remembered.
const NEAR: usize = 8;

/// So many characters of a title, which names an item that has no ID.
const NAME: usize = 80;

/// What is longer is not remembered, in bytes.
const GAP: usize = 2000;

/// Where an item stands, or stood.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stood {
    /// The lane's heading; `None`: before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lane: Option<String>,
    /// The headings within the lane that it stands under; `None`: there are none, nor before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    under: Option<String>,
    /// What it goes by there without its ID, if it is not the only one of its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The items before it in the lane, by ID or title; what is not the only one of its title, by what stands above it, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) after: Vec<String>,
    /// Blank lines set it apart from one of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_spaced: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) gap: Option<Gap>,
}

/// The text between an item's neighbours, or the ends of its lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Gap {
    /// Before the item, and behind it.
    pub before: String,
    pub after: String,
    /// Where the item is not there.
    pub without: String,
    /// What its first line begins with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub indent: String,
}

impl Gap {
    /// The text with the item of this block.
    pub(super) fn with(&self, block: &str) -> String {
        format!(
            "{}{}{}",
            self.before,
            block.trim_end_matches(['\n', '\r']),
            self.after
        )
    }
}

/// Where an item comes from and goes to, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Way {
    pub from: Option<Stood>,
    pub to: Option<Stood>,
}

/// A place in a lane.
pub(super) struct Berth {
    /// `None`: before the first heading.
    pub lane: Option<usize>,
    /// What stands under the headings that it belongs under.
    pub section: Option<Range<usize>>,
    /// The items that it is between, if only one of them is known.
    pub before: Option<usize>,
    pub after: Option<usize>,
}

impl Stood {
    /// The neighbours that are known of `other`, which is called so and was put into the same lane since.
    pub fn meet(&mut self, own: &[&str], name: String, other: &Stood) {
        let is_own =
            |name: &String| own.contains(&name.as_str()) || self.name.as_ref() == Some(name);
        let names = |list: &[String]| list.iter().any(is_own);
        let is_before = names(&other.after);
        if self.lane == other.lane && (is_before || names(&other.before)) {
            let side = if is_before {
                &mut self.before
            } else {
                &mut self.after
            };
            side.insert(0, name);
            self.is_spaced |= other.is_spaced;
        }
    }

    /// The same, of which the headings are called `name`.
    fn renamed(&self, name: &str) -> Stood {
        let mut same = self.clone();
        let under = same.under.replace(name.to_owned()).unwrap_or_default();
        for known in same
            .before
            .iter_mut()
            .chain(&mut same.after)
            .filter(|known| is_under(known, &under))
        {
            known.replace_range(..under.len(), name);
        }
        same
    }
}

impl Document<'_> {
    /// What the neighbours of an item may call it.
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

    /// The items that begin within `bounds` and go by that ID or title.
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

    /// The titles of these items, with what stands above them.
    fn full_names(&self, indices: Vec<usize>) -> HashMap<usize, String> {
        let name = |(index, above): (usize, Vec<String>)| {
            let title = self
                .names(self.item(index))
                .pop()
                .unwrap_or_default()
                .to_owned();
            (
                index,
                above
                    .into_iter()
                    .fold(title, |name, above| format!("{above}{ABOVE}{name}")),
            )
        };
        self.names_above(indices).into_iter().map(name).collect()
    }

    /// As [`Document::full_names`], of those that are not the only ones of their title.
    fn names_of_namesakes(&self, indices: impl Iterator<Item = usize>) -> HashMap<usize, String> {
        let titled = indices.filter_map(|at| Some((at, self.names(self.item(at)).pop()?, 0)));
        // In one pass: to look for each of them takes as long as all else that is done with an item.
        let mut titled: Vec<(usize, &str, usize)> = titled.collect();
        // What goes on with a letter is no title of that length, unless that is cut.
        let may_be = |text: &[u8], title: &str| {
            let is_end = text
                .get(title.len())
                .is_none_or(|byte| !byte.is_ascii_alphanumeric());
            (is_end || title.len() >= NAME) && text.starts_with(title.as_bytes())
        };
        for at in if titled.is_empty() {
            0..0
        } else {
            0..self.count()
        } {
            let text = self.text_from_title(at).as_bytes();
            for (_, title, count) in titled
                .iter_mut()
                .filter(|(_, title, count)| *count < 2 && may_be(text, title))
            {
                *count += usize::from(self.names(self.item(at)).contains(title));
            }
        }
        self.full_names(
            titled
                .into_iter()
                .filter(|(.., count)| *count > 1)
                .map(|(at, ..)| at)
                .collect(),
        )
    }

    /// Where `edits` take the item from, and where they put it as `block`, which is to stand as in `to` too; nothing of what they
    /// leave in its place.
    pub fn way(
        &self,
        item: Option<&Item<'_>>,
        edits: &[Edit],
        block: &str,
        to: Option<Stood>,
    ) -> Way {
        let (insertion, removal) = match (item, edits) {
            (None, [insertion]) => (insertion, None),
            (Some(item), [removal, insertion]) if !is_within(&item.span, insertion) => {
                (insertion, Some(removal))
            }
            _ => return Way::default(),
        };
        let from = item.zip(removal).map(|(item, removal)| {
            self.stood_of(item, |_, around| {
                let is_all = around.start <= removal.span.start && removal.span.end <= around.end;
                is_all.then(|| {
                    apply_within(
                        &self.text[around.clone()],
                        around.start,
                        slice::from_ref(removal),
                    )
                })
            })
        });
        let Range { start, end } = insertion.span.clone();
        let put = self.stood(self.lane_at(start), start..end, |before, after| {
            let (first, last) = insertion
                .text
                .split_once(block.trim_end_matches(['\n', '\r']))?;
            Some(Gap {
                before: format!("{}{first}", &self.text[before.clone()]),
                after: format!("{last}{}", &self.text[after.clone()]),
                without: self.text[before.start..after.end].to_owned(),
                indent: String::new(),
            })
        });
        let to = to.unwrap_or_default();
        let with = |mut known: Vec<String>, more: Vec<String>| {
            known.extend(more);
            known.truncate(2 * NEAR);
            known
        };
        let put = Stood {
            before: with(to.before, put.before),
            after: with(to.after, put.after),
            ..put
        };
        Way {
            from,
            to: Some(put),
        }
    }

    /// Where the item stands, which `other`, another version, lacks: with what that has in its place.
    pub fn stood_beside(&self, item: &Item<'_>, other: &Document<'_>) -> Stood {
        let kind = item
            .lane
            .map_or(LaneKind::Pending, |lane| self.lanes()[lane].kind);
        let said = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let bounds = self.bounds(item.lane, item.span.start);
        let near = self
            .near(item.lane, &bounds, &item.span)
            .map(|all| all.first().map(|at| self.names(self.item(*at))));
        self.stood_of(item, |stood, around| {
            let berth = other.berth(stood, kind)?;
            let are_same = near
                == [berth.before, berth.after].map(|at| at.map(|at| other.names(other.item(at))));
            let there = &other.text[other.around_berth(&berth)];
            let [before, after] = [
                around.start..item.span.start,
                item.span.end..around.end.max(item.span.end),
            ];
            let here = [before, after].map(|part| said(&self.text[part])).concat();
            // What was typed there in the same breath is nothing to be taken away.
            (are_same && there.len() <= GAP && said(there) == here).then(|| there.to_owned())
        })
    }

    /// Where the item stands; `without`, which is told that and the span between its neighbours, says what is there without it.
    fn stood_of(
        &self,
        item: &Item<'_>,
        without: impl FnOnce(&Stood, Range<usize>) -> Option<String>,
    ) -> Stood {
        let own = self.index_from(item.span.start);
        let text = &self.text[item.span.clone()];
        let indent = &text[..text.len() - text.trim_start_matches([' ', '\t']).len()];
        let span = item.span.start..without_line_end(&self.text[..item.span.end]).len();
        let mut around = None;
        let stood = self.stood(item.lane, span, |before, after| {
            around = Some(before.start..after.end);
            let [before, after] = [before, after].map(|part| self.text[part].to_owned());
            Some(Gap {
                before,
                after,
                indent: indent.to_owned(),
                ..Gap::default()
            })
        });
        let without = around.and_then(|around| without(&stood, around));
        let gap = stood
            .gap
            .clone()
            .zip(without)
            .map(|(gap, without)| Gap { without, ..gap });
        Stood {
            name: self.names_of_namesakes([own].into_iter()).remove(&own),
            gap,
            ..stood
        }
    }

    /// What stands at `at`, in that lane; `gap` is told the text before it and behind it.
    fn stood(
        &self,
        lane: Option<usize>,
        at: Range<usize>,
        gap: impl FnOnce(Range<usize>, Range<usize>) -> Option<Gap>,
    ) -> Stood {
        let bounds = self.bounds(lane, at.start);
        let [before, after] = self.near(lane, &bounds, &at);
        let around = self.between(&bounds, before.first().copied(), after.first().copied());
        let is_blank = |text: &str| text.trim().is_empty() && text.matches('\n').count() > 1;
        let is_spaced = (!before.is_empty()
            && is_blank(&self.text[around.start.min(at.start)..at.start]))
            || (!after.is_empty() && is_blank(&self.text[at.end..around.end.max(at.end)]));
        let is_short =
            around.len() - at.len() <= GAP && around.start <= at.start && at.end <= around.end;
        let has_no_id = |index: &usize| self.item(*index).id.is_none();
        let mut full =
            self.names_of_namesakes(before.iter().chain(&after).copied().filter(has_no_id));
        let mut name = |index: usize| {
            full.remove(&index).or_else(|| {
                self.names(self.item(index))
                    .first()
                    .map(|name| (*name).to_owned())
            })
        };
        let [before, after] =
            [before, after].map(|all| all.into_iter().filter_map(&mut name).collect());
        let gap = if is_short {
            gap(around.start..at.start, at.end..around.end)
        } else {
            None
        };
        let sections = self.sections(&bounds);
        let under = sections
            .iter()
            .rfind(|(_, section)| section.start <= at.start)
            .filter(|_| sections.len() > 1);
        let under = under.map(|(names, _)| names.join(ABOVE));
        let lane = lane.map(|lane| self.lane_name(&self.lanes()[lane]).to_owned());
        Stood {
            lane,
            under,
            name: None,
            before,
            after,
            is_spaced,
            gap,
        }
    }

    /// The items of the lane before and behind what stands at `at`, the nearest first.
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

    /// The text between the neighbours of an item, and the item.
    pub(super) fn around_item(&self, item: &Item<'_>) -> Range<usize> {
        let bounds = self.bounds(item.lane, item.span.start);
        let [before, after] = self.near(item.lane, &bounds, &item.span);
        self.between(&bounds, before.first().copied(), after.first().copied())
    }

    /// The text between two neighbours, from the end of the first one's last line on.
    pub(super) fn between(
        &self,
        bounds: &Range<usize>,
        before: Option<usize>,
        after: Option<usize>,
    ) -> Range<usize> {
        let start = before.map_or(bounds.start, |before| self.item(before).span.end);
        without_line_end(&self.text[..start]).len()
            ..after.map_or(bounds.end, |after| self.item(after).span.start)
    }

    /// The text between the neighbours that are known of a berth.
    pub(super) fn around_berth(&self, berth: &Berth) -> Range<usize> {
        let bounds = self.bounds(
            berth.lane,
            berth
                .lane
                .map_or(self.body, |lane| self.lanes()[lane].heading.end),
        );
        self.between(&bounds, berth.before, berth.after)
    }

    /// From the end of the lane's heading to where the next lane, or whatever is no part of it, begins.
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

    /// Where in a lane of that kind an item belongs that stood so: under its headings, before the first of those that followed it, else behind
    /// the last of those that preceded it; between neither where none is there. If there is no lane of that kind, it may be any. `None`:
    /// there is no such place any more.
    pub(super) fn berth(&self, stood: &Stood, kind: LaneKind) -> Option<Berth> {
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
        let bounds = self.bounds(
            lane,
            lane.map_or(self.body, |lane| self.lanes()[lane].heading.end),
        );
        let section = self.section(stood, &bounds);
        let (known, own) = match section.clone() {
            Some((name, section)) => (stood.renamed(&name), section),
            None => (stood.clone(), bounds.clone()),
        };
        let is_here =
            |index: usize| self.item(index).lane == lane && self.item(index).within.is_none();
        let named = |name| {
            self.going_by(name, own.clone())
                .filter(|index| is_here(*index))
        };
        let titles = known
            .before
            .iter()
            .chain(&known.after)
            .filter_map(|name| Some(name.rsplit_once(ABOVE)?.1));
        let full = self.full_names(titles.flat_map(named).collect());
        let is_full = |name: &str| {
            full.iter()
                .filter(|(_, full)| *full == name)
                .map(|(index, _)| *index)
                .min()
        };
        let index_of = |name| named(name).next().or_else(|| is_full(name));
        let next = known
            .after
            .iter()
            .map(String::as_str)
            .filter_map(index_of)
            .min();
        let last = || {
            known
                .before
                .iter()
                .map(String::as_str)
                .filter_map(index_of)
                .max()
        };
        let last = if next.is_none() { last() } else { None };
        let within = |index: &usize| bounds.contains(&self.item(*index).span.start);
        let previous = |index: usize| (0..index).rev().take_while(within).find(|at| is_here(*at));
        let following = |index: usize| {
            (index..self.count())
                .take_while(within)
                .find(|at| is_here(*at))
        };
        let (before, after) = match (next, last) {
            (Some(next), _) => (previous(next), Some(next)),
            (None, Some(last)) => (Some(last), following(last + 1)),
            (None, None) if section.is_some() => {
                let end = self.index_from(own.end);
                (previous(end), following(end))
            }
            (None, None) => (None, None),
        };
        Some(Berth {
            lane,
            section: section.map(|_| own),
            before,
            after,
        })
    }

    /// What is within `bounds` under the headings that an item stood under. Where they have other names now it is what alone has names that
    /// are new, and one of its neighbours.
    fn section(&self, stood: &Stood, bounds: &Range<usize>) -> Option<(String, Range<usize>)> {
        let under = stood.under.as_ref()?;
        let mut all: Vec<_> = self
            .sections(bounds)
            .into_iter()
            .map(|(names, section)| (names.join(ABOVE), section))
            .collect();
        if let Some(at) = all.iter().position(|(name, _)| name == under) {
            return Some(all.swap_remove(at));
        }
        let known = || stood.before.iter().chain(&stood.after);
        let is_new = |name: &str| !name.is_empty() && !known().any(|known| is_under(known, name));
        let has_neighbour = |section: &Range<usize>| {
            let titles = known()
                .filter(|known| is_under(known, under))
                .filter_map(|known| known.rsplit_once(ABOVE));
            titles
                .into_iter()
                .any(|(_, title)| self.going_by(title, section.clone()).next().is_some())
        };
        all.retain(|(name, section)| is_new(name) && has_neighbour(section));
        if all.len() == 1 { all.pop() } else { None }
    }
}

/// Who goes by this name stands under headings of that one.
fn is_under(name: &str, headings: &str) -> bool {
    name.strip_prefix(headings)
        .is_some_and(|rest| rest.starts_with(ABOVE))
}

fn is_within(span: &Range<usize>, edit: &Edit) -> bool {
    span.start <= edit.span.start && edit.span.end <= span.end
}
