//! Finds items by the names that dependencies use: titles and headings of the same document.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};

use memchr::{memchr_iter, memchr3};

use super::all_names::AllNames;
use super::dependencies::{is_to_do, may_say_before};
use super::key_lines::Says;
use super::keys::misplaced;
use super::own_lines::Below;
use super::phrase::{slug, without_targets};
use super::{Document, Item, ItemList, parse};
use crate::markup;
use crate::metadata::{self, Key, Misplaced, Owner, guards_in_words, misplaced_guards};
use crate::problem::Problem;
use crate::suggestion;
use crate::task::TaskId;
use crate::title_tail::before_tail;

/// Signs of Obsidian Tasks: an item's own name, and the names it waits for.
const NAMED: char = '🆔';
const BLOCKED_BY: char = '⛔';

/// Limit of comparisons of phrases with names per document.
const MOST_LOOKS: usize = 300_000;

impl<'t> Document<'t> {
    /// Returns the indices of the items that `item` waits for by name, or the first name that fits no item or
    /// several.
    pub fn named_by<'a>(&self, item: &'a Item<'_>) -> Result<Vec<usize>, &'a str> {
        let named = item
            .after_names
            .iter()
            .map(|name| self.called_so(name).ok_or(&**name));
        Ok(named.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Returns true if the parenthesis is prose: `(after: the release)` alone, which names no item and
    /// resembles no name.
    pub(super) fn is_prose(&self, item: &Item<'_>) -> bool {
        let is_near = |name: &str| {
            suggestion::nearest(&slug(name), self.by_name().keys().map(|it| &**it)).is_some()
        };
        let is_phrase = |name: &str| {
            name.trim().contains(char::is_whitespace) && !self.says_a_name(name) && !is_near(name)
        };
        !item.after_names.is_empty()
            && item.after.is_empty()
            && self.has_one_key(item)
            && self.all_names().has_prose
            && item.after_names.iter().all(|name| is_phrase(name))
    }

    pub(crate) fn has_one_key(&self, item: &Item<'_>) -> bool {
        item.block.is_none() && self.entries(item).len() == 1
    }

    /// Makes such parentheses part of the title, and reports them.
    pub(super) fn read_prose(&mut self, problems: &mut Vec<Problem>) {
        let prose: Vec<usize> = (0..self.count())
            .filter(|at| self.is_prose(self.item(*at)))
            .collect();
        let ItemList::Read(items) = &mut self.items else {
            return;
        };
        for at in prose {
            let item = &mut items[at];
            let span = item.metadata.clone().unwrap_or_else(|| item.head.clone());
            let message = format!(
                "no item is called `{}`, so this parenthesis is part of the title",
                item.after_names[0].trim()
            );
            problems.push(Problem::warning(
                "unknown-dependency",
                span,
                message,
                "to wait for an item, write its ID or its title",
            ));
            item.leave_keys();
            item.after_names.clear();
        }
        for at in 0..self.count() {
            let waits = self.waits(self.item(at));
            if let ItemList::Read(items) = &mut self.items {
                (items[at].after, items[at].after_names) = waits;
            }
        }
        self.read_misplaced(problems);
        problems.sort_by_key(|problem| problem.span.start);
    }

    /// Returns a guarding key of an open item that is misplaced or misspelt, and so not read, with its place.
    /// `after` is reported only where it names an item.
    pub(super) fn misplaced_guard(&self, item: &Item<'_>) -> Option<(Range<usize>, Key)> {
        // Dependencies no longer hold up an item that was begun.
        if !is_to_do(item) || item.quarantined {
            return None;
        }
        self.guard_in_title(item)
            .or_else(|| self.guard_below(item))
            .or_else(|| self.guard_stated(item))
            .or_else(|| self.guard_beside(item))
            .or_else(|| self.guard_above(item))
            .or_else(|| self.sign_of_blocker(item))
    }

    /// The same, in the paragraph of the title.
    fn guard_in_title(&self, item: &Item<'_>) -> Option<(Range<usize>, Key)> {
        let end = markup::paragraph_end(self.text, item.head.end, item.span.end);
        // Titles rarely have brackets or comments.
        let mut bytes = self.text.as_bytes()[item.title.start..end].iter();
        let has_brackets = bytes.any(|byte| matches!(byte, b'(' | b'[' | b'{' | b'<' | 0xef));
        if !has_brackets && guards_in_words(&self.text[item.title.clone()]).is_empty() {
            return None;
        }
        let is_meant = |guard: &Misplaced<'_>| match guard.needed {
            _ if guard.is_inverse => false,
            Some(words) if guard.is_prose => self.names_another(item, words),
            Some(words) => self.says_a_name(words) || self.read_names(&[words]).is_meant,
            None => true,
        };
        let mut words = self.text[item.title.start..end].to_owned();
        if let Some(keys) = &item.metadata {
            words.replace_range(
                keys.start - item.title.start..keys.end - item.title.start,
                &" ".repeat(keys.len()),
            );
        }
        let words = markup::without_comments(words.replace(['\n', '\r'], " ").into());
        let words = bracketed(&words);
        let found = misplaced_guards(&words, self.own_words(item, end) - item.title.start);
        let in_words = || guards_in_words(words.get(..item.title.len()).unwrap_or(&words));
        let found = found.into_iter().find(is_meant);
        let found = found.or_else(|| in_words().into_iter().find(is_meant))?;
        let name = item.title.start + found.name.start..item.title.start + found.name.end;
        Some((name, found.key))
    }

    /// Returns the sign of Obsidian Tasks for a dependency behind the title, if an open item here has the ID
    /// that it names.
    fn sign_of_blocker(&self, item: &Item<'_>) -> Option<(Range<usize>, Key)> {
        let line =
            &self.text[item.title.end..markup::line_end(self.text, item.head.end, item.span.end)];
        let at = line.find(BLOCKED_BY)?;
        let ids = line[at + BLOCKED_BY.len_utf8()..]
            .trim_start_matches('\u{fe0f}')
            .split(',')
            .map(|id| leading_sign(id.trim_start()));
        let open = &self.all_names().open;
        let is_blocked = ids.filter(|id| !id.is_empty()).any(|id| open.contains(id));
        let start = item.title.end + at;
        is_blocked.then_some((start..start + BLOCKED_BY.len_utf8(), Key::After))
    }

    /// The same, in a parenthesis below the title: `after` where it names an item, other guards where only
    /// keys stand beside. Fences and quotes are prose, and text below a box belongs to a step or a part.
    fn guard_below(&self, item: &Item<'_>) -> Option<(Range<usize>, Key)> {
        let mut end = markup::line_end(self.text, item.head.end, item.span.end);
        let below = &self.text[end..item.span.end];
        memchr3(b'(', b'<', "（".as_bytes()[0], below.as_bytes())?;
        let is_said = |key: Key| {
            self.entries(item)
                .iter()
                .any(|entry| entry.name == key.as_str())
        };
        let is_meant = |guard: &Misplaced<'_>| match guard.needed {
            _ if guard.is_inverse => false,
            Some(words) => self.names_another(item, words),
            None => guard.is_among_keys && !is_said(guard.key),
        };
        let below = markup::without_comments(below.into());
        let mut lines = Below::of(item.content_column);
        for line in below.split_inclusive('\n') {
            let at = end;
            end += line.len();
            if !lines.is_own(line) {
                continue;
            }
            if let Some(it) = misplaced_guards(&bracketed(line), line.len())
                .into_iter()
                .find(is_meant)
            {
                return Some((at + it.name.start..at + it.name.end, it.key));
            }
        }
        None
    }

