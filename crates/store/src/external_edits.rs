//! Merges and logs external edits: changes to a queue by people, editors and git since Tavern last wrote it.
//!
//! Editors lock nothing and save whole files, so a save may be based on an outdated text. The queue as Tavern last
//! wrote it is kept in `seen/`. If the file differs, the log shows which version the editor had loaded, and a three-way
//! merge follows. A save never undoes a transition, and typed text is never dropped.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chrono::TimeDelta;

use super::appended_lines::{tell_moved, with_appended, with_line_ends};
use super::archived::{statuses, with_archived};
use super::baseline::{Baseline, Header, free_aside, header, old_path};
use super::baseline_files::digest;
use super::board::Board;
use super::change::{Change, QueueRewrite, Rewrite};
use super::checkpoint::is_of_this_boot;
use super::conflict_notes::Settled;
use super::edit_entries::{Copies, around_items, by_hand, done_by_hand, note};
use super::entry::{BY_GIT, Entry, TextChange};
use super::error::Error;
use super::file_version::{QueueFiles, Stamp};
use super::held_items::{with_former_ids, with_held, with_own_ids};
use super::index::ItemIndex;
use super::log::{MOST_LINES, tail_log, task_of, walk_back, walk_log};
use super::moved_items::gone_beside;
use super::queue::{Queue, Text, is_blank};
use super::recovery::up_to_date;
use super::rejected_removals;
use super::rewind::Since;
use super::text_history::{KeptText, Nearest, SaveMark, Texts, Writer};
use super::truncated_save::{is_cut_short, takes_most_words};
use super::withdrawn_items::{Marks, end_hold};
use tavern_core::document::{Document, Item, open, parse};
use tavern_core::event::Kind;
use tavern_core::merge::{Changed, Named, bare, changes, merge_named};
use tavern_core::problem::listed;
use tavern_core::rewrite::{apply_each, set_item};
use tavern_core::state::State;
use tavern_core::states::States;
use tavern_core::task::{Status, TaskId, Timestamp};
use tavern_sys::files;
use tavern_sys::process::file_in_use::is_being_written;

/// Saving the text before one's own last save undoes that save, within this time.
const RECENT: TimeDelta = TimeDelta::minutes(10);

/// Returns the external edits to `queue` as a change; `None` if there are none, or if they are still being written.
/// The caller holds the lock; `last` is the last event's number. Items in `come` were just moved here.
pub(super) fn taken_over(
    index: &ItemIndex<'_>,
    last: u64,
    queue: &Queue,
    come: &HashSet<TaskId>,
    now: Timestamp,
) -> Result<Option<Change>, Error> {
    let board = index.board;
    let mut taken = saved(index, last, queue, come, now)?;
    if let Some(taken) = &mut taken {
        drop_logged(board, queue, &mut taken.entries)?;
    }
    Ok(taken)
}

/// Removes notes that the log has already, if their subject has not changed since. An editor that holds an old text
/// saves it again and again.
fn drop_logged(board: &Board, queue: &Queue, entries: &mut Vec<Entry>) -> Result<(), Error> {
    let cause = |entry: &Entry| entry.cause.clone().filter(|_| entry.kind == Kind::Noted);
    let mut open: Vec<String> = entries.iter().filter_map(cause).collect();
    let (mut told, mut lines) = (HashSet::new(), 0);
    // A note about one item begins with its ID.
    let is_about = |note: &str, task: &Option<TaskId>| match note
        .split_once(": ")
        .map(|(id, _)| id.parse::<TaskId>())
    {
        Some(Ok(id)) => Some(id) == *task,
        _ => true,
    };
    if !open.is_empty() {
        walk_log(board, None, &mut |entry| {
            lines += 1;
            if entry.queue.as_ref() == Some(&queue.id) {
                told.extend(cause(&entry).filter(|cause| open.contains(cause)));
                open.retain(|note| !told.contains(note));
                open.retain(|note| !entry.change.is_of_item() || !is_about(note, &entry.task));
            }
            !open.is_empty() && lines < MOST_LINES
        })?;
    }
    let is_told = |entry: &Entry| cause(entry).is_some_and(|cause| told.contains(&cause));
    // The newest save repeats which items stay.
    let is_all_told = entries.iter().all(is_told);
    entries
        .retain(|entry| !is_told(entry) || !is_all_told && rejected_removals::of(entry).is_some());
    Ok(())
}

