//! The live mode of the Claude CLI: its events, and the messages, prods and budgets that are sent to it.

use std::collections::VecDeque;
use std::env::temp_dir;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::event::{AgentEvent, Prodding};
use super::forbidden::{TOOLS, breaches, forbids, may_forbid};
use super::job::{Job, Opening};
use super::outcome::{EndReason, SessionEnd, Usage};
use super::permission::{self, Leave};
use super::question;
use super::reading::Reading;
use super::session::{Output, Session, Speaker, Stream};
use super::signal::Signal;
use super::stream;
use super::transcript::Transcript;
use super::{STDERR_LOG, THREAD_LOG};
use tavern_sys::clock;
use tavern_sys::process::{LogLine, ProgramExit, Spec};

/// The shortest interval between questions to the CLI for its usage.
const USAGE_INTERVAL: Duration = Duration::from_secs(2);

/// A Claude CLI that gets messages over its standard input.
struct Conversation {
    job: Job,
    /// Lines for its standard input; `None` once that is closed.
    input: Option<Sender<String>>,
    reading: Reading,
    /// Whether it has received its prompt, which does not count as a message.
    has_begun: bool,
    /// Messages that were sent and not yet read, in order.
    unread: VecDeque<String>,
    /// How often it was prodded.
    prodded: u32,
    /// The reasons it was given for refuted answers.
    refutations: Vec<String>,
    /// Whether it was prodded out of a silence: the turn that this interrupts is not its last.
    is_broken_off: bool,
    is_ending: bool,
    /// When it last ended a turn; `None` while it is to go on.
    answered_at: Option<Instant>,
    asked_at: Instant,
    requests: u32,
    /// The session's usage before this run; `None` until the CLI has reported it. Figures of CLI 2.1.330 and later
    /// include it.
    before: Option<Usage>,
    transcript: Transcript,
    /// The last line that it wrote to standard error.
    last_error: String,
}

/// Starts `spec`, a Claude CLI, and sends it the prompt of `job`.
pub(super) fn start(mut spec: Spec, job: &Job) -> io::Result<Session> {
    // A socket, since the agent's children could reopen a pipe under `/proc` and speak to the CLI in our name.
    let (input, theirs) = UnixStream::pair()?;
    spec.stdin = OwnedFd::from(theirs).into();
    let transcript = Transcript::of(job);
    let outputs = [THREAD_LOG, STDERR_LOG].map(Output::obeyed);
    Session::start(spec, job, outputs, |_| {
        let mut conversation = Conversation {
            job: job.clone(),
            input: Some(write_lines(input)?),
            reading: Reading::default(),
            has_begun: false,
            unread: VecDeque::new(),
            prodded: 0,
            refutations: Vec::new(),
            is_broken_off: false,
            is_ending: false,
            answered_at: None,
            asked_at: clock::instant(),
            requests: 0,
            before: (job.opening == Opening::New).then(Usage::default),
            transcript,
            last_error: String::new(),
        };
        if may_forbid(&job.forbids) {
            // In seconds; after that a call is made without a decision.
            let hook = json!([{"matcher": TOOLS, "hookCallbackIds": ["rules"], "timeout": 60}]);
            conversation
                .request_with(&json!({"subtype": "initialize", "hooks": {permission::HOOK: hook}}));
        }
        if conversation.before.is_none() {
            conversation.request("get_usage");
        }
        conversation.send(&user_message(&job.prompt));
        Ok(Box::new(conversation))
    })
}

impl Conversation {
    /// Writes one line to it. Returns false if it reads no more.
    fn send(&self, line: &Value) -> bool {
        self.input
            .as_ref()
            .is_some_and(|input| input.send(format!("{line}\n")).is_ok())
    }

    fn request(&mut self, subtype: &str) {
        self.request_with(&json!({"subtype": subtype}));
    }

    fn request_with(&mut self, request: &Value) {
        self.requests += 1;
        let id = format!("tavern-{}", self.requests);
        self.send(&json!({"type": "control_request", "request_id": id, "request": request}));
    }

