//! What can be mended of queue documents without asking anybody what was meant.
//!
//! Each step is read again: it stands only if no document has a problem that it had not before, and every item reads as
//! before but for what was mended. Knows all documents of a board at once, but no files, leases or log.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::board::check::check;
use crate::board::document::{Document, Item, parse};
use crate::board::edit::Patch;
use crate::board::lane::LaneKind;
use crate::board::markup;
use crate::board::state::Facts;
use crate::board::task::{Status, Task, TaskId};
use crate::board::text::{Edit, apply};

/// A document of the board.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// By which messages call it; fresh IDs are made from it.
    pub name: &'a str,
    pub text: &'a str,
    pub extent: Extent,
}

/// How much of a document may be mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It is only read, for what the others say of it.
    Nothing,
    /// What is wrong with it.
    Faults,
    /// Also items that have no ID get one.
    FaultsAndIds,
}

/// A document as it is when mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    pub text: String,
    /// What was done, a line each.
    pub done: Vec<String>,
}

/// Whose an ID is that several items go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Nothing is known of this item.
    None,
    /// The log's history under the ID is this item's.
    History,
    /// Somebody holds it.
    Held,
}

/// Mends the pages; gives as many as there are. `right` knows an item's right to its ID, by page and text; `archived`
/// knows items that are in no page.
pub fn mend(
    pages: &[Page<'_>],
    right: &dyn Fn(usize, &Document<'_>, &Item<'_>) -> Right,
    archived: &dyn Fn(&TaskId) -> Option<Status>,
) -> Vec<Mended> {
    let mended = pages.iter().map(|page| Mended { text: page.text.to_owned(), done: Vec::new() });
    let mut bench = Bench { pages, archived, mended: mended.collect() };
    let may_mend: Vec<usize> = (0..pages.len()).filter(|page| pages[*page].extent != Extent::Nothing).collect();
    for page in &may_mend {
        bench.step(*page, same_versions(&bench.mended[*page].text), reads_without_doubles);
        bench.step(*page, misspelt_lanes(&bench.mended[*page].text), reads_but_for_lanes);
    }
    for (page, steps) in bench.doubles(right) {
        if may_mend.contains(&page) {
            bench.step(page, steps, reads_but_for_ids);
        }
    }
    for page in may_mend.into_iter().filter(|page| pages[*page].extent == Extent::FaultsAndIds) {
        let steps = bench.nameless(page);
        bench.step(page, steps, reads_but_for_ids);
    }
    bench.mended
}

/// Edits of one document that belong together, and what they do.
struct Step {
    edits: Vec<Edit>,
    what: String,
}

struct Bench<'a> {
    pages: &'a [Page<'a>],
    archived: &'a dyn Fn(&TaskId) -> Option<Status>,
    mended: Vec<Mended>,
}

