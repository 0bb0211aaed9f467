//! `tavern-status`: queues, items, agents and spending at a glance; one item in full.

use std::time::Duration;

use tavern_core::eligible::DEFAULT_ROLE;
use tavern_core::front::DEFAULT_PRIORITY;
use tavern_core::steps::Steps;
use tavern_core::task::{Mode, Status, TaskId, Timestamp};
use tavern_run::readiness::{Unready, texts};
use tavern_run::record::{Metadata, newest_runs};
use tavern_store::{AgentState, Board, NamedItem, Queue, Text};
use tavern_sys::clock;
use tavern_sys::process::Bell;
use tavern_sys::process::quoted;

use super::format::Painted;
use super::live::view;
use super::message_groups::Alike;
use super::needs::losses;
use super::outside_changes::{OutsideReport, tell_of_tip};
use super::overview::listing::{ItemLine, Listing, QueueLine, WantedItems};
use super::overview::queue_read::QueueRead;
use super::overview::run_line::{NEWEST_RUNS, RunLine};
use super::overview::{AgentLine, agents, mode_of, quotas, spending, switched};
use super::past_time::moment;
use super::{CliError, Context, Exit, Format, ItemName, Verb, format, skipped_items, unread_lines};

pub(super) mod digest;
pub(super) mod full;
mod health;
mod metrics;
mod record;
mod stats;

use full::Detail;
use record::Record;

/// Version of the JSON output: see [`Record::Board`].
const VERSION: u32 = 1;

/// Show queues, items, agents and spending at a glance; or one item in full
#[derive(clap::Args)]
pub struct Args {
    /// Items, by their IDs or lines, such as TODO.md:12; or queues by name or path [default: all queues]
    #[arg(value_name = "ID|QUEUE")]
    pub what: Vec<String>,

    /// List the items, a line each
    #[arg(long, short)]
    pub items: bool,

    /// List only items with this status; may be given several times
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status_named)]
    pub status: Vec<Status>,

    /// List only items that are not completed or cancelled
    #[arg(long, conflicts_with = "status")]
    pub open: bool,

    /// Show depths, ages, waits, run times, throughput, retries and spending
    #[arg(long)]
    pub stats: bool,

    /// Show each running agent's activity, progress and health
    #[arg(long, conflicts_with = "stats")]
    pub health: bool,

    /// Also show the token, lease and mode of an item's holder
    #[arg(long)]
    pub verbose: bool,

    /// Print again whenever the board changes
    #[arg(long, short)]
    pub watch: bool,

    /// Show the items that need you, and ended items and spending since: `yesterday`, `18:00`, `2h ago`
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with_all = ["at", "stats", "health", "items", "status"])]
    pub since: Option<Timestamp>,

    /// Show the state at this local time: `2026-11-22T10:00`, `10:00`, `2h ago`
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with_all = ["watch", "stats", "health"])]
    pub at: Option<Timestamp>,

    /// Print the board's metrics in the Prometheus format
    #[arg(long, conflicts_with_all = ["watch", "stats", "health", "items", "status", "since", "at", "verbose"])]
    pub metrics: bool,

    /// Print the JSON Schema of --format json
    #[arg(long, exclusive = true)]
    pub schema: bool,
}

/// A board as it was read for all output.
struct Seen<'r> {
    /// The last event and the time before all other reads: later changes are reported twice rather than never.
    seq: u64,
    time: Timestamp,
    losses: Vec<String>,
    read: &'r [QueueRead<'r>],
    unread: Vec<Unready>,
}

/// Whether the status is printed once or repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HowOften {
    Once,
    AgainAndAgain,
}

impl Args {
    /// Returns the arguments for these queues, without other flags.
    pub(super) fn of_queues(what: Vec<String>, often: HowOften) -> Args {
        Args {
            what,
            items: false,
            status: Vec::new(),
            open: false,
            stats: false,
            health: false,
            verbose: false,
            watch: often == HowOften::AgainAndAgain,
            since: None,
            at: None,
            metrics: false,
            schema: false,
        }
    }

    /// Returns whether no flag selects the content.
    fn is_plain(&self) -> bool {
        let is_asked = self.items || self.stats || self.health || self.verbose;
        !is_asked && self.status.is_empty() && self.since.is_none()
    }
}

fn status_named(name: &str) -> Result<Status, String> {
    name.parse().map_err(|()| {
        let names = Status::ALL.map(Status::as_str).join(", ");
        format!("unknown status; one of {names}")
    })
}

