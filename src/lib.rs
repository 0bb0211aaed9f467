//! Tavern, from the ground floor up: read the modules in this order.

pub mod board;
