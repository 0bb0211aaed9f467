//! A parsed queue document: front matter, lanes and items, each as spans of the text.
//!
//! Reading never fails; problems are returned beside the document. Knows nothing of files, leases or the
//! other documents of a board. `specs/queue-document.md` is the contract; `change` and `add` are in
//! `edit.rs`.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use crate::front::Front;
use crate::lane::{LaneKind, LanePlace, LaneSet, Said};
use crate::markup;
use crate::metadata::{self, Fields, KeyEntry, Meaning, TaskBlock};
use crate::searches::Searches;
use crate::state::State;
use crate::states::States;
use crate::task::{Status, Task, TaskId, Timestamp};

use all_names::AllNames;
pub use foreign_checkboxes::meaning_of_mark;
use heading_rules::{Headed, Stating};
pub use keys::STAYS_TITLE;
pub use outline::Outline;
#[cfg(test)]
pub(crate) use reader::parse_as_markdown;
pub use reader::{open, parse, title_of};
pub use single_item::{Written, parse_alone};

mod all_names;
mod context;
mod dependencies;
mod disambiguate;
mod foreign_checkboxes;
mod heading_rules;
mod items;
mod kanban;
mod key_lines;
mod keys;
mod name_parser;
mod names;
mod outline;
mod own_lines;
mod phrase;
mod reader;
mod sections;
mod single_item;
mod stray_guards;

/// A queue document with the places of its parts.
#[derive(Clone, Debug, Default)]
pub struct Document<'t> {
    pub(crate) text: &'t str,
    /// End of the front matter.
    pub body: usize,
    front: Front,
    lanes: Vec<Lane>,
    pub(crate) lane_set: LaneSet,
    items: ItemList<'t>,
    /// The last top-level list item that is or holds an item.
    pub(crate) tail: Option<Tail>,
    /// The last offset up to which line ends were counted, and their count.
    counted: Cell<(usize, usize)>,
    /// Boxes with an owner's mark, which are no items.
    pub own: Vec<Range<usize>>,
    /// Headings that are no lanes, with the indices of the items right under each. Empty if the items are not read.
    sections: Vec<(Range<usize>, Vec<usize>)>,
    /// The indices of items by name; computed on demand.
    names: OnceCell<AllNames>,
    /// Starts of lines that state something; computed on demand.
    heads: OnceCell<Vec<usize>>,
    /// Whether the text may say that an item comes before another; computed on demand.
    says_before: OnceCell<bool>,
    /// For each item's index, the items that state that they come before it; computed on demand.
    order: OnceCell<BTreeMap<usize, Vec<String>>>,
    /// The indices of items by ID, if the items are read; computed on demand.
    ids: OnceCell<BTreeMap<TaskId, Vec<usize>>>,
    /// Searches in the text for IDs that no item has.
    searches: Searches,
    /// States of the items, kept apart from the text.
    states: Arc<States>,
    /// Items that have such states and are not completed, by index; computed on demand.
    remembered: OnceCell<BTreeMap<usize, TaskId>>,
}

/// The items of a document.
#[derive(Clone, Debug)]
enum ItemList<'t> {
    Read(Vec<Item<'t>>),
    /// A plain document, where no item is part of another.
    Outlined {
        places: Arc<[ItemPlace]>,
        /// Each item, read on demand.
        read: Vec<OnceCell<Box<Item<'t>>>>,
        /// All items, read on demand.
        all: OnceCell<Vec<Item<'t>>>,
    },
}

impl Default for ItemList<'_> {
    fn default() -> Self {
        ItemList::Read(Vec::new())
    }
}

/// Where an item of a plain document stands.
#[derive(Clone, Debug)]
struct ItemPlace {
    span: Range<usize>,
    under: Option<Under>,
    headed: Headed,
    /// `None` where only the item itself tells; the same holds for its priority.
    status: Option<Status>,
    priority: Option<u8>,
    may_be_due: bool,
}

/// The heading above an item: of a lane, or another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Under {
    Lane(usize),
    Other {
        number: usize,
        /// The heading is likely meant to name a lane.
        is_slip: bool,
    },
}