fn saved(
    index: &ItemIndex<'_>,
    last: u64,
    queue: &Queue,
    come: &HashSet<TaskId>,
    now: Timestamp,
) -> Result<Option<Change>, Error> {
    let board = index.board;
    let sight = QueueFiles::of(board, queue);
    let found = match board.read_file(queue) {
        Ok(text) if text.stamp == Stamp::TORN => return Ok(None),
        Ok(text) => FoundFile::Text(text),
        Err(_) if sight.is_gone(queue) && board.is_held_in(queue)? => {
            let why = "the file was removed while an item of it is held; it was put back";
            FoundFile::Gone(note(queue, why.to_owned(), now).into())
        }
        // The caller that needs an unreadable file reports it.
        Err(_) => return Ok(None),
    };
    taken_from(index, last, queue, sight, found, come, now)
}

/// The file found in a queue's place.
enum FoundFile {
    Text(Text),
    /// No file: it is put back, and this note is logged.
    Gone(Box<Entry>),
}

fn taken_from(
    index: &ItemIndex<'_>,
    last: u64,
    queue: &Queue,
    mut sight: QueueFiles,
    found: FoundFile,
    come: &HashSet<TaskId>,
    now: Timestamp,
) -> Result<Option<Change>, Error> {
    let board = index.board;
    let mut taken = Change::default();
    let text = match found {
        FoundFile::Text(text) => Some(text),
        FoundFile::Gone(note) => {
            taken.entries.push(*note);
            None
        }
    };
    let is_gone = text.is_none();
    sight.file = text.as_ref().map(|text| text.stamp);
    let Some(seen) = Baseline::read(board, queue) else {
        return Ok(text.map(|text| first_sight(index, queue, text, sight, now)));
    };
    let text = text.filter(|text| text.stamp != seen.file);
    // An editor had the replaced file open, or saved at the moment of the replacement, so this save comes before the
    // current file.
    // (After a crash during the replacement, the very file that was seen is there.)
    let old = Some(old_path(board, queue))
        .filter(|_| seen.old != sight.old && sight.old != Some(seen.file));
    let old = old.filter(|_| !is_copied(&seen, &sight, text.as_ref()));
    let saved = old
        .as_ref()
        .and_then(|old| files::read_text(old).ok())
        .filter(|saved| !is_blank(saved));
    // The text that was read is whole if no process is writing it and it is unchanged since.
    let read: Vec<&Path> = text
        .iter()
        .map(|_| queue.path.as_path())
        .chain(old.as_deref())
        .collect();
    let is_under_way =
        board.is_git_at_work([queue]) || board.is_unresolved(queue) || is_being_written(&read);
    if is_under_way || QueueFiles::of(board, queue) != sight {
        return Ok(None);
    }
    let known = up_to_date(board, last, queue, &seen)?;
    let mut ours = known.clone();
    let writer = |path: &Path, in_place| {
        let file = fs::metadata(path).ok()?;
        Some(Writer {
            in_place,
            user: file.uid(),
            mode: file.mode(),
        })
    };
    let is_in_place = |stamp: Stamp| stamp.is_same_file(&seen.file);
    let saves = [
        (
            saved,
            old.as_deref().and_then(|old| writer(old, true)),
            sight.old,
        ),
        (
            text.as_ref().map(|text| text.content.to_string()),
            text.as_ref()
                .and_then(|text| writer(&queue.path, is_in_place(text.stamp))),
            sight.file,
        ),
    ];
    let mut texts = Texts::of(board, queue);
    if seen.seq < last {
        texts.retain_logged(seen.seq, &tail_log(board, seen.seq)?);
    }
    // git may have written a text that was saved over before Tavern read it.
    let head = board.head_text(queue).filter(|head| {
        let saves = saves.iter().filter_map(|(saved, ..)| saved.as_deref());
        let is_new = |head: &str| !texts.has(head) && saves.clone().all(|saved| saved != head);
        let is_saved = saves.clone().next().is_some();
        (is_gone || is_saved) && is_new(head) && is_new(&with_line_ends(&known, head))
    });
    for (saved, writer, stamp) in [(head, None, None)].into_iter().chain(saves) {
        let Some(saved) = saved.map(|saved| with_line_ends(&known, &saved)) else {
            continue;
        };
        if saved == ours {
            continue;
        }
        let save = Save {
            is_late: stamp.is_some_and(|stamp| stamp.modified() >= seen.file.modified()),
            goes_on: board.goes_on_by_git(queue, &saved, &ours),
            text: &saved,
            writer,
        };
        let known = [seen.content.as_str(), ours.as_str()];
        ours = merged(index, queue, &texts, &save, known, come, now, &mut taken)?;
    }
    let is_shown = match &text {
        Some(text) => text.content == *ours,
        None => !is_gone && ours == seen.content,
    };
    let rewrite = QueueRewrite {
        queue: queue.clone(),
        expected: sight,
        content: ours,
        is_shown,
    };
    taken.files.insert(0, Rewrite::Queue(rewrite));
    Ok(Some(taken))
}

