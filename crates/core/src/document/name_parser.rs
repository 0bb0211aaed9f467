//! Finds the items named in text about dependencies: `A-1, and A-2 (for x)`.

use super::Document;
use super::phrase::{bare, slug, without_targets};
use crate::task::TaskId;

/// Limits: words of a name among others, names stated by one item in a place, and bytes searched for them.
const MOST_WORDS: usize = 24;
const MOST_NAMES: usize = 100;
const LONGEST: usize = 8 << 10;

/// Words between names that name nothing.
const LINKS: [&str; 9] = [
    "also", "and", "both", "item", "items", "plus", "task", "tasks", "then",
];

/// The names found in a text.
#[derive(Default)]
pub(super) struct Named {
    /// Names of items, and text that looks like an ID, as written.
    pub names: Vec<String>,
    /// The first text that is neither a name nor a link between names.
    pub unknown: Option<String>,
    /// Whether they are meant as names: all are, or one of them is unmistakable or alone between commas.
    pub is_meant: bool,
    /// Whether the unknown text looks like a name of the document: `T-9` beside `T-1`.
    pub is_near: bool,
}

impl Named {
    /// Returns true if the text has only names.
    pub fn is_whole(&self) -> bool {
        self.unknown.is_none() && !self.names.is_empty()
    }
}

/// A word with its place.
struct Word<'w> {
    text: &'w str,
    at: usize,
    slug: String,
    /// Number of parentheses around it.
    depth: usize,
    /// Whether a comma or the like is before it.
    is_first: bool,
    is_link: bool,
}

impl Document<'_> {
    /// Returns the names in all `values`.
    pub(super) fn read_names(&self, values: &[&str]) -> Named {
        let mut named = Named::default();
        for value in values.iter().map(|value| bare(value)) {
            if value.len() > LONGEST || named.names.len() > MOST_NAMES {
                named.unknown = Some(value[..value.floor_char_boundary(40)].to_owned());
            } else if self.called_so(value).is_some() {
                named.names.push(value.to_owned());
                named.is_meant = true;
            } else {
                self.read_words(&without_targets(value), &mut named);
            }
        }
        named.is_meant |= named.is_whole();
        named
    }

    fn read_words(&self, value: &str, named: &mut Named) {
        let inner = value
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'));
        let value = inner
            .filter(|inner| !inner.contains(['(', ')']))
            .unwrap_or(value);
        let words = split(value);
        let begins = |at: usize| {
            words
                .get(at)
                .is_none_or(|word| word.is_first || word.is_link)
        };
        let (mut at, mut before_parenthesis) = (0, 0);
        while let Some(word) = words.get(at) {
            if at == 0 || words[at - 1].depth == 0 {
                before_parenthesis = named.names.len();
            }
            let count = self.name_at(&words[at..]);
            let is_id = count == 0 && word.text.parse::<TaskId>().is_ok();
            let end = at + if is_id { 1 } else { count };
            if end > at {
                let last = &words[end - 1];
                let name = &value[word.at..last.at + last.text.len()];
                let is_known = self.can_mean_nothing_else(name);
                let is_alone = word.is_first && begins(end);
                let is_near = is_id && self.looks_like_a_name(word.text);
                named.is_near |= is_near;
                named.is_meant |= is_known || is_alone || is_near;
                named.names.push(name.to_owned());
                at = end;
                continue;
            }
            if word.is_link {
                at += 1;
                continue;
            }
            if word.depth > 0 {
                // Text in parentheses is a note about the name before it.
                named.names.truncate(before_parenthesis);
                at += words[at..].iter().take_while(|word| word.depth > 0).count();
                continue;
            }
            let next = (at + 1..=words.len())
                .find(|next| begins(*next))
                .unwrap_or(words.len());
            let part = &value[word.at..words[next - 1].at + words[next - 1].text.len()];
            let is_near = word.is_first && self.looks_like_a_name(part);
            // Several items have this name, or one item spells its ID otherwise.
            let is_doubtful = word.is_first && self.is_name(&slug(part));
            named.is_near |= is_near;
            named.is_meant |= is_near || is_doubtful;
            named.unknown.get_or_insert_with(|| part.to_owned());
            // Most parts have no such name.
            if part.contains(|c: char| c == '-' || c.is_ascii_digit()) {
                self.read_among(&words[at..next], value, named);
            }
            at = next;
        }
    }

    /// Reads unmistakable names among other words: `completion of ENG-1`.
    fn read_among(&self, words: &[Word<'_>], value: &str, named: &mut Named) {
        let mut at = 0;
        while at < words.len() {
            let (word, count) = (&words[at], self.name_at(&words[at..]).max(1));
            let last = &words[at + count - 1];
            let name = &value[word.at..last.at + last.text.len()];
            let is_near = || word.text.parse::<TaskId>().is_ok() && self.looks_like_a_name(name);
            if self.can_mean_nothing_else(name) || is_near() {
                named.is_meant = true;
                named.names.push(name.to_owned());
            }
            at += count;
        }
    }

    /// Returns true for an ID of the document, or a name with letters and a number: `T012`, `Phase 1`.
    fn can_mean_nothing_else(&self, name: &str) -> bool {
        let has_both =
            name.contains(|c: char| c.is_ascii_digit()) && name.contains(char::is_alphabetic);
        self.by_id_in(name).is_some() || has_both && self.goes_by_slug(&slug(name))
    }

    /// Returns the number of words of the longest name that they begin with; 0 for none.
    fn name_at(&self, words: &[Word<'_>]) -> usize {
        let (mut phrase, mut longest) = (String::new(), 0);
        for (index, word) in words.iter().take(MOST_WORDS).enumerate() {
            if index > 0 {
                phrase.push('-');
            }
            phrase.push_str(&word.slug);
            if self.goes_by_slug(&phrase) {
                longest = index + 1;
            }
        }
        let is_id = || self.by_id_in(words[0].text).is_some();
        if longest == 0 && is_id() { 1 } else { longest }
    }
}

/// Returns the words of a value, with their separators.
fn split(value: &str) -> Vec<Word<'_>> {
    let mut split = Vec::<Word<'_>>::new();
    let (mut depth, mut is_first, mut begin) = (0usize, true, None);
    let is_closed = value.matches('(').count() <= value.matches(')').count();
    let mut end_word =
        |begin: &mut Option<usize>, end: usize, depth: usize, is_first: &mut bool| {
            let Some(start) = begin.take() else { return };
            let whole = value[start..end].trim_end_matches(['.', '!', '?', '\'', '_']);
            let text = whole.trim_start_matches(['_', '\'']);
            let start = start + whole.len() - text.len();
            let slug = slug(text);
            if slug.is_empty() {
                return;
            }
            let is_link = LINKS.contains(&slug.as_str());
            let (at, was_first) = (start, std::mem::replace(is_first, is_link));
            split.push(Word {
                text,
                at,
                slug,
                depth,
                is_first: was_first,
                is_link,
            });
        };
    for (at, c) in value.char_indices() {
        // A sign between two numbers may make them a range.
        let is_between = !c.is_alphanumeric() && !"-_.#'–—…".contains(c);
        if !is_between {
            begin.get_or_insert(at);
            continue;
        }
        end_word(&mut begin, at, depth, &mut is_first);
        match c {
            '(' if !is_closed => continue,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_first |= ",;/&+|()[]{}<>，、；".contains(c);
    }
    end_word(&mut begin, value.len(), depth, &mut is_first);
    split
}
