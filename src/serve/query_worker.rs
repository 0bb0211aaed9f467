//! Answers the page's queries in threads of their own. No query delays the thread that reads the board for all, and a
//! query waits only for those of its own kind. Knows no connections.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use tokio::sync::oneshot;

use super::page_state::{EventLine, text};
use crate::live::style::line;
use crate::status::full;
use crate::{CliError, Context, Exit, ItemName, diff};
use tavern_core::task::TaskId;
use tavern_run::record::runs_of;
use tavern_run::run_name;
use tavern_store::{Board, NamedItem, walk_log};
use tavern_sys::process::quoted;

/// Number of events for a new client.
const FIRST_EVENTS: usize = 60;

/// Maximum number of events for a client that returns.
const MOST_EVENTS: usize = 500;

/// Maximum number of events searched for those of some queues.
const MOST_LOOKED_AT: usize = 10_000;

/// Maximum number of waiting queries of a kind.
const MOST_ASKED: usize = 32;

/// Place of a run's logs.
#[derive(Debug)]
pub struct RunLogs {
    pub run: String,
    pub folder: PathBuf,
}

/// New events.
#[derive(Debug, Default)]
pub struct LogNews {
    /// The events to show, the oldest first.
    pub lines: Vec<EventLine>,
    /// The number of the last event, shown or not.
    pub last: u64,
}

/// A query for a [`Clerk`].
type ClerkTask = Box<dyn FnOnce(&Clerk) + Send>;

/// Takes queries. Each kind has one thread.
#[derive(Clone)]
pub struct Desk {
    log: SyncSender<ClerkTask>,
    items: SyncSender<ClerkTask>,
    work: SyncSender<ClerkTask>,
}

impl Desk {
    /// Starts to answer, to the end of this process.
    ///
    /// Events are those of these queues and those of no queue; without any queues, all.
    pub fn open(context: &Context, board: &Board, queues: &[String]) -> io::Result<Desk> {
        let begin = |name: &str| {
            let (ask, asked) = sync_channel(MOST_ASKED);
            let clerk = Clerk {
                context: context.apart(),
                board: board.clone(),
                queues: queues.to_vec(),
            };
            thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || clerk.work(&asked))?;
            io::Result::Ok(ask)
        };
        Ok(Desk {
            log: begin("log")?,
            items: begin("items")?,
            work: begin("work")?,
        })
    }

    /// Returns the events after this one, or the newest; the oldest first.
    pub async fn events(&self, after: Option<u64>) -> Result<LogNews, String> {
        ask(&self.log, move |clerk| clerk.events(after)).await
    }

    /// Returns the place of the logs of this run, or of this item's last run.
    pub async fn logs(&self, name: String) -> Result<RunLogs, String> {
        ask(&self.log, move |clerk| clerk.logs(&name)).await
    }

    /// Returns one item in full as text, in JSON.
    pub async fn item(&self, name: String) -> Result<String, String> {
        ask(&self.items, move |clerk| clerk.item(&name)).await
    }

    /// Returns all changes of an item's commits as text, in JSON.
    pub async fn work(&self, name: String) -> Result<String, String> {
        ask(&self.work, move |clerk| clerk.changes(&name)).await
    }
}

/// Returns the answer, or the reason why there is none.
async fn ask<T: Send + 'static>(
    desk: &SyncSender<ClerkTask>,
    question: impl FnOnce(&Clerk) -> Result<T, CliError> + Send + 'static,
) -> Result<T, String> {
    let (reply, answer) = oneshot::channel();
    let asked = Box::new(move |clerk: &Clerk| {
        // The client may be gone; then the query is skipped.
        if !reply.is_closed() {
            let _ = reply.send(question(clerk).map_err(|error| told(&error)));
        }
    });
    match desk.try_send(asked) {
        Ok(()) => answer.await.unwrap_or_else(|_| Err("it ends".to_owned())),
        Err(TrySendError::Full(_)) => Err("too many requests: try again".to_owned()),
        Err(TrySendError::Disconnected(_)) => Err("it ends".to_owned()),
    }
}

