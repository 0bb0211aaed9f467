//! `tavern-plan`: queue a request, to be turned into items by a planner.

use std::io::Read;

use crate::board::document::parse;
use crate::board::eligible::DEFAULT_ROLE;
use crate::board::key::Key;
use crate::board::lease::Life;
use crate::board::task::TaskId;
use crate::config::{Config, Does};
use crate::store::{Board, life};

use super::shared::{priority, task_id};
use super::{CliError, Context, Exit, Verb, add};

/// Longest title that is made of a request, in characters.
const TITLE: usize = 100;

/// Queue a request for a planner, who turns it into items; print the planning item's ID
///
/// The request is the arguments, or standard input. Nothing is waited for: `tavern agent --role planner` takes it up, and
/// adds all items of its plan, or none. With --no-model the request itself becomes one item.
#[derive(clap::Args)]
pub struct Args {
    /// What is wanted
    #[arg(value_name = "REQUEST")]
    pub request: Vec<String>,

    /// The queue, by name or path, for the planning item and for what comes of it
    #[arg(long, value_name = "QUEUE", default_value = "main")]
    pub queue: String,

    /// Begin the planned items in Draft: nobody takes them before `tavern release ID`
    #[arg(long)]
    pub draft: bool,

    /// Add the request as one item, for whoever works on items: no planner, no model
    #[arg(long)]
    pub no_model: bool,

    /// It is something to know, not a request: the planner looks at the board with it, and may find nothing to do
    #[arg(long, conflicts_with = "no_model")]
    pub note: bool,

    /// The planning item's ID; its items are ID.1, ID.2 and so on [default: a fresh one]
    #[arg(long, value_name = "ID", value_parser = task_id)]
    pub id: Option<TaskId>,

    /// Of the planning, and of planned items that name none; 0 is most urgent
    #[arg(long, short = 'p', value_name = "0-9", value_parser = priority)]
    pub priority: Option<u8>,

    /// Plan it only after these are completed
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = task_id)]
    pub after: Vec<TaskId>,

    /// Words to find it by, and all that comes of it
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,

    /// Who plans it; with --no-model, who works on it [default: planner, coder]
    #[arg(long)]
    pub role: Option<String>,

    /// More about it
    #[arg(long, short = 'm', value_name = "TEXT")]
    pub description: Option<String>,

    /// Print the item, and add nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-plan";
    const CHANGES_QUEUES: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let config = Config::load(board.dir())?;
        let role = self.role(&config)?;
        let queue = board.queue(&self.queue, &context.here())?;
        let general = parse(&board.read(&queue)?.content).0.front().role.clone();
        let is_usual = general.as_deref().unwrap_or(DEFAULT_ROLE) == role;
        let (title, more) = parted(&self.request()?)?;
        let description: Vec<String> = more.into_iter().chain(self.description).collect();
        let lane = (self.draft && !self.no_model).then(|| (Key::Lane, "draft".into()));
        let trigger = self.note.then(|| (Key::Trigger, "a note".into()));
        let item = add::Args {
            title: vec![title],
            queue: Some(self.queue),
            id: self.id,
            priority: self.priority,
            after: self.after,
            role: Some(role.clone()).filter(|_| !is_usual),
            tags: self.tags,
            done_when: Vec::new(),
            touches: Vec::new(),
            description: Some(description.join("\n\n")).filter(|text| !text.is_empty()),
            runner: None,
            parent: None,
            on_failure: None,
            draft: self.draft && self.no_model,
            dry_run: self.dry_run,
            more: lane.into_iter().chain(trigger).collect(),
        };
        let exit = item.run(context)?;
        if !self.dry_run && !self.no_model && !has_planner(&board, &config) {
            context.out.note(format!("nobody plans at the moment: tavern agent --role {role}"));
        }
        Ok(exit)
    }
}

impl Args {
    fn role(&self, config: &Config) -> Result<String, CliError> {
        let does = if self.no_model { Does::Work } else { Does::Plan };
        let usual = if self.no_model { DEFAULT_ROLE } else { "planner" };
        let role = self.role.as_deref().unwrap_or(usual);
        match config.roles.get(role) {
            Some(settings) if settings.does == does => Ok(role.to_owned()),
            _ => {
                let fit = config.roles.iter().filter(|(_, role)| role.does == does).map(|(name, _)| name.as_str());
                let hint = format!("one of: {}", fit.collect::<Vec<_>>().join(", "));
                let verb = if self.no_model { "works on items" } else { "plans" };
                Err(CliError::new(Exit::Usage, format!("no role `{role}` {verb}")).with_hint(hint))
            }
        }
    }

    fn request(&self) -> Result<String, CliError> {
        if !self.request.is_empty() {
            return Ok(self.request.join(" "));
        }
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| {
            let message = format!("can't read the request from standard input: {error}");
            CliError::new(Exit::Usage, message).with_hint("give it as UTF-8 text, or as an argument".to_owned())
        })?;
        Ok(text)
    }
}

/// A request as a title, and what else it says. A long line is told whole under a shorter title.
fn parted(request: &str) -> Result<(String, Option<String>), CliError> {
    let request = request.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').replace("\r\n", "\n");
    if request.is_empty() {
        let hint = "tavern plan \"what is wanted\"".to_owned();
        return Err(CliError::new(Exit::Usage, "a request needs some words").with_hint(hint));
    }
    let (first, rest) = request.split_once('\n').unwrap_or((&request, ""));
    let title = first.trim().trim_start_matches('#').trim();
    if title.chars().count() <= TITLE && !title.is_empty() {
        let rest = rest.trim_matches('\n').trim_end();
        return Ok((title.to_owned(), Some(rest.to_owned()).filter(|rest| !rest.is_empty())));
    }
    let cut = title.char_indices().nth(TITLE).map_or(title.len(), |(end, _)| end);
    let cut = title[..cut].rfind(' ').unwrap_or(cut);
    Ok((format!("{}…", &title[..cut]), Some(request)))
}

fn has_planner(board: &Board, config: &Config) -> bool {
    let plans = |role: &String| config.roles.get(role).is_some_and(|role| role.does == Does::Plan);
    board.agents().iter().any(|agent| plans(&agent.role) && life(&agent.holder) != Life::Gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_becomes_a_title_and_a_text() {
        let long = "word ".repeat(40);
        for (request, title, more) in [
            ("Build it", "Build it", None),
            ("\n# Build it\r\n\r\n  - fast\n", "Build it", Some("  - fast".to_owned())),
            (long.as_str(), format!("{}…", "word ".repeat(20).trim_end()).as_str(), Some(long.trim().to_owned())),
        ] {
            assert_eq!(parted(request).map_err(|error| error.exit), Ok((title.to_owned(), more)), "{request}");
        }
        assert!(parted(" \n").is_err());
    }
}