    /// Returns the end of the text that a person may have meant as keys. Below an ID programs may write
    /// anything, so only a parenthesis that continues on the next line counts there.
    fn own_words(&self, item: &Item<'_>, end: usize) -> usize {
        if item.id.is_none() {
            return end;
        }
        let below = markup::line_end(self.text, item.head.end, end);
        let line = markup::trimmed(self.text, below..markup::line_end(self.text, below, end));
        let goes_on =
            self.text[line.clone()].starts_with('(') && !self.text[line.clone()].contains(')');
        if goes_on {
            line.start + 1
        } else {
            item.title.end
        }
    }

    /// Reports such keys, and quarantines their items.
    fn read_misplaced(&mut self, problems: &mut Vec<Problem>) {
        problems.extend(
            self.items()
                .iter()
                .flat_map(|item| self.unread_guards(item)),
        );
        let found = |at: usize| self.misplaced_guard(self.item(at)).map(|guard| (at, guard));
        let all: Vec<_> = (0..self.count()).filter_map(found).collect();
        let ItemList::Read(items) = &mut self.items else {
            return;
        };
        let mut told = BTreeSet::new();
        for (at, (name, key)) in all {
            let hint = format!(
                "write `({}: …)` at the end of the first line, with nothing behind it, or use other words",
                key.as_str()
            );
            // Report each heading once.
            if told.insert(name.start) {
                problems.push(misplaced(self.text, name, hint));
            }
            items[at].quarantined = true;
        }
    }