impl Bench<'_> {
    /// Does the steps, in the order of the text, as far as they make nothing worse.
    fn step(&mut self, page: usize, steps: Vec<Step>, reads: fn(&Document<'_>, &Document<'_>) -> bool) {
        if steps.is_empty() {
            return;
        }
        let all: Vec<Edit> = steps.iter().flat_map(|step| step.edits.clone()).collect();
        if self.put(page, &all, reads) {
            self.mended[page].done.extend(steps.into_iter().map(|step| step.what));
            return;
        }
        // One after the other, the last first, so that what is before stays where it is.
        let mut done = Vec::new();
        for step in steps.into_iter().rev() {
            if self.put(page, &step.edits, reads) {
                done.push(step.what);
            }
        }
        self.mended[page].done.extend(done.into_iter().rev());
    }

    fn put(&mut self, page: usize, edits: &[Edit], reads: fn(&Document<'_>, &Document<'_>) -> bool) -> bool {
        let before = self.faults();
        let text = apply(&self.mended[page].text, edits);
        let is_same = reads(&parse(&self.mended[page].text).0, &parse(&text).0);
        if !is_same {
            return false;
        }
        let old = std::mem::replace(&mut self.mended[page].text, text);
        let is_worse = self.faults().iter().any(|(fault, count)| before.get(fault).is_none_or(|before| before < count));
        if is_worse {
            self.mended[page].text = old;
        }
        !is_worse
    }

    /// What is wrong, by page and code.
    fn faults(&self) -> HashMap<(usize, &'static str), usize> {
        let (documents, mut problems): (Vec<_>, Vec<_>) = self.mended.iter().map(|page| parse(&page.text)).unzip();
        let named: Vec<_> = self.pages.iter().map(|page| page.name).zip(&documents).collect();
        for (page, problem) in check(&named, self.archived).problems {
            problems[page].push(problem);
        }
        let mut faults = HashMap::new();
        for (page, problems) in problems.iter().enumerate() {
            problems.iter().for_each(|problem| *faults.entry((page, problem.code)).or_default() += 1);
        }
        faults
    }

    /// IDs that nobody goes by: the same for the same text, so that two who mend it make the same, and a dry run tells
    /// what the run makes.
    fn mint(&self, page: usize, text: &str, given: &mut HashSet<TaskId>) -> TaskId {
        let seed = xxh3_64_with_seed(self.pages[page].name.as_bytes(), 0);
        let id = (0..).map(|turn| {
            let random = xxh3_64_with_seed(text.as_bytes(), seed.wrapping_add(turn));
            TaskId::mint(random, |_| false)
        });
        let mut free = id.filter(|id| !given.contains(id) && (self.archived)(id).is_none());
        let id = free.next().expect("there are more IDs than items");
        given.insert(id.clone());
        id
    }

    fn given(&self) -> HashSet<TaskId> {
        let ids = |page: &Mended| parse(&page.text).0.items().iter().filter_map(|item| item.id.clone()).collect();
        self.mended.iter().flat_map(|page| -> Vec<TaskId> { ids(page) }).collect()
    }

    /// All but one of the items that go by the same ID get a fresh one. It stays with whom somebody holds, else with
    /// whom the log knows by it, else with the first; what depends on it means that one.
    fn doubles(&self, right: &dyn Fn(usize, &Document<'_>, &Item<'_>) -> Right) -> Vec<(usize, Vec<Step>)> {
        let documents: Vec<Document<'_>> = self.mended.iter().map(|page| parse(&page.text).0).collect();
        let mut by_id: HashMap<&TaskId, Vec<(usize, usize)>> = HashMap::new();
        for (page, document) in documents.iter().enumerate() {
            for (index, item) in document.items().iter().enumerate() {
                if let Some(id) = &item.id {
                    by_id.entry(id).or_default().push((page, index));
                }
            }
        }
        let mut given = self.given();
        let mut doubles: Vec<((usize, usize), &TaskId)> = Vec::new();
        for (id, places) in by_id.into_iter().filter(|(_, places)| places.len() > 1) {
            let right = |(page, index): (usize, usize)| right(page, &documents[page], &documents[page].items()[index]);
            let best = places.iter().map(|place| right(*place)).max().unwrap_or(Right::None);
            let keeper = places.iter().find(|place| right(**place) == best).copied();
            let others = places.iter().filter(|place| Some(**place) != keeper && right(**place) < Right::Held);
            doubles.extend(others.map(|place| (*place, id)));
        }
        doubles.sort_unstable();
        let mut steps: Vec<(usize, Vec<Step>)> = Vec::new();
        for ((page, index), id) in doubles {
            let (document, item) = (&documents[page], &documents[page].items()[index]);
            let fresh = self.mint(page, document.block(item), &mut given);
            let what = format!("line {}: `{id}` stands twice; this one is `{fresh}`", item.line);
            let step = Step { edits: named(document, item, fresh), what };
            match steps.last_mut().filter(|(last, _)| *last == page) {
                Some((_, steps)) => steps.push(step),
                None => steps.push((page, vec![step])),
            }
        }
        steps
    }

    /// What is still to be done gets an ID. A step of another item is part of that one, and what stands in the dead
    /// letter lane without ever having been tried is left for a person to see.
    fn nameless(&self, page: usize) -> Vec<Step> {
        let (document, _) = parse(&self.mended[page].text);
        let mut given = self.given();
        let is_nameless = |item: &&Item<'_>| {
            item.id.is_none() && item.within.is_none() && !item.quarantined && !item.status.is_ended()
        };
        let nameless = document.items().iter().filter(is_nameless);
        let steps = nameless.map(|item| {
            let fresh = self.mint(page, document.block(item), &mut given);
            let what = format!("line {}: this gets the ID `{fresh}`", item.line);
            Step { edits: named(&document, item, fresh), what }
        });
        steps.collect()
    }
}

fn named(document: &Document<'_>, item: &Item<'_>, id: TaskId) -> Vec<Edit> {
    document.change(item, &Patch { id: Some(id), ..Patch::default() })
}

