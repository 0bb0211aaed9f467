//! `tavern-log`: the event log, and one item's history in words.

use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use crate::board::event::Kind;
use crate::board::task::{Status, TaskId, Timestamp};
use crate::clock;
use crate::store::{Board, Entry, read_log, tail_log};

use super::{CliError, Context, Exit, Format, Verb, task_id};

/// Tell what happened: who took what, when, and what came of it
#[derive(clap::Args)]
pub struct Args {
    /// Only of this item
    #[arg(value_name = "ID", value_parser = task_id)]
    pub task: Option<TaskId>,

    /// Only of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Only the last N events
    #[arg(long, short = 'n', value_name = "N")]
    pub last: Option<usize>,

    /// Show how each event changed the item's text
    #[arg(long)]
    pub diff: bool,

    /// Go on as events happen; in JSON with a heartbeat every 30 s
    #[arg(long, short)]
    pub follow: bool,
}

#[derive(Serialize)]
struct Heartbeat {
    kind: &'static str,
    time: Timestamp,
}

/// What a follower is shown while nothing happens.
const HEARTBEAT: Duration = Duration::from_secs(30);

impl Verb for Args {
    const NAME: &'static str = "tavern-log";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let follower = if self.follow { Some(Follower::new(&board)?) } else { None };
        let entries = read_log(&board)?;
        let mut seen = entries.last().map_or(0, |entry| entry.seq);
        let wanted: Vec<&Entry> = entries.iter().filter(|entry| self.wants(entry)).collect();
        let skipped = self.last.map_or(0, |last| wanted.len().saturating_sub(last));
        for entry in &wanted[skipped..] {
            self.print(context, entry)?;
        }
        let Some(follower) = follower else {
            if let (true, Some(task)) = (wanted.is_empty(), &self.task) {
                context.out.note(format!("nothing has happened to {task} yet"));
            }
            return Ok(Exit::Done);
        };
        loop {
            context.out.flush()?;
            if !follower.wait(HEARTBEAT) && context.out.format() == Format::Json {
                context.out.record(&Heartbeat { kind: "heartbeat", time: clock::now() }, "")?;
            }
            for entry in tail_log(&board, seen)? {
                seen = entry.seq;
                if self.wants(&entry) {
                    self.print(context, &entry)?;
                }
            }
        }
    }
}

impl Args {
    fn wants(&self, entry: &Entry) -> bool {
        let is_task = self.task.is_none() || self.task == entry.task;
        let is_agent = self.agent.is_none() || self.agent == entry.agent;
        is_task && is_agent
    }

    fn print(&self, context: &Context, entry: &Entry) -> Result<(), CliError> {
        context.out.record(entry, sentence(entry))?;
        if self.diff {
            context.out.text(diff(entry))?;
        }
        Ok(())
    }
}

/// The event as a person would tell it.
fn sentence(entry: &Entry) -> String {
    let task = entry.task.as_ref().map_or_else(|| "the board".to_owned(), ToString::to_string);
    let agent = entry.agent.as_deref().unwrap_or("somebody");
    let to = |words: &str| entry.to.map_or_else(String::new, |status| format!("{words}{status}"));
    let what = match entry.kind {
        Kind::Added => format!("{task} was added{}", to(" as ")),
        Kind::Claimed => format!("{agent} claimed {task}"),
        Kind::Started => format!("{agent} started the agent program for {task}"),
        Kind::Submitted => format!("{agent} finished {task}, and its commands passed"),
        Kind::Failed => format!("{agent} failed at {task}, now {}", to("")),
        Kind::Returned => format!("{agent} gave {task} back{}", to(", now ")),
        Kind::Asked => format!("{agent} needs a person for {task}"),
        Kind::Reaped => format!("{task} was taken from {agent}"),
        Kind::Integrated => format!("{task} was merged"),
        Kind::SentBack => format!("{task} was sent back by integration"),
        Kind::Resumed => format!("{task} was resumed"),
        Kind::Revived => format!("{task} was taken from the dead letter lane"),
        Kind::Reopened => format!("{task} was reopened"),
        Kind::Cancelled => format!("{task} was cancelled"),
        Kind::Noted => task,
    };
    let mut line = format!("{} {what}", entry.time.format("%Y-%m-%d %H:%M:%S"));
    if let Some(commit) = &entry.commit {
        line.push_str(&format!(" at {}", &commit[..commit.len().min(7)]));
    }
    if let Some(token) = entry.token.filter(|_| entry.kind == Kind::Claimed) {
        line.push_str(&format!(" with token {token}"));
    }
    if let Some(cause) = &entry.cause {
        line.push_str(&format!(": {cause}"));
    }
    if entry.to == Some(Status::Dead) {
        line.push_str(" (its attempts are used up)");
    }
    line
}

fn diff(entry: &Entry) -> String {
    let (Some(before), Some(after)) = (entry.before.as_deref().or(Some("")), &entry.after) else {
        return String::new();
    };
    let diff = TextDiff::from_lines(before, after.as_str());
    let mut text = String::new();
    for change in diff.iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        text.push_str(&format!("  {sign} {}\n", change.value().trim_end_matches(['\r', '\n'])));
    }
    text.trim_end_matches('\n').to_owned()
}

/// Woken when the log grows.
struct Follower {
    changes: std::sync::mpsc::Receiver<()>,
    _watcher: notify::RecommendedWatcher,
}

impl Follower {
    fn new(board: &Board) -> Result<Follower, CliError> {
        use notify::Watcher;
        board.make_folders()?;
        let (sender, changes) = std::sync::mpsc::channel();
        let failed = |error: notify::Error| CliError::from_error(Exit::Failed, &error);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !event.kind.is_access()) {
                // Nobody follows any more.
                let _ = sender.send(());
            }
        })
        .map_err(failed)?;
        watcher.watch(&board.path("events"), notify::RecursiveMode::NonRecursive).map_err(failed)?;
        Ok(Follower { changes, _watcher: watcher })
    }

    /// True if the log grew, false after `time`.
    fn wait(&self, time: Duration) -> bool {
        let has_changed = self.changes.recv_timeout(time).is_ok();
        self.changes.try_iter().for_each(drop);
        has_changed
    }
}