    /// Returns true if an ID, a title or a heading of the document is among these words.
    fn says_a_name(&self, words: &str) -> bool {
        let words = slug(words);
        let within = words.match_indices('-').map(|(at, _)| at + 1);
        std::iter::once(0)
            .chain(within)
            .any(|start| self.begins_with_a_name(&words[start..]))
    }

    fn begins_with_a_name(&self, words: &str) -> bool {
        let mut most = words;
        // The last name that sorts up to `most` is the match, or shares its beginning with every match.
        let last = |most| (Bound::Unbounded, Bound::Included(most));
        let is_word = |name: &str| name.contains(|c: char| !c.is_ascii_digit() && c != '-');
        while let Some((name, _)) = self.by_name().range::<str, _>(last(most)).next_back() {
            let pairs = most.char_indices().zip(name.chars());
            let shared = pairs.take_while(|((_, one), other)| one == other);
            let shared = shared.last().map_or(0, |((at, c), _)| at + c.len_utf8());
            let is_whole = words.len() == shared || words[shared..].starts_with('-');
            // A number may be an amount.
            if shared == name.len() && is_whole && is_word(name) {
                return true;
            }
            let Some(last) = most[..shared].chars().next_back() else {
                return false;
            };
            let rest = if shared == name.len() {
                shared - last.len_utf8()
            } else {
                shared
            };
            most = &most[..rest];
        }
        false
    }

    /// Returns true if these words are meant as names of items, or look like some, and one is neither the
    /// item itself nor already a dependency.
    fn names_another(&self, item: &Item<'_>, words: &str) -> bool {
        let own = self.index_from(item.span.start);
        let waits = item
            .after
            .iter()
            .map(TaskId::as_str)
            .chain(item.after_names.iter().map(|name| &**name));
        let waits: Vec<String> = waits.map(slug).collect();
        let named = self.read_names(&[words]);
        let is_another = |name: &String| {
            let name = slug(name);
            let items = self.by_name().get(&name);
            !waits.contains(&name) && items.is_some_and(|items| !items.contains(&own))
        };
        let is_unknown = |name: &String| named.is_near && !waits.contains(&slug(name));
        let unknown = named.unknown.iter();
        named.is_meant
            && (named.names.iter().any(is_another) || unknown.chain(&named.names).any(is_unknown))
    }

