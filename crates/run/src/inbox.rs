//! The inbox of a task: messages are delivered to its running agent between two of its steps. Unread ones go into the
//! prompt of the next run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::runner::Session;
use tavern_core::task::TaskId;
use tavern_store::{Board, Message};
use tavern_sys::clock;
use tavern_sys::file_watch::FileWatch;
use tavern_sys::process::Bell;

use super::prompt_context::PromptContext;

/// The least time between two looks at the queue.
const BETWEEN_SAVES: Duration = Duration::from_secs(1);

/// The inbox of one task while its agent runs.
pub struct Inbox {
    board: Board,
    task: TaskId,
    /// Delivered with this text, and not yet read.
    delivered: Vec<(Message, String)>,
    /// The last event of the log that was read.
    seen: u64,
    /// An event was logged since, or the task's lease has changed.
    has_news: Arc<AtomicBool>,
    /// The task's queue was written by any process since the last look.
    is_saved: Arc<AtomicBool>,
    looked_at: Instant,
    /// `None`: it can't be watched, so there may always be news.
    watch: Option<FileWatch>,
}

impl Inbox {
    /// Opens the inbox for messages to `task` of `queue` after the event `seen`. `bell` rings when there may be a
    /// message, when the task may have been withdrawn, and when the queue is saved. A lease ends only after the event
    /// is logged.
    pub fn open(board: &Board, task: &TaskId, queue: &Path, seen: u64, bell: &Bell) -> Inbox {
        let (has_news, is_saved) = (
            Arc::new(AtomicBool::new(true)),
            Arc::new(AtomicBool::new(true)),
        );
        let changed = {
            let (has_news, is_saved, bell) =
                (Arc::clone(&has_news), Arc::clone(&is_saved), bell.clone());
            let (leases, lease) = (board.private("leases"), board.lease_path(task));
            let (queue, folder) = (queue.to_owned(), queue.parent().map(Path::to_owned));
            move |path: Option<&Path>| {
                if path.is_some_and(|path| path.parent() == folder.as_deref()) {
                    if path == Some(&queue) {
                        is_saved.store(true, Ordering::SeqCst);
                        bell.ring();
                    }
                    return;
                }
                if path.is_some_and(|path| path.starts_with(&leases) && path != lease) {
                    return;
                }
                has_news.store(true, Ordering::SeqCst);
                bell.ring();
            }
        };
        let folders = [board.private("events"), board.private("leases")].into_iter();
        let watch = FileWatch::new(folders.chain(queue.parent().map(Path::to_owned)), changed).ok();
        let (delivered, looked_at) = (Vec::new(), clock::instant());
        Inbox {
            board: board.clone(),
            task: task.clone(),
            delivered,
            seen,
            has_news,
            is_saved,
            looked_at,
            watch,
        }
    }

    /// Returns true if the task's queue was written since this last returned true, at most once a second. Other
    /// processes of Tavern write it often, and such a write looks like an external edit at that moment.
    pub fn is_saved(&mut self) -> bool {
        let is_due = self.patience().is_zero();
        if is_due {
            self.is_saved.store(false, Ordering::SeqCst);
            self.looked_at = clock::instant();
        }
        is_due
    }

    /// Returns the time until the queue is to be read.
    pub fn patience(&self) -> Duration {
        let is_saved = self.is_saved.load(Ordering::SeqCst);
        if is_saved {
            BETWEEN_SAVES.saturating_sub(self.looked_at.elapsed())
        } else {
            Duration::MAX
        }
    }

    /// Returns true if an event was logged or the task's lease changed since the last call, or if that is unknown.
    pub fn has_news(&self) -> bool {
        self.has_news.swap(false, Ordering::SeqCst) || self.watch.is_none()
    }

    /// Delivers waiting messages to the agent, in the words of `brief`. They stay pending until it has read them.
    pub fn pass_on(&mut self, brief: &PromptContext<'_>, session: &mut Session) {
        for message in self.news() {
            // A message that can't be rendered or delivered goes to the next run.
            let Ok(words) = brief.message(&message) else {
                continue;
            };
            if session.say(&words) {
                self.delivered.push((message, words));
            }
        }
    }

