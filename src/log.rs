//! `tavern-log`: prints the event log, or one item's history.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::json;
use similar::TextDiff;

use tavern_core::document::{Document, Item, parse, title_of};
use tavern_core::event::Kind;
use tavern_core::monitor::Symptom;
use tavern_core::task::{Status, TaskId, Timestamp};
use tavern_store::config::Period;
use tavern_store::{Board, Entry, HAND, LeaseEntry, TextChange, tail_log, walk_log};
use tavern_sys::clock;
use tavern_sys::file_watch::WatchOrLook;
use tavern_sys::interrupt::{Interrupt, InterruptCause};
use tavern_sys::process::Bell;

use super::format::Painted;
use super::past_time::moment;
use super::{CliError, Context, Exit, Format, ItemName, Verb, format};

/// Show the event log: changes of items, with time and author
#[derive(clap::Args)]
pub struct Args {
    /// Only events of this item
    #[arg(value_name = "ID")]
    pub task: Option<ItemName>,

    /// Only events of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Only the last N events
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,

    /// Only events since this time: `2h`, `18:00`, `yesterday`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Timestamp>,

    /// Only events of this queue
    #[arg(long, value_name = "QUEUE")]
    pub queue: Option<String>,

    /// Only events after this number, which --verbose and JSON (`seq`) print, to resume a stream
    #[arg(long, value_name = "NUMBER")]
    pub since_event: Option<u64>,

    /// Only diagnoses of runs, and the reactions
    #[arg(long)]
    pub diagnoses: bool,

    /// Show how each event changed the item's text
    #[arg(long)]
    pub diff: bool,

    /// Show also each event's number, the token of its claim and its run; and long lines whole
    #[arg(long)]
    pub verbose: bool,

    /// Print new events as they happen; in JSON also heartbeats
    #[arg(long, short)]
    pub follow: bool,

    /// With --follow in JSON: print a heartbeat after this time without an event
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub heartbeat: Period,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-log";
    const EXAMPLES: &'static [&'static str] =
        &["tavern log T-1 --diff", "tavern log --since 2h --follow"];
    const FOR_AGENTS: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let task = self
            .task
            .as_ref()
            .map(|name| context.id_of(&board, name))
            .transpose()?;
        let task = task.as_ref();
        let (bell, end) = (Bell::new(), Interrupt::new());
        let watch = self
            .follow
            .then(|| follow(&board, &bell, &end))
            .transpose()?;
        let (mut seen, most) = (0, self.last.unwrap_or(usize::MAX));
        let mut wanted = Vec::new();
        let after = self.since_event.unwrap_or(0);
        walk_log(&board, None, &mut |entry| {
            seen = seen.max(entry.seq);
            let is_new = entry.seq > after && self.since.is_none_or(|since| entry.time >= since);
            wanted.extend(
                (is_new && self.wants(task, &entry) && wanted.len() < most).then_some(entry),
            );
            is_new && wanted.len() < most
        })?;
        for entry in wanted.iter().rev() {
            self.print(context, entry)?;
        }
        let Some(_watch) = watch else {
            if wanted.is_empty() {
                self.tell_of_nothing(context, &board, task, seen)?;
            }
            return Ok(Exit::Done);
        };
        let _reader = bell.ring_at(&end);
        loop {
            context.out.flush()?;
            let has_rung = bell.wait(self.heartbeat.duration().max(Duration::from_millis(100)));
            if end.is_raised() {
                return Ok(Exit::Done);
            }
            if !has_rung && context.out.format() == Format::Json {
                context
                    .out
                    .record(&json!({"kind": "heartbeat", "time": clock::now()}), "")?;
            }
            for entry in tail_log(&board, seen)? {
                seen = entry.seq;
                if self.wants(task, &entry) {
                    self.print(context, &entry)?;
                }
            }
        }
    }
}

