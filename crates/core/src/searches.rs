//! Decides between searching a text and reading it.

use std::cell::Cell;

/// Counts searches: one search for an ID is cheaper than reading all IDs of a text, but many are far more expensive.
#[derive(Clone, Debug, Default)]
pub struct Searches(Cell<u32>);

impl Searches {
    /// Returns true if another search is worthwhile.
    pub fn are_few(&self) -> bool {
        self.0.replace(self.0.get().saturating_add(1)) < 16
    }
}