/// A heading that names a lane, and its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    pub kind: LaneKind,
    /// The heading's lines.
    pub heading: Range<usize>,
    /// From the heading's end to the next heading of its level or above; lanes under deeper headings lie within it.
    pub body: Range<usize>,
    /// End of the paragraphs right under the heading, or of the heading.
    pub(crate) lead_end: usize,
    /// Whether other content has followed those paragraphs.
    has_led: bool,
    pub(crate) tail: Option<Tail>,
}

/// A top-level list item behind which another can be put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub start: usize,
    pub end: usize,
    /// Whether blank lines separate it from the list item before it.
    pub is_spaced: bool,
}

/// A fence with a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellFence {
    /// The lines between the fences.
    pub content: Range<usize>,
    /// Column of the fence.
    pub column: usize,
    /// Shebang line of its shell; empty for `sh`.
    pub shebang: &'static str,
    /// The opening line of the item's next script fence, which is not run.
    pub second: Option<Range<usize>>,
}

impl ShellFence {
    fn of(shell: &str, content: Range<usize>, column: usize) -> ShellFence {
        let shebang = if shell == "bash" {
            "#!/usr/bin/env bash\n"
        } else {
            ""
        };
        ShellFence {
            content,
            column,
            shebang,
            second: None,
        }
    }
}

/// A task-list line with everything indented under it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<'t> {
    /// From the start of its first line to the end of its last non-blank line, line end included.
    pub span: Range<usize>,
    /// Number of its first line, from 1.
    pub line: usize,
    pub id: Option<TaskId>,
    pub status: Status,
    /// Whether the box is ticked.
    pub checked: bool,
    /// Index of the innermost lane around it.
    pub lane: Option<usize>,
    /// Whether it changes in place and never moves: it is part of another item, or doesn't begin its line.
    pub nested: bool,
    /// Index of the item that it is part of.
    pub within: Option<usize>,
    /// Whether it has an error, so that it is neither claimed nor changed.
    pub quarantined: bool,
    /// Whether it belongs to a person: under a heading of theirs among lanes, in progress without a claim,
    /// struck or commented out, or below such a line. Agents skip it, and it has no error.
    pub aside: bool,
    /// Its own priority, else 2.
    pub priority: u8,
    /// Starts of headings above it that state keys in brackets.
    stating: Stating,
    /// Its own role; see also `Front::role`.
    pub role: Option<Cow<'t, str>>,
    pub not_before: Option<Timestamp>,
    /// When it is due.
    pub due: Option<Timestamp>,
    pub after: Vec<TaskId>,
    /// Dependencies by other names than IDs.
    pub after_names: Vec<Cow<'t, str>>,
    pub parent: Option<TaskId>,
    /// The character between the brackets.
    pub box_char: usize,
    /// The range of ID, title and metadata: the first line behind the box, trimmed.
    pub head: Range<usize>,
    pub title: Range<usize>,
    /// The metadata parenthesis at the end of the first line, parentheses included.
    pub metadata: Option<Range<usize>>,
    /// Its `yaml task` block.
    pub block: Option<Box<TaskBlock>>,
    /// Its first shell fence.
    pub shell: Option<Box<ShellFence>>,
    /// Column of its bullet.
    pub(crate) column: usize,
    /// Column at which its content begins.
    pub(crate) content_column: usize,
    pub(crate) said: Said,
}

impl<'t> Item<'t> {
    /// Returns the span of the ID on the first line.
    pub fn id_span(&self) -> Option<Range<usize>> {
        self.id
            .as_ref()
            .map(|id| self.head.start..self.head.start + id.as_str().len())
    }

    /// Returns the opening line of its second `sh` or `bash` fence, which is not run.
    pub fn second_script(&self) -> Option<Range<usize>> {
        self.shell.as_ref()?.second.clone()
    }

