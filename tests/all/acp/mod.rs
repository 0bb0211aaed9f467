//! Agents that speak the Agent Client Protocol, through Tavern's own programs: a scripted one that is this test program
//! itself.

mod failures;
mod project;
mod scripted;
mod work;
