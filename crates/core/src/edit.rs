//! Edits of a queue document that change only the block of an item.
//!
//! Most moves are plainly safe: between blank lines, headings and items at the margin. In other cases the
//! result is read again, and separators are added until every other item reads as before.

use std::ops::Range;

use crate::document::{Document, Item, Lane, Tail, parse, parse_alone};
use crate::lane::{self, LaneKind, LanePlace};
use crate::markup;
use crate::metadata::Key;
use crate::patch::{Patch, in_place, is_said, said};
use crate::position::{Insertion, ItemPosition};
use crate::state::State;
use crate::task::{Status, TaskId};
use crate::text::{Edit, apply, apply_within};

impl<'t> Document<'t> {
    /// Returns the edits that apply the patch to the item's box, ID and keys. If the document has a lane for
    /// the new status, and the item is not in it, its block moves to the end of that lane.
    pub fn change(&self, item: &Item<'_>, patch: &Patch) -> Vec<Edit> {
        self.change_back(item, patch, None)
    }

    /// As [`Document::change`], but the item goes back to where it `stood`, if that place still exists.
    pub fn change_back(
        &self,
        item: &Item<'_>,
        patch: &Patch,
        stood: Option<&ItemPosition>,
    ) -> Vec<Edit> {
        let Some(status) = patch.status else {
            let is_there = |key: &Key| self.fields(item).get(*key).is_some();
            let changes = |(key, value): &(Key, Option<_>)| value.is_some() || is_there(key);
            if patch.id.is_none() && !patch.set.iter().any(changes) {
                return Vec::new();
            }
            return in_place(self, item, patch, None);
        };
        self.placed(item, status, stood, |place| {
            let key = lane::needs_key(status, place, self.lane_set);
            in_place(self, item, patch, Some((status, key)))
        })
    }

    /// Returns the patch that makes the item's text show `state`: its box and its lane, without an answer
    /// that was read. An open item stays in its place, unless its queue is `live`.
    pub fn showing(&self, item: &Item<'_>, state: &State) -> Patch {
        let (said, status) = (self.text_status(item), self.shown(state.status()));
        let is_shown = match status {
            Status::Pending if state.status() != Status::Pending && !self.front().live => {
                !said.is_ended() && said != Status::Draft
            }
            Status::Draft => said == Status::Draft || !self.lane_set.has(LaneKind::Draft),
            status => said == status,
        };
        let answer = state
            .question()
            .and_then(|question| question.answer.as_ref());
        let set = match answer {
            None => vec![(Key::Answer, None)],
            Some(_) => Vec::new(),
        };
        Patch {
            status: Some(status).filter(|_| !is_shown),
            set,
            ..Patch::default()
        }
    }

    /// Returns the status that the text shows: open items are pending there, unless the queue is `live`.
    pub fn shown(&self, status: Status) -> Status {
        match status {
            Status::Dead if !self.lane_set.has(LaneKind::Dead) => Status::Pending,
            Status::Draft | Status::Dead | Status::Completed | Status::Cancelled => status,
            _ if self.front().live => status,
            _ => Status::Pending,
        }
    }

    /// Returns the item's own edits for its place under that status, and the edits that move it there.
    fn placed(
        &self,
        item: &Item<'_>,
        status: Status,
        stood: Option<&ItemPosition>,
        own: impl Fn(LanePlace) -> Vec<Edit>,
    ) -> Vec<Edit> {
        match self.goal(item, status, stood) {
            None => own(self.place(item)),
            Some(goal) => self.moved(item, status, &goal, &own(goal.place)),
        }
    }

    /// Returns where the item goes for that status; `None` if it stays.
    fn goal(
        &self,
        item: &Item<'_>,
        status: Status,
        stood: Option<&ItemPosition>,
    ) -> Option<Destination> {
        let (here, kind) = (self.place(item), self.lane_kind_of(status));
        if matches!(here, LanePlace::Nested(_)) || here == LanePlace::Lane(kind) {
            return None;
        }
        let Some(goal) = stood.and_then(|stood| self.goal_by(stood, kind)) else {
            let lane = self
                .lane_to_move_to(item, status)
                .map(|lane| (LanePlace::Lane(kind), self.spot_in(lane)));
            return lane.map(|(place, spot)| Destination {
                place,
                spots: vec![spot],
            });
        };
        Some(goal).filter(|goal| goal.place != here)
    }

    /// Returns the place where an item stood in a lane of that kind; `None` if it no longer exists.
    fn goal_by(&self, stood: &ItemPosition, kind: LaneKind) -> Option<Destination> {
        let berth = self.berth(stood, kind)?;
        let place = berth.lane.map_or(LanePlace::Loose, |lane| {
            LanePlace::Lane(self.lanes()[lane].kind)
        });
        let near = self.spot_at(&berth, stood);
        let end = berth.lane.map_or_else(
            || self.spot_under(self.body),
            |lane| self.spot_in(&self.lanes()[lane]),
        );
        Some(Destination {
            place,
            spots: near.into_iter().chain([end]).collect(),
        })
    }

