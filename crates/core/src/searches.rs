//! When to search a text, and when to read it.

use std::cell::Cell;

/// To search a text for one ID costs less than to read all that are in it; to search for one after the other costs far more.
#[derive(Clone, Debug, Default)]
pub struct Searches(Cell<u32>);

impl Searches {
    /// Another search is worth while.
    pub fn are_few(&self) -> bool {
        self.0.replace(self.0.get().saturating_add(1)) < 16
    }
}
