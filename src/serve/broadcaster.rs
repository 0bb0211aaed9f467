//! Reads the board for the page, as it changes and while clients are connected. The state goes out by a channel;
//! connections and queries have threads of their own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::page_state::Showing;
use super::query_worker::told;
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

/// Minimum time between two reads of the board.
const PAUSE: Duration = Duration::from_millis(100);

/// Time between two looks at agents' activity.
const SECOND: Duration = Duration::from_secs(1);

/// Maximum time between two reads: some states end by time alone, such as a back-off.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads the board for the page.
pub struct Teller<'c> {
    context: &'c Context,
    board: Board,
    names: &'c [String],
    bell: Bell,
    out: Arc<watch::Sender<Showing>>,
    showing: Showing,
    /// When the board was read last, how long that took, and when agents were looked at.
    looked: Option<Instant>,
    took: Duration,
    ticked: Instant,
    is_at_work: bool,
    watch: Option<(Vec<Queue>, BoardWatch)>,
    /// Whether there was a board: a file can be shown without one.
    had_folder: bool,
}

impl<'c> Teller<'c> {
    /// Reads the queues with these names, or all. The state goes to `out`; a client that connects rings `bell`.
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

    /// Works until an end is requested.
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

    /// Returns the time until the next read. A large board that changes all the time must not use a whole processor.
    fn until_look(&self) -> Duration {
        let pause = PAUSE.max(self.took * 4);
        self.looked.map_or(Duration::ZERO, |looked| {
            pause.saturating_sub(looked.elapsed())
        })
    }

    /// Reads the board; its faults are shown on the page.
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

    /// Reads the board, and returns whether the state has changed.
    fn look_at_board(&mut self) -> Result<bool, CliError> {
        if self.had_folder && !self.board.dir().is_dir() {
            self.watch = None;
            let words = format!(
                "the board is gone: {} not found",
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
            // The watch begins before the read, so that no change is missed.
            self.watch = Some((
                queues.clone(),
                BoardWatch::begin(&board, &queues, &self.bell)?,
            ));
        }
        let workspace = self.context.light_site(board.clone());
        let fault = workspace.as_ref().err().map(told);
        let workspace = workspace.ok().map(|workspace| workspace.naming(&queues));
        let overview = Overview::gather(&board, &queues, workspace.as_ref(), WantedItems::Every)?;
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