    /// Returns the edits that add a rendered item at the end of the lane for `status`, with its box and
    /// `status:` key adapted. Without such a lane it goes behind the last item, or to the end of the
    /// document.
    pub fn add(&self, status: Status, block: &str) -> Vec<Edit> {
        let lane = self
            .lane_of(self.lane_kind_of(status))
            .or_else(|| {
                LaneKind::ALL[1..]
                    .iter()
                    .find_map(|kind| self.lane_of(*kind))
            })
            .or_else(|| self.lane_of(LaneKind::Draft));
        let place = lane.map_or(LanePlace::Loose, |lane| LanePlace::Lane(lane.kind));
        let block = said(block, status, place, self.lane_set);
        // Obsidian's Kanban indents by four; text indented by less would leave its card. An odd fence may
        // then end elsewhere.
        let task = |block: &str| {
            let (document, _) = parse(block);
            document.items().first().map(|item| document.task_of(item))
        };
        let further = self
            .front()
            .is_kanban
            .then(|| block.replace("\n  ", "\n    "));
        let block = further
            .filter(|further| task(further) == task(&block))
            .unwrap_or(block);
        let block = self.with_bullet_of(
            lane.map_or(self.tail, |lane| lane.tail).or(self.tail),
            &block,
        );
        let block = block
            .replace("\r\n", "\n")
            .replace('\n', markup::newline(self.text));

        let spot = lane.map_or_else(|| self.spot_at_end(), |lane| self.spot_in(lane));
        // An unclosed block that swallows the rest of the document can't swallow its beginning.
        let top = Spot {
            at: self.body,
            blank_before: self.body > 3,
            blank_after: true,
            tail: None,
        };
        let behind = Fill::ALL.map(|fill| (&spot, fill)).into_iter();
        let mut tried = behind
            .chain([(&top, Fill::Nothing), (&top, Fill::Comment)])
            .map(|(spot, fill)| {
                let (edit, inserted) = self.insertion(spot, &block, fill);
                (vec![edit], inserted)
            });
        let plain = self
            .is_plain_spot(&spot, &block)
            .then(|| tried.next())
            .flatten();
        plain.map_or_else(
            || self.first_that_reads(None, tried, status),
            |(edits, _)| edits,
        )
    }

    /// Returns the edits that put a block back where it stood, with the status of that place. Falls back to
    /// [`Document::add`] if nothing of that place is left.
    pub(crate) fn put_in(
        &self,
        status: Status,
        block: &str,
        stood: Option<&ItemPosition>,
    ) -> Vec<Edit> {
        let goal = stood.and_then(|stood| self.goal_by(stood, self.lane_kind_of(status)));
        let there = goal.and_then(|goal| {
            let shown = |block: &str| {
                if is_said(block, status, goal.place, self.lane_set) {
                    block.to_owned()
                } else {
                    said(block, status, goal.place, self.lane_set)
                }
            };
            // In its former list, or at the margin.
            let shapes = [shown(block), shown(&alone(block))];
            let at_spot = |(spot, shape): (_, &String)| {
                Fill::ALL.map(|fill| self.insertion(spot, shape, fill))
            };
            let near = goal
                .spots
                .iter()
                .flat_map(|spot| shapes.each_ref().map(|shape| (spot, shape)))
                .flat_map(at_spot);
            let mut tried = near.map(|(edit, inserted)| (vec![edit], inserted));
            tried.find(|(edits, inserted)| {
                self.reads_as_before(None, edits, inserted.clone(), status)
            })
        });
        there.map_or_else(|| self.add(status, block), |(edits, _)| edits)
    }

    /// Returns the edits that remove the item.
    pub(crate) fn taken_out(&self, item: &Item<'_>) -> Vec<Edit> {
        // The comments that separated it are removed, too.
        let before = self.text[self.body..item.span.start].trim_end();
        let behind = self.text[item.span.end..].trim_start();
        let [is_before, is_behind] = [before.ends_with(SEPARATOR), behind.starts_with(SEPARATOR)];
        if is_before || is_behind {
            let before = before.strip_suffix(SEPARATOR).unwrap_or(before).trim_end();
            let behind = behind
                .strip_prefix(SEPARATOR)
                .unwrap_or(behind)
                .trim_start();
            let start = self.body + before.len();
            let start = start + usize::from(!before.is_empty());
            let edit = Edit::delete(start.min(item.span.start)..self.text.len() - behind.len());
            let is_it = |other: &Item<'_>| within(&item.span, other);
            let edits = vec![edit];
            if self
                .applied(&edits, &is_it, &|_| false, &|_| true)
                .is_some()
            {
                return edits;
            }
        }
        let is_plain = item.column == 0 && self.is_plain_gap(item);
        vec![if is_plain {
            self.removal(&item.span, Fill::Nothing)
        } else {
            Edit::delete(item.span.clone())
        }]
    }

    /// Returns the edits that replace the item's text and, if given, set its status. Its block moves to the
    /// end of that status's lane, as in [`Document::change`], or to where it `stood`. Text that shows the
    /// status already stays as typed.
    pub(crate) fn rewritten(
        &self,
        item: &Item<'_>,
        block: &str,
        status: Option<Status>,
        stood: Option<&ItemPosition>,
    ) -> Vec<Edit> {
        let status = status.filter(|status| *status != item.status);
        let Some(status) = status else {
            return vec![Edit::replace(item.span.clone(), block)];
        };
        let moves = self.goal(item, status, stood).is_some();
        let block = &if moves && item.column == 0 {
            alone(block)
        } else {
            block.to_owned()
        };
        self.placed(item, status, stood, |place| {
            let is_said = is_said(block, status, place, self.lane_set);
            let block = if is_said {
                block.to_owned()
            } else {
                said(block, status, place, self.lane_set)
            };
            vec![Edit::replace(item.span.clone(), block)]
        })
    }

