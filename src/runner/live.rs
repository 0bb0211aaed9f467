//! A running Claude CLI in its live mode: reads its stream, hands it messages, keeps its limits, ends it step by step.
#![expect(clippy::disallowed_methods, reason = "a runner writes into its run's folder")]

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use rustix::process::Signal as UnixSignal;
use serde_json::{Value, json};

use crate::process::start::Output;
use crate::process::{Bell, Line, Spec};

use super::event::{AgentEvent, Prodding};
use super::job::{Job, Limits, Prods};
use super::outcome::{EndReason, Ended, Outcome, Usage};
use super::signal::Signal;
use super::stream;
use super::transcript::Transcript;
use super::verdict::Reading;
use super::watch::{self, ProcessWatch, Tool, Watched};
use super::{Next, NotHeard, Session, THREAD_LOG};
use crate::clock;

/// What the CLI writes to standard error, in the run's folder.
pub const STDERR_LOG: &str = "stderr.log";

/// How often the CLI is asked at most what it has spent.
const USAGE_INTERVAL: Duration = Duration::from_secs(2);
/// How long it may take to end after its answer: it waits 5 s for its background shells.
const LINGER: Duration = Duration::from_secs(20);

/// A running Claude CLI, spoken to over its standard input and read from its log.
pub struct ClaudeSession {
    watch: ProcessWatch,
    /// Lines for its standard input; `None` once that is closed.
    input: Option<Sender<String>>,
    reading: Reading,
    pending: VecDeque<AgentEvent>,
    prompt: Option<String>,
    /// Messages that were sent and not yet read, in order.
    unread: VecDeque<String>,
    limits: Limits,
    grace: Duration,
    prods: Prods,
    /// How often it was prodded.
    prodded: u32,
    /// It was prodded out of a silence: the turn that this breaks off is not its last.
    is_broken_off: bool,
    ending: Option<GradualEnding>,
    /// When it gave the answer after which its input was closed.
    answered_at: Option<Instant>,
    asked_at: Instant,
    requests: u32,
    transcript: Transcript,
    stderr: PathBuf,
    stderr_before: u64,
    session: String,
    is_over: bool,
}

/// An ending under way: the steps of the ladder are taken one after the other, `grace` apart.
struct GradualEnding {
    why: EndReason,
    step: EndingStep,
    next_at: Instant,
}

/// The CLI starts each shell in a session of its own; only an interrupt makes it end them itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndingStep {
    /// The control request `interrupt`: ends the running tool or call, and yields a result.
    Interrupt,
    /// The signal that does the same.
    Sigint,
    /// TERM to the whole tree.
    Term,
    /// KILL to the whole tree.
    Kill,
}

impl ClaudeSession {
    pub(super) fn start(spec: Spec, job: &Job, transcript: Transcript) -> std::io::Result<ClaudeSession> {
        let log = job.run_dir.join(THREAD_LOG);
        let stderr = job.run_dir.join(STDERR_LOG);
        let stderr_file = OpenOptions::new().create(true).append(true).open(&stderr)?;
        let stderr_before = stderr_file.metadata()?.len();
        let mut watch = ProcessWatch::start(spec, &log, &job.limits, |mut spec, log| {
            spec.stdout = Output::File(log);
            spec.stderr = Output::File(stderr_file);
            Ok(spec)
        })?;
        let input = watch.child.take_stdin().map(write_lines);
        let session = ClaudeSession {
            watch,
            input,
            reading: Reading::default(),
            pending: VecDeque::new(),
            prompt: Some(job.prompt.clone()),
            unread: VecDeque::new(),
            limits: job.limits.clone(),
            grace: job.grace,
            prods: job.prods.clone(),
            prodded: 0,
            is_broken_off: false,
            ending: None,
            answered_at: None,
            asked_at: clock::instant(),
            requests: 0,
            transcript,
            stderr,
            stderr_before,
            session: job.session.clone(),
            is_over: false,
        };
        session.send(&user_message(&job.prompt));
        Ok(session)
    }

    /// Write one line to it. False if it reads no more.
    fn send(&self, line: &Value) -> bool {
        self.input.as_ref().is_some_and(|input| input.send(format!("{line}\n")).is_ok())
    }

    fn request(&mut self, subtype: &str) {
        self.requests += 1;
        let id = format!("tavern-{}", self.requests);
        self.send(&json!({"type": "control_request", "request_id": id, "request": {"subtype": subtype}}));
    }

