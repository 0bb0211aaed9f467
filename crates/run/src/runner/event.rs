//! Events observed of a running agent, for every program alike. Draws no conclusions.

use serde_json::Value;

use super::form::Form;
use super::outcome::{Denial, Usage};

/// One event in an agent's stream.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// A turn begins. The first one is the start of the session; later ones are not new sessions.
    Started {
        session: String,
        /// The program's name for it, with its variant; `None` if it reports none.
        model: Option<String>,
    },
    /// Text of the agent.
    Text {
        text: String,
        nesting: Nesting,
    },
    /// The agent thinks; its thoughts are not kept.
    Thinking,
    ToolCall {
        id: String,
        name: String,
        input: Value,
        nesting: Nesting,
    },
    ToolResult {
        id: String,
        ok: bool,
        text: String,
    },
    /// A command or a sub-agent begins in the background, and may outlast the turn.
    TaskStarted {
        id: String,
        by: Background,
    },
    /// The task has ended; the agent is notified in a turn that the program begins by itself.
    TaskEnded {
        id: String,
    },
    /// The agent has received this message. In a recording the first one is its prompt; a session leaves that out.
    Delivered {
        text: String,
    },
    /// The agent needs permission for this call, and waits for it.
    LeaveAsked {
        request: String,
        tool: String,
        input: Value,
    },
    /// The agent is about to make this call, and its program asks whether a rule forbids it.
    CallProposed {
        request: String,
        tool: String,
        input: Value,
    },
    /// The agent claims to be done. Its session stays open until the supervisor calls [`super::Session::accept`] or
    /// [`super::Session::refute`].
    Answered {
        /// Its last message.
        text: String,
    },
    /// The agent was prodded for the `number`th time of at most `most`.
    Prodded {
        why: Prodding,
        number: u32,
        most: u32,
    },
    /// The provider refused or failed, and the program retries by itself. `status` is HTTP's; `None` without an answer.
    Retry {
        status: Option<u16>,
        error: String,
    },
    /// The provider's final failure, as the program (not the model) reports it.
    Failure {
        error: String,
        text: String,
    },
    /// The provider's limits. `resets_at` is in seconds since 1970.
    RateLimit {
        status: String,
        resets_at: Option<i64>,
        windows: Vec<RateWindow>,
    },
    /// Usage so far of the whole process.
    Spent {
        usage: Usage,
    },
    /// A turn is over.
    Turn(Box<TurnResult>),
}

impl AgentEvent {
    /// Returns the usage so far of the whole process, if the event has it. A resumed session that ends before its first
    /// request reports none.
    pub fn usage(&self) -> Option<&Usage> {
        match self {
            AgentEvent::Spent { usage } => Some(usage),
            AgentEvent::Turn(turn) => Some(&turn.usage).filter(|usage| usage.is_known()),
            _ => None,
        }
    }

    /// Replaces the turn's result by the words of an answer that was given in `form`.
    pub(super) fn answer_in(&mut self, form: Option<Form>) {
        if let (AgentEvent::Turn(turn), Some(form)) = (self, form)
            && let Some(answer) = &turn.structured
        {
            turn.result = Some(form.words(answer));
        }
    }
}

/// The used share of a provider's allowance for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateWindow {
    /// From 0 to 1.
    pub used: f64,
    /// In seconds since 1970.
    pub resets_at: i64,
}

/// What runs in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Work of its own. Until it ends, the agent's work is not done.
    SubAgent,
    /// It may be a server, which the agent's end ends.
    Command,
}

/// Why an agent is prodded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prodding {
    /// It ended its turn without stating whether it is done or waits for a person.
    Undecided,
    /// It showed no sign of life.
    Silent,
    /// It claims to be done, and is not.
    Refuted,
}

/// The origin of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// The agent itself.
    Main,
    /// A sub-agent that the program started inside the session.
    Inner,
}

/// How a turn ended: the `result` event of the Claude CLI.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnResult {
    pub subtype: String,
    /// Decisive: `subtype` is `success` for failures of the provider, too.
    pub is_error: bool,
    /// HTTP status of the provider's final failure.
    pub api_status: Option<u16>,
    pub terminal_reason: Option<String>,
    pub stop_reason: Option<String>,
    /// The final text, or the error's.
    pub result: Option<String>,
    /// The answer in the requested form.
    pub structured: Option<Value>,
    pub errors: Vec<String>,
    pub denials: Vec<Denial>,
    pub turns: u32,
    /// Cumulative for the process, sub-agents included.
    pub usage: Usage,
}
