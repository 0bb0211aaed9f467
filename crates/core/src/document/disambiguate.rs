//! Distinguishes items of equal titles by their context.

use std::collections::HashMap;
use std::ops::Range;

use super::Document;
use super::context::Walk;
use crate::markup;

/// Maximum characters of a heading or list item that distinguishes items.
const LONGEST: usize = 40;

/// Separator between the context and a title.
pub const ABOVE: &str = " › ";

impl Document<'_> {
    /// Returns, for each item's index that shares its title, a prefix such as `Cart › `: the nearest heading
    /// or list item above in which such items differ. Items in the same context get none.
    pub fn apart(&self) -> HashMap<usize, String> {
        let mut alike: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, item) in self.items().iter().enumerate() {
            alike.entry(self.title(item)).or_default().push(at);
        }
        let mut groups: Vec<Vec<usize>> = alike
            .into_values()
            .filter(|group| group.len() > 1)
            .collect();
        let mut names = self.names_above(groups.concat());
        for group in &groups {
            // Context that they share distinguishes none.
            let above = |at: &usize| names[at].iter().rev();
            let shared = |at| {
                above(&group[0])
                    .zip(above(at))
                    .take_while(|(one, other)| one == other)
                    .count()
            };
            let shared = group.iter().map(shared).min().unwrap_or_default();
            for at in group {
                let own = names.get_mut(at).expect("it was asked for");
                own.truncate(own.len() - shared);
            }
        }
        let (most, mut apart) = (
            names.values().map(Vec::len).max().unwrap_or_default(),
            HashMap::<usize, String>::new(),
        );
        for level in 0..most {
            let mut parts = Vec::new();
            for group in groups {
                let mut named: HashMap<Option<&String>, Vec<usize>> = HashMap::new();
                group
                    .into_iter()
                    .for_each(|at| named.entry(names[&at].get(level)).or_default().push(at));
                for (name, part) in named.iter().filter(|_| named.len() > 1) {
                    let told = name
                        .iter()
                        .flat_map(|name| part.iter().map(move |at| (*at, name)));
                    told.for_each(|(at, name)| {
                        apart
                            .entry(at)
                            .or_default()
                            .insert_str(0, &format!("{name}{ABOVE}"));
                    });
                }
                parts.extend(named.into_values().filter(|part| part.len() > 1));
            }
            groups = parts;
        }
        apart
    }

    /// Returns the texts of headings and list items above the items at these indices, innermost first. Lanes
    /// are left out.
    pub(crate) fn names_above(&self, mut indices: Vec<usize>) -> HashMap<usize, Vec<String>> {
        if indices.is_empty() {
            return HashMap::new();
        }
        indices.sort_unstable();
        let source = markup::without_comments(self.text.into());
        let mut walk = Walk::through(self, &source);
        let names = |at: usize| {
            let item = self.item(at);
            let above = walk.to(item.box_char);
            let bullets = above
                .bullets
                .iter()
                .filter(|bullet| bullet.start < item.span.start);
            let bullets = bullets.map(|bullet| {
                let line = markup::line_start(&source, self.body, bullet.start);
                let item = self
                    .items()
                    .binary_search_by_key(&line, |item| item.span.start);
                item.map_or_else(
                    |_| bullet_text(&source, bullet),
                    |at| self.title(&self.items()[at]),
                )
            });
            let is_lane = |heading: &Range<usize>| {
                self.lanes()
                    .iter()
                    .any(|lane| lane.heading.contains(&heading.start))
            };
            let headings = above.headings().filter(|heading| !is_lane(heading));
            let headings = headings.map(|heading| markup::heading_text(&source, heading.clone()));
            let names: Vec<&str> = headings
                .chain(bullets)
                .filter(|name| !name.is_empty())
                .collect();
            (
                at,
                names
                    .into_iter()
                    .rev()
                    .map(|name| name.chars().take(LONGEST).collect())
                    .collect(),
            )
        };
        indices.into_iter().map(names).collect()
    }
}

/// Returns the first line of a list item, without its marker.
fn bullet_text<'s>(text: &'s str, bullet: &Range<usize>) -> &'s str {
    let start = markup::bullet_end(text, bullet.start)
        .unwrap_or(bullet.start)
        .min(bullet.end);
    text[start..markup::line_end(text, start, bullet.end)].trim()
}

#[cfg(test)]
mod tests {
    use super::super::{open, parse};

    #[test]
    fn items_of_one_title_are_told_apart_by_the_nearest_above_in_which_they_differ() {
        let rows: [(&str, &[&str]); 10] = [
            (
                "# A\n- [ ] x\n# B\n- [ ] x\n- [ ] y\n",
                &["A › ", "B › ", ""],
            ),
            // A nearer heading that is the same for all does not distinguish them.
            (
                "# A\n## Web\n- [ ] x\n# B\n## Web\n- [ ] x\n",
                &["A › ", "B › "],
            ),
            // Where a name tells only some apart, those above tell the rest.
            (
                "# A\n- Web\n  - [ ] x\n- API\n  - [ ] x\n# B\n* Web\n  - [x] x\n",
                &["A › Web › ", "API › ", "B › Web › "],
            ),
            ("- [ ] x\n\nOwn\n===\n1. [ ] x\n", &["", "Own › "]),
            ("# A\n- [ ] x\n- [ ] x\n", &["", ""]),
            (
                "# Shop\n- [ ] x\n## Cart\n- [ ] x\n## Login\n- [ ] x\n",
                &["", "Cart › ", "Login › "],
            ),
            (
                "- [ ] T-1: Web (priority: 1)\n  - [ ] T-2: x\n- [ ] T-3: API\n  - [ ] T-4: x\n",
                &["", "Web › ", "", "API › "],
            ),
            // The lanes of a board say how far it is.
            ("## Pending\n- [ ] x\n## Completed\n- [x] x\n", &["", ""]),
            (
                "## Pending\n### A\n- [ ] x\n### B\n- [ ] x\n## Completed\n",
                &["A › ", "B › "],
            ),
            (
                "- - [ ] x\n- Web %%own%%\n  words\n  - [ ] x\n",
                &["", "Web %%   %% › "],
            ),
        ];
        for (text, expected) in rows {
            for document in [parse(text).0, open(text)] {
                let apart = document.apart();
                let told: Vec<&str> = (0..document.count())
                    .map(|at| apart.get(&at).map_or("", String::as_str))
                    .collect();
                assert_eq!(told, expected, "{text}");
            }
        }
    }
}
