//! A running agent program: its log is followed, its limits are kept, it is ended step by step. What its lines mean, and
//! how it is spoken to, is for its `Speaker` to know.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use tavern_sys::clock::{self, Deadline};
use tavern_sys::process::{
    Bell, LineFollower, LogLine, ProgramExit, RelayedLog, RunningProgram, Spec, create_log, start,
};

use super::event::AgentEvent;
use super::job::{Job, Limits};
use super::outcome::{EndReason, SessionEnd};

/// The longest that a tool may be silent: the Claude CLI ends a model's command after at most ten minutes.
const TOOL_PATIENCE: Duration = Duration::from_secs(660);
/// How long a program may take to end after its answer: the Claude CLI waits 5 s for its background shells.
const LINGER: Duration = Duration::from_secs(20);

/// One running agent. Dropping it ends its whole process tree at once; [`Session::finish`] is the proper end.
pub struct Session {
    child: RunningProgram,
    bell: Bell,
    outputs: Vec<(Stream, LineFollower)>,
    /// Until the program has ended.
    relays: Vec<RelayedLog>,
    limits: Limits,
    grace: Duration,
    started_at: Instant,
    last_sign: Instant,
    /// When the process tree is looked at again, and when the limits are while one line follows the other.
    next_look: Instant,
    next_check: Instant,
    memory_mib: u64,
    speaker: Box<dyn Speaker>,
    pending: VecDeque<AgentEvent>,
    ending: Option<GradualEnding>,
    is_over: bool,
}

/// What [`Session::next`] has to tell.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    Event(AgentEvent),
    /// Nothing new: the time is up, or the bell was rung from outside.
    Quiet,
    /// The program has ended and everything it said was told.
    Over,
}

/// The file in the run's folder that a stream of the program goes to.
#[derive(Clone, Copy)]
pub(super) struct Output {
    name: &'static str,
    /// What it says is obeyed: in a sandbox nothing that the program starts can write there in its name.
    is_obeyed: bool,
}

impl Output {
    pub(super) fn obeyed(name: &'static str) -> Output {
        Output {
            name,
            is_obeyed: true,
        }
    }

    pub(super) fn told(name: &'static str) -> Output {
        Output {
            name,
            is_obeyed: false,
        }
    }
}

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// The program's own standard output: only what stands there is what its agent says.
    Output,
    Error,
    /// Either of them, when the program had ended: what it had started was still there.
    Late,
}

/// What [`Session::line`] found.
enum Found {
    Line(Stream, LogLine),
    /// A long line, of which there is more to be read.
    Part,
    /// Nothing new yet.
    Nothing,
    /// The program has ended, and all that it printed was read.
    End,
}

/// What a kind of program says, and how it is spoken to.
pub(super) trait Speaker: Send {
    /// Adds what `line` tells to `events`. A reason to end the program, if it gives one.
    fn read(
        &mut self,
        stream: Stream,
        line: LogLine,
        events: &mut VecDeque<AgentEvent>,
    ) -> Option<EndReason>;

    /// Hands over a message. False if it takes none, or no more.
    fn say(&mut self, _text: &str) -> bool {
        false
    }

    /// Tells it to go on after a silence. False if it may not be told so (again), or takes no messages.
    fn wake(&mut self, _events: &mut VecDeque<AgentEvent>) -> bool {
        false
    }

    /// That it is done is taken: it may end.
    fn accept(&mut self) {}

    /// Tells it why it is not done. False if it may not be told so (again), or takes no messages.
    fn refute(&mut self, _text: &str, _events: &mut VecDeque<AgentEvent>) -> bool {
        false
    }

    /// The program is being ended. True if it was asked to break off what it does, and listens.
    fn break_off(&mut self) -> bool {
        false
    }

    /// A tool of the agent runs, which may be silent for long.
    fn runs_tool(&self) -> bool {
        false
    }

    /// When it gave the answer after which it is to end by itself.
    fn answered_at(&self) -> Option<Instant> {
        None
    }

