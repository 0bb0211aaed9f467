//! What people, editors and git did to a queue since Tavern last wrote it: taken over, merged and logged.
//!
//! Editors lock nothing and save whole files, so a save may rest on an older text than the newest. The queue as Tavern
//! last wrote it is kept in `seen/`; where the file differs, the log tells which version the saver had loaded, and the
//! three are merged. A transition is never undone by a save, and nothing typed is ever dropped.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chrono::TimeDelta;

use super::appended::{tell_moved, with_appended, with_line_ends};
use super::applied::is_of_this_boot;
use super::archived::{statuses, with_archived};
use super::baseline::{Baseline, Sight, free_aside, header, old_path};
use super::by_hand::{Copies, around_items, by_hand, done_by_hand, note};
use super::change::{Change, QueueRewrite, Rewrite};
use super::cut_short::{is_cut_short, takes_most_words};
use super::entry::{BY_GIT, Entry, TextChange};
use super::error::Error;
use super::find::Board;
use super::held::{with_former_ids, with_held, with_own_ids};
use super::index::ItemIndex;
use super::log::{MOST_LINES, tail_log, task_of, walk_back, walk_log};
use super::marked::{Marks, end_hold};
use super::moved::gone_beside;
use super::queue::{Queue, Text, is_blank};
use super::redo::up_to_date;
use super::seen::digest;
use super::settled::Settled;
use super::since::Since;
use super::stamp::Stamp;
use super::stays;
use super::texts::{KeptText, Nearest, SaveMark, Texts, Writer};
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

/// Who saves again what they had before their last save takes that back, within this time.
const RECENT: TimeDelta = TimeDelta::minutes(10);

/// What one save took out and the next brings back within this time was half a save: so many items at least.
const HALF: (TimeDelta, usize) = (TimeDelta::seconds(3), 3);

/// What was done to `queue` by other hands than Tavern's, as a change; `None` if nothing was, or if they are still about it.
/// Whoever asks holds the lock; `last` is the last event's number. Items that have just `come` are those that were moved.
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
        leave_out_told(board, queue, &mut taken.entries)?;
    }
    Ok(taken)
}

/// Leaves out the notes that the log has already, where what they speak of has not changed since: an editor that holds an old
/// text saves it again and again.
fn leave_out_told(board: &Board, queue: &Queue, entries: &mut Vec<Entry>) -> Result<(), Error> {
    let cause = |entry: &Entry| entry.cause.clone().filter(|_| entry.kind == Kind::Noted);
    let mut open: Vec<String> = entries.iter().filter_map(cause).collect();
    let (mut told, mut lines) = (HashSet::new(), 0);
    // A note of one item begins with its ID.
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
    // What stays is told by the newest save of all.
    let is_all_told = entries.iter().all(is_told);
    entries.retain(|entry| !is_told(entry) || !is_all_told && stays::of(entry).is_some());
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
    let sight = Sight::of(board, queue);
    let found = match board.read_file(queue) {
        Ok(text) if text.stamp == Stamp::TORN => return Ok(None),
        Ok(text) => FoundFile::Text(text),
        Err(_) if sight.is_gone(queue) && board.is_held_in(queue)? => {
            let why = "the file was removed while an item of it is held; it was put back";
            FoundFile::Gone(note(queue, why.to_owned(), now).into())
        }
        // What can't be read is reported by whoever needs it.
        Err(_) => return Ok(None),
    };
    taken_from(index, last, queue, sight, found, come, now)
}

/// What stands in a queue's place.
enum FoundFile {
    Text(Text),
    /// Nothing, and it is put back, of which the log has this note.
    Gone(Box<Entry>),
}

