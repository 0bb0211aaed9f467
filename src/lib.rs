//! Tavern, from the ground floor up: read the modules in this order.

pub mod clock;
pub mod failpoint;
pub mod interrupt;

pub mod board;
