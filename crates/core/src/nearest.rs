//! Distance of two texts of a queue: the number of different lines and words, each with its lane and item,
//! and of different boxes, IDs and keys. It decides on which earlier text a save is based. A line that
//! resembles another one in its place counts as that line, corrected or continued.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::ops::Range;

use crate::markup::{bullet_end, leading_id};
use crate::merge::{ALIKE, likeness};
use crate::metadata::{Owner, find_parenthesis};

type Hasher = BuildHasherDefault<DefaultHasher>;

/// Compares a saved text with one text after the other, each derived from the one before.
#[derive(Debug)]
pub struct Nearness {
    /// For each word, box, ID or key, its excess in the saved text.
    more: HashMap<u64, i64, Hasher>,
    /// Lines with an excess on one side.
    lines: BTreeMap<u64, Line>,
    /// Items, by lane and name, with an excess of their own or of their keys.
    items: HashMap<u64, ItemKeys, Hasher>,
    /// Sum of all excesses.
    apart: u64,
    other: String,
}

/// The excess of an item in the saved text, and the sum of those of its keys.
#[derive(Debug, Default, PartialEq)]
struct ItemKeys {
    more: i64,
    keys: u64,
}

/// A line with an excess on one side.
#[derive(Debug)]
struct Line {
    /// Hash of its lane, and the ID of its item.
    place: u64,
    words: Vec<String>,
    /// Whether it begins an item with an ID.
    is_named: bool,
    /// Whether it begins an item without an ID. The item's box is counted by its first word.
    is_nameless: bool,
    /// Excess in the saved text.
    more: i64,
}

/// Maximum pairs of lines that are compared; with more, none are.
const MOST_COMPARED: usize = 400;

impl Nearness {
    /// Compares `saved` with an empty text.
    pub fn of(saved: &str) -> Nearness {
        let mut nearness = Nearness {
            more: HashMap::default(),
            lines: BTreeMap::new(),
            items: HashMap::default(),
            apart: 0,
            other: String::new(),
        };
        nearness.count(saved, 0..saved.len(), 1);
        nearness
    }

    /// Returns the other text.
    pub fn other(&self) -> &str {
        &self.other
    }

    /// Returns the number of different lines, words, boxes, IDs and keys. Case, punctuation, blanks and line
    /// ends don't count.
    pub fn distance(&self) -> u64 {
        let once = self.lines.values().filter(|line| line.more.abs() == 1);
        let (saved, mut others): (Vec<&Line>, Vec<&Line>) = once.partition(|line| line.more > 0);
        if saved.len() * others.len() > MOST_COMPARED {
            return self.apart;
        }
        let mut alike = 0;
        for line in saved {
            if let Some(at) = others.iter().position(|other| line.is_like(other)) {
                let other = others.swap_remove(at);
                alike += 1 + line.boxes_apart(other) + line.replaced(other);
            }
        }
        // An item with other keys is nearer than none, however many differ.
        let in_both = self.items.values().filter(|item| item.more == 0);
        let more: u64 = in_both.map(|item| item.keys.saturating_sub(1)).sum();
        self.apart.saturating_sub(alike + more)
    }

