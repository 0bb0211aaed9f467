//! Shortens lists of similar messages about single items: shows the first few and counts the rest.

use std::collections::BTreeMap;

use tavern_core::task::TaskId;

/// The number of similar messages that are shown.
const FEW: usize = 10;

/// The messages so far, grouped by their text without IDs.
#[derive(Debug, Default)]
pub struct Alike(BTreeMap<String, AlikeGroup>);

#[derive(Debug, Default)]
struct AlikeGroup {
    count: usize,
    /// The message common to all that were left out; `None` if they differ.
    left_out: Option<String>,
}

impl Alike {
    /// Returns true if another message like `text` should be shown. `own` is the item that it is about.
    pub fn shows(&mut self, text: &str, own: Option<&TaskId>) -> bool {
        let text = own.map_or_else(|| text.to_owned(), |own| text.replace(own.as_str(), "ID"));
        let group = self.0.entry(without_ids(&text)).or_default();
        group.count += 1;
        let is_first = group.count == FEW + 1;
        group.left_out =
            Some(text).filter(|text| is_first || group.left_out.as_ref() == Some(text));
        group.count <= FEW
    }

    /// Returns a summary line for each group with messages left out.
    pub fn left_out(&self) -> impl Iterator<Item = String> {
        let many = self.0.iter().filter(|(_, group)| group.count > FEW);
        many.map(|(text, AlikeGroup { count, left_out })| {
            format!(
                "… and {} more: {}",
                count - FEW,
                left_out.as_ref().unwrap_or(text)
            )
        })
    }
}

/// Replaces each ID with `ID`.
fn without_ids(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let words = text.split_inclusive(|c| !is_part(c)).map(|word| {
        let name = word.trim_end_matches(|c| !is_part(c) || c == '.');
        if name.parse::<TaskId>().is_ok() {
            word.replacen(name, "ID", 1)
        } else {
            word.to_owned()
        }
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_ids_alone_is_alike_and_named_where_it_is_the_same() {
        let left_out = |texts: &[&str]| {
            let mut alike = Alike::default();
            let shown = texts.iter().filter(|text| alike.shows(text, None)).count();
            (shown, alike.left_out().collect::<Vec<_>>())
        };
        let same = ["waits for T-1"; 12];
        assert_eq!(
            left_out(&same),
            (10, vec!["… and 2 more: waits for T-1".to_owned()])
        );
        let chain: Vec<String> = (1..14)
            .map(|number| format!("waits for T-{number}."))
            .collect();
        let chain: Vec<&str> = chain.iter().map(String::as_str).collect();
        assert_eq!(
            left_out(&chain),
            (10, vec!["… and 3 more: waits for ID.".to_owned()])
        );
    }
}
