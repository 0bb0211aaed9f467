//! `tavern-claim`: take the next eligible item under a lease.

use std::mem;
use std::time::Duration;

use memchr::memmem;
use serde::Serialize;
use serde_json::Value;

use tavern_core::document::{Document, Item};
use tavern_core::eligible::{DEFAULT_ROLE, Lack};
use tavern_core::event::{Blame, Event, Retry};
use tavern_core::lease::{Lease, Life};
use tavern_core::task::{Task, TaskId, Timestamp};
use tavern_run::readiness::{Unready, stuck, unready};
use tavern_run::{Preflight, Trust, Workspace};
use tavern_store::config::Period;
use tavern_store::{
    self, Board, ClaimRequest, Claimed, Content, Found, NamedItem, Note, Nothing, Queue, Switch,
};
use tavern_sys::clock::{self, Deadline};
use tavern_sys::process::{Bell, ProgramExit};

use super::flags::{DryRun, agent_name};
use super::needs::tell_removed;
use super::run_program::run_sibling;
use super::shared::person;
use super::{CliError, Context, Exit, ItemName, Verb, format, hints};

/// Claim the next eligible item, under a lease
///
/// Prints the item, or with `--format env` its variables for a shell. Exits with 3 if no item is eligible.
#[derive(clap::Args)]
pub struct Args {
    /// Claim this item, if it is eligible: by its ID, or by its line, such as TODO.md:12
    #[arg(value_name = "ID")]
    pub item: Option<ItemName>,

    /// The same
    #[arg(long, value_name = "ID", hide = true, conflicts_with = "item")]
    pub task: Option<ItemName>,

    /// The role that the item is taken for: only items for this role are taken, from its `queues` in config.yaml if it has some [default: coder]
    #[arg(
        long,
        env = "TAVERN_ROLE",
        hide_env_values = true,
        overrides_with = "role"
    )]
    pub role: Option<String>,

    /// The runner that will work on it. With this, or with --role, items that the runner can't work on are skipped
    #[arg(
        long,
        env = "TAVERN_RUNNER",
        hide_env_values = true,
        overrides_with = "runner"
    )]
    pub runner: Option<String>,

    /// The name of the agent that holds the item
    #[arg(long, value_name = "NAME", value_parser = agent_name, env = "TAVERN_AGENT", hide_env_values = true)]
    pub agent: Option<String>,

    /// Take only from this queue, by name or path; may be given several times, the first queue first
    #[arg(long = "queue", value_name = "QUEUE")]
    pub queues: Vec<String>,

    /// The duration of the lease unless it is renewed [default: `lease` of config.yaml]
    #[arg(long, value_name = "TIME")]
    pub lease: Option<Period>,

    /// End the lease as soon as this process ends: `--pid $$` in a shell loop
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,

    /// Wait until an item is eligible, at most for this time if given
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, conflicts_with = "dry_run")]
    pub wait: Option<Option<Period>>,

    #[command(flatten)]
    pub plan: DryRun,
}

