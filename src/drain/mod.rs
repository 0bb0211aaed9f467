//! `tavern-drain`: a pool of agents that works a queue or a task file until it is empty.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use tavern_core::document::{Document, Item};
use tavern_core::eligible::{DEFAULT_ROLE, for_roles};
use tavern_core::task::Task;
use tavern_run::agent::AgentRecord;
use tavern_run::agent_pool::{News, PoolConfig, Seat, run};
use tavern_run::commands::commands_of;
use tavern_run::commit::{Occasion, commit_queues};
use tavern_run::planner_wake::wake;
use tavern_run::preflight::{self, Tried};
use tavern_run::{Error, Trust, Workspace};
use tavern_store::config::Period;
use tavern_store::{Board, Note, Queue, Switch};
use tavern_sys::clock;
use tavern_sys::interrupt::InterruptCause;
use tavern_sys::process::{self, Bell};

use super::agent::sentence;
use super::needs::tell_of_queues;
use super::overview::queue_read::QueueRead;
use super::report_html::{page_file, write_page};
use super::run_program::sibling;
use super::{CliError, Context, Exit, Verb, format, hints, skipped_items, trust, unread_lines};

use super::flags::{AgentProgram, OwnCaps};
use demand::{first_time, look};
use edits_meanwhile::ByHand;
use github::{Github, summarise_job};
use opening::setting_out;
use rejected::Prospect;
use restored_items::Saved;
use roster::{Crew, Post, words};
use status_line::Foot;
use stop_reason::Cut;
use summary::{Left, Summary, summarise};

mod demand;
mod edits_meanwhile;
mod failed_output;
mod github;
mod junit;
mod opening;
mod rejected;
mod restored_items;
mod roster;
mod status_line;
mod stop_reason;
pub(crate) mod summary;

/// Work a queue or a task file to its end, with several agents at once
///
/// The file may be any Markdown checklist, in a repository without a board: its boxes are ticked in place. Work is merged into
/// the integration branch (`tavern/integration`), never into your checkout. At the end it lists the items that are not
/// completed. Exits with 0 if there are none, with 7 if the time or a cap is used up, with 5 if some have errors, with 8 if all
/// wait for a person, with 3 if no item is open and some lines of a list are not items, else with 1.
#[derive(clap::Args)]
pub struct Args {
    /// Queues or task files [default: all queues of the board]
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,

    /// The number of agents; or the number for each role, and of all at once: `coder=3,reviewer=1,all=2`
    #[arg(long, aliases = ["parallel", "jobs"], short = 'a', short_alias = 'j', default_value = "2", value_name = "N|ROLE=N,…")]
    pub agents: Crew,

    /// The role of the agents: they take items for this role
    #[arg(long, default_value = DEFAULT_ROLE, env = "TAVERN_ROLE", hide_env_values = true)]
    pub role: String,

    #[command(flatten)]
    pub program: AgentProgram,

    #[command(flatten)]
    pub caps: OwnCaps,

    /// End after this time, such as 45m; give back the items in progress, and keep their work
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub max_time: Option<Period>,

    /// End when an item has used up its attempts
    #[arg(long)]
    pub fail_fast: bool,

    /// Write the result of each item to this file, as JUnit XML for CI
    #[arg(long, value_name = "FILE", value_parser = junit::file)]
    pub junit: Option<PathBuf>,

    /// Write an HTML report on these queues to this file: see `tavern report-html`
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    pub html: Option<PathBuf>,

