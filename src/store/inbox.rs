//! Inboxes `inbox/<task>/NNN.md`: messages for a running agent, delivered in order between its steps.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use super::error::Error;
use super::find::Board;
use super::replace::TEMP_PREFIX;
use crate::board::task::TaskId;
use crate::files;

/// A message that waits for its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub path: PathBuf,
    pub text: String,
}

impl Board {
    pub fn inbox(&self, task: &TaskId) -> PathBuf {
        self.path("inbox").join(task.as_str())
    }

    /// The messages that wait, oldest first.
    pub fn messages(&self, task: &TaskId) -> Result<Vec<Message>, Error> {
        let folder = self.inbox(task);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("list", &folder)(error)),
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .collect();
        paths.sort();
        Ok(paths
            .into_iter()
            .filter_map(|path| {
                let text = String::from_utf8_lossy(&files::read(&path).ok()?).into_owned();
                Some(Message { path, text })
            })
            .collect())
    }

    /// Puts a message at the end of the task's inbox; a dry run puts none there.
    pub fn send(&self, task: &TaskId, text: &str) -> Result<(), Error> {
        let folder = self.inbox(task);
        if self.is_dry() {
            return Ok(());
        }
        files::make_folder(&folder).map_err(Error::io("make the folder", &folder))?;
        let last =
            self.messages(task)?.last().and_then(|message| message.path.file_stem()?.to_str()?.parse::<u32>().ok());
        // Two senders may choose the same number: the name decides, and the other takes the next one.
        let mut temp = tempfile::Builder::new()
            .prefix(TEMP_PREFIX)
            .tempfile_in(&folder)
            .map_err(Error::io("write to", &folder))?;
        temp.write_all(text.as_bytes())
            .and_then(|()| temp.as_file().sync_all())
            .map_err(Error::io("write to", &folder))?;
        for number in last.unwrap_or(0) + 1.. {
            let path = folder.join(format!("{number:03}.md"));
            match temp.persist_noclobber(&path) {
                Ok(_) => return Ok(()),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => temp = error.file,
                Err(error) => return Err(Error::io("write", &path)(error.error)),
            }
        }
        unreachable!("the numbers do not end")
    }

    /// Takes a delivered message out of the inbox.
    pub fn delivered(&self, message: &Message) -> Result<(), Error> {
        match fs::remove_file(&message.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &message.path)(error)),
            _ => Ok(()),
        }
    }
}
