//! What people, editors and git did to a queue since Tavern last wrote it: taken over, merged and logged.
//!
//! Editors lock nothing and save whole files, so a save may rest on an older text than the newest. The queue as Tavern
//! last wrote it is kept in `seen/`; where the file differs, the log tells which version the saver had loaded, and the
//! three are merged. A transition is never undone by a save, and nothing typed is ever dropped.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::appended::{tell_moved, with_appended, with_line_ends};
use super::applied::is_of_this_boot;
use super::archived::statuses;
use super::baseline::{Baseline, Sight, digest, free_aside, header, old_path};
use super::brought::{brought_text, with_uncommitted};
use super::by_hand::{Copies, by_hand, done_by_hand, note};
use super::change::{Change, QueueRewrite, Rewrite};
use super::cut_short::{is_cut_short, takes_most_words};
use super::elsewhere::TakenTwice;
use super::entry::{Entry, GIT, RESTORED, TextChange};
use super::error::Error;
use super::find::Board;
use super::from_git::{FromGit, HeadText};
use super::held::{with_held, with_ids, with_own_ids};
use super::index::ItemIndex;
use super::known::with_former_ids;
use super::loaded_base::{RestsOn, Save, as_read, distance, loaded};
use super::log::{MOST_LINES, tail_log, walk_log};
use super::marked::{Marks, end_hold};
use super::moved::gone_beside;
use super::queue::{Queue, Text, is_blank};
use super::redo::up_to_date;
use super::returned::{with_later_ids, with_returned, without_archived};
use super::retyped::with_retyped;
use super::settled::Settled;
use super::stale::{goes_on_from, keep_stale, stale_saves};
use super::stamp::Stamp;
use super::stays;
use tavern_core::document::{Document, Item, open, parse};
use tavern_core::event::Kind;
use tavern_core::merge::{Changed, bare, changes, merge, merge_named};
use tavern_core::problem::listed;
use tavern_core::task::{TaskId, Timestamp};
use tavern_sys::files;
use tavern_sys::process::file_in_use::is_being_written;

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
        return text
            .map(|text| first_sight(index, queue, text, sight, now))
            .transpose();
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
    if is_under_way || !Sight::of(board, queue).is_as(&sight) {
        return Ok(None);
    }
    let known = up_to_date(board, last, queue, &seen)?;
    let mut ours = known.clone();
    let [old, typed] = [saved.as_deref(), text.as_ref().map(|text| &*text.content)]
        .map(|saved| saved.map(|saved| with_line_ends(&known, saved)));
    // git may have put a text there in which they typed, and which stands in neither: it was there before both.
    let head_text = board.head_text(queue);
    let is_apart = |text: &str| {
        [&old, &typed]
            .iter()
            .all(|saved| saved.as_deref() != Some(text))
    };
    let from_git = head_text
        .as_ref()
        .and_then(|head| Some((head, head.from.as_ref()?)));
    let put_by_git = |saved: &Option<String>, file: Option<Stamp>| {
        let (head, from) =
            from_git.filter(|(head, _)| saved.as_deref().is_some_and(|saved| head.is(saved)))?;
        // What a person made as HEAD has it throws nothing away.
        let is_gits = match from {
            FromGit::Brought(_) => true,
            FromGit::Restored => file.is_some_and(|file| board.is_noted_by_git(queue, file)),
            FromGit::Held => false,
        };
        is_gits.then_some((head, from))
    };
    let [old_by_git, typed_by_git] = [put_by_git(&old, sight.old), put_by_git(&typed, sight.file)];
    let is_by_git = old_by_git.or(typed_by_git).is_some();
    let head = from_git.filter(|(head, _)| !is_by_git && (head.was_put || is_apart(&head.text)));
    let loaded_of_known = |text: &str, replaced_at: Option<u64>| {
        let save = Save {
            text,
            replaced_at,
            rests_on: None,
            from_git: None,
        };
        Ok::<_, Error>(loaded(board, queue, &known, &save, &HashSet::new())?.text)
    };
    let below = |saved: &Option<String>, replaced_at: Option<u64>| {
        let Some((text, (head, from))) = saved.as_deref().zip(head) else {
            return Ok::<_, Error>(None);
        };
        let loaded = loaded_of_known(text, replaced_at)?;
        let [from_head, from_known] = [&head.text, &loaded].map(|loaded| distance(loaded, text));
        let is_nearer = match from {
            FromGit::Brought(_) => from_head <= from_known,
            FromGit::Held | FromGit::Restored if head.was_put => from_head < from_known,
            // What HEAD held all the time Tavern has mostly written itself: lines tell nothing.
            FromGit::Held | FromGit::Restored => from_head.0 < from_known.0,
        };
        Ok(is_nearer.then_some(RestsOn::Git(&head.text)))
    };
    let (below_old, below_typed) = (below(&old, Some(seen.seq))?, below(&typed, seen.unshown)?);
    // Who goes on in what they saved before rests on that.
    let stale = stale_saves(board, queue);
    let goes_on_in =
        |saved: &Option<String>, replaced_at: Option<u64>, below: Option<RestsOn<'_>>| {
            let Some(text) = saved.as_deref() else {
                return Ok(None);
            };
            let else_loaded = || match below {
                Some(below) => Ok(below.text().to_owned()),
                None => loaded_of_known(text, replaced_at),
            };
            // Whoever took it over was killed before the queue showed it.
            let is_taken =
                |entry: &Entry| entry.queue.as_ref() == Some(&queue.id) && entry.is_by_hand();
            let own = match stale.iter().find(|own| *own == text) {
                Some(own) if tail_log(board, seen.seq)?.iter().any(is_taken) => Some(own.as_str()),
                _ => goes_on_from(&stale, [&known, text], else_loaded)?,
            };
            Ok::<_, Error>(own.map(RestsOn::Own))
        };
    let own_old = goes_on_in(&old, Some(seen.seq), below_old)?;
    let own_typed = goes_on_in(&typed, seen.unshown, below_typed)?;
    // What was pulled is there whatever buffer was saved over it, and what was brought if the file was taken away since.
    let goes_on = |from: &FromGit| matches!(from, FromGit::Brought(brought) if brought.goes_on || brought.is_ahead || is_gone);
    // What HEAD held all the time may be in an old buffer alone, and throws nothing away.
    let is_loaded = |from: &FromGit| {
        matches!(from, FromGit::Brought(_)) && (below_old.is_some() || below_typed.is_some())
    };
    let was_brought = head
        .filter(|(_, from)| goes_on(from) || is_loaded(from))
        .map(|(head, _)| head.text.as_str());
    // Whoever saved since a commit goes on from it, if nothing shows that their text is older.
    let known_to = |text: &str, ours: &str| {
        let goes_on =
            from_git.is_none() && ours != known && loaded_of_known(text, seen.unshown)? == known;
        Ok::<_, Error>(if goes_on {
            ours.to_owned()
        } else {
            known.clone()
        })
    };
    // What somebody has committed nobody may have looked at, before they or git went on from it.
    let is_saved_since = typed.is_some() || from_git.is_some();
    let committed = head_text
        .iter()
        .filter(|_| is_saved_since)
        .flat_map(HeadText::committed);
    for text in committed.filter(|text| is_apart(text)) {
        let (save, mut change) = (
            Save {
                text,
                replaced_at: None,
                rests_on: None,
                from_git: None,
            },
            Change::default(),
        );
        let merged = merged(
            index,
            queue,
            &save,
            [&known_to(text, &ours)?, &ours],
            come,
            now,
            &mut change,
        )?;
        if merged != ours {
            ours = merged;
            taken.entries.extend(change.entries);
            taken.files.extend(change.files);
        }
    }
    let known_to_typed = typed
        .as_deref()
        .map_or_else(|| Ok(known.clone()), |typed| known_to(typed, &ours))?;
    let saves = [
        (was_brought, from_git, &known, None, None),
        (
            old.as_deref(),
            old_by_git,
            &known,
            Some(seen.seq),
            own_old.or(below_old),
        ),
        (
            typed.as_deref(),
            typed_by_git,
            &known_to_typed,
            seen.unshown,
            own_typed.or(below_typed),
        ),
    ];
    for (text, from_git, known, replaced_at, rests_on) in saves {
        if let Some(text) = text.filter(|text| *text != ours) {
            let from_git = from_git.map(|(_, from)| from);
            let save = Save {
                text,
                replaced_at,
                rests_on,
                from_git,
            };
            ours = merged(index, queue, &save, [known, &ours], come, now, &mut taken)?;
        }
    }
    let is_gits = |text: &str| head_text.as_ref().is_some_and(|head| head.is(text));
    let not_as_saved = [(&old, own_old), (&typed, own_typed)];
    let not_as_saved = not_as_saved
        .into_iter()
        .filter_map(|(text, own)| Some((text.as_deref()?, own.map(RestsOn::text))));
    let not_as_saved = not_as_saved.filter(|(text, _)| *text != ours && !is_gits(text));
    taken.files.extend(keep_stale(board, queue, not_as_saved));
    sight.put_by_git = from_git
        .filter(|(head, _)| head.text != ours)
        .map(|(head, _)| digest(&head.text));
    let is_shown = match &text {
        Some(text) => text.content == *ours,
        None => !is_gone && ours == seen.content,
    };
    let rewrite = QueueRewrite {
        queue: queue.clone(),
        expected: sight,
        content: ours,
        is_shown,
        is_of_save: true,
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
) -> Result<Change, Error> {
    let board = index.board;
    let (saved, own) = (text.content.into_string(), HashMap::new());
    let (newest, returned) = with_returned(index, queue, &saved, &own, &saved, None)?;
    let copies = Copies::of(index, queue, &own, &saved);
    let mut entries = copies.notes(now);
    let typed = merge(
        &as_read(board, &newest, &saved, &returned)?,
        &newest,
        &saved,
        &|_| false,
    )
    .text;
    let content = with_appended(None, typed.clone(), &|_| true);
    let head_text = board.head_text(queue);
    let mut committed: Vec<&str> = head_text
        .iter()
        .flat_map(|head| match head.from {
            None => head.committed(),
            Some(_) => vec![head.text.as_str()],
        })
        .filter(|text| !parse(text).0.items().is_empty())
        .collect();
    if committed.is_empty() {
        let moved = changes(&typed, &content)
            .into_iter()
            .map(|changed| Changed {
                before: None,
                ..changed
            });
        let added = changes("", &content).into_iter();
        let added = added
            .filter(|changed| {
                changed
                    .task
                    .as_ref()
                    .is_some_and(|id| returned.contains(id))
            })
            .chain(moved);
        entries.extend(added.filter_map(|changed| by_hand(queue, changed, now)));
    }
    committed.extend(Some(content.as_str()).filter(|_| !committed.is_empty()));
    for versions in committed.windows(2) {
        entries.extend(done_by_hand(&copies, versions[0], versions[1], now));
    }
    tell_moved(&mut entries, &typed, &content);
    let is_shown = content == saved;
    let rewrite = QueueRewrite {
        queue: queue.clone(),
        expected,
        content,
        is_shown,
        is_of_save: true,
    };
    Ok(Change {
        entries,
        files: vec![Rewrite::Queue(rewrite)],
    })
}