    fn react(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Started { .. } => {
                self.answered_at = None;
                self.is_broken_off = false;
            }
            AgentEvent::Turn(_) => self.end_turn(),
            AgentEvent::Retry { error, .. } if error == "authentication_failed" => self.end(EndReason::Auth),
            AgentEvent::Text { .. } | AgentEvent::ToolCall { .. } | AgentEvent::ToolResult { .. } => self.ask_usage(),
            AgentEvent::Spent { usage } => self.keep_budget(usage),
            _ => {}
        }
    }

    /// Goes on with what was said meanwhile, or prods an agent that has not said what it came to, or lets it end.
    fn end_turn(&mut self) {
        self.answered_at = Some(clock::instant());
        let has_answered = self.reading.has_answered();
        if self.ending.is_none() {
            if self.is_broken_off || (has_answered && !self.unread.is_empty()) {
                // A turn of its own comes of it. If not, the time for lingering is soon over.
                return;
            }
            if has_answered && self.is_undecided() && self.prod(Prodding::Undecided) {
                self.answered_at = None;
                return;
            }
        }
        // The end of input is no end of work: what was sent before it is still read and answered.
        self.input = None;
    }

    /// Tells the agent to go on. False if it may not be told so (again), or takes no messages.
    fn prod(&mut self, why: Prodding) -> bool {
        let mut message = match why {
            Prodding::Undecided => user_message(&self.prods.undecided),
            Prodding::Silent => user_message(&self.prods.silent),
        };
        if why == Prodding::Silent {
            // Breaks off what it does; else it would be heard only when that is over.
            message["priority"] = json!("now");
        }
        if self.prodded >= self.prods.most || self.ending.is_some() || !self.send(&message) {
            return false;
        }
        self.prodded += 1;
        self.is_broken_off |= why == Prodding::Silent;
        self.pending.push_back(AgentEvent::Prodded { why, number: self.prodded, most: self.prods.most });
        true
    }

    fn is_undecided(&self) -> bool {
        // The program counts turns afresh with each thing that it is told.
        let has_turns = self.limits.turns.is_none_or(|most| self.reading.turns < most);
        has_turns && self.overspent(&self.reading.usage).is_none() && self.reading.signal() == Signal::None
    }

    fn ask_usage(&mut self) {
        if self.asked_at.elapsed() >= USAGE_INTERVAL {
            self.asked_at = clock::instant();
            self.request("get_usage");
        }
    }

    fn keep_budget(&mut self, usage: &Usage) {
        if let Some(why) = self.overspent(usage) {
            self.end(why);
        }
    }

    fn overspent(&self, usage: &Usage) -> Option<EndReason> {
        if self.limits.usd.is_some_and(|most| usage.usd >= most) {
            Some(EndReason::Usd)
        } else if self.limits.tokens.is_some_and(|most| usage.fresh() >= most) {
            Some(EndReason::Tokens)
        } else {
            None
        }
    }

    /// A delivered message is taken off the unread ones; the prompt and the prods are no messages.
    fn is_news(&mut self, event: &AgentEvent) -> bool {
        let AgentEvent::Delivered { text } = event else { return true };
        if self.prompt.as_ref() == Some(text) {
            self.prompt = None;
            return false;
        }
        if self.prodded > 0 && [&self.prods.undecided, &self.prods.silent].contains(&text) {
            return false;
        }
        if let Some(index) = self.unread.iter().position(|unread| unread == text) {
            self.unread.remove(index);
        }
        true
    }

    fn begin(&mut self, why: EndReason, step: EndingStep) {
        self.ending = Some(GradualEnding { why, step, next_at: clock::instant() + self.grace });
        self.take_step(step);
    }

    fn take_step(&mut self, step: EndingStep) {
        match step {
            EndingStep::Interrupt => self.request("interrupt"),
            EndingStep::Sigint => self.watch.child.signal(UnixSignal::INT),
            EndingStep::Term => self.watch.child.request_end(),
            EndingStep::Kill => {
                self.watch.child.end(Duration::ZERO);
            }
        }
    }

    fn tool(&self) -> Tool {
        if self.reading.has_open_tool() { Tool::Running } else { Tool::None }
    }

    /// The end of what it wrote to standard error in this run; some failures dump kilobytes.
    fn stderr_tail(&self) -> String {
        const MOST: u64 = 4096;
        let mut tail = Vec::new();
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&self.stderr)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(self.stderr_before.max(length.saturating_sub(MOST))))?;
            file.read_to_end(&mut tail)?;
            Ok(tail)
        };
        // Without it, the reason is only less well told.
        read().map(|tail| String::from_utf8_lossy(&tail).into_owned()).unwrap_or_default()
    }
}

impl Watched for ClaudeSession {
    fn watch(&mut self) -> &mut ProcessWatch {
        &mut self.watch
    }

    fn next_event(&mut self) -> Option<AgentEvent> {
        self.pending.pop_front()
    }

    fn read(&mut self, line: Line) {
        if line.cut > 0 {
            let text = line.text.chars().take(200).collect();
            self.pending.push_back(AgentEvent::Unreadable { text });
            return;
        }
        for event in stream::read(&line.text) {
            self.reading.note(&event);
            self.react(&event);
            if self.is_news(&event) {
                self.pending.push_back(event);
            }
        }
    }

