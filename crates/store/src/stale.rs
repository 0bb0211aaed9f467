//! Saves that did not stay as they were, since they rested on an old text: whoever made one goes on in it, and not in what
//! Tavern made of it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use super::baseline::stale_path;
use super::change::Rewrite;
use super::error::Error;
use super::find::Board;
use super::loaded_base::distance;
use super::queue::Queue;
use super::redo::said;
use tavern_core::document::parse;
use tavern_core::merge::prose;
use tavern_core::near;
use tavern_core::task::Status;
use tavern_sys::files;

/// So many are kept of a queue: more editors than these have nobody's attention.
const MOST: u64 = 6;

/// Where more words than these are others, none is taken for corrected.
const MOST_CORRECTED: usize = 100;

/// The saves that are kept of `queue`.
pub(super) fn stale_saves(board: &Board, queue: &Queue) -> Vec<String> {
    paths(board, queue)
        .filter_map(|path| files::read_text(path).ok())
        .collect()
}

/// Keeps each of these saves in the place of the one in which it goes on, else of the oldest.
pub(super) fn keep_stale<'s>(
    board: &Board,
    queue: &Queue,
    saves: impl Iterator<Item = (&'s str, Option<&'s str>)>,
) -> Vec<Rewrite> {
    let mut kept: Vec<PathBuf> = paths(board, queue).collect();
    kept.sort_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).ok());
    let mut place = |own: Option<&str>| {
        let is_own = |path: &PathBuf| {
            own.is_some_and(|own| files::read_text(path).is_ok_and(|text| text == own))
        };
        kept.remove(kept.iter().position(is_own).unwrap_or_default())
    };
    saves
        .map(|(saved, own)| Rewrite::Save {
            path: place(own),
            content: saved.to_owned(),
        })
        .collect()
}

fn paths(board: &Board, queue: &Queue) -> impl Iterator<Item = PathBuf> {
    (0..MOST).map(move |number| stale_path(board, queue, number))
}

/// The one of `stale` in which `saved` goes on. It has all its words, if only corrected, and is nearer to it than to what was
/// `loaded`. It shows nothing as it is in `newest` only. Of those things that are otherwise there, two at least, it shows one. Or it
/// lacks only what is new there, and somebody has typed in it: whoever takes the same out twice, and does nothing else, means it.
pub(super) fn goes_on_from<'s>(
    stale: &'s [String],
    [newest, saved]: [&str; 2],
    loaded: impl FnOnce() -> Result<String, Error>,
) -> Result<Option<&'s str>, Error> {
    if stale.is_empty() {
        return Ok(None);
    }
    let [newest, saved_things] = [newest, saved].map(things);
    let is_older = |then: &Things, is_typed_on: bool| {
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
        if shown.is_empty() {
            // What it has by another name there is not lacking.
            is_typed_on && !lacking.is_empty() && then.keys().all(|name| newest.contains_key(name))
        } else {
            shown.len() + lacking.len() > 1
        }
    };
    let words = counted(saved);
    let nearness =
        |then: &str, [lacking, new]: [usize; 2]| (distance(then, saved).0, lacking + new);
    let older = stale.iter().filter_map(|then| {
        let known = counted(then);
        let apart = apart(&known, &words);
        // So nothing is ever taken out by it.
        let goes_on = apart[0] == 0 && is_older(&things(then), known != words);
        goes_on.then(|| (nearness(then, apart), then.as_str()))
    });
    let Some((from, then)) = older.min() else {
        return Ok(None);
    };
    let loaded = loaded()?;
    let is_nearer = from < nearness(&loaded, apart(&counted(&loaded), &words));
    Ok(is_nearer.then_some(then))
}

/// How many words of `then` are not among those that were saved, and how many of these are new. Corrected they are neither.
fn apart(then: &Words<'_>, saved: &Words<'_>) -> [usize; 2] {
    let (mut lacking, mut new) = (more(then, saved), more(saved, then));
    // Nobody corrects so many at once, and to compare each with each takes long.
    if lacking.len() <= MOST_CORRECTED {
        lacking.retain(|word| {
            let corrected = new.iter().position(|new| near::corrects(new, word));
            corrected.map(|place| new.remove(place)).is_none()
        });
    }
    [lacking.len(), new.len()]
}

/// The words that are more often in one text than in another, each as often as it is more.
fn more<'t>(words: &Words<'t>, than: &Words<'_>) -> Vec<&'t str> {
    let times = |(word, count): (&&'t str, &usize)| {
        let times = count.saturating_sub(than.get(word).copied().unwrap_or_default());
        std::iter::repeat_n(*word, times)
    };
    let mut more: Vec<&str> = words.iter().flat_map(times).collect();
    more.sort_unstable();
    more
}

/// How often each word is in a text.
type Words<'t> = HashMap<&'t str, usize>;

fn counted(text: &str) -> Words<'_> {
    let mut words = HashMap::new();
    let all = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
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
    let lines = said(&prose)
        .filter(|line| !line.starts_with('#'))
        .map(|line| (format!("\n{}", line.trim()), None));
    items.chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replace::replace_own;

    #[test]
    fn who_goes_on_takes_the_place_of_their_last_save_and_of_nobody_elses() {
        let scratch = tempfile::tempdir().expect("a temp dir");
        let board = Board::open(scratch.path()).expect("it is there");
        let queue = Queue {
            id: "main".to_owned(),
            path: scratch.path().join("main.md"),
        };
        files::make_folder(
            stale_path(&board, &queue, 0)
                .parent()
                .expect("it is in a folder"),
        )
        .expect("it is ours");
        let keep = |saves: &[(&str, Option<&str>)]| {
            for file in keep_stale(&board, &queue, saves.iter().copied()) {
                let Rewrite::Save { path, content } = file else {
                    panic!("{file:?}")
                };
                replace_own(&path, content.as_bytes()).expect("the folder is ours");
            }
        };
        keep(&[("one", None), ("another", None)]);
        let texts = ["another, 1", "another, 1, 2", "another, 1, 2, 3"];
        let mut own = "another";
        for text in texts.into_iter().cycle().take(20) {
            keep(&[(text, Some(own))]);
            own = text;
        }
        assert_eq!(stale_saves(&board, &queue), ["one", own]);
    }
}
