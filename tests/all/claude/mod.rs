//! The real Claude CLI (npm, pinned, installed into the build folder by scripts/install-claude) against a scripted
//! provider on the loopback interface: first through the runner alone, then through Tavern's own programs.

mod fake;
mod orphan;
mod runner;
mod stand_in;
mod workshop;