/// Returns true if the replaced file came with a copy of the whole board; an editor that had it open writes to the
/// original. If its times are new, a queue file that also differs but has the known text proves the copy.
fn is_copied(seen: &Baseline, sight: &QueueFiles, text: Option<&Text>) -> bool {
    let Some((known, old)) = seen.old.zip(sight.old) else {
        return false;
    };
    let is_another = |one: Stamp, other: Stamp| one != Stamp::NONE && !one.is_same_file(&other);
    let is_queue_copied = || {
        text.is_some_and(|text| is_another(seen.file, text.stamp) && text.content == *seen.content)
    };
    // A killed program may have put the queue itself there.
    let is_queues_own = seen.file.is_same_file(&old);
    is_another(known, old)
        && !is_queues_own
        && known.is_as_long(&old)
        && (known.is_as_new(&old) || is_queue_copied())
}

/// Takes a queue that Tavern has not seen yet as it is, except for copies of items known elsewhere. Differences from
/// the committed text were typed since: other editors may have loaded that text.
fn first_sight(
    index: &ItemIndex<'_>,
    queue: &Queue,
    text: Text,
    expected: QueueFiles,
    now: Timestamp,
) -> Change {
    let (typed, own) = (text.content.into_string(), HashMap::new());
    let copies = Copies::of(index, queue, &own, &typed);
    let mut entries = copies.notes(now);
    let content = with_appended(None, typed.clone(), &|_| true);
    let moved = changes(&typed, &content)
        .into_iter()
        .map(|changed| Changed {
            before: None,
            ..changed
        });
    entries.extend(moved.filter_map(|changed| by_hand(queue, changed, now)));
    tell_moved(&mut entries, &typed, &content);
    let is_shown = content == typed;
    let rewrite = QueueRewrite {
        queue: queue.clone(),
        expected,
        content,
        is_shown,
    };
    Change {
        entries,
        files: vec![Rewrite::Queue(rewrite)],
    }
}

/// The note about newer items that an older text can't overwrite begins like this.
const NEWER: &str = "an older text was saved; newer text stays: ";

/// The note of a save that undid the one before it.
const TAKEN_BACK: &str =
    "the text before the last save was restored: the changes of that save are undone";

/// Fewer open items may be removed at once without confirmation.
const FEW: usize = 3;

/// Returns true if `saved` holds no item while `before` held several that are nowhere else now. No editor does that,
/// and hardly a person.
fn is_emptied(index: &ItemIndex<'_>, queue: &Queue, before: &str, saved: &str) -> bool {
    let before = parse(before).0;
    let is_lost = |item: &Item<'_>| item.id.as_ref().is_none_or(|id| !index.knows(id, queue));
    parse(saved).0.items().is_empty()
        && before.items().iter().filter(|item| is_lost(item)).count() > 1
}

/// Returns true if the entries `done` remove most open items without moving them elsewhere. An editor that failed to
/// write everything, or one that writes boxes differently, causes that more often than a person.
fn takes_most(
    index: &ItemIndex<'_>,
    queue: &Queue,
    [before, after]: [&str; 2],
    done: &[Entry],
) -> bool {
    let is_gone = |entry: &&Entry| {
        matches!(entry.change, TextChange::Removed { from, .. } if !from.is_ended())
            && entry.task.as_ref().is_none_or(|id| !index.knows(id, queue))
    };
    let gone = done.iter().filter(is_gone).count();
    let open = |text: &str| {
        let (document, _) = parse(text);
        document
            .items()
            .iter()
            .filter(|item| item.within.is_none() && !item.status.is_ended())
            .count()
    };
    gone >= FEW && {
        let before = open(before);
        2 * gone > before && 2 * open(after) < before
    }
}

/// Sets a suspicious save aside until a person decides on it.
fn set_aside(
    board: &Board,
    queue: &Queue,
    saved: &str,
    now: Timestamp,
    entries: &mut Vec<Entry>,
    files: &mut Vec<Rewrite>,
) {
    let path = free_aside(board, queue, saved);
    let name = path.strip_prefix(board.root()).unwrap_or(&path).display();
    let fault = "the saved text lacks most of the queue, or its end; the queue is unchanged, and the save was set aside in";
    entries.push(note(queue, format!("{fault} {name}"), now));
    files.push(Rewrite::File {
        path,
        content: saved.to_owned(),
    });
}

