//! A live session, for each protocol alike: its events, and the messages, prods and budgets that are sent to it.
//!
//! A [`Link`] speaks one protocol: [`super::claude_link`] or [`super::acp_link`].

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::event::{AgentEvent, Prodding};
use super::job::Job;
use super::outcome::{Denial, EndReason, Outcome, SessionEnd, Usage};
use super::permission::{self, Leave};
use super::question;
use super::reading::Reading;
use super::session::{Output, Session, Speaker, Stream};
use super::signal::Signal;
use super::{STDERR_LOG, THREAD_LOG};
use tavern_sys::clock;
use tavern_sys::process::{LogLine, ProgramExit, Spec};

/// The shortest interval between questions to the program for its usage.
const USAGE_INTERVAL: Duration = Duration::from_secs(2);

/// The protocol of a program that takes messages over its standard input.
pub(super) trait Link: Send {
    /// Begins or resumes the session, and sends the prompt as soon as that is possible.
    fn open(&mut self, wire: &Wire);

    /// Returns the events of a line, with figures of this run alone. Answers requests that need no decision.
    fn read(&mut self, line: &str, wire: &Wire) -> Vec<AgentEvent>;

    /// Sends a message. Returns false if the program reads no more.
    fn say(&mut self, text: &str, urgency: Urgency, wire: &Wire) -> bool;

    /// Asks for the usage so far, if the program reports it only on request.
    fn ask_usage(&mut self, _wire: &Wire) {}

    /// Returns the decision of the role's rules on a call; `None`: the program applies them itself, or they leave it
    /// open.
    fn ruled(&self, _tool: &str, _input: &Value) -> Option<Leave> {
        None
    }

    /// Answers the request for permission with this ID, for a call with this input.
    fn reply(&mut self, request: &str, input: &Value, is: Leave, wire: &Wire);

    /// Answers the question with this ID, whether a rule of the board forbids a call.
    fn verdict(&mut self, _request: &str, _tool: &str, _input: &Value, _wire: &Wire) {}

    /// Asks the program to interrupt its work.
    fn interrupt(&mut self, wire: &Wire);

    /// Returns true if its model has been asked, and has not begun to answer: only the provider can be silent then.
    fn awaits_model(&self) -> bool {
        false
    }

    /// Returns how long the program may take to end after its answer.
    fn linger(&self) -> Duration;

    /// Returns the session to resume later, of a run that was read as `reading`.
    fn session(&self, reading: &Reading) -> Option<String>;

    /// Returns the usage from the program's own record, for a run that was cut off.
    fn recorded(&self) -> Usage {
        Usage::default()
    }
}

/// When a message is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Where the program reads one next.
    Next,
    /// Now: the current work is interrupted.
    Now,
}

/// The lines to a program's standard input.
pub(super) struct Wire {
    /// `None` once it is closed.
    input: Option<Sender<String>>,
}

impl Wire {
    /// Writes one line. Returns false if the program reads no more.
    pub(super) fn send(&self, line: &Value) -> bool {
        self.input
            .as_ref()
            .is_some_and(|input| input.send(format!("{line}\n")).is_ok())
    }

    pub(super) fn is_open(&self) -> bool {
        self.input.is_some()
    }

    /// Loses nothing: messages sent before are still read and answered.
    fn close(&mut self) {
        self.input = None;
    }
}

/// A session of a program that gets messages over its standard input.
struct Conversation {
    job: Job,
    wire: Wire,
    link: Box<dyn Link>,
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
    /// Whether it waited for its model when it was broken off.
    was_unanswered: bool,
    /// Whether its turn has ended, and it was not told yet how to go on.
    has_ended_turn: bool,
    /// Whether a budget that it shares is used up, so that nothing more is sent.
    is_spent: bool,
    /// When it last ended a turn; `None` while it is to go on.
    answered_at: Option<Instant>,
    asked_at: Instant,
    /// The last line that it wrote to standard error.
    last_error: String,
}

/// Starts `spec`, a program that `link` speaks with, on `job`.
pub(super) fn start(mut spec: Spec, job: &Job, mut link: Box<dyn Link>) -> io::Result<Session> {
    // A socket, since the agent's children could reopen a pipe under `/proc` and speak to the program in our name.
    let (input, theirs) = UnixStream::pair()?;
    spec.stdin = OwnedFd::from(theirs).into();
    let outputs = [THREAD_LOG, STDERR_LOG].map(Output::obeyed);
    Session::start(spec, job, outputs, |_| {
        let wire = Wire {
            input: Some(write_lines(input)?),
        };
        link.open(&wire);
        Ok(Box::new(Conversation {
            job: job.clone(),
            wire,
            link,
            reading: Reading::of(job.nonce.clone()),
            has_begun: false,
            unread: VecDeque::new(),
            prodded: 0,
            refutations: Vec::new(),
            is_broken_off: false,
            is_ending: false,
            was_unanswered: false,
            has_ended_turn: false,
            is_spent: false,
            answered_at: None,
            asked_at: clock::instant(),
            last_error: String::new(),
        }))
    })
}

