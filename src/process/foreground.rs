//! A program that is given the terminal: an editor, an agent that a person talks with. It is in our own group, or it could
//! not read keys, and who sits before it ends it.
#![expect(clippy::disallowed_methods, reason = "`process` starts programs")]

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, OnceLock};

use super::bell::Bell;
use super::family;
use super::start::{Spec, command, not_started};

/// Runs a shell's command line, such as `code --wait`, with one more argument, and waits for its end.
pub fn foreground(line: &str, argument: &Path) -> io::Result<ExitStatus> {
    let mut command = Command::new("sh");
    let mut child = spawned(command.arg("-c").arg(format!("{line} \"$@\"")).arg(line).arg(argument))?;
    waited_for(&mut child)
}

/// Its child is one of the family, while it lives.
fn spawned(command: &mut Command) -> io::Result<Child> {
    let mut live = family::lock();
    let child = command.spawn()?;
    live.add(child.id());
    Ok(child)
}

fn waited_for(child: &mut Child) -> io::Result<ExitStatus> {
    let status = child.wait();
    family::lock().remove(child.id());
    status
}

/// A program that has our standard streams, and with them the terminal, until it ends. It is found by its marks.
#[derive(Debug)]
pub struct Attended {
    end: Arc<OnceLock<io::Result<ExitStatus>>>,
}

/// Starts `spec` with our own standard streams, whatever it says of those; `bell` rings at its end.
///
/// # Errors
/// What the system says, with the program's or the folder's name in it.
pub fn attend(spec: &Spec, bell: &Bell) -> io::Result<Attended> {
    let mut command = command(spec)?;
    let mut child = spawned(&mut command).map_err(|error| not_started(command.get_program(), &error))?;
    let end = Arc::new(OnceLock::new());
    std::thread::Builder::new().name("attended".to_owned()).spawn({
        let (end, bell) = (Arc::clone(&end), bell.clone());
        move || {
            let _ = end.set(waited_for(&mut child));
            bell.ring();
        }
    })?;
    Ok(Attended { end })
}

impl Attended {
    /// How it ended, if it has; in words, where nobody knows.
    pub fn ended(&self) -> Option<String> {
        self.end.get().map(|end| end.as_ref().map_or_else(ToString::to_string, ToString::to_string))
    }
}