/// Returns the change that restores a queue after its file was removed, merged with a text that git wrote before, and
/// logs `note`. `None` if the queue is unknown.
pub(super) fn put_back(
    board: &Board,
    last: u64,
    queue: &Queue,
    note: Entry,
    now: Timestamp,
) -> Result<Option<Change>, Error> {
    taken_from(
        &ItemIndex::of(board),
        last,
        queue,
        QueueFiles::of(board, queue),
        FoundFile::Gone(note.into()),
        &HashSet::new(),
        now,
    )
}

/// An external save.
struct Save<'s> {
    text: &'s str,
    /// The apparent writer, as far as the file shows.
    writer: Option<Writer>,
    /// The file is no older than Tavern's.
    is_late: bool,
    /// If git wrote it: whether it continues from the newest text.
    goes_on: Option<bool>,
}

/// The merge base of a save.
struct Base {
    text: String,
    digest: u64,
    /// The base is a save that is being undone.
    is_undo: bool,
    /// The save is just an older text.
    is_old: bool,
    /// The items that differ between the base and the current text.
    stale: Vec<TaskId>,
}

impl Base {
    /// Chooses the nearest earlier text. If a writer restores exactly the text before their own recent save, that save
    /// is the base, so it is undone. This does not apply to git.
    fn of(texts: &Texts, ours: &str, save: &Save<'_>, now: Timestamp) -> Base {
        let Nearest {
            mut text,
            mut digest,
            distance,
        } = texts.nearest(ours, save.text);
        let is_old = distance == 0 && text != ours;
        let mut is_undo = false;
        if is_old && save.is_late && save.goes_on.is_none() {
            let is_undone = |kept: &KeptText| {
                let is_own =
                    |mark: &SaveMark| mark.base == digest && Some(mark.writer) == save.writer;
                let is_another = kept.digest != digest && kept.save.as_ref().is_some_and(is_own);
                is_another && now - kept.time < RECENT
            };
            if let Some(undone) = texts.find(&is_undone) {
                (text, digest, is_undo) = (undone.text, undone.digest, true);
            }
        }
        match save.goes_on {
            // git has merged the newest text into it.
            Some(true) => (text, digest) = (ours.to_owned(), self::digest(ours)),
            Some(false) => text = without_lacking(&text, save.text),
            None => {}
        }
        let stale = changes(&text, ours)
            .into_iter()
            .filter_map(|changed| changed.task);
        let stale = stale.collect();
        Base {
            text,
            digest,
            is_undo,
            is_old,
            stale,
        }
    }
}

/// Returns `base` without the items that `saved` lacks.
fn without_lacking(base: &str, saved: &str) -> String {
    let mut since = Since::default();
    for changed in changes(base, saved) {
        if let (Some((before, status)), None) = (changed.before, changed.after) {
            match changed.task {
                Some(task) => since.set(task, None),
                None => since.set_nameless(&before, status),
            }
        }
    }
    since.taken_back(base)
}

/// Returns the IDs that items of `base` have got since, keyed by their text there. The log decides, else their titles.
fn named_since(board: &Board, queue: &Queue, base: &str, ours: &str) -> Result<Named, Error> {
    let (then, now) = (parse(base).0, parse(ours).0);
    let nameless = then.items().iter().filter(|item| item.id.is_none());
    let mut nameless: HashMap<String, &str> = nameless
        .map(|item| (bare(then.block(item)), then.title(item)))
        .collect();
    let mut new: HashMap<&TaskId, &str> = HashMap::new();
    for item in now.items() {
        let id = item.id.as_ref().filter(|id| then.find(id).is_none());
        new.extend(id.map(|id| (id, now.title(item))));
    }
    let (mut named, mut lines) = (Named::new(), 0);
    if nameless.is_empty() || new.is_empty() {
        return Ok(named);
    }
    walk_log(board, None, &mut |entry| {
        lines += 1;
        if let Some(id) = entry.task.as_ref().filter(|id| new.contains_key(id))
            && entry.queue.as_ref() == Some(&queue.id)
            && entry.is_first_of(id)
            && let Some(before) = entry.change.before().map(bare)
            && nameless.remove(&before).is_some()
        {
            new.remove(id);
            named.insert(before, id.clone());
        }
        !nameless.is_empty() && !new.is_empty() && lines < MOST_LINES
    })?;
    for (before, title) in nameless {
        let found = new.iter().find(|(_, other)| **other == title);
        if let Some(id) = found.map(|(id, _)| (*id).clone()) {
            new.remove(&id);
            named.insert(before, id);
        }
    }
    Ok(named)
}