impl Verb for Args {
    const NAME: &'static str = "tavern-status";
    const EXAMPLES: &'static [&'static str] = &[
        "tavern status T-2",
        "tavern status --since yesterday",
        "tavern status --items --json",
    ];
    const FOR_AGENTS: bool = true;

    fn run(mut self, context: &Context) -> Result<Exit, CliError> {
        if self.open {
            let all = Status::ALL.into_iter();
            self.status = all.filter(|status| status.is_unfinished()).collect();
        }
        if self.schema {
            let schema = record::schema();
            context.out.record(
                &schema,
                Painted::whole(&serde_json::to_string_pretty(&schema)?),
            )?;
            return Ok(Exit::Done);
        }
        // A task file can be shown anywhere.
        let file = self.what.first().map(|what| match what.parse() {
            Ok(ItemName::Line { queue, .. }) => queue,
            _ => what.clone(),
        });
        let file = file.filter(|file| context.here().join(file).is_file());
        let board = if let Some(file) = file {
            context.board_or_place(&[file])?
        } else {
            context.board()?
        };
        let tasks = self.tasks(context, &board)?;
        if let (Some(_), [item, ..]) = (self.since, self.what.as_slice())
            && !tasks.is_empty()
        {
            let message = format!("`--since` takes queues, and `{item}` is an item");
            return Err(CliError::usage(
                message,
                format!("for its history: tavern log {item}"),
            ));
        }
        let names: &[String] = if tasks.is_empty() { &self.what } else { &[] };
        if let Some(at) = self.at {
            let mut then = board.then(at, tasks.first().and_then(NamedItem::id))?;
            let text = format!("as of {}", clock::dated(at));
            context.out.record(
                &Record::Then {
                    at,
                    log_begins: then.begins,
                },
                text,
            )?;
            if let Some(begins) = then.begins {
                context.out.note(format!(
                    "the log begins at {}: earlier changes are unknown",
                    clock::dated(begins)
                ));
            }
            let queues = context.files(&board.clone().settled()?, names)?;
            for task in &tasks {
                full::print(
                    context,
                    &board,
                    task,
                    Some(&board.then(at, task.id())?),
                    self.detail(),
                )?;
            }
            if tasks.is_empty() {
                let wanted = self.wanted(context);
                let place = |text: &Text| queues.iter().position(|queue| *queue == text.queue);
                then.texts
                    .sort_by_key(|text| place(text).unwrap_or(usize::MAX));
                let read = QueueRead::all(&then.texts);
                self.print_list(
                    context,
                    &Listing::gather(&board, &read, &queues, None, wanted)?,
                )?;
            }
            return Ok(Exit::Done);
        }
        if self.watch && tasks.is_empty() && self.is_plain() && view::can_draw(context) {
            return view::run(context, names);
        }
        let bell = Bell::new();
        loop {
            let queues = context.files(&board.clone().settled()?, names)?;
            let watch = self
                .watch
                .then(|| board.ring_at_changes(&queues, &bell))
                .transpose()?;
            let settled = board.clone().settled()?;
            let losses = losses(&settled);
            losses.iter().for_each(|words| context.out.note(words));
            tasks
                .iter()
                .try_for_each(|task| full::print(context, &settled, task, None, self.detail()))?;
            if tasks.is_empty() {
                let (seq, time) = (settled.last_seq()?, clock::now());
                let (texts, unread) = texts(&settled, &queues);
                let read = QueueRead::all(&texts);
                let shown = texts.iter().filter(|text| queues.contains(&text.queue));
                let shown = &read[..shown.count()];
                let seen = Seen {
                    seq,
                    time,
                    losses,
                    read: &read,
                    unread,
                };
                skipped_items::tell(context, shown);
                skipped_items::tell_of_marks(context, shown);
                unread_lines::tell(context, shown);
                match self.since {
                    Some(since) => digest::print(context, &settled, &queues, since)?,
                    None if self.metrics => metrics::print(context, &settled, &queues, names)?,
                    None if self.health => health::print(context, &settled)?,
                    None if self.stats => stats::print(context, &settled, &queues, names)?,
                    None => self.all(context, &settled, &queues, seen)?,
                }
            }
            let Some(_watch) = watch else {
                return Ok(Exit::Done);
            };
            context.out.text("")?;
            context.out.flush()?;
            bell.wait(Duration::from_secs(30));
        }
    }
}

