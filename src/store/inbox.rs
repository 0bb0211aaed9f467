//! Messages to items. One is what the log says of it, text and sender; the file `inbox/<task>/NNN.md` is for people, and for
//! programs that look by themselves.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use super::change::Change;
use super::entry::Entry;
use super::error::Error;
use super::find::Board;
use super::log::walk_log;
use super::replace::{TEMP_PREFIX, replace_volatile};
use crate::board::event::Kind;
use crate::board::task::TaskId;
use crate::clock;
use crate::files;
use crate::secrets::redact;

/// A message that waits for its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The event by which it was sent.
    pub seq: u64,
    pub from: String,
    /// The run that the sender was in; `None`: a person.
    pub run: Option<String>,
    pub text: String,
}

impl Message {
    /// Of the event by which it was sent.
    pub fn of(entry: &Entry) -> Option<Message> {
        let (from, text) = (entry.agent.clone()?, entry.cause.clone()?);
        (entry.kind == Kind::Sent).then_some(Message { seq: entry.seq, from, run: entry.run.clone(), text })
    }

    /// As people read it.
    fn letter(&self) -> String {
        format!("From {}:\n{}\n", self.from, self.text)
    }
}

impl Board {
    /// Where people look for the messages to `task`.
    pub fn inbox(&self, task: &TaskId) -> PathBuf {
        self.path("inbox").join(task.as_str())
    }

    fn file_of(&self, task: &TaskId, message: &Message) -> PathBuf {
        self.inbox(task).join(format!("{:03}.md", message.seq))
    }

    /// The messages to `task` that were sent after the event `since` and were not told, oldest first, and the number of the last
    /// event that was looked at.
    pub fn messages(&self, task: &TaskId, since: u64) -> Result<(Vec<Message>, u64), Error> {
        let (mut told, mut found, mut last) = (HashSet::new(), Vec::new(), since);
        // Of all that is new only the end of the log is read, of all that there is only what is about the item.
        walk_log(self, (since == 0).then_some(task), &mut |entry| {
            last = last.max(entry.seq);
            let is_new = entry.seq > since;
            if is_new && entry.task.as_ref() == Some(task) {
                told.extend(entry.sent);
                found.extend(Message::of(&entry).filter(|message| !told.contains(&message.seq)));
            }
            is_new
        })?;
        found.reverse();
        Ok((found, last))
    }

    /// Sends a message to `task`: the log has it before there is a file. A dry run sends none.
    pub fn send(&self, task: &TaskId, from: &str, run: Option<String>, text: &str) -> Result<(), Error> {
        let message = self.transact(|view| {
            let sent = Entry {
                seq: view.last_seq + 1,
                task: Some(task.clone()),
                agent: Some(from.to_owned()),
                run,
                cause: Some(redact(text).into_owned()),
                ..Entry::new(Kind::Sent, view.now)
            };
            let message = Message::of(&sent).expect("it is one");
            Ok((Change::notes(vec![sent]), message))
        })?;
        if !self.is_dry() {
            // Who finds no file finds it in the log.
            let path = self.file_of(task, &message);
            drop(files::make_folder(&self.inbox(task)).map(|()| replace_volatile(&path, message.letter().as_bytes())));
        }
        Ok(())
    }

    /// The agent that works on `task` in `run` was given the message. A board that can't be written now has it given once more.
    pub fn told(&self, task: &TaskId, run: &str, message: &Message) {
        let told = self.note(Entry {
            task: Some(task.clone()),
            agent: Some(message.from.clone()),
            run: Some(run.to_owned()),
            sent: Some(message.seq),
            cause: Some(message.text.clone()),
            ..Entry::new(Kind::Told, clock::now())
        });
        let path = self.file_of(task, message);
        // What others have made of it is for people to see.
        let is_ours = files::read(&path).is_ok_and(|bytes| bytes == message.letter().as_bytes());
        if told.is_ok() && is_ours {
            drop(fs::remove_file(path));
        }
    }

    /// Files in inboxes of which the log knows nothing: nobody is told what they say.
    pub fn no_messages(&self) -> Vec<PathBuf> {
        let listed = |folder: PathBuf| {
            let is_plain = files::is_plain_folder(&folder).is_ok();
            let entries = is_plain.then(|| fs::read_dir(folder).ok()).flatten();
            entries.into_iter().flatten().filter_map(|entry| entry.ok().map(|entry| entry.path()))
        };
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut found = Vec::new();
        for folder in listed(self.path("inbox")) {
            let task = name(&folder).parse::<TaskId>().ok();
            let waiting = task.and_then(|task| {
                let (messages, _) = self.messages(&task, 0).ok()?;
                Some(messages.into_iter().map(|message| (self.file_of(&task, &message), message.letter())).collect())
            });
            let waiting: Vec<(PathBuf, String)> = waiting.unwrap_or_default();
            let is_known = |path: &PathBuf| {
                let letter = waiting.iter().find(|(file, _)| file == path).map(|(_, letter)| letter);
                letter.is_some_and(|letter| files::read(path).is_ok_and(|bytes| bytes == letter.as_bytes()))
            };
            let files = listed(folder).filter(|path| !name(path).starts_with(TEMP_PREFIX) && !is_known(path));
            found.extend(files);
        }
        found.sort();
        found
    }
}
