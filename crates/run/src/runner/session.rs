//! A running agent program: follows its log, enforces its limits, and ends it step by step. Its `Speaker` knows the
//! meaning of its lines, and how to send messages.

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

/// One running agent. Dropping it ends its whole process tree at once; [`Session::finish`] is the proper end.
pub struct Session {
    child: RunningProgram,
    bell: Bell,
    outputs: Vec<(Stream, LineFollower)>,
    /// Empty once the program has ended.
    relays: Vec<RelayedLog>,
    limits: Limits,
    grace: Duration,
    started_at: Instant,
    last_sign: Instant,
    /// When to look at the process tree again, and when to check the limits during a stream of lines.
    next_look: Instant,
    next_check: Instant,
    memory_mib: u64,
    speaker: Box<dyn Speaker>,
    pending: VecDeque<AgentEvent>,
    ending: Option<GradualEnding>,
    is_over: bool,
}

/// The result of [`Session::next`].
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    Event(AgentEvent),
    /// Nothing new: the timeout has passed, or the bell was rung from outside.
    Quiet,
    /// The program has ended, and all of its output was returned.
    Over,
}

/// The file in the run's folder that receives one stream of the program.
#[derive(Clone, Copy)]
pub(super) struct Output {
    name: &'static str,
    /// Whether its lines are obeyed: in a sandbox no child of the program may write there in its name.
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

/// The source of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// The program's standard output: only this counts as the agent's words.
    Output,
    Error,
    /// Either output, after the program has ended: a child of it was still running.
    Late,
}

/// The result of `Session::line`.
enum Found {
    Line(Stream, LogLine),
    /// A part of a long line; more has to be read.
    Part,
    /// Nothing new yet.
    Nothing,
    /// The program has ended, and all of its output was read.
    End,
}

/// The protocol of a kind of program: its lines, and the messages to it.
pub(super) trait Speaker: Send {
    /// Adds the events of `line` to `events`. Returns a reason to end the program, if there is one.
    fn read(
        &mut self,
        stream: Stream,
        line: LogLine,
        events: &mut VecDeque<AgentEvent>,
    ) -> Option<EndReason>;

    /// Reacts to the end of a turn, after its events were taken: by then the run may be ended, for what it has used.
    fn go_on(&mut self, _events: &mut VecDeque<AgentEvent>) {}

    /// Sends it nothing more. Returns true if the agent has ended its work.
    fn stop_prompts(&mut self) -> bool {
        false
    }

    /// Sends a message. Returns false if the program takes none, or no more.
    fn say(&mut self, _text: &str) -> bool {
        false
    }

    /// Prods it after a silence. Returns false if the prods are used up, or it takes no messages.
    fn wake(&mut self, _events: &mut VecDeque<AgentEvent>) -> bool {
        false
    }

    /// Accepts its answer: it may end.
    fn accept(&mut self) {}

    /// Sends the reason why it is not done. Returns false if the prods are used up, or it takes no messages.
    fn refute(&mut self, _text: &str, _events: &mut VecDeque<AgentEvent>) -> bool {
        false
    }

    /// Called when the program is being ended. Returns true if it was asked to interrupt its work, and reads the
    /// request.
    fn break_off(&mut self) -> bool {
        false
    }

    /// Returns true if a tool of the agent runs, which may be silent for long.
    fn runs_tool(&self) -> bool {
        false
    }

    /// Returns when it gave its last answer, and how long it may then take to end by itself.
    fn answered_at(&self) -> Option<(Instant, Duration)> {
        None
    }

    /// Returns the result of the run, which is over.
    fn conclude(&mut self, exit: ProgramExit, ended_by_us: Option<EndReason>) -> SessionEnd;
}

/// An ending in progress: its steps follow each other, `grace` apart.
struct GradualEnding {
    why: EndReason,
    step: EndingStep,
    next_at: Instant,
}

/// The Claude CLI starts each shell in a session of its own, and ends these itself only after an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndingStep {
    /// The speaker's request: ends the running tool or call, and yields a result.
    Interrupt,
    /// The signal with the same effect.
    Sigint,
    /// TERM to the whole tree.
    Term,
    /// KILL to the whole tree.
    Kill,
}

impl Session {
    /// Starts `spec` with standard output and standard error in two files of the run's folder, so that they outlive
    /// their reader. `speaker` is made when the program runs.
    ///
    /// # Errors
    /// The system's error; `WouldBlock` if an orphan of an earlier program still holds one of the files.
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
            // Opened before the program starts, so that the watch misses nothing.
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

