//! What whoever saved a queue knew of earlier saves: an editor that holds an old text goes on with what it saved itself. Knows
//! nothing of what Tavern did.

use std::collections::{HashMap, HashSet};

use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::entry::{Entry, TextChange};
use super::redo::said;
use super::since::reading;
use tavern_core::document::{Document, Item, parse, parse_alone};
use tavern_core::markup;
use tavern_core::merge::{Named, bare, merge, prose};
use tavern_core::near;
use tavern_core::rewrite::set_item;
use tavern_core::task::TaskId;
use tavern_core::text::{Edit, apply};

/// Lines of more bytes are only seen to be corrected by what is typed between their words.
const LONGEST: usize = 1000;

/// What was saved.
pub(super) struct Saved<'s, 't> {
    document: &'s Document<'t>,
    prose: String,
    /// Its items without an ID that the newest text has not under their title: they may have had another.
    untold: Vec<&'s Item<'t>>,
    /// What several items of the newest text go by: which of them one is its words alone tell.
    doubles: HashSet<TaskId>,
}

impl<'s, 't> Saved<'s, 't> {
    /// What `document` has, where `newest` is there.
    pub(super) fn of(document: &'s Document<'t>, newest: &Document<'_>) -> Saved<'s, 't> {
        let nameless = |item: &&Item<'_>| item.id.is_none();
        let told: HashSet<&str> = newest
            .items()
            .iter()
            .filter(nameless)
            .map(|item| newest.title(item))
            .collect();
        let is_untold = |item: &&Item<'_>| nameless(item) && !told.contains(document.title(item));
        let untold = document.items().iter().filter(is_untold).collect();
        let ids = newest.items().iter().filter_map(|item| item.id.as_ref());
        let doubles = ids
            .filter(|id| newest.named(id).len() > 1)
            .cloned()
            .collect();
        Saved {
            document,
            prose: prose(document.text()),
            untold,
            doubles,
        }
    }

    /// It was saved by somebody who knew of what was done by hand: what that brought is there, if only with others between its
    /// words, or corrected, or what it took is not. `None`: it does not tell.
    pub(super) fn knows(&self, entry: &Entry) -> Option<bool> {
        let alone = |text| parse_alone(text, self.document.front());
        let is_known = match &entry.change {
            TextChange::Nothing => return None,
            TextChange::Prose { before, after } => is_gone_on(
                [before, after, &self.prose].map(|text| said(text).map(str::trim).collect()),
            ),
            TextChange::Added { after, .. } => self.find(&alone(after)).is_some(),
            TextChange::Removed { before, .. } => self.find(&alone(before)).is_none(),
            TextChange::Edited {
                before,
                after,
                moved,
            } => {
                let (before, after) = (alone(before), alone(after));
                // Whoever lacks it has not seen what became of it.
                let Some(item) = self.find(&after).or_else(|| self.find(&before)) else {
                    return Some(false);
                };
                if moved.is_some_and(|(from, _)| item.status == from) {
                    return Some(false);
                }
                let [before, after] = [&before, &after].map(|document| {
                    document
                        .items()
                        .first()
                        .map_or_else(Vec::new, |item| parts(document, item))
                });
                // That it lacks what was taken tells nothing where it stands otherwise than before and since.
                if moved.is_some_and(|(_, to)| item.status != to)
                    && after.iter().all(|part| before.contains(part))
                {
                    return None;
                }
                is_gone_on([before, after, parts(self.document, item)])
            }
        };
        Some(is_known)
    }