    /// Replaces `span` of the other text by `text`. Only the touched lines are read, unless one of them is a heading.
    pub fn replace(&mut self, span: Range<usize>, text: &str) {
        let other = std::mem::take(&mut self.other);
        let start = other[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let end = line_end(&other, span.end);
        let mut changed = other.clone();
        changed.replace_range(span.clone(), text);
        let new_end = end + text.len() - span.len();
        let has_heading = |part: &str| part.lines().any(is_heading);
        let (old, new) = if has_heading(&other[start..end]) || has_heading(&changed[start..new_end])
        {
            (start..other.len(), start..changed.len())
        } else {
            (start..end, start..new_end)
        };
        self.count(&other, old, 1);
        self.count(&changed, new, -1);
        self.other = changed;
    }

    /// Adds `times` to the excess of the words of a part of `text`.
    fn count(&mut self, text: &str, span: Range<usize>, times: i64) {
        let mut before = text[..span.start].lines().rev();
        let mut lane = before.find(|line| is_heading(line)).map(str::trim);
        for line in text[span].lines() {
            if is_heading(line) {
                lane = Some(line.trim());
            }
            let line = line.trim();
            let mut place = (lane, "", false);
            let (mut is_named, mut is_nameless) = (false, false);
            let words = match item(line) {
                Some(ItemLine {
                    mark,
                    id,
                    title,
                    keys,
                }) => {
                    (is_named, is_nameless) = (!id.is_empty(), id.is_empty());
                    place = (lane, id, true);
                    // The rest of its title may be continued.
                    let name = words_of(title).next().filter(|_| is_nameless);
                    let name = name.unwrap_or_else(|| id.to_owned());
                    self.add(&(lane, "box", &name, mark), times);
                    if !is_nameless {
                        self.add(&(lane, "id", id), times);
                    }
                    let before = self.apart;
                    for word in words_of(keys) {
                        self.add(&(lane, "key", &name, word), times);
                    }
                    let item = self.items.entry(hash(&(lane, &name))).or_default();
                    item.more += times;
                    item.keys = (item.keys + self.apart) - before;
                    if *item == ItemKeys::default() {
                        self.items.remove(&hash(&(lane, &name)));
                    }
                    title
                }
                None => line,
            };
            let words: Vec<String> = words_of(words).collect();
            if words.is_empty() {
                continue;
            }
            let place = hash(&place);
            for word in &words {
                self.add(&(place, word), times);
            }
            let (line, more) = self.add(&(place, "line", &words), times);
            if more == 0 {
                self.lines.remove(&line);
            } else {
                let found = Line {
                    place,
                    words,
                    is_named,
                    is_nameless,
                    more,
                };
                self.lines.insert(line, found);
            }
        }
    }

    /// Counts a part, and returns its hash and excess.
    fn add(&mut self, part: &impl Hash, times: i64) -> (u64, i64) {
        let part = hash(part);
        let more = self.more.entry(part).or_default();
        self.apart -= more.unsigned_abs();
        *more += times;
        self.apart += more.unsigned_abs();
        (part, *more)
    }
}

impl Line {
    fn is_like(&self, other: &Line) -> bool {
        let are_alike = || likeness(&self.words.join(" "), &other.words.join(" ")) >= ALIKE;
        self.place == other.place && (self.is_named || are_alike())
    }

    /// Returns the number of replaced words of an item with an ID: each counts once, not twice.
    fn replaced(&self, other: &Line) -> u64 {
        if !self.is_named {
            return 0;
        }
        let mut left: Vec<&String> = other.words.iter().collect();
        let is_new = |word: &&String| match left.iter().position(|other| other == word) {
            Some(at) => {
                left.swap_remove(at);
                false
            }
            None => true,
        };
        let new = self.words.iter().filter(is_new).count();
        new.min(left.len()) as u64
    }