impl Args {
    /// Returns the named items; empty if queues were named.
    fn tasks(&self, context: &Context, board: &Board) -> Result<Vec<NamedItem>, CliError> {
        if self
            .what
            .iter()
            .any(|one| board.queue(one, &context.here()).is_ok())
        {
            return Ok(Vec::new());
        }
        let parse = |one: &String| {
            let name: ItemName = one.parse().map_err(|_| {
                let hint = "name an item such as T-k3f9, a queue, or a file; if it was removed: tavern check --fix";
                CliError::usage(format!("`{one}` is neither an item nor a queue"), hint)
            })?;
            // The log knows items only by their IDs.
            if self.at.is_some() {
                Ok(NamedItem::Id(context.id_of(board, &name)?))
            } else {
                context.item(board, &name)
            }
        };
        self.what.iter().map(parse).collect()
    }

    fn detail(&self) -> Detail {
        if self.verbose {
            Detail::All
        } else {
            Detail::Usual
        }
    }

    /// Returns which items to list. JSON lists all, since programs filter by themselves.
    fn wanted(&self, context: &Context) -> WantedItems<'_> {
        match self.status.is_empty() && !self.items {
            false => WantedItems::Each(&self.status),
            true if context.out.format() == Format::Json => WantedItems::Every,
            true => WantedItems::Unusual,
        }
    }

    fn all(
        &self,
        context: &Context,
        board: &Board,
        queues: &[Queue],
        seen: Seen<'_>,
    ) -> Result<(), CliError> {
        let Seen {
            seq,
            time,
            losses,
            read,
            unread,
        } = seen;
        context.out.json(&Record::Board {
            version: VERSION,
            board: board.root(),
            seq,
            time,
        })?;
        if let Some(switched) = switched(board) {
            let text = format!("the board is {}: {}", switched.state, switched.reason);
            context.out.record(&Record::Switch(&switched), text)?;
        }
        for lost in unread
            .iter()
            .filter(|lost| queues.iter().any(|queue| queue.id == lost.queue))
        {
            let problem = format!("{}: {}", lost.queue, lost.foremost());
            context.out.json(&Record::Problem { problem: &problem })?;
            context.out.note(problem);
        }
        losses
            .iter()
            .try_for_each(|problem| context.out.json(&Record::Problem { problem }))?;
        let workspace = context
            .light_site(board.clone())
            .map(|workspace| workspace.naming(queues));
        if let Err(fault) = &workspace {
            let fault = fault.message.lines().next().unwrap_or_default();
            let problem = format!(
                "no agent begins: {fault}; see tavern check. Agents at work keep the settings that they began with"
            );
            context.out.json(&Record::Problem { problem: &problem })?;
            context.out.note(problem);
        }
        let workspace = workspace.ok();
        let listing = Listing::gather(
            board,
            read,
            queues,
            workspace.as_ref(),
            self.wanted(context),
        )?;
        self.print_list(context, &listing)?;
        if !listing.needs.is_empty() {
            context.out.text("waits for you:")?;
        }
        for need in &listing.needs {
            context
                .out
                .record(&Record::Need(need), format_args!("  {}", need.words()))?;
        }
        if let Some(spent) = workspace
            .as_ref()
            .and_then(|workspace| spending::of(workspace, queues))
        {
            context
                .out
                .record(&Record::Spending(&spent), spent.words())?;
        }
        for strayed in OutsideReport::recent(board)? {
            context.out.record(&Record::Strayed(&strayed), &strayed)?;
        }
        if let Some(workspace) = &workspace {
            tell_of_tip(context, workspace);
        }
        print_agents(context, board)?;
        if context.out.format() == Format::Json && self.is_plain() {
            health::show(context, board)?;
            let is_meant = |run: &Metadata| {
                self.what.is_empty() || queues.iter().any(|queue| queue.id == run.queue)
            };
            for run in newest_runs(board, NEWEST_RUNS, &is_meant)?.iter().rev() {
                context.out.json(&Record::Run(&RunLine::of(run)))?;
            }
        }
        Ok(())
    }

    /// Prints queues and items.
    fn print_list(&self, context: &Context, listing: &Listing) -> Result<(), CliError> {
        let (now, wanted) = (clock::now(), self.wanted(context));
        for queue in &listing.queues {
            context
                .out
                .record(&Record::Queue(queue), queue_words(queue))?;
            let mut alike = Alike::default();
            for item in listing
                .items
                .iter()
                .filter(|item| item.queue == queue.queue)
            {
                let said = item
                    .not_ready
                    .as_ref()
                    .filter(|_| item.is_usual() && !wanted.is_asked_for() && !item.is_due);
                if said.is_some_and(|why| {
                    !alike.shows(&format!("{}, {why}", item.status), item.task.as_ref())
                }) {
                    context.out.json(&Record::Item(item))?;
                    continue;
                }
                let mut columns = format!(
                    "  {:<width$} {:<11} ",
                    item.name(),
                    item.status,
                    width = queue.width
                );
                if listing.has_ages {
                    let age = item
                        .since
                        .map(|since| format::age((now - since).to_std().unwrap_or_default()));
                    let priority = match item.priority {
                        DEFAULT_PRIORITY => String::new(),
                        priority => format!("p{priority}"),
                    };
                    let age = age.as_deref().unwrap_or("-");
                    columns.push_str(&format!("{priority:<2} {age:>3} "));
                }
                let due = item
                    .due
                    .filter(|_| item.is_due)
                    .map(|due| when_due(due, now));
                let how_far = item
                    .steps
                    .as_ref()
                    .filter(|steps| !steps.open.is_empty())
                    .map(Steps::to_string);
                let mark = Some(mark(item, wanted)).filter(|mark| !mark.is_empty());
                let marks: Vec<String> = due.into_iter().chain(how_far).chain(mark).collect();
                let title = format!("{}{}", item.above, item.title);
                context
                    .out
                    .row(&Record::Item(item), &columns, &title, &marks.join("; "))?;
            }
            alike
                .left_out()
                .try_for_each(|text| context.out.text(format_args!("  {text}")))?;
        }
        Ok(())
    }
}