    /// The `words` between the items as whoever saved knew them. What saves that they know of brought stands where it was brought to,
    /// else where the save has it, and what those took out is not there.
    pub(super) fn with_known_lines<'e>(
        &self,
        words: &str,
        known: impl Iterator<Item = &'e Entry>,
    ) -> String {
        let (mut brought, mut taken) = (Vec::new(), HashSet::new());
        for entry in known {
            if let TextChange::Prose { before, after } = &entry.change {
                let (before, after): (Vec<&str>, Vec<&str>) =
                    (said(before).collect(), said(after).collect());
                taken.extend(
                    before
                        .iter()
                        .filter(|line| !after.contains(line))
                        .map(|line| line.trim()),
                );
                for (at, said) in after
                    .iter()
                    .enumerate()
                    .filter(|(_, line)| !before.contains(line))
                {
                    let [below, above] = [at.checked_sub(1), at.checked_add(1)]
                        .map(|at| after.get(at?).map(|line| line.trim()));
                    brought.push(BroughtLine { said, below, above });
                }
            }
        }
        let brought_as = |line: &str| {
            let same = brought
                .iter()
                .find(|brought| brought.said.trim() == line.trim());
            let goes_on = || brought.iter().find(|brought| goes_on(line, brought.said));
            same.or_else(goes_on)
                .or_else(|| brought.iter().find(|brought| corrects(line, brought.said)))
        };
        let (old, new) = (paragraphs(words), paragraphs(&self.prose));
        let [old_lines, new_lines] =
            [&old, &new].map(|all| all.iter().map(|(line, _)| line.trim()).collect::<Vec<_>>());
        let mut lines = String::new();
        for change in capture_diff_slices(Algorithm::Patience, &old_lines, &new_lines) {
            let is_same = change.tag() == DiffTag::Equal;
            let kept = old[change.old_range()]
                .iter()
                .filter(|(line, _)| is_same || !taken.contains(line.trim()));
            let mut kept: Vec<KnownLine<'_>> = kept
                .map(|(line, empty)| KnownLine {
                    line: (*line).to_owned(),
                    empty,
                    is_brought: false,
                })
                .collect();
            for (line, empty) in new[change.new_range()].iter().filter(|_| !is_same) {
                let Some(brought) = brought_as(line) else {
                    continue;
                };
                let place = |next: Option<&str>| {
                    kept.iter().position(|kept| Some(kept.line.trim()) == next)
                };
                // What was brought below the same line stands as the save has it.
                let below = |at: usize| {
                    at + 1
                        + kept[at + 1..]
                            .iter()
                            .take_while(|kept| kept.is_brought)
                            .count()
                };
                let at = place(brought.below)
                    .map(below)
                    .or_else(|| place(brought.above))
                    .unwrap_or(kept.len());
                let line = format!("{}{}", brought.said, &line[line.trim_end().len()..]);
                kept.insert(
                    at,
                    KnownLine {
                        line,
                        empty,
                        is_brought: true,
                    },
                );
            }
            lines.extend(kept.iter().flat_map(|kept| [&kept.line, kept.empty]));
        }
        lines
    }

    /// The item of a text of it is there, if only without its ID.
    pub(super) fn has(&self, text: &str) -> bool {
        self.find(&parse_alone(text, self.document.front()))
            .is_some()
    }

    /// The item that is alone in `document`: by its ID, else by its title, or one that goes on from that or corrects it.
    fn find(&self, document: &Document<'_>) -> Option<&'s Item<'t>> {
        let item = document.items().first()?;
        let title = document.title(item);
        if let Some(id) = item
            .id
            .as_ref()
            .filter(|id| self.document.find(id).is_some())
        {
            let named = self.document.named(id);
            let reads_so = |own: &&'s Item<'t>| {
                is_gone_on([Vec::new(), parts(document, item), parts(self.document, own)])
            };
            return if self.doubles.contains(id) {
                named.into_iter().find(reads_so)
            } else {
                named.first().copied()
            };
        }
        if title.is_empty() {
            return None;
        }
        // From before it got its ID.
        let mut nameless = self
            .document
            .items()
            .iter()
            .filter(|other| item.id.is_none() || other.id.is_none());
        let mut untold = self.untold.iter().copied();
        let goes_on = |other: &&Item<'_>| {
            let longer = self.document.title(other);
            longer.starts_with(title) || goes_on(longer, title) || corrects(longer, title)
        };
        nameless
            .find(|other| self.document.title(other) == title)
            .or_else(|| untold.find(goes_on))
    }
}

