//! A text that git has brought: by a switch, a pull, a reset. It is no stale buffer and no broken save, so what stands in it, in
//! which order and in which words, counts. How the items stand is Tavern's: no transition is undone by it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::baseline::{self, Header};
use super::content::QueueVersion;
use super::entry::{Entry, TextChange};
use super::error::Error;
use super::find::Board;
use super::from_git::{AskGit, Brought, FromGit, HeadText};
use super::held::with_ids;
use super::loaded_base::as_read;
use super::log::walk_log;
use super::queue::{Queue, Text};
use super::since::Since;
use super::stamp::Stamp;
use super::uncommitted::without_uncommitted;
use tavern_core::document::{Document, Item, parse};
use tavern_core::event::Kind;
use tavern_core::merge::{MergedText, bare, merge};
use tavern_core::patch::Patch;
use tavern_core::rewrite::apply_each;
use tavern_core::state::State;
use tavern_core::task::{TaskId, Timestamp};
use tavern_sys::clock;

/// A lock of git that is older was left by one that was killed, or somebody writes a commit message. An index that is older is no
/// sign that HEAD will be moved.
const LONGEST: Duration = Duration::from_secs(10);

/// What git has in its directory while a person is to settle what contradicts.
const UNDER_WAY: [&str; 5] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
];

impl Board {
    /// What HEAD holds of the queue, and how it came there since Tavern last looked. What was there all the time counts only if git
    /// may have put it into the file since, or did so and Tavern made it another: else whoever saves something like it has typed that.
    pub(super) fn head_text(&self, queue: &Queue) -> Option<HeadText> {
        let header = baseline::header(self, queue);
        let known = header
            .as_ref()
            .map_or(Some(0), |header| header.moves_of_head)?;
        let (ask, root, path) = self.whom_to_ask(queue)?;
        let mut head = (ask.head_text)(&root, &path, known)?;
        head.was_put = header
            .as_ref()
            .is_some_and(|header| header.was_put_by_git(&head.text));
        let may_be_put =
            |Header {
                 version: QueueVersion { file, .. },
                 ..
             }| { (ask.may_have_written)(&root, &path, file.inode(), file.modified()) };
        head.may_be_put = !matches!(head.from, Some(FromGit::Held | FromGit::Restored))
            || header.is_none_or(may_be_put);
        Some(head).filter(|head| head.was_put || head.may_be_put)
    }

    /// git has written the very `file` in the place of the queue, or has found it to be as it would have written it.
    pub(super) fn is_noted_by_git(&self, queue: &Queue, file: Stamp) -> bool {
        let asked = self.whom_to_ask(queue);
        asked.is_some_and(|(ask, root, path)| {
            (ask.has_noted)(&root, &path, file.inode(), file.modified())
        })
    }

    /// With the root and the queue's path from there.
    pub(super) fn whom_to_ask(&self, queue: &Queue) -> Option<(AskGit, PathBuf, PathBuf)> {
        let root = fs::canonicalize(self.root()).ok()?;
        // It may have been taken away.
        let folder = || {
            Some(
                fs::canonicalize(queue.path.parent()?)
                    .ok()?
                    .join(queue.path.file_name()?),
            )
        };
        let file = fs::canonicalize(&queue.path).ok().or_else(folder)?;
        let path = file.strip_prefix(&root).ok()?.to_owned();
        Some((self.git?, root, path))
    }

    /// How long git's log of where HEAD stood is now.
    pub(super) fn moves_of_head(&self) -> u64 {
        self.in_git("logs/HEAD")
            .and_then(|log| fs::metadata(log).ok())
            .map_or(0, |log| log.len())
    }

