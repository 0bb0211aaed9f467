//! A program that is given the terminal: an editor, an agent that a person talks with. It is in our own group, or it could
//! not read keys, and who sits before it ends it.
#![expect(clippy::disallowed_methods, reason = "`process` starts programs")]

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::bell::Bell;
use super::family;
use super::start::{Spec, command, not_started};
use super::table;
use crate::clock::Deadline;

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a shell's command line, such as `code --wait`, with one more argument, and waits for its end.
pub fn foreground(line: &str, argument: &Path) -> io::Result<ExitStatus> {
    let mut command = Command::new("sh");
    let mut child = spawned(
        command
            .arg("-c")
            .arg(format!("{line} \"$@\""))
            .arg(line)
            .arg(argument),
    )?;
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
    pid: u32,
    end: Arc<OnceLock<io::Result<ExitStatus>>>,
}

/// Starts `spec` with our own standard streams, whatever it says of those; `bell` rings at its end.
///
/// # Errors
/// What the system says, with the program's or the folder's name in it.
pub fn attend(spec: &Spec, bell: &Bell) -> io::Result<Attended> {
    let mut command = command(spec)?;
    let mut child =
        spawned(&mut command).map_err(|error| not_started(command.get_program(), &error))?;
    let (pid, end) = (child.id(), Arc::new(OnceLock::new()));
    std::thread::Builder::new()
        .name("attended".to_owned())
        .spawn({
            let (end, bell) = (Arc::clone(&end), bell.clone());
            move || {
                let _ = end.set(waited_for(&mut child));
                bell.ring();
            }
        })?;
    Ok(Attended { pid, end })
}

impl Attended {
    /// Tells it, and what it has started, that its terminal goes, as a window does that is closed, and waits for its end: no longer than
    /// `grace`, and nothing is killed. A shell obeys that, which ignores a request to end; an editor puts away what was typed.
    pub fn hang_up(&self, grace: Duration) {
        let all = table::all();
        let mut pids = vec![self.pid];
        let mut next = 0;
        while let Some(parent) = pids.get(next).copied() {
            pids.extend(
                all.iter()
                    .filter(|entry| entry.parent == parent)
                    .map(|entry| entry.pid),
            );
            next += 1;
        }
        let deadline = Deadline::after(grace);
        let waiter = Bell::new();
        if self.end.get().is_some() {
            return;
        }
        for pid in pids
            .into_iter()
            .filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
        {
            // It may have ended just now.
            let _ = kill_process(pid, Signal::HUP).and_then(|()| kill_process(pid, Signal::CONT));
        }
        while self.end.get().is_none() && !deadline.left().is_zero() {
            waiter.wait(deadline.left().min(LOOK));
        }
    }

    /// How it ended, if it has; in words, where nobody knows.
    pub fn ended(&self) -> Option<String> {
        self.end.get().map(|end| {
            end.as_ref()
                .map_or_else(ToString::to_string, ToString::to_string)
        })
    }
}