    /// What the run came to, now that it is over.
    fn conclude(&mut self, exit: ProgramExit, ended_by_us: Option<EndReason>) -> SessionEnd;
}

/// An ending under way: the steps of the ladder are taken one after the other, `grace` apart.
struct GradualEnding {
    why: EndReason,
    step: EndingStep,
    next_at: Instant,
}

/// The Claude CLI starts each shell in a session of its own; only an interrupt makes it end them itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndingStep {
    /// The speaker's request: ends the running tool or call, and yields a result.
    Interrupt,
    /// The signal that does the same.
    Sigint,
    /// TERM to the whole tree.
    Term,
    /// KILL to the whole tree.
    Kill,
}

impl Session {
    /// Starts `spec` with standard output and standard error in two files of the run's folder, each of its own: so they outlive
    /// whoever follows them. `speaker` is made when the program runs.
    ///
    /// # Errors
    /// What the system says; `WouldBlock` if an orphan of an earlier program still holds one of the files.
    pub(super) fn start(
        mut spec: Spec,
        job: &Job,
        [output, error]: [Output; 2],
        speaker: impl FnOnce(&mut RunningProgram) -> std::io::Result<Box<dyn Speaker>>,
    ) -> std::io::Result<Session> {
        let is_boxed = !spec.wrapper.is_empty();
        let bell = Bell::new();
        let (mut outputs, mut relays) = (Vec::new(), Vec::new());
        for (stream, output, stdio) in [
            (Stream::Output, output, &mut spec.stdout),
            (Stream::Error, error, &mut spec.stderr),
        ] {
            let path = job.run_dir.join(output.name);
            let file = create_log(&path)?;
            // Followed from before the start, so that the watch misses nothing.
            let follower = LineFollower::open(&path, file.metadata()?.len(), &bell)?;
            outputs.push((stream, follower));
            *stdio = if output.is_obeyed && is_boxed {
                let (begun, stdout) = RelayedLog::begin(file)?;
                relays.push(begun);
                stdout
            } else {
                file.into()
            };
        }
        let mut child = start(spec)?;
        child.wake(&bell);
        let speaker = speaker(&mut child)?;
        let now = clock::instant();
        Ok(Session {
            child,
            bell,
            outputs,
            relays,
            limits: job.limits.clone(),
            grace: job.grace,
            started_at: now,
            last_sign: now,
            next_look: now + Duration::from_secs(1),
            next_check: now,
            memory_mib: 0,
            speaker,
            pending: VecDeque::new(),
            ending: None,
            is_over: false,
        })
    }

    /// Rings when there may be something new. Ring it to make [`Session::next`] return early.
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// The next thing seen, waiting at most for `timeout`. Enforces the job's limits while it waits, so it must be
    /// called again and again until it says [`Next::Over`].
    pub fn next(&mut self, timeout: Duration) -> Next {
        let deadline = Deadline::after(timeout);
        let mut was_rung = false;
        loop {
            if self.is_due() {
                self.keep_limits();
            }
            if let Some(event) = self.pending.pop_front() {
                return Next::Event(event);
            }
            match self.line() {
                Found::Line(stream, line) => {
                    self.last_sign = clock::instant();
                    if let Some(why) = self.speaker.read(stream, line, &mut self.pending) {
                        self.end(why);
                    }
                    continue;
                }
                Found::Part => continue,
                Found::End => {
                    self.is_over = true;
                    return Next::Over;
                }
                Found::Nothing => {}
            }
            if was_rung || deadline.has_passed() {
                return Next::Quiet;
            }
            self.keep_limits();
            if !self.pending.is_empty() {
                continue;
            }
            was_rung = self.bell.wait(deadline.left().min(self.patience()));
        }
    }

