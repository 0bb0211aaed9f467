//! Looks at the board for the page: as it changes, while anybody looks on, and when something of it is asked for. It knows nothing of
//! connections, which are in threads of their own: questions come in by a channel, and what is to be seen goes out by another.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::showing::{EventLine, Showing, text};
use crate::board::task::TaskId;
use crate::cli::live::look::line;
use crate::cli::live::watchers::BoardWatch;
use crate::cli::overview::listing::WantedItems;
use crate::cli::overview::run_line::NEWEST_RUNS;
use crate::cli::overview::{AgentLine, Overview, agents, mode_of};
use crate::cli::status::full;
use crate::cli::{CliError, Context, Exit, ItemName, diff};
use crate::clock;
use crate::process::Bell;
use crate::run::record::{newest_runs, runs_of};
use crate::run::run_name;
use crate::run::watch::health;
use crate::store::{AgentState, Board, NamedItem, Queue, walk_log};

/// The board is looked at no more often than this.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is looked what agents do.
const SECOND: Duration = Duration::from_secs(1);

/// Some things change by the time alone: a back-off ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// Events that somebody is told of at first.
const FIRST_EVENTS: usize = 60;

/// Events that somebody is told of who has been away.
const MOST_EVENTS: usize = 500;

/// Questions that may wait.
const MOST_ASKED: usize = 32;

/// Something that is asked of the board.
#[derive(Debug)]
pub enum PageQuestion {
    /// Somebody has begun to look on.
    Overview,
    /// One item in full, in words.
    Item(String),
    /// All that its commits change.
    Work(String),
    /// Where the logs of this run, or of this item's last one, are.
    Logs(String),
    /// What has happened behind this event, or last.
    Log(Option<u64>),
}

/// What is answered.
#[derive(Debug)]
pub enum PageReply {
    Nothing,
    Json(String),
    /// Of this run.
    Logs {
        run: String,
        folder: PathBuf,
    },
    /// The oldest first.
    Log(Vec<EventLine>),
}

/// A question, and who waits for the answer, or for why there is none.
struct Asking {
    question: PageQuestion,
    reply: oneshot::Sender<Result<PageReply, String>>,
}

/// By which others ask.
#[derive(Clone)]
pub struct Desk {
    ask: SyncSender<Asking>,
    bell: Bell,
}

impl Desk {
    /// Why there is no answer, in words.
    pub async fn ask(&self, question: PageQuestion) -> Result<PageReply, String> {
        let (reply, answer) = oneshot::channel();
        match self.ask.try_send(Asking { question, reply }) {
            Ok(()) => self.bell.ring(),
            Err(TrySendError::Full(_)) => return Err("too much is asked at once: try again".to_owned()),
            Err(TrySendError::Disconnected(_)) => return Err("it ends".to_owned()),
        }
        answer.await.unwrap_or_else(|_| Err("it ends".to_owned()))
    }
}

/// What it needs to look.
pub struct Teller<'c> {
    context: &'c Context,
    board: Board,
    names: &'c [String],
    bell: Bell,
    asked: Receiver<Asking>,
    out: Arc<watch::Sender<Showing>>,
    showing: Showing,
    /// When the board was looked at last, and how long that took; and when it was looked what agents do.
    looked: Option<Instant>,
    took: Duration,
    ticked: Instant,
    is_at_work: bool,
    watch: Option<(Vec<Queue>, BoardWatch)>,
}

impl<'c> Teller<'c> {
    /// Of the queues with these names, or of all. What is to be seen goes to `out`.
    pub fn new(
        context: &'c Context,
        board: Board,
        names: &'c [String],
        out: Arc<watch::Sender<Showing>>,
    ) -> (Teller<'c>, Desk) {
        let (bell, (ask, asked)) = (Bell::new(), sync_channel(MOST_ASKED));
        let desk = Desk { ask, bell: bell.clone() };
        let teller = Teller {
            context,
            board,
            names,
            bell,
            asked,
            out,
            showing: Showing::default(),
            looked: None,
            took: Duration::ZERO,
            ticked: clock::instant(),
            is_at_work: false,
            watch: None,
        };
        (teller, desk)
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
            while let Ok(asking) = self.asked.try_recv() {
                // Who has asked may be gone.
                let _ = asking.reply.send(self.answer(&asking.question).map_err(|error| told(&error)));
            }
            is_stale |= self.watch.as_ref().is_some_and(|(_, watch)| watch.has_changed.take());
            is_stale |= self.looked.is_none_or(|looked| looked.elapsed() >= PATIENCE);
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
                true => PATIENCE.saturating_sub(self.looked.map_or(Duration::ZERO, |looked| looked.elapsed())),
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
        self.looked.map_or(Duration::ZERO, |looked| pause.saturating_sub(looked.elapsed()))
    }