    /// Returns the indent that a script in its `block` needs, if one stands elsewhere or is not written `sh`.
    pub fn script_indent(&self, block: &str) -> Option<usize> {
        let is_script = |line: &str| {
            let info = line.trim_start().strip_prefix("```");
            info.is_some_and(|info| markup::shell_of(&info.to_lowercase()).is_some())
        };
        Some(self.content_column).filter(|_| self.shell.is_none() && block.lines().any(is_script))
    }

    /// Returns true if its title is struck out, as that of a cancelled item is.
    pub(crate) fn is_struck_out(&self, text: &str) -> bool {
        text[..self.title.start].ends_with(markup::STRIKE)
            && text[self.title.end..].starts_with(markup::STRIKE)
    }

    /// Makes its parenthesis part of its title. Only for one with no key but dependencies or a role.
    pub(super) fn leave_keys(&mut self) {
        self.title.end = self.metadata.take().map_or(self.title.end, |span| span.end);
        self.role = None;
    }

    /// Returns the item with its parenthesis as part of its title.
    pub(crate) fn with_keys_in_title(&self) -> Item<'t> {
        let mut item = self.clone();
        item.leave_keys();
        item
    }

    /// Returns true if it has more than the words of a step, so that it may be claimed by itself.
    pub fn is_more_than_words(&self) -> bool {
        self.id.is_some() || self.metadata.is_some() || self.block.is_some() || self.checked
    }
}