fn taken_from(
    index: &ItemIndex<'_>,
    last: u64,
    queue: &Queue,
    mut sight: Sight,
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
    // Somebody had the replaced file open, or saved in the very moment of the replacement: before what is there now.
    // (The very file that was seen stands there if a program was killed in the middle of the replacement.)
    let old = Some(old_path(board, queue))
        .filter(|_| seen.old != sight.old && sight.old != Some(seen.file));
    let old = old.filter(|_| !is_copied(&seen, &sight, text.as_ref()));
    let saved = old
        .as_ref()
        .and_then(|old| files::read_text(old).ok())
        .filter(|saved| !is_blank(saved));
    // What was read is whole if nobody is writing it, and nobody has since.
    let read: Vec<&Path> = text
        .iter()
        .map(|_| queue.path.as_path())
        .chain(old.as_deref())
        .collect();
    let is_under_way =
        board.is_git_at_work([queue]) || board.is_unresolved(queue) || is_being_written(&read);
    if is_under_way || Sight::of(board, queue) != sight {
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
    // git may have put a text there over which somebody has saved before anybody looked.
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

/// The replaced file came with a copy of the whole board: whoever had it open before writes to another. Where its times are new, it
/// is known by the queue, which is another file, too, and says what was known.
fn is_copied(seen: &Baseline, sight: &Sight, text: Option<&Text>) -> bool {
    let Some((known, old)) = seen.old.zip(sight.old) else {
        return false;
    };
    let is_another = |one: Stamp, other: Stamp| one != Stamp::NONE && !one.is_same_file(&other);
    let is_queue_copied = || {
        text.is_some_and(|text| is_another(seen.file, text.stamp) && text.content == *seen.content)
    };
    // A program that was killed may have put the queue itself there.
    let is_queues_own = seen.file.is_same_file(&old);
    is_another(known, old)
        && !is_queues_own
        && known.is_as_long(&old)
        && (known.is_as_new(&old) || is_queue_copied())
}

/// A queue that Tavern has not seen yet is as it stands, but for items that it knows from elsewhere. What it has otherwise than what
/// was committed was typed since: others may have loaded that.
fn first_sight(
    index: &ItemIndex<'_>,
    queue: &Queue,
    text: Text,
    expected: Sight,
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

/// So the note begins of what an older text has otherwise than it stays.
const NEWER: &str = "an older text was saved, and what is newer stays: ";

/// The note of a save that took back the one before it.
const TAKEN_BACK: &str =
    "the text before the last save was put back: what that save had changed is taken back";

/// Fewer open items than these a person takes out at once without being asked.
const FEW: usize = 3;

/// `saved` holds no item, and `before` held several that are nowhere else now: no editor makes that, and nobody in a hurry.
fn is_emptied(index: &ItemIndex<'_>, queue: &Queue, before: &str, saved: &str) -> bool {
    let before = parse(before).0;
    let is_lost = |item: &Item<'_>| item.id.as_ref().is_none_or(|id| !index.knows(id, queue));
    parse(saved).0.items().is_empty()
        && before.items().iter().filter(|item| is_lost(item)).count() > 1
}

/// What is `done` takes most of the open items out, and puts them nowhere else: an editor that could not write all, or one that
/// writes boxes otherwise, makes that more often than a person.
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

/// Keeps a save that is not believed for a person to say what is to become of it.
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
    let told = "a text that lacks most of it, or its end, was saved; the queue stands as it was, and the save was set aside in";
    entries.push(note(queue, format!("{told} {name}"), now));
    files.push(Rewrite::File {
        path,
        content: saved.to_owned(),
    });
}

/// The change that puts a queue back whose file has gone, and logs `note`; with what git had put there before. `None` if nothing is
/// known of it.
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
        Sight::of(board, queue),
        FoundFile::Gone(note.into()),
        &HashSet::new(),
        now,
    )
}

/// What somebody saved.
struct Save<'s> {
    text: &'s str,
    /// Who seems to have made it, as far as the file shows.
    writer: Option<Writer>,
    /// The file is no older than Tavern's.
    is_late: bool,
    /// git has put it there, and it goes on from the newest text or not.
    goes_on: Option<bool>,
}

/// The text on which a save rests.
struct Base {
    text: String,
    digest: u64,
    /// It is a save that is taken back.
    is_undo: bool,
    /// The save before was half of this one: what that had taken out is back.
    is_half: bool,
    /// The save is just an older text.
    is_old: bool,
    /// The items that are another in it than they are now.
    stale: Vec<TaskId>,
}

impl Base {
    /// The nearest of the texts that stood there. Who puts back exactly what they themselves have changed a moment ago takes that change
    /// back: then it is what they had saved. git does not. Nor does half a save take out what the next one has.
    fn of(texts: &Texts, ours: &str, save: &Save<'_>, now: Timestamp) -> Base {
        let Nearest {
            mut text,
            mut digest,
            distance,
        } = texts.nearest(ours, save.text);
        let is_old = distance == 0 && text != ours;
        let (mut is_undo, mut is_half) = (false, false);
        let (within, least) = HALF;
        let may_be = !is_old && save.goes_on.is_none() && texts.has_save_since(now - within);
        if may_be {
            let is_half_of = |kept: &KeptText| {
                let is_own = |mark: &SaveMark| Some(mark.writer) == save.writer;
                let is_new = kept.save.as_ref().is_some_and(is_own) && now - kept.time < within;
                is_new && brought_back([&text, &kept.text, ours], save.text).1 >= least
            };
            if let Some(half) = texts.find(&is_half_of) {
                // As if they were new: then they are added.
                let (back, _) = brought_back([&text, &half.text, ours], save.text);
                (text, is_half) = (back.taken_back(&text), true);
            }
        }
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
            is_half,
            is_old,
            stale,
        }
    }
}