    /// Print the items that would be worked on
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-drain";
    const EXAMPLES: &'static [&'static str] = &[
        "tavern drain TODO.md --dry-run",
        "tavern drain TODO.md --agents 3 --max-usd 10",
        "tavern drain --agents coder=2,reviewer=1 --junit result.xml",
    ];
    const FOR_AGENTS: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board_or_place(&self.files)?;
        context.holds_nothing(&board)?;
        // An agent may not drain another board either.
        context
            .board()
            .map_or(Ok(()), |around| context.holds_nothing(&around))?;
        let mut workspace = context.site(board)?;
        self.program.choose(&mut workspace);
        let mut queues = context.files(&workspace.board, &self.files)?;
        let unread = self.unread(&workspace.board, &mut queues)?;
        let saved = Saved::of(&queues);
        tell_of_queues(context, &workspace.board.clone().settled()?);
        if queues.is_empty() {
            return Err(CliError::usage(
                "there is no queue to drain",
                "name a file: tavern drain TODO.md",
            ));
        }
        workspace.named.clone_from(&queues);
        let crew = self.agents.of(&self.role);
        if let Err(untrusted) = Trust::of(&workspace).queues(&queues) {
            if context.is_dry {
                show_plan(context, &workspace, &queues, &crew)?;
            }
            if context.is_dry || !trust::offer(context, &workspace)? {
                let file = queues
                    .iter()
                    .map(|queue| queue.id.as_str())
                    .find(|id| id.ends_with(".md"));
                return Err(CliError::from(Error::from(untrusted)).with_hint(hints::trust(file)));
            }
        }
        let begun = crew
            .iter()
            .map(|post| preflight::begin(&workspace, &post.role))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(switched) = CliError::switched(Exit::Refused, &workspace.board.switch()) {
            return Err(switched);
        }
        let errors = rejected::errors(context, &workspace, &queues)?;
        let is_misread = {
            let texts = QueueRead::texts(&workspace.board, &queues);
            let read = QueueRead::all(&texts);
            let has_no_lane = skipped_items::tell(context, &read);
            unread_lines::tell_keys(context, &read);
            unread_lines::tell(context, &read) || has_no_lane
        };
        rejected::refuse(&workspace, &queues, &crew, errors.as_deref())?;
        errors
            .iter()
            .for_each(|errors| context.out.note(format!("skipped: {errors}")));
        for error in &unread {
            let hint = hints::store(error)
                .map(|hint| format!("; {hint}"))
                .unwrap_or_default();
            context.out.note(format!("skipped: {error}{hint}"));
        }
        if !context.is_dry {
            // Old results must not remain, and write errors should show up now.
            self.write_junit(&Summary::default())?;
            self.write_html(context, &workspace.board, &queues)?;
        }
        // Only now, so that a refused drain, or a text without items, leaves nothing behind.
        for queue in &queues {
            if !workspace
                .board
                .read(queue)?
                .content
                .parse()
                .0
                .items()
                .is_empty()
            {
                workspace.board.remember(queue)?;
            }
        }
        // Fails here if the board can't be written; an agent's error would be no clearer.
        workspace.board.settle()?;
        let is_put_back = saved.tell_of_ended(context, &workspace.board, &queues);
        process::adopt_orphans()?;
        let (started, before) = (clock::instant(), workspace.board.last_seq()?);
        workspace.config.budget.own = self.caps.own(clock::now(), None);
        let mut doubts: Vec<String> = begun.iter().filter_map(Tried::doubt_line).collect();
        doubts.dedup();
        doubts.iter().for_each(|doubt| context.out.note(doubt));
        let github = Github::begin(context);
        // Without named queues, agents take from all queues of the board at that time, if all are readable.
        let named = if self.files.is_empty() && unread.is_empty() {
            &[][..]
        } else {
            &queues
        };
        let (is_well, mut cut) = self.work(context, &workspace, &queues, named, &crew)?;
        if context.is_dry {
            show_plan(context, &workspace, &queues, &crew)?;
            let is_idle = (is_misread || is_put_back) && count_open(&workspace, &queues)? == 0;
            return Ok(match errors {
                Some(_) => Exit::BoardHasErrors,
                None if !unread.is_empty() => Exit::BoardHasErrors,
                None if is_idle => Exit::NothingToDo,
                None => Exit::Done,
            });
        }
        if let Switch::Stopped(reason) = workspace.board.switch() {
            context
                .out
                .note(format!("stopped by .tavern/STOP: {reason}"));
            cut.get_or_insert(Cut::Asked(InterruptCause::Stopped));
        }
        if let Some(why) = commit_queues(&workspace, Occasion::End) {
            context.out.note(why);
        }
        let board = workspace.board.clone();
        let (unread, mut summary) = loop {
            // An old text may be saved at any time; it counts once merged with the agents' changes.
            workspace.board = board.clone().settled()?;
            queues = self.queues(context, &workspace, queues)?;
            let unread = self.unread(&workspace.board, &mut queues)?;
            let summary = summarise(&workspace, &queues, &crew, before, cut.as_ref())?;
            if workspace.board.is_dry() || board.is_settled()? {
                break (unread, summary);
            }
        };
        summary.seconds = started.elapsed().as_secs();
        let written =
            self.write_junit(&summary)
                .and(self.write_html(context, &workspace.board, &queues));
        summary.print(context, &workspace)?;
        let texts = QueueRead::texts(&workspace.board, &queues);
        let read = QueueRead::all(&texts);
        skipped_items::tell_of_marks(context, &read);
        github.into_iter().for_each(|github| github.end(&summary));
        summarise_job(context, &summary);
        written?;
        let is_left = !summary.left.is_empty();
        if let Some(cut) = cut.as_ref().filter(|_| is_left) {
            context.out.note(format!("{cut}; {}", Cut::again()));
        }
        // A fence that hides items is a fault even if no item is left.
        let mut problems = read.iter().flat_map(|read| &read.problems);
        let hides = problems.any(|problem| problem.code == "hidden-items");
        let is_whole = unread.is_empty() && (is_left || !hides);
        let exit = match cut {
            Some(Cut::OutOfTime(_) | Cut::TooEarly(..)) => is_left.then_some(Exit::BudgetSpent),
            Some(Cut::Failure(_)) => is_left.then_some(Exit::Failed),
            Some(Cut::Asked(_)) | None => context.interrupted(),
        };
        match exit {
            Some(exit) => Ok(exit),
            None if is_well && is_misread && summary.is_idle() => Ok(Exit::NothingToDo),
            None if is_well && is_put_back && !is_left && is_whole => Ok(Exit::NothingToDo),
            None if is_well && !is_left && is_whole => Ok(Exit::Done),
            None if is_well && summary.is_capped() => Ok(Exit::BudgetSpent),
            None if is_well && (summary.is_broken() || !is_whole) => Ok(Exit::BoardHasErrors),
            None if is_well && summary.waits_for_person() => Ok(Exit::WaitingForPerson),
            None => Ok(Exit::Failed),
        }
    }
}