    /// Reacts to `event`. Returns a reason to end the program, if there is one.
    fn react(
        &mut self,
        event: &AgentEvent,
        events: &mut VecDeque<AgentEvent>,
    ) -> Option<EndReason> {
        match event {
            AgentEvent::Started { .. } => {
                self.answered_at = None;
                self.is_broken_off = false;
            }
            AgentEvent::Turn(_) => self.end_turn(events),
            AgentEvent::Text { .. }
            | AgentEvent::ToolCall { .. }
            | AgentEvent::ToolResult { .. } => self.ask_usage(),
            AgentEvent::Spent { usage } => return self.overspent(usage),
            AgentEvent::LeaveAsked {
                request,
                tool,
                input,
            } => self.answer(request, tool, input),
            AgentEvent::CallProposed {
                request,
                tool,
                input,
            } => {
                let places = [&*self.job.worktree, &*temp_dir()];
                let breach = forbids(breaches(&self.job.forbids, places, tool, input));
                self.send(&permission::verdict(request, breach.as_ref()));
            }
            _ => {}
        }
        None
    }

    /// Grants permission for a call, or refuses it. A person can allow a refused call later.
    fn answer(&mut self, request: &str, tool: &str, input: &Value) {
        let call = permission::called(tool, input);
        let is = match &call {
            Some(call) if self.job.permits.contains(call) => Leave::Given,
            _ => Leave::Refused,
        };
        // A question to a person is no call to allow.
        let refused = call.filter(|call| {
            is == Leave::Refused && tool != question::TOOL && !self.reading.refused.contains(call)
        });
        self.reading.refused.extend(refused);
        self.send(&permission::reply(request, input, is));
    }

    /// Handles the end of a turn: goes on with unread messages, prods an agent without a signal, has its answer
    /// verified, or lets it end.
    fn end_turn(&mut self, events: &mut VecDeque<AgentEvent>) {
        self.answered_at = Some(clock::instant());
        let has_answered = self.reading.has_answered();
        if !self.is_ending {
            if self.is_broken_off || (has_answered && !self.unread.is_empty()) {
                // A turn of its own follows. If not, the time for lingering is soon over.
                return;
            }
            let signal = self.reading.signal();
            let is_undecided = has_answered && self.may_go_on() && signal == Signal::None;
            // The agent waits for its background tasks.
            if is_undecided
                && (self.reading.has_open_task() || self.prod(Prodding::Undecided, events))
            {
                self.answered_at = None;
                return;
            }
            let may_be_refuted = self.job.is_proven_live && self.prodded < self.job.prods.most;
            if has_answered && may_be_refuted && self.may_go_on() && signal == Signal::Done {
                self.answered_at = None;
                events.push_back(AgentEvent::Answered {
                    text: self.reading.result().to_owned(),
                });
                return;
            }
        }
        // Closing the input loses nothing: messages sent before are still read and answered.
        self.input = None;
    }

    /// Prods the agent to go on. Returns false if the prods are used up or it takes no messages.
    fn prod(&mut self, why: Prodding, events: &mut VecDeque<AgentEvent>) -> bool {
        let prods = &self.job.prods;
        let mut message = match why {
            Prodding::Undecided => user_message(&prods.undecided),
            Prodding::Silent => user_message(&prods.silent),
            Prodding::Refuted => user_message(self.refutations.last().map_or("", String::as_str)),
        };
        if why == Prodding::Silent {
            // Interrupts the agent; otherwise the message is read only after the current work.
            message["priority"] = json!("now");
        }
        if self.prodded >= prods.most || self.is_ending || !self.send(&message) {
            return false;
        }
        self.prodded += 1;
        self.is_broken_off |= why == Prodding::Silent;
        events.push_back(AgentEvent::Prodded {
            why,
            number: self.prodded,
            most: self.job.prods.most,
        });
        true
    }

    /// Returns true if the run is within its limits of turns and usage.
    fn may_go_on(&self) -> bool {
        // The program counts turns from 0 again after each message.
        let has_turns = self
            .job
            .limits
            .turns
            .is_none_or(|most| self.reading.turns < most);
        has_turns && self.overspent(&self.reading.usage).is_none()
    }

    /// Reduces the event's figures to those of this run. `None` if it reports the usage before the run.
    fn of_this_run(&mut self, mut event: AgentEvent) -> Option<AgentEvent> {
        match (&mut event, &self.before) {
            (AgentEvent::Spent { usage }, None) => {
                self.before = Some(usage.clone());
                return None;
            }
            (AgentEvent::Spent { usage }, Some(before)) => *usage = usage.since(before),
            (AgentEvent::Turn(turn), Some(before)) => turn.usage = turn.usage.since(before),
            _ => {}
        }
        Some(event)
    }