    /// Returns the names of a bracket in the title's paragraph that says the item comes before them.
    pub(super) fn before_in_title(&self, item: &Item<'_>) -> Option<&'t str> {
        if !self.says_before() {
            return None;
        }
        let end = markup::paragraph_end(self.text, item.head.end, item.span.end);
        let words = &self.text[item.title.start..end];
        if !may_say_before(words) {
            return None;
        }
        let found = misplaced_guards(words, words.len()).into_iter();
        found
            .filter(|guard| guard.is_inverse)
            .find_map(|guard| guard.needed)
    }

    /// Returns true if one or several items have this name.
    pub(super) fn is_name(&self, slug: &str) -> bool {
        self.by_name().contains_key(slug)
    }

    /// Returns the first item with these words as its ID. All names are collected here, so no ID is searched
    /// for in the text.
    pub(super) fn by_id_in(&self, words: &str) -> Option<usize> {
        self.all_names().by_id.get(&words.parse().ok()?).copied()
    }

    pub(super) fn goes_by_slug(&self, slug: &str) -> bool {
        self.by_name()
            .get(slug)
            .is_some_and(|items| !items.is_empty())
    }

    /// Returns true if the words differ from a name of the document only in the number: `T-9` beside `T-1`,
    /// `Phase 9` beside `Phase 1`.
    pub(super) fn looks_like_a_name(&self, words: &str) -> bool {
        let stems = &self.all_names().stems;
        let of_id = || {
            words
                .parse()
                .is_ok_and(|id| stems.contains(&stem_of_id(&id)))
        };
        let slug = slug(words);
        let is_number = words.starts_with('#') || words.contains('.');
        let is_like = |stem: &str| stems.contains(stem) && (is_number || !stem.is_empty());
        of_id() || stem(&slug).is_some_and(is_like)
    }

    /// Returns the one item with this title, with these words before its colon, or with this number at its
    /// start; or all items under this heading.
    pub(super) fn called_so(&self, name: &str) -> Option<&[usize]> {
        self.by_name()
            .get(&slug(name))
            .map(Vec::as_slice)
            .filter(|items| !items.is_empty())
    }

    /// Returns the owner's mark of a line with this ID or title.
    pub fn own_mark(&self, name: &str) -> Option<&str> {
        let line = self.own.iter().find(|mark| self.goes_by(mark.end, name));
        let item = || {
            self.called_so(name)?
                .iter()
                .find_map(|at| self.left_out_at(*at))
        };
        line.map(|mark| &self.text[mark.clone()]).or_else(item)
    }

    /// Returns true if the text from `start` to the end of its line has this name, by the rules of items.
    fn goes_by(&self, start: usize, name: &str) -> bool {
        let line = markup::without_line_end(
            &self.text[start..markup::line_end(self.text, start, self.text.len())],
        );
        let line = &line[..before_tail(line)];
        let (id, length) = markup::leading_id(line);
        let rest = &line[length..];
        let keys = metadata::find_parenthesis(rest, Owner::of_line(id.as_ref()))
            .ok()
            .flatten();
        let title = keys.map_or(rest, |keys| &rest[..keys.start]);
        let name = slug(name);
        let own = [
            Some(title),
            before_colon(title),
            number(title),
            id.as_ref().map(TaskId::as_str),
        ];
        own.into_iter().flatten().any(|own| slug(own) == name)
    }

    /// Returns the item's number in an ordered list.
    fn place_in_list(&self, item: &Item<'_>) -> Option<&'t str> {
        let line = self.text[item.span.start..item.box_char].trim_start();
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        Some(&line[..line.len() - digits.len()]).filter(|digits| !digits.is_empty())
    }

    fn by_name(&self) -> &BTreeMap<String, Vec<usize>> {
        &self.all_names().by_name
    }

    fn all_names(&self) -> &AllNames {
        self.names.get_or_init(|| {
            let gather = |document: &Document<'_>, items: &[Item<'_>]| {
                let by_name = document.names_of(items);
                let mut by_id = BTreeMap::new();
                for (index, item) in items.iter().enumerate() {
                    if let Some(id) = &item.id {
                        by_id.entry(id.clone()).or_insert(index);
                    }
                }
                let stems = by_name.keys().filter_map(|name| stem(name));
                let stems = stems
                    .map(str::to_owned)
                    .chain(by_id.keys().map(stem_of_id))
                    .collect();
                (by_name, by_id, stems)
            };
            let (by_name, by_id, stems) = match &self.items {
                ItemList::Read(items) => gather(self, items),
                ItemList::Outlined { .. } => {
                    let document = parse(self.text).0;
                    gather(&document, document.items())
                }
            };
            let parentheses =
                memchr_iter(b'(', self.text.as_bytes()).count() + self.text.matches('（').count();
            AllNames {
                has_prose: parentheses.saturating_mul(by_name.len()) <= MOST_LOOKS,
                open: open_signs(self.text),
                by_name,
                by_id,
                stems,
            }
        })
    }

    fn names_of(&self, items: &[Item<'_>]) -> BTreeMap<String, Vec<usize>> {
        let [mut names, mut short_names, mut headings] = [const { BTreeMap::new() }; 3];
        for (index, item) in items.iter().enumerate() {
            let title = self.title(item);
            let bare = before_parenthesis(title);
            let own = [Some(title), before_colon(title)];
            let text = without_targets(title);
            let text = matches!(text, Cow::Owned(_)).then_some(&*text);
            let short = [bare, text, number(title), self.place_in_list(item)];
            own.into_iter()
                .flatten()
                .for_each(|name| go_by(&mut names, slug(name), index));
            short
                .into_iter()
                .flatten()
                .for_each(|name| go_by(&mut short_names, slug(name), index));
        }
        for (index, item) in items.iter().enumerate() {
            let own = self.stated_below(item).into_iter();
            let own = own.filter(|stated| stated.says == Says::Id);
            own.for_each(|stated| go_by(&mut names, slug(stated.values[0]), index));
        }
        // A misspelt ID is not accepted, except to look up a left-out item.
        for (index, item) in items.iter().enumerate() {
            let Some(id) = &item.id else { continue };
            names.entry(slug(id.as_str())).or_insert_with(|| {
                if self.left_out(item).is_some() {
                    vec![index]
                } else {
                    Vec::new()
                }
            });
        }
        for (heading, items) in &self.sections {
            let heading = markup::heading_text(self.text, heading.clone());
            names.entry(slug(heading)).or_insert_with(|| items.clone());
            for short in [before_parenthesis(heading), before_colon(heading)]
                .into_iter()
                .flatten()
            {
                headings
                    .entry(slug(short))
                    .and_modify(Vec::clear)
                    .or_insert_with(|| items.clone());
            }
        }
        for (name, items) in headings.into_iter().chain(short_names) {
            names.entry(name).or_insert(items);
        }
        names.remove("");
        names
    }
}

/// Returns the words with comments as brackets, at the same byte length.
fn bracketed(words: &str) -> Cow<'_, str> {
    if words.contains("<!--") {
        words.replace("<!--", "   (").replace("-->", "  )").into()
    } else {
        words.into()
    }
}

/// Returns the Obsidian Tasks names of items with open boxes.
fn open_signs(text: &str) -> BTreeSet<String> {
    let is_open = |line: &&str| ["[ ]", "[/]"].iter().any(|open| line.contains(open));
    let signs = |line: &'_ str| {
        let behind = line.split(NAMED).skip(1);
        behind
            .filter_map(|behind| Some(leading_sign(behind.strip_prefix(' ')?).to_owned()))
            .collect::<Vec<_>>()
    };
    let lines = text.lines().filter(|line| line.contains(NAMED));
    lines.filter(is_open).flat_map(signs).collect()
}

