//! Commits the queues to git, on a branch of their own.
//!
//! A commit follows transitions that have already happened: it never fails one, and it holds its own lock, not the
//! board's. The next commit includes all that this one could not.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::error::Error;
use super::workspace::Workspace;
use tavern_core::document::{Item, parse};
use tavern_core::event::Kind;
use tavern_core::task::TaskId;
use tavern_git::CommitId;
use tavern_store::{Committed, Entry, TextChange, is_queue};

/// When a commit may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    Transition,
    /// The end of an agent's work, or of `tavern drain`.
    End,
}

/// The least time between commits of transitions.
const INTERVAL: Duration = Duration::from_secs(30);

const UNCOMMITTED: &str = "the queues are not committed for now";

/// The longest subject that viewers show whole. Longer ones become a count, with the details below.
const SUBJECT: usize = 72;

/// The most items that a message lists.
const MOST_TOLD: usize = 100;

/// Commits the queues, if that is due. Returns a new obstacle for the user, once.
pub fn commit_queues(workspace: &Workspace, occasion: Occasion) -> Option<String> {
    let board = &workspace.board;
    let is_due =
        occasion == Occasion::End || board.since_commit().is_none_or(|age| age >= INTERVAL);
    // The board of task files has none of its own.
    let has_queues = || !board.is_volatile() && workspace.repository().is_ok();
    if !is_due || board.is_dry() || !has_queues() || !board.has_uncommitted() {
        return None;
    }
    let known = board.committed().obstacle;
    drop(commit_now(workspace));
    let now = board.committed().obstacle;
    now.filter(|why| known.as_ref() != Some(why))
}

/// Commits the queues, and nothing else; `None`: the branch has them already. An error is remembered for later
/// reports.
pub fn commit_now(workspace: &Workspace) -> Result<Option<CommitId>, Error> {
    let _slot = workspace.board.commit_slot()?;
    let known = workspace.board.committed();
    let done = commit(workspace, &known);
    let (seq, obstacle) = match &done {
        Ok((seq, _)) => (*seq, None),
        Err(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}"));
            let why = format!("{UNCOMMITTED}: {error}{}", hint.unwrap_or_default());
            (known.seq, Some(why))
        }
    };
    // If it can't be remembered, the next message repeats it.
    drop(workspace.board.set_committed(&Committed { seq, obstacle }));
    done.map(|(_, commit)| commit)
}

/// Returns the last event that the commit covers, and the commit if one was needed.
fn commit(workspace: &Workspace, known: &Committed) -> Result<(u64, Option<CommitId>), Error> {
    let snapshot = workspace.board.snapshot(known.seq)?;
    let last = snapshot.entries.last().map_or(known.seq, |last| last.seq);
    // Some changes, such as the order of items, have no event.
    let titles = titles(&snapshot.files);
    let message = message(&snapshot.entries, &titles).unwrap_or_else(|| "The queues".to_owned());
    let (dir, root) = (
        workspace.board.dir(),
        workspace.repository()?.main_worktree(),
    );
    let own = snapshot
        .files
        .into_iter()
        .filter(|(path, _)| path.starts_with(dir));
    let files: Vec<(PathBuf, Vec<u8>)> = own
        .filter_map(|(path, bytes)| Some((path.strip_prefix(root).ok()?.to_owned(), bytes)))
        .collect();
    if files.is_empty() {
        return Ok((last, None));
    }
    let made = workspace.repository()?.commit_board(&files, &message)?;
    Ok((last, made))
}

/// Returns the titles of the items in these files.
fn titles(files: &[(PathBuf, Vec<u8>)]) -> BTreeMap<TaskId, String> {
    let texts = files.iter().filter(|(path, _)| is_queue(path));
    let texts = texts.filter_map(|(_, bytes)| str::from_utf8(bytes).ok());
    let all = texts.flat_map(|text| {
        let (document, _) = parse(text);
        let title = |item: &Item<'_>| Some((item.id.clone()?, document.title(item).to_owned()));
        document
            .items()
            .iter()
            .filter_map(title)
            .collect::<Vec<_>>()
    });
    all.collect()
}

