//! The live view: a board on a terminal, drawn as it changes and led by keys.
//!
//! [`scene`] makes rows of an overview, [`screen`] holds what is open and takes keys, [`frame`] makes cells of it: these are pure, and so
//! are [`keys`] and [`typed_line`]. [`stream`] reads logs, [`terminal`] draws, [`deed`] starts other programs, [`watchers`] wake
//! [`view`], which has the loop.

pub mod view;

mod deed;
mod frame;
mod keys;
mod look;
mod scene;
mod screen;
mod stream;
mod terminal;
mod typed_line;
mod watchers;