/// Returns the letters and digits at the start of `text`.
fn leading_sign(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_'));
    &text[..end.unwrap_or(text.len())]
}

/// Records the item's name; a name of two items is ambiguous and gets none.
fn go_by(names: &mut BTreeMap<String, Vec<usize>>, name: String, item: usize) {
    let items = names.entry(name).or_insert_with(|| vec![item]);
    items.retain(|known| *known == item);
}

/// Returns the words of a title before a parenthesis at its end.
fn before_parenthesis(title: &str) -> Option<&str> {
    Some(title.strip_suffix(')')?.rsplit_once('(')?.0)
}

/// Returns the words of a title before a colon.
fn before_colon(title: &str) -> Option<&str> {
    title.split_once(':').map(|(before, _)| before)
}

/// Returns the first word of a title if it numbers the item: `T012`, `US-12`, `1.2`, `#3`, `4.`, `(5)`.
fn number(title: &str) -> Option<&str> {
    const MARKS: [char; 11] = ['*', '_', '`', '[', ']', '(', ')', ':', '.', '#', '~'];
    let marked = title.split_whitespace().next()?;
    let word = marked.trim_matches(MARKS);
    let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let has_capitals = digits.len() < word.len();
    let digits = if has_capitals {
        digits.strip_prefix('-').unwrap_or(digits)
    } else {
        digits
    };
    // A bare number may be an amount.
    let is_marked = has_capitals || marked != word || word.contains('.');
    let mut parts = digits.split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (is_marked && parts.all(is_number)).then_some(word)
}

