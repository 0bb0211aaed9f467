//! Reads headings and the text right under them, which decide the lane of items beneath.

use std::ops::Range;

use pulldown_cmark::HeadingLevel;

use super::Reader;
use crate::document::sections::Other;
use crate::document::{Lane, Under};
use crate::lane::{LaneKind, is_complete_mark};
use crate::markup;

impl Reader<'_, '_> {
    pub(super) fn plain_heading(&mut self, level: u8, span: Range<usize>) {
        self.heading(
            HeadingLevel::try_from(usize::from(level)).expect("one to six hashes"),
            span,
        );
    }

    pub(super) fn heading(&mut self, level: HeadingLevel, span: Range<usize>) {
        if !self.is_top_level() {
            return;
        }
        self.end_lead();
        self.lists = 0;
        // On a board of Obsidian's Kanban each heading is a column, at any level.
        while self
            .headings
            .last()
            .is_some_and(|(above, _)| *above >= level || self.front.is_kanban)
        {
            if let Some((_, Under::Lane(lane))) = self.headings.pop() {
                self.lanes[lane].body.end = span.start;
            }
        }
        let end = markup::block_end(self.source, span.start, span.end);
        let name = markup::heading_text(self.text, span.clone());
        self.headed.retain(|(above, _)| *above < level);
        let (around, headed) = (self.headed(), self.headed().by(name, span.start));
        self.headed.push((level, headed));
        if let Some(what) = headed.boxes.filter(|_| headed.boxes != around.boxes) {
            self.no_items.push((span.start..end, what, 0));
        }
        let is_ruled_off =
            || self.front.is_kanban && self.text[self.rule_end..span.start].trim().is_empty();
        let named = self
            .front
            .lane_named(name)
            .or_else(|| is_ruled_off().then_some(LaneKind::Archive));
        let named = named.filter(|kind| self.names_lanes || *kind == LaneKind::Archive);
        let under = match (named, self.headings.last()) {
            (Some(kind), _) => self.lane(kind, span.start..end),
            (None, Some((_, under @ Under::Lane(_)))) => *under,
            (None, _) => {
                let near = LaneKind::nearest(name);
                self.others.push(Other {
                    heading: span.start..end,
                    items: 0,
                    near,
                });
                Under::Other {
                    number: self.others.len() - 1,
                    is_slip: near.is_some(),
                }
            }
        };
        self.headings.push((level, under));
    }

    pub(super) fn paragraph(&mut self, span: Range<usize>) {
        if !self.is_top_level() {
            return;
        }
        // `%%` opens the settings at the end of an Obsidian board.
        if self.text[span.clone()].starts_with("%%") {
            return self.end_lead();
        }
        self.warn_of_missing_bullets(span.clone(), usize::MAX);
        self.table = self
            .table
            .or_else(|| markup::table(self.source, span.clone()));
        if self.front.is_kanban && is_complete_mark(self.text[span.clone()].trim()) {
            self.complete(span.start);
        }
        if let Some((_, Under::Lane(lane))) = self.headings.last() {
            let end = markup::block_end(self.source, span.start, span.end);
            let lane = &mut self.lanes[*lane];
            if !lane.has_led {
                lane.lead_end = end;
            }
        }
    }

    /// Handles a mark at `at`, right under a heading, that its items are done.
    fn complete(&mut self, at: usize) {
        let Some((_, under)) = self.headings.last().copied() else {
            return;
        };
        let heading = match under {
            Under::Lane(lane) => self.lanes[lane].heading.clone(),
            Under::Other { number, .. } => self.others[number].heading.clone(),
        };
        if !self.text[heading.end..at].trim().is_empty() {
            return;
        }
        let under = match under {
            Under::Lane(lane) if self.lanes[lane].kind == LaneKind::Archive => return,
            Under::Lane(lane) => {
                self.lanes[lane].kind = LaneKind::Completed;
                return;
            }
            Under::Other { number, .. } => {
                self.others.truncate(number);
                self.lane(LaneKind::Completed, heading)
            }
        };
        self.headings.last_mut().expect("it is under one").1 = under;
    }

    fn lane(&mut self, kind: LaneKind, heading: Range<usize>) -> Under {
        self.lanes.push(Lane {
            kind,
            body: heading.end..self.text.len(),
            lead_end: heading.end,
            has_led: false,
            tail: None,
            heading,
        });
        Under::Lane(self.lanes.len() - 1)
    }

    pub(super) fn rule(&mut self, end: usize) {
        self.end_lead();
        if self.is_top_level() {
            self.rule_end = end;
        }
    }

    /// Ends the introduction of the lane: something other than a paragraph begins.
    pub(super) fn end_lead(&mut self) {
        if self.is_top_level()
            && let Some((_, Under::Lane(lane))) = self.headings.last()
        {
            self.lanes[*lane].has_led = true;
        }
    }
}
