//! `thread.jsonl` once more: what a session's log says when nobody follows it any more. Knows nothing of who runs it.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::event::AgentEvent;
use super::form::Form;
use super::reading::Reading;
use super::stream;
use tavern_sys::files;
use tavern_sys::process::LineFollower;

/// Calls `look` with the events of the log at `path`, and returns what they come to. An answer in a `form` is taken in its words. Lines
/// that are torn, or longer than a session reads, are passed over.
///
/// # Errors
/// What the system says of the file.
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
