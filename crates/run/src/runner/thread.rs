//! Reads `thread.jsonl` again: the log of a session without supervisor.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::event::AgentEvent;
use super::form::Form;
use super::reading::Reading;
use super::stream;
use tavern_sys::files;
use tavern_sys::process::LineFollower;

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
    let mut reading = Reading::default();
    for line in BufReader::new(files::open(path)?).split(b'\n') {
        let line = line?;
        if line.len() > LineFollower::LONGEST {
            continue;
        }
        for mut event in stream::read(&String::from_utf8_lossy(&line)) {
            event.answer_in(form);
            reading.note(&event);
            look(&event);
        }
    }
    Ok(reading)
}
