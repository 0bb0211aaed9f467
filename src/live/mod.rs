//! The live view: a board on a terminal, drawn as it changes and led by keys.
//!
//! Pure are [`scene`], which makes rows of an overview, [`screen`], which holds what is open and takes keys, [`frame`], which makes cells
//! of it, [`keys`], [`typed_line`] and [`offers`].
//!
//! The loop is in [`view`]. What wakes it is in [`watchers`]; [`stream`] reads logs, [`terminal`] draws, [`deed`] starts other programs.

pub mod deed;
pub mod frame;
pub mod look;
pub mod scene;
pub mod stream;
pub mod typed_line;
pub mod view;
pub mod watchers;

mod keys;
mod offers;
mod screen;
mod terminal;
