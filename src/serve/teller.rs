//! Looks at the board for the page, as it changes and while anybody looks on. It knows nothing of connections, which are in a
//! thread of their own: what is to be seen goes out by a channel. It answers no question, so that none holds it up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::clerk::told;
use super::showing::Showing;
use crate::live::watchers::BoardWatch;
use crate::overview::listing::WantedItems;
use crate::overview::run_line::NEWEST_RUNS;
use crate::overview::{AgentLine, Overview, agents, mode_of};
use crate::{CliError, Context, Exit};
use tavern_run::Metadata;
use tavern_run::record::newest_runs;
use tavern_run::watch::health;
use tavern_store::{AgentState, Board, Queue};
use tavern_sys::clock;
use tavern_sys::process::Bell;

/// The board is looked at no more often than this.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is looked what agents do.
const SECOND: Duration = Duration::from_secs(1);

/// Some things change by the time alone: a back-off ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// What it needs to look.
pub struct Teller<'c> {
    context: &'c Context,
    board: Board,
    names: &'c [String],
    bell: Bell,
    out: Arc<watch::Sender<Showing>>,
    showing: Showing,
    /// When the board was looked at last, and how long that took; and when it was looked what agents do.
    looked: Option<Instant>,
    took: Duration,
    ticked: Instant,
    is_at_work: bool,
    watch: Option<(Vec<Queue>, BoardWatch)>,
    /// A file may be shown where nobody has made a board.
    had_folder: bool,
}

impl<'c> Teller<'c> {
    /// Of the queues with these names, or of all. What is to be seen goes to `out`; who begins to look on rings `bell`.
    pub fn new(
        context: &'c Context,
        board: Board,
        names: &'c [String],
        bell: Bell,
        out: Arc<watch::Sender<Showing>>,
    ) -> Teller<'c> {
        let had_folder = board.dir().is_dir();
        Teller {
            context,
            board,
            had_folder,
            names,
            bell,
            out,
            showing: Showing::default(),
            looked: None,
            took: Duration::ZERO,
            ticked: clock::instant(),
            is_at_work: false,
            watch: None,
        }
    }

    /// Until an end is asked for.
    pub fn work(&mut self) -> Result<Exit, CliError> {
        let interrupt = self.context.interrupt()?;
        let _rings = self.bell.ring_at(interrupt);
        let mut is_stale = true;
        loop {
            if let Some(exit) = self.context.interrupted() {
                return Ok(exit);
            }
            is_stale |= self
                .watch
                .as_ref()
                .is_some_and(|(_, watch)| watch.has_changed.take());
            is_stale |= self
                .looked
                .is_none_or(|looked| looked.elapsed() >= PATIENCE);
            let is_watched = self.out.receiver_count() > 0;
            if is_watched && is_stale && self.until_look().is_zero() {
                is_stale = false;
                self.look();
            }
            if is_watched && self.is_at_work && self.ticked.elapsed() >= SECOND {
                self.tick();
            }
            let patience = match is_watched {
                false => Duration::MAX,
                true if is_stale => self.until_look(),
                true => PATIENCE.saturating_sub(
                    self.looked
                        .map_or(Duration::ZERO, |looked| looked.elapsed()),
                ),
            };
            let second = if is_watched && self.is_at_work {
                SECOND.saturating_sub(self.ticked.elapsed())
            } else {
                Duration::MAX
            };
            self.bell.wait(patience.min(second));
        }
    }

    /// A large board that changes all the time does not take all of a processor.
    fn until_look(&self) -> Duration {
        let pause = PAUSE.max(self.took * 4);
        self.looked.map_or(Duration::ZERO, |looked| {
            pause.saturating_sub(looked.elapsed())
        })
    }

    /// Looks at the board; what is wrong with it is shown.
    fn look(&mut self) {
        let began = clock::instant();
        let (mut changed, fault) = match self.look_at_board() {
            Ok(changed) => (changed, None),
            Err(error) => (false, Some(told(&error))),
        };
        changed |= self.showing.put("fault", &fault);
        if let Ok(last) = self.board.last_seq() {
            changed |= std::mem::replace(&mut self.showing.last, last) != last;
        }
        let now = clock::instant();
        (self.looked, self.ticked, self.took) = (Some(now), now, began.elapsed());
        if changed {
            self.out.send_replace(self.showing.clone());
        }
    }

    /// Whether there is something else to be seen.
    fn look_at_board(&mut self) -> Result<bool, CliError> {
        if self.had_folder && !self.board.dir().is_dir() {
            self.watch = None;
            let words = format!(
                "the board is gone: {} is not there",
                self.board.dir().display()
            );
            return Err(CliError::new(Exit::Failed, words));
        }
        let board = self.board.clone().settled()?;
        let queues: Vec<Queue> = self.context.files(&board, self.names)?;
        if self
            .watch
            .as_ref()
            .is_none_or(|(watched, _)| *watched != queues)
        {
            // Before it is looked at: no change falls between.
            self.watch = Some((
                queues.clone(),
                BoardWatch::begin(&board, &queues, &self.bell)?,
            ));
        }
        let site = self.context.light_site(board.clone());
        let fault = site.as_ref().err().map(told);
        let site = site.ok().map(|site| site.naming(&queues));
        let overview = Overview::gather(&board, &queues, site.as_ref(), WantedItems::Every)?;
        let is_shown = |run: &Metadata| {
            self.names.is_empty() || queues.iter().any(|queue| queue.id == run.queue)
        };
        let runs = newest_runs(&board, NEWEST_RUNS, &is_shown)?;
        let health = health(&board).unwrap_or_default();
        self.works(&overview.agents);
        Ok(self.showing.put_overview(&overview, fault, &health, &runs))
    }

    fn works(&mut self, agents: &[AgentLine]) {
        self.is_at_work = agents
            .iter()
            .any(|line| line.alive && line.agent.state == AgentState::Working);
    }

    fn tick(&mut self) {
        let agents = agents(&self.board, &|task| mode_of(&self.board, task));
        if self
            .showing
            .put_agents(&agents, &health(&self.board).unwrap_or_default())
        {
            self.out.send_replace(self.showing.clone());
        }
        self.works(&agents);
        self.ticked = clock::instant();
    }
}