    /// Returns the lane kind for items of this status. Without a dead letter lane, dead items belong where
    /// pending ones do.
    pub fn lane_kind_of(&self, status: Status) -> LaneKind {
        let kind = LaneKind::of(status);
        if kind == LaneKind::Dead && !self.lane_set.has(kind) {
            LaneKind::Pending
        } else {
            kind
        }
    }

    fn lane_of(&self, kind: LaneKind) -> Option<&Lane> {
        self.lanes().iter().find(|lane| lane.kind == kind)
    }

    pub(crate) fn lane_to_move_to(&self, item: &Item<'_>, status: Status) -> Option<&Lane> {
        let kind = self.lane_kind_of(status);
        match self.place(item) {
            LanePlace::Nested(_) => None,
            LanePlace::Lane(here) if here == kind => None,
            // Before the first heading counts as Pending.
            LanePlace::Loose if kind == LaneKind::Pending => None,
            _ => self.lane_of(kind),
        }
    }

    fn moved(
        &self,
        item: &Item<'_>,
        status: Status,
        goal: &Destination,
        edits: &[Edit],
    ) -> Vec<Edit> {
        let block = apply_within(self.block(item), item.span.start, edits);
        let spot = &goal.spots[0];
        let is_plain =
            item.column == 0 && self.is_plain_gap(item) && self.is_plain_spot(spot, &block);
        // From the smallest separator to the largest.
        let fills = || Fill::ALL.into_iter().flat_map(Fill::pairs);
        let at_spot = |spot| {
            let shapes = self.shapes(item, spot, &block);
            let last = shapes
                .last()
                .cloned()
                .map(|shape| (shape, Fill::Comment, Fill::Comment));
            let tried = shapes.into_iter().flat_map(move |shape| {
                fills().map(move |(gap, around)| (shape.clone(), gap, around))
            });
            tried
                .chain(last)
                .map(move |(shape, gap, around)| (gap, self.insertion(spot, &shape, around)))
        };
        let tried = goal.spots.iter().flat_map(at_spot);
        let mut tried = tried.map(|(gap, (insertion, inserted))| {
            (vec![self.removal(&item.span, gap), insertion], inserted)
        });
        let plain = is_plain.then(|| tried.next()).flatten();
        let meant = || {
            let column = markup::columns(
                &block[..block.len() - block.trim_start_matches([' ', '\t']).len()],
            );
            let alone = markup::dedented(&block, column);
            self.first_that_reads(
                Some((item, &parse_alone(&alone, self.front()))),
                tried,
                status,
            )
        };
        plain.map_or_else(meant, |(edits, _)| edits)
    }

    /// Returns the forms of the block that fit the spot, the least changed first.
    fn shapes(&self, item: &Item<'_>, spot: &Spot, block: &str) -> Vec<String> {
        let stays = item.column == 0
            || spot
                .tail
                .is_some_and(|tail| self.column_of(tail) == item.column);
        let mut shapes = vec![
            if stays {
                block.to_owned()
            } else {
                at_margin(block, item)
            },
            at_margin(block, item),
        ];
        if (1..4).contains(&item.column) {
            shapes.push(block.to_owned());
        }
        shapes.push(forced_to_margin(block, item));
        shapes.dedup();
        shapes
    }

    /// Returns the first of the edits after which everything reads as it should; else the last. Each comes
    /// with the place of its insertion, and the moved item with the way it must read.
    fn first_that_reads(
        &self,
        moved: Option<(&Item<'_>, &Document<'_>)>,
        tried: impl Iterator<Item = (Vec<Edit>, Range<usize>)>,
        status: Status,
    ) -> Vec<Edit> {
        let mut edits = Vec::new();
        for (next, inserted) in tried {
            edits = next;
            if self.reads_as_before(moved, &edits, inserted, status) {
                break;
            }
        }
        edits
    }

