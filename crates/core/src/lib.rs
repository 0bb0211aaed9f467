//! The blackboard as values: documents, tasks, leases, events and the rules between them.
//!
//! Pure: no files, clock, environment, processes or printing, and nothing here fails on any input. Problems
//! of a document are returned as [`problem::Problem`]s beside the document, and broken rules as a `Refusal`.

pub mod nearest;
pub mod printable;
pub mod suggestion;
pub mod yaml;

pub mod activity;
pub mod archive;
pub mod budget;
pub mod cap;
pub mod check;
pub mod children;
pub mod document;
pub mod duplicate_ids;
pub mod edit;
pub mod front;
pub mod id;
pub mod key;
pub mod lane;
pub mod learning;
pub mod marked_item;
pub mod markup;
pub mod merge;
pub mod metadata;
pub mod monitor;
pub mod new_item;
pub mod notice;
pub mod number_or_text;
pub mod patch;
pub mod period;
pub mod position;
pub mod problem;
pub mod rewrite;
pub mod rule;
mod scan;
pub mod schedule;
pub mod searches;
pub mod shell_line;
pub mod state;
pub mod states;
pub mod status;
pub mod steps;
pub mod task;
pub mod text;
pub mod timetable;
pub mod title_tail;
pub mod touches;
pub mod watch_rules;

pub mod decide;
pub mod eligible;
pub mod event;
pub mod lease;
pub mod need;
pub mod plan;
pub mod planner_wake;

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod lossless;
#[cfg(test)]
mod parse_with_states;