    fn ask_usage(&mut self) {
        if self.asked_at.elapsed() >= USAGE_INTERVAL {
            self.asked_at = clock::instant();
            self.request("get_usage");
        }
    }

    fn overspent(&self, usage: &Usage) -> Option<EndReason> {
        if self.job.limits.usd.is_some_and(|most| usage.usd >= most) {
            Some(EndReason::Usd)
        } else if self
            .job
            .limits
            .tokens
            .is_some_and(|most| usage.fresh() >= most)
        {
            Some(EndReason::Tokens)
        } else {
            None
        }
    }

    /// Takes a delivered message off the unread ones. Returns false for the prompt and prods, which are no messages.
    fn is_news(&mut self, event: &AgentEvent) -> bool {
        let AgentEvent::Delivered { text } = event else {
            return true;
        };
        if !self.has_begun && self.job.prompt == *text {
            self.has_begun = true;
            return false;
        }
        let prods = [&self.job.prods.undecided, &self.job.prods.silent];
        if self.prodded > 0
            && prods
                .into_iter()
                .chain(&self.refutations)
                .any(|prod| prod == text)
        {
            return false;
        }
        if let Some(index) = self.unread.iter().position(|unread| unread == text) {
            self.unread.remove(index);
        }
        true
    }
}

impl Speaker for Conversation {
    fn read(
        &mut self,
        stream: Stream,
        line: LogLine,
        events: &mut VecDeque<AgentEvent>,
    ) -> Option<EndReason> {
        if stream == Stream::Error && !line.text.trim().is_empty() {
            self.last_error = line.text;
            return None;
        }
        if stream != Stream::Output || line.cut > 0 {
            return None;
        }
        let mut why = None;
        for event in stream::read(&line.text) {
            let Some(mut event) = self.of_this_run(event) else {
                continue;
            };
            event.answer_in(self.job.form);
            self.reading.note(&event);
            why = why.or(self.react(&event, events));
            if self.is_news(&event) {
                events.push_back(event);
            }
        }
        why
    }

    fn say(&mut self, text: &str) -> bool {
        let is_said = !self.is_ending && self.send(&user_message(text));
        if is_said {
            self.unread.push_back(text.to_owned());
        }
        is_said
    }

    fn wake(&mut self, events: &mut VecDeque<AgentEvent>) -> bool {
        self.prod(Prodding::Silent, events)
    }

    fn accept(&mut self) {
        self.answered_at = Some(clock::instant());
        // Messages sent meanwhile are still answered.
        if self.unread.is_empty() {
            self.input = None;
        }
    }

    fn refute(&mut self, text: &str, events: &mut VecDeque<AgentEvent>) -> bool {
        self.refutations.push(text.to_owned());
        self.prod(Prodding::Refuted, events)
    }

    /// An interrupt is read only after the session has begun and before the input is closed.
    fn break_off(&mut self) -> bool {
        self.is_ending = true;
        let is_listening = self.reading.session.is_some() && self.input.is_some();
        if is_listening {
            self.request("interrupt");
        }
        is_listening
    }

    fn runs_tool(&self) -> bool {
        self.reading.has_open_tool()
    }

    fn answered_at(&self) -> Option<Instant> {
        self.answered_at
    }

    fn conclude(&mut self, exit: ProgramExit, ended_by_us: Option<EndReason>) -> SessionEnd {
        let mut end = self.reading.judge(exit, ended_by_us, &self.last_error);
        if self.reading.is_turn_open || self.reading.turn.is_none() {
            let recorded = self.transcript.usage();
            if recorded.total() > end.usage.total() {
                end.usage = Usage {
                    usd: end.usage.usd,
                    ..recorded
                };
            }
        }
        let is_resumable = !self.reading.is_unknown() && self.transcript.is_there();
        SessionEnd {
            session: is_resumable.then(|| self.job.session.clone()),
            ..end
        }
    }
}

fn user_message(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}})
}

/// Writes lines sent to the returned sender to `socket`, in order, and closes it when the sender is dropped. Uses a
/// thread, since a program that doesn't read must not block its supervisor.
fn write_lines(mut socket: UnixStream) -> io::Result<Sender<String>> {
    let (sender, receiver) = mpsc::channel::<String>();
    std::thread::Builder::new().spawn(move || {
        for line in receiver {
            if socket
                .write_all(line.as_bytes())
                .and_then(|()| socket.flush())
                .is_err()
            {
                return;
            }
        }
    })?;
    Ok(sender)
}
