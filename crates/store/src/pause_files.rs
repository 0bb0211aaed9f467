//! The files `PAUSE` and `STOP` pause or stop every loop of the board.

use std::fs;

use super::board::Board;
use tavern_sys::files;

/// The state of the two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    On,
    /// Nothing new starts, while running agents continue. With the file's text as the reason.
    Paused(String),
    /// Everything ends gracefully, and work is kept.
    Stopped(String),
}

impl Board {
    pub fn switch(&self) -> Switch {
        // Any kind of file counts, even an unreadable one.
        let is_there = |name: &str| fs::symlink_metadata(self.path(name)).is_ok();
        let reason = |name: &str| {
            files::read_text(self.path(name))
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let text = |name: &str| is_there(name).then(|| reason(name));
        match (text("STOP"), text("PAUSE")) {
            (Some(reason), _) => Switch::Stopped(reason),
            (None, Some(reason)) => Switch::Paused(reason),
            (None, None) => Switch::On,
        }
    }
}
