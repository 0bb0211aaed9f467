//! Where the items of a plain document stand, apart from its text: kept by whoever opens the same text again.

use std::cell::OnceCell;
use std::sync::Arc;

use super::{Document, ItemList, ItemPlace, Lane, Tail, Under};
use crate::front::Front;
use crate::lane::{self, LanePlace, LaneSet, Said};
use crate::task::Status;

/// In a plain document, the place of what stands between a box's brackets, from its bullet on.
pub(super) const BOX: usize = 3;

/// All that is found out about a plain document before an item of it is read, as spans of its text. Cheap to clone.
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
    /// The document of `text`, which must be the one that this is the outline of.
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
        let (
            counted,
            own,
            sections,
            names,
            heads,
            says_before,
            order,
            ids,
            searches,
            states,
            remembered,
        ) = Default::default();
        Document {
            text,
            body,
            front,
            lanes,
            lane_set,
            items,
            tail,
            counted,
            own,
            sections,
            names,
            heads,
            says_before,
            order,
            ids,
            searches,
            states,
            remembered,
        }
    }
}

impl Document<'_> {
    /// `None` where the document is not plain, or its items are read.
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

    /// The status of an item without keys.
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