/// Returns `ours` without items of `base` that `saved` lacks, if their words are unchanged. An item is removed even
/// if Tavern has ticked, moved or `named` it since.
fn without_taken_out(
    base: &str,
    saved: &str,
    ours: &str,
    named: &Named,
    held: &HashSet<TaskId>,
) -> String {
    let (then, now) = (parse(base).0, parse(ours).0);
    let words = |document: &Document<'_>, item: &Item<'_>| {
        (document.title(item).to_owned(), document.description(item))
    };
    let mut since = Since::default();
    for changed in changes(base, saved) {
        let was = then
            .items()
            .iter()
            .find(|item| Some(item.span.start) == changed.at[0]);
        let (Some(was), None) = (was, changed.after) else {
            continue;
        };
        let id = was
            .id
            .as_ref()
            .or_else(|| named.get(&bare(then.block(was))));
        let is = now
            .items()
            .iter()
            .find(|is| is.id.as_ref() == id && words(&then, was) == words(&now, is));
        match (is.filter(|is| !is.nested), id) {
            (Some(_), Some(id)) if !held.contains(id) => since.set(id.clone(), None),
            (Some(is), None) => since.set_nameless(now.block(is), is.status),
            _ => {}
        }
    }
    since.taken_back(ours)
}

/// Returns the items that are `held` here and open in `base`, but ended in a text from git, with the reason why their
/// holders lose them.
fn ended_elsewhere([base, saved]: [&str; 2], held: &HashSet<TaskId>) -> HashMap<TaskId, String> {
    let texts = [base, saved].map(open);
    let has_ended = |id: &TaskId| {
        let [was, is] = texts.each_ref().map(|text| {
            let item = text.find(id)?;
            Some(text.text_status(item).is_ended())
        });
        was == Some(false) && is == Some(true)
    };
    let lost = held.iter().filter(|id| has_ended(id)).map(|id| {
        let cause = format!("it has ended in another clone; its work here is kept on tavern/{id}");
        (id.clone(), cause)
    });
    lost.collect()
}

/// Returns `ours` with items of `saved` that the log has as archived, or as removed and now back, as they were then.
/// Items of the archives are included, since git may have reset the log to an older state.
fn with_items_that_went(
    index: &ItemIndex<'_>,
    queue: &Queue,
    [base, ours]: [&str; 2],
    saved: &str,
) -> Result<(String, Vec<TaskId>), Error> {
    let (mine, theirs) = (parse(ours).0, parse(saved).0);
    let (mut since, mut archived) = (Since::default(), Vec::new());
    let mut is_new = HashSet::new();
    let ids = theirs.items().iter().filter_map(|item| item.id.clone());
    let ids = ids.filter(|id| mine.find(id).is_none());
    let new: Vec<TaskId> = ids.filter(|id| is_new.insert(id.clone())).collect();
    let mut went = went(index, queue, &parse(base).0, is_new)?;
    for id in new {
        let block = |_: &Text, document: &Document<'_>, item: &Item<'_>| {
            (document.block(item).to_owned(), item.status)
        };
        let found = match index.archived(&id) {
            Some(_) => Some(with_archived(index.board, &id, block)?),
            None => None,
        };
        let went = went.remove(&id);
        let has_all = |(found, _): &(String, Status)| {
            let lines: HashSet<&str> = found.lines().map(str::trim).collect();
            let words =
                |(went, _): &(String, Status)| went.lines().all(|line| lines.contains(line.trim()));
            went.as_ref().is_none_or(words)
        };
        if found.as_ref().is_some_and(has_all) {
            archived.push(id.clone());
        }
        if let Some(item) = went.or(found) {
            since.set(id, Some(item));
        }
    }
    archived.sort();
    // The first pass gives items the bullet of their neighbours; the second restores their exact text.
    let newest = since.taken_back(&since.taken_back(ours));
    Ok((newest, archived))
}

/// Returns the last texts of those items `new` with an archiving event as their last. Also of those that were removed,
/// if they are neither in `base` nor in another queue.
fn went(
    index: &ItemIndex<'_>,
    queue: &Queue,
    base: &Document<'_>,
    mut new: HashSet<TaskId>,
) -> Result<HashMap<TaskId, (String, Status)>, Error> {
    let (mut went, mut lines) = (HashMap::new(), 0);
    if new.is_empty() {
        return Ok(went);
    }
    walk_back(index.board, &mut |line| {
        lines += 1;
        if let Some(id) = task_of(line).filter(|id| new.contains(id))
            && let Ok(entry) = serde_json::from_slice::<Entry>(line)
            && entry.change.is_of_item()
        {
            new.remove(&id);
            let is_back = || base.find(&id).is_none() && index.elsewhere(&id, queue).is_none();
            if let TextChange::Removed { from, before } = entry.change
                && (entry.kind == Kind::Archived || is_back())
            {
                went.insert(id, (before, from));
            }
        }
        !new.is_empty() && lines < MOST_LINES
    })?;
    Ok(went)
}