    /// Returns the spot between the position's neighbors, with blank lines where there were some; else the
    /// end of the text under its headings.
    fn spot_at(&self, berth: &Insertion, stood: &ItemPosition) -> Option<Spot> {
        let is_spaced = stood.is_spaced;
        let is_own = |item: &&Item<'_>| {
            berth
                .section
                .as_ref()
                .is_none_or(|own| own.contains(&item.span.start))
        };
        let [before, after] =
            [berth.before, berth.after].map(|index| index.map(|at| self.item(at)).filter(is_own));
        let tail = before.filter(|before| before.column == 0);
        let tail = tail.map(|before| Tail {
            start: before.span.start,
            end: before.span.end,
            is_spaced,
        });
        let Some(next) = after.map(|after| after.span.start) else {
            let under = || Some(self.spot_under(self.end_of(berth.section.clone()?)));
            return tail.map(|tail| self.spot_behind(tail)).or_else(under);
        };
        let tail = tail.filter(|tail| self.text[tail.end..next].trim().is_empty());
        Some(Spot {
            at: next,
            blank_before: false,
            blank_after: is_spaced,
            tail,
        })
    }

    /// Returns the spot behind the lane's last item, or for its first one.
    fn spot_in(&self, lane: &Lane) -> Spot {
        lane.tail.map_or_else(
            || self.spot_under(lane.lead_end),
            |tail| self.spot_behind(tail),
        )
    }

    fn spot_at_end(&self) -> Spot {
        match self.tail {
            Some(tail) => self.spot_behind(tail),
            None => {
                // An archive at the end stays last.
                let archive = self.lane_of(LaneKind::Archive);
                let end = archive.map_or(self.text.len(), |archive| archive.heading.start);
                self.spot_under(self.end_of(self.body..end))
            }
        }
    }

    /// Returns the end of the last non-blank line, or the start.
    fn end_of(&self, span: Range<usize>) -> usize {
        let is_empty = self.text[span.clone()].trim().is_empty();
        if is_empty {
            span.start
        } else {
            markup::block_end(self.text, span.start, span.end)
        }
    }

    fn spot_behind(&self, tail: Tail) -> Spot {
        let next = &self.text[tail.end..];
        let is_apart = next.is_empty()
            || markup::is_blank_line(self.text, tail.end)
            || next.trim_start_matches(' ').starts_with('#')
            || markup::bullet_end(next, 0).is_some_and(|end| next[end..].starts_with([' ', '\t']));
        Spot {
            at: tail.end,
            blank_before: tail.is_spaced,
            blank_after: !is_apart,
            tail: Some(tail),
        }
    }

    /// Returns the spot below the line that ends at `at`, with a blank line in between.
    fn spot_under(&self, at: usize) -> Spot {
        let text = self.text;
        let has_blank = markup::is_blank_line(text, at);
        let at = if has_blank {
            markup::line_end(text, at, text.len())
        } else {
            at
        };
        let is_head = at <= '\u{feff}'.len_utf8();
        let blank_after = at < text.len() && !markup::is_blank_line(text, at);
        Spot {
            at,
            blank_before: !has_blank && !is_head,
            blank_after,
            tail: None,
        }
    }

    /// Returns the edit that inserts the block at the spot, and the block's range in the new text, not
    /// counting shifts by other edits before it.
    fn insertion(&self, spot: &Spot, block: &str, fill: Fill) -> (Edit, Range<usize>) {
        let newline = markup::newline(self.text);
        let at_end = spot.at == self.text.len();
        let is_open = at_end && spot.at > self.body.min(3) && !self.text.ends_with(['\n', '\r']);
        let mut text = String::with_capacity(block.len() + 8);
        if is_open {
            text.push_str(newline);
        }
        match fill {
            Fill::Nothing if spot.blank_before => text.push_str(newline),
            Fill::Nothing => {}
            Fill::Blank => text.push_str(newline),
            Fill::Comment => text.push_str(&format!("{newline}{SEPARATOR}{newline}{newline}")),
        }
        let start = spot.at + text.len();
        text.push_str(block.trim_end_matches(['\n', '\r']));
        let end = spot.at + text.len();
        if !is_open {
            let own = ["\r\n", "\n"].into_iter().find(|end| block.ends_with(end));
            text.push_str(own.unwrap_or(newline));
        }
        match fill {
            Fill::Nothing if spot.blank_after => text.push_str(newline),
            Fill::Blank if !at_end => text.push_str(newline),
            Fill::Comment if !at_end => {
                text.push_str(&format!("{newline}{SEPARATOR}{newline}{newline}"));
            }
            _ => {}
        }
        (Edit::insert(spot.at, text), start..end)
    }

    /// Returns the edit that removes the block. Where two blank lines would meet, one is removed, too.
    fn removal(&self, span: &Range<usize>, fill: Fill) -> Edit {
        let text = self.text;
        let newline = markup::newline(text);
        match fill {
            Fill::Nothing => {
                let before = self.blank_line_before(span.start);
                let mut cut = span.clone();
                if before.is_some() && markup::is_blank_line(text, span.end) {
                    cut.end = markup::line_end(text, span.end, text.len());
                } else if let (Some(start), true) = (before, span.end == text.len()) {
                    cut.start = start;
                }
                Edit::delete(cut)
            }
            Fill::Blank => Edit::replace(span.clone(), newline),
            Fill::Comment => {
                // Indented like the block, so that text around both continues around it.
                let block = &text[span.clone()];
                let indent = &block[..block.len() - block.trim_start_matches([' ', '\t']).len()];
                Edit::replace(
                    span.clone(),
                    format!("{newline}{indent}{SEPARATOR}{newline}{newline}"),
                )
            }
        }
    }

    /// Returns the start of the line before `at`, if it is blank.
    fn blank_line_before(&self, at: usize) -> Option<usize> {
        let before = self.text[self.body..at].strip_suffix('\n')?;
        let before = before.strip_suffix('\r').unwrap_or(before);
        let start = markup::line_start(self.text, self.body, self.body + before.len());
        (start > self.body && markup::is_blank_line(self.text, start)).then_some(start)
    }

    /// Returns true if the text around the block can't change its meaning when the block is gone.
    fn is_plain_gap(&self, item: &Item<'_>) -> bool {
        let (start, end) = (item.span.start, item.span.end);
        let text = self.text;
        let before = start > self.body
            && (self.blank_line_before(start).is_some()
                || self.lanes().iter().any(|lane| lane.heading.end == start)
                || (self.ends_item(start) && !self.is_ordered(item)));
        before
            && !self.is_ruled_off(start)
            && is_at_margin(text, end)
            && (end == text.len() || markup::is_blank_line(text, end) || self.is_start(end))
    }

    /// Returns true if a rule stands before `at`. On an Obsidian Kanban board the heading right behind one is
    /// the archive.
    fn is_ruled_off(&self, at: usize) -> bool {
        let line = || {
            self.text[self.body..at]
                .trim_end()
                .lines()
                .next_back()
                .unwrap_or_default()
        };
        self.front().is_kanban && line().chars().all(|c| "*-_ \t".contains(c))
    }

    /// Returns true if the block at the spot can only read as an item, and the text behind it only as before.
    fn is_plain_spot(&self, spot: &Spot, block: &str) -> bool {
        let is_dash = |text: &str| text.starts_with(['-', '*', '+']);
        let before = match spot.tail {
            Some(tail) => is_dash(&self.text[tail.start..]) && is_dash(block),
            None => self
                .lanes()
                .iter()
                .any(|lane| lane.heading.end <= spot.at && spot.at <= lane.heading.end + 2),
        };
        before && is_at_margin(self.text, spot.at)
    }

    fn is_ordered(&self, item: &Item<'_>) -> bool {
        self.block(item)
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit())
    }

    /// Returns true if an item at the margin or a lane's heading begins at `at`. An underlined heading is not
    /// enough, as it could join a paragraph.
    fn is_start(&self, at: usize) -> bool {
        let is_dash = self.text[at..].starts_with(['-', '*', '+']);
        let is_heading = || {
            self.text[at..].starts_with('#')
                && self.lanes().iter().any(|lane| lane.heading.start == at)
        };
        (is_dash && self.begins_item(at)) || is_heading()
    }

    fn column_of(&self, tail: Tail) -> usize {
        let line = &self.text[tail.start..tail.end];
        markup::columns(&line[..line.len() - line.trim_start_matches([' ', '\t']).len()])
    }

    /// Returns the block with the bullet of the list item before it.
    fn with_bullet_of(&self, tail: Option<Tail>, block: &str) -> String {
        let Some(tail) = tail else {
            return block.to_owned();
        };
        let line = self.text[tail.start..tail.end].trim_start();
        let Some(rest) = block.strip_prefix(['-', '*', '+']) else {
            return block.to_owned();
        };
        match line.as_bytes().first() {
            Some(bullet @ (b'-' | b'*' | b'+')) => format!("{}{rest}", char::from(*bullet)),
            _ => {
                let digits = line.bytes().take_while(u8::is_ascii_digit).count();
                let (Ok(number), Some(mark)) =
                    (line[..digits].parse::<u32>(), line[digits..].chars().next())
                else {
                    return block.to_owned();
                };
                // With more indent, a tab would reach another column.
                if number >= 999_999_998 || rest.contains('\t') {
                    return block.to_owned();
                }
                let bullet = format!("{}{mark}", number + 1);
                let indent = " ".repeat(bullet.len() - 1);
                let mut lines = rest.split_inclusive('\n');
                let first = lines.next().unwrap_or("");
                let others = lines.map(|line| {
                    if line.trim().is_empty() {
                        line.to_owned()
                    } else {
                        format!("{indent}{line}")
                    }
                });
                format!("{bullet}{first}{}", others.collect::<String>())
            }
        }
    }

    /// Returns true if after the edits every other item reads as before, and the one at `inserted` as it should.
    fn reads_as_before(
        &self,
        moved: Option<(&Item<'_>, &Document<'_>)>,
        edits: &[Edit],
        inserted: Range<usize>,
        status: Status,
    ) -> bool {
        let Some((insertion, others)) = edits.split_last() else {
            return false;
        };
        if others.iter().any(|edit| !edit.is_apart(insertion)) {
            return false;
        }
        let before = others
            .iter()
            .filter(|edit| edit.span.end <= insertion.span.start);
        let (gone, filled) = before.fold((0, 0), |(gone, filled), edit| {
            (gone + edit.span.len(), filled + edit.text.len())
        });
        let inserted = inserted.start + filled - gone..inserted.end + filled - gone;
        let is_moved = |item: &Item<'_>| moved.is_some_and(|(moved, _)| within(&moved.span, item));
        let is_new = |item: &Item<'_>| within(&inserted, item);
        let holds = |new: &Document<'_>| {
            let mut own = new.items().iter().filter(|item| is_new(item));
            let Some(first) = own.next() else {
                return false;
            };
            let kinds = |document: &Document<'_>| {
                document
                    .lanes()
                    .iter()
                    .map(|lane| lane.kind)
                    .collect::<Vec<_>>()
            };
            first.span.start == inserted.start
                && first.status == status
                && !first.nested
                && new.block(first).trim_end_matches(['\n', '\r']).len() == inserted.len()
                && moved.is_none_or(|(_, meant)| {
                    let is_as_meant = |it: &Item<'_>| {
                        meant.items().len() == own.count() + 1
                            && meant.title(it) == new.title(first)
                            && meant.description(it) == new.description(first)
                            && it.block.is_some() == first.block.is_some()
                    };
                    meant.items().first().is_some_and(is_as_meant)
                })
                && kinds(self) == kinds(new)
        };
        self.applied(edits, &is_moved, &is_new, &holds).is_some()
    }

    /// Returns the text after the edits if it reads right: every item that neither went nor came and the
    /// front matter read as before, and `holds` is true.
    pub(crate) fn applied(
        &self,
        edits: &[Edit],
        went: &dyn Fn(&Item<'_>) -> bool,
        came: &dyn Fn(&Item<'_>) -> bool,
        holds: &dyn Fn(&Document<'_>) -> bool,
    ) -> Option<String> {
        let text = apply(self.text, edits);
        let is_same = {
            let (new, _) = parse(&text);
            // Remembered states are in no text.
            let alone = (!self.states().has_no_open()).then(|| parse(self.text).0);
            let old = alone.as_ref().unwrap_or(self);
            let stay = old
                .items()
                .iter()
                .filter(|item| !went(item))
                .map(|item| old.summary(item));
            let are = new
                .items()
                .iter()
                .filter(|item| !came(item))
                .map(|item| new.summary(item));
            stay.eq(are) && old.front() == new.front() && holds(&new)
        };
        is_same.then_some(text)
    }

    /// Returns the properties of an untouched item that must stay the same.
    pub(crate) fn summary(&self, item: &Item<'_>) -> (&'t str, Status, Option<TaskId>, bool, bool) {
        (
            self.block(item).trim_end(),
            item.status,
            item.id.clone(),
            item.nested,
            item.quarantined,
        )
    }
}

fn within(span: &Range<usize>, item: &Item<'_>) -> bool {
    span.start <= item.span.start && item.span.start < span.end
}

/// The place where an item goes.
struct Destination {
    place: LanePlace,
    /// Spots in order: the next is tried if the text would read otherwise at the one before.
    spots: Vec<Spot>,
}

/// The place where a block goes.
#[derive(Clone, Debug)]
struct Spot {
    at: usize,
    blank_before: bool,
    blank_after: bool,
    /// The list item before it.
    tail: Option<Tail>,
}

/// Separator around a block, and in its old place, so that blocks don't run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Nothing,
    Blank,
    /// An HTML comment, which CommonMark suggests to end a list.
    Comment,
}

impl Fill {
    const ALL: [Fill; 3] = [Fill::Nothing, Fill::Blank, Fill::Comment];

    /// Returns this one in both places, then with a smaller one in either.
    fn pairs(self) -> impl Iterator<Item = (Fill, Fill)> {
        let less = Fill::ALL
            .into_iter()
            .take_while(move |other| *other != self);
        std::iter::once((self, self))
            .chain(less.flat_map(move |other| [(self, other), (other, self)]))
    }
}

const SEPARATOR: &str = "<!-- -->";

/// Returns the block moved to the margin, out of any list.
fn alone(block: &str) -> String {
    let indent = &block[..block.len() - block.trim_start_matches([' ', '\t']).len()];
    let columns = markup::columns(indent);
    let lines = block.split_inclusive('\n');
    lines.map(|line| markup::dedent(line, columns)).collect()
}

/// Returns the block with its bullet in the first column.
fn at_margin(block: &str, item: &Item<'_>) -> String {
    if item.column == 0 {
        return block.to_owned();
    }
    let mut lines = block.split_inclusive('\n');
    let first = lines.next().unwrap_or("");
    let mut result = String::with_capacity(block.len());
    let bullet = first.trim_start_matches([' ', '\t']);
    let is_even = item.column.is_multiple_of(4);
    let open = bullet.find('[').unwrap_or(0);
    if is_even || !bullet[..open].contains('\t') {
        result.push_str(bullet);
    } else {
        // Behind a moved bullet, a tab would reach another column.
        let mark = bullet[..open].trim_end();
        let width = item.content_column - item.column;
        result.push_str(&format!("{mark:<width$}{}", &bullet[open..]));
    }
    for line in lines {
        result.push_str(&markup::dedent(line, item.column));
    }
    result
}

/// The same where that reads otherwise: leading tabs become spaces, and lines that continue a paragraph are
/// indented so far that they can't begin anything.
fn forced_to_margin(block: &str, item: &Item<'_>) -> String {
    let content = item.content_column - item.column;
    let first_end = markup::line_end(block, 0, block.len());
    let mut result = at_margin(&block[..first_end], item);
    for line in block[first_end..].split_inclusive('\n') {
        let bare = line.trim_start_matches([' ', '\t']);
        let column = markup::columns(&line[..line.len() - bare.len()]);
        let column = if column < item.content_column {
            content + 4
        } else {
            column - item.column
        };
        if !bare.trim().is_empty() {
            result.push_str(&" ".repeat(column));
        }
        result.push_str(bare);
    }
    result
}

/// Returns true if the first non-blank line from `at` begins in the first column. The end of the text counts, too.
fn is_at_margin(text: &str, at: usize) -> bool {
    let rest = &text[at..];
    let filled = rest.trim_start_matches(['\n', '\r', ' ', '\t', '\u{b}', '\u{c}']);
    let blanks = &rest[..rest.len() - filled.len()];
    filled.is_empty() || blanks.is_empty() || blanks.ends_with('\n')
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::new_item::{NewItem, render};
    use crate::states::{StateKeys, States};

    fn id(text: &str) -> TaskId {
        text.parse().expect("a test's ID is one")
    }

    /// Returns the text after the item with this title got the status, and checks that it reads so.
    fn changed(text: &str, title: &str, status: Status) -> String {
        let (document, _) = parse(text);
        let item = document
            .items()
            .iter()
            .find(|item| document.title(item) == title)
            .expect("the row has this item");
        let result = apply(
            text,
            &document.change(
                item,
                &Patch {
                    status: Some(status),
                    ..Patch::default()
                },
            ),
        );
        let (new, _) = parse(&result);
        let item = new
            .items()
            .iter()
            .find(|item| new.title(item) == title)
            .expect("the item is still there");
        assert_eq!(item.status, status, "{result:?}");
        result
    }

    #[test]
    fn a_block_moves_to_the_end_of_its_lane_and_all_else_stays() {
        use Status::{Cancelled, Completed, Dead, InProgress, Pending, Reviewing, Waiting};
        let rows = [
            (
                "---\nid: x\n---\n\n## Todo\n\n- [ ] a\n  Text.\n- [ ] b\n\n## Doing\n\n- [ ] c\n\n## Done\n",
                "a",
                InProgress,
                "---\nid: x\n---\n\n## Todo\n\n- [ ] b\n\n## Doing\n\n- [ ] c\n- [ ] a\n  Text.\n\n## Done\n",
            ),
            // An empty lane looks the same before and after.
            (
                "## Todo\n\n- [ ] a\n\n## In Review\n\n## Done\n",
                "a",
                Reviewing,
                "## Todo\n\n## In Review\n\n- [ ] a (status: reviewing)\n\n## Done\n",
            ),
            (
                "## Todo\n\n## In Review\n\n- [ ] a (status: reviewing)\n\n## Done\n",
                "a",
                Pending,
                "## Todo\n\n- [ ] a\n\n## In Review\n\n## Done\n",
            ),
            // There is no lane for it.
            (
                "## Todo\n\n- [ ] a\n\n## Done\n",
                "a",
                Dead,
                "## Todo\n\n- [ ] a (status: dead)\n\n## Done\n",
            ),
            (
                "# Todo\n# Doing\n- [ ] a\n# Done\n",
                "a",
                Dead,
                "# Todo\n\n- [ ] a (status: dead)\n\n# Doing\n# Done\n",
            ),
            (
                "# Todo\n# Doing\n- [ ] a\n# Done\n",
                "a",
                Waiting,
                "# Todo\n# Doing\n- [ ] a (status: waiting)\n# Done\n",
            ),
            // In place: no lanes.
            ("- [ ] a\n- [ ] b", "a", Completed, "- [x] a\n- [ ] b"),
            ("- [X] a  \r\n", "a", Pending, "- [ ] a  \r\n"),
            (
                "- [ ] a\n",
                "a",
                Cancelled,
                "- [x] ~~a~~ (status: cancelled)\n",
            ),
            (
                "- [x] T-1: ~~a~~\n  (status: cancelled)\n",
                "a",
                Pending,
                "- [ ] T-1: a\n",
            ),
            (
                "- [x] ~~a~~ (status: cancelled)\n",
                "a",
                Completed,
                "- [x] a\n",
            ),
            (
                "- [x] T-1: ~~a (role: b)~~\n  (status: cancelled)\n",
                "a (role: b)",
                Pending,
                "- [ ] T-1: a (role: b) (status: null)\n",
            ),
            (
                "- [ ] a~b\n",
                "a~b",
                Cancelled,
                "- [x] ~~a~b~~ (status: cancelled)\n",
            ),
            (
                "- [ ] a~~b\n",
                "a~~b",
                Cancelled,
                "- [x] a~~b (status: cancelled)\n",
            ),
            (
                "- [ ] a (status: waiting, x: y)\n",
                "a",
                Pending,
                "- [ ] a (status: null, x: y)\n",
            ),
            (
                "1. [ ] a\n\n   text",
                "a",
                InProgress,
                "1. [ ] a (status: in_progress)\n\n   text",
            ),
            // Last lines without an end, and Windows line ends.
            (
                "# Todo\n- [ ] a\n# Done",
                "a",
                Completed,
                "# Todo\n# Done\n\n- [x] a",
            ),
            (
                "# Done\r\n# Todo\r\n- [ ] a",
                "a",
                Completed,
                "# Done\r\n\r\n- [x] a\r\n\r\n# Todo\r\n",
            ),
            (
                "# Todo\n- [ ] a\n# Done\n\n- [x] b",
                "a",
                Completed,
                "# Todo\n# Done\n\n- [x] b\n- [x] a",
            ),
            (
                "# Todo\n- [ ] a\n# Done\n- [x] b\n# X\n",
                "a",
                Completed,
                "# Todo\n# Done\n- [x] b\n- [x] a\n# X\n",
            ),
            // Items with blank lines between.
            (
                "# Todo\n\n- [ ] a\n\n- [ ] b\n\n# Done\n\n- [x] c\n\n- [x] d\n",
                "a",
                Completed,
                "# Todo\n\n- [ ] b\n\n# Done\n\n- [x] c\n\n- [x] d\n\n- [x] a\n",
            ),
            // Text under the lane's heading stays above its items; later text stays below.
            (
                "# Todo\n- [ ] a\n# Done\n**Complete**\n",
                "a",
                Completed,
                "# Todo\n# Done\n**Complete**\n\n- [x] a\n",
            ),
            (
                "# Todo\n- [ ] a\n# Done\n\n%% kanban:settings\n```\n{}\n```\n%%",
                "a",
                Completed,
                "# Todo\n# Done\n\n- [x] a\n\n%% kanban:settings\n```\n{}\n```\n%%",
            ),
            // Out of a group, with only as much less indentation as needed.
            (
                "# Todo\n- Backend\n  - [ ] a\n    text\n\n        code\n# Done\n",
                "a",
                Completed,
                "# Todo\n- Backend\n# Done\n\n- [x] a\n  text\n\n      code\n",
            ),
            (
                " - [ ] a\n# Done\n - [x] b\n",
                "a",
                Completed,
                "# Done\n - [x] b\n - [x] a\n",
            ),
            // A heading right behind a rule would be the archive.
            (
                "---\nkanban-plugin: board\n---\n\n## Dead\n\n***\n\n- [ ] a\n\n## Later\n\n- [ ] b\n\n## Todo\n",
                "a",
                Pending,
                "---\nkanban-plugin: board\n---\n\n## Dead\n\n***\n\n\n<!-- -->\n\n\n## Later\n\n- [ ] b\n\n## Todo\n\n<!-- -->\n\n- [ ] a\n",
            ),
            // A part stays where it is.
            (
                "# Todo\n- [ ] a\n  - [ ] T-2: b\n# Waiting\n",
                "b",
                Waiting,
                "# Todo\n- [ ] a\n  - [ ] T-2: b (status: waiting)\n# Waiting\n",
            ),
        ];
        for (text, title, status, expected) in rows {
            assert_eq!(changed(text, title, status), expected, "{text:?}");
        }
    }

    fn added(text: &str, status: Status) -> String {
        let (document, _) = parse(text);
        let new = NewItem {
            id: Some(id("T-9")),
            title: "new".into(),
            description: "text".into(),
            ..NewItem::default()
        };
        apply(text, &document.add(status, &render(&new)))
    }

    #[test]
    fn an_item_is_added_in_the_documents_own_manner() {
        let rows = [
            ("", Status::Pending, "- [ ] T-9: new\n  text\n"),
            (
                "\u{feff}",
                Status::Pending,
                "\u{feff}- [ ] T-9: new\n  text\n",
            ),
            (
                "---\nid: x\n---\n",
                Status::Pending,
                "---\nid: x\n---\n\n- [ ] T-9: new\n  text\n",
            ),
            ("prose", Status::Pending, "prose\n\n- [ ] T-9: new\n  text"),
            (
                "* [ ] a\r\n",
                Status::Waiting,
                "* [ ] a\r\n* [ ] T-9: new (status: waiting)\r\n  text\r\n",
            ),
            (
                "9. [x] a\n",
                Status::Pending,
                "9. [x] a\n10. [ ] T-9: new\n    text\n",
            ),
            (
                "- [ ] a\n\n- [ ] b\n\nprose\n",
                Status::Pending,
                "- [ ] a\n\n- [ ] b\n\n- [ ] T-9: new\n  text\n\nprose\n",
            ),
            (
                "# Todo\n# Done\n- [x] a\n",
                Status::Pending,
                "# Todo\n\n- [ ] T-9: new\n  text\n\n# Done\n- [x] a\n",
            ),
            (
                "# Todo\n# Done\n+ [x] a\n",
                Status::Completed,
                "# Todo\n# Done\n+ [x] a\n+ [x] T-9: new\n  text\n",
            ),
            (
                "# Todo\n# Done\n",
                Status::Draft,
                "# Todo\n\n- [ ] T-9: new (status: draft)\n  text\n\n# Done\n",
            ),
            (
                "# Done\n- [x] a\n",
                Status::Pending,
                "# Done\n- [x] a\n- [ ] T-9: new (status: pending)\n  text\n",
            ),
            // Where the end of the document is swallowed, its beginning isn't.
            (
                "```\nopen\n",
                Status::Pending,
                "- [ ] T-9: new\n  text\n\n```\nopen\n",
            ),
        ];
        for (text, status, expected) in rows {
            let result = added(text, status);
            assert_eq!(result, expected, "{text:?}");
            let (document, _) = parse(&result);
            let item = document.find(&id("T-9")).expect("it was added");
            assert_eq!(item.status, status, "{result:?}");
        }
    }

    #[test]
    fn what_is_remembered_of_others_keeps_no_item_from_its_place() {
        let text = "# List\n\n1. [ ] T-1: a\n   `b`; c.\n";
        let (plain, _) = parse(text);
        let mut states = States::default();
        let dead = StateKeys::of(&State::from(Status::Dead));
        states.set("T-1".parse().expect("an ID"), dead);
        let document = parse(text).0.with_states(Arc::new(states));
        let added = |document: &Document<'_>| document.add(Status::Pending, "- [ ] T-2: d\n");
        assert_eq!(added(&document), added(&plain));
        assert_eq!(
            apply(text, &added(&plain)),
            format!("{text}2. [ ] T-2: d\n")
        );
    }
}