    /// git is writing files, one of these queues perhaps, or has written it, and moves HEAD thereafter.
    pub(super) fn is_git_at_work<'q>(&self, queues: impl IntoIterator<Item = &'q Queue>) -> bool {
        let is_new = |name: &str| self.in_git(name).is_some_and(|path| is_new(&path));
        is_new("index.lock")
            || is_new("HEAD.lock")
            || (is_new("index")
                && queues
                    .into_iter()
                    .any(|queue| self.is_bringing(queue).unwrap_or_default()))
    }

    /// git may be reading files one after the other, for a commit or a stash: what moves from one to the other would be in neither.
    pub(super) fn is_git_reading(&self) -> bool {
        let entries = self
            .in_git("")
            .and_then(|git| fs::read_dir(git).ok())
            .into_iter()
            .flatten()
            .flatten();
        // A stash has an index of its own.
        let is_lock = |name: &[u8]| name.starts_with(b"index") && name.ends_with(b".lock");
        entries
            .filter(|entry| is_lock(entry.file_name().as_bytes()))
            .any(|entry| is_new(&entry.path()))
    }

    fn is_bringing(&self, queue: &Queue) -> Option<bool> {
        let ((ask, root, path), text) = (self.whom_to_ask(queue)?, self.read_file(queue).ok()?);
        Some((ask.is_bringing)(&root, &path, &text.content))
    }

    /// git has left its markers in the queue, for a person to choose.
    pub(super) fn is_unresolved(&self, queue: &Queue) -> bool {
        let mut under_way = UNDER_WAY.iter().filter_map(|name| self.in_git(name));
        let has_markers = |text: Text| {
            text.content
                .lines()
                .any(|line| line.starts_with("<<<<<<< "))
        };
        under_way.any(|path| path.exists()) && self.read_file(queue).is_ok_and(has_markers)
    }

    fn in_git(&self, name: &str) -> Option<PathBuf> {
        self.private("")
            .parent()
            .filter(|_| self.private("") != self.path(""))
            .map(|git| git.join(name))
    }
}

fn is_new(path: &Path) -> bool {
    let age = fs::metadata(path)
        .and_then(|file| file.modified())
        .ok()
        .and_then(clock::since);
    age.is_some_and(|age| age < LONGEST)
}

/// `saved`, which git has `brought` in the place of `ours`, with the items as they stand in `newest`, and with the words of `ours`
/// that no commit has.
pub(super) fn brought_text(
    board: &Board,
    brought: &Brought,
    [ours, newest, saved]: [&str; 3],
    held: &HashSet<TaskId>,
) -> Result<MergedText, Error> {
    let before: Vec<Document<'_>> = brought
        .before
        .iter()
        .map(|before| parse(before).0)
        .collect();
    let ids = parse(ours)
        .0
        .items()
        .iter()
        .filter_map(|item| item.id.clone())
        .collect();
    let saved = with_ids(saved, ours, &ids);
    let [states, base] = states(board, brought, newest, &saved)?;
    let is_held = |id: &TaskId| held.contains(id);
    let mut merged = merge(
        &with_states(&saved, base),
        &with_states(&saved, states),
        &saved,
        &is_held,
    );
    let committed = if before.is_empty() {
        ours.to_owned()
    } else {
        without_uncommitted(ours, &before)
    };
    if committed != ours {
        let theirs = parse(&merged.text).0;
        let states = || {
            theirs
                .items()
                .iter()
                .filter_map(|item| Some((item.id.clone()?, theirs.task_of(item).state)))
        };
        let [committed, ours] =
            [&committed, ours].map(|text| with_states(text, states().collect()));
        let typed = merge(&committed, &ours, &merged.text, &is_held);
        merged.conflicts.extend(typed.conflicts);
        merged.text = typed.text;
    }
    Ok(merged)
}