impl Args {
    fn write_junit(&self, summary: &Summary) -> Result<(), CliError> {
        self.junit
            .as_deref()
            .map_or(Ok(()), |file| junit::write(file, summary))
    }

    fn write_html(
        &self,
        context: &Context,
        board: &Board,
        queues: &[Queue],
    ) -> Result<(), CliError> {
        self.html
            .as_deref()
            .map_or(Ok(()), |file| write_page(context, board, queues, file))
    }

    /// Removes queues that are not text from `queues`, and returns their errors. Only if no queues were
    /// named, and others are readable.
    fn unread(
        &self,
        board: &Board,
        queues: &mut Vec<Queue>,
    ) -> Result<Vec<tavern_store::Error>, CliError> {
        let mut unread = Vec::new();
        queues.retain(|queue| match board.read(queue) {
            Err(error @ tavern_store::Error::NotText { .. }) if self.files.is_empty() => {
                unread.push(error);
                false
            }
            _ => true,
        });
        if queues.is_empty() && !unread.is_empty() {
            Err(unread.swap_remove(0).into())
        } else {
            Ok(unread)
        }
    }

    /// Returns the current queues: people may have added or removed some.
    fn queues(
        &self,
        context: &Context,
        workspace: &Workspace,
        queues: Vec<Queue>,
    ) -> Result<Vec<Queue>, CliError> {
        if self.files.is_empty() {
            context.files(&workspace.board, &self.files)
        } else {
            Ok(queues)
        }
    }

