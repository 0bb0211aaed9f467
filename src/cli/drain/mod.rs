//! `tavern-drain`: a pool of agents that works a queue or a task file until it is empty.

use std::collections::HashSet;
use std::ffi::OsString;

use crate::agent::Told;
use crate::board::document::parse;
use crate::board::eligible::DEFAULT_ROLE;
use crate::clock;
use crate::pool::{News, Plan, run};
use crate::process;
use crate::run::commit::{Moment, commit_queues};
use crate::run::{Site, preflight};
use crate::store::{Queue, Switch};

use super::agent::sentence;
use super::program::sibling;
use super::progress::Progress;
use super::{CliError, Context, Exit, Verb, human};

use summary::summarise;

mod summary;
mod unfit;

/// Work a queue or a task file to its end, with several agents at once
///
/// The file may be any Markdown checklist, in a repository without a board: its boxes are ticked in place. Work is
/// merged into the integration branch (`tavern/integration`), never into your checkout. Exits with 0 when every item
/// is completed, else with 1 and a list of what is not, and where to look.
#[derive(clap::Args)]
pub struct Args {
    /// Queues or task files [default: all queues of the board]
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,

    /// How many agents at once
    #[arg(long, short = 'a', default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub agents: u16,

    /// What the agents are: items name the role that they are for
    #[arg(long, default_value = DEFAULT_ROLE, env = "TAVERN_ROLE", hide_env_values = true)]
    pub role: String,

    /// The agent program: an entry of `runners` in config.yaml, such as claude or shell
    #[arg(long, env = "TAVERN_RUNNER", hide_env_values = true)]
    pub runner: Option<String>,

    /// The model, as the agent program names it
    #[arg(long, env = "TAVERN_MODEL", hide_env_values = true)]
    pub model: Option<String>,

    /// Print what would be worked on
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-drain";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board_or_new()?;
        let mut site = context.site(board)?;
        site.runner.clone_from(&self.runner);
        site.base()?;
        let queues = context.queues(&site.board, &self.files)?;
        if queues.is_empty() {
            let hint = "name a file: tavern-drain TODO.md".to_owned();
            return Err(CliError::new(Exit::Usage, "there is no queue to drain").with_hint(hint));
        }
        let begun = preflight::begin(&site, &self.role)?;
        if let Some(switched) = CliError::switched(Exit::Refused, &site.board.switch()) {
            return Err(switched);
        }
        unfit::refuse(&site, &queues, &self.role)?;
        if self.dry_run {
            return preview(context, &site, &queues, &self.role);
        }
        for queue in &queues {
            site.board.remember(queue)?;
        }
        // Where nothing can be written no agent could say it better.
        site.board.settle(clock::now())?;
        process::adopt_orphans().map_err(|error| CliError::from_error(Exit::Failed, &error))?;
        let (started, before) = (clock::instant(), site.board.last_seq(clock::now())?);
        begun.doubt_line().iter().for_each(|doubt| context.out.note(doubt));
        let is_well = self.work(context, &site, &queues, &begun.runner)?;
        if let Switch::Stopped(reason) = site.board.switch() {
            context.out.note(format!("stopped by .tavern/STOP: {reason}"));
        }
        if let Some(why) = commit_queues(&site, Moment::DrainEnd) {
            context.out.note(why);
        }
        let mut summary = summarise(&site, &queues, &self.role)?;
        summary.add_archived(&site, &queues, before)?;
        summary.seconds = started.elapsed().as_secs();
        summary.print(context, &site)?;
        match context.interrupted() {
            Some(exit) => Ok(exit),
            None if is_well && summary.left.is_empty() => Ok(Exit::Done),
            None => Ok(Exit::Failed),
        }
    }
}

impl Args {
    fn work(&self, context: &Context, site: &Site, queues: &[Queue], runner: &str) -> Result<bool, CliError> {
        let open = count_open(site, queues)?;
        if open == 0 {
            context.out.note("there is nothing to do: no item is open");
            return Ok(true);
        }
        let agents = usize::from(self.agents).min(open);
        let (program, verb) = sibling("agent").map_err(|error| CliError::from_error(Exit::Failed, &error))?;
        let plan = Plan {
            program,
            args: verb.into_iter().chain(self.agent_args(site, queues)).collect(),
            folder: context.here(),
            agents,
        };
        let what = format!("{} with {}", human::count(open, "item"), human::count(agents, "agent"));
        context.out.note(format!("draining {what}, runner {runner}"));
        let progress = Progress::steps(context, open, what);
        // Each agent meets the same obstacles.
        let mut met = HashSet::new();
        let well = run(&plan, &site.interrupt, &mut |news| match news {
            News::Line(line) => {
                let Ok(heard) = serde_json::from_str::<Heard>(&line) else { return };
                if matches!(heard.told, Told::Integrated { .. }) {
                    progress.step();
                }
                let is_new = match &heard.told {
                    Told::Waiting { .. } => false,
                    told @ (Told::Skipped { .. } | Told::Hindered { .. }) => met.insert(told.to_string()),
                    _ => true,
                };
                if is_new {
                    progress.aside(|| context.out.note(sentence(&heard.agent, &heard.told)));
                }
            }
            News::Complaint(line) => progress.aside(|| context.out.note(line)),
            News::Died { exit, pause } => {
                progress.aside(|| context.out.note(format!("an agent {exit}; started again in {pause:.1?}")));
            }
            News::GivenUp { exit } => {
                progress.aside(|| context.out.note(format!("agents end at once again and again ({exit}): given up")));
            }
        });
        well.map_err(|error| CliError::from_error(Exit::Failed, &error))
    }

    fn agent_args(&self, site: &Site, queues: &[Queue]) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        args.extend(["--until-empty", "--quiet", "--format", "json", "--role", &self.role].map(OsString::from));
        // Not the role's: an item may name another one.
        if let Some(runner) = &self.runner {
            args.extend(["--runner", runner].map(OsString::from));
        }
        args.push("--dir".into());
        args.push(site.board.dir().into());
        if let Some(model) = &self.model {
            args.extend(["--model", model].map(OsString::from));
        }
        for queue in queues {
            args.push("--queue".into());
            args.push(queue.id.clone().into());
        }
        args
    }
}

#[derive(serde::Deserialize)]
struct Heard {
    agent: String,
    #[serde(flatten)]
    told: Told,
}

fn count_open(site: &Site, queues: &[Queue]) -> Result<usize, CliError> {
    let mut open = 0;
    for queue in queues {
        let text = site.board.read(queue)?;
        let (document, _) = parse(&text.content);
        open += document.items().iter().filter(|item| !item.status.is_ended()).count();
    }
    Ok(open)
}

fn preview(context: &Context, site: &Site, queues: &[Queue], role: &str) -> Result<Exit, CliError> {
    for left in summarise(site, queues, role)?.left {
        let text = format!("{}:{} {} {}", left.queue, left.line, left.status, human::title(&left.title));
        context.out.record(&left, text)?;
    }
    Ok(Exit::Done)
}
