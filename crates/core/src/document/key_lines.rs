//! Keys stated in the item's lines below its title: `**Blocked by**: x`, `depends_on: [x]`, `after = x`, or a
//! name with a list below it. Does not know whether the named items exist.

use std::ops::Range;

use memchr::{memchr, memchr3, memmem};

use super::own_lines::{Below, bullet};
use super::phrase::{bare, words};
use super::{Document, Item, ItemList};
use crate::markup;
use crate::metadata::Key;

/// Maximum length of a name in bytes, without marks around it.
const LONGEST: usize = 32;

/// Marks allowed around a name.
const MARKS: [char; 8] = ['*', '_', '`', '~', '"', '\'', '#', ' '];

/// Characters that begin text that is no key, or is read elsewhere.
const BRACKETS: [char; 5] = ['(', '[', '{', '<', '|'];

/// Separators of fields on a line.
const APART: [&str; 3] = [" | ", " · ", " • "];

/// Names of keys that always take an item as value.
const ALWAYS: [&str; 4] = ["blocked by", "blockedby", "depends on", "dependson"];

/// The meaning of a line's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// The item waits for the named value: always, or only if that is an item.
    After { is_always: bool },
    /// Items that wait for this one.
    Before,
    /// The item's name.
    Id,
    /// Another key that guards the work.
    Guard(Key),
}

/// A line, or a line with the list below it.
pub(super) struct Stated<'t> {
    pub says: Says,
    pub name: Range<usize>,
    /// The text behind the name, or the lines of its list.
    pub values: Vec<&'t str>,
    /// End of the value on its line.
    pub end: usize,
    /// Only a blank separates the name and its value: `Depends on x`.
    pub is_sentence: bool,
    /// The name is spelt as no word of a sentence: `done_when`.
    pub is_spelt_as_key: bool,
}

/// The first line, as ranges of that line.
struct Head {
    says: Says,
    name: Range<usize>,
    value: Range<usize>,
    is_sentence: bool,
}