    /// Returns whether all agents ended well, and the reason if the drain ended early.
    fn work(
        &self,
        context: &Context,
        workspace: &Workspace,
        queues: &[Queue],
        named: &[Queue],
        crew: &[Post],
    ) -> Result<(bool, Option<Cut>), CliError> {
        // Ended items may need a planner.
        for post in crew {
            wake(workspace, queues, &post.role, &Note::default())?;
        }
        if count_open(workspace, queues)? == 0 {
            context.out.note("nothing to do: no item is open");
            return Ok((true, None));
        }
        let prospect = Prospect::of(workspace, queues, crew)?;
        let (program, verb) = sibling("agent")?;
        let seat = |post: &Post| Seat {
            args: verb
                .iter()
                .cloned()
                .chain(self.agent_args(context, workspace, named, &post.role))
                .collect(),
            most: usize::from(post.agents),
        };
        let seats: Vec<Seat> = crew.iter().map(seat).collect();
        let all: usize = seats.iter().map(|seat| seat.most).sum();
        let most = self.agents.at_once().unwrap_or(all).min(all);
        let least = if seats.len() == 1 {
            all.min(prospect.worked)
        } else {
            1
        };
        let until = self.max_time.map(|time| clock::instant() + time.duration());
        let config = PoolConfig {
            program,
            folder: context.here(),
            seats,
            least,
            most,
            until,
            is_work,
        };
        let open = prospect.worked;
        let runners = runners(workspace, queues, crew)?;
        let work = format!("{} with {}", format::count(open, "item"), words(crew, open));
        context.out.note(match prospect.worked {
            0 => format!(
                "no item can be worked now: {}",
                format::count(prospect.left, "item")
            ),
            _ => format!(
                "draining {work}, {}{}",
                with_runners(&runners),
                prospect.rest()
            ),
        });
        if prospect.worked > 0 {
            setting_out(workspace, queues, &runners)
                .into_iter()
                .for_each(|line| context.out.note(line));
        }
        prospect
            .not_run()
            .iter()
            .for_each(|not_run| context.out.note(not_run));
        let is_at_terminal = io::stderr().is_terminal();
        let foot = Foot::begin(context, &workspace.board, open);
        let say = |line: String| foot.above(|| context.out.note(line));
        // All agents meet the same obstacles, so each message is printed once.
        let told = RefCell::new(HashSet::new());
        let is_new = |line: String| told.borrow_mut().insert(line);
        let queues_now = || {
            self.queues(context, workspace, queues.to_vec())
                .unwrap_or_else(|_| queues.to_vec())
        };
        let by_hand = ByHand::since(workspace.board.last_seq()?);
        let mut demand = || {
            let queues = queues_now();
            by_hand.news(workspace, &queues).into_iter().for_each(say);
            let (demands, unstaffed) = look(workspace, &queues, crew);
            unstaffed
                .into_iter()
                .filter(|(role, _)| is_new(role.clone()))
                .for_each(|(_, line)| say(line));
            demands
        };
        if context.is_dry {
            demand();
            return Ok((true, None));
        }
        let bell = Bell::new();
        workspace.board.make_folders()?;
        let _watch = workspace.board.ring_at_changes(queues, &bell)?;
        let (mut waits, mut failed, mut too_early) = (Waits::default(), None, None);
        let well = run(
            &config,
            &workspace.interrupt,
            &bell,
            &mut demand,
            &mut |news| match news {
                News::Line(line) => {
                    let Ok(Heard { agent, told }) = serde_json::from_str(&line) else {
                        return;
                    };
                    by_hand
                        .news(workspace, &queues_now())
                        .into_iter()
                        .for_each(say);
                    waits.hear(&agent, &told);
                    if let (true, Some(task)) =
                        (self.fail_fast && failed.is_none(), told.gives_up())
                    {
                        failed = Some(task.clone());
                        workspace.interrupt.raise(InterruptCause::Stopped);
                    }
                    if let (true, AgentRecord::Waiting { until: Some(_), .. }) =
                        (waits.are_all(), &told)
                        && let Some(first) = first_time(workspace, &queues_now(), crew)
                    {
                        let ahead = (first - clock::now()).to_std().unwrap_or_default();
                        let is_beyond =
                            |_: &Period| until.is_some_and(|end| clock::instant() + ahead > end);
                        if let Some(time) = self.max_time.filter(is_beyond) {
                            too_early = Some(Cut::TooEarly(time, first));
                            workspace.interrupt.raise(InterruptCause::Stopped);
                        } else if ahead > LONG_WAIT {
                            let open = Prospect::of(workspace, &queues_now(), crew)
                                .map_or(0, |prospect| prospect.worked);
                            let line = format!(
                                "{} left, and no agent can claim one before {}",
                                format::count(open, "item"),
                                clock::dated(first)
                            );
                            let line =
                                format!("{line}; to stop instead of a long wait: --max-time 10m");
                            is_new(line.clone()).then(|| say(line));
                        }
                    }
                    let is_told = match &told {
                        // A wait is printed only if all agents wait.
                        AgentRecord::Waiting { until, .. } => {
                            until.is_some() && waits.are_all() && is_new(told.to_string())
                        }
                        // The final list shows it.
                        AgentRecord::Skipped { title, .. }
                            if prospect.scriptless.contains(title) =>
                        {
                            false
                        }
                        AgentRecord::Skipped { .. } | AgentRecord::Hindered { .. } => {
                            is_new(told.to_string())
                        }
                        _ => true,
                    };
                    // New items are counted when an agent begins or completes one.
                    let is_other = told.completes() || matches!(told, AgentRecord::Claimed { .. });
                    let open = || {
                        Prospect::of(workspace, &queues_now(), crew)
                            .map_or(0, |prospect| prospect.worked)
                    };
                    foot.hear(&agent, &told, is_other.then_some(&open));
                    if is_told {
                        let line = sentence(&agent, &told);
                        say(if told.is_progress() {
                            context.out.shortened(&line).into_owned()
                        } else {
                            line
                        });
                    }
                    // At a terminal the user can look at the log.
                    if is_told && !is_at_terminal {
                        failed_output::under(workspace, &told)
                            .into_iter()
                            .for_each(say);
                    }
                }
                News::Complaint(line) => say(line),
                News::Died { exit, pause } => {
                    say(format!(
                        "an agent ended ({exit}); started again in {}",
                        format::took(pause)
                    ));
                }
                News::GivenUp { exit } => {
                    say(format!("agents exit immediately ({exit}); giving up"));
                }
            },
        );
        let cut = match (failed, workspace.interrupt.cause()) {
            (Some(task), _) => Some(Cut::Failure(task)),
            _ if too_early.is_some() => too_early,
            (None, Some(InterruptCause::Stopped)) => self.max_time.map(Cut::OutOfTime),
            (None, cause) => cause.map(Cut::Asked),
        };
        Ok((well?, cut))
    }

