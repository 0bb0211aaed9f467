//! A queue document, read: front matter, lanes and items, each as spans of the text.
//!
//! Reading never fails; what is wrong comes back beside the document. Knows nothing of files, leases or the other
//! documents of a board. `specs/queue-document.md` is the contract; `change` and `add` are in `edit.rs`.

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
pub use alone::{Written, parse_alone};
use headed::{Headed, Stating};
pub use keys::STAYS_TITLE;
pub use outline::Outline;
pub use own_state::meaning_of_mark;
#[cfg(test)]
pub(crate) use reader::parse_as_markdown;
pub use reader::{open, parse, title_of};

mod all_names;
mod alone;
mod apart;
mod around;
mod below;
mod guards;
mod headed;
mod items;
mod kanban;
mod keys;
mod named;
mod names;
mod outline;
mod own_state;
mod phrase;
mod reader;
mod stated;
mod under;
mod waits;

/// A queue document and what stands where in it.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    pub(crate) text: &'t str,
    /// Where the front matter ends.
    pub body: usize,
    front: Front,
    lanes: Vec<Lane>,
    pub(crate) lane_set: LaneSet,
    items: ItemList<'t>,
    /// The last list item of the document's top level that is or holds an item.
    pub(crate) tail: Option<Tail>,
    /// The last place up to which line ends were counted, and how many there were.
    counted: Cell<(usize, usize)>,
    /// Boxes with a mark of their owner's own: no items.
    pub own: Vec<Range<usize>>,
    /// Headings that are no lanes, with the indices of the items right under each; nothing where the items are not read.
    sections: Vec<(Range<usize>, Vec<usize>)>,
    /// The indices of the items that go by a name, if somebody has asked.
    names: OnceCell<AllNames>,
    /// Where lines begin that state something, likewise.
    heads: OnceCell<Vec<usize>>,
    /// It may say so of something, likewise.
    says_before: OnceCell<bool>,
    /// By the index of each item what says that it is to come before it, if somebody has asked.
    order: OnceCell<BTreeMap<usize, Vec<String>>>,
    /// The same of those that go by an ID, of a document whose items are read.
    ids: OnceCell<BTreeMap<TaskId, Vec<usize>>>,
    /// For IDs that no item has, in the text.
    searches: Searches,
    /// What is remembered of the items apart from the text.
    states: Arc<States>,
    /// The items that are not completed and have such states, by index, if somebody has asked.
    remembered: OnceCell<BTreeMap<usize, TaskId>>,
}

/// The items of a document.
#[derive(Clone, Debug)]
enum ItemList<'t> {
    Read(Vec<Item<'t>>),
    /// Of a plain document, where no item is a part of another.
    Outlined {
        places: Arc<[ItemPlace]>,
        /// Each once somebody has asked for it.
        read: Vec<OnceCell<Box<Item<'t>>>>,
        /// All of them, if somebody has asked for all.
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
    /// Nothing where only the item itself tells, and likewise with its priority.
    status: Option<Status>,
    priority: Option<u8>,
    may_be_due: bool,
}

/// The heading that an item stands under: of a lane, or of none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Under {
    Lane(usize),
    Other {
        number: usize,
        /// It is meant to name a lane.
        is_slip: bool,
    },
}

/// A heading that names a lane, and what is under it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    pub kind: LaneKind,
    /// The heading's lines.
    pub heading: Range<usize>,
    /// From the heading's end to the next heading of its level or above; lanes under deeper headings lie within it.
    pub body: Range<usize>,
    /// End of the paragraphs that stand under the heading before anything else, or of the heading.
    pub(crate) lead_end: usize,
    /// Something else has followed those paragraphs.
    has_led: bool,
    pub(crate) tail: Option<Tail>,
}

/// A list item of the document's top level behind which another can be put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub start: usize,
    pub end: usize,
    /// Blank lines set it apart from the list item before it.
    pub is_spaced: bool,
}