impl<'t> Document<'t> {
    /// Returns all that the item's lines below its title state.
    pub(super) fn stated_below(&self, item: &Item<'_>) -> Vec<Stated<'t>> {
        let start = markup::line_end(self.text, item.head.end, item.span.end);
        self.stated_in(start..item.span.end, item.content_column)
    }

    /// The same for lines right below the item with too little indent to be its own.
    pub(super) fn stated_beside(&self, item: &Item<'_>) -> Vec<Stated<'t>> {
        let is_read = matches!(self.items, ItemList::Read(_));
        let is_last = || is_read && !self.may_state(item.span.end..self.text.len());
        if item.within.is_some() || is_last() {
            return Vec::new();
        }
        if !self.text[..item.span.end].ends_with(['\n', '\r']) {
            return Vec::new();
        }
        let mut is_list = false;
        let is_beside = |line: &&str| {
            let words = line.trim_start();
            let marks = ["#", ">", "```", "~~~", "<"];
            let bullet = bullet(words);
            // The list of a name, or another list.
            let goes_on = is_list && bullet.is_some();
            is_list = goes_on || words.trim_end().ends_with([':', '*']);
            let is_other = |end| !goes_on && !begins_field(&words[end..]);
            !words.is_empty()
                && !marks.iter().any(|mark| words.starts_with(mark))
                && !markup::has_box(line)
                && !bullet.is_some_and(is_other)
        };
        let lines = self.text[item.span.end..].split_inclusive('\n');
        let length: usize = lines.take_while(is_beside).map(str::len).sum();
        if length == 0 {
            return Vec::new();
        }
        self.stated_in(item.span.end..item.span.end + length, 0)
    }

    /// Returns true if a line of `span` may state something.
    fn may_state(&self, span: Range<usize>) -> bool {
        match &self.items {
            // For read items the positions of all such lines are cached.
            ItemList::Read(_) => {
                let heads = self.heads.get_or_init(|| heads(self.text));
                let first = heads.partition_point(|at| *at < span.start);
                heads.get(first).is_some_and(|at| *at < span.end)
            }
            ItemList::Outlined { .. } => !heads(&self.text[span]).is_empty(),
        }
    }

    /// Returns the statements in the lines of `span`; their text begins in this column.
    fn stated_in(&self, span: Range<usize>, column: usize) -> Vec<Stated<'t>> {
        let start = span.start;
        let below = &self.text[span.clone()];
        // Checking the item's lines is slow, and items rarely state anything.
        if !self.may_state(span) {
            return Vec::new();
        }
        let (mut own, mut is_comment, mut above) = (Below::of(column), false, "");
        let (mut found, mut next, mut at) = (Vec::<Stated<'t>>::new(), Next::Other, start);
        for line in below.split_inclusive('\n') {
            let from = at;
            at += line.len();
            let is_hidden = is_comment;
            is_comment = (is_comment || line.contains("<!--")) && !line.contains("-->");
            let is_own = own.is_own(line);
            let before = std::mem::replace(&mut above, if is_own { line.trim() } else { "" });
            if !is_own || is_hidden {
                continue;
            }
            let column = markup::columns(&line[..line.len() - line.trim_start().len()]);
            let (text, bullet) = (without_comment(line), bullet(line));
            let mut fields = fields(line);
            let first = fields.next().unwrap_or(0..line.len());
            let one = head(&line[first.clone()]).map(|head| head.stated(&line[first], from));
            let is_in_sentence = bullet.is_none() && goes_on(before, line);
            let one = one.and_then(|one| {
                if is_in_sentence {
                    one.in_sentence()
                } else {
                    Some(one)
                }
            });
            let is_first = one.is_some();
            if let Some(one) = one {
                next = match one.values[0] {
                    "" => Next::List(column + usize::from(bullet.is_some())),
                    _ => Next::Line,
                };
                found.push(one);
            }
            let count = found.len();
            for field in fields {
                let start = from + field.start;
                let one = head(&line[field.clone()]).map(|head| head.stated(&line[field], start));
                let one = one.filter(|one| !one.is_sentence);
                next = if one.is_some() {
                    Next::Line
                } else {
                    Next::Other
                };
                found.extend(one);
            }
            if is_first || found.len() > count {
                continue;
            }
            next = match (next, found.last_mut(), bullet) {
                (Next::List(least), Some(last), Some(bullet)) if column >= least => {
                    last.values.retain(|value| !value.is_empty());
                    last.values.push(bare(&text[bullet..]));
                    Next::List(least)
                }
                (Next::List(least), Some(last), None)
                    if column >= least && !before.is_empty() && last.values.len() == 1 =>
                {
                    last.values = vec![bare(text)];
                    Next::Lines
                }
                (Next::Lines, Some(last), None) if !before.is_empty() => {
                    last.values.push(bare(text));
                    Next::Lines
                }
                (Next::Line, Some(last), None) if is_open(before, line) => {
                    last.values.push(bare(text));
                    Next::Line
                }
                _ => Next::Other,
            };
        }
        // A name alone on its line counts only above a list.
        found.retain(|one| !(one.is_sentence && one.values[0].is_empty()));
        found
    }
}

/// How the next line may continue.
#[derive(Clone, Copy)]
enum Next {
    /// The list below a name with an empty value, with its minimum indent.
    List(usize),
    /// The names of a line.
    Line,
    /// The lines right below a name with an empty value.
    Lines,
    Other,
}

impl Head {
    /// The line begins at `from`.
    fn stated(self, line: &str, from: usize) -> Stated<'_> {
        Stated {
            says: self.says,
            is_spelt_as_key: is_spelt_as_key(&line[self.name.clone()]),
            name: from + self.name.start..from + self.name.end,
            end: from + self.value.end,
            values: vec![bare(&line[self.value])],
            is_sentence: self.is_sentence,
        }
    }
}

impl Stated<'_> {
    /// Inside a sentence a name counts only if it is spelt as a key or its value names items.
    fn in_sentence(mut self) -> Option<Self> {
        match self.says {
            _ if self.is_spelt_as_key => {}
            Says::After { .. } => self.says = Says::After { is_always: false },
            Says::Before => {}
            Says::Id | Says::Guard(_) => return None,
        }
        Some(self)
    }
}

