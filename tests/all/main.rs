//! The one test program: everything that is tested through real programs, files and processes.
#![expect(clippy::disallowed_methods, reason = "tests make and break files, and start the programs, on purpose")]

mod archive;
mod badinput;
mod claude;
mod cli;
mod commands;
mod committing;
mod crash;
mod dice;
mod drain;
mod drain_file;
mod dry;
mod edit;
mod fix;
mod formats;
mod front;
mod hands;
mod locks;
mod loops;
mod merging;
mod model;
mod past;
mod plan;
mod pool;
mod preflight;
mod readme;
mod recovery;
mod review;
mod sandbox;
mod saves;
mod state;
mod support;
mod tidy;
mod together;
mod undo;
mod work;
