//! The status display at the bottom of a terminal while a drain works: a line for each agent, and the
//! progress. Messages are printed above it.
//!
//! It writes to standard error only. The cursor stays under the last line, so other output begins on a new
//! line.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::termios::tcgetwinsize;
use signal_hook::consts::SIGCONT;

use crate::live::frame::line_of;
use crate::live::rows::{SceneRow, short_rows};
use crate::live::style::{Look, Tone, can_move};
use crate::overview::{AgentLine, agents, mode_of};
use crate::{Context, format};
use tavern_run::agent::AgentRecord;
use tavern_run::record::run_of;
use tavern_run::run_name;
use tavern_run::watch::{Health, health};
use tavern_store::Board;
use tavern_sys::clock;
use tavern_sys::process::Bell;

/// The interval of updates.
const SECOND: Duration = Duration::from_secs(1);

/// The display, removed on drop. `None` if none is shown.
pub(super) struct Foot(Option<DrawnFoot>);

struct DrawnFoot {
    board: Board,
    shown: Arc<Mutex<ShownFoot>>,
    end: Bell,
    thread: Option<JoinHandle<()>>,
}

impl Foot {
    /// Starts the display of a drain that begins with `open` items.
    pub(super) fn begin(context: &Context, board: &Board, open: usize) -> Foot {
        if !context.out.is_told() || context.is_dry || !io::stderr().is_terminal() || !can_move() {
            return Foot(None);
        }
        let shown = Arc::new(Mutex::new(ShownFoot::of(
            Look::of(context.shared.color),
            open,
        )));
        let end = Bell::new();
        // Needs its own thread: the drain sleeps between messages.
        let thread = std::thread::Builder::new().name("foot".to_owned()).spawn({
            let (shown, end, board) = (Arc::clone(&shown), end.clone(), board.clone());
            move || {
                while !end.wait(SECOND) {
                    let agents = agents(&board, &|task| mode_of(&board, task));
                    let health = health(&board).unwrap_or_default();
                    let mut shown = lock(&shown);
                    (shown.agents, shown.health) = (agents, health);
                    shown.draw();
                }
            }
        });
        // Without the thread it is drawn only with messages.
        Foot(thread.ok().map(|thread| DrawnFoot {
            board: board.clone(),
            shown,
            end,
            thread: Some(thread),
        }))
    }

    /// Lets `tell` write lines above the display.
    pub(super) fn above(&self, tell: impl FnOnce()) {
        let Some(foot) = &self.0 else { return tell() };
        let mut shown = lock(&foot.shown);
        shown.erase();
        tell();
        shown.draw();
    }

    /// Updates the counts from an agent's event; `open` is called if there may be more items than before.
    pub(super) fn hear(&self, agent: &str, told: &AgentRecord, open: Option<&dyn Fn() -> usize>) {
        let Some(foot) = &self.0 else { return };
        let run = told.run().and_then(|run| run_of(&foot.board, run));
        let open = open.map(|open| open());
        let mut shown = lock(&foot.shown);
        shown.ours.insert(agent.to_owned());
        shown.completed += usize::from(told.completes());
        if let Some(open) = open {
            shown.items = shown.items.max(shown.completed + open);
        }
        shown.spent.extend(run.map(|run| (run.run, run.usage.usd)));
    }
}

impl Drop for DrawnFoot {
    fn drop(&mut self) {
        self.end.ring();
        self.thread
            .take()
            .into_iter()
            .for_each(|thread| drop(thread.join()));
        lock(&self.shown).erase();
    }
}

/// A panic while it was locked leaves lines on the terminal at worst.
fn lock(shown: &Mutex<ShownFoot>) -> MutexGuard<'_, ShownFoot> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