/// Returns `merged` without the `archived` items that are unchanged from `newest`; and their names.
fn without_archived(merged: &str, newest: &str, archived: &[TaskId]) -> (String, Vec<String>) {
    let (new, old) = (parse(merged).0, parse(newest).0);
    let mut since = Since::default();
    let block =
        |document: &Document<'_>, id| document.find(id).map(|item| bare(document.block(item)));
    let mut names = Vec::new();
    for id in archived {
        if block(&new, id) == block(&old, id) {
            since.set(id.clone(), None);
            names.push(id.to_string());
        }
    }
    (since.taken_back(merged), names)
}

/// Merges a save with our text, and appends the log entries to the change.
#[expect(clippy::too_many_arguments, reason = "a save, and its context")]
fn merged(
    index: &ItemIndex<'_>,
    queue: &Queue,
    texts: &Texts,
    save: &Save<'_>,
    [kept, ours]: [&str; 2],
    come: &HashSet<TaskId>,
    now: Timestamp,
    Change { entries, files }: &mut Change,
) -> Result<String, Error> {
    let board = index.board;
    let (as_saved, note) = (save.text, |cause: String| note(queue, cause, now));
    if is_blank(as_saved) && !parse(ours).0.items().is_empty() {
        // A broken save, or a `>` too many, rather than an editor's: items are removed one by one, or with their file.
        entries.push(note(
            "the file was emptied; its items were put back".to_owned(),
        ));
        return Ok(ours.to_owned());
    }
    if save.goes_on != Some(false) && is_emptied(index, queue, ours, as_saved) {
        set_aside(board, queue, as_saved, now, entries, files);
        return Ok(ours.to_owned());
    }
    let told = entries.len();
    let states = board.states()?;
    let mut held = board.held_in(queue)?;
    if board.is_dry() {
        // In a dry run, an item in another queue will have been moved.
        held.retain(|id| index.status_of(id, queue).is_none());
    }
    let may_mark = if save.goes_on.is_none() {
        held.clone()
    } else {
        HashSet::new()
    };
    let (marks, agreed) = Marks::of(as_saved, ours, &may_mark);
    let is_known = |id: &TaskId| index.knows(id, queue);
    let tracked = states.open_ids().cloned().collect();
    let (own_ids, renamed) = with_own_ids(&agreed, ours, [&held, &tracked], &is_known);
    let base = Base::of(
        texts,
        ours,
        &Save {
            text: &with_former_ids(&agreed, ours, &is_known),
            ..*save
        },
        now,
    );
    let who = if save.goes_on.is_some() {
        "git"
    } else {
        "hand"
    };
    // An old text may predate the item's ID.
    let had_id = open(&base.text);
    let renamed = renamed
        .into_iter()
        .filter(|(_, id)| had_id.find(id).is_some());
    entries.extend(renamed.map(|(other, id)| {
        let other = other.map_or_else(|| "no ID".to_owned(), |other| other.to_string());
        let keeps = if held.contains(&id) {
            "it is held, and keeps its ID"
        } else {
            "it keeps its ID"
        };
        let cause = format!("it was given {other} by {who}; {keeps}");
        Entry {
            task: Some(id),
            ..note(cause)
        }
    }));
    let mut lost = match save.goes_on {
        Some(_) => ended_elsewhere([&base.text, &own_ids], &held),
        None => HashMap::new(),
    };
    held.retain(|id| !lost.contains_key(id));
    let is_cut_short = |loaded| is_cut_short([loaded, ours], &own_ids, &held);
    if save.goes_on.is_none() && (is_cut_short(&base.text) || is_cut_short(ours)) {
        entries.truncate(told);
        set_aside(board, queue, as_saved, now, entries, files);
        return Ok(ours.to_owned());
    }
    let saved = own_ids;
    let (newest, archived) = with_items_that_went(index, queue, [&base.text, ours], &saved)?;
    let own = statuses(&open(ours));
    let copies = Copies::of(index, queue, &own, &saved);
    let named = named_since(board, queue, &base.text, &newest)?;
    let newest = if base.text == ours {
        newest
    } else {
        without_taken_out(&base.text, &saved, &newest, &named, &held)
    };
    let mut merged = merge_named(&base.text, &named, &newest, &saved, &|id| held.contains(id));
    let names;
    (merged.text, names) = without_archived(&merged.text, &newest, &archived);
    if !names.is_empty() {
        let text = "an older text was saved; archived items stay archived";
        entries.push(note(format!("{text}: {}", listed(&names))));
    }
    if base.is_undo {
        entries.push(note(TAKEN_BACK.to_owned()));
    }
    let (mut newer, lacking) = not_as_saved(&saved, &merged.text, &base.stale);
    if base.is_old && !base.is_undo && newer.is_empty() && lacking.is_empty() {
        let around = around_items(&saved, &merged.text);
        newer.extend(around.map(|_| "the text around the items".to_owned()));
    }
    if !newer.is_empty() {
        entries.push(note(format!("{NEWER}{}", listed(&newer))));
    }
    if !lacking.is_empty() {
        entries.push(note(rejected_removals::cause(&lacking)));
    }
    entries.extend(
        merged
            .conflicts
            .into_iter()
            .map(|conflict| note(Settled::of(conflict, &held).to_string())),
    );
    entries.extend(copies.notes(now));
    lost.extend(marks.causes());
    let in_lanes = with_own_lanes(merged.text, ours, &saved);
    let (typed, stay_ended) = with_ended(&marks.put(with_held(in_lanes, ours, &held)), &|id| {
        // A copy is not the item.
        states
            .get(id)
            .filter(|_| !copies.all.contains_key(id))?
            .status()
    });
    if !stay_ended.is_empty() {
        let text = "items that a run has ended keep their status, regardless of their boxes";
        entries.push(note(format!("{text}: {}", listed(&stay_ended))));
    }
    let text = with_appended(Some(ours), typed.clone(), &|id| {
        come.contains(id) || copies.all.contains_key(id)
    });
    let mut done = done_by_hand(&copies, ours, &text, now);
    let takes_most =
        takes_most(index, queue, [ours, &text], &done) || takes_most_words(ours, &text);
    if save.goes_on.is_none() && takes_most {
        entries.truncate(told);
        set_aside(board, queue, as_saved, now, entries, files);
        return Ok(ours.to_owned());
    }
    tell_moved(&mut done, &typed, &text);
    for mut entry in done {
        tell_status(&states, &mut entry);
        end_hold(board, &mut entry, &lost);
        if save.goes_on.is_some() {
            entry.agent = Some(BY_GIT.to_owned());
        }
        entries.push(entry);
    }
    files.push(Rewrite::Save {
        queue: queue.clone(),
        known: kept.to_owned(),
        text: as_saved.to_owned(),
        base: base.digest,
        writer: save.writer.unwrap_or_default(),
    });
    Ok(text)
}