/// So the note begins of what an older text has otherwise than it stays.
const NEWER: &str = "an older text was saved, and what is newer stays: ";

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

/// What somebody saved, merged with ours; and what is to be logged of it. They knew at most what was `known` before it.
fn merged(
    index: &ItemIndex<'_>,
    queue: &Queue,
    save: &Save<'_>,
    [known, ours]: [&str; 2],
    come: &HashSet<TaskId>,
    now: Timestamp,
    Change { entries, files }: &mut Change,
) -> Result<String, Error> {
    let board = index.board;
    let (saved, note) = (save.text, |cause: String| note(queue, cause, now));
    let from_git = save.from_git;
    let named = match from_git {
        Some(FromGit::Brought(brought)) => Some(with_later_ids(board, queue, saved, brought)?),
        _ => None,
    };
    let (is_brought, saved) = (named.is_some(), named.as_deref().unwrap_or(saved));
    if !is_brought && is_blank(saved) && !parse(ours).0.items().is_empty() {
        // No editor's save, but a broken one, or a `>` too many: items are removed one by one, or with their file.
        entries.push(note(
            "the file was emptied; its items were put back".to_owned(),
        ));
        return Ok(ours.to_owned());
    }
    if !is_brought && is_emptied(index, queue, ours, saved) {
        if from_git.is_some() {
            entries.push(note(
                "git put a text without items there; what no commit has was put back".to_owned(),
            ));
            return Ok(ours.to_owned());
        }
        set_aside(board, queue, saved, now, entries, files);
        return Ok(ours.to_owned());
    }
    let told = entries.len();
    let mut held = board.held_in(queue)?;
    if board.is_dry() {
        // It will have been moved.
        held.retain(|id| index.status_of(id, queue).is_none());
    }
    let TakenTwice {
        saved: agreed,
        mut lost,
    } = TakenTwice::of(board, ours, saved)?;
    held.retain(|id| !lost.contains_key(id));
    let may_mark = if from_git.is_none() {
        held.clone()
    } else {
        HashSet::new()
    };
    let (marks, agreed) = Marks::of(&agreed, ours, &may_mark);
    let agreed = with_retyped(board, queue, agreed, ours, &may_mark)?;
    let is_known = |id: &TaskId| index.knows(id, queue);
    let (own_ids, renamed) = if from_git.is_none() {
        with_own_ids(&agreed, ours, &held, &is_known)
    } else {
        Default::default()
    };
    let (as_saved, saved) = (
        saved,
        if renamed.is_empty() {
            &*agreed
        } else {
            own_ids.as_str()
        },
    );
    let save = &Save {
        text: saved,
        ..*save
    };
    entries.extend(renamed.into_iter().map(|(other, id)| {
        let other = other.map_or_else(|| "no ID".to_owned(), |other| other.to_string());
        Entry {
            task: Some(id.clone()),
            ..note(format!(
                "it was given {other} by hand; it is held, and keeps its ID"
            ))
        }
    }));
    let own = statuses(&open(ours));
    let (newest, returned) = with_returned(index, queue, ours, &own, saved, save.replaced_at)?;
    let copies = Copies::of(index, queue, &own, saved);
    let merged = if let Some(FromGit::Brought(brought)) = from_git {
        brought_text(board, brought, [ours, &newest, saved], &held)?
    } else {
        let known = if known == ours {
            newest.clone()
        } else {
            with_returned(index, queue, known, &own, saved, save.replaced_at)?.0
        };
        let former = with_former_ids(saved, ours, &is_known);
        let loaded = loaded(
            board,
            queue,
            &known,
            &Save {
                text: &former,
                ..*save
            },
            &returned,
        )?;
        if from_git.is_none() && is_cut_short([&loaded.text, ours], saved, &held) {
            entries.truncate(told);
            set_aside(board, queue, as_saved, now, entries, files);
            return Ok(ours.to_owned());
        }
        // git takes nobody's ID away: it has the item as it was before it got one.
        let own = if from_git.is_some() {
            own.into_keys().collect()
        } else {
            held.clone()
        };
        let named = with_ids(saved, ours, &own);
        let mut by_version = &(come | &returned) | &held_otherwise(&newest, saved);
        let mut read = saved;
        if from_git.is_some() {
            // Nobody has put an item back to how it stood, also where it has got its ID since.
            by_version.extend(statuses(&open(&named)).into_keys());
            read = &named;
        }
        let base =
            board.with_typed_titles(&as_read(board, &loaded.text, read, &by_version)?, &held)?;
        let named = board.with_typed_titles(&named, &held)?;
        let mut merged = merge_named(&base, &loaded.named, &newest, &named, &|id| {
            held.contains(id)
        });
        merged.text = without_archived(index, &merged.text, &newest, &returned);
        let (newer, lacking) = not_as_saved(saved, &merged.text, &loaded.stale);
        if !newer.is_empty() {
            entries.push(note(format!("{NEWER}{}", listed(&newer))));
        }
        if !lacking.is_empty() {
            entries.push(note(stays::cause(&lacking)));
        }
        merged
    };
    let mut text = merged.text;
    entries.extend(
        merged
            .conflicts
            .into_iter()
            .map(|conflict| note(Settled::of(conflict, &held).to_string())),
    );
    if let Some(from_git) = from_git {
        let back;
        (text, back) = with_uncommitted(board, from_git, &text, ours, &held)?;
        if !back.is_empty() {
            let what = "git took away what is held or in no commit, and it was put back";
            entries.push(note(format!("{what}: {}", listed(&back))));
        }
    }
    entries.extend(copies.notes(now));
    lost.extend(marks.causes());
    let typed = marks.put(board, queue, with_held(text, ours, &held))?;
    let text = with_appended(Some(ours), typed.clone(), &|id| {
        returned.contains(id) || copies.all.contains_key(id)
    });
    let mut done = done_by_hand(&copies, ours, &text, now);
    let takes_most =
        takes_most(index, queue, [ours, &text], &done) || takes_most_words(ours, &text);
    if from_git.is_none() && takes_most {
        entries.truncate(told);
        set_aside(board, queue, as_saved, now, entries, files);
        return Ok(ours.to_owned());
    }
    tell_moved(&mut done, &typed, &text);
    for mut entry in done {
        end_hold(board, &mut entry, &lost);
        match from_git {
            Some(FromGit::Brought(brought)) => {
                let how = brought
                    .how
                    .split(|c: char| !c.is_alphanumeric())
                    .next()
                    .unwrap_or_default();
                entry.agent = Some(format!("{GIT}{how}"));
                if entry.task.is_some() {
                    entry
                        .cause
                        .get_or_insert_with(|| format!("git, {}", brought.how));
                }
            }
            Some(FromGit::Held | FromGit::Restored) => entry.agent = Some(RESTORED.to_owned()),
            None => {}
        }
        entries.push(entry);
    }
    Ok(text)
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

/// The items that `saved` shows as taken by somebody who does not hold them now. A person takes nothing back for another: it is a
/// text of then, and git may have one that was never here.
fn held_otherwise(newest: &str, saved: &str) -> HashSet<TaskId> {
    let (mine, theirs) = (parse(newest).0, parse(saved).0);
    let holding =
        |document: &Document<'_>, item: &Item<'_>| document.task_of(item).state.holder().cloned();
    let is_another = |item: &&Item<'_>| {
        let here = item
            .id
            .as_ref()
            .and_then(|id| mine.find(id))
            .and_then(|here| holding(&mine, here));
        holding(&theirs, item).is_some_and(|there| there.started.is_some() && here != Some(there))
    };
    theirs
        .items()
        .iter()
        .filter(|item| item.status.is_held())
        .filter(is_another)
        .filter_map(|item| item.id.clone())
        .collect()
}

/// The names of the items that the result has otherwise than the save, as they are `stale` there, and of those that the save lacks.
fn not_as_saved(saved: &str, merged: &str, stale: &[TaskId]) -> (Vec<String>, Vec<String>) {
    let (saved, merged) = (parse(saved).0, parse(merged).0);
    let block = |document: &Document<'_>, id: &TaskId| {
        document.find(id).map(|item| bare(document.block(item)))
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