impl<'t> Document<'t> {
    /// Returns the number of items per status; struck or commented-out ones are counted separately.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        let mut counts: BTreeMap<Status, usize> = BTreeMap::new();
        let mut left_out: BTreeMap<&'static str, usize> = BTreeMap::new();
        for at in 0..self.count() {
            match self.counted_apart(at) {
                Some(name) => *left_out.entry(name).or_default() += 1,
                None => *counts.entry(self.status_at(at)).or_default() += 1,
            }
        }
        counts
            .into_iter()
            .map(|(status, count)| (status.as_str(), count))
            .chain(left_out)
            .collect()
    }

    /// Returns the document with these states of its items.
    pub fn with_states(mut self, states: Arc<States>) -> Document<'t> {
        (self.states, self.remembered) = (states, OnceCell::new());
        let mut list = mem::take(&mut self.items);
        if let ItemList::Read(items) = &mut list {
            items.iter_mut().for_each(|item| self.remember(item));
        }
        self.items = list;
        self
    }

    /// Returns the states of its items, kept apart from the text.
    pub fn states(&self) -> &States {
        &self.states
    }

    pub fn text(&self) -> &'t str {
        self.text
    }

    pub fn front(&self) -> &Front {
        &self.front
    }

    /// Returns the front matter as written.
    pub fn front_text(&self) -> &'t str {
        &self.text[..self.body]
    }

    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Returns the text of the lane's heading.
    pub fn lane_name(&self, lane: &Lane) -> &'t str {
        markup::heading_text(self.text, lane.heading.clone())
    }

    /// Returns the heading of the item's lane.
    pub fn heading_of(&self, item: &Item<'_>) -> Option<&'t str> {
        item.lane.map(|lane| self.lane_name(&self.lanes()[lane]))
    }

    pub fn has_lanes(&self) -> bool {
        !self.lane_set.is_empty() || self.front.says_lanes().is_some()
    }

    /// Returns the item's exact text, from its first line through its last non-blank line, line end included.
    pub fn block(&self, item: &Item<'_>) -> &'t str {
        &self.text[item.span.clone()]
    }

    pub fn title(&self, item: &Item<'_>) -> &'t str {
        &self.text[item.title.clone()]
    }

    /// Returns the item's name for people: its ID, else its title.
    pub fn called(&self, item: &Item<'_>) -> String {
        item.id
            .as_ref()
            .map_or_else(|| self.title(item).to_owned(), TaskId::to_string)
    }

    /// Returns the item as a task, with the queue's defaults. `id` is its own, or the one that it is about to get.
    pub fn task(&self, item: &Item<'_>, id: TaskId) -> Task {
        self.task_as(item, id, item.status)
    }

    /// As [`Document::task`], with a status that the caller supplies.
    pub fn task_as(&self, item: &Item<'_>, id: TaskId, status: Status) -> Task {
        let mut keys = self.fields(item);
        if let Some(own) = item.id.as_ref().and_then(|id| self.states.get(id)) {
            keys = own.over(keys);
        }
        Task {
            description: self.description(item),
            parent: self.parent_of(item).cloned(),
            ..Task::read(
                id,
                self.title(item),
                State::read(status, &keys),
                &keys,
                &self.front,
            )
        }
    }

    /// Returns the item's known keys, whether they have a meaning in its status or not.
    pub fn fields(&self, item: &Item<'_>) -> Fields<'t> {
        let known = |entry: KeyEntry<'t>| match entry.meaning {
            Meaning::Known(key, field) => Some((key, field)),
            _ => None,
        };
        Fields(self.entries(item).into_iter().filter_map(known).collect())
    }

    /// As [`Document::task`], for an item that may have no ID yet: it then gets a placeholder ID.
    pub fn task_of(&self, item: &Item<'_>) -> Task {
        self.task(item, item.id.clone().unwrap_or_else(TaskId::nobody))
    }

    /// Returns the item's parent: the one that it names, else the one that it is part of.
    pub fn parent_of<'a>(&'a self, item: &'a Item<'_>) -> Option<&'a TaskId> {
        item.parent
            .as_ref()
            .or_else(|| self.item(item.within?).id.as_ref())
    }

    /// Returns the item's keys as written, the title line's before the task block's. Of a repeated key the
    /// first counts.
    pub fn entries(&self, item: &Item<'_>) -> Vec<KeyEntry<'t>> {
        let (mut seen, mut entries) = (0, Vec::new());
        let mut once = |entry: KeyEntry<'t>| {
            let bit = entry.meaning.bit();
            if seen & bit == 0 {
                seen |= bit;
                entries.push(entry);
            }
        };
        if let Some(span) = &item.metadata {
            metadata::read_parenthesis(self.text, span.clone(), &mut once);
        }
        if let Some(block) = &item.block {
            // An unreadable block was reported when the document was read.
            let _ = metadata::read_block(self.text, block, &mut once);
        }
        entries
    }

    /// Returns the content of the item's first `sh` or `bash` fence, with `\n` line ends: the script for the
    /// shell runner. That of a `bash` fence begins with a shebang line.
    pub fn shell(&self, item: &Item<'_>) -> Option<String> {
        let ShellFence {
            content,
            column,
            shebang,
            ..
        } = item.shell.as_deref()?;
        let lines = self.text[content.clone()]
            .split_inclusive('\n')
            .map(|line| markup::dedent(line, *column));
        let script = lines.collect::<String>().replace("\r\n", "\n");
        Some(if script.starts_with("#!") {
            script
        } else {
            format!("{shebang}{script}")
        })
    }

    /// Returns the indented text under the title, dedented, without the `yaml task` block. It has `\n` line
    /// ends and no blank lines around it.
    pub fn description(&self, item: &Item<'_>) -> String {
        let texts: Vec<String> = self
            .description_parts(item)
            .into_iter()
            .map(|part| markup::dedented(&self.text[part], item.content_column))
            .map(|text| markup::trim_blank_lines(&text).to_owned())
            .filter(|text| !text.is_empty())
            .collect();
        markup::without_margin(&texts.join("\n\n"))
    }

    /// Returns the ranges of the description: above the `yaml task` block, and below it.
    pub(crate) fn description_parts(&self, item: &Item<'_>) -> [Range<usize>; 2] {
        let first_line_end = markup::line_end(self.text, item.head.end, item.span.end);
        let hole = item
            .block
            .as_ref()
            .map_or(item.span.end..item.span.end, |block| block.fences.clone());
        [first_line_end..hole.start, hole.end..item.span.end]
    }

    /// Returns the item's place, as far as its status depends on it.
    pub fn place(&self, item: &Item<'_>) -> LanePlace {
        let lane = item.lane.map(|index| self.lanes[index].kind);
        match lane {
            lane if item.nested => LanePlace::Nested(lane),
            Some(lane) => LanePlace::Lane(lane),
            None => LanePlace::Loose,
        }
    }
}