/// Returns `text` with the items of `ours` that `saved` lacks in lanes of their own status: an editor that moves
/// headings moves none of these.
fn with_own_lanes(text: String, ours: &str, saved: &str) -> String {
    let [mine, theirs, merged] = [ours, saved, &text].map(open);
    if !merged.has_lanes() {
        return text;
    }
    let astray = mine.items().iter().filter_map(|item| {
        let id = item.id.clone().filter(|id| theirs.find(id).is_none())?;
        let status = mine.text_status(item);
        let is_astray = !item.nested && merged.text_status(merged.find(&id)?) != status;
        is_astray.then_some((id, status))
    });
    let astray: Vec<(TaskId, Status)> = astray.collect();
    apply_each(text, astray, &|document, (id, status)| {
        let item = document.find(id);
        item.map_or_else(Vec::new, |item| {
            set_item(
                document,
                Some(item),
                Some((document.block(item), Some(*status))),
            )
        })
    })
}

/// Returns `text` with ended items shown as ended, independent of their boxes: an older text never reopens them. Also
/// returns their IDs.
pub(super) fn with_ended(
    text: &str,
    status_of: &dyn Fn(&TaskId) -> Option<Status>,
) -> (String, Vec<String>) {
    let document = open(text);
    let opened = document.items().iter().filter_map(|item| {
        let id = item.id.clone()?;
        let status = status_of(&id)?;
        let is_opened = status.is_ended() && !document.text_status(item).is_ended();
        is_opened.then_some((id, status))
    });
    let opened: Vec<(TaskId, Status)> = opened.collect();
    let names = opened.iter().map(|(id, _)| id.to_string()).collect();
    let text = apply_each(text.to_owned(), opened, &|document, (id, status)| {
        let state = State::from(*status);
        document.find(id).map_or_else(Vec::new, |item| {
            document.change(item, &document.showing(item, &state))
        })
    });
    (text, names)
}

