//! `tavern-drain`: a pool of agents that works a queue or a task file until it is empty.

use std::ffi::OsString;
use std::path::Path;

use serde::Serialize;

use crate::agent::Told;
use crate::board::document::parse;
use crate::board::eligible::{DEFAULT_ROLE, in_order};
use crate::board::task::{Status, TaskId};
use crate::clock;
use crate::pool::{News, Plan, run};
use crate::process;
use crate::run::artifacts::runs_of;
use crate::run::{Site, runners};
use crate::store::{Queue, Switch};

use super::program::sibling;
use super::progress::Progress;
use super::{CliError, Context, Exit, Verb, human};

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

/// One item that did not end completed.
#[derive(Serialize)]
struct Left {
    queue: String,
    line: usize,
    task: Option<TaskId>,
    title: String,
    status: Status,
    reason: Option<String>,
    /// The folder of its last run.
    run: Option<String>,
}

/// What became of all items.
#[derive(Default, Serialize)]
struct Summary {
    completed: usize,
    cancelled: usize,
    left: Vec<Left>,
    usd: f64,
    seconds: u64,
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
        let role = site.role(&self.role)?.clone();
        let runner = self.runner.clone().unwrap_or_else(|| role.runner.clone());
        if let Err(not_ready) = runners::runner(&site, &runner, &role)?.check() {
            return Err(not_ready.into());
        }
        if let Switch::Paused(reason) | Switch::Stopped(reason) = site.board.switch() {
            let hint = "remove .tavern/PAUSE or .tavern/STOP to go on".to_owned();
            return Err(CliError::new(Exit::Refused, format!("the board is stopped: {reason}")).with_hint(hint));
        }
        let unfit = unfit(&site, &queues, &self.role)?;
        if let Some(unfit) = unfit.first().map(|_| refused(&unfit, &queues)) {
            return Err(unfit);
        }
        if self.dry_run {
            return preview(context, &site, &queues);
        }
        for queue in &queues {
            site.board.remember(queue)?;
        }
        process::adopt_orphans().map_err(|error| CliError::from_error(Exit::Failed, &error))?;
        let started = clock::instant();
        let is_well = self.work(context, &site, &queues, &runner)?;
        if let Switch::Stopped(reason) = site.board.switch() {
            context.out.note(format!("stopped by .tavern/STOP: {reason}"));
        }
        let mut summary = summarise(&site, &queues)?;
        summary.seconds = started.elapsed().as_secs();
        print(context, &site, &summary)?;
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
        let agents = usize::from(self.agents).min(open.max(1));
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
        let well = run(&plan, &site.interrupt, &mut |news| match news {
            News::Line(line) => {
                let Ok(heard) = serde_json::from_str::<Heard>(&line) else { return };
                if matches!(heard.told, Told::Integrated { .. }) {
                    progress.step();
                }
                if !matches!(heard.told, Told::Waiting { .. }) {
                    progress.aside(|| context.out.note(format!("{}: {}", heard.agent, heard.told)));
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

/// A pending item that its runner could do nothing with.
struct Unfit {
    queue: String,
    line: usize,
    title: String,
    runner: String,
}

/// Told before anything is begun: a drain that leaves items behind from the outset is a mistake in the command line.
fn unfit(site: &Site, queues: &[Queue], role_name: &str) -> Result<Vec<Unfit>, CliError> {
    let role = site.role(role_name)?;
    let scripted = site.scripted();
    let nobody: TaskId = "T-0".parse().expect("it is an ID");
    let mut unfit = Vec::new();
    for queue in queues {
        let text = site.board.read(queue)?;
        let (document, _) = parse(&text.content);
        for item in in_order(&document).into_iter().filter(|item| !item.quarantined) {
            let task = document.task(item, item.id.clone().unwrap_or_else(|| nobody.clone()));
            let runner = site.runner_of(&task, role);
            let is_ours = task.role.as_deref().unwrap_or(DEFAULT_ROLE) == role_name;
            if is_ours && scripted.contains(&runner) && document.shell(item).is_none() {
                unfit.push(Unfit { queue: queue.id.clone(), line: item.line, title: task.title, runner });
            }
        }
    }
    unfit.sort_by(|a, b| (&a.queue, a.line).cmp(&(&b.queue, b.line)));
    Ok(unfit)
}

/// How many of a long list are named.
const NAMED: usize = 10;

fn refused(unfit: &[Unfit], queues: &[Queue]) -> CliError {
    let items = if unfit.len() == 1 { "1 item has".to_owned() } else { format!("{} items have", unfit.len()) };
    let runner = &unfit[0].runner;
    let mut message = format!("nothing was begun: {items} no ```sh block, which the runner `{runner}` needs");
    for one in unfit.iter().take(NAMED) {
        message.push_str(&format!("\n  {}:{}: {}", one.queue, one.line, one.title));
    }
    if unfit.len() > NAMED {
        message.push_str(&format!("\n  and {} more", unfit.len() - NAMED));
    }
    let file = queues.first().map_or("", |queue| &queue.id);
    let hint =
        format!("have them done by an agent: tavern-drain {file} --runner claude; or indent an ```sh block under each");
    CliError::new(Exit::Refused, message).with_hint(hint)
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

fn preview(context: &Context, site: &Site, queues: &[Queue]) -> Result<Exit, CliError> {
    for left in summarise(site, queues)?.left {
        let text = format!("{}:{} {} {}", left.queue, left.line, left.status, left.title);
        context.out.record(&left, text)?;
    }
    Ok(Exit::Done)
}

fn summarise(site: &Site, queues: &[Queue]) -> Result<Summary, CliError> {
    let mut summary = Summary::default();
    for queue in queues {
        let text = site.board.read(queue)?;
        let (document, _) = parse(&text.content);
        for item in document.items() {
            let runs = item.id.as_ref().map(|id| runs_of(&site.board, id)).transpose()?.unwrap_or_default();
            summary.usd += runs.iter().map(|run| run.usage.usd).sum::<f64>();
            match item.status {
                Status::Completed => summary.completed += 1,
                Status::Cancelled => summary.cancelled += 1,
                status => summary.left.push(Left {
                    queue: queue.id.clone(),
                    line: item.line,
                    task: item.id.clone(),
                    title: document.title(item).to_owned(),
                    status,
                    reason: item.id.clone().and_then(|id| document.task(item, id).reason),
                    run: runs.last().map(|run| shown(&site.board.run_dir(&run.run), site.board.root())),
                }),
            }
        }
    }
    Ok(summary)
}

fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn print(context: &Context, site: &Site, summary: &Summary) -> Result<(), CliError> {
    let mut text = format!(
        "{} completed, {} left, {} in {} s",
        summary.completed,
        summary.left.len(),
        human::money(summary.usd),
        summary.seconds
    );
    for left in &summary.left {
        let name = left.task.as_ref().map_or_else(|| format!("line {}", left.line), ToString::to_string);
        text.push_str(&format!("\n{}: {name} {} — {}", left.queue, left.status, left.title));
        if let Some(reason) = &left.reason {
            text.push_str(&format!("\n  {reason}"));
        }
        if let Some(run) = &left.run {
            text.push_str(&format!("\n  see {run}"));
        }
    }
    if summary.completed > 0 {
        text.push_str(&format!("\nmerged work is on branch {}", site.integration()));
    }
    context.out.record(summary, text)
}
