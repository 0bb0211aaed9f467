//! One item that both sides changed: box, ID, title, keys and text, each merged by itself.

use std::borrow::Cow;

use serde_yaml::Value;

use super::written::{MARK, written};
use super::{Conflict, Kind, Merge, Part, Side, Version};
use crate::board::markup;
use crate::board::metadata::{self, Field, Key, Meaning, Owner};

/// A key of one version, as it stands there.
struct Held<'t> {
    name: &'t str,
    raw: &'t str,
    meaning: Meaning<'t>,
    /// It stands on the title line.
    on_line: bool,
}

impl Held<'_> {
    fn is_as(&self, other: &Held<'_>) -> bool {
        match (&self.meaning, &other.meaning) {
            (Meaning::Known(_, one), Meaning::Known(_, two)) => one == two,
            _ => self.raw == other.raw,
        }
    }

    /// Its parts, if it is a list.
    fn list(&self) -> Option<Vec<Cow<'_, str>>> {
        match &self.meaning {
            Meaning::Known(_, Field::Texts(texts)) => Some(texts.clone()),
            Meaning::Known(_, Field::Moments(moments)) => {
                Some(moments.iter().map(|moment| Cow::Borrowed(moment.as_str())).collect())
            }
            Meaning::Known(_, Field::Ids(ids)) => Some(ids.iter().map(|id| Cow::Borrowed(id.as_str())).collect()),
            _ => None,
        }
    }

    /// The value on one line, fit for the title line if `on_line`.
    fn spelling(&self, on_line: bool) -> String {
        let is_one_line = !self.raw.contains(['\n', '\r']);
        // Its lines stand further in or out than its beginning, so they can't be read by themselves.
        if (!is_one_line || self.raw.starts_with("- "))
            && let Some(parts) = self.list()
        {
            return metadata::flow(&parts.iter().map(|part| Value::from(&**part)).collect());
        }
        let is_fit = is_one_line && (!on_line || self.on_line);
        match serde_yaml::from_str::<Value>(self.raw) {
            Ok(value) if !is_fit => metadata::flow(&value),
            _ => self.raw.to_owned(),
        }
    }
}

/// What a key is to be.
enum Wanted {
    As(Side),
    List(Vec<String>),
    Nothing,
}

/// Whose state an item gets that both sides have in a state of its own.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub side: Side,
    /// Who has approved the work, if that is more than one side knows.
    pub approvals: Option<Vec<String>>,
}

