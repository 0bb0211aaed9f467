//! Merges the first line and the keys of an item that both sides changed: box, ID, title and each key by itself.

use std::borrow::Cow;

use serde_yaml::Value;

use super::merge_item::{One, Region, Side};
use crate::id::TaskId;
use crate::markup::{self, STRIKE};
use crate::metadata::{self, Field, Key, Meaning, Owner};
use crate::yaml;

/// A key of one version, as written.
struct Held<'t> {
    name: &'t str,
    raw: &'t str,
    meaning: Meaning<'t>,
    place: KeyPlace,
}

/// The place of a key: on the title line, or in the `yaml task` block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyPlace {
    Line,
    Block,
}

impl Held<'_> {
    fn is_as(&self, other: &Held<'_>) -> bool {
        match (&self.meaning, &other.meaning) {
            (Meaning::Known(_, one), Meaning::Known(_, two)) => one == two,
            _ => self.raw == other.raw,
        }
    }

    /// Returns its elements, if it is a list.
    fn list(&self) -> Option<Vec<Cow<'_, str>>> {
        match &self.meaning {
            Meaning::Known(_, Field::Texts(texts)) => Some(texts.clone()),
            Meaning::Known(_, Field::Moments(moments)) => Some(
                moments
                    .iter()
                    .map(|moment| Cow::Borrowed(moment.as_str()))
                    .collect(),
            ),
            Meaning::Known(_, Field::Ids(ids, names)) => {
                let ids = ids.iter().map(|id| Cow::Borrowed(id.as_str()));
                Some(
                    ids.chain(names.iter().map(|name| Cow::Borrowed(name.trim())))
                        .collect(),
                )
            }
            _ => None,
        }
    }

    /// Returns the value on one line, fit for the `place`.
    fn spelling(&self, place: KeyPlace) -> String {
        let is_one_line = !self.raw.contains(['\n', '\r']);
        // Its lines have another indent than its beginning, so they can't be read by themselves.
        if (!is_one_line || self.raw.starts_with("- "))
            && let Some(parts) = self.list()
        {
            return metadata::flow(&parts.iter().map(|part| Value::from(&**part)).collect());
        }
        let is_fit = is_one_line && (place == KeyPlace::Block || self.place == KeyPlace::Line);
        match yaml::read::<Value>(self.raw) {
            Ok(value) if !is_fit => metadata::flow(&value),
            _ => self.raw.to_owned(),
        }
    }
}

/// The merged value of a key.
enum Spelling {
    As(Side),
    List(Vec<String>),
    Nothing,
}