    fn agent_args(
        &self,
        context: &Context,
        workspace: &Workspace,
        queues: &[Queue],
        role: &str,
    ) -> Vec<OsString> {
        let mut args = [
            "--until-empty",
            "--quiet",
            "--format",
            "json",
            "--role",
            role,
        ]
        .map(OsString::from)
        .to_vec();
        args.extend([
            "--dir".into(),
            workspace.board.dir().into(),
            "--drain".into(),
            std::process::id().to_string().into(),
        ]);
        args.extend(context.shared.trust.then(|| "--trust".into()));
        args.extend(self.fail_fast.then(|| "--fail-fast".into()));
        if let Some(own) = &workspace.config.budget.own {
            let amounts = [
                ("--max-usd", own.cap.usd),
                ("--max-minutes", own.cap.minutes),
            ];
            let amounts = amounts
                .into_iter()
                .filter_map(|(flag, most)| Some([flag.to_owned(), most?.to_string()]));
            args.extend(
                amounts
                    .chain([["--since".to_owned(), own.since.to_rfc3339()]])
                    .flatten()
                    .map(OsString::from),
            );
        }
        // The role's runner is not passed, since an item may name another one.
        let named = [
            ("--runner", &self.program.runner),
            ("--model", &self.program.model),
        ];
        let named = named
            .into_iter()
            .filter_map(|(flag, name)| Some((flag, name.as_deref()?)));
        for (flag, value) in named.chain(queues.iter().map(|queue| ("--queue", queue.id.as_str())))
        {
            args.extend([flag.into(), value.into()]);
        }
        args
    }
}

/// Longer waits are reported.
const LONG_WAIT: Duration = Duration::from_secs(60);

/// The agents that hold an item.
#[derive(Default)]
struct Waits {
    busy: HashSet<String>,
}

impl Waits {
    fn hear(&mut self, agent: &str, told: &AgentRecord) {
        match told {
            AgentRecord::Claimed { .. } => drop(self.busy.insert(agent.to_owned())),
            AgentRecord::Waiting { .. } => drop(self.busy.remove(agent)),
            _ => {}
        }
    }

    fn are_all(&self) -> bool {
        self.busy.is_empty()
    }
}

/// An item that a drain would work on, and its commands.
#[derive(serde::Serialize)]
struct WorkPlan {
    #[serde(flatten)]
    left: Left,
    commands: Vec<String>,
}

