//! A program that is watched while it runs: its log is followed, its limits are kept. It doesn't read the lines.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::process::{Bell, Child, Exit, Follower, Line, Spec, Swept, create_log, start};

use super::Next;
use super::event::AgentEvent;
use super::job::Limits;
use super::outcome::EndReason;
use crate::clock;

/// A running program, its log and its limits.
pub struct ProcessWatch {
    pub child: Child,
    pub bell: Bell,
    follower: Follower,
    limits: Limits,
    started_at: Instant,
    last_sign: Instant,
    next_look: Instant,
    next_check: Instant,
    memory_mib: u64,
}

/// A session over a watched program.
pub(super) trait Watched {
    fn watch(&mut self) -> &mut ProcessWatch;
    /// The next event of the lines read so far.
    fn next_event(&mut self) -> Option<AgentEvent>;
    /// Make events of `line`.
    fn read(&mut self, line: Line);
    /// The program has ended and every line was read.
    fn close(&mut self);
    /// Begin an ending if a limit is exceeded, and go on with one whose time has come.
    fn keep_limits(&mut self);
    /// How long may be slept before the limits must be looked at again.
    fn patience(&self) -> Duration;
}

/// [`super::Session::next`] of any watched session.
pub(super) fn next(session: &mut impl Watched, timeout: Duration) -> Next {
    let deadline = clock::instant().checked_add(timeout);
    let mut was_rung = false;
    loop {
        if session.watch().is_due() {
            session.keep_limits();
        }
        if let Some(event) = session.next_event() {
            return Next::Event(event);
        }
        match session.watch().next_line() {
            NextLine::Line(line) => {
                session.read(line);
                continue;
            }
            NextLine::Over => {
                session.close();
                return Next::Over;
            }
            NextLine::Nothing => {}
        }
        let left = deadline.map_or(timeout, |deadline| deadline.saturating_duration_since(clock::instant()));
        if was_rung || left.is_zero() {
            return Next::Quiet;
        }
        session.keep_limits();
        let patience = left.min(session.patience());
        was_rung = session.watch().bell.wait(patience);
    }
}

/// What the log holds next.
enum NextLine {
    Line(Line),
    /// Nothing new yet.
    Nothing,
    /// The program has ended, and everything in the log was seen.
    Over,
}

/// Whether a tool of the agent runs right now, which may be silent for long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    Running,
    None,
}

impl ProcessWatch {
    /// The longest that a tool may be silent: the Claude CLI ends a model's command after at most ten minutes.
    const TOOL_PATIENCE: Duration = Duration::from_secs(660);

    /// Start `spec`, whose output streams `direct` sets to the log that it is handed.
    ///
    /// # Errors
    /// What the system says; `WouldBlock` if an orphan of an earlier program still holds the log.
    pub fn start(
        spec: Spec,
        log: &Path,
        limits: &Limits,
        direct: impl FnOnce(Spec, File) -> std::io::Result<Spec>,
    ) -> std::io::Result<ProcessWatch> {
        let file = create_log(log)?;
        let offset = file.metadata()?.len();
        let bell = Bell::new();
        // Followed from before the start, so that the watch misses nothing.
        let follower = Follower::open(log, offset, &bell)?;
        let child = start(direct(spec, file)?)?;
        child.wake(&bell);
        let now = clock::instant();
        Ok(ProcessWatch {
            child,
            bell,
            follower,
            limits: limits.clone(),
            started_at: now,
            last_sign: now,
            next_look: now + Duration::from_secs(1),
            next_check: now,
            memory_mib: 0,
        })
    }

    /// The next line of the log.
    fn next_line(&mut self) -> NextLine {
        // Asked before the log is read: what is read after the end is all there is.
        let has_ended = self.child.exit().is_some();
        // A log that can't be read any more says nothing more; the program's exit still tells.
        if let Ok(Some(line)) = self.follower.next_line() {
            self.last_sign = clock::instant();
            return NextLine::Line(line);
        }
        if !has_ended {
            return NextLine::Nothing;
        }
        self.follower.last_line().map_or(NextLine::Over, NextLine::Line)
    }

    /// Time to look at [`ProcessWatch::exceeded`] again, also while one line follows the other without end. A tenth of a
    /// second is soon enough: a program can't fill a disk in it.
    fn is_due(&mut self) -> bool {
        let now = clock::instant();
        let is_due = now >= self.next_check;
        if is_due {
            self.next_check = now + Duration::from_millis(100);
        }
        is_due
    }

    /// The limit that is exceeded, of those that need no reading of the lines. Looks at the process tree now and then.
    pub fn exceeded(&mut self, tool: Tool) -> Option<EndReason> {
        let now = clock::instant();
        if now >= self.next_look {
            let is_bounded = self.limits.memory_mib.is_some();
            self.next_look = now + Duration::from_secs(if is_bounded { 3 } else { 15 });
            self.memory_mib = self.child.look();
        }
        let idle = self.limits.idle.map(|idle| patience(idle, tool));
        if self.limits.wall.is_some_and(|wall| now.duration_since(self.started_at) >= wall) {
            Some(EndReason::Wall)
        } else if idle.is_some_and(|idle| now.duration_since(self.last_sign) >= idle) {
            Some(EndReason::Idle)
        } else if self.limits.memory_mib.is_some_and(|most| self.memory_mib > most) {
            Some(EndReason::Memory)
        } else if self.limits.log_mib.is_some_and(|most| self.follower.length() / (1024 * 1024) >= most) {
            Some(EndReason::LogSize)
        } else {
            None
        }
    }

    /// Something was done about a silence: it counts from now.
    pub fn forgive_silence(&mut self) {
        self.last_sign = clock::instant();
    }

    /// How long may be slept before [`ProcessWatch::exceeded`] and the log must be looked at again.
    pub fn patience(&self, tool: Tool) -> Duration {
        let now = clock::instant();
        let wall = self.limits.wall.map(|wall| wall.saturating_sub(now.duration_since(self.started_at)));
        let idle = self.limits.idle.map(|idle| patience(idle, tool).saturating_sub(now.duration_since(self.last_sign)));
        let look = Some(self.next_look.saturating_duration_since(now));
        let log = Some(self.follower.patience());
        // Rounded up, so that a limit is really over when it is looked at.
        [wall, idle, look, log].into_iter().flatten().min().unwrap_or_default() + Duration::from_millis(1)
    }

    /// Read no more of a log that has grown too long.
    pub fn stop_reading(&mut self) {
        // A log that can't be read is not read either.
        let _ = self.follower.skip_to_end();
    }

    /// End what is left of the tree by force, and tell how the program ended.
    pub fn close(&mut self) -> (Exit, Swept) {
        let swept = self.child.sweep();
        (self.child.exit().unwrap_or(Exit::Lost), swept)
    }

    pub fn duration(&self) -> Duration {
        self.started_at.elapsed()
    }
}

fn patience(idle: Duration, tool: Tool) -> Duration {
    if tool == Tool::Running { idle.max(ProcessWatch::TOOL_PATIENCE) } else { idle }
}