/// Merges the first line, and the lines of the `yaml task` block. If the statuses differ,
/// the item gets that of `winner`; `id` is its merged ID.
pub(super) fn line_and_block(
    base: Option<One<'_, '_>>,
    ours: One<'_, '_>,
    theirs: One<'_, '_>,
    winner: Option<Side>,
    id: Option<&TaskId>,
    marks: &mut Vec<(String, String)>,
) -> (String, Option<String>) {
    let text = ours.document.text();
    let (item, their_item, base_item) = (ours.item, theirs.item, base.map(|base| base.item));

    let is_checked = match winner {
        Some(Side::Ours) => item.checked,
        Some(Side::Theirs) => their_item.checked,
        None if base_item.is_some_and(|base| base.checked == item.checked) => their_item.checked,
        None => item.checked,
    };
    let check = match is_checked {
        same if same == item.checked => &text[item.box_char..=item.box_char],
        true => "x",
        false => " ",
    };
    let title = match (base.map(One::title), ours.title(), theirs.title()) {
        (was, ours, theirs) if ours == theirs || was == Some(theirs) => ours,
        (was, ours, theirs) if was == Some(ours) => theirs,
        (None, ours, theirs) if ours.starts_with(theirs) => ours,
        (None, ours, theirs) if theirs.starts_with(ours) => theirs,
        (_, ours, theirs) => {
            marks.push(("title".into(), theirs.to_owned()));
            ours
        }
    };
    let (my_tail, their_tail) = (ours.tail(), theirs.tail());
    let tail = match base.map_or("", One::tail) {
        was if my_tail == their_tail || was == their_tail => my_tail,
        was if was == my_tail => their_tail,
        _ => {
            marks.push(("end of the line".into(), their_tail.trim().to_owned()));
            my_tail
        }
    };
    let opening = if item.is_struck_out(text) { STRIKE } else { "" };
    let mut title_end = opening.len() + title.len();
    let as_it_stands = format!(
        "{opening}{title}{}",
        &text[item.title.end.min(item.head.end)..item.head.end]
    );
    let old_line = metadata::bare(&as_it_stands, title_end);
    let mut line = old_line.clone();

    let keys = [base.map_or_else(Vec::new, held), held(ours), held(theirs)];
    let [old_block, my_block, their_block] =
        [base.and_then(block_of), block_of(ours), block_of(theirs)];
    // Comments among the keys must stay, too.
    let is_theirs = my_block.is_none() || (my_block == old_block && their_block.is_some());
    let mut block = if is_theirs { their_block } else { my_block };
    if my_block.is_none() && old_block.is_some() {
        block = None;
    }
    let mut block = block.map(str::to_owned);
    for name in names(&keys) {
        let [was, ours, theirs] = [0, 1, 2].map(|side| find(&keys[side], name));
        let wanted = wanted(was, ours, theirs, winner, marks);
        set(
            (&mut line, title_end),
            &mut block,
            name,
            &wanted,
            [ours, theirs],
            if is_theirs { theirs } else { ours },
        );
    }
    if !opening.is_empty() && !metadata::line_has(&line, title_end, Key::Status.as_str()) {
        line.replace_range(title_end..title_end + STRIKE.len(), "");
        line.replace_range(..STRIKE.len(), "");
        title_end -= STRIKE.len();
    }
    line = match line == old_line {
        true => as_it_stands,
        false if id.is_none() => line,
        false => metadata::legible(&line, title_end),
    };
    let lead = if base.is_some_and(|base| base.lead() == ours.lead()) {
        theirs.lead()
    } else {
        ours.lead()
    };
    let gap = &text[item.box_char + 1..item.head.start.max(item.box_char + 2)];
    let gap = if gap.ends_with(']') {
        format!("{gap} ")
    } else {
        gap.to_owned()
    };
    let name = id.map_or_else(String::new, |id| format!("{id}: "));
    let mut lines = format!(
        "{lead}{check}{gap}{name}{line}{}",
        &text[item.head.end..ours.first_line_end()]
    );
    let end = markup::without_line_end(&lines[..markup::line_end(&lines, 0, lines.len())]).len();
    lines.replace_range(end - my_tail.len()..end, tail);
    (lines, block)
}

/// Returns the stretches under the first line.
pub(super) fn bodies<'v, 't>(
    base: Option<One<'v, 't>>,
    ours: One<'v, 't>,
    theirs: One<'v, 't>,
) -> [Region<'v, 't>; 3] {
    let mut parts = [
        base.map_or_else(Region::default, Region::under),
        Region::under(ours),
        Region::under(theirs),
    ];
    // If one side moved the keys to the title line, no block stays, or only the other side's.
    match [0, 1, 2].map(|side| parts[side].block.is_some()) {
        [_, true, false] => parts[0].is_block_hidden = true,
        [true, false, true] => parts
            .iter_mut()
            .for_each(|part| part.is_block_hidden = true),
        _ => {}
    }
    parts
}

fn block_of<'t>(one: One<'_, 't>) -> Option<&'t str> {
    Some(&one.document.text()[one.item.block.as_ref()?.fences.clone()])
}

fn held<'t>(one: One<'_, 't>) -> Vec<Held<'t>> {
    let held = one
        .document
        .entries(one.item)
        .into_iter()
        .map(|entry| Held {
            name: entry.name,
            raw: one.document.text()[entry.value].trim_end(),
            meaning: entry.meaning,
            place: if entry.at < one.item.head.end {
                KeyPlace::Line
            } else {
                KeyPlace::Block
            },
        });
    held.collect()
}

