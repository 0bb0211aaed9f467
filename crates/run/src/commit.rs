//! The queues committed to git, for a board whose `config.yaml` asks for it.
//!
//! A commit follows transitions that have happened already: it never fails one, and it holds a lock of its own, not the
//! board's. What could not be committed now is in the next commit.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::error::Error;
use super::site::Site;
use super::trust::Trust;
use tavern_core::event::Kind;
use tavern_core::task::TaskId;
use tavern_git::{CommitId, GitErrorKind};
use tavern_store::config::Commit;
use tavern_store::{Committed, Entry, TextChange};

/// When a commit may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    Transition,
    /// The end of `tavern-drain`.
    DrainEnd,
}

/// Another git that holds the index or moves the branch is waited for, this often and so long each time.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_millis(50);

const UNCOMMITTED: &str = "the queues are not committed for now";

/// Longer first lines are cut by what shows them: then they only count, and the lines below tell.
const SUBJECT: usize = 72;

/// Items that a message tells of at most.
const MOST_TOLD: usize = 100;

/// Commits the queues, if config.yaml wants that now, and nothing else. Returns what a person should be told, once.
pub fn commit_queues(site: &Site, occasion: Occasion) -> Option<String> {
    let is_due = match site.config.commit {
        Commit::Never => false,
        Commit::Transition => true,
        Commit::Drain => occasion == Occasion::DrainEnd,
    };
    if !is_due
        || site.board.is_dry()
        || !site.board.has_uncommitted()
        || Trust::of(site).settings().is_err()
    {
        return None;
    }
    let known = site.board.committed().obstacle;
    // Where one waits too long for another's git, the next one commits for both.
    drop(commit_now(site));
    site.board
        .committed()
        .obstacle
        .filter(|why| known.as_ref() != Some(why))
}

/// Commits the queues, and nothing else, whatever config.yaml says; `None`: git has them as they are. Why it could not be is
/// remembered for others to tell.
pub fn commit_now(site: &Site) -> Result<Option<CommitId>, Error> {
    let _slot = site.board.commit_slot()?;
    let known = site.board.committed();
    let done = commit(site, &known);
    let now = match &done {
        Ok((seq, _)) => Committed {
            seq: *seq,
            obstacle: None,
        },
        Err(error) => {
            let hint = error
                .hint()
                .map(|hint| format!("; {hint}"))
                .unwrap_or_default();
            Committed {
                seq: known.seq,
                obstacle: Some(format!("{UNCOMMITTED}: {error}{hint}")),
            }
        }
    };
    if now != known {
        // If it can't be remembered, the next message tells of the same once more.
        drop(site.board.set_committed(&now));
    }
    done.map(|(_, commit)| commit)
}

/// Returns the last event that is in the commit, which there need not be.
fn commit(site: &Site, known: &Committed) -> Result<(u64, Option<CommitId>), Error> {
    let snapshot = site.board.snapshot(known.seq)?;
    // It may be what git has: one that was pulled, say.
    if let Some(aside) = site.board.set_aside().into_iter().next() {
        return Err(Error::Undecided(aside));
    }
    let last = snapshot.entries.last().map_or(known.seq, |last| last.seq);
    // The order of items, say, is in no event.
    let message = message(&snapshot.entries).unwrap_or_else(|| "tavern: the queues".to_owned());
    let root = site.repository()?.main_worktree();
    let files = snapshot.files.into_iter();
    let files: Vec<(PathBuf, Vec<u8>)> = files
        .filter_map(|(path, bytes)| Some((path.strip_prefix(root).ok()?.to_owned(), bytes)))
        .collect();
    let mut tries = 1;
    loop {
        match site.repository()?.commit_contents(&files, &message) {
            Err(error) if error.kind() == GitErrorKind::Busy && tries < TRIES => {
                tries += 1;
                site.interrupt.wait(PAUSE);
            }
            other => return Ok((last, other?)),
        }
    }
}

/// What the events did to the queues, item by item; `None` if they changed no text. What has no ID goes by its queue.
fn message(entries: &[Entry]) -> Option<String> {
    let mut order: Vec<&str> = Vec::new();
    let mut told: BTreeMap<&str, String> = BTreeMap::new();
    for entry in entries
        .iter()
        .filter(|entry| entry.change != TextChange::Nothing)
    {
        let task = entry.task.as_ref().map(TaskId::as_str);
        let Some(name) = task.or(entry.queue.as_deref()) else {
            continue;
        };
        let is_first = !told.contains_key(name);
        let words = told.entry(name).or_insert_with(|| {
            order.push(name);
            name.to_owned()
        });
        let _ = match (task, &entry.change) {
            (
                Some(_),
                TextChange::Edited {
                    moved: Some((from, to)),
                    ..
                }
                | TextChange::Added {
                    from: Some(from),
                    to,
                    ..
                },
            ) => {
                let from = if is_first {
                    format!(" {from}")
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
                write!(words, "{} {gone}", if is_first { "" } else { " →" })
            }
            (Some(_), TextChange::Added { .. }) if is_first => write!(words, " added"),
            _ if is_first => write!(words, " changed"),
            _ => Ok(()),
        };
    }
    let lines: Vec<&str> = order.iter().map(|name| told[name].as_str()).collect();
    let subject = format!("tavern: {}", lines.join(", "));
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
                "tavern: {items}\n\n{}{more}",
                lines[..count.min(MOST_TOLD)].join("\n")
            ))
        }
    }
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
            before: "before".into(),
            after: "after".into(),
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
                after: "after".into(),
            },
        );
        let claimed = entry("T-1", edited(Some((pending, held))));
        let ended = entry("T-1", edited(Some((held, done))));
        let noted = Entry::new(Kind::Noted, Timestamp::default());
        let changed = entry("T-2", edited(None));
        let archived = TextChange::Removed {
            from: done,
            before: "before".into(),
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
        let rows: [(&[Entry], Option<&str>); 7] = [
            (
                &[typed.clone(), typed, archived.clone()],
                Some("tavern: main changed, T-2 archived"),
            ),
            (
                &[changed.clone(), archived],
                Some("tavern: T-2 changed → archived"),
            ),
            (std::slice::from_ref(&noted), None),
            (
                &[claimed.clone(), noted.clone()],
                Some("tavern: T-1 pending → in_progress"),
            ),
            (
                &[claimed.clone(), ended.clone()],
                Some("tavern: T-1 pending → in_progress → completed"),
            ),
            (&[added, claimed], Some("tavern: T-1 added → in_progress")),
            (
                &[changed, ended],
                Some("tavern: T-2 changed, T-1 in_progress → completed"),
            ),
        ];
        for (entries, expected) in rows {
            assert_eq!(message(entries).as_deref(), expected);
        }
        let many: Vec<Entry> = (0..150)
            .map(|number| entry(&format!("T-{number}"), edited(Some((pending, held)))))
            .collect();
        let long = message(&many).expect("something changed");
        assert!(
            long.starts_with("tavern: 150 items\n\nT-0 pending → in_progress\n"),
            "{long}"
        );
        assert!(
            long.ends_with("\nT-99 pending → in_progress\nand 50 more"),
            "{long}"
        );
    }
}