/// Describes the events' changes to each item; `None` if they changed none. Changes without an item's ID are listed by
/// queue.
fn message(entries: &[Entry], titles: &BTreeMap<TaskId, String>) -> Option<String> {
    let mut order: Vec<&str> = Vec::new();
    let mut told: BTreeMap<&str, String> = BTreeMap::new();
    for entry in entries
        .iter()
        .filter(|entry| entry.change != TextChange::Nothing || entry.is_of_item())
    {
        let task = entry.task.as_ref().map(TaskId::as_str);
        let Some(name) = task.or(entry.queue.as_deref()) else {
            continue;
        };
        let is_first = !told.contains_key(name);
        let words = told.entry(name).or_insert_with(|| {
            order.push(name);
            entry
                .task
                .as_ref()
                .map_or_else(|| name.to_owned(), |id| named(id, entry, titles))
        });
        let _ = match (task, &entry.change) {
            (
                Some(_),
                TextChange::Nothing | TextChange::Edited { .. } | TextChange::Added { .. },
            ) if let Some((from, to)) = entry.from().zip(entry.to()) => {
                let from = if is_first {
                    format!(": {from}")
                } else {
                    String::new()
                };
                write!(words, "{from} → {to}")
            }
            (Some(_), TextChange::Removed { .. }) => {
                let gone = if entry.kind == Kind::Archived {
                    "archived"
                } else {
                    "removed"
                };
                write!(words, "{} {gone}", if is_first { ":" } else { " →" })
            }
            (Some(_), TextChange::Added { .. }) if is_first => write!(words, ": added"),
            _ if is_first => write!(words, ": changed"),
            _ => Ok(()),
        };
    }
    let lines: Vec<&str> = order.iter().map(|name| told[name].as_str()).collect();
    let subject = lines.join(", ");
    match lines.len() {
        0 => None,
        _ if subject.chars().count() <= SUBJECT => Some(subject),
        count => {
            let more = if count > MOST_TOLD {
                format!("\nand {} more", count - MOST_TOLD)
            } else {
                String::new()
            };
            let items = if count == 1 {
                "1 item".to_owned()
            } else {
                format!("{count} items")
            };
            Some(format!(
                "{items}\n\n{}{more}",
                lines[..count.min(MOST_TOLD)].join("\n")
            ))
        }
    }
}

/// Returns the item's ID and title, from the event if it has one, else the current one.
fn named(id: &TaskId, entry: &Entry, titles: &BTreeMap<TaskId, String>) -> String {
    let text = entry
        .change
        .after()
        .or(entry.change.before())
        .unwrap_or_default();
    let (document, _) = parse(text);
    let told = document.items().first().map(|item| document.title(item));
    let title = told.or(titles.get(id).map(String::as_str));
    title.map_or_else(|| id.to_string(), |title| format!("{id} {title}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tavern_core::task::{Status, Timestamp};

    fn entry(task: &str, change: TextChange) -> Entry {
        let task = Some(task.parse().expect("it is an ID"));
        Entry {
            task,
            change,
            ..Entry::new(Kind::Noted, Timestamp::default())
        }
    }

    fn edited(moved: Option<(Status, Status)>) -> TextChange {
        TextChange::Edited {
            before: "- [ ] before\n".into(),
            after: "- [ ] after\n".into(),
            moved,
        }
    }

    #[test]
    fn a_message_tells_each_items_way() {
        let (pending, held, done) = (Status::Pending, Status::InProgress, Status::Completed);
        let added = entry(
            "T-1",
            TextChange::Added {
                from: None,
                to: pending,
                after: "- [ ] after\n".into(),
            },
        );
        let claimed = entry("T-1", edited(Some((pending, held))));
        let ended = entry("T-1", edited(Some((held, done))));
        let noted = Entry::new(Kind::Noted, Timestamp::default());
        let changed = entry("T-2", edited(None));
        let archived = TextChange::Removed {
            from: done,
            before: "- [ ] before\n".into(),
        };
        let archived = Entry {
            kind: Kind::Archived,
            ..entry("T-2", archived)
        };
        let typed = Entry {
            task: None,
            queue: Some("main".into()),
            ..changed.clone()
        };
        // An entry that only changes the state takes its title from the queue.
        let moved = Entry {
            moved: Some((pending, held)),
            ..entry("T-3", TextChange::Nothing)
        };
        let titles = BTreeMap::from([("T-3".parse().expect("an ID"), "three".to_owned())]);
        let rows: [(&[Entry], Option<&str>); 8] = [
            (&[moved], Some("T-3 three: pending → in progress")),
            (
                &[typed.clone(), typed, archived.clone()],
                Some("main: changed, T-2 before: archived"),
            ),
            (
                &[changed.clone(), archived],
                Some("T-2 after: changed → archived"),
            ),
            (std::slice::from_ref(&noted), None),
            (
                &[claimed.clone(), noted.clone()],
                Some("T-1 after: pending → in progress"),
            ),
            (
                &[claimed.clone(), ended.clone()],
                Some("T-1 after: pending → in progress → completed"),
            ),
            (&[added, claimed], Some("T-1 after: added → in progress")),
            (
                &[changed, ended],
                Some("T-2 after: changed, T-1 after: in progress → completed"),
            ),
        ];
        for (entries, expected) in rows {
            assert_eq!(message(entries, &titles).as_deref(), expected);
        }
        let many: Vec<Entry> = (0..150)
            .map(|number| entry(&format!("T-{number}"), edited(Some((pending, held)))))
            .collect();
        let long = message(&many, &titles).expect("something changed");
        assert!(
            long.starts_with("150 items\n\nT-0 after: pending → in progress\n"),
            "{long}"
        );
        assert!(
            long.ends_with("\nT-99 after: pending → in progress\nand 50 more"),
            "{long}"
        );
    }
}
