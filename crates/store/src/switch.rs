//! `PAUSE` and `STOP`: a file that is there pauses, or stops, every loop of the board.

use std::fs;

use super::find::Board;
use tavern_sys::files;

/// What the two files say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    On,
    /// Nothing new starts; what runs goes on. With the file's text as the reason.
    Paused(String),
    /// Everything ends politely and its work is kept.
    Stopped(String),
}

impl Board {
    pub fn switch(&self) -> Switch {
        // Whatever it is, and whether it can be read or not.
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