    /// Returns the bell that rings when there may be something new. Ring it to make [`Session::next`] return early.
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Waits at most for `timeout` and returns the next event. Enforces the job's limits meanwhile, so it must be
    /// called again and again until it returns [`Next::Over`].
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
            self.speaker.go_on(&mut self.pending);
            if !self.pending.is_empty() {
                continue;
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

    /// Returns the next line of either output. After the program's end an unfinished line counts as a line.
    fn line(&mut self) -> Found {
        // Checked before reading, so that all output of an ended program is read.
        let has_ended = self.child.exit().is_some();
        if has_ended {
            self.relays.drain(..).for_each(RelayedLog::finish);
        }
        for (stream, follower) in &mut self.outputs {
            // A file that can't be read any more yields nothing; the exit status still counts.
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

    /// Skips output that was not read yet.
    fn skip(&mut self) {
        for (_, follower) in &mut self.outputs {
            // A file that can't be read needs no skipping.
            let _ = follower.skip_to_end();
        }
    }

    /// Sends a message to the running agent. It gets it between two steps, reported by [`AgentEvent::Delivered`].
    /// Returns false if the program takes no messages, or no more: it has given its answer, or is being ended.
    pub fn say(&mut self, text: &str) -> bool {
        self.speaker.say(text)
    }

    /// Does some work while the agent waits, which counts neither as its time nor as its silence.
    pub fn aside<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begun = clock::instant();
        let done = work();
        let now = clock::instant();
        self.started_at += now.duration_since(begun);
        self.last_sign = now;
        done
    }

    /// Accepts an [`AgentEvent::Answered`]: the program may end.
    pub fn accept(&mut self) {
        self.speaker.accept();
    }

    /// Sends the reason why the agent is not done, after an [`AgentEvent::Answered`]. Returns false if the prods are
    /// used up or it takes no messages: then its answer stands.
    pub fn refute(&mut self, text: &str) -> bool {
        self.speaker.refute(text, &mut self.pending)
    }

    /// Ends it for `why`, and sends it nothing more; an agent that has ended its work ends by itself.
    pub fn end_unless_done(&mut self, why: EndReason) {
        if !self.speaker.stop_prompts() {
            self.end(why);
        }
    }

    /// Begins to end it, politely first, and returns at once; [`Session::next`] goes on until it is over. Only the
    /// first reason counts.
    pub fn end(&mut self, why: EndReason) {
        if self.ending.is_some() {
            return;
        }
        let is_asked = self.speaker.break_off();
        if why.is_urgent() {
            self.take_step(why, EndingStep::Kill);
            // A log that has grown too long is read no further.
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

    /// Skips the polite steps and kills it now.
    pub fn hurry(&mut self) {
        let why = self
            .ending
            .as_ref()
            .map_or(EndReason::Stop, |ending| ending.why);
        self.speaker.break_off();
        self.take_step(why, EndingStep::Kill);
    }

    /// Waits until it is over, within the job's limits, ends all processes that it left, and judges the run.
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
        // After KILL only a process in the kernel remains; avoid a tight loop.
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

    /// Returns true if the limits have to be checked, which also applies to an endless stream of lines. A tenth of a
    /// second is soon enough: no program fills a disk in that time.
    fn is_due(&mut self) -> bool {
        let now = clock::instant();
        let is_due = now >= self.next_check;
        if is_due {
            self.next_check = now + Duration::from_millis(100);
        }
        is_due
    }

    /// Begins an ending if a limit is exceeded, and continues an ending when its next step is due.
    fn keep_limits(&mut self) {
        if self.ending.is_some() && self.is_log_full() {
            // The rest of the log need not be read.
            self.skip();
        }
        if let Some(ending) = &self.ending {
            if clock::instant() >= ending.next_at {
                self.take_step(ending.why, ending.step.next());
            }
        } else if let Some(why) = self.exceeded() {
            if why == EndReason::Idle && self.speaker.wake(&mut self.pending) {
                // The agent was prodded, so its silence counts from now.
                self.last_sign = clock::instant();
            } else {
                self.end(why);
            }
        }
    }

    /// Returns the exceeded limit. Looks at the process tree now and then.
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

    /// Returns the bytes that it has printed.
    fn length(&self) -> u64 {
        self.outputs
            .iter()
            .map(|(_, follower)| follower.length())
            .sum()
    }

    /// Returns the time limits, each with its start.
    fn times(&self) -> Vec<(EndReason, Instant, Duration)> {
        let patience = if self.speaker.runs_tool() {
            TOOL_PATIENCE
        } else {
            Duration::ZERO
        };
        let lingers = self
            .speaker
            .answered_at()
            .map(|(answered_at, linger)| (EndReason::Lingering, answered_at, linger));
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

    /// Returns how long to sleep until the limits or the log must be checked.
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
        // Rounded up, so that a limit is really exceeded when it is checked.
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