    /// Returns the excess of the two boxes, counted as if they belonged to two items.
    fn boxes_apart(&self, other: &Line) -> u64 {
        let is_apart = self.is_nameless && self.words.first() != other.words.first();
        if is_apart { 2 } else { 0 }
    }
}

fn hash(part: &impl Hash) -> u64 {
    Hasher::default().hash_one(part)
}

/// Returns the words of a text in lower case, without punctuation.
pub fn words_of(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The first line of an item.
struct ItemLine<'l> {
    mark: &'l str,
    id: &'l str,
    title: &'l str,
    keys: &'l str,
}

fn item(line: &str) -> Option<ItemLine<'_>> {
    let rest = line[bullet_end(line, 0)?..].trim_start();
    let (mark, words) = rest.strip_prefix('[')?.split_once(']')?;
    if mark.len() > 1 {
        return None;
    }
    let words = words.trim_start();
    let (id, length) = leading_id(words);
    let (id, words) = words.split_at(if id.is_some() { length } else { 0 });
    let keys = find_parenthesis(words, Owner::State).ok().flatten();
    let (title, keys) = words.split_at(keys.map_or(words.len(), |keys| keys.start));
    Some(ItemLine {
        mark,
        id,
        title: title.trim(),
        keys,
    })
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

fn is_heading(line: &str) -> bool {
    line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    fn distance(one: &str, other: &str) -> u64 {
        let mut nearness = Nearness::of(one);
        nearness.replace(0..0, other);
        nearness.distance()
    }

    #[test]
    fn what_a_formatter_does_is_no_difference_and_a_lane_is() {
        let text = "## Pending\n\n- [ ] one\n  Words  here.\n\n## Completed\n";
        for (other, expected) in [
            (text, 0),
            (
                "## Pending\r\n* [ ]   one\r\n    Words here.\r\n\r\n## Completed",
                0,
            ),
            ("## Pending\n- [ ] one\n  Words there.\n## Completed\n", 3),
            ("## Pending\n- [ ] one\n  Another line.\n## Completed\n", 6),
            ("## Pending\n- [ ] one\n## Completed\n", 3),
            ("## Pending\n- [x] one\n  Words here.\n## Completed\n", 2),
            (
                "## Pending\n- [ ] one\n  Words here.\n- [ ] two\n## Completed\n",
                3,
            ),
            ("## Pending\n## Completed\n- [ ] one\n  Words here.\n", 12),
        ] {
            assert_eq!(
                [distance(text, other), distance(other, text)],
                [expected; 2],
                "{other}"
            );
        }
    }

    #[test]
    fn a_correction_is_nearer_to_what_it_corrects_and_another_line_is_not() {
        let text = |lines: &str| format!("## Pending\n\n- [ ] T-1: one\n{lines}");
        for (typed, saved, is_correction) in [
            ("- [ ] Wri\n", "- [ ] Write doc\n", true),
            ("- [ ] Wrte docs\n", "- [ ] Write docs\n", true),
            ("- [ ] Mine\n", "- [ ] Mine, and so on\n", true),
            (
                "- [ ] T-6: Typed 7 a7 b7 c7\n",
                "- [ ] T-6: Typed 8 a8 b8 c8\n",
                true,
            ),
            (
                "1. [ ] T-6: Typed 7 a7 b7 c7\n",
                "1. [ ] T-6: Typed 8 a8 b8 c8\n",
                true,
            ),
            (
                "- [ ] Other thing\n",
                "- [ ] Please do the other thing\n",
                true,
            ),
            ("  Ask Ana first.\n", "  Ask Anna first.\n", true),
            (
                "  Do it.\n",
                "  Do it, and that, and this as well, on the second of May\n",
                true,
            ),
            (
                "- [ ] Email it (after: Say hi, done_when: ls)\n",
                "- [ ] Email it\n",
                true,
            ),
            ("  Another's.\n", "  Mine.\n", false),
            ("  Chapter 1.\n", "  Chapter 2.\n", false),
            (
                "- [ ] T-6: Write tests for logout\n",
                "- [ ] Write tests for login\n",
                false,
            ),
        ] {
            let [then, typed, saved] = ["", typed, saved].map(text);
            let is_nearer = distance(&saved, &typed) <= distance(&saved, &then);
            assert_eq!(is_nearer, is_correction, "{typed}{saved}");
        }
    }

    proptest! {
        #[test]
        fn a_text_that_is_changed_is_as_near_as_if_it_were_read_anew(
            saved in "([#ab -]{0,3}(- \\[ \\] [ab]{1,2})?\n){0,8}",
            texts in proptest::collection::vec(("([#ab -]{0,3}(- \\[ \\] [ab]{1,2})?\n){0,8}[ab]?", 0..19usize, 0..19usize), 1..6),
        ) {
            let mut nearness = Nearness::of(&saved);
            for (text, start, end) in texts {
                let length = nearness.other().len();
                let (start, end) = (start.min(length), (start + end).min(length));
                nearness.replace(start..end, &text);
                prop_assert_eq!(nearness.distance(), distance(&saved, nearness.other()));
            }
        }
    }
}
