//! Tavern, from the ground floor up: read the modules in this order.

pub mod clock;
pub mod config;
pub mod failpoint;
pub mod file_watch;
pub mod files;
pub mod interrupt;
pub mod near;
pub mod printable;
pub mod secrets;
pub mod yaml;

pub mod board;
pub mod prompt;

pub mod git;
pub mod process;
pub mod runner;
pub mod store;

pub mod run;

pub mod agent;
pub mod pool;

pub mod cli;