impl Args {
    /// Prints that there is no such event; `seen` is the last event that was read.
    fn tell_of_nothing(
        &self,
        context: &Context,
        board: &Board,
        task: Option<&TaskId>,
        seen: u64,
    ) -> Result<(), CliError> {
        if let (Some(task), None) = (task, &self.agent) {
            let hint = "list the items: tavern list; all events: tavern log".to_owned();
            board
                .task(task)
                .map_err(|error| CliError::from(error).with_hint(hint))?;
        }
        let text = match (task, &self.agent) {
            _ if seen > 0 && (self.since_event.is_some() || self.since.is_some()) => {
                format!("no events since; the last event is {seen}")
            }
            _ if seen > 0 && self.diagnoses => "no diagnoses; all events: tavern log".to_owned(),
            _ if seen == 0 => "no events yet; add an item: tavern add \"…\"".to_owned(),
            (Some(task), _) => {
                format!("no events of {task} yet; all events: tavern log")
            }
            (None, Some(agent)) => {
                format!("no events of {agent} yet; all events: tavern log")
            }
            (None, None) => return Ok(()),
        };
        context.out.note(text);
        Ok(())
    }

    fn wants(&self, task: Option<&TaskId>, entry: &Entry) -> bool {
        let is_task = task.is_none() || task == entry.task.as_ref();
        let is_agent = self.agent.is_none() || self.agent == entry.agent || self.agent == entry.by;
        let is_queue = self.queue.is_none() || self.queue == entry.queue;
        is_task && is_agent && is_queue && (!self.diagnoses || entry.kind == Kind::Diagnosed)
    }

    fn print(&self, context: &Context, entry: &Entry) -> Result<(), CliError> {
        let mut line = sentence(entry);
        if self.verbose {
            let token = entry
                .token
                .map(|token| format!(", token {token}"))
                .unwrap_or_default();
            let run = entry
                .run
                .as_ref()
                .map(|run| format!(", run {run}"))
                .unwrap_or_default();
            line.push_str(&format!(" (event {}{token}{run})", entry.seq));
        }
        // The history of one item is not cut.
        let is_list = self.task.is_none() && !self.verbose && !self.diff;
        if is_list {
            context.out.line_of_list(entry, &line)?;
        } else {
            context.out.record(entry, &line)?;
        }
        if self.diff && entry.change != TextChange::Nothing {
            context.out.text(Painted::whole(&diff(entry)))?;
        }
        Ok(())
    }
}

/// Describes the event in a sentence, with its time.
pub(super) fn sentence(entry: &Entry) -> String {
    format!("{} {}", clock::dated(entry.time), deed(entry))
}

