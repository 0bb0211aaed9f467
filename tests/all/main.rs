//! The one test program: everything that is tested through real programs, files and processes.
#![expect(
    clippy::disallowed_methods,
    reason = "tests make and break files, and start the programs, on purpose"
)]

#[cfg(not(debug_assertions))]
compile_error!(
    "the tests set the clock and faults, which release builds know nothing of; optimised: cargo test --profile checked"
);

mod account;
mod acp;
mod actors;
mod answers;
mod appended;
mod archive;
mod ask;
mod awake;
mod badinput;
mod baseline;
mod branches;
mod buffers;
mod caps;
mod chat;
mod children;
mod ci;
mod claude;
mod cli;
mod clones;
mod commands;
mod committing;
mod conversations;
mod crash;
mod damage;
mod deeds;
mod dice;
mod diff;
mod drain;
mod drain_end;
mod drain_file;
mod drone;
mod dry;
mod edit;
mod editors;
mod expiry;
mod export;
mod fix;
mod foot;
mod formats;
mod front;
mod hands;
mod hostile;
mod imports;
mod isolation;
mod json_schema;
mod kanban;
mod learn;
mod listing;
mod lists;
mod lists_waits;
mod locks;
mod loops;
mod merging;
mod mess;
mod model;
mod moves;
mod naming;
mod notify;
mod obsidian;
mod past;
mod plan;
mod pool;
mod preflight;
mod prune;
mod queues;
mod readiness;
mod rebuild;
mod recovery;
mod report_html;
mod review;
mod rewritten;
mod rules;
mod sandbox;
mod saves;
mod schedule;
mod serve;
mod settings;
mod standing;
mod state;
mod state_file;
mod steps;
mod submodules;
mod support;
mod switches;
mod tell;
mod terminal;
mod tidy;
mod top;
mod typed;
mod undo;
mod watching;
mod ways;
mod words;
mod work;