/// The items of `base` that are in `saved`, and neither in `half` nor in `ours`: a change of `base` that takes them out, and their number.
fn brought_back([base, half, ours]: [&str; 3], saved: &str) -> (Since, usize) {
    let [known, newest] = [base, ours].map(|text| -> HashSet<String> {
        let document = parse(text).0;
        let items = document.items().iter();
        items.map(|item| bare(document.block(item))).collect()
    });
    let (mut back, mut count) = (Since::default(), 0);
    for changed in changes(half, saved) {
        let (None, Some((block, status))) = (changed.before, changed.after) else {
            continue;
        };
        let words = bare(&block);
        if !known.contains(&words) || newest.contains(&words) {
            continue;
        }
        count += 1;
        match changed.task {
            Some(task) => back.set(task, None),
            None => back.set_nameless(&block, status),
        }
    }
    (back, count)
}

/// `base` without the items that `saved` lacks.
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

/// The IDs that items of `base` have got since, by what they read there: as the log tells, else by their titles.
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

/// `ours` without the items of `base` that `saved` lacks and whose words are as they were: that Tavern has ticked or moved one since keeps
/// it for nobody, nor that it has `named` it.
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

/// The items that are `held` here and open in `base`, and that git brings as ended: why their holders lose them.
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
        let cause =
            format!("it has ended in another clone; what was made of it here stays on tavern/{id}");
        (id.clone(), cause)
    });
    lost.collect()
}

/// `ours` with the items of `saved` that the log tells of as archived, or that were taken out and come back, as they were then. With those that
/// an archive has; git may have taken it back to where it had less.
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
    // What is put in takes the bullet of what is beside it; then it is made to read as it did.
    let newest = since.taken_back(&since.taken_back(ours));
    Ok((newest, archived))
}

/// Those of the items `new` of which the log tells last that they were archived; or that they were taken out, where they are not in `base`
/// and nowhere else: how they were then.
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

/// `merged` without those of the `archived` items that are in it as they were in `newest`; and their names.
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

/// What somebody saved, merged with ours; and what is to be logged of it.
#[expect(
    clippy::too_many_arguments,
    reason = "a save, and what is known beside it"
)]
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
        // No editor's save, but a broken one, or a `>` too many: items are removed one by one, or with their file.
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
        // It will have been moved.
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
    // An old text may be from before the item got its ID.
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
        let what = "an older text was saved, and what is archived stays there";
        entries.push(note(format!("{what}: {}", listed(&names))));
    }
    if base.is_undo {
        entries.push(note(TAKEN_BACK.to_owned()));
    }
    if base.is_half {
        let what = "the save before was half of this one: what that had taken out is back";
        entries.push(note(what.to_owned()));
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
        entries.push(note(stays::cause(&lacking)));
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
        // A copy is no item.
        states
            .get(id)
            .filter(|_| !copies.all.contains_key(id))?
            .status()
    });
    if !stay_ended.is_empty() {
        let what = "what has ended by a run stays so, whatever its box says";
        entries.push(note(format!("{what}: {}", listed(&stay_ended))));
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

/// `text`, in which the items of `ours` that `saved` lacks are in lanes of their own status: whoever moves headings moves none of these.
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

/// `text`, in which what has ended by its status is ended whatever its box says: no text of before opens it again. Also the IDs of those.
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

/// An item whose text shows another status has that from then on, whatever was remembered of it.
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

impl Board {
    /// A queue whose file has gone will be put back: somebody holds an item of it. `queues` are those that there are.
    pub fn lacks_queue(&self, queues: &[Queue]) -> bool {
        gone_beside(self, queues)
            .iter()
            .any(|queue| self.is_held_in(queue).unwrap_or(true))
    }

    /// Somebody has saved a queue by hand since this board was last written.
    pub fn has_saves(&self) -> Result<bool, Error> {
        Ok(!self.by_hand()?.is_empty())
    }

    /// The queues that were written to by other hands, and how they stand; also one whose file has gone, until it was looked
    /// where its items are, and while somebody holds one of them.
    pub(super) fn by_hand(&self) -> Result<Vec<(Queue, Sight)>, Error> {
        let mut queues = self.queues()?;
        for queue in gone_beside(self, &queues) {
            let is_known =
                header(self, &queue).is_some_and(|header| header.version.file == Stamp::NONE);
            if !is_known || self.is_held_in(&queue)? {
                queues.push(queue);
            }
        }
        let looks = queues.into_iter().map(|queue| {
            let sight = Sight::of(self, &queue);
            (queue, sight)
        });
        Ok(looks
            .filter(|(queue, sight)| !sight.is_seen(self, queue))
            .collect())
    }
}

impl Board {
    /// The queues that were saved by hand before anybody has made them show what a killed program did: what they lack of
    /// it tells an old save from a new one, and is merged into them. After a power cut it may be the file that is old.
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

/// The names of the items that the result has otherwise than the save, as they are `stale` there, and of those that the save lacks.
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
    // One that has got its ID since goes by its title there.
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
