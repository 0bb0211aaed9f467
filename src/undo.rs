//! `tavern-undo`: undo a change of an item.

use serde::Serialize;

use tavern_core::document::parse;
use tavern_core::event::Kind;
use tavern_core::task::{Status, TaskId};
use tavern_store::config::Config;
use tavern_store::{Board, Entry, Error, Note, Obstacle, TextChange, Undone, Which};
use tavern_sys::process::quoted;

use super::flags::DryRun;
use super::format::Painted;
use super::log::{diff, sentence};
use super::{CliError, Context, Exit, ItemName, Verb, format};

/// Undo the last change of an item, or a deletion by hand
///
/// Without an argument it undoes the last change of any item. --redo redoes an undone change, and so on: an undo is an event as
/// any other. It is refused if the item has changed since in the same place, or is held.
#[derive(clap::Args)]
pub struct Args {
    /// Only changes of this item
    #[arg(value_name = "ID")]
    pub task: Option<ItemName>,

    /// Undo the event with this number in the log, which may be an undo
    #[arg(long, value_name = "N", conflicts_with = "task")]
    pub event: Option<u64>,

    /// Redo the change that was undone last
    #[arg(long, conflicts_with = "event")]
    pub redo: bool,

    /// List the changes that can be undone, newest first; without a value the last 20
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "20")]
    #[arg(conflicts_with_all = ["event", "redo", "dry_run"])]
    pub list: Option<usize>,

    #[command(flatten)]
    pub plan: DryRun,
}

#[derive(Serialize)]
struct Record<'a> {
    /// The event that is undone.
    event: u64,
    kind: Kind,
    /// The event that undoes it.
    undone_by: u64,
    task: Option<&'a TaskId>,
    queue: &'a str,
    /// Absent if the item is no longer in its queue.
    status: Option<Status>,
    before: Option<&'a str>,
    after: Option<&'a str>,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-undo";
    const EXAMPLES: &'static [&'static str] = &["tavern undo --dry-run", "tavern undo T-2"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let named = self
            .task
            .as_ref()
            .map(|name| context.id_of(&board, name))
            .transpose()?;
        if let Some(most) = self.list {
            return list(context, &board, named.as_ref(), most);
        }
        let which = match (self.event, self.redo) {
            (Some(seq), _) => Which::Event(seq),
            (None, true) => Which::LastUndone(named.clone()),
            (None, false) => Which::Last(named.clone()),
        };
        let board = if context.is_dry {
            board.settled()?
        } else {
            board
        };
        let undone = board.undo(&which, &Note::default());
        if let (Err(Error::NotUndone(obstacle)), Some(task)) = (&undone, &named)
            && let Obstacle::Nothing = **obstacle
        {
            // An unknown item is an error.
            board.task(task)?;
        }
        tell(
            context,
            &board,
            &undone.map_err(|error| explained(&board, error))?,
        )?;
        Ok(Exit::Done)
    }
}

fn list(
    context: &Context,
    board: &Board,
    task: Option<&TaskId>,
    most: usize,
) -> Result<Exit, CliError> {
    let events = board.undoable(task, most)?;
    if events.is_empty() {
        return Err(Error::from(Obstacle::Nothing).into());
    }
    for event in &events {
        context
            .out
            .line_of_list(event, &format!("{:>5}  {}", event.seq, sentence(event)))?;
    }
    Ok(Exit::Done)
}

fn tell(context: &Context, board: &Board, undone: &Undone) -> Result<(), CliError> {
    let Undone {
        event,
        entry,
        queue,
    } = undone;
    let now = || Some(board.task(entry.task.as_ref()?).ok()?.task.status());
    let status = entry.change.after().and(entry.to().or_else(now));
    let record = Record {
        event: event.seq,
        kind: event.kind,
        undone_by: entry.seq,
        task: entry.task.as_ref(),
        queue: &queue.id,
        status,
        before: entry.change.before(),
        after: entry.change.after(),
    };
    let name = name(entry);
    let change = match entry.change {
        TextChange::Removed { .. } => format!("{name} is out of {} again", queue.id),
        TextChange::Added { to, .. } => format!("{name} is back in {} as {to}", queue.id),
        _ => match entry.to() {
            Some(to) => format!("{name} is {to} again"),
            None => format!("{name} is as before"),
        },
    };
    context.out.record(
        &record,
        format!(
            "{change}: {} is undone",
            entry.cause.as_deref().unwrap_or_default()
        ),
    )?;
    context.out.text(Painted::whole(&diff(entry)))?;
    if event.kind == Kind::Removed {
        // The deletions of one save have neighbouring numbers.
        let others = board.undoable(None, NEIGHBOURS)?;
        let others = others.iter().filter(|one| {
            one.kind == event.kind && one.queue == event.queue && one.time == event.time
        });
        let count = others.count();
        if count > 0 {
            context.out.note(format!(
                "the same save took out {} more; to restore a whole text: tavern edit {} --texts",
                format::count(count, "item"),
                quoted(&queue.id)
            ));
        }
    }
    Ok(())
}

/// How many changes are looked at for others of the same save.
const NEIGHBOURS: usize = 50;

/// Returns the ID of the item, else its title.
fn name(entry: &Entry) -> String {
    if let Some(task) = &entry.task {
        return task.to_string();
    }
    let text = entry
        .change
        .after()
        .or(entry.change.before())
        .unwrap_or_default();
    let (document, _) = parse(text);
    let title = document
        .items()
        .first()
        .map_or("", |item| document.title(item));
    format!("`{}`", format::title(title))
}

/// Returns a one-line command that reverts a merge and reopens its item.
fn revert(board: &Board, task: &TaskId, commit: &str) -> String {
    let branch = quoted(
        Config::load(board.dir())
            .unwrap_or_default()
            .integration
            .branch,
    );
    // The worktree is beside the repository, so that a conflict does not appear in the checkout.
    let folder = format!("{}-revert", quoted(board.root()));
    let revert = format!("git -C {folder} revert --no-edit -m 1 {commit}");
    format!(
        "git worktree add {folder} {branch} && {revert} && git worktree remove {folder} && tavern merge --accept {branch} && tavern reopen {task}"
    )
}

/// Returns the error with later events, or with a command to type.
fn explained(board: &Board, error: Error) -> CliError {
    let mut causes = Vec::new();
    if let Error::NotUndone(obstacle) = &error
        && let Obstacle::Merged { task, commit } = &**obstacle
    {
        let hint = revert(board, task, commit);
        return CliError::from(error).with_hint(hint);
    }
    if let Error::NotUndone(obstacle) = &error
        && let Obstacle::Since { since, .. } | Obstacle::Gone { since, .. } = &**obstacle
    {
        causes.extend(since.iter().map(sentence));
    }
    CliError {
        causes,
        ..CliError::from(error)
    }
}
