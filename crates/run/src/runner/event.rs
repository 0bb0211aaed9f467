//! What is seen of a running agent, whatever program it is. It draws no conclusions.

use serde_json::Value;

use super::form::Form;
use super::outcome::{Denial, Usage};

/// One thing that happened in an agent's stream.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// A turn begins. The first one is the start of the session; later ones are not new sessions.
    Started {
        session: String,
        /// As the program names it, with its variant; `None` where it doesn't say.
        model: Option<String>,
    },
    /// The agent says something.
    Text {
        text: String,
        nesting: Nesting,
    },
    /// The agent thinks; what it thinks is not kept.
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
    /// A command or a sub-agent begins in the background, and may run on when the turn is over.
    TaskStarted {
        id: String,
    },
    /// It has ended; the agent is told so, in a turn that the program begins by itself.
    TaskEnded {
        id: String,
    },
    /// The agent has been given this message. In a recording the first one is its prompt; a session leaves that out.
    Delivered {
        text: String,
    },
    /// The agent may not do this without leave, and waits for it.
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
    /// The agent says that it is done, and its session is held open until its supervisor accepts or refutes that:
    /// [`super::Session::accept`], [`super::Session::refute`].
    Answered {
        /// Its last words.
        text: String,
    },
    /// The agent ended its turn without a signal, or with one that was refuted, or was silent for too long, and was told to
    /// go on: the `number`th time of at most `most`.
    Prodded {
        why: Prodding,
        number: u32,
        most: u32,
    },
    /// The provider refused or failed, and the program tries again by itself. `status` is HTTP's, `None` where there
    /// was no answer.
    Retry {
        status: Option<u16>,
        error: String,
    },
    /// The provider's final failure, as the program (not the model) reports it.
    Failure {
        error: String,
        text: String,
    },
    /// What the provider says of its limits. `resets_at` is in seconds since 1970.
    RateLimit {
        status: String,
        resets_at: Option<i64>,
        windows: Vec<RateWindow>,
    },
    /// Used up so far, by the whole process.
    Spent {
        usage: Usage,
    },
    /// A turn is over.
    Turn(Box<TurnResult>),
}

impl AgentEvent {
    /// Takes an answer that was given in `form` in its words.
    pub(super) fn answer_in(&mut self, form: Option<Form>) {
        if let (AgentEvent::Turn(turn), Some(form)) = (self, form)
            && let Some(answer) = &turn.structured
        {
            turn.result = Some(form.words(answer));
        }
    }
}

/// How much is used of what the provider allows in some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateWindow {
    /// From 0 to 1.
    pub used: f64,
    /// In seconds since 1970.
    pub resets_at: i64,
}

/// Why an agent is prodded on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prodding {
    /// It ended its turn without saying whether it is done or waits for a person.
    Undecided,
    /// It gave no sign of life.
    Silent,
    /// It says that it is done, and is not.
    Refuted,
}

/// Whose event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// The agent's own.
    Main,
    /// That of a sub-agent which the program started inside the session.
    Inner,
}

/// How a turn ended: the `result` event of the Claude CLI.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnResult {
    pub subtype: String,
    /// The truth: `subtype` says `success` for failures of the provider, too.
    pub is_error: bool,
    /// HTTP status of the provider's final failure.
    pub api_status: Option<u16>,
    pub terminal_reason: Option<String>,
    pub stop_reason: Option<String>,
    /// The final text, or the error's.
    pub result: Option<String>,
    /// The answer in the form that was asked for.
    pub structured: Option<Value>,
    pub errors: Vec<String>,
    pub denials: Vec<Denial>,
    pub turns: u32,
    /// Cumulative for the process, sub-agents included.
    pub usage: Usage,
}