struct ShownFoot {
    look: Look,
    began: Instant,
    /// The agents of this drain, without others of the board.
    ours: BTreeSet<String>,
    completed: usize,
    /// The number of items so far.
    items: usize,
    /// The cost of ended runs, in US dollars, by run.
    spent: BTreeMap<String, f64>,
    agents: Vec<AgentLine>,
    health: Vec<Health>,
    /// The lines on the terminal now.
    lines: Vec<String>,
    /// Set when the process continues after a stop: the old lines are no longer at the bottom.
    is_continued: Arc<AtomicBool>,
}

impl ShownFoot {
    fn of(look: Look, items: usize) -> ShownFoot {
        let is_continued = Arc::new(AtomicBool::new(false));
        // If this fails, some old lines remain.
        let _ = signal_hook::flag::register(SIGCONT, Arc::clone(&is_continued));
        ShownFoot {
            look,
            began: clock::instant(),
            ours: BTreeSet::new(),
            completed: 0,
            items,
            spent: BTreeMap::new(),
            agents: Vec::new(),
            health: Vec::new(),
            lines: Vec::new(),
            is_continued,
        }
    }

    /// Returns the rows for a terminal of that many columns and rows.
    fn rows(&self, columns: usize, rows: usize) -> Vec<SceneRow> {
        let is_ours = |line: &&AgentLine| line.alive && self.ours.contains(&line.agent.name);
        let agents: Vec<AgentLine> = self.agents.iter().filter(is_ours).cloned().collect();
        let mut shown = short_rows(&agents, &self.health, clock::now(), columns);
        // The last messages should stay visible.
        let most = (rows / 2).max(2) - 1;
        if shown.len() > most {
            let more = shown.split_off(most - 1).len();
            shown.push(SceneRow {
                columns: format!("… and {}", format::count(more, "more agent")),
                tone: Tone::Faint,
                ..SceneRow::default()
            });
        }
        shown.push(SceneRow {
            columns: self.sum(&agents),
            tone: Tone::Heading,
            ..SceneRow::default()
        });
        shown
    }

    fn sum(&self, agents: &[AgentLine]) -> String {
        let is_ours = |one: &&Health| {
            let run = run_name(&one.lease.task, one.lease.token);
            !self.spent.contains_key(&run)
                && agents
                    .iter()
                    .any(|agent| agent.agent.run.as_ref() == Some(&run))
        };
        let live: f64 = self
            .health
            .iter()
            .filter(is_ours)
            .map(|one| one.activity.usd)
            .sum();
        let usd = live + self.spent.values().sum::<f64>();
        let long = format::took_seconds(self.began.elapsed().as_secs());
        let mut words = vec![format!("completed {}/{}", self.completed, self.items), long];
        words.extend((usd > 0.0).then(|| format::money(usd)));
        words.join(" · ")
    }

    fn erase(&mut self) {
        if !self.is_continued.swap(false, Ordering::SeqCst) && !self.lines.is_empty() {
            write(&format!("\x1b[{}A\r\x1b[J", self.lines.len()));
        }
        self.lines.clear();
    }

    fn draw(&mut self) {
        let size = tcgetwinsize(io::stderr()).ok();
        let columns = format::columns_of(io::stderr()).unwrap_or(80);
        let rows = size
            .map(|size| usize::from(size.ws_row))
            .filter(|rows| *rows > 0)
            .unwrap_or(24);
        // Some terminals wrap at the last column.
        let width = columns.saturating_sub(1);
        let rows = self.rows(width, rows);
        let lines: Vec<String> = rows
            .iter()
            .map(|row| line_of(row, width, self.look))
            .collect();
        if self.is_continued.swap(false, Ordering::SeqCst) {
            self.lines.clear();
        }
        if lines == self.lines {
            return;
        }
        let up = if self.lines.is_empty() {
            String::new()
        } else {
            format!("\x1b[{}A\r", self.lines.len())
        };
        // Overwritten in place, to avoid flicker.
        let text: String = lines.iter().map(|line| format!("{line}\x1b[K\n")).collect();
        write(&format!("{up}{text}\x1b[J"));
        self.lines = lines;
    }
}

fn write(text: &str) {
    // A closed terminal must not stop the drain.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
