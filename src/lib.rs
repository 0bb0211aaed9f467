//! Tavern, from the ground floor up: read the modules in this order.

pub mod board;
pub mod prompt;

pub mod clock;
pub mod config;
pub mod failpoint;
pub mod interrupt;
pub mod near;

pub mod git;
pub mod process;

pub mod cli;
pub mod runner;
