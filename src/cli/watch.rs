//! `tavern-watch`: look after the runs of agents.

use std::time::Duration;

use crate::board::monitor::{Deed, WatchRules};
use crate::board::period::Period;
use crate::run::Site;
use crate::run::watch::{Diagnosis, look};
use crate::store::Slot;

use super::flags::DryRun;
use super::{CliError, Context, Exit, Verb};

/// Look after the runs of agents: nudge, then pause, those that get no further
///
/// Each run is judged by what it really did: calls that fail again and again, tokens without a change, time without a
/// step. Its agent hears of it between two steps, more urgently each time. What gets no further all the same is paused, and
/// waits for you. `watch:` in config.yaml says when. The supervisor of each agent does the same for its own run where no
/// `tavern watch` runs.
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
    const CHANGES_QUEUES: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let site = context.site(context.board()?)?;
        let Some(_slot) = slot(&site)? else {
            context.out.note("another tavern watch looks after this board".to_owned());
            return Ok(Exit::Done);
        };
        let set = Some(site.config.watch.every).filter(|every| !every.is_zero());
        let every = self.every.or(set).unwrap_or(WatchRules::default().every).duration();
        let line = |found: &Diagnosis| match found.deed {
            Deed::Paused => format!("{}: tavern tell {} \"…\"", found.line(), found.task),
            _ => found.line(),
        };
        let mut told = None;
        loop {
            let mut printed = Ok(());
            let looked = look(&site, &mut |found| {
                let print = || context.out.record(&found, line(&found));
                printed = std::mem::replace(&mut printed, Ok(())).and_then(|()| print());
            });
            printed.and_then(|()| context.out.flush())?;
            if self.once || context.is_dry {
                return looked.map(|()| Exit::Done).map_err(CliError::from);
            }
            // It may be over at the next look; it is told once.
            let failure = looked.err().map(|error| error.in_words());
            if let Some(why) = failure.as_ref().filter(|_| failure != told) {
                context.out.note(format!("this look failed: {why}"));
            }
            told = failure;
            if site.interrupt.wait(every) {
                return Ok(context.interrupted().unwrap_or(Exit::Done));
            }
        }
    }
}

/// A supervisor that looks at its own run has it for a moment.
fn slot(site: &Site) -> Result<Option<Slot>, CliError> {
    for _ in 0..20 {
        let slot = site.board.try_watch_slot()?;
        if slot.is_some() || site.interrupt.wait(Duration::from_millis(100)) {
            return Ok(slot);
        }
    }
    Ok(None)
}