/// Describes the event in a sentence.
pub(super) fn deed(entry: &Entry) -> String {
    let task = match (&entry.task, &entry.queue) {
        (Some(task), _) => task.to_string(),
        // An item without an ID.
        (None, Some(_)) if matches!(entry.change, TextChange::Removed { .. }) => nameless(entry),
        (None, Some(queue)) if entry.is_of_item() => {
            format!("{} of {queue}", nameless(entry))
        }
        (None, Some(queue)) => queue.clone(),
        (None, None) => "the board".to_owned(),
    };
    let agent = entry.agent.as_deref().unwrap_or("unknown");
    let by = match entry.actor() {
        None => String::new(),
        Some(HAND) => " by hand".to_owned(),
        Some(agent) => format!(" by {agent}"),
    };
    let to = |words: &str| {
        entry
            .to()
            .map_or_else(String::new, |status| format!("{words}{status}"))
    };
    let mut line = match entry.kind {
        Kind::Added => format!("{task} was added{}{by}", to(" as ")),
        Kind::Claimed if entry.is_chat() => format!("{agent} took {task} to talk with a person"),
        Kind::Claimed if entry.from() == Some(Status::Waiting) => {
            format!("{agent} took {task} up again")
        }
        Kind::Claimed => format!("{agent} claimed {task}"),
        Kind::Started => format!("{agent} started the agent program for {task}"),
        Kind::Submitted if entry.passed => {
            format!("{agent} finished {task}, and its commands passed")
        }
        Kind::Submitted => format!("{agent} finished {task}"),
        Kind::Approved => format!("{agent} approved {task}{}", to(", now ")),
        Kind::Rejected => format!("{agent} rejected {task}{}", to(", now ")),
        Kind::Parked => format!("{agent} put {task} aside until its children have ended"),
        Kind::Planned => format!("{agent} planned {task}"),
        Kind::Shifted => format!("{agent} changed the mode of {task}"),
        Kind::Ticked => format!("{agent} ticked steps of {task}"),
        Kind::Allowed => format!("{agent} allowed {task} to be started"),
        Kind::Failed => format!("{agent} failed at {task}, now {}", to("")),
        Kind::Returned => format!("{agent} gave {task} back{}", to(", now ")),
        Kind::Withdrawn => {
            let by = if by.is_empty() { " by a person" } else { &by };
            format!("{task} was taken from {agent}{by}{}", to(", now "))
        }
        Kind::Asked => format!("{agent} needs a person for {task}"),
        Kind::Reaped => format!("{task} was taken from {agent}{by}"),
        Kind::Expired => format!("{task} waited for too long"),
        Kind::Integrated => format!("{task} was merged{by}"),
        Kind::SentBack => format!("{task} was sent back{by}"),
        Kind::Resumed => format!("{task} was resumed{by}"),
        Kind::Revived => format!("{task} was taken from the dead letter lane{by}"),
        Kind::Reopened => format!("{task} was reopened{by}"),
        Kind::Cancelled => format!("{task} was cancelled{by}"),
        Kind::Edited => match entry.from().zip(entry.to()) {
            Some((from, to)) => format!("{task} was moved from {from} to {to}{by}"),
            None => format!("{task} was edited{by}"),
        },
        Kind::Removed => format!(
            "{task} was taken out of {}{by}",
            entry.queue.as_deref().unwrap_or("its queue")
        ),
        Kind::Moved => {
            let way = if entry.change.before().is_some() {
                "out of"
            } else {
                "to"
            };
            format!(
                "{task} was moved {way} {}{by}",
                entry.queue.as_deref().unwrap_or("its queue")
            )
        }
        Kind::Undone | Kind::Redone => match entry.change {
            TextChange::Removed { .. } => {
                format!(
                    "{task} was taken out of {} again{by}",
                    entry.queue.as_deref().unwrap_or("its queue")
                )
            }
            TextChange::Added { to, .. } => format!("{task} was put back as {to}{by}"),
            _ => match entry.to() {
                Some(to) => format!("{task} was made {to} again{by}"),
                None => format!("{task} was made to read as before{by}"),
            },
        },
        Kind::Archived => format!("{task} was moved to the archive{by}"),
        Kind::Sent => format!("{agent} wrote to {task}"),
        Kind::Told => format!("{task} was notified{by}"),
        Kind::Learned => format!("{agent} learned"),
        Kind::Strayed => format!("while {agent} ran {task}"),
        Kind::Diagnosed if matches!(entry.symptom, Some(Symptom::Spending | Symptom::Spent)) => {
            format!("{agent} works on {task}")
        }
        Kind::Diagnosed => format!("{agent} is in trouble with {task}"),
        Kind::Closed => "a runner is closed until you fix it".to_owned(),
        Kind::Noted => task,
    };
    if let Some(commit) = &entry.commit {
        line.push_str(&format!(" at {}", commit.get(..7).unwrap_or(commit)));
    }
    if let Some(LeaseEntry::Put(lease)) = entry
        .lease
        .as_ref()
        .filter(|_| entry.kind == Kind::Claimed && !entry.is_chat())
        && lease.attempt > 1
    {
        line.push_str(&format!(", attempt {}", lease.attempt));
    }
    if entry.kind == Kind::Claimed && entry.cause.is_some() {
        line.push_str(", which was answered");
    }
    // The cause is the item's name, which the sentence already has.
    let is_name = |cause: &&String| {
        entry.task.is_none() && entry.is_of_item() && cause.starts_with('`') && cause.ends_with('`')
    };
    if let Some(cause) = entry.cause.as_ref().filter(|cause| !is_name(cause)) {
        // git's message repeats its command.
        let more = by
            .strip_prefix(" by git ")
            .and_then(|done| cause.strip_prefix("git, ")?.strip_prefix(done));
        let told = more.map_or_else(|| format!(": {cause}"), str::to_owned);
        line.push_str(&format::words(&told));
        line.push_str(if entry.undoes.is_some() {
            " was undone"
        } else {
            ""
        });
    } else if let Some(change) = changed(entry) {
        line.push_str(&format!(": {change}"));
    }
    if entry.to() == Some(Status::Dead) {
        line.push_str(" (not retried)");
    }
    line
}

