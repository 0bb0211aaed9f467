//! Items by the words that people call them by where others wait for them: titles and headings of the same document.

use std::collections::HashMap;

use super::{Document, Item, ItemList, parse};
use crate::board::markup;

impl Document<'_> {
    /// What `item` waits for by other names than IDs, as indices; or the first of these names by which no item goes, or several do.
    pub fn named_by<'a>(&self, item: &'a Item<'_>) -> Result<Vec<usize>, &'a str> {
        let named = item.after_names.iter().map(|name| self.called_so(name).ok_or(&**name));
        Ok(named.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The one item with this title, or with these words before a colon in it; or all that stand under this heading.
    fn called_so(&self, name: &str) -> Option<&[usize]> {
        let names = self.names.get_or_init(|| match &self.items {
            ItemList::Read(items) => self.names_of(items),
            ItemList::Outlined { .. } => {
                let document = parse(self.text).0;
                document.names_of(document.items())
            }
        });
        names.get(&slug(name)).map(Vec::as_slice).filter(|items| !items.is_empty())
    }

    fn names_of(&self, items: &[Item<'_>]) -> HashMap<String, Vec<usize>> {
        let mut names: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            let title = self.title(item);
            let (whole, before) = (slug(title), title.split_once(':').map(|(before, _)| slug(before)));
            for name in before.filter(|before| *before != whole).into_iter().chain([whole]) {
                // Nobody knows which of two is meant.
                names.entry(name).and_modify(Vec::clear).or_insert_with(|| vec![index]);
            }
        }
        for (heading, items) in &self.sections {
            names.entry(slug(markup::heading_text(self.text, heading.clone()))).or_insert_with(|| items.clone());
        }
        names.remove("");
        names
    }
}

/// The letters and digits of a text, as links to headings have them.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_named_by_its_title_or_its_heading() {
        let text =
            "# Set-up\n- [ ] Add `.editorconfig`\n- [ ] ci: run it\n# Docs\n- [ ] same\n- [ ] Same!\n# CI\n- [ ] x\n";
        for (name, items) in [
            ("Add .editorconfig", Some(&[0][..])),
            ("add-editorconfig", Some(&[0])),
            ("ci", Some(&[1])),
            ("set-up", Some(&[0, 1])),
            ("Docs", Some(&[2, 3])),
            ("same", None),
            ("editorconfig", None),
            ("-", None),
        ] {
            assert_eq!(parse(text).0.called_so(name), items, "{name}");
            assert_eq!(super::super::open(text).called_so(name), items, "{name}");
        }
    }
}