impl<'t> Merge<'_, 't> {
    /// The item's text. `winner` is the side whose status it gets, if they differ, `state` that of which it gets the whole
    /// state, if both have changed it.
    pub(super) fn fields(
        &mut self,
        base: Option<usize>,
        mine: usize,
        other: usize,
        winner: Option<Side>,
        state: Option<&Taken>,
    ) -> String {
        let marks_before = self.conflicts.len();
        let mut marks = Vec::new();
        let (line, block) = self.line_and_block(base, mine, other, winner, state, &mut marks);
        let parts = self.bodies(base, mine, other);
        let pieces = self.region(&parts, Kind::Body(self.ours.item(mine).content_column));
        let item = self.ours.item(mine);
        let newline = markup::newline(self.ours.text());
        let block = block.unwrap_or_default();
        let mut text = line;
        let body = written(&pieces, &block, newline, false);
        if !body.is_empty() && !text.ends_with(['\n', '\r']) {
            text.push_str(newline);
        }
        text.push_str(&body);
        let indent = " ".repeat(item.content_column);
        for (what, theirs) in marks {
            self.conflicts.push(Conflict { item: None, what: what.clone() });
            let mark = format!("{}{what}: {} -->", MARK, theirs.replace("-->", "--&gt;"));
            if text.contains(&mark) {
                continue;
            }
            if !text.ends_with(['\n', '\r']) {
                text.push_str(newline);
            }
            text.push_str(&format!("{indent}{mark}{newline}"));
        }
        let name = item.id.as_ref().map_or(self.ours.title(mine), |id| id.as_str()).to_owned();
        for conflict in self.conflicts[marks_before..].iter_mut().filter(|conflict| conflict.item.is_none()) {
            conflict.item = Some(name.clone());
        }
        text
    }

    /// The first line, and the lines of the `yaml task` block.
    fn line_and_block(
        &self,
        base: Option<usize>,
        mine: usize,
        other: usize,
        winner: Option<Side>,
        state: Option<&Taken>,
        marks: &mut Vec<(String, String)>,
    ) -> (String, Option<String>) {
        let text = self.ours.text();
        let (item, their_item) = (self.ours.item(mine), self.theirs.item(other));
        let base_item = base.map(|base| self.base.item(base));

        let was_checked = base_item.map(|item| item.checked);
        let is_checked = match winner {
            Some(Side::Ours) => item.checked,
            Some(Side::Theirs) => their_item.checked,
            None if was_checked == Some(item.checked) => their_item.checked,
            None => item.checked,
        };
        let check = match is_checked {
            same if same == item.checked => &text[item.box_char..=item.box_char],
            true => "x",
            false => " ",
        };
        let id = match (&item.id, &their_item.id) {
            (None, theirs) => theirs.as_ref(),
            (ours, None) if base_item.is_some_and(|base| base.id == *ours) => None,
            (ours, _) => ours.as_ref(),
        };
        let titles = (base.map(|base| self.base.title(base)), self.ours.title(mine), self.theirs.title(other));
        let title = match titles {
            (was, ours, theirs) if ours == theirs || was == Some(theirs) => ours,
            (was, ours, theirs) if was == Some(ours) => theirs,
            (_, ours, theirs) => {
                marks.push(("title".into(), theirs.to_owned()));
                ours
            }
        };
        let head = format!("{title}{}", &text[item.title.end.min(item.head.end)..item.head.end]);

        let keys = [
            base.map_or_else(Vec::new, |base| held(&self.base, base)),
            held(&self.ours, mine),
            held(&self.theirs, other),
        ];
        let [old_block, my_block, their_block] = [
            base.and_then(|base| block_of(&self.base, base)),
            block_of(&self.ours, mine),
            block_of(&self.theirs, other),
        ];
        // Comments among the keys are somebody's words too.
        let is_theirs = my_block.is_none() || (my_block == old_block && their_block.is_some());
        let is_gone = my_block.is_none() && old_block.is_some();
        let mut block = if is_gone {
            None
        } else if is_theirs {
            their_block
        } else {
            my_block
        }
        .map(str::to_owned);
        let mut line = head;
        for name in names(&keys) {
            let [was, ours, theirs] = [0, 1, 2].map(|side| find(&keys[side], name));
            let of_state = state.filter(|_| Key::named(name).is_some_and(|key| key.owner() == Owner::State));
            let wanted = match of_state {
                Some(Taken { approvals: Some(approvals), .. }) if name == Key::Approvals.as_str() => {
                    Wanted::List(approvals.clone())
                }
                Some(Taken { side, .. }) => as_side(*side, ours, theirs),
                None => wanted(was, ours, theirs, winner, marks),
            };
            set(&mut line, &mut block, name, &wanted, [ours, theirs], if is_theirs { theirs } else { ours });
        }
        let lead = &text[item.span.start..item.box_char];
        let after_box = item.box_char + 1..item.head.start.max(item.box_char + 2);
        let gap = &text[after_box];
        let gap = if gap.ends_with(']') { format!("{gap} ") } else { gap.to_owned() };
        let name = id.map_or_else(String::new, |id| format!("{id}: "));
        let end = markup::line_end(text, item.head.end, item.span.end.max(item.head.end));
        (format!("{lead}{check}{gap}{name}{line}{}", &text[item.head.end..end]), block)
    }

    fn bodies(&self, base: Option<usize>, mine: usize, other: usize) -> [Part; 3] {
        let body = |version: &Version<'t>, index: Option<usize>| -> Part {
            let Some(index) = index else { return Part::default() };
            let item = version.item(index);
            let start = markup::line_end(version.text(), item.head.end, item.span.end.max(item.head.end));
            let mut part = version.part(start..item.span.end.max(start), Some(index));
            part.block = item.block.as_ref().map(|block| block.fences.clone());
            part
        };
        let mut parts = [body(&self.base, base), body(&self.ours, Some(mine)), body(&self.theirs, Some(other))];
        let has = [0, 1, 2].map(|side| parts[side].block.is_some());
        // Keys that one side has taken to the title line leave no block behind, or leave the other side's.
        match has {
            [_, true, false] => parts[0].is_block_hidden = true,
            [true, false, true] => parts.iter_mut().for_each(|part| part.is_block_hidden = true),
            _ => {}
        }
        parts
    }
}

fn block_of<'t>(version: &Version<'t>, index: usize) -> Option<&'t str> {
    let block = version.item(index).block.as_ref()?;
    Some(&version.text()[block.fences.clone()])
}

