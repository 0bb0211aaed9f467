//! `tavern-add`: put an item into a queue.

use std::io::Read;

use serde::Serialize;
use serde_yaml::Value;

use crate::board::document::parse;
use crate::board::edit::NewItem;
use crate::board::task::{Status, TaskId};
use crate::clock;
use crate::store::{Note, Queue};

use super::{CliError, Context, Exit, Verb};

/// Put an item into a queue, and print its ID
///
/// The title is the arguments; without any, the whole item is read from standard input: its first line is the title,
/// the rest the description.
#[derive(clap::Args)]
pub struct Args {
    /// What is to be done
    #[arg(value_name = "TITLE")]
    pub title: Vec<String>,

    /// The queue, by name or path
    #[arg(long, value_name = "QUEUE", default_value = "main")]
    pub queue: String,

    /// Its ID [default: a fresh one]
    #[arg(long, value_name = "ID")]
    pub id: Option<TaskId>,

    /// 0 is most urgent
    #[arg(long, short = 'p', value_name = "0-9", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub priority: Option<u8>,

    /// Only after these are completed
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub after: Vec<TaskId>,

    /// Who may take it
    #[arg(long)]
    pub role: Option<String>,

    /// Words to find it by
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,

    /// A command that must exit with 0 before it counts as done; may be given several times
    #[arg(long, value_name = "COMMAND")]
    pub done_when: Vec<String>,

    /// Paths that it is expected to change
    #[arg(long, value_name = "GLOB")]
    pub touches: Vec<String>,

    /// More about it, for the agent
    #[arg(long, short = 'm', value_name = "TEXT")]
    pub description: Option<String>,

    /// The agent program
    #[arg(long)]
    pub runner: Option<String>,

    /// It is a part of this item; without a value, of the one that you work on (TAVERN_TASK)
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true)]
    pub parent: Option<Option<TaskId>>,

    /// Leave it in Draft: nobody takes it before it is moved to Pending
    #[arg(long)]
    pub draft: bool,

    /// Print the item, and add nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

#[derive(Serialize)]
struct Record<'a> {
    task: &'a TaskId,
    queue: &'a str,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-add";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let queue = board.queue(&self.queue, &context.here())?;
        let (title, description) = self.text()?;
        let parent = self.parent()?;
        let new = NewItem {
            id: self.id.clone().or(parent.as_ref().map(|parent| next_child(&board, &queue, parent)).transpose()?),
            title,
            fields: self.fields(parent.as_ref()),
            yaml_fields: self.yaml_fields(),
            description,
        };
        if self.dry_run {
            context.out.text(crate::board::edit::render(&new).trim_end())?;
            return Ok(Exit::Done);
        }
        let status = if self.draft { Status::Draft } else { Status::Pending };
        let note = Note { agent: std::env::var("TAVERN_AGENT").ok(), run: None };
        let task = board.add(&queue, new, status, &note, clock::now())?;
        context.out.record_with_variables(
            &Record { task: &task, queue: &queue.id },
            &task,
            &[("TAVERN_TASK", task.as_str()), ("TAVERN_QUEUE", &queue.id)],
        )?;
        Ok(Exit::Done)
    }
}

impl Args {
    fn text(&self) -> Result<(String, String), CliError> {
        let given = self.title.join(" ");
        let (title, rest) = if self.title.is_empty() {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| {
                CliError::from_error(Exit::Usage, &error).with_hint("give the item as UTF-8 text".to_owned())
            })?;
            let text = text.trim();
            let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
            (title.trim().trim_start_matches("- [ ] ").to_owned(), rest.trim_matches('\n').to_owned())
        } else {
            (given, String::new())
        };
        if title.trim().is_empty() {
            let hint = "tavern-add \"what is to be done\"".to_owned();
            return Err(CliError::new(Exit::Usage, "an item needs a title").with_hint(hint));
        }
        let description = match (&self.description, rest.is_empty()) {
            (Some(more), true) => more.clone(),
            (Some(more), false) => format!("{rest}\n\n{more}"),
            (None, _) => rest,
        };
        Ok((title, description))
    }

    fn parent(&self) -> Result<Option<TaskId>, CliError> {
        match &self.parent {
            None => Ok(None),
            Some(Some(id)) => Ok(Some(id.clone())),
            Some(None) => {
                let id = std::env::var("TAVERN_TASK").unwrap_or_default();
                let missing = CliError::new(Exit::Usage, "--parent needs an ID: TAVERN_TASK names no item");
                id.parse().map(Some).map_err(|_| missing.with_hint("--parent=T-k3f9".to_owned()))
            }
        }
    }

    fn fields(&self, parent: Option<&TaskId>) -> Vec<(&'static str, Value)> {
        let ids = |ids: &[TaskId]| Value::Sequence(ids.iter().map(|id| Value::from(id.as_str())).collect());
        let texts = |texts: &[String]| Value::Sequence(texts.iter().map(|text| Value::from(text.as_str())).collect());
        let mut fields: Vec<(&'static str, Value)> = Vec::new();
        fields.extend(self.priority.map(|priority| ("priority", Value::from(priority))));
        match self.after.as_slice() {
            [] => {}
            [one] => fields.push(("after", Value::from(one.as_str()))),
            several => fields.push(("after", ids(several))),
        }
        fields.extend(self.role.as_deref().map(|role| ("role", Value::from(role))));
        fields.extend((!self.tags.is_empty()).then(|| ("tags", texts(&self.tags))));
        fields.extend(self.runner.as_deref().map(|runner| ("runner", Value::from(runner))));
        fields.extend(parent.map(|parent| ("parent", Value::from(parent.as_str()))));
        fields
    }

    fn yaml_fields(&self) -> Vec<(&'static str, Value)> {
        let texts = |texts: &[String]| Value::Sequence(texts.iter().map(|text| Value::from(text.as_str())).collect());
        let mut fields = Vec::new();
        if !self.done_when.is_empty() {
            fields.push(("done_when", texts(&self.done_when)));
        }
        if !self.touches.is_empty() {
            fields.push(("touches", texts(&self.touches)));
        }
        fields
    }
}

/// `T-k3f9.1` for the first child of `T-k3f9`, and so on. Of two at once one is refused by the store and tries again.
fn next_child(board: &crate::store::Board, queue: &Queue, parent: &TaskId) -> Result<TaskId, CliError> {
    board.task(parent)?;
    let text = board.read(queue)?;
    let (document, _) = parse(&text.content);
    let number = (1..=u32::MAX).find(|number| document.find(&parent.child(*number)).is_none()).unwrap_or(1);
    Ok(parent.child(number))
}