    fn close(&mut self) {
        self.is_over = true;
    }

    fn keep_limits(&mut self) {
        let now = clock::instant();
        if let Some(ending) = &mut self.ending {
            if now < ending.next_at {
                return;
            }
            ending.step = ending.step.next();
            // After KILL only a process that the kernel holds is still there; it is not asked in a tight loop.
            let pause = if ending.step == EndingStep::Kill { Duration::from_secs(10) } else { self.grace };
            ending.next_at = now + pause;
            let step = ending.step;
            self.take_step(step);
        } else if self.answered_at.is_some_and(|answered_at| now.duration_since(answered_at) >= LINGER) {
            self.end(EndReason::Lingering);
        } else if let Some(why) = self.watch.exceeded(self.tool()) {
            if why == EndReason::Idle && self.prod(Prodding::Silent) {
                self.watch.forgive_silence();
            } else {
                self.end(why);
            }
        }
    }

    fn patience(&self) -> Duration {
        let now = clock::instant();
        let step = self.ending.as_ref().map(|ending| ending.next_at.saturating_duration_since(now));
        let linger = self.answered_at.map(|answered_at| LINGER.saturating_sub(now.duration_since(answered_at)));
        let next = step.or(linger).unwrap_or(Duration::MAX);
        self.watch.patience(self.tool()).min(next.saturating_add(Duration::from_millis(1)))
    }
}

impl Session for ClaudeSession {
    fn pid(&self) -> u32 {
        self.watch.child.pid()
    }

    fn bell(&self) -> Bell {
        self.watch.bell.clone()
    }

    fn next(&mut self, timeout: Duration) -> Next {
        watch::next(self, timeout)
    }

    fn say(&mut self, text: &str) -> Result<(), NotHeard> {
        if self.ending.is_some() || !self.send(&user_message(text)) {
            return Err(NotHeard::Ending);
        }
        self.unread.push_back(text.to_owned());
        Ok(())
    }

    fn end(&mut self, why: EndReason) {
        if self.ending.is_some() {
            return;
        }
        // A polite word needs somebody who listens: not before the session has begun, not after the answer, and not
        // between two tries of a call, where nothing is running that would have to be ended in order.
        let is_listening = self.reading.session.is_some() && self.input.is_some() && why != EndReason::Auth;
        let step = match why {
            _ if why.is_urgent() => EndingStep::Kill,
            _ if is_listening => EndingStep::Interrupt,
            _ => EndingStep::Term,
        };
        self.begin(why, step);
        if step == EndingStep::Kill {
            self.watch.stop_reading();
        }
    }

    fn hurry(&mut self) {
        let why = self.ending.as_ref().map_or(EndReason::Stop, |ending| ending.why);
        self.begin(why, EndingStep::Kill);
    }

    fn usage(&self) -> Usage {
        self.reading.usage.clone()
    }

    fn finish(mut self: Box<Self>) -> Ended {
        while !self.is_over {
            self.next(Duration::MAX);
        }
        let (exit, swept) = self.watch.close();
        let ended_by_us = self.ending.as_ref().map(|ending| ending.why);
        let verdict = self.reading.judge(exit, ended_by_us, &self.stderr_tail());
        let mut usage = self.reading.usage.clone();
        if self.reading.is_turn_open || self.reading.turn.is_none() {
            let recorded = self.transcript.usage();
            if recorded.total() > usage.total() {
                usage = Usage { usd: usage.usd, ..recorded };
            }
        }
        let is_resumable = verdict.is_resumable && self.transcript.is_there();
        let result = self.reading.result().to_owned();
        let signal = if verdict.outcome == Outcome::Success { self.reading.signal() } else { Signal::None };
        Ended {
            outcome: verdict.outcome,
            reason: verdict.reason,
            exit,
            ended_by_us,
            usage,
            turns: self.reading.turns,
            tool_calls: self.reading.tool_calls,
            session: is_resumable.then(|| self.session.clone()),
            result,
            signal,
            denials: self.reading.denials.clone(),
            resets_at: verdict.resets_at,
            undelivered: self.unread.iter().cloned().collect(),
            duration: self.watch.duration(),
            swept,
        }
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

fn user_message(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}})
}

/// Write what is sent to `pipe`, each in turn, until the sender is dropped; then close it. In a thread, since a program
/// that doesn't read must not block its supervisor.
fn write_lines(mut pipe: std::process::ChildStdin) -> Sender<String> {
    let (sender, receiver) = mpsc::channel::<String>();
    std::thread::spawn(move || {
        for line in receiver {
            if pipe.write_all(line.as_bytes()).and_then(|()| pipe.flush()).is_err() {
                return;
            }
        }
    });
    sender
}