    /// The next line of either output. One that was never finished is one when nobody writes any more.
    fn line(&mut self) -> Found {
        // Asked before they are read: what is read after the end is all there is.
        let has_ended = self.child.exit().is_some();
        if has_ended {
            self.relays.drain(..).for_each(RelayedLog::finish);
        }
        for (stream, follower) in &mut self.outputs {
            // A file that can't be read any more says nothing more; the program's exit still tells.
            let line = follower.next_line().unwrap_or_default();
            if follower.is_behind() {
                return Found::Part;
            }
            let line = line.or_else(|| has_ended.then(|| follower.last_line()).flatten());
            if let Some(line) = line {
                return Found::Line(*stream, line);
            }
        }
        if has_ended {
            Found::End
        } else {
            Found::Nothing
        }
    }

    /// Passes over what was printed and not read yet.
    fn skip(&mut self) {
        for (_, follower) in &mut self.outputs {
            // One that can't be read is not read either.
            let _ = follower.skip_to_end();
        }
    }

    /// Hand a message to the running agent; it gets it between two steps, and a [`AgentEvent::Delivered`] tells when.
    /// False if the program takes no messages, or no more: it has given its answer, or is being ended.
    pub fn say(&mut self, text: &str) -> bool {
        self.speaker.say(text)
    }

