//! Messages to items. One is what the log says of it, text and sender; the file `inbox/<task>/NNN.md` is for people, and for
//! programs that look by themselves.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use super::change::Change;
use super::entry::Entry;
use super::error::Error;
use super::find::Board;
use super::log::walk_log;
use super::replace::{TEMP_PREFIX, replace_volatile};
use tavern_core::event::Kind;
use tavern_core::monitor::Urgency;
use tavern_core::task::TaskId;
use tavern_sys::clock;
use tavern_sys::files;
use tavern_sys::secrets::redact;

/// A message that waits for its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The event by which it was sent.
    pub seq: u64,
    /// The item to whose agent it goes.
    pub task: TaskId,
    pub from: String,
    /// The run that the sender was in; `None`: a person.
    pub run: Option<String>,
    pub urgency: Option<Urgency>,
    pub text: String,
}

impl Message {
    /// Of the event by which it was sent.
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

    /// As people read it.
    fn letter(&self) -> String {
        let urgency = self
            .urgency
            .map(|urgency| format!(" ({urgency})"))
            .unwrap_or_default();
        format!("From {}{urgency}:\n{}\n", self.from, self.text)
    }
}

impl Board {
    /// Where people look for the messages to `task`.
    pub fn inbox(&self, task: &TaskId) -> PathBuf {
        self.path("inbox").join(task.as_str())
    }

    fn file_of(&self, message: &Message) -> PathBuf {
        self.inbox(&message.task)
            .join(format!("{:03}.md", message.seq))
    }

    /// The messages to `task` that were sent after the event `since` and were not told, oldest first, and the number of the last
    /// event that was looked at.
    pub fn messages(&self, task: &TaskId, since: u64) -> Result<(Vec<Message>, u64), Error> {
        self.unread(Some(task), since)
    }

    /// The same of all items, where no `task` is named.
    fn unread(&self, task: Option<&TaskId>, since: u64) -> Result<(Vec<Message>, u64), Error> {
        let (mut told, mut begun, mut found, mut last) =
            (HashSet::new(), HashSet::new(), Vec::new(), since);
        // Of all that is new only the end of the log is read, of all that there is only what is about the item.
        walk_log(self, task.filter(|_| since == 0), &mut |entry| {
            last = last.max(entry.seq);
            let is_new = entry.seq > since;
            let is_wanted =
                |of: &TaskId| is_new && task.is_none_or(|task| task == of) && !begun.contains(of);
            if let Some(of) = entry.task.clone().filter(is_wanted) {
                told.extend(entry.sent);
                found.extend(Message::of(&entry).filter(|message| !told.contains(&message.seq)));
                // What was put in once more is another item.
                if entry.is_first_of(&of) {
                    begun.insert(of);
                }
            }
            is_new
        })?;
        found.reverse();
        Ok((found, last))
    }

    /// Sends a message to `task`: the log has it before there is a file. A dry run sends none.
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
            // Who finds no file finds it in the log.
            let path = self.file_of(&message);
            drop(replace_volatile(&path, message.letter().as_bytes()));
        }
        Ok(())
    }

    /// The agent of `run` was given the message. A board that can't be written now has it given once more.
    pub fn told(&self, run: &str, message: &Message) {
        let path = self.file_of(message);
        // What others have made of it is for people to see. The other way round one that was told could look as if it waited.
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

    /// Files in inboxes of which the log knows nothing: nobody is told what they say.
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