/// Returns true if `line` continues the sentence of the line before.
fn goes_on(before: &str, line: &str) -> bool {
    let name = before.split_once(':').map(|(name, _)| name);
    let is_sentence = !before.is_empty()
        && !before.ends_with(['.', '!', '?', ':'])
        && name.is_none_or(|name| name.len() >= LONGEST);
    is_sentence && line.trim_start().starts_with(char::is_lowercase)
}

/// Returns true if `line` continues the list of names of the line before.
fn is_open(before: &str, line: &str) -> bool {
    let before = without_comment(before).trim_end();
    let is_link = |word: &str| matches!(word, "and" | "&" | "+");
    let last = before.split_whitespace().next_back();
    let first = line.split_whitespace().next();
    before.ends_with([',', ';', '&', '+', '/', '|', '['])
        || last.is_some_and(is_link)
        || first.is_some_and(is_link)
        || first.is_some_and(|first| first.starts_with([',', ']']))
}

fn without_comment(line: &str) -> &str {
    memchr(b'<', line.as_bytes())
        .and_then(|at| Some(&line[..at + line[at..].find("<!--")?]))
        .unwrap_or(line)
}

/// Returns the starts of the lines that state something.
fn heads(text: &str) -> Vec<usize> {
    let lines = text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at - line.len(), line))
    });
    // Texts rarely have fields.
    let has_fields = APART
        .iter()
        .any(|sign| memmem::find(text.as_bytes(), sign.as_bytes()).is_some());
    let states = |line: &str| {
        head(line).is_some() || has_fields && fields(line).any(|field| head(&line[field]).is_some())
    };
    lines
        .filter(|(_, line)| states(line))
        .map(|(at, _)| at)
        .collect()
}

/// Returns the fields of a line: each begins with a name and a colon or a statement, and ends at the next. A
/// line with only one field is returned whole.
fn fields(line: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let signs = memchr3(b'|', "·".as_bytes()[0], "•".as_bytes()[0], line.as_bytes());
    let is_apart = |at: usize| {
        let sign = APART.iter().find(|sign| line[at..].starts_with(**sign))?;
        let field = &line[at + sign.len()..];
        begins_field(field).then_some((at, at + sign.len()))
    };
    let places = line.match_indices(' ').map(|(at, _)| at);
    let mut bounds = places.filter(move |_| signs.is_some()).filter_map(is_apart);
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        let bound = bounds.next();
        start = bound.map(|(_, start)| start);
        Some(from..bound.map_or(line.len(), |(end, _)| end))
    })
}

/// Returns true if the text begins with letters and a colon, or states something.
fn begins_field(text: &str) -> bool {
    let text = &text[..text.floor_char_boundary(LONGEST + 8)];
    let name = text
        .split_once(':')
        .map(|(name, _)| name.trim_matches(MARKS));
    let is_letter = |c: char| c.is_alphabetic() || matches!(c, ' ' | '-' | '_');
    name.is_some_and(|name| !name.is_empty() && name.chars().all(is_letter))
        || head(text).is_some_and(|head| !head.is_sentence)
}