/// A line that a save has brought.
struct BroughtLine<'e> {
    said: &'e str,
    /// The line that it was put below.
    below: Option<&'e str>,
    /// The one that it was put above.
    above: Option<&'e str>,
}

/// A line of those that whoever saved knew.
struct KnownLine<'w> {
    line: String,
    /// The empty ones behind it.
    empty: &'w str,
    is_brought: bool,
}

/// Lines, each with the empty ones behind it.
fn paragraphs(text: &str) -> Vec<(&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let line = &rest[..rest.find('\n').map_or(rest.len(), |end| end + 1)];
        let behind = &rest[line.len()..];
        let words = behind.trim_start();
        let empty = &behind[..behind[..behind.len() - words.len()]
            .rfind('\n')
            .map_or(0, |end| end + 1)];
        rest = &behind[empty.len()..];
        (!line.is_empty()).then_some((line, empty))
    })
    .collect()
}

/// Box, ID, title, keys and lines of an item.
fn parts<'t>(document: &Document<'t>, item: &Item<'t>) -> Vec<&'t str> {
    let text = document.text();
    let keys = document
        .entries(item)
        .into_iter()
        .filter(|key| key.at < item.head.end);
    let keys = keys.map(|key| key.at..key.value.end);
    let head = [item.box_char - 1..item.box_char + 2, item.title.clone()]
        .into_iter()
        .chain(item.id_span())
        .chain(keys);
    let lines = &text
        [markup::line_end(text, item.head.end, item.span.end.max(item.head.end))..item.span.end];
    head.map(|span| &text[span])
        .chain(said(lines).map(str::trim))
        .collect()
}

/// `now` has all that `after` has more than `before`, if only corrected, or else lacks what it has less.
fn is_gone_on([before, after, now]: [Vec<&str>; 3]) -> bool {
    let [was, is] = [&before, &after].map(|parts| parts.iter().copied().collect::<HashSet<&str>>());
    let mut brought = after.iter().filter(|part| !was.contains(*part)).peekable();
    let taken: Vec<&&str> = before.iter().filter(|part| !is.contains(*part)).collect();
    if brought.peek().is_none() {
        return taken.iter().all(|part| !now.contains(part));
    }
    // What is as near to how it was before shows that, and corrects nothing.
    let is_nearer = |now: &str, part: &str| {
        let from = strsim::osa_distance(now, part);
        taken
            .iter()
            .all(|was| from < strsim::osa_distance(now, was))
    };
    let others = now
        .iter()
        .filter(|now| !was.contains(*now) && !is.contains(*now));
    brought.all(|part| {
        now.iter().any(|now| goes_on(now, part))
            || others
                .clone()
                .any(|now| corrects(now, part) && is_nearer(now, part))
    })
}

/// `line` has all words of `part` in their order, if only as the beginnings of longer ones: somebody has typed between them.
fn goes_on(line: &str, part: &str) -> bool {
    has_words(
        line.split_whitespace(),
        part.split_whitespace(),
        |word, part| word.starts_with(part),
    )
}

/// `line` has all words of `part` in their order, some spelled a little otherwise: somebody has corrected them, or ticked a step.
/// To compare long lines letter by letter takes too long.
fn corrects(line: &str, part: &str) -> bool {
    let words =
        |line| str::split_whitespace(line).filter(|word| !["[", "]", "[x]", "[X]"].contains(word));
    let is_it = |word: &str, part: &str| word.starts_with(part) || near::corrects(word, part);
    line.len().max(part.len()) <= LONGEST && has_words(words(line), words(part), is_it)
}