/// Returns the old title of an item without an ID, else its new one.
fn nameless(entry: &Entry) -> String {
    let title = entry
        .change
        .before()
        .or(entry.change.after())
        .and_then(title_of);
    title.map_or_else(
        || "an item".to_owned(),
        |title| format!("`{}`", format::title(&title)),
    )
}

/// Summarizes a person's edit: the title of a new item, or the changed parts of an old one.
fn changed(entry: &Entry) -> Option<String> {
    let after = parse(entry.change.after()?).0;
    let new = after.items().first()?;
    let title = || format::title(after.title(new)).into_owned();
    let before = match (entry.kind, entry.change.before()) {
        (Kind::Added, _) => return entry.task.is_some().then(title),
        (Kind::Edited, Some(before)) => parse(before).0,
        _ => return None,
    };
    let old = before.items().first()?;
    let mut words = Vec::new();
    if before.title(old) != after.title(new) {
        words.push(format!("now `{}`", title()));
    }
    let (was, is) = (keys(&before, old), keys(&after, new));
    let names: BTreeSet<&String> = was
        .keys()
        .chain(is.keys())
        .filter(|name| was.get(*name) != is.get(*name))
        .collect();
    // A move is already mentioned.
    words.extend(names.into_iter().filter(|name| *name != "status").cloned());
    if before.description(old) != after.description(new) {
        words.push("description".to_owned());
    }
    (!words.is_empty()).then(|| words.join(", "))
}

fn keys(document: &Document<'_>, item: &Item<'_>) -> BTreeMap<String, String> {
    let keys = document.entries(item).into_iter();
    keys.map(|entry| {
        (
            entry.name.to_owned(),
            document.text()[entry.value].to_owned(),
        )
    })
    .collect()
}

/// Returns how the event changed the item's text.
pub(super) fn diff(entry: &Entry) -> String {
    let (before, after) = (
        entry.change.before().unwrap_or(""),
        entry.change.after().unwrap_or(""),
    );
    let diff = TextDiff::from_lines(before, after);
    let mut text = String::new();
    for change in diff.iter_all_changes() {
        let line = format::words(change.value().trim_end_matches(['\r', '\n']));
        text.push_str(&format!("  {} {line}\n", change.tag()));
    }
    text.trim_end_matches('\n').to_owned()
}

/// Rings `bell` when the log grows, until the returned value is dropped. Raises `end` when the reader of
/// standard output has gone.
fn follow(board: &Board, bell: &Bell, end: &Interrupt) -> Result<WatchOrLook, CliError> {
    board.make_folders()?;
    watch_reader(end.clone())?;
    let bell = bell.clone();
    Ok(
        WatchOrLook::new([board.private("events")], move |_| bell.ring())
            .map_err(|(_, error)| error)?,
    )
}

/// Only a write would notice that `tavern log --follow | head` has lost its reader, and the next may take
/// hours. A thread polls for it, and ends with the process.
fn watch_reader(end: Interrupt) -> std::io::Result<()> {
    let watch = move || {
        let stdout = std::io::stdout();
        loop {
            let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
            match poll(&mut fds, None) {
                Ok(_) if fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
                    return end.raise(InterruptCause::Stopped);
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    };
    std::thread::Builder::new().spawn(watch).map(drop)
}
