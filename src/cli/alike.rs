//! Of many lines that say the same of one thing each, people see the first few and how many more there are.

use std::collections::BTreeMap;

use crate::board::task::TaskId;

/// So many are shown.
const FEW: usize = 10;

/// What was said so far, and how often.
#[derive(Debug, Default)]
pub struct Alike(BTreeMap<String, usize>);

impl Alike {
    /// Returns whether one more of which this is said is to be shown; `own` is what it goes by itself.
    pub fn shows(&mut self, said: &str, own: Option<&TaskId>) -> bool {
        let said = own.map_or_else(|| said.to_owned(), |own| said.replace(own.as_str(), "ID"));
        let count = self.0.entry(said).or_default();
        *count += 1;
        *count <= FEW
    }

    /// In words, what was left out.
    pub fn left_out(&self) -> impl Iterator<Item = String> {
        let many = self.0.iter().filter(|(_, count)| **count > FEW);
        many.map(|(said, count)| format!("… and {} more: {said}", count - FEW))
    }
}