/// Conflicts of git whose two versions are the same.
fn same_versions(text: &str) -> Vec<Step> {
    let (document, problems) = parse(text);
    if !problems.iter().any(|problem| problem.code == "conflict-markers") {
        return Vec::new();
    }
    let conflicts = markup::conflicts(text, document.body).into_iter().filter(|conflict| conflict.is_closed);
    let steps = conflicts.filter_map(|conflict| {
        let mut versions = [String::new(), String::new(), String::new()];
        // Ours, the base where git shows it, theirs.
        let mut version = 0;
        for line in text[conflict.span.clone()].split_inclusive('\n').skip(1) {
            match line.get(..7) {
                Some("|||||||") if version == 0 => version = 1,
                Some("=======") if version < 2 => version = 2,
                Some(">>>>>>>") => break,
                _ => versions[version].push_str(line),
            }
        }
        let [ours, _, theirs] = versions;
        let line = 1 + text[..conflict.span.start].matches('\n').count();
        let what = format!("line {line}: the two versions are the same; one stays");
        (version == 2 && ours == theirs).then(|| Step { edits: vec![Edit::replace(conflict.span, ours)], what })
    });
    steps.collect()
}

/// Headings that are no lanes, but nearly.
fn misspelt_lanes(text: &str) -> Vec<Step> {
    let (_, problems) = parse(text);
    let lost = problems.iter().filter(|problem| problem.code == "unknown-lane");
    let steps = lost.filter_map(|problem| {
        let heading = &text[problem.span.clone()];
        // The first line's words, without the marks before and behind them.
        let line = heading.lines().next().unwrap_or_default();
        let words = line.trim_start_matches('#').trim_start();
        let start = problem.span.start + line.len() - words.len();
        let words = words.trim_end_matches('#').trim_end();
        let kind = LaneKind::nearest(words)?;
        let line = 1 + text[..problem.span.start].matches('\n').count();
        let what = format!("line {line}: the heading `{words}` is the lane `{}`", kind.name());
        Some(Step { edits: vec![Edit::replace(start..start + words.len(), kind.name())], what })
    });
    steps.collect()
}

/// What an item says, but for its ID and what is read from where it stands.
fn said(document: &Document<'_>, item: &Item<'_>) -> (Task, Facts) {
    let nobody: TaskId = "T-0".parse().expect("it is an ID");
    let (mut task, facts) = document.task_and_facts(item, nobody);
    // The parts of an item are in its text, with their IDs.
    task.description.clear();
    task.parent.clone_from(&item.parent);
    (task, facts)
}

fn reads(old: &Document<'_>, new: &Document<'_>, is_same: impl Fn(&Item<'_>, &Item<'_>) -> bool) -> bool {
    let (before, after) = (old.items(), new.items());
    before.len() == after.len()
        && old.front() == new.front()
        && before.iter().zip(after).all(|(was, is)| {
            said(old, was) == said(new, is)
                && was.checked == is.checked
                && was.nested == is.nested
                && was.within == is.within
                && (was.quarantined || !is.quarantined)
                && is_same(was, is)
        })
}

fn reads_but_for_ids(old: &Document<'_>, new: &Document<'_>) -> bool {
    reads(old, new, |was, is| was.status == is.status && was.line == is.line)
}

fn reads_but_for_lanes(old: &Document<'_>, new: &Document<'_>) -> bool {
    reads(old, new, |was, is| was.id == is.id && (was.quarantined || was.status == is.status))
}

