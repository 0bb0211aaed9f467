//! Saves that did not stay as they were, since they rested on an old text: whoever made one goes on in it, and not in what
//! Tavern made of it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::baseline::stale_path;
use super::change::Rewrite;
use super::error::Error;
use super::find::Board;
use super::loaded_base::distance;
use super::queue::Queue;
use super::redo::said;
use crate::board::document::parse;
use crate::board::merge::prose;
use crate::board::task::Status;
use crate::files;

/// So many of the last ones are kept of a queue: more editors than these have nobody's attention.
const MOST: u64 = 3;

/// The saves that are kept of `queue`.
pub(super) fn stale_saves(board: &Board, queue: &Queue) -> Vec<String> {
    paths(board, queue).filter_map(|path| files::read_text(path).ok()).collect()
}

/// Keeps `saved` in the place of another one, by its number.
pub(super) fn keep_stale(board: &Board, queue: &Queue, saved: &str, number: u64) -> Rewrite {
    Rewrite::File { path: stale_path(board, queue, number % MOST), content: saved.to_owned() }
}

fn paths(board: &Board, queue: &Queue) -> impl Iterator<Item = PathBuf> {
    (0..MOST).map(move |number| stale_path(board, queue, number))
}

/// The one of `stale` in which `saved` goes on: it has all its words, shows two things or more as they were there, and nothing as it
/// is in `newest` only. It is nearer to it than to what was `loaded`, a version of Tavern's. One who takes things out of the newest
/// text twice means it: something must be there as it was.
pub(super) fn goes_on_from<'s>(
    stale: &'s [String],
    [newest, saved]: [&str; 2],
    loaded: impl FnOnce() -> Result<String, Error>,
) -> Result<Option<&'s str>, Error> {
    if stale.is_empty() {
        return Ok(None);
    }
    let [newest, saved_things] = [newest, saved].map(things);
    let is_older = |then: &Things| {
        let names = newest.keys().chain(then.keys());
        let (mut lacking, mut shown) = (HashSet::new(), HashSet::new());
        for name in names {
            let [now, was, is] = [&newest, then, &saved_things].map(|things| things.get(name));
            match is {
                _ if now == was => {}
                is if is == now => return false,
                is if is == was && was.is_some() => drop(shown.insert(name)),
                is if is == was => drop(lacking.insert(name)),
                _ => {}
            }
        }
        !shown.is_empty() && shown.len() + lacking.len() > 1
    };
    // So nothing is ever taken out by it.
    let words_of_saved = counted(saved);
    let has_all = |then: &str| {
        counted(then).iter().all(|(word, count)| words_of_saved.get(word).is_some_and(|found| found >= count))
    };
    let older = stale.iter().filter(|then| has_all(then) && is_older(&things(then)));
    let nearest = older.map(|then| (distance(then, saved), then.as_str())).min();
    let Some((from, then)) = nearest else { return Ok(None) };
    let is_nearer = from < distance(&loaded()?, saved);
    Ok(is_nearer.then_some(then))
}

fn counted(text: &str) -> HashMap<&str, usize> {
    let mut words = HashMap::new();
    let all = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    all.for_each(|word| *words.entry(word).or_default() += 1);
    words
}

/// What stands in a text by what it is called: its items, each with how it stands and what it says, and the lines between them.
type Things = HashMap<String, Option<(Status, String)>>;

fn things(text: &str) -> Things {
    let document = parse(text).0;
    let whole = document.items().iter().filter(|item| item.within.is_none());
    let words = |item| said(document.block(item)).collect::<Vec<_>>().join("\n");
    let items = whole.map(|item| (document.called(item), Some((item.status, words(item)))));
    let prose = prose(text);
    let lines = said(&prose).filter(|line| !line.starts_with('#')).map(|line| (format!("\n{}", line.trim()), None));
    items.chain(lines).collect()
}
