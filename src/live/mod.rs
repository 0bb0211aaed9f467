//! The live view: a board on a terminal, updated as it changes, with keys for actions.
//!
//! Pure: [`scene`] makes rows of an overview, [`screen`] holds the state and handles keys, [`frame`] draws
//! cells; also [`keys`], [`typed_line`] and [`offers`].
//!
//! The loop is in [`view`], woken by [`watchers`]; [`stream`] reads logs, [`terminal`] draws, [`deed`] starts
//! other programs.

pub mod action;
pub mod frame;
pub mod rows;
pub mod stream;
pub mod style;
pub mod typed_line;
pub mod view;
pub mod watchers;

mod allowed_actions;
mod keys;
mod screen;
mod terminal;
