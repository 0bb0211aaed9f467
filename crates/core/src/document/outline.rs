//! The places of a plain document's items, kept apart from its text for reopening the same text.

use std::cell::OnceCell;
use std::sync::Arc;

use super::{Document, ItemList, ItemPlace, Lane, Tail, Under};
use crate::front::Front;
use crate::lane::{self, LanePlace, LaneSet, Said};
use crate::task::Status;

/// Offset from the bullet to the mark in a box of a plain document.
pub(super) const BOX: usize = 3;

/// Everything known of a plain document before an item is read, as spans of its text. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Outline {
    pub(super) body: usize,
    pub(super) front: Front,
    pub(super) lanes: Vec<Lane>,
    pub(super) lane_set: LaneSet,
    pub(super) tail: Option<Tail>,
    pub(super) places: Arc<[ItemPlace]>,
}

impl Outline {
    /// Returns the document of `text`, which must be the text of this outline.
    pub fn open<'t>(&self, text: &'t str) -> Document<'t> {
        let Outline {
            body,
            front,
            lanes,
            lane_set,
            tail,
            places,
        } = self.clone();
        let read = places.iter().map(|_| OnceCell::new()).collect();
        let items = ItemList::Outlined {
            places,
            read,
            all: OnceCell::new(),
        };
        Document {
            text,
            body,
            front,
            lanes,
            lane_set,
            items,
            tail,
            ..Document::default()
        }
    }
}

impl Document<'_> {
    /// Returns the outline; `None` if the document is not plain, or its items are read.
    pub fn outline(&self) -> Option<Outline> {
        let ItemList::Outlined { places, .. } = &self.items else {
            return None;
        };
        let (front, lanes, places) = (self.front.clone(), self.lanes.clone(), places.clone());
        Some(Outline {
            body: self.body,
            front,
            lanes,
            lane_set: self.lane_set,
            tail: self.tail,
            places,
        })
    }
}

impl ItemPlace {
    pub(super) fn is_ticked(&self, text: &str) -> bool {
        matches!(text.as_bytes()[self.span.start + BOX], b'x' | b'X')
    }

    /// Returns the status of an item without keys.
    pub(super) fn bare_status(&self, text: &str, lanes: &[Lane], lane_set: LaneSet) -> Status {
        let lane = match self.under {
            Some(Under::Lane(lane)) => LanePlace::Lane(lanes[lane].kind),
            _ => LanePlace::Loose,
        };
        lane::status(
            lane,
            Said {
                ticked: self.is_ticked(text),
                status: None,
            },
            lane_set,
        )
    }
}
