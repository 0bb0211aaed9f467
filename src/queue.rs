//! `tavern-queue`: list and remove queues.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use tavern_core::archive::Policy;
use tavern_core::document::parse;
use tavern_core::merge::prose;
use tavern_core::task::Status;
use tavern_git::Repository;
use tavern_store::{Archived, Board};
use tavern_sys::process::quoted;

use super::flags::DryRun;
use super::locate::new_queue;
use super::{CliError, Context, Exit, OwnRun, Verb, format};

/// List the queues, or remove one
///
/// Queues are listed by the `priority` in their front matter: agents of roles without `queues` take items in this order. A
/// queue can be removed once it has no open items and no text besides its items; these go to its archive.
#[derive(clap::Args)]
pub struct Args {
    /// What to do
    #[arg(value_enum, default_value_t)]
    pub action: QueueAction,

    /// The queue
    #[arg(value_name = "QUEUE", required_if_eq("action", "remove"))]
    pub name: Option<String>,

    #[command(flatten)]
    pub plan: DryRun,
}

/// Actions on queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum QueueAction {
    /// List them
    #[default]
    List,
    /// Remove one
    Remove,
}

#[derive(Serialize)]
struct Record<'a> {
    queue: &'a str,
    priority: u8,
    items: BTreeMap<&'static str, usize>,
    archived: usize,
}

/// A change of a queue.
#[derive(Serialize)]
struct QueueChange<'a> {
    queue: &'a str,
    action: &'static str,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-queue";
    const EXAMPLES: &'static [&'static str] = &["tavern queue", "tavern queue remove urgent"];

    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        if self.action == QueueAction::List {
            Ok(())
        } else {
            Err(run.refused())
        }
    }

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let name = self.name.as_deref().unwrap_or_default();
        match self.action {
            QueueAction::List => list(context, &board, self.name.as_slice()),
            QueueAction::Remove => remove(context, &board, name),
        }
    }
}

fn list(context: &Context, board: &Board, names: &[String]) -> Result<Exit, CliError> {
    let queues = context.files(board, names)?;
    let (archived, widest) = (
        Archived::of(board),
        queues.iter().map(|queue| queue.id.chars().count()).max(),
    );
    for queue in &queues {
        let text = match board.read(queue) {
            Ok(text) => text,
            Err(error) => {
                context.out.note(format!("{}: {error}", queue.id));
                continue;
            }
        };
        let (document, _) = text.content.parse();
        let (counts, archived, priority) = (
            document.counts(),
            archived.count(queue),
            document.front().rank(),
        );
        let mut words: Vec<String> = counts
            .iter()
            .map(|(status, count)| format!("{count} {}", format::word(status)))
            .collect();
        words.extend((archived > 0).then(|| format!("{archived} archived")));
        let words = if words.is_empty() {
            "no items".to_owned()
        } else {
            words.join(", ")
        };
        let items = counts.into_iter().collect();
        let record = Record {
            queue: &queue.id,
            priority,
            items,
            archived,
        };
        let width = widest.unwrap_or_default();
        context.out.line_of_list(
            &record,
            &format!("{:<width$} p{priority} {words}", queue.id),
        )?;
    }
    Ok(Exit::Done)
}

fn remove(context: &Context, board: &Board, name: &str) -> Result<Exit, CliError> {
    board.settle()?;
    let queue = board.queue(name, &context.here())?;
    let id = &queue.id;
    if queue.path.parent() != Some(&board.path("queues")) || queue.path.is_symlink() {
        let message = format!("`{id}` is your own file, which Tavern does not remove");
        return Err(CliError::refused(message, "remove it yourself"));
    }
    if board.is_needed(id) {
        let message = format!(
            "`{id}` would be made again: new items go to `main`, and roles to their `queues`"
        );
        return Err(CliError::refused(
            message,
            "keep it, or remove it from `queues` in .tavern/config.yaml",
        ));
    }
    let text = board.read(&queue)?.content;
    refuse_what_is_left(id, &text, &[Status::Completed, Status::Cancelled])?;
    let archived = board.archive(
        &queue,
        &Policy {
            after: None,
            keep: Some(0),
            dead: false,
        },
    )?;
    let text = board.read(&queue)?.content;
    refuse_what_is_left(id, &text, &[])?;
    if !board.remove_queue(&queue, &text)? {
        return Err(CliError::refused(
            format!("`{id}` is being saved"),
            format!("try again: tavern queue remove {id}"),
        ));
    }
    let record = QueueChange {
        queue: id,
        action: "removed",
    };
    let went = format!(
        "{} to queues/archive/{id}.md",
        format::count(archived, "item")
    );
    let went = if archived > 0 {
        format!("; {went}")
    } else {
        String::new()
    };
    context
        .out
        .record(&record, format!("queue {id} is removed{went}"))?;
    let file = queue.path.strip_prefix(board.root()).unwrap_or(&queue.path);
    let is_tracked = |repository: Repository| repository.tracks(file);
    if Repository::discover(board.root())
        .and_then(is_tracked)
        .unwrap_or_default()
    {
        let file = quoted(&queue.path);
        context.out.note(format!(
            "git still tracks it; to commit the removal: git commit -m 'Remove {id}' {file}"
        ));
    }
    Ok(Exit::Done)
}

/// Refuses to remove content with the file: items without a status in `may_stand`, and a person's prose.
fn refuse_what_is_left(id: &str, text: &str, may_stand: &[Status]) -> Result<(), CliError> {
    let (document, _) = parse(text);
    let open: Vec<_> = document
        .items()
        .iter()
        .filter(|item| !may_stand.contains(&item.status))
        .collect();
    if let Some(first) = open.first() {
        let item = first
            .id
            .as_ref()
            .map_or_else(|| format!("line {}", first.line), ToString::to_string);
        let message = format!(
            "`{id}` has {} left: {item} is {}",
            format::count(open.len(), "item"),
            first.status
        );
        let give_up = first
            .id
            .as_ref()
            .map(|id| format!(", or give it up: tavern cancel {id}"));
        let hint =
            "move the lines to another file in .tavern/queues/, where they are the same items";
        return Err(CliError::refused(
            message,
            format!("{hint}{}", give_up.unwrap_or_default()),
        ));
    }
    let (new, words) = (new_queue(id), prose(text));
    let usual: HashSet<&str> = new.lines().collect();
    let is_usual = |line: &str| {
        line.trim().is_empty() || usual.contains(line.trim_end()) || line.starts_with("priority:")
    };
    words
        .lines()
        .find(|line| !is_usual(line))
        .map_or(Ok(()), |line| {
            let message = format!(
                "`{id}` has text besides its items: `{}`",
                format::title(line.trim())
            );
            Err(CliError::refused(
                message,
                format!("move it elsewhere: tavern edit {id}"),
            ))
        })
}
