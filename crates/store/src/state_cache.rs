//! The states of items as this process last read or wrote them.

use std::sync::{Arc, Mutex, PoisonError};

use tavern_core::states::States;

/// The cached states.
#[derive(Debug, Default)]
pub(super) struct LastStates(Mutex<KnownStates>);

/// The states as of an event.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownStates {
    /// The last event included; `None`: nothing was read yet.
    pub(super) seq: Option<u64>,
    /// The last event in the snapshot file.
    pub(super) in_snapshot: u64,
    pub(super) states: Arc<States>,
}

impl LastStates {
    pub(super) fn get(&self) -> KnownStates {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn put(&self, known: KnownStates) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}
