//! A program that owns the terminal: an editor, or an agent in a chat. It stays in our process group, or it could not
//! read keys; the person at the terminal ends it.
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

/// How often to check whether it has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a shell command line, such as `code --wait`, with one more argument, and waits for its end.
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

/// Starts a child and registers it in the family while it lives.
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

/// A program with our standard streams, and with them the terminal, until it ends. It is found by its marks.
#[derive(Debug)]
pub struct Attended {
    pid: u32,
    end: Arc<OnceLock<io::Result<ExitStatus>>>,
}

/// Starts `spec` with our own standard streams, ignoring its own; `bell` rings at its end.
///
/// # Errors
/// The system's error, with the program's or the folder's name.
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
    /// Sends SIGHUP to it and its descendants, as closing a window does, and waits for its end, at most for `grace`;
    /// nothing is killed. A shell obeys SIGHUP but ignores TERM; an editor saves typed text.
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

    /// Returns how it ended, if it has; an error message if the status is unknown.
    pub fn ended(&self) -> Option<String> {
        self.end.get().map(|end| {
            end.as_ref()
                .map_or_else(ToString::to_string, ToString::to_string)
        })
    }
}