    /// Looks at the board; what is wrong with it is shown.
    fn look(&mut self) {
        let began = clock::instant();
        let fault = self.look_at_board().err().map(|error| told(&error));
        let mut changed = self.showing.put("fault", &fault);
        if let Ok(last) = self.board.last_seq() {
            changed |= std::mem::replace(&mut self.showing.last, last) != last;
        }
        let now = clock::instant();
        (self.looked, self.ticked, self.took) = (Some(now), now, began.elapsed());
        if changed {
            self.out.send_replace(self.showing.clone());
        }
    }

    fn look_at_board(&mut self) -> Result<(), CliError> {
        let board = self.board.clone().settled()?;
        let queues: Vec<Queue> = self.context.files(&board, self.names)?;
        if self.watch.as_ref().is_none_or(|(watched, _)| *watched != queues) {
            // Before it is looked at: no change falls between.
            self.watch = Some((queues.clone(), BoardWatch::begin(&board, &queues, &self.bell)?));
        }
        let site = self.context.light_site(board.clone()).ok().map(|site| site.naming(&queues));
        let overview = Overview::gather(&board, &queues, site.as_ref(), WantedItems::Every)?;
        let runs = newest_runs(&board, NEWEST_RUNS)?;
        let health = health(&board).unwrap_or_default();
        if self.showing.put_overview(&overview, &health, &runs) {
            // Told with the rest, in one step.
            self.out.send_replace(self.showing.clone());
        }
        self.works(&overview.agents);
        Ok(())
    }

    fn works(&mut self, agents: &[AgentLine]) {
        self.is_at_work = agents.iter().any(|line| line.alive && line.agent.state == AgentState::Working);
    }

    fn tick(&mut self) {
        let agents = agents(&self.board, &|task| mode_of(&self.board, task));
        if self.showing.put_agents(&agents, &health(&self.board).unwrap_or_default()) {
            self.out.send_replace(self.showing.clone());
        }
        self.works(&agents);
        self.ticked = clock::instant();
    }

    fn answer(&mut self, question: &PageQuestion) -> Result<PageReply, CliError> {
        match question {
            PageQuestion::Overview => Ok(PageReply::Nothing),
            PageQuestion::Item(name) => {
                let name = self.named(name)?;
                let words = full::words(self.context, &self.board, &name)?;
                Ok(PageReply::Json(text("", &words)))
            }
            PageQuestion::Work(name) => {
                let words = match self.named(name)?.id() {
                    Some(id) => diff::words(self.context, &self.board, id)?,
                    None => "an item without an ID has no commits".to_owned(),
                };
                Ok(PageReply::Json(text("", &words)))
            }
            PageQuestion::Logs(name) => {
                let run = self.run(name)?.ok_or_else(|| CliError::new(Exit::Failed, "it has had no run yet"))?;
                Ok(PageReply::Logs { folder: self.board.run_dir(&run), run })
            }
            PageQuestion::Log(after) => {
                let (mut lines, most) = (Vec::new(), if after.is_some() { MOST_EVENTS } else { FIRST_EVENTS });
                walk_log(&self.board, None, &mut |entry| {
                    let is_new = entry.seq > after.unwrap_or_default() && lines.len() < most;
                    lines.extend(is_new.then(|| EventLine::of(&entry)));
                    is_new
                })?;
                lines.reverse();
                Ok(PageReply::Log(lines))
            }
        }
    }

    fn named(&self, name: &str) -> Result<NamedItem, CliError> {
        let gone = || CliError::new(Exit::Failed, "there is no such item");
        match name.parse::<TaskId>() {
            Ok(id) => Ok(NamedItem::Id(id)),
            Err(_) => self.context.item(&self.board, &name.parse::<ItemName>().map_err(|_| gone())?),
        }
    }

    /// The run of this name, or the last one of the item with it.
    fn run(&self, name: &str) -> Result<Option<String>, CliError> {
        // What is asked for becomes a path: only the name of a run is one.
        if let Some((task, token)) = name.rsplit_once('@')
            && let (Ok(task), Ok(token)) = (task.parse::<TaskId>(), token.parse())
        {
            return Ok(Some(run_name(&task, token)));
        }
        let last = |id: &TaskId| {
            // What is held has a run before it has a folder.
            let held = self.board.lease(id)?.map(|lease| run_name(id, lease.token));
            Ok(if held.is_some() { held } else { runs_of(&self.board, id)?.pop().map(|run| run.run) })
        };
        self.named(name)?.id().map_or(Ok(None), last)
    }
}

/// An error with what to type, in a line.
fn told(error: &CliError) -> String {
    let parts = [Some(&error.message), error.hint.as_ref()];
    let parts: Vec<String> = parts.into_iter().flatten().map(|part| line(part)).collect();
    parts.join(" · ")
}