/// Returns the statement that the line begins with.
fn head(line: &str) -> Option<Head> {
    let may_begin = |byte: &u8| byte.is_ascii_alphabetic() || b"([{<|".contains(byte);
    let first = line.bytes().find(may_begin)?;
    if !Key::may_begin_with(first) && !b"iI".contains(&first) {
        return None;
    }
    let bare = line.trim_start();
    let bullet = bullet(bare).unwrap_or(0);
    let words =
        bare[bullet..].trim_start_matches(|c: char| !c.is_alphanumeric() && !BRACKETS.contains(&c));
    words
        .as_bytes()
        .first()
        .filter(|byte| byte.is_ascii_alphabetic())?;
    let before = &line[..line.len() - words.len()];
    let before = before.trim_end_matches(|c| c != ' ' && MARKS.contains(&c));
    let mut begin = before.len();
    // A prefix makes it another name: `--review`.
    if before.ends_with(|c: char| c.is_ascii_punctuation()) {
        return None;
    }
    let mut line = without_comment(line).trim_end();
    let code = line
        .get(begin..)?
        .strip_prefix('`')
        .and_then(|code| code.strip_suffix('`'));
    let is_code = code.is_some_and(|code| !code.contains('`'));
    if is_code {
        (begin, line) = (begin + 1, &line[..line.len() - 1]);
    }
    // The length includes marks around the name.
    let words = line.get(begin..line.floor_char_boundary(begin + LONGEST + 8))?;
    let signs = [b':', b'=', "：".as_bytes()[0]];
    let sign = memchr3(signs[0], signs[1], signs[2], words.as_bytes()).and_then(|at| {
        let sign = words[at..].chars().next()?;
        matches!(sign, ':' | '=' | '：').then_some((at, sign.len_utf8()))
    });
    let named = |end: usize| {
        let name = words[..end].trim_matches(MARKS);
        let start = begin + words[..end].len() - words[..end].trim_start_matches(MARKS).len();
        Some((says(&words[..end])?, start..start + name.len()))
    };
    if let Some((at, length)) = sign
        && let Some((says, name)) = named(at)
    {
        let (value, is_sentence) = (begin + at + length..line.len(), false);
        // Code may be an example.
        let says = match says {
            Says::After { .. } if is_code => Says::After { is_always: false },
            says => says,
        };
        return Some(Head {
            says,
            name,
            value,
            is_sentence,
        });
    }
    let first = words.trim_start_matches(MARKS).split(' ').next();
    let first = first.unwrap_or("").trim_end_matches(MARKS);
    if !(Key::may_begin_sentence(first) || is_spelt_as_key(first)) {
        return None;
    }
    let ends = words.match_indices(' ').map(|(at, _)| at).take(4);
    let whole = (begin + words.len() == line.len()).then_some(words.len());
    let alone = |end: usize| {
        let (says, name) = named(end)?;
        let is_meant = match says {
            Says::After { .. } => true,
            Says::Before => end == words.len(),
            Says::Id => false,
            Says::Guard(_) => end == words.len() && is_spelt_as_key(&line[name.clone()]),
        };
        let (value, is_sentence) = (begin + end..line.len(), true);
        is_meant.then_some(Head {
            says,
            name,
            value,
            is_sentence,
        })
    };
    // Prefer the longest name: `Depends on x` over `Depends`.
    ends.chain(whole).filter_map(alone).last()
}

/// Returns true if the name is spelt as no word of a sentence: `done_when`, `dependsOn`.
fn is_spelt_as_key(name: &str) -> bool {
    let mut pairs = name.bytes().zip(name.bytes().skip(1));
    name.contains(['_', '-'])
        || pairs.any(|(one, next)| one.is_ascii_lowercase() && next.is_ascii_uppercase())
}

/// Returns the meaning of a name, with or without Markdown marks around it.
fn says(name: &str) -> Option<Says> {
    let name = name.trim();
    let is_code = name.starts_with('`') || name.ends_with('`');
    if is_code && name.matches('`').count() % 2 == 1 {
        return None;
    }
    let name = name.trim_matches(MARKS);
    let is_letter = |c: char| c.is_alphabetic() || matches!(c, ' ' | '-' | '_');
    if name.is_empty() || name.len() > LONGEST || !name.chars().all(is_letter) {
        return None;
    }
    let words = words(name).join(" ");
    match Key::meant(name) {
        _ if words == "id" => Some(Says::Id),
        _ if ALWAYS.contains(&words.as_str()) => Some(Says::After { is_always: true }),
        _ if Key::is_inverse(name) => Some(Says::Before),
        Some(Key::After | Key::Needs) => Some(Says::After { is_always: false }),
        Some(key) if key.is_guard() => Some(Says::Guard(key)),
        _ => None,
    }
}