/// Returns the runners of the open items of `queues`, or of the roles where no item fits one yet.
fn runners(
    workspace: &Workspace,
    queues: &[Queue],
    crew: &[Post],
) -> Result<BTreeSet<String>, CliError> {
    let texts = queues
        .iter()
        .map(|queue| workspace.board.read(queue))
        .collect::<Result<Vec<_>, _>>()?;
    let documents: Vec<Document<'_>> = texts.iter().map(|text| text.content.parse().0).collect();
    let roles = workspace.config.known_roles();
    let open = |document: &Document<'_>| {
        let items = document
            .items()
            .iter()
            .filter(|item| !item.status.is_ended());
        items
            .map(|item| document.task_of(&for_roles(document, item, &roles)))
            .collect::<Vec<_>>()
    };
    let tasks: Vec<Task> = documents.iter().flat_map(open).collect();
    let mut names = BTreeSet::new();
    for post in crew {
        let role = workspace.role(&post.role)?;
        let is_own = |task: &&Task| task.role.as_deref().unwrap_or(DEFAULT_ROLE) == post.role;
        let mut own = tasks
            .iter()
            .filter(is_own)
            .map(|task| workspace.runner_of(task, role))
            .peekable();
        if own.peek().is_none() {
            names.insert(
                workspace
                    .runner
                    .clone()
                    .unwrap_or_else(|| role.runner.clone()),
            );
        }
        names.extend(own);
    }
    Ok(names)
}

fn with_runners(runners: &BTreeSet<String>) -> String {
    let word = if runners.len() == 1 {
        "runner"
    } else {
        "runners"
    };
    let names: Vec<&str> = runners.iter().map(String::as_str).collect();
    format!("{word} {}", names.join(", "))
}

/// Prints the plan of a dry run: the items, with their commands.
fn show_plan(
    context: &Context,
    workspace: &Workspace,
    queues: &[Queue],
    crew: &[Post],
) -> Result<(), CliError> {
    let mut commands = HashMap::new();
    for queue in queues {
        commands.extend(
            commands_of(workspace, queue)?
                .into_iter()
                .map(|(line, all)| ((queue.id.clone(), line), all)),
        );
    }
    let left = summarise(workspace, queues, crew, workspace.board.last_seq()?, None)?
        .left
        .into_iter()
        .filter(|left| !left.broken);
    let (worked, idle): (Vec<Left>, Vec<Left>) = left.partition(|left| !left.stays);
    for left in worked.into_iter().chain(idle) {
        let commands = commands
            .remove(&(left.queue.clone(), left.line))
            .filter(|_| !left.stays)
            .unwrap_or_default();
        let mark = if left.stays { "left: " } else { "" };
        let head = format!(
            "{mark}{}:{} {} {}",
            left.queue,
            left.line,
            left.status,
            format::title(&left.listed())
        );
        let why = left
            .reason
            .iter()
            .filter(|_| left.stays)
            .map(|why| format!("\n  {}", format::words(why)));
        let text = head + &why.collect::<String>() + &format::commands(&commands);
        context.out.record(&WorkPlan { left, commands }, text)?;
    }
    Ok(())
}

#[derive(serde::Deserialize)]
struct Heard {
    agent: String,
    #[serde(flatten)]
    told: AgentRecord,
}

fn some_time(text: &str) -> Result<Period, String> {
    let time = text.parse::<Period>().map_err(|error| error.to_string())?;
    if time.is_zero() {
        Err("it must be greater than 0, such as 45m".to_owned())
    } else {
        Ok(time)
    }
}

fn count_open(workspace: &Workspace, queues: &[Queue]) -> Result<usize, CliError> {
    let is_open = |item: &&Item<'_>| !item.status.is_ended() && !item.aside;
    let open = |queue| {
        Ok(workspace
            .board
            .read(queue)?
            .content
            .parse()
            .0
            .items()
            .iter()
            .filter(is_open)
            .count())
    };
    queues.iter().map(open).sum()
}

/// Returns true if an agent's line shows that it found work.
fn is_work(line: &str) -> bool {
    let is_deed = |told| {
        matches!(
            told,
            AgentRecord::Claimed { .. }
                | AgentRecord::Integrated { .. }
                | AgentRecord::SentBack { .. }
        )
    };
    serde_json::from_str::<Heard>(line).is_ok_and(|heard| is_deed(heard.told))
}