fn find<'k, 't>(keys: &'k [Held<'t>], name: &str) -> Option<&'k Held<'t>> {
    keys.iter().find(|key| key.name == name)
}

/// Returns ours in their order, then the others.
fn names<'t>([base, ours, theirs]: &[Vec<Held<'t>>; 3]) -> Vec<&'t str> {
    let mut names: Vec<&str> = Vec::new();
    for key in ours.iter().chain(theirs).chain(base) {
        if !names.contains(&key.name) {
            names.push(key.name);
        }
    }
    names
}

fn as_side(side: Side, ours: Option<&Held<'_>>, theirs: Option<&Held<'_>>) -> Spelling {
    let key = if side == Side::Ours { ours } else { theirs };
    key.map_or(Spelling::Nothing, |_| Spelling::As(side))
}

fn wanted(
    was: Option<&Held<'_>>,
    ours: Option<&Held<'_>>,
    theirs: Option<&Held<'_>>,
    winner: Option<Side>,
    marks: &mut Vec<(String, String)>,
) -> Spelling {
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
        let stays = mine
            .iter()
            .filter(|part| !old.contains(part) || other.contains(part));
        let comes = other
            .iter()
            .filter(|part| !old.contains(part) && !mine.contains(part));
        return Spelling::List(
            stays
                .chain(comes)
                .map(|part| part.clone().into_owned())
                .collect(),
        );
    }
    let name = ours.or(theirs).map_or("", |key| key.name);
    if Key::named(name).is_none_or(|key| key.owner() == Owner::Person) {
        let kept_out = if winner == Some(Side::Theirs) {
            ours
        } else {
            theirs
        };
        marks.push((
            name.to_owned(),
            kept_out.map_or_else(|| "removed".to_owned(), |key| key.spelling(KeyPlace::Line)),
        ));
    }
    as_side(winner.unwrap_or(Side::Ours))
}

/// Sets the wanted value in line and block. The line, with its title up to there, is ours; `block_key` is the
/// value of the block's side.
fn set(
    (line, title): (&mut String, usize),
    block: &mut Option<String>,
    name: &str,
    wanted: &Spelling,
    [ours, theirs]: [Option<&Held<'_>>; 2],
    block_key: Option<&Held<'_>>,
) {
    let on_line = metadata::line_has(line, title, name);
    let in_block = !on_line
        && block
            .as_deref()
            .is_some_and(|block| metadata::block_has(content(block).1, name));
    let now = match (on_line, in_block) {
        (true, _) => ours,
        (_, true) => block_key,
        _ => None,
    };
    let value = match wanted {
        Spelling::Nothing => None,
        Spelling::List(parts) => {
            let parts = parts
                .iter()
                .map(|part| Value::from(part.as_str()))
                .collect();
            Some(metadata::flow(&Value::Sequence(parts)))
        }
        Spelling::As(side) => {
            let key = if *side == Side::Ours { ours } else { theirs };
            if let (Some(key), Some(now)) = (key, now)
                && key.is_as(now)
            {
                return;
            }
            key.map(|key| {
                key.spelling(if in_block {
                    KeyPlace::Block
                } else {
                    KeyPlace::Line
                })
            })
        }
    };
    match block {
        Some(fenced) if in_block => {
            let (before, inner, after) = content(fenced);
            if let Some(changed) = metadata::set_in_block(inner, name, value.as_deref()) {
                *fenced = format!("{before}{changed}{after}");
            }
        }
        _ => *line = metadata::set_in_line(line, title, name, value.as_deref()),
    }
}

/// Returns a fenced block's opening line, the lines between, and the closing one, if there is one.
fn content(fenced: &str) -> (&str, &str, &str) {
    let first = markup::line_end(fenced, 0, fenced.len());
    let last = markup::line_start(fenced, first, fenced.trim_end().len().max(first));
    (&fenced[..first], &fenced[first..last], &fenced[last..])
}
