//! `tavern`: runs every other program as a verb, and lists them.

fn main() {}