impl Conversation {
    /// Reacts to `event`. Returns a reason to end the program, if there is one.
    fn react(&mut self, event: &AgentEvent) -> Option<EndReason> {
        match event {
            AgentEvent::Started { .. } => {
                self.answered_at = None;
                self.is_broken_off = false;
                self.has_ended_turn = false;
            }
            AgentEvent::Turn(_) => self.has_ended_turn = true,
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
                self.link.verdict(request, tool, input, &self.wire);
            }
            _ => {}
        }
        None
    }

    /// Grants permission for a call, or refuses it. A person can later allow a call that no rule forbids.
    fn answer(&mut self, request: &str, tool: &str, input: &Value) {
        let call = permission::called(tool, input);
        let is = match (self.link.ruled(tool, input), &call) {
            (Some(is), _) => is,
            (None, Some(call)) if self.job.permits.contains(call) => Leave::Given,
            _ => Leave::Refused,
        };
        match (is, call) {
            (Leave::Forbidden, _) => self.reading.denials.push(Denial {
                tool: tool.to_owned(),
                input: input.clone(),
            }),
            // A question to a person is no call to allow.
            (Leave::Refused, Some(call))
                if tool != question::TOOL && !self.reading.refused.contains(&call) =>
            {
                self.reading.refused.push(call);
            }
            _ => {}
        }
        self.link.reply(request, input, is, &self.wire);
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
            let may_go_on = has_answered && self.may_go_on();
            let is_undecided = may_go_on && signal == Signal::None;
            // The agent waits for its background tasks, also where it takes them for done.
            let waits =
                self.reading.has_open_agent() || is_undecided && self.reading.has_open_task();
            if may_go_on && waits || is_undecided && self.prod(Prodding::Undecided, events) {
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
        self.wire.close();
    }

    /// Prods the agent to go on. Returns false if the prods are used up or it takes no messages.
    fn prod(&mut self, why: Prodding, events: &mut VecDeque<AgentEvent>) -> bool {
        let prods = &self.job.prods;
        let message = match why {
            Prodding::Undecided => &prods.undecided,
            Prodding::Silent => &prods.silent,
            Prodding::Refuted => self.refutations.last().map_or("", String::as_str),
        };
        // Otherwise the message is read only after the current work.
        let urgency = if why == Prodding::Silent {
            Urgency::Now
        } else {
            Urgency::Next
        };
        if self.prodded >= prods.most
            || self.is_ending
            || self.is_spent
            || !self.link.say(message, urgency, &self.wire)
        {
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

    /// Returns true if the run is within its limits of turns and usage, and within the budgets that it shares.
    fn may_go_on(&self) -> bool {
        // The program counts turns from 0 again after each message.
        let has_turns = self
            .job
            .limits
            .turns
            .is_none_or(|most| self.reading.turns < most);
        has_turns && !self.is_spent && self.overspent(&self.reading.usage).is_none()
    }

    fn ask_usage(&mut self) {
        if self.asked_at.elapsed() >= USAGE_INTERVAL {
            self.asked_at = clock::instant();
            self.link.ask_usage(&self.wire);
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
        for mut event in self.link.read(&line.text, &self.wire) {
            event.answer_in(self.job.form);
            self.reading.note(&event);
            why = why.or(self.react(&event));
            if self.is_news(&event) {
                events.push_back(event);
            }
        }
        why
    }

    fn go_on(&mut self, events: &mut VecDeque<AgentEvent>) {
        if std::mem::take(&mut self.has_ended_turn) {
            self.end_turn(events);
        }
    }

    fn stop_prompts(&mut self) -> bool {
        self.is_spent = true;
        let has_answered = self.reading.has_answered() && self.unread.is_empty();
        has_answered
            && (self.reading.signal() != Signal::None || self.prodded >= self.job.prods.most)
    }

    fn say(&mut self, text: &str) -> bool {
        let is_said =
            !self.is_ending && !self.is_spent && self.link.say(text, Urgency::Next, &self.wire);
        if is_said {
            self.unread.push_back(text.to_owned());
        }
        is_said
    }

    fn wake(&mut self, events: &mut VecDeque<AgentEvent>) -> bool {
        // A message does not wake a provider.
        !self.link.awaits_model() && self.prod(Prodding::Silent, events)
    }

    fn accept(&mut self) {
        self.answered_at = Some(clock::instant());
        // Messages sent meanwhile are still answered.
        if self.unread.is_empty() {
            self.wire.close();
        }
    }

    fn refute(&mut self, text: &str, events: &mut VecDeque<AgentEvent>) -> bool {
        self.refutations.push(text.to_owned());
        self.prod(Prodding::Refuted, events)
    }

    /// An interrupt is read only after the session has begun and before the input is closed.
    fn break_off(&mut self) -> bool {
        self.was_unanswered |= !self.is_ending && self.link.awaits_model();
        self.is_ending = true;
        let is_listening = self.reading.session.is_some() && self.wire.is_open();
        if is_listening {
            self.link.interrupt(&self.wire);
        }
        is_listening
    }

    fn runs_tool(&self) -> bool {
        self.reading.has_open_tool()
    }

    fn answered_at(&self) -> Option<(Instant, Duration)> {
        Some((self.answered_at?, self.link.linger()))
    }

    fn conclude(&mut self, exit: ProgramExit, ended_by_us: Option<EndReason>) -> SessionEnd {
        let mut end = self.reading.judge(exit, ended_by_us, &self.last_error);
        if self.reading.is_turn_open || self.reading.turn.is_none() {
            let recorded = self.link.recorded();
            if recorded.total() > end.usage.total() {
                end.usage = Usage {
                    usd: end.usage.usd,
                    ..recorded
                };
            }
        }
        if self.was_unanswered && end.outcome == Outcome::Timeout {
            end.outcome = Outcome::Overloaded;
            end.reason += ": its model did not answer";
        }
        let session = self.link.session(&self.reading);
        SessionEnd {
            session: session.filter(|_| !self.reading.is_unknown()),
            ..end
        }
    }
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