/// Sets an item's status to the new one that its text shows, overriding the stored status.
pub(super) fn tell_status(states: &States, entry: &mut Entry) {
    let TextChange::Edited {
        moved: Some((from, to)),
        ..
    } = entry.change
    else {
        return;
    };
    let Some(keys) = entry.task.as_ref().and_then(|task| states.get(task)) else {
        return;
    };
    let was = keys.status().unwrap_or(from);
    entry.moved = Some((was, to)).filter(|moved| *moved != (from, to));
    entry.state = Some(keys.into_owned().without_status());
}

/// The existing queues, and the headers of their baselines by path.
#[derive(Clone, Default)]
pub(super) struct KnownQueues {
    pub(super) queues: Vec<Queue>,
    pub(super) headers: HashMap<PathBuf, Header>,
}

/// Queues with external edits, and their stamps.
type Saves = Vec<(Queue, QueueFiles)>;

impl Board {
    /// Returns true if a queue is missing that will be put back because an item of it is held. `queues` are the
    /// existing ones.
    pub fn lacks_queue(&self, queues: &[Queue]) -> bool {
        gone_beside(self, queues)
            .iter()
            .any(|queue| self.is_held_in(queue).unwrap_or(true))
    }

    /// Returns true if a queue has external edits since this board was last written.
    pub fn has_saves(&self) -> Result<bool, Error> {
        Ok(!self.by_hand()?.is_empty())
    }

    /// Returns the queues with external edits, and their stamps. A queue without its file is included until its items
    /// were searched for elsewhere, and while one of them is held.
    pub(super) fn by_hand(&self) -> Result<Saves, Error> {
        Ok(self.look_for_saves()?.1)
    }

    /// Returns the existing queues with the headers of their baselines, and those in [`Board::by_hand`].
    pub(super) fn look_for_saves(&self) -> Result<(KnownQueues, Saves), Error> {
        let there = self.queues()?;
        let mut queues = there.clone();
        for queue in gone_beside(self, &there) {
            let is_known =
                header(self, &queue).is_some_and(|header| header.version.file == Stamp::NONE);
            if !is_known || self.is_held_in(&queue)? {
                queues.push(queue);
            }
        }
        let (mut headers, mut by_hand) = (HashMap::new(), Vec::new());
        for queue in queues {
            let sight = QueueFiles::of(self, &queue);
            let header = header(self, &queue);
            if header.as_ref().map(Header::sight).as_ref() != Some(&sight) {
                by_hand.push((queue.clone(), sight));
            }
            headers.extend(header.map(|header| (queue.path, header)));
        }
        let queues = there;
        Ok((KnownQueues { queues, headers }, by_hand))
    }
}

impl Board {
    /// Returns the queues with external edits made before the events of a killed program were replayed. The events that
    /// they lack tell an old save from a new one, and are merged into them. Empty after a power cut, when the file
    /// itself may be old.
    pub(super) fn left_to_merge(&self) -> Result<Vec<String>, Error> {
        if !is_of_this_boot(self) {
            return Ok(Vec::new());
        }
        let mut queues = self.by_hand()?;
        queues.retain(|(queue, sight)| {
            Baseline::read(self, queue).is_some_and(|seen| sight.file != Some(seen.file))
        });
        Ok(queues.into_iter().map(|(queue, _)| queue.id).collect())
    }
}

/// Returns the names of the `stale` items that differ between the save and the result, and of those that the save
/// lacks.
fn not_as_saved(saved: &str, merged: &str, stale: &[TaskId]) -> (Vec<String>, Vec<String>) {
    let (saved, merged) = (parse(saved).0, parse(merged).0);
    let block = |document: &Document<'_>, id: &TaskId| {
        let item = document.find(id)?;
        Some((bare(document.block(item)), item.status))
    };
    let differ = stale
        .iter()
        .filter(|id| block(&saved, id) != block(&merged, id));
    let titles: HashSet<&str> = saved.items().iter().map(|item| saved.title(item)).collect();
    // An item that got its ID since is found by its title.
    let is_there = |id: &&TaskId| {
        saved.find(id).is_some()
            || merged
                .find(id)
                .is_none_or(|item| titles.contains(merged.title(item)))
    };
    let (newer, lacking): (Vec<&TaskId>, Vec<&TaskId>) = differ.partition(is_there);
    let [newer, mut lacking] =
        [newer, lacking].map(|ids| ids.into_iter().map(TaskId::to_string).collect::<Vec<_>>());
    let nameless = merged
        .items()
        .iter()
        .filter(|item| item.id.is_none())
        .map(|item| merged.title(item));
    lacking.extend(
        nameless
            .filter(|title| !titles.contains(title))
            .map(str::to_owned),
    );
    (newer, lacking)
}