/// `text`, which comes from git, with the items of `ours` that it lacks and that stay nevertheless, and their names. Those are what
/// somebody holds, and what no commit has; of a text that was put back only what Tavern did: what was typed was thrown away by hand.
pub(super) fn with_uncommitted(
    board: &Board,
    from_git: &FromGit,
    text: &str,
    ours: &str,
    held: &HashSet<TaskId>,
) -> Result<(String, Vec<String>), Error> {
    let (mine, theirs) = (parse(ours).0, parse(text).0);
    let before: Vec<Document<'_>> = match from_git {
        FromGit::Brought(brought) => brought.before.iter().map(|text| parse(text).0).collect(),
        FromGit::Held | FromGit::Restored => Vec::new(),
    };
    let (mut stays, mut names) = (Since::default(), Vec::new());
    let whole = mine.items().iter().filter(|item| item.within.is_none());
    for item in whole.filter(|item| !stands(&mine, item, &theirs)) {
        let is_part =
            |part: &&Item<'_>| item.span.start <= part.span.start && part.span.end <= item.span.end;
        let mut parts = mine.items().iter().filter(is_part);
        let is_held = parts.any(|part| part.id.as_ref().is_some_and(|id| held.contains(id)));
        let is_kept = match from_git {
            FromGit::Brought(_) => !before.iter().any(|before| stands(&mine, item, before)),
            FromGit::Held | FromGit::Restored => item
                .id
                .as_ref()
                .map_or(Ok(false), |id| is_known(board, id))?,
        };
        if !is_held && !is_kept {
            continue;
        }
        names.push(mine.called(item));
        let (before, from) = (mine.block(item).to_owned(), item.status);
        match &item.id {
            Some(id) => stays.set(id.clone(), Some((before, from))),
            None => {
                let change = TextChange::Removed { from, before };
                stays.add(Entry {
                    change,
                    ..Entry::new(Kind::Removed, Timestamp::default())
                });
            }
        }
    }
    Ok((stays.taken_back(text), names))
}

/// Tavern added the item, or changed it.
fn is_known(board: &Board, id: &TaskId) -> Result<bool, Error> {
    let mut is_known = false;
    walk_log(board, Some(id), &mut |entry| {
        is_known = entry.change.is_of_item() && !entry.is_by_hand();
        !is_known
    })?;
    Ok(is_known)
}

/// An item of `document` stands in `other`, too.
fn stands(document: &Document<'_>, item: &Item<'_>, other: &Document<'_>) -> bool {
    match &item.id {
        Some(id) => other.find(id).is_some(),
        None => other.items().iter().any(|other_item| {
            other.title(other_item) == document.title(item)
                || bare(other.block(other_item)) == bare(document.block(item))
        }),
    }
}

/// Of the items of `saved` that stand otherwise in `newest`: how they stand there, and how they stood in what both rest on.
fn states(
    board: &Board,
    brought: &Brought,
    newest: &str,
    saved: &str,
) -> Result<[HashMap<TaskId, State>; 2], Error> {
    let of =
        |document: &Document<'_>, id: &TaskId| Some(document.task_of(document.find(id)?).state);
    let (mine, theirs) = (parse(newest).0, parse(saved).0);
    let ids = theirs.items().iter().filter_map(|item| item.id.clone());
    let differing: HashSet<TaskId> = ids
        .filter(|id| of(&mine, id).is_some_and(|here| Some(here) != of(&theirs, id)))
        .collect();
    let known = as_read(board, newest, saved, &differing)?;
    let known = parse(&known).0;
    let [before, stood] =
        [brought.before.first(), brought.stood.as_ref()].map(|text| text.map(|text| parse(text).0));
    let (mut states, mut base) = (HashMap::new(), HashMap::new());
    for id in differing {
        let (Some(here), Some(there)) = (of(&mine, &id), of(&theirs, &id)) else {
            continue;
        };
        let [was, stood] = [&before, &stood].map(|document| of(document.as_ref()?, &id));
        let is_known =
            of(&known, &id).map(State::without_answer) == Some(there.clone().without_answer());
        let rests_on = match was {
            // What somebody held when a branch was committed, and has given back since, is not held by them again.
            _ if is_known && there.status().is_held() => there,
            Some(was) if brought.goes_on && was == here => was,
            // It was so here, and has gone on since.
            _ if is_known => there,
            // It never was so here: what git has moved through since nobody here has seen.
            _ => stood.unwrap_or_else(|| here.clone()),
        };
        base.insert(id.clone(), rests_on);
        states.insert(id, here);
    }
    Ok([states, base])
}

/// `text` with the items as these `states` say.
fn with_states(text: &str, states: HashMap<TaskId, State>) -> String {
    apply_each(text.to_owned(), states.into_iter().collect(), &|document,
                                                                (
        id,
        state,
    )| {
        document
            .find(id)
            .map_or_else(Vec::new, |item| document.change(item, &Patch::from(state)))
    })
}
