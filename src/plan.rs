//! `tavern-plan`: queue a request that a planner turns into items.

use tavern_core::eligible::DEFAULT_ROLE;
use tavern_core::key::Key;
use tavern_core::lease::Life;
use tavern_store::config::{Config, Does};
use tavern_store::{Board, life};

use super::flags::{DryRun, NewItemFlags};
use super::shared::read_stdin;
use super::{CliError, Context, Exit, Verb, add, hints};

/// Maximum length of a title made from a request, in characters.
const TITLE: usize = 100;

/// Queue a request for a planner, which turns it into items; print the planning item's ID
///
/// The request is the arguments, or standard input. Nothing is waited for: `tavern agent --role planner` takes it up, and
/// adds all items of its plan, or none. The items are ID.1, ID.2 and so on. They have the priority and tags of the request
/// unless they name their own, and begin in Draft with --draft. With --no-model the request itself becomes one item.
#[derive(clap::Args)]
pub struct Args {
    /// The request
    #[arg(value_name = "REQUEST")]
    pub request: Vec<String>,

    /// The queue, by name or path, for the planning item and its items
    #[arg(long, value_name = "QUEUE", default_value = "main")]
    pub queue: String,

    #[command(flatten)]
    pub item: NewItemFlags,

    /// Add the request itself as one item, without a planner
    #[arg(long)]
    pub no_model: bool,

    /// Information, not a request: the planner checks the board against it, and may plan nothing
    #[arg(long, conflicts_with = "no_model")]
    pub note: bool,

    /// The role that plans it; with --no-model, the role that works on it [default: planner, coder]
    #[arg(long)]
    pub role: Option<String>,

    #[command(flatten)]
    pub plan: DryRun,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-plan";
    const EXAMPLES: &'static [&'static str] = &["tavern plan \"Build a login page\" --draft"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let config = Config::load(board.dir())?;
        let role = self.role(&config)?;
        let queue = context.queue(&board, &self.queue)?;
        let general = board.read(&queue)?.content.parse().0.front().role.clone();
        let is_usual = general.as_deref().unwrap_or(DEFAULT_ROLE) == role;
        let is_typed = !self.request.is_empty();
        let request = if is_typed {
            self.request.join(" ")
        } else {
            read_stdin("the request")?
        };
        let (title, more) = parted(&request)?;
        let description: Vec<String> = more.into_iter().chain(self.item.description).collect();
        // The planned items become drafts, not the planning item.
        let lane = (self.item.draft && !self.no_model).then(|| (Key::Lane, "draft".into()));
        let trigger = self.note.then(|| (Key::Trigger, "a note".into()));
        let item = add::Args {
            title: vec![title],
            queue: Some(self.queue),
            role: Some(role.clone()).filter(|_| !is_usual),
            item: NewItemFlags {
                description: Some(description.join("\n\n")).filter(|text| !text.is_empty()),
                draft: self.item.draft && self.no_model,
                ..self.item
            },
            plan: self.plan,
            more: lane.into_iter().chain(trigger).collect(),
            ..add::Args::default()
        };
        let exit = item.run(context)?;
        if !self.no_model && !has_planner(&board, &config) {
            context.out.note(format!(
                "no planner is running: {}",
                hints::agent(&role, [queue.id.as_str()])
            ));
        }
        Ok(exit)
    }
}

impl Args {
    fn role(&self, config: &Config) -> Result<String, CliError> {
        let does = if self.no_model {
            Does::Work
        } else {
            Does::Plan
        };
        let usual = if self.no_model {
            DEFAULT_ROLE
        } else {
            "planner"
        };
        let role = self.role.as_deref().unwrap_or(usual);
        match config.roles.get(role) {
            Some(settings) if settings.does == does => Ok(role.to_owned()),
            _ => {
                let fit = config
                    .roles
                    .iter()
                    .filter(|(_, role)| role.does == does)
                    .map(|(name, _)| name.as_str());
                let hint = format!("one of: {}", fit.collect::<Vec<_>>().join(", "));
                let verb = if self.no_model {
                    "works on items"
                } else {
                    "plans"
                };
                Err(CliError::usage(format!("no role `{role}` {verb}"), hint))
            }
        }
    }
}

/// Splits a request into a title and the remaining text. A long line gets a shorter title and is repeated whole in the
/// text.
pub(super) fn parted(request: &str) -> Result<(String, Option<String>), CliError> {
    let request = request
        .trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
        .replace("\r\n", "\n");
    if request.is_empty() {
        return Err(CliError::usage(
            "a request needs some words",
            "tavern plan \"…\"",
        ));
    }
    let (first, rest) = request.split_once('\n').unwrap_or((&request, ""));
    let title = first.trim().trim_start_matches('#').trim();
    if title.chars().count() <= TITLE && !title.is_empty() {
        let rest = rest.trim_matches('\n').trim_end();
        return Ok((
            title.to_owned(),
            Some(rest.to_owned()).filter(|rest| !rest.is_empty()),
        ));
    }
    let cut = title
        .char_indices()
        .nth(TITLE)
        .map_or(title.len(), |(end, _)| end);
    let cut = title[..cut].rfind(' ').unwrap_or(cut);
    Ok((format!("{}…", &title[..cut]), Some(request)))
}

fn has_planner(board: &Board, config: &Config) -> bool {
    let plans = |role: &String| {
        config
            .roles
            .get(role)
            .is_some_and(|role| role.does == Does::Plan)
    };
    board
        .agents()
        .iter()
        .any(|agent| plans(&agent.role) && life(&agent.holder) != Life::Gone)
}
