//! `tavern-watch`: look after the runs of agents.

use std::time::Duration;

use tavern_core::monitor::Reaction;
use tavern_core::period::Period;
use tavern_core::watch_rules::WatchRules;
use tavern_run::notices::tell_people;
use tavern_run::reap::{ExpiredLeases, clear};
use tavern_run::schedule::queue_due;
use tavern_run::watch::{Diagnosis, Lapse, look, news};
use tavern_run::watcher_state::Watcher;
use tavern_run::{Error, Workspace};
use tavern_store::Slot;
use tavern_store::config::Config;
use tavern_sys::clock;

use super::flags::DryRun;
use super::schedule::outcome_told;
use super::{CliError, Context, Exit, Verb, format};

/// Watch the runs of agents: nudge, then pause, those without progress
///
/// Each run is judged by its events: calls that fail repeatedly, tokens without a change, time without a step. Its agent gets
/// nudges between two steps, more urgent each time. A run that still makes no progress is paused, and waits for you. Items of
/// dead agents are given back. `watch:` in config.yaml sets the limits; it is reloaded when it changes. Without `tavern watch`,
/// the supervisor of each agent does the same for its own run.
#[derive(clap::Args)]
pub struct Args {
    /// Look once, and end
    #[arg(long)]
    pub once: bool,

    /// How often to look [default: as config.yaml says, else 30s]
    #[arg(long, value_name = "DURATION", conflicts_with = "once")]
    pub every: Option<Period>,

    #[command(flatten)]
    pub plan: DryRun,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-watch";
    const EXAMPLES: &'static [&'static str] = &["tavern watch --every 1m"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        if self.every.is_some_and(Period::is_zero) {
            return Err(CliError::usage(
                "a watch needs an interval",
                "set it: tavern watch --every 30s",
            ));
        }
        let mut workspace = context.site(context.board()?)?;
        // A dry run only looks, so it needs no slot.
        let slot = if context.is_dry {
            None
        } else {
            slot(&workspace)?
        };
        if slot.is_none() && !context.is_dry {
            let now = clock::now();
            let hangs = Watcher::of(&workspace.board)
                .filter(|watcher| !watcher.is_at_it(now))
                .map(|watcher| {
                    let age = format::age((now - watcher.looked).to_std().unwrap_or_default());
                    format!(", last look {age} ago: end it, if it hangs")
                });
            context.out.note(format!(
                "another tavern watch runs on this board{}",
                hangs.unwrap_or_default()
            ));
            return Ok(Exit::Done);
        }
        let mut looks = ExpiredLeases::load(&workspace.board);
        let mut watcher =
            Watcher::of(&workspace.board).unwrap_or(Watcher::begin(&workspace.board)?);
        watcher.degraded = None;
        let mut lapse = Lapse::default();
        loop {
            let began = clock::instant();
            let looked = look_once(context, &mut workspace, &mut looks);
            if !context.is_dry {
                watcher.seen = tell_news(context, &workspace, watcher.seen)?;
            }
            context.out.flush()?;
            if context.is_dry {
                return looked.map(|()| Exit::Done);
            }
            let set = Some(workspace.config.watch.every).filter(|every| !every.is_zero());
            let every = self
                .every
                .or(set)
                .unwrap_or(WatchRules::default().every)
                .duration();
            watcher.every = if self.once { 0 } else { every.as_secs() };
            let failure = looked.as_ref().err().map(|error| error.message.clone());
            watcher.looked(clock::now(), began.elapsed(), failure.clone());
            watcher.keep(&workspace.board);
            if self.once {
                // The next watch, such as one from cron, continues from there.
                looks.save(&workspace.board)?;
                return looked.map(|()| Exit::Done);
            }
            let told = lapse.note(&workspace, None, failure);
            told.into_iter().for_each(|words| context.out.note(words));
            if workspace.interrupt.wait(every) {
                return Ok(context.interrupted().unwrap_or(Exit::Done));
            }
        }
    }
}

/// Reloads a changed configuration, releases items of dead holders, and looks at each run. A broken, empty or missing
/// configuration leaves the last good one in place.
fn look_once(
    context: &Context,
    workspace: &mut Workspace,
    looks: &mut ExpiredLeases,
) -> Result<(), CliError> {
    let renewed = renew(context, workspace);
    let mut printed = Ok(());
    let cleared = clear(workspace, looks, &mut |action| {
        printed = std::mem::replace(&mut printed, Ok(()))
            .and_then(|()| context.out.record(action, action));
    });
    let looked = look(workspace, &mut |found| {
        // Otherwise findings are printed from the log, with those of supervisors.
        let print = || {
            if context.is_dry {
                context.out.record(&found, line(&found))
            } else {
                Ok(())
            }
        };
        printed = std::mem::replace(&mut printed, Ok(())).and_then(|()| print());
    });
    printed?;
    // This uses the last good configuration.
    queue_what_is_due(context, workspace)?;
    tell_people(workspace);
    renewed?;
    Ok(cleared.map(|_| ()).and(looked)?)
}

/// Queues scheduled items that are due. Errors are only noted, so that runs are still looked after.
fn queue_what_is_due(context: &Context, workspace: &Workspace) -> Result<(), CliError> {
    match queue_due(workspace) {
        Ok(look) => look
            .outcomes
            .iter()
            .try_for_each(|outcome| outcome_told(context, &look.schedules, outcome)),
        // The user may have left the settings untrusted on purpose.
        Err(Error::NotTrusted(_)) => Ok(()),
        Err(error) => {
            context
                .out
                .note(format!("the schedules queue nothing: {}", error.in_words()));
            Ok(())
        }
    }
}

/// Prints the log's findings on runs after the event `since`, and returns the last event.
fn tell_news(context: &Context, workspace: &Workspace, since: u64) -> Result<u64, CliError> {
    let (found, last) = news(&workspace.board, since)?;
    found
        .iter()
        .try_for_each(|found| context.out.record(found, line(found)))?;
    Ok(last)
}

fn renew(context: &Context, workspace: &mut Workspace) -> Result<(), CliError> {
    let (_, settings) = Config::load_with_text(workspace.board.dir()).map_err(Error::from)?;
    // An editor may be about to put a missing file back.
    let is_gone = settings.is_empty();
    if settings != workspace.settings && !is_gone {
        *workspace = context.site(workspace.board.clone())?.instead_of(workspace);
    }
    Ok(())
}

fn line(found: &Diagnosis) -> String {
    match found.deed {
        Reaction::Paused => format!("{}: tavern answer {} \"…\"", found.line(), found.task),
        _ => found.line(),
    }
}

/// Takes the watch slot, with retries: a supervisor that looks at its own run holds it for a moment.
fn slot(workspace: &Workspace) -> Result<Option<Slot>, CliError> {
    for _ in 0..20 {
        let slot = workspace.board.try_watch_slot()?;
        if slot.is_some() || workspace.interrupt.wait(Duration::from_millis(100)) {
            return Ok(slot);
        }
    }
    Ok(None)
}