/// A fence with a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellFence {
    /// The lines between.
    pub content: Range<usize>,
    /// How many columns are before it.
    pub column: usize,
    /// What names its shell; empty for `sh`.
    pub shebang: &'static str,
    /// The opening line of the item's next one, which nothing runs.
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

/// One task-list line with all that is indented under it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<'t> {
    /// From the start of its first line to the end of its last that isn't blank, line end included.
    pub span: Range<usize>,
    /// Of its first line, from 1.
    pub line: usize,
    pub id: Option<TaskId>,
    pub status: Status,
    /// The box is ticked.
    pub checked: bool,
    /// Index of the innermost lane that it stands in.
    pub lane: Option<usize>,
    /// It changes in place and never moves: it is part of another item, or doesn't begin its line.
    pub nested: bool,
    /// Index of the item that it is a part of.
    pub within: Option<usize>,
    /// Something is wrong with it: neither to be claimed nor touched.
    pub quarantined: bool,
    /// It is a person's own: under a heading of theirs among lanes, in progress without having been claimed, struck or commented out,
    /// or below such a line. Nobody works it, and nothing is wrong with it.
    pub aside: bool,
    /// Its own, else 2.
    pub priority: u8,
    /// Where headings above it begin that state keys in brackets.
    stating: Stating,
    /// Its own; see also `Front::role`.
    pub role: Option<Cow<'t, str>>,
    pub not_before: Option<Timestamp>,
    /// When it is to be done.
    pub due: Option<Timestamp>,
    pub after: Vec<TaskId>,
    /// What it waits for by other names than IDs.
    pub after_names: Vec<Cow<'t, str>>,
    pub parent: Option<TaskId>,
    /// The character between the brackets.
    pub box_char: usize,
    /// Where ID, title and metadata stand: the first line behind the box, trimmed.
    pub head: Range<usize>,
    pub title: Range<usize>,
    /// The parenthesis at the end of the first line, both parentheses included.
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
    /// Of the ID on the first line.
    pub fn id_span(&self) -> Option<Range<usize>> {
        self.id
            .as_ref()
            .map(|id| self.head.start..self.head.start + id.as_str().len())
    }

    /// The opening line of its second `sh` or `bash` fence, which nothing runs.
    pub fn second_script(&self) -> Option<Range<usize>> {
        self.shell.as_ref()?.second.clone()
    }

    /// How many blanks belong before a script in its `block`, where one stands otherwise or is not written `sh`.
    pub fn script_indent(&self, block: &str) -> Option<usize> {
        let is_script = |line: &str| {
            let info = line.trim_start().strip_prefix("```");
            info.is_some_and(|info| markup::shell_of(&info.to_lowercase()).is_some())
        };
        Some(self.content_column).filter(|_| self.shell.is_none() && block.lines().any(is_script))
    }

    /// Its title is struck out, as that of a cancelled item is.
    pub(crate) fn is_struck_out(&self, text: &str) -> bool {
        text[..self.title.start].ends_with(markup::STRIKE)
            && text[self.title.end..].starts_with(markup::STRIKE)
    }

    /// Its parenthesis, which says nothing but what it waits for, or its role, is part of its title.
    pub(super) fn leave_keys(&mut self) {
        self.title.end = self.metadata.take().map_or(self.title.end, |span| span.end);
        self.role = None;
    }

    /// The same with its parenthesis as a part of its title.
    pub(crate) fn with_keys_in_title(&self) -> Item<'t> {
        let mut item = self.clone();
        item.leave_keys();
        item
    }

    /// It says more than a step of another item does, which is only words: it may be taken by itself.
    pub fn is_more_than_words(&self) -> bool {
        self.id.is_some() || self.metadata.is_some() || self.block.is_some() || self.checked
    }
}

impl<'t> Document<'t> {
    /// How many items have which status; those that are struck or commented out count apart.
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

