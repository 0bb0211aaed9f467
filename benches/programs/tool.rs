//! What is measured: a tool adds, takes and ends an item by a program of its own. Knows none of them.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::timed::ROUNDS;

/// What does the job of a task list.
pub trait Tool: Sync {
    fn name(&self) -> &'static str;

    fn add(&self, title: &str) -> Command;

    fn claim(&self) -> Command;

    /// What a claim printed, as [`Tool::done`] wants it; its first word is the item. `None`: there was nothing to take.
    fn taken(&self, said: &str) -> Option<String>;

    fn done(&self, taken: &str) -> Command;

    /// The items that are claimed now, by what the tool has stored.
    fn held(&self) -> Vec<String>;

    fn bounds(&self) -> Bounds {
        Bounds {
            rounds: ROUNDS,
            claimers: usize::MAX,
            crowd: usize::MAX,
        }
    }
}

/// How much of it is measured, so that the slow ones don't take the day.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub rounds: usize,
    /// At once.
    pub claimers: usize,
    /// Items that many claim at once.
    pub crowd: usize,
}

pub fn answers(program: &str) -> bool {
    let started = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    started.is_ok_and(|output| output.status.success())
}

pub fn title(number: usize) -> String {
    format!("Item number {number} of this list is to be done")
}

/// A queue of `size` pending items, each of about 130 bytes.
pub fn lanes(size: usize) -> String {
    let mut text = String::from("# Main\n\n## Pending\n\n");
    for number in 0..size {
        let title = title(number);
        text.push_str(&format!(
            "- [ ] T-{number:05}: {title} (worktree: false)\n  What it is about stands in a line beneath it.\n\n"
        ));
    }
    text.push_str(
        "## In Progress\n\n## In Review\n\n## Waiting\n\n## Completed\n\n## Dead Letter\n",
    );
    text
}

pub fn shell(line: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder);
    command
}
