//! The inbox of a task: messages are handed to its running agent between two of its steps, or told with the prompt of its
//! next run, and taken away when it has read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::board::event::Kind;
use crate::board::task::TaskId;
use crate::clock;
use crate::file_watch::FileWatch;
use crate::files;
use crate::process::Bell;
use crate::runner::Session;
use crate::store::{Board, Claimed, Entry, Message};

use super::record::run_name;

/// A message of `from` as it lies in an inbox, and as an agent reads it.
pub fn letter(from: &str, text: &str) -> String {
    format!("From {from}:\n{text}\n")
}

/// Who sent it, if it says so, and what is said. Any file in the inbox is a message.
pub fn opened(letter: &str) -> (Option<&str>, &str) {
    let parts = letter.split_once('\n');
    let signed = parts.and_then(|(line, text)| Some((line.strip_prefix("From ")?.strip_suffix(':')?, text)));
    signed.map_or((None, letter), |(from, text)| (Some(from), text))
}

/// Writes to the log that the agent of `held` was given a message: whoever works on the task without its session is told
/// from there. A board that can't be written now leaves no more than a gap in the log.
pub fn record(board: &Board, held: &Claimed, letter: &str) {
    let (from, text) = opened(letter);
    drop(board.note(Entry {
        task: Some(held.task.id.clone()),
        agent: from.map(str::to_owned),
        run: Some(run_name(&held.task.id, held.lease.token)),
        cause: Some(text.trim_end().to_owned()),
        ..Entry::new(Kind::Told, clock::now())
    }));
}

/// The inbox of one task while its agent runs.
pub struct Inbox {
    board: Board,
    task: TaskId,
    /// Handed over, and not yet read.
    said: Vec<Message>,
    /// Something was put into the folder since it was last looked at.
    has_news: Arc<AtomicBool>,
    /// `None`: it can't be watched, so it is looked at every time.
    watch: Option<FileWatch>,
}

impl Inbox {
    /// The inbox of `task`; `bell` rings when something is put into it.
    pub fn open(board: &Board, task: &TaskId, bell: &Bell) -> Inbox {
        let has_news = Arc::new(AtomicBool::new(true));
        let folder = board.inbox(task);
        let changed = {
            let (has_news, bell) = (Arc::clone(&has_news), bell.clone());
            move |_: Option<&_>| {
                has_news.store(true, Ordering::SeqCst);
                bell.ring();
            }
        };
        let is_there = files::make_folder(&folder).is_ok();
        let watch = if is_there { FileWatch::new([folder], changed).ok() } else { None };
        Inbox { board: board.clone(), task: task.clone(), said: Vec::new(), has_news, watch }
    }

    /// Hands waiting messages to the agent. They stay in the inbox until it has read them.
    pub fn pass_on(&mut self, session: &mut Session) {
        for message in self.news() {
            if !session.say(&message.text) {
                // The agent looks into $TAVERN_INBOX by itself, or its successor gets it.
                return;
            }
            self.said.push(message);
        }
    }

    /// The messages that were not handed over yet, if there may be any.
    fn news(&self) -> Vec<Message> {
        let has_news = self.has_news.swap(false, Ordering::SeqCst);
        if !has_news && self.watch.is_some() {
            return Vec::new();
        }
        let mut messages = self.board.messages(&self.task).unwrap_or_default();
        // An empty one is still being written.
        messages.retain(|message| !message.text.is_empty() && self.said.iter().all(|said| said.path != message.path));
        messages
    }

    /// The agent has read `text`: its message is taken away. False if it was none of these.
    pub fn acknowledge(&mut self, text: &str) -> bool {
        let Some(place) = self.said.iter().position(|message| message.text == text) else { return false };
        let now = files::read(&self.said[place].path).unwrap_or_default();
        if !now.is_empty() && String::from_utf8_lossy(&now) != text {
            // It was still being written when it was handed over: it is given again, whole.
            self.said.remove(place);
            self.has_news.store(true, Ordering::SeqCst);
        } else if self.board.delivered(&self.said[place]).is_ok() {
            // One that can't be taken away stays in the list, or it would be given again and again.
            self.said.remove(place);
        }
        true
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and break files on purpose")]
mod tests {
    use std::time::Duration;

    use super::*;

    fn texts(inbox: &Inbox) -> Vec<String> {
        inbox.news().into_iter().map(|message| message.text).collect()
    }

    #[test]
    fn only_what_is_put_into_it_rings() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir_all(folder.path().join(".tavern")).expect("it is ours");
        let board = Board::open(folder.path()).expect("it is there");
        let task: TaskId = "T-1".parse().expect("it is an id");
        board.send(&task, "first").expect("it is ours");
        let bell = Bell::new();
        let mut inbox = Inbox::open(&board, &task, &bell);
        assert_eq!(texts(&inbox), ["first"]);
        // Looking rings for nobody, and so nobody looks again.
        assert!(!bell.wait(Duration::from_millis(300)), "it rang for its own look");
        assert_eq!(texts(&inbox), Vec::<String>::new());

        board.send(&task, "second").expect("it is ours");
        assert!(bell.wait(Duration::from_secs(20)));
        let waiting = board.messages(&task).expect("it can be read");
        assert_eq!(waiting.len(), 2);
        inbox.said.extend(waiting);
        assert!(inbox.acknowledge("second") && !inbox.acknowledge("third"));
        assert_eq!(board.messages(&task).expect("it can be read").len(), 1);

        // What was half written when it was handed over is given again.
        std::fs::write(&inbox.said[0].path, "first, and more").expect("it is ours");
        assert!(inbox.acknowledge("first"));
        assert_eq!(texts(&inbox), ["first, and more"]);
    }
}