    /// Does something while the agent waits: that counts neither as its time nor as its silence.
    pub fn aside<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begun = clock::instant();
        let done = work();
        let now = clock::instant();
        self.started_at += now.duration_since(begun);
        self.last_sign = now;
        done
    }

    /// Takes an [`AgentEvent::Answered`]: the program may end.
    pub fn accept(&mut self) {
        self.speaker.accept();
    }

    /// Tells the agent why it is not done, after an [`AgentEvent::Answered`]. False if it may not be told so (again), or takes no
    /// messages: then its answer stands.
    pub fn refute(&mut self, text: &str) -> bool {
        self.speaker.refute(text, &mut self.pending)
    }

    /// Begin to end it, politely first; returns at once, [`Session::next`] goes on until it is over. Only the first
    /// reason counts.
    pub fn end(&mut self, why: EndReason) {
        if self.ending.is_some() {
            return;
        }
        let is_asked = self.speaker.break_off();
        if why.is_urgent() {
            self.take_step(why, EndingStep::Kill);
            // Read no more of a log that has grown too long.
            self.skip();
        } else {
            self.take_step(
                why,
                if is_asked {
                    EndingStep::Interrupt
                } else {
                    EndingStep::Term
                },
            );
        }
    }

    /// Skip what is merely polite: end it by force, now.
    pub fn hurry(&mut self) {
        let why = self
            .ending
            .as_ref()
            .map_or(EndReason::Stop, |ending| ending.why);
        self.speaker.break_off();
        self.take_step(why, EndingStep::Kill);
    }

    /// Wait until it is over (within the job's limits), end all that it left running, and judge.
    pub fn finish(mut self) -> SessionEnd {
        while !self.is_over {
            self.next(Duration::MAX);
        }
        self.child.sweep();
        loop {
            match self.line() {
                Found::Line(_, line) => {
                    self.speaker.read(Stream::Late, line, &mut self.pending);
                }
                Found::Part => {}
                Found::Nothing | Found::End => break,
            }
        }
        let exit = self.child.exit().unwrap_or(ProgramExit::Lost);
        self.speaker
            .conclude(exit, self.ending.as_ref().map(|ending| ending.why))
            .without_secrets()
    }

    fn take_step(&mut self, why: EndReason, step: EndingStep) {
        // After KILL only a process that the kernel holds is still there; it is not asked in a tight loop.
        let pause = if step == EndingStep::Kill {
            Duration::from_secs(10)
        } else {
            self.grace
        };
        self.ending = Some(GradualEnding {
            why,
            step,
            next_at: clock::instant() + pause,
        });
        match step {
            EndingStep::Interrupt => {}
            EndingStep::Sigint => self.child.signal(Signal::INT),
            EndingStep::Term => self.child.request_end(),
            EndingStep::Kill => self.child.end(Duration::ZERO),
        }
    }

    /// Time to look at the limits again, also while one line follows the other without end. A tenth of a second is soon
    /// enough: a program can't fill a disk in it.
    fn is_due(&mut self) -> bool {
        let now = clock::instant();
        let is_due = now >= self.next_check;
        if is_due {
            self.next_check = now + Duration::from_millis(100);
        }
        is_due
    }

    /// Begin an ending if a limit is exceeded, and go on with one whose time has come.
    fn keep_limits(&mut self) {
        if self.ending.is_some() && self.is_log_full() {
            // Nobody waits until it is read.
            self.skip();
        }
        if let Some(ending) = &self.ending {
            if clock::instant() >= ending.next_at {
                self.take_step(ending.why, ending.step.next());
            }
        } else if let Some(why) = self.exceeded() {
            if why == EndReason::Idle && self.speaker.wake(&mut self.pending) {
                // Something was done about the silence: it counts from now.
                self.last_sign = clock::instant();
            } else {
                self.end(why);
            }
        }
    }

    /// The limit that is exceeded. Looks at the process tree now and then.
    fn exceeded(&mut self) -> Option<EndReason> {
        let now = clock::instant();
        if now >= self.next_look {
            let is_bounded = self.limits.memory_mib.is_some();
            self.next_look = now + Duration::from_secs(if is_bounded { 3 } else { 15 });
            self.memory_mib = self.child.look();
        }
        let timed = self
            .times()
            .into_iter()
            .find(|(_, since, limit)| now.duration_since(*since) >= *limit);
        if let Some((why, ..)) = timed {
            Some(why)
        } else if self
            .limits
            .memory_mib
            .is_some_and(|most| self.memory_mib > most)
        {
            Some(EndReason::Memory)
        } else if self.is_log_full() {
            Some(EndReason::LogSize)
        } else {
            None
        }
    }

    fn is_log_full(&self) -> bool {
        self.limits
            .log_mib
            .is_some_and(|most| self.length() / (1024 * 1024) >= most)
    }

    /// Bytes that it has printed.
    fn length(&self) -> u64 {
        self.outputs
            .iter()
            .map(|(_, follower)| follower.length())
            .sum()
    }

    /// The limits of time, with the moment from which each counts.
    fn times(&self) -> Vec<(EndReason, Instant, Duration)> {
        let patience = if self.speaker.runs_tool() {
            TOOL_PATIENCE
        } else {
            Duration::ZERO
        };
        let lingers = self
            .speaker
            .answered_at()
            .map(|answered_at| (EndReason::Lingering, answered_at, LINGER));
        let wall = self
            .limits
            .wall
            .map(|wall| (EndReason::Wall, self.started_at, wall));
        let idle = self
            .limits
            .idle
            .map(|idle| (EndReason::Idle, self.last_sign, idle.max(patience)));
        [lingers, wall, idle].into_iter().flatten().collect()
    }

    /// How long may be slept before the limits and the log must be looked at again.
    fn patience(&self) -> Duration {
        let now = clock::instant();
        let next = match &self.ending {
            Some(ending) => ending.next_at.saturating_duration_since(now),
            None => {
                let times = self.times().into_iter();
                let left =
                    times.map(|(_, since, limit)| limit.saturating_sub(now.duration_since(since)));
                left.fold(self.next_look.saturating_duration_since(now), Duration::min)
            }
        };
        // Rounded up, so that a limit is really over when it is looked at.
        let looks = self.outputs.iter().map(|(_, follower)| follower.patience());
        looks.fold(next, Duration::min) + Duration::from_millis(1)
    }
}

impl EndingStep {
    fn next(self) -> EndingStep {
        match self {
            EndingStep::Interrupt => EndingStep::Sigint,
            EndingStep::Sigint => EndingStep::Term,
            EndingStep::Term | EndingStep::Kill => EndingStep::Kill,
        }
    }
}