/// The items that were sound are there, in their order.
fn reads_without_doubles(old: &Document<'_>, new: &Document<'_>) -> bool {
    let told = |document: &Document<'_>, item: &Item<'_>| {
        (document.block(item).trim_end().to_owned(), item.status, item.id.clone(), item.nested)
    };
    let mut after = new.items().iter().map(|item| told(new, item));
    let mut sound = old.items().iter().filter(|item| !item.quarantined).map(|item| told(old, item));
    sound.all(|was| after.any(|is| is == was)) && old.front() == new.front()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(text: &str) -> Mended {
        let page = Page { name: "main", text, extent: Extent::FaultsAndIds };
        mend(&[page], &|_, _, _| Right::None, &|_| None).remove(0)
    }

    #[test]
    fn what_is_safe_is_mended() {
        let rows = [
            // Doubles: the first keeps the ID.
            ("- [ ] T-4: a\n- [ ] T-4: b\n", "- [ ] T-4: a\n- [ ] T-…: b\n"),
            ("- [ ] T-4: a\n  - [ ] T-4: b\n", "- [ ] T-4: a\n  - [ ] T-…: b\n"),
            // Lanes.
            ("# Pendng\n- [ ] T-1: a\n# Done\n", "# Pending\n- [ ] T-1: a\n# Done\n"),
            ("# Done\n\nPendnig ##\n=====\n\n- [ ] T-1: a\n", "# Done\n\nPending ##\n=====\n\n- [ ] T-1: a\n"),
            ("# Notes\n- [ ] T-1: a\n# Done\n", "# Notes\n- [ ] T-1: a\n# Done\n"),
            // Equal versions, with and without the base; others stay.
            ("<<<<<<< a\n- [ ] T-1: a\n=======\n- [ ] T-1: a\n>>>>>>> b\n", "- [ ] T-1: a\n"),
            ("<<<<<<< a\n- [ ] T-1: a\n||||||| o\n- [ ] x\n=======\n- [ ] T-1: a\n>>>>>>> b\n", "- [ ] T-1: a\n"),
            ("<<<<<<< a\n- [ ] a\n=======\n- [ ] b\n>>>>>>> c\n", "<<<<<<< a\n- [ ] a\n=======\n- [ ] b\n>>>>>>> c\n"),
            // IDs: not for steps, nor for what has ended.
            ("- [ ] a\n  - [ ] step\n- [x] b\n", "- [ ] T-…: a\n  - [ ] step\n- [x] b\n"),
            ("- [ ] a\r\n- [ ] a\r\n", "- [ ] T-…: a\r\n- [ ] T-…: a\r\n"),
            ("```\n- [ ] a\n```\n", "```\n- [ ] a\n```\n"),
        ];
        for (text, expected) in rows {
            let found = mended(text);
            let is_fresh = |word: &str| word.len() == 7 && word.starts_with("T-") && word.ends_with(':');
            let words = found.text.split_inclusive([' ', '\n', '\r']).map(|word| {
                if is_fresh(word.trim_end()) { word.replace(word.trim_end(), "T-…:") } else { word.to_owned() }
            });
            assert_eq!(words.collect::<String>(), expected, "{found:?}");
            assert_eq!(found.done.is_empty(), text == expected, "{found:?}");
            assert_eq!(mended(text), found, "the same each time");
            assert_eq!(mended(&found.text).done, Vec::<String>::new(), "nothing is left to do");
        }
    }

    #[test]
    fn nothing_is_made_worse() {
        // As a lane it would make the item wait for one that is dead.
        let text = "# Pending\n- [ ] T-1: a (after: T-2)\n# Ded Letter\n- [ ] T-2: b\n";
        let (_, problems) = parse(text);
        assert_eq!(problems.len(), 1);
        assert_eq!(mended(text).text, text);
    }

    #[test]
    fn who_has_the_better_right_keeps_the_id() {
        let text = "- [ ] T-4: a\n- [ ] T-4: b\n";
        let page = || [Page { name: "main", text, extent: Extent::Faults }];
        for right in [Right::History, Right::Held] {
            let of_b = |_: usize, document: &Document<'_>, item: &Item<'_>| match document.title(item) {
                "b" => right,
                _ => Right::None,
            };
            let found = mend(&page(), &of_b, &|_| None).remove(0);
            assert!(found.text.ends_with("- [ ] T-4: b\n") && !found.text.contains("T-4: a"), "{found:?}");
        }
        let both = mend(&page(), &|_, _, _| Right::Held, &|_| None).remove(0);
        assert_eq!(both.text, text);
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_mended(pieces in proptest::collection::vec(0..12usize, 0..14)) {
            let known = [
                "- [ ] T-4: a\n", "- [ ] a (after: T-4)\n", "  - [ ] T-4: b\n", "# Pendng\n", "# Done\n", "<<<<<<< a\n",
                "=======\n", ">>>>>>> b\n", "```\n", "\n", "- [x] T-5: c\r\n", "> - [ ] d\n",
            ];
            let text: String = pieces.iter().map(|piece| known[*piece]).collect();
            let found = mended(&text);
            let count = |text: &str| parse(text).1.len();
            assert!(count(&found.text) <= count(&text), "{text:?} {found:?}");
            assert_eq!(found.done.is_empty(), found.text == text);
            if !text.contains("<<<") {
                assert_eq!(parse(&found.text).0.items().len(), parse(&text).0.items().len());
            }
        }
    }
}