    /// The same document, whose items have these states.
    pub fn with_states(mut self, states: Arc<States>) -> Document<'t> {
        (self.states, self.remembered) = (states, OnceCell::new());
        let mut list = mem::take(&mut self.items);
        if let ItemList::Read(items) = &mut list {
            items.iter_mut().for_each(|item| self.remember(item));
        }
        self.items = list;
        self
    }

    /// What is remembered of its items apart from the text.
    pub fn states(&self) -> &States {
        &self.states
    }

    pub fn text(&self) -> &'t str {
        self.text
    }

    pub fn front(&self) -> &Front {
        &self.front
    }

    /// As it stands.
    pub fn front_text(&self) -> &'t str {
        &self.text[..self.body]
    }

    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// The text of its heading.
    pub fn lane_name(&self, lane: &Lane) -> &'t str {
        markup::heading_text(self.text, lane.heading.clone())
    }

    /// The text of the heading of the lane that the item is in.
    pub fn heading_of(&self, item: &Item<'_>) -> Option<&'t str> {
        item.lane.map(|lane| self.lane_name(&self.lanes()[lane]))
    }

    pub fn has_lanes(&self) -> bool {
        !self.lane_set.is_empty() || self.front.says_lanes().is_some()
    }

    /// The item's exact text, from its first line through its last that isn't blank, with that one's line end.
    pub fn block(&self, item: &Item<'_>) -> &'t str {
        &self.text[item.span.clone()]
    }

    pub fn title(&self, item: &Item<'_>) -> &'t str {
        &self.text[item.title.clone()]
    }

    /// What people call it: its ID, else its title.
    pub fn called(&self, item: &Item<'_>) -> String {
        item.id
            .as_ref()
            .map_or_else(|| self.title(item).to_owned(), TaskId::to_string)
    }

    /// All that the item says, with the queue's defaults. `id` is its own, or the one that it is about to get.
    pub fn task(&self, item: &Item<'_>, id: TaskId) -> Task {
        self.task_as(item, id, item.status)
    }

    /// As [`Document::task`], of an item whose status is known from elsewhere.
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

    /// What the item's known keys say, whatever they mean in its status.
    pub fn fields(&self, item: &Item<'_>) -> Fields<'t> {
        let known = |entry: KeyEntry<'t>| match entry.meaning {
            Meaning::Known(key, field) => Some((key, field)),
            _ => None,
        };
        Fields(self.entries(item).into_iter().filter_map(known).collect())
    }

    /// As [`Document::task`], of an item that may have no ID yet: then it goes by a name of nobody's.
    pub fn task_of(&self, item: &Item<'_>) -> Task {
        self.task(item, item.id.clone().unwrap_or_else(TaskId::nobody))
    }

    /// The item that this one is a child of: the one that it names, else the one that it is a part of.
    pub fn parent_of<'a>(&'a self, item: &'a Item<'_>) -> Option<&'a TaskId> {
        item.parent
            .as_ref()
            .or_else(|| self.item(item.within?).id.as_ref())
    }

    /// The item's keys as they stand, the title line's before the task block's; of a key that is there twice the first
    /// counts.
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
            // A block that can't be read was reported when the document was.
            let _ = metadata::read_block(self.text, block, &mut once);
        }
        entries
    }

    /// What the item's first `sh` or `bash` fence says, with `\n` line ends: the script that the shell runner runs. That of a
    /// `bash` fence says so in its first line.
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

    /// The indented text under the title without the `yaml task` block, dedented, with `\n` line ends and without blank
    /// lines around it.
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

    /// Where it stands: above the `yaml task` block, and below it.
    pub(crate) fn description_parts(&self, item: &Item<'_>) -> [Range<usize>; 2] {
        let first_line_end = markup::line_end(self.text, item.head.end, item.span.end);
        let hole = item
            .block
            .as_ref()
            .map_or(item.span.end..item.span.end, |block| block.fences.clone());
        [first_line_end..hole.start, hole.end..item.span.end]
    }

    /// Where an item stands, as far as its status is concerned.
    pub fn place(&self, item: &Item<'_>) -> LanePlace {
        let lane = item.lane.map(|index| self.lanes[index].kind);
        match lane {
            lane if item.nested => LanePlace::Nested(lane),
            Some(lane) => LanePlace::Lane(lane),
            None => LanePlace::Loose,
        }
    }
}