#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    task: &'a Task,
    queue: &'a str,
    lease: &'a Lease,
    /// The folder; `worktree` says whether the task needs one.
    worktree_path: String,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-claim";
    const EXAMPLES: &'static [&'static str] = &[
        "tavern claim T-3 --dry-run",
        "claim=$(tavern claim --pid $$ --format env) && eval \"export $claim\"",
    ];
    const HAS_VARIABLES: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let mut workspace = context.light_site(board.clone())?;
        workspace.runner.clone_from(&self.runner);
        let name = self.item.as_ref().or(self.task.as_ref());
        let item = name.map(|name| context.item(&board, name)).transpose()?;
        if let (Some(name), Some(NamedItem::At { queue, .. })) = (name, &item)
            && !self.queues.is_empty()
            && !context.queues(&board, &self.queues)?.contains(queue)
        {
            return Err(CliError::usage(
                format!("`{name}` is in no queue that --queue names"),
                "leave --queue out",
            ));
        }
        // An item that is named is looked up wherever it is.
        let names = match (&item, &self.role) {
            (Some(NamedItem::At { queue, .. }), _) => {
                vec![queue.path.to_string_lossy().into_owned()]
            }
            (None, Some(role)) => Context::names_for(&workspace, role, &self.queues)?,
            _ => self.queues.clone(),
        };
        // All of the board's queues are found by the claim itself.
        let mut queues = if names.is_empty() && self.wait.is_none() && !context.is_dry {
            None
        } else {
            Some(context.queues(&board, &names)?)
        };
        workspace.named = queues.clone().unwrap_or_default();
        let deadline = match &self.wait {
            Some(Some(period)) => Deadline::after(period.duration()),
            Some(None) => Deadline::NEVER,
            None => Deadline::after(Duration::ZERO),
        };
        let mut seek = self.seek(&workspace, queues.clone(), item)?;
        // A shell makes background commands ignore interrupts; a wait has to end on them anyway.
        let interrupt = self
            .wait
            .is_some()
            .then(|| context.interrupt())
            .transpose()?;
        let bell = Bell::new();
        let _subscription = interrupt.map(|interrupt| bell.ring_at(interrupt));
        self.wait.map_or(Ok(()), |_| board.make_folders())?;
        let mut next_reap = Deadline::after(Duration::ZERO);
        // Without config.yaml the claim follows the defaults.
        let mut has_told = workspace.settings.is_empty();
        if has_told {
            tell_removed(context, &board);
        }
        loop {
            // Only a wait needs a watch. It must exist before the queues are read.
            let watch = self
                .wait
                .map(|_| board.ring_at_changes(queues.as_deref().unwrap_or_default(), &bell))
                .transpose()?;
            if let Some(interrupted) = context.interrupted() {
                return Ok(interrupted);
            }
            if watch.is_some() && names.is_empty() {
                // A queue may have been created meanwhile.
                queues = Some(board.queues_by_priority()?);
                workspace.named = queues.clone().unwrap_or_default();
                seek.queues.clone_from(&queues);
            }
            if let Some(pid) = self
                .pid
                .filter(|_| tavern_store::life(&seek.holder) != Life::Alive)
            {
                let message = format!("process {pid} does not run, so it can't hold the item");
                return Err(CliError::refused(
                    message,
                    "pass a running process: --pid $$",
                ));
            }
            let switch = board.switch();
            let (wake_at, why) = if let Some(paused) =
                CliError::switched(Exit::NothingToDo, &switch)
            {
                if let Switch::Stopped(_) = switch {
                    // A wait is pointless: every loop should end.
                    return Err(CliError {
                        exit: Exit::Refused,
                        ..paused
                    });
                }
                (None, paused)
            } else {
                let look = Preflight::of(&workspace);
                if seek.is_for_program {
                    look.disk()?;
                }
                let is_ready =
                    |queue: &str, document: &Document<'_>, item: &Item<'_>, purpose| match &seek
                        .item
                    {
                        _ if seek.is_for_program => {
                            look.ready(queue, document, item, purpose, Some(&seek.role))
                        }
                        None => look.of_anybody(document, item, purpose),
                        // The user named this item, so problems are reported, not skipped.
                        Some(_) => Ok(()),
                    };
                match board.claim(&seek, &is_ready)? {
                    Ok(held) => {
                        let told = print(context, &board, &held, self.runner.as_deref());
                        let exit = told.inspect_err(|_| give_back(&workspace, &held))?;
                        // An item that was not named was checked before the claim.
                        if seek.item.is_some()
                            && let Err(untrusted) =
                                Trust::of(&workspace).item_of(&held.queue, &held.task)
                        {
                            context.out.note(format!(
                                "{untrusted}; {}",
                                hints::trust(Some(&held.queue.id))
                            ));
                        }
                        if let Err(lack) = look.has_needs(&held.task) {
                            context.out.note(hints::sentence(
                                &lack,
                                Some(&held.task.id),
                                Some(&held.queue.id),
                            ));
                        }
                        return Ok(exit);
                    }
                    Err(_)
                        if !context.is_dry && next_reap.has_passed() && reap(context, &board) =>
                    {
                        next_reap = Deadline::after(BETWEEN_REAPS);
                        continue;
                    }
                    Err(nothing) => {
                        if !mem::replace(&mut has_told, true) {
                            tell_removed(context, &board);
                        }
                        (nothing.look_again(), explain(&workspace, &seek, &nothing)?)
                    }
                }
            };
            let Some(_watch) = watch.filter(|_| !deadline.has_passed()) else {
                return Err(why);
            };
            let wake_at = wake_at
                .into_iter()
                .chain(lease_ends(&board, next_reap))
                .min();
            let back_off = wake_at.map(|at| (at - clock::now()).to_std().unwrap_or_default());
            let longest = Duration::from_secs(3600);
            bell.wait(
                deadline
                    .left()
                    .min(longest)
                    .min(back_off.unwrap_or(longest)),
            );
        }
    }
}