    /// Returns the messages that were not delivered yet.
    fn news(&mut self) -> Vec<Message> {
        let Ok((messages, seen)) = self.board.messages(&self.task, self.seen) else {
            return Vec::new();
        };
        self.seen = seen;
        messages
    }

    /// Returns the message that was delivered with this text and is now read; `None` if there is none.
    pub fn read(&mut self, words: &str) -> Option<Message> {
        let place = self
            .delivered
            .iter()
            .position(|(_, delivered)| delivered == words)?;
        Some(self.delivered.remove(place).0)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the folder is the test's own")]
mod tests {
    use super::*;

    fn board() -> (tempfile::TempDir, Board, TaskId) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir_all(folder.path().join(".tavern")).expect("it is ours");
        let board = Board::open(folder.path()).expect("it is there");
        ["events", "leases"]
            .iter()
            .for_each(|name| std::fs::create_dir_all(board.private(name)).expect("it is ours"));
        (folder, board, "T-1".parse().expect("it is an id"))
    }

    fn texts(inbox: &mut Inbox) -> Vec<String> {
        inbox
            .news()
            .into_iter()
            .map(|message| message.text)
            .collect()
    }

    #[test]
    fn only_what_is_sent_rings_and_each_message_is_new_once() {
        let (folder, board, task) = board();
        let send = |text| {
            board
                .send(&task, "Sam", None, None, text)
                .expect("it is ours");
        };
        send("first");
        let bell = Bell::new();
        let mut inbox = Inbox::open(&board, &task, &folder.path().join("queue.md"), 0, &bell);
        assert!(inbox.has_news());
        assert_eq!(texts(&mut inbox), ["first"]);
        // A look must not ring the bell, or it would cause the next look.
        assert!(
            !bell.wait(Duration::from_millis(300)),
            "it rang for its own look"
        );
        assert!(!inbox.has_news());
        assert_eq!(texts(&mut inbox), Vec::<String>::new());

        send("second");
        assert!(bell.wait(Duration::from_secs(20)) && inbox.has_news());
        assert_eq!(texts(&mut inbox), ["second"]);
        let (waiting, _) = board.messages(&task, 0).expect("it can be read");
        assert_eq!(waiting.len(), 2, "they are unread");
        inbox.delivered.extend(
            waiting
                .into_iter()
                .map(|message| (message.clone(), format!("<{}>", message.text))),
        );
        assert_eq!(
            inbox.read("second"),
            None,
            "it was delivered in other words"
        );
        let read = inbox.read("<second>").expect("it was delivered");
        board.mark_delivered("T-1@1", &read);
        assert_eq!(inbox.read("<second>"), None, "it was read once");
        let (waiting, _) = board.messages(&task, 0).expect("it can be read");
        assert_eq!(
            waiting
                .iter()
                .map(|message| message.text.as_str())
                .collect::<Vec<_>>(),
            ["first"]
        );
    }

    /// The event is logged first, and only then does the lease end.
    #[test]
    fn a_lease_that_is_gone_rings_for_its_holder_alone() {
        let (folder, board, task) = board();
        let of = |id: &str| board.lease_path(&id.parse().expect("it is an id"));
        ["T-1", "T-2"]
            .iter()
            .for_each(|id| std::fs::write(of(id), "").expect("it is ours"));
        let bell = Bell::new();
        let inbox = Inbox::open(&board, &task, &folder.path().join("queue.md"), 0, &bell);
        assert!(inbox.has_news() && !inbox.has_news());
        std::fs::remove_file(of("T-2")).expect("it is ours");
        assert!(
            !bell.wait(Duration::from_millis(300)),
            "it rang for another item"
        );
        std::fs::remove_file(of("T-1")).expect("it is ours");
        assert!(bell.wait(Duration::from_secs(20)) && inbox.has_news());
    }
}