/// The state for answering queries.
struct Clerk {
    context: Context,
    board: Board,
    queues: Vec<String>,
}

impl Clerk {
    fn work(&self, asked: &Receiver<ClerkTask>) {
        asked.iter().for_each(|asked| asked(self));
    }

    fn events(&self, after: Option<u64>) -> Result<LogNews, CliError> {
        let (mut news, after, most) = match after {
            Some(after) => (
                LogNews {
                    lines: Vec::new(),
                    last: after,
                },
                after,
                MOST_EVENTS,
            ),
            None => (LogNews::default(), 0, FIRST_EVENTS),
        };
        let mut left = MOST_LOOKED_AT;
        walk_log(&self.board, None, &mut |entry| {
            let is_new = entry.seq > after && news.lines.len() < most && left > 0;
            left -= usize::from(is_new);
            news.last = news.last.max(entry.seq);
            let is_shown = is_new
                && (self.queues.is_empty()
                    || entry
                        .queue
                        .as_ref()
                        .is_none_or(|queue| self.queues.contains(queue)));
            news.lines.extend(is_shown.then(|| EventLine::of(&entry)));
            is_new
        })?;
        news.lines.reverse();
        Ok(news)
    }

    fn logs(&self, name: &str) -> Result<RunLogs, CliError> {
        let run = self
            .run(name)?
            .ok_or_else(|| CliError::new(Exit::Failed, "it has had no run yet"))?;
        Ok(RunLogs {
            folder: self.board.run_dir(&run),
            run,
        })
    }

    fn item(&self, name: &str) -> Result<String, CliError> {
        let words = full::words(&self.context, &self.board, &self.named(name)?)?;
        Ok(text(&words, &format!("tavern status {}", quoted(name))))
    }

    fn changes(&self, name: &str) -> Result<String, CliError> {
        let words = match self.named(name)?.id() {
            Some(id) => diff::words(&self.context, &self.board, id)?,
            None => "an item without an ID has no commits".to_owned(),
        };
        Ok(text(&words, &format!("tavern diff {}", quoted(name))))
    }

    fn named(&self, name: &str) -> Result<NamedItem, CliError> {
        let gone = || CliError::new(Exit::Failed, "no such item");
        match name.parse::<TaskId>() {
            Ok(id) => Ok(NamedItem::Id(id)),
            Err(_) => {
                let item: ItemName = name.parse().map_err(|_| gone())?;
                // Only shown queues are accepted: a path could name any list on this machine.
                let shown = self.context.files(&self.board, &self.queues)?;
                match &item {
                    ItemName::Line { queue, .. } if !shown.iter().any(|one| one.id == *queue) => {
                        Err(gone())
                    }
                    _ => self.context.item(&self.board, &item),
                }
            }
        }
    }

    /// Returns the run of this name, or the last run of this item.
    fn run(&self, name: &str) -> Result<Option<String>, CliError> {
        // The name becomes a path, so it must be the name of a run.
        if let Some((task, token)) = name.rsplit_once('@')
            && let (Ok(task), Ok(token)) = (task.parse::<TaskId>(), token.parse())
        {
            return Ok(Some(run_name(&task, token)));
        }
        let last = |id: &TaskId| {
            // A held item has a run before that has a folder.
            let held = self.board.lease(id)?.map(|lease| run_name(id, lease.token));
            Ok(if held.is_some() {
                held
            } else {
                runs_of(&self.board, id)?.pop().map(|run| run.run)
            })
        };
        self.named(name)?.id().map_or(Ok(None), last)
    }
}

/// Returns the error and its hint, in one line.
pub fn told(error: &CliError) -> String {
    let parts = [Some(&error.message), error.hint.as_ref()];
    let parts: Vec<String> = parts.into_iter().flatten().map(|part| line(part)).collect();
    parts.join(" · ")
}
