//! Messages to items. The log entry, with text and sender, is the message; the file `inbox/<task>/NNN.md` is for people
//! and for programs that look by themselves.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use super::atomic_write::{TEMP_PREFIX, replace_volatile};
use super::board::Board;
use super::change::Change;
use super::entry::Entry;
use super::error::Error;
use super::log::walk_log;
use tavern_core::event::Kind;
use tavern_core::monitor::Urgency;
use tavern_core::task::TaskId;
use tavern_sys::clock;
use tavern_sys::files;
use tavern_sys::secrets::redact;

/// A message not yet delivered to its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The event that sent it.
    pub seq: u64,
    /// The item; its agent receives the message.
    pub task: TaskId,
    pub from: String,
    /// The sender's run; `None`: a person.
    pub run: Option<String>,
    pub urgency: Option<Urgency>,
    pub text: String,
}

impl Message {
    /// Returns the message that the event sent, if it is one.
    pub fn of(entry: &Entry) -> Option<Message> {
        let (task, from, text) = (
            entry.task.clone()?,
            entry.agent.clone()?,
            entry.cause.clone()?,
        );
        let (seq, run, urgency) = (entry.seq, entry.run.clone(), entry.urgency);
        (entry.kind == Kind::Sent).then_some(Message {
            seq,
            task,
            from,
            run,
            urgency,
            text,
        })
    }

    /// Returns the message as people read it.
    fn letter(&self) -> String {
        let urgency = self
            .urgency
            .map(|urgency| format!(" ({urgency})"))
            .unwrap_or_default();
        format!("From {}{urgency}:\n{}\n", self.from, self.text)
    }
}

impl Board {
    /// Returns the folder with the messages to `task`, for people.
    pub fn inbox(&self, task: &TaskId) -> PathBuf {
        self.path("inbox").join(task.as_str())
    }

    fn file_of(&self, message: &Message) -> PathBuf {
        self.inbox(&message.task)
            .join(format!("{:03}.md", message.seq))
    }

    /// Returns the undelivered messages to `task` sent after the event `since`, oldest first, and the number of the
    /// last event read.
    pub fn messages(&self, task: &TaskId, since: u64) -> Result<(Vec<Message>, u64), Error> {
        self.unread(Some(task), since)
    }

    /// Like `Board::messages`, but for all items if no `task` is given.
    fn unread(&self, task: Option<&TaskId>, since: u64) -> Result<(Vec<Message>, u64), Error> {
        let (mut told, mut begun, mut found, mut last) =
            (HashSet::new(), HashSet::new(), Vec::new(), since);
        // New messages need only the end of the log; otherwise only entries about the item are read.
        walk_log(self, task.filter(|_| since == 0), &mut |entry| {
            last = last.max(entry.seq);
            let is_new = entry.seq > since;
            let is_wanted =
                |of: &TaskId| is_new && task.is_none_or(|task| task == of) && !begun.contains(of);
            if let Some(of) = entry.task.clone().filter(is_wanted) {
                told.extend(entry.sent);
                found.extend(Message::of(&entry).filter(|message| !told.contains(&message.seq)));
                // An item that was added again is a new one.
                if entry.is_first_of(&of) {
                    begun.insert(of);
                }
            }
            is_new
        })?;
        found.reverse();
        Ok((found, last))
    }

    /// Sends a message to `task`: it is logged before its file is written. A dry run sends none.
    pub fn send(
        &self,
        task: &TaskId,
        from: &str,
        run: Option<String>,
        urgency: Option<Urgency>,
        text: &str,
    ) -> Result<(), Error> {
        let message = self.transact(|view| {
            let sent = Entry {
                seq: view.last_seq + 1,
                task: Some(task.clone()),
                agent: Some(redact(from).into_owned()),
                run,
                urgency,
                cause: Some(redact(text).into_owned()),
                ..Entry::new(Kind::Sent, view.now)
            };
            let message = Message::of(&sent).expect("it is one");
            Ok((Change::notes(vec![sent]), message))
        })?;
        if !self.is_dry() {
            // The log has the message even without the file.
            let path = self.file_of(&message);
            drop(replace_volatile(&path, message.letter().as_bytes()));
        }
        Ok(())
    }

    /// Records that the agent of `run` received the message. If the board can't be written now, the message is
    /// delivered again.
    pub fn mark_delivered(&self, run: &str, message: &Message) {
        let path = self.file_of(message);
        // A file that was edited is left for people. The file goes first: otherwise a delivered message could look
        // undelivered.
        if files::read(&path).is_ok_and(|bytes| bytes == message.letter().as_bytes()) {
            drop(fs::remove_file(path));
        }
        drop(self.note(Entry {
            task: Some(message.task.clone()),
            agent: Some(message.from.clone()),
            run: Some(run.to_owned()),
            urgency: message.urgency,
            sent: Some(message.seq),
            cause: Some(message.text.clone()),
            ..Entry::new(Kind::Told, clock::now())
        }));
    }

    /// Returns files in inboxes that the log does not know; they are not delivered.
    pub fn no_messages(&self) -> Vec<PathBuf> {
        let listed = |folder: PathBuf| {
            let is_plain = files::is_plain_folder(&folder).is_ok();
            let entries = is_plain.then(|| fs::read_dir(folder).ok()).flatten();
            entries
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        };
        let is_whole = |path: &PathBuf| {
            !path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(TEMP_PREFIX))
        };
        let mut found: Vec<PathBuf> = listed(self.path("inbox"))
            .flat_map(listed)
            .filter(is_whole)
            .collect();
        if !found.is_empty() {
            let (waiting, _) = self.unread(None, 0).unwrap_or_default();
            let letter = |message: &Message| (self.file_of(message), message.letter().into_bytes());
            let letters: HashMap<PathBuf, Vec<u8>> = waiting.iter().map(letter).collect();
            let is_letter = |path: &PathBuf, letter: &Vec<u8>| {
                files::read(path).is_ok_and(|bytes| bytes == *letter)
            };
            found.retain(|path| {
                !letters
                    .get(path)
                    .is_some_and(|letter| is_letter(path, letter))
            });
        }
        found.sort();
        found
    }
}