fn held<'t>(version: &Version<'t>, index: usize) -> Vec<Held<'t>> {
    let item = version.item(index);
    let mut held = Vec::new();
    version.document.entries(item, &mut |entry| {
        let on_line = entry.at < item.head.end;
        let raw = version.text()[entry.value.clone()].trim_end();
        held.push(Held { name: entry.name, raw, meaning: entry.meaning, on_line });
    });
    held
}

fn find<'k, 't>(keys: &'k [Held<'t>], name: &str) -> Option<&'k Held<'t>> {
    keys.iter().find(|key| key.name == name)
}

/// Ours in their order, then the others.
fn names<'t>([base, ours, theirs]: &[Vec<Held<'t>>; 3]) -> Vec<&'t str> {
    let mut names: Vec<&str> = Vec::new();
    for key in ours.iter().chain(theirs).chain(base) {
        if !names.contains(&key.name) {
            names.push(key.name);
        }
    }
    names
}

fn as_side(side: Side, ours: Option<&Held<'_>>, theirs: Option<&Held<'_>>) -> Wanted {
    let key = if side == Side::Ours { ours } else { theirs };
    key.map_or(Wanted::Nothing, |_| Wanted::As(side))
}

fn wanted(
    was: Option<&Held<'_>>,
    ours: Option<&Held<'_>>,
    theirs: Option<&Held<'_>>,
    winner: Option<Side>,
    marks: &mut Vec<(String, String)>,
) -> Wanted {
    let same = |one: Option<&Held<'_>>, two: Option<&Held<'_>>| match (one, two) {
        (Some(one), Some(two)) => one.is_as(two),
        (None, None) => true,
        _ => false,
    };
    let as_side = |side| as_side(side, ours, theirs);
    if same(ours, theirs) || same(was, theirs) {
        return as_side(Side::Ours);
    }
    if same(was, ours) {
        return as_side(Side::Theirs);
    }
    if let (Some(mine), Some(other)) = (ours.and_then(Held::list), theirs.and_then(Held::list)) {
        let old = was.and_then(Held::list).unwrap_or_default();
        let stays = mine.iter().filter(|part| !old.contains(part) || other.contains(part));
        let comes = other.iter().filter(|part| !old.contains(part) && !mine.contains(part));
        return Wanted::List(stays.chain(comes).map(|part| part.clone().into_owned()).collect());
    }
    let name = ours.or(theirs).map_or("", |key| key.name);
    if Key::named(name).is_none_or(|key| key.owner() == Owner::Person) {
        let kept_out = if winner == Some(Side::Theirs) { ours } else { theirs };
        marks.push((name.to_owned(), kept_out.map_or_else(|| "removed".to_owned(), |key| key.spelling(true))));
    }
    as_side(winner.unwrap_or(Side::Ours))
}

/// Makes line and block say what is wanted. The line is ours; `block_key` is what the block's side says.
fn set(
    line: &mut String,
    block: &mut Option<String>,
    name: &str,
    wanted: &Wanted,
    [ours, theirs]: [Option<&Held<'_>>; 2],
    block_key: Option<&Held<'_>>,
) {
    let on_line = metadata::line_has(line, name);
    let in_block = !on_line && block.as_deref().is_some_and(|block| metadata::block_has(content(block).1, name));
    let now = match (on_line, in_block) {
        (true, _) => ours,
        (_, true) => block_key,
        _ => None,
    };
    let value = match wanted {
        Wanted::Nothing => None,
        Wanted::List(parts) => {
            let parts = parts.iter().map(|part| Value::from(part.as_str())).collect();
            Some(metadata::flow(&Value::Sequence(parts)))
        }
        Wanted::As(side) => {
            let key = if *side == Side::Ours { ours } else { theirs };
            if let (Some(key), Some(now)) = (key, now)
                && key.is_as(now)
            {
                return;
            }
            key.map(|key| key.spelling(!in_block))
        }
    };
    match block {
        Some(fenced) if in_block => {
            let (before, inner, after) = content(fenced);
            if let Some(changed) = metadata::set_in_block(inner, name, value.as_deref()) {
                *fenced = format!("{before}{changed}{after}");
            }
        }
        _ => *line = metadata::set_in_line(line, name, value.as_deref()),
    }
}

/// A fenced block's opening line, the lines between, and the closing one, if it isn't left open at once.
fn content(fenced: &str) -> (&str, &str, &str) {
    let first = markup::line_end(fenced, 0, fenced.len());
    let last = markup::line_start(fenced, first, fenced.trim_end().len().max(first));
    (&fenced[..first], &fenced[first..last], &fenced[last..])
}
