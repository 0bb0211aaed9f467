//! The real Claude CLI (npm, pinned, installed into the build folder by scripts/install-claude) against a scripted
//! provider on the loopback interface: first through the runner alone, then through Tavern's own programs.
//!
//! No `claude` found elsewhere on a machine is ever run, the environment is cleared, and no key is real.

mod caps;
mod day;
mod endings;
mod learn;
mod limits;
mod live;
mod plan;
pub mod project;
mod provider;
mod runner;
mod scenario;
pub mod stand_in;
mod supervision;
mod watch;
mod words;
mod work;
mod workshop;