/// Returns the text before the number at the end of a name in the form of [`slug`].
fn stem(slug: &str) -> Option<&str> {
    slug.ends_with(|c: char| c.is_ascii_digit())
        .then(|| slug.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-'))
}

fn stem_of_id(id: &TaskId) -> String {
    let prefix = id.as_str().split('-').next().unwrap_or_default();
    format!("{}-", prefix.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_nothing_is_title() {
        let rest = "\n- [ ] the release notes\n- [ ] T-9: nine\n";
        for (line, title) in [
            ("- [ ] a (after: the launch)", "a (after: the launch)"),
            (
                "- [ ] a (after: the launch, before lunch)",
                "a (after: the launch, before lunch)",
            ),
            // One word looks like a name, and so does a near miss of one.
            ("- [ ] a (after: launch)", "a"),
            ("- [ ] a (after: the release note)", "a"),
            ("- [ ] a (after: the release notes)", "a"),
            ("- [ ] a (after: T-8)", "a"),
            // A longer form of an existing name is not understood.
            ("- [ ] a (after: T-9: nine)", "a"),
            ("- [ ] a (after: T-9 nine)", "a"),
            ("- [ ] a (after: t-9)", "a"),
            ("- [ ] a (after: nine and ten)", "a"),
            ("- [ ] a (after: T-9 and T-10)", "a"),
            ("- [ ] a (after: the launch, priority: 1)", "a"),
            ("- [ ] T-1: a (after: the launch)", "a (after: the launch)"),
            ("- [ ] T-1: a (after: the release note)", "a"),
        ] {
            // A plain document is read another way than one with a quote.
            for text in [
                format!("{line}{rest}"),
                format!("{line}{rest}\n> - [ ] no\n"),
            ] {
                let (document, problems) = parse(&text);
                assert_eq!(document.title(&document.items()[0]), title, "{line}");
                let told = problems
                    .iter()
                    .filter(|problem| problem.code == "unknown-dependency")
                    .count();
                assert_eq!(told, usize::from(title != "a"), "{line}");
                let opened = super::super::open(&text);
                assert_eq!(opened.title(opened.item(0)), title, "{line}");
            }
        }
    }

    #[test]
    fn an_item_is_named_by_its_title_or_its_heading() {
        let text = "# Set-up\n- [ ] Add `.editorconfig`\n- [ ] ci: run it\n# Docs\n- [ ] same\n- [ ] Same!\n# CI\n- [ ] x\n";
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