fn has_words<'w>(
    mut words: impl Iterator<Item = &'w str>,
    mut parts: impl Iterator<Item = &'w str>,
    is_it: impl Fn(&str, &str) -> bool,
) -> bool {
    parts.all(|part| words.any(|word| is_it(word, part)))
}

/// `text` with what was done by hand to an item; `None` if it is there, or has nothing to be done to. What is `named` by how it
/// read is named by how it reads then.
pub(super) fn done_again(text: &str, entry: &Entry, named: &mut Named) -> Option<String> {
    let TextChange::Edited {
        before,
        after,
        moved,
    } = &entry.change
    else {
        return None;
    };
    let (document, _) = parse(text);
    let own = entry.task.as_ref().and_then(|id| document.find(id));
    let item = own
        .or_else(|| reading(&document, before))
        .or_else(|| nameless(&document, before))?;
    let status = moved
        .filter(|(from, _)| *from == item.status)
        .map(|(_, to)| to);
    // It may not have had its ID then: what Tavern wrote is read as that only behind one.
    let id = entry
        .task
        .as_ref()
        .filter(|_| item.id.is_none())
        .map(|id| format!("{id}: "));
    let without_id = |text: String| match &id {
        Some(id) => text.replacen(id, "", 1),
        None => text,
    };
    let [before, after] = [before, after].map(|text| bare(text));
    let block = document.block(item);
    let was = bare(block);
    let mut own = block.to_owned();
    if let Some(id) = &id {
        own.insert_str(item.title.start - item.span.start, id);
    }
    let merged = merge(&before, &bare(&own), &after, &|_| false);
    // What came before it the saver need not know.
    let block = without_id(if merged.conflicts.is_empty() {
        merged.text
    } else {
        after
    });
    if let Some(id) = named.remove(&was) {
        named.insert(bare(&block), id);
    }
    Some(apply(
        text,
        &set_item(&document, Some(item), Some((&block, status))),
    ))
}

/// `saved`, in which the items of `ours` have their IDs that a person has given others, which nobody else `is_known` by: they read the
/// same otherwise, and there is one of each.
pub(super) fn with_former_ids(
    saved: &str,
    ours: &str,
    is_known: &dyn Fn(&TaskId) -> bool,
) -> String {
    let (theirs, mine) = (parse(saved).0, parse(ours).0);
    let is_new = |id: &TaskId| mine.find(id).is_none() && !is_known(id);
    let is_former = |id: &TaskId| theirs.find(id).is_none();
    let (new, former) = (by_words(&theirs, &is_new), by_words(&mine, &is_former));
    let edits = new.into_iter().filter_map(|(words, new)| {
        match (&*new, former.get(&words).map(Vec::as_slice)) {
            ([new], Some([former])) => {
                Some(Edit::replace(new.id_span()?, former.id.as_ref()?.as_str()))
            }
            _ => None,
        }
    });
    apply(saved, &edits.collect::<Vec<_>>())
}

/// The items whose ID `is_it`, by what they read without that.
fn by_words<'d, 't>(
    document: &'d Document<'t>,
    is_it: &dyn Fn(&TaskId) -> bool,
) -> HashMap<String, Vec<&'d Item<'t>>> {
    let mut items: HashMap<String, Vec<&Item<'t>>> = HashMap::new();
    for item in document.items().iter().filter(|item| !item.nested) {
        if let Some(id) = item.id.as_ref().filter(|id| is_it(id)) {
            items
                .entry(bare(document.block(item)).replacen(id.as_str(), "", 1))
                .or_default()
                .push(item);
        }
    }
    items
}

/// The item of this title, before it got its ID.
fn nameless<'d, 't>(document: &'d Document<'t>, block: &str) -> Option<&'d Item<'t>> {
    let alone = parse_alone(block, document.front());
    let title = alone.title(alone.items().first()?);
    document
        .items()
        .iter()
        .find(|item| item.id.is_none() && document.title(item) == title)
}
