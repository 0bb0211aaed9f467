//! Reads `thread.jsonl` again: the log of a session without supervisor.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

use super::acp_lines::AcpLines;
use super::event::AgentEvent;
use super::form::Form;
use super::reading::Reading;
use super::stream;
use tavern_sys::files;
use tavern_sys::process::LineFollower;

/// Reads the lines of a program that writes JSON, whichever protocol it speaks.
#[derive(Clone, Debug, Default)]
pub struct ThreadLines {
    acp: AcpLines,
}

impl ThreadLines {
    /// Returns the reader of a log from a line in its middle on.
    pub fn from_middle() -> ThreadLines {
        ThreadLines {
            acp: AcpLines::opened(),
        }
    }

    /// Returns the events of one line.
    pub fn read(&mut self, line: &str) -> Vec<AgentEvent> {
        match serde_json::from_str::<Value>(line) {
            Ok(value) if value["jsonrpc"].is_string() => self.acp.read(&value),
            Ok(value) => stream::of_value(&value),
            Err(_) => Vec::new(),
        }
    }
}

/// Calls `look` with the events of the log at `path`, and returns their reading. An answer in a `form` is turned into
/// words. Skips lines that are torn, or longer than a session reads.
///
/// # Errors
/// The system's error for the file.
pub fn read_thread(
    path: &Path,
    form: Option<Form>,
    look: &mut dyn FnMut(&AgentEvent),
) -> io::Result<Reading> {
    let (mut reading, mut lines) = (Reading::default(), ThreadLines::default());
    for line in BufReader::new(files::open(path)?).split(b'\n') {
        let line = line?;
        if line.len() > LineFollower::LONGEST {
            continue;
        }
        for mut event in lines.read(&String::from_utf8_lossy(&line)) {
            event.answer_in(form);
            reading.note(&event);
            look(&event);
        }
    }
    Ok(reading)
}