/// Returns the remark behind an item's title.
fn mark(item: &ItemLine, wanted: WantedItems<'_>) -> String {
    let is_asked_for = wanted.is_asked_for();
    let why = item
        .not_ready
        .as_ref()
        .or(item.waits_for.as_ref().filter(|_| is_asked_for));
    let next_for = item.next_for.as_deref();
    match (why, item.mode) {
        _ if item.quarantined => "has a problem".to_owned(),
        _ if item.is_unfit => "no agent can take it".to_owned(),
        (Some(why), _) => format::words(why).into_owned(),
        _ if is_asked_for && next_for == Some(DEFAULT_ROLE) => "next".to_owned(),
        _ if let (true, Some(role)) = (is_asked_for, next_for) => format!("next for {role}"),
        _ if is_asked_for && item.ready => "ready".to_owned(),
        (None, Mode::Execute) => String::new(),
        (None, mode) => mode.to_string(),
    }
}

fn queue_words(line: &QueueLine) -> String {
    let QueueLine {
        queue,
        quarantined,
        unfit,
        archived,
        counts,
        ..
    } = line;
    let mut words: Vec<String> = counts
        .iter()
        .map(|(status, count)| format!("{count} {}", format::word(status)))
        .collect();
    if words.is_empty() {
        words.push(format!(
            "no items; add one: tavern add --queue {} \"…\"",
            quoted(queue)
        ));
    }
    if *archived > 0 {
        words.push(format!("{archived} archived"));
    }
    if *quarantined > 0 {
        words.push(format!("{quarantined} with problems: tavern check"));
    }
    if *unfit > 0 {
        words.push(format!(
            "{unfit} that no configured agent can take: tavern check"
        ));
    }
    format!("{queue}: {}", words.join(", "))
}

fn when_due(due: Timestamp, now: Timestamp) -> String {
    format!(
        "{} {}",
        if due < now { "was due" } else { "due" },
        clock::shown(due)
    )
}

fn print_agents(context: &Context, board: &Board) -> Result<(), CliError> {
    let now = clock::now();
    for line in agents(board, &|task| mode_of(board, task)) {
        let AgentLine {
            agent,
            heartbeat_at,
            alive,
            last_output,
            mode,
            ..
        } = &line;
        let state = match agent.state {
            _ if !alive => "gone".to_owned(),
            AgentState::Working => mode
                .filter(|mode| *mode != Mode::Execute)
                .map_or_else(|| "working".to_owned(), |mode| mode.to_string()),
            AgentState::Waiting => "waiting".to_owned(),
        };
        let task = agent.task.as_ref().map_or("-", TaskId::as_str);
        let columns = format!("{:<10} {state:<8} {task:<8} ", agent.name);
        let ago = |at: Timestamp| format::age((now - at).to_std().unwrap_or_default());
        let program = last_output
            .map(|at| format!(", its program {} ago", ago(at)))
            .unwrap_or_default();
        let is_at_work = agent.state == AgentState::Working;
        let seen = if !alive {
            "clean up after it: tavern reap".to_owned()
        } else if is_at_work {
            format!("seen {} ago{program}", ago(*heartbeat_at))
        } else {
            String::new()
        };
        context.out.row(
            &Record::Agent(&line),
            &columns,
            agent.doing.as_deref().unwrap_or_default(),
            &seen,
        )?;
    }
    for line in quotas(board) {
        context
            .out
            .record(&Record::Quota(&line), line.quota.message_for(&line.runner))?;
    }
    Ok(())
}