impl Args {
    fn seek(
        &self,
        workspace: &Workspace,
        queues: Option<Vec<Queue>>,
        item: Option<NamedItem>,
    ) -> Result<ClaimRequest, CliError> {
        let role = self.role.clone().unwrap_or_else(|| DEFAULT_ROLE.to_owned());
        workspace.role(&role)?;
        Ok(ClaimRequest {
            agent: self.agent.clone().unwrap_or_else(person),
            roles: workspace.config.known_roles(),
            is_chat: false,
            queues,
            // Otherwise the worker is unknown: a person may take anything.
            is_for_program: item.is_none() && (self.role.is_some() || self.runner.is_some()),
            item,
            seconds: seconds(self.lease.unwrap_or(workspace.config.lease)),
            holder: self
                .pid
                .map_or_else(tavern_store::no_process, tavern_store::holder),
            runner: self.runner.clone(),
            role,
        })
    }
}

/// A reaper may have to look twice.
const BETWEEN_REAPS: Duration = Duration::from_secs(30);

/// Runs `tavern reap`, which may end processes and save work in git, if a lease is over. Returns true if it
/// released anything.
fn reap(context: &Context, board: &Board) -> bool {
    let leases = board.leases().unwrap_or_default();
    leases.iter().any(is_over)
        && run_sibling("reap", &context.here(), board)
            .is_ok_and(|exit| exit == ProgramExit::Code(0))
}

/// Returns true if the lease can be reaped. If its holder lives, the reaper has to look twice.
fn is_over(lease: &Lease) -> bool {
    tavern_store::life(&lease.holder) == Life::Gone || !lease.is_live(clock::now())
}

/// Returns when there may be something to reap.
fn lease_ends(board: &Board, next_reap: Deadline) -> Option<Timestamp> {
    let next = clock::now() + next_reap.left();
    let leases = board.leases().unwrap_or_default();
    let ends = leases.iter().map(|lease| {
        if is_over(lease) {
            next
        } else {
            lease.expires_at()
        }
    });
    ends.min()
}

/// Returns the item: its token was never printed. If this fails too, the lease expires.
fn give_back(workspace: &Workspace, Claimed { task, lease, .. }: &Claimed) {
    let retry = Retry {
        blame: Blame::Nobody,
        not_before: None,
        most: workspace.config.max_returns,
    };
    let reason = "the claimed item could not be printed".to_owned();
    let event = Event::Return {
        token: lease.token,
        retry,
        reason,
    };
    drop(workspace.board.submit(&task.id, &event, &Note::default()));
}

/// Returns a lease's length in whole seconds.
pub(super) fn seconds(period: Period) -> u32 {
    u32::try_from(period.duration().as_secs().max(1)).unwrap_or(u32::MAX)
}

/// Prints the claimed item. A dry run omits values that only a real claim has.
fn print(
    context: &Context,
    board: &Board,
    held: &Claimed,
    runner: Option<&str>,
) -> Result<Exit, CliError> {
    let Claimed {
        task,
        queue,
        lease,
        unknown,
        ..
    } = held;
    let worktree_path = board.worktree(&task.id).to_string_lossy().into_owned();
    let record = Record {
        task,
        queue: &queue.id,
        lease,
        worktree_path,
    };
    let place = unknown.id_at.map_or_else(
        || task.id.to_string(),
        |line| format!("{}:{line}", queue.id),
    );
    // Scripts that spawn, renew and report need the token; a dry run takes none.
    let token = if unknown.token || context.is_dry {
        String::new()
    } else {
        format!(" (token {})", lease.token)
    };
    let text = format!(
        "{place} {}{token}",
        format::title(&(above(board, held) + &task.title))
    );
    let mut variables = vec![
        ("TAVERN_TASK", task.id.to_string()),
        ("TAVERN_TOKEN", lease.token.to_string()),
        ("TAVERN_AGENT", lease.agent.clone()),
        ("TAVERN_QUEUE", queue.id.clone()),
        ("TAVERN_WORKTREE", record.worktree_path.clone()),
    ];
    // The runner passed to the claim also holds for the run.
    variables.extend(runner.map(|runner| ("TAVERN_RUNNER", runner.to_owned())));
    if unknown.id_at.is_none() && !unknown.token {
        context
            .out
            .record_with_variables(&record, text, &variables)?;
        context.out.flush()?;
        return Ok(Exit::Done);
    }
    let mut json = serde_json::to_value(&record)?;
    if unknown.id_at.is_some() {
        json["id"] = Value::Null;
        json["worktree_path"] = Value::Null;
        json["lease"]["task"] = Value::Null;
        variables.retain(|(name, _)| !["TAVERN_TASK", "TAVERN_WORKTREE"].contains(name));
    }
    if unknown.token {
        json["lease"]["token"] = Value::Null;
        variables.retain(|(name, _)| *name != "TAVERN_TOKEN");
    }
    context.out.record_with_variables(&json, text, &variables)?;
    Ok(Exit::Done)
}

/// Returns the context that tells the item from others with its title; empty if the queue can't be read.
fn above(
    board: &Board,
    Claimed {
        task,
        queue,
        unknown,
        ..
    }: &Claimed,
) -> String {
    // A long list is not parsed if the title occurs only once.
    let is_shared = |content: &Content| {
        let (content, title) = (content.as_bytes(), task.title.as_bytes());
        // Otherwise it is the start of a longer title.
        let ends = |at: &usize| {
            let next = content.get(at + title.len());
            next.is_none_or(|next| !next.is_ascii_alphanumeric())
        };
        memmem::find_iter(content, title)
            .filter(ends)
            .nth(1)
            .is_some()
    };
    let read = || board.read(queue).ok().map(|text| text.content);
    let Some(content) = board.last_read(queue).or_else(read).filter(is_shared) else {
        return String::new();
    };
    let document = content.open();
    let at_line = || {
        document
            .items()
            .iter()
            .position(|item| Some(item.line) == unknown.id_at)
    };
    let at = document.index_of(&task.id).or_else(at_line);
    at.and_then(|at| document.apart().remove(&at))
        .unwrap_or_default()
}

/// Explains why nothing was claimed: for the named item, or for all.
fn explain(
    workspace: &Workspace,
    seek: &ClaimRequest,
    nothing: &Nothing,
) -> Result<CliError, CliError> {
    let queues = match &seek.queues {
        Some(queues) => queues.clone(),
        None => workspace.board.queues_by_priority()?,
    };
    let unready = unready(workspace, &queues, Some(&seek.seeker()));
    if let Some(name) = &seek.item {
        let found = workspace.board.named(name)?;
        let is_it = |one: &&Unready| one.queue == found.queue.id && one.line == found.line;
        let lacking = unready.iter().find(is_it).map(|one| one.foremost().clone());
        return Ok(explain_one(&found, name.id(), lacking));
    }
    let (stuck, later) = stuck(unready);
    let hint = match (nothing.wake_at, stuck.first()) {
        (Some(at), _) => format!(
            "the next item can be claimed at {}; to wait: --wait",
            clock::shown(at)
        ),
        (None, Some(one)) => {
            let why = hints::sentence(one.foremost(), one.task.as_ref(), Some(&one.queue));
            format!("{}, line {}: {why}", one.queue, one.line)
        }
        (None, None)
            if let Some((role, count)) = nothing
                .elsewhere
                .iter()
                .find(|(role, _)| **role != seek.role) =>
        {
            let words = if *count == 1 {
                "1 item is".to_owned()
            } else {
                format!("{count} items are")
            };
            format!("{words} for role {role}: tavern claim --role {role}")
        }
        (None, None) if nothing.under_way + later > 0 => {
            "all other items are held, or wait for held ones; to wait: --wait".to_owned()
        }
        (None, None) => match workspace.board.removed_queues()?.first() {
            Some(lost) => hints::of_lost(&workspace.board, lost),
            None => "add one: tavern add \"…\"".to_owned(),
        },
    };
    Ok(CliError::new(Exit::NothingToDo, "no item is eligible").with_hint(hint))
}

fn explain_one(found: &Found, id: Option<&TaskId>, lacking: Option<Lack>) -> CliError {
    let name = id.map_or_else(|| found.place(), ToString::to_string);
    if let Some(lease) = &found.lease {
        let hint = format!(
            "it is given back if {} dies; to take it from its holder: tavern release --force {name}",
            lease.agent
        );
        return CliError::new(
            Exit::NothingToDo,
            format!("`{name}` is held by {}", lease.agent),
        )
        .with_hint(hint);
    }
    let lack = lacking.unwrap_or(Lack::Status(found.task.status()));
    let waits = || (!lack.is_stuck()).then(|| "to wait: --wait".to_owned());
    let hint = hints::lack(&lack, id, Some(&found.queue.id)).or_else(waits);
    CliError::new(
        Exit::NothingToDo,
        format!("`{name}` can't be taken: {}", hints::lacking(&lack)),
    )
    .with_hint(hint)
}
