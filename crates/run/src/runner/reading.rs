//! Turns a session's events, its exit status and the ending from here into an outcome. Pure.
//!
//! The main rule: `is_error` of the last result is the truth, and exit status 0 proves nothing. Words count only in the
//! program's own report of a provider failure, never in the agent's text or its tools' output.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDateTime, Utc};

use tavern_sys::process::ProgramExit;

use super::event::{AgentEvent, Background, Nesting, TurnResult};
use super::outcome::{Denial, EndReason, Outcome, SessionEnd, Usage};
use super::permission;
use super::question;
use super::signal::Signal;

/// The content of a session, read so far.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// As the program reports it; `None` until it has begun.
    pub session: Option<String>,
    /// The last finished turn.
    pub turn: Option<TurnResult>,
    /// Whether a turn has begun that is not finished.
    pub is_turn_open: bool,
    pub turns: u32,
    pub tool_calls: u32,
    /// Successful tool calls that may have changed something.
    pub deeds: u32,
    pub denials: Vec<Denial>,
    /// Refused calls that a person can allow.
    pub refused: Vec<String>,
    pub usage: Usage,
    /// The last text of the agent itself.
    pub last_text: String,
    /// The question that the agent asked with its own tool, if it has done nothing since.
    asked: Option<String>,
    /// Running tools: names by call ID.
    open_tools: HashMap<String, String>,
    /// IDs of background tasks, which outlast the turn.
    open_tasks: HashMap<String, Background>,
    /// The provider's final failure in this turn.
    failure: Option<Failure>,
    /// The provider's last failure, if the program was still retrying when the events stopped.
    retry: Option<Failure>,
    /// Set once the provider has reported that a limit is reached; holds its end, if reported.
    rejected_until: Option<Option<i64>>,
    /// The value that a question must name, if the run has one.
    nonce: Option<String>,
}

#[derive(Clone, Debug)]
struct Failure {
    status: Option<u16>,
    error: String,
    text: String,
}

/// The Claude CLI's tool that wakes an agent later, in a turn that the program begins by itself.
const WAKER: &str = "ScheduleWakeup";

/// Tools that change nothing in the worktree.
const ONLY_LOOK: [&str; 16] = [
    "Agent",
    "Glob",
    "Grep",
    "LS",
    "NotebookRead",
    "Read",
    "ScheduleWakeup",
    "Skill",
    "StructuredOutput",
    "Task",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
];

/// Returns true if a call of the tool may change something in the worktree.
pub fn may_change(tool: &str) -> bool {
    !ONLY_LOOK.contains(&tool)
}

impl Reading {
    /// Returns the reading of a run with this nonce, before its first event.
    pub fn of(nonce: Option<String>) -> Reading {
        Reading {
            nonce,
            ..Reading::default()
        }
    }

    /// Takes `event` into account.
    pub fn note(&mut self, event: &AgentEvent) {
        if let Some(usage) = event.usage() {
            self.usage = usage.clone();
        }
        match event {
            AgentEvent::Started { session, .. } => {
                self.session = Some(session.clone());
                self.open_tasks.remove(WAKER);
                self.is_turn_open = true;
                self.failure = None;
            }
            AgentEvent::Text { text, nesting } => {
                self.retry = None;
                if *nesting == Nesting::Main {
                    self.last_text.clone_from(text);
                }
            }
            AgentEvent::Thinking => self.retry = None,
            AgentEvent::ToolCall {
                id,
                name,
                input,
                nesting,
            } => {
                self.retry = None;
                if name == question::TOOL && *nesting == Nesting::Main {
                    self.asked = question::of_tool(input);
                }
                self.tool_calls += 1;
                self.open_tools.insert(id.clone(), name.clone());
            }
            AgentEvent::ToolResult { id, ok, .. } => {
                let name = self.open_tools.remove(id);
                if *ok && name.as_deref() == Some(WAKER) {
                    self.open_tasks
                        .insert(WAKER.to_owned(), Background::Command);
                }
                if *ok && name.as_deref().is_some_and(may_change) {
                    self.deeds += 1;
                    self.asked = None;
                }
            }
            AgentEvent::Retry { status, error } => {
                self.retry = Some(Failure {
                    status: *status,
                    error: error.clone(),
                    text: String::new(),
                });
            }
            AgentEvent::Failure { error, text } => {
                self.retry = None;
                self.failure = Some(Failure {
                    status: None,
                    error: error.clone(),
                    text: text.clone(),
                });
            }
            AgentEvent::RateLimit {
                status, resets_at, ..
            } => {
                self.rejected_until = (status == "rejected").then_some(*resets_at);
            }
            AgentEvent::Turn(turn) => self.note_turn(turn),
            AgentEvent::TaskStarted { id, by } => {
                self.open_tasks.insert(id.clone(), *by);
            }
            AgentEvent::TaskEnded { id } => drop(self.open_tasks.remove(id)),
            AgentEvent::Spent { .. }
            | AgentEvent::LeaveAsked { .. }
            | AgentEvent::CallProposed { .. }
            | AgentEvent::Delivered { .. }
            | AgentEvent::Answered { .. }
            | AgentEvent::Prodded { .. } => {}
        }
    }

    /// Returns true if a tool of the agent runs, also in the background.
    pub fn has_open_tool(&self) -> bool {
        !self.open_tools.is_empty() || self.has_open_task()
    }

    /// Returns true if a sub-agent works in the background.
    pub fn has_open_agent(&self) -> bool {
        self.open_tasks
            .values()
            .any(|by| *by == Background::SubAgent)
    }

    /// Returns true if a background task runs; the agent is notified of its end.
    pub fn has_open_task(&self) -> bool {
        !self.open_tasks.is_empty()
    }

    fn note_turn(&mut self, turn: &TurnResult) {
        self.is_turn_open = false;
        self.open_tools.clear();
        self.turns += turn.turns;
        self.denials.extend(turn.denials.iter().cloned());
        self.turn = Some(turn.clone());
    }

    /// Returns true if the agent has just ended its turn well.
    pub fn has_answered(&self) -> bool {
        let is_well = |turn: &TurnResult| {
            !turn.is_error
                && matches!(turn.terminal_reason.as_deref(), None | Some("completed"))
                && !is_broken_off(turn)
        };
        !self.is_turn_open && self.turn.as_ref().is_some_and(is_well)
    }

    /// Returns the final text: the last non-empty result that is no error.
    pub fn result(&self) -> &str {
        let turn = self.turn.as_ref().filter(|turn| !turn.is_error);
        let result = turn
            .and_then(|turn| turn.result.as_deref())
            .unwrap_or_default();
        // Without a result the agent's last text counts, as in an interrupted turn.
        if result.is_empty() && (turn.is_some() || self.turn.is_none()) {
            &self.last_text
        } else {
            result
        }
    }

    /// Returns the agent's signal at the end of its work, from its words or its own tool.
    pub fn signal(&self) -> Signal {
        match (
            Signal::read(self.result(), self.nonce.as_deref()),
            &self.asked,
        ) {
            (Signal::None, Some(question)) => Signal::Waiting(question.clone()),
            (signal, _) => signal,
        }
    }

    /// Returns the signal at the end of the run. An agent that had calls refused and is not done asks for permission.
    fn last_signal(&self) -> Signal {
        match self.signal() {
            signal if signal == Signal::Done || self.refused.is_empty() => signal,
            Signal::Waiting(question) => {
                Signal::Waiting(permission::asking(&question, &self.refused))
            }
            _ => Signal::Waiting(permission::asking(
                "it needs permission to continue",
                &self.refused,
            )),
        }
    }

    /// Returns true if the session is not known here (any more): a new one must be begun.
    pub fn is_unknown(&self) -> bool {
        let error = self.turn.as_ref().and_then(|turn| turn.errors.first());
        error.is_some_and(|error| error.starts_with("No conversation found"))
    }

    /// Decides the result. `ended` is the reason why the run was ended from here, if it was. `last_error` is the last
    /// line of standard error, shown to people if nothing else is known.
    pub fn judge(
        &self,
        exit: ProgramExit,
        ended: Option<EndReason>,
        last_error: &str,
    ) -> SessionEnd {
        let turn = self.turn.as_ref().filter(|_| !self.is_turn_open);
        // It was not prompted to go on.
        let is_cut_short = ended == Some(EndReason::Cap) && self.signal() == Signal::None;
        let end = match turn {
            Some(turn) if !is_broken_off(turn) && (turn.is_error || !is_cut_short) => {
                self.judge_turn(turn, exit, ended)
            }
            _ => self.judge_broken_off(turn, exit, ended, last_error),
        };
        SessionEnd {
            usage: self.usage.clone(),
            turns: self.turns,
            tool_calls: self.tool_calls,
            result: self.result().to_owned(),
            answer: self.result().to_owned(),
            signal: if end.outcome == Outcome::Success {
                self.last_signal()
            } else {
                Signal::None
            },
            denials: self.denials.clone(),
            refused: self.refused.clone(),
            ..end
        }
    }

    /// Judges a turn that ended by itself.
    fn judge_turn(
        &self,
        turn: &TurnResult,
        exit: ProgramExit,
        ended: Option<EndReason>,
    ) -> SessionEnd {
        let first_error = turn.errors.first().map(String::as_str);
        let said = turn
            .result
            .as_deref()
            .filter(|text| !text.is_empty())
            .or(first_error)
            .unwrap_or(&turn.subtype);
        match turn.subtype.as_str() {
            "error_max_turns" | "error_max_budget_usd" => return end(Outcome::Budget, said),
            _ if turn.is_error => return self.judge_failure(turn, said),
            _ => {}
        }
        match turn.terminal_reason.as_deref() {
            None | Some("completed") => {}
            Some(reason) => return end(Outcome::Failed, &format!("it ended early: {reason}")),
        }
        // A forced exit does not invalidate the answer before it.
        if !exit.is_success() && ended.is_none() {
            return end(Outcome::Crashed, &format!("{exit} after its answer"));
        }
        // A refused question is no refused work.
        let is_work = |denial: &Denial| denial.tool != question::TOOL;
        if self.denials.iter().any(is_work) && self.deeds == 0 && self.refused.is_empty() {
            return end(Outcome::PermissionDenied, &denied(&self.denials));
        }
        end(Outcome::Success, said)
    }

    /// Judges a final failure or refusal of the provider.
    fn judge_failure(&self, turn: &TurnResult, said: &str) -> SessionEnd {
        let error = self
            .failure
            .as_ref()
            .map(|failure| failure.error.as_str())
            .unwrap_or_default();
        let text = self
            .failure
            .as_ref()
            .map(|failure| failure.text.as_str())
            .unwrap_or_default();
        let outcome = match error {
            // The reply was refused or cut; the program reports this in the same words as a failed call.
            "max_output_tokens" => Outcome::Failed,
            _ if turn.stop_reason.as_deref() == Some("refusal") => Outcome::Failed,
            _ => provider_outcome(turn.api_status, error, text),
        };
        let resets_at = match outcome {
            Outcome::UsageLimit => self
                .reset_time()
                .or_else(|| reset_time_in(text))
                .or_else(|| reset_time_in(said)),
            _ => None,
        };
        SessionEnd {
            resets_at,
            ..end(outcome, said)
        }
    }

    /// Judges a run without an answer: the program ended, or was ended, in the middle.
    fn judge_broken_off(
        &self,
        turn: Option<&TurnResult>,
        exit: ProgramExit,
        ended: Option<EndReason>,
        last_error: &str,
    ) -> SessionEnd {
        if let Some(why) = ended {
            // Silence after a refusal is the provider's fault, not the agent's.
            let retry = self
                .retry
                .as_ref()
                .filter(|_| matches!(why, EndReason::Idle | EndReason::Wall));
            let Some(retry) = retry else {
                return end(why.outcome(), why.describe());
            };
            let outcome = provider_outcome(retry.status, &retry.error, "");
            let status = retry
                .status
                .map_or_else(|| "no answer".to_owned(), |status| status.to_string());
            let resets_at = self.reset_time().filter(|_| outcome == Outcome::UsageLimit);
            return SessionEnd {
                resets_at,
                ..end(
                    outcome,
                    &format!(
                        "{} while the provider failed: {status}, {}",
                        why.describe(),
                        retry.error
                    ),
                )
            };
        }
        if let Some(reason) = turn.and_then(|turn| turn.terminal_reason.as_deref()) {
            return end(Outcome::Killed, &format!("it was interrupted: {reason}"));
        }
        let error = turn
            .and_then(|turn| turn.errors.first())
            .map(String::as_str);
        let last = Some(last_error.trim()).filter(|line| !line.is_empty());
        match error.filter(|error| !error.is_empty()).or(last) {
            Some(why) => end(Outcome::Crashed, &format!("{exit}: {why}")),
            None => end(Outcome::Crashed, &format!("{exit} without an answer")),
        }
    }

    fn reset_time(&self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(self.rejected_until??, 0)
    }
}

/// Returns true if the turn was interrupted; such a turn has a result too.
fn is_broken_off(turn: &TurnResult) -> bool {
    let is_aborted = turn
        .terminal_reason
        .as_deref()
        .is_some_and(|reason| reason.starts_with("aborted_"));
    is_aborted || turn.subtype == "error_during_execution"
}

/// Returns the outcome of a provider failure. `error` is the CLI's own code, `text` the message of its report.
pub(super) fn provider_outcome(status: Option<u16>, error: &str, text: &str) -> Outcome {
    // A key's spending limit comes as a plain 400. The words are the provider's own.
    let is_spent = text.contains("usage limit") || text.contains("regain access");
    match (status, error) {
        (Some(429), _) | (_, "rate_limit") => Outcome::UsageLimit,
        (Some(401..=403), _)
        | (_, "authentication_failed" | "oauth_org_not_allowed" | "billing_error") => Outcome::Auth,
        // A person must fix a model that doesn't exist or isn't available to this account, like a wrong key.
        (Some(404), _) | (_, "model_not_found") => Outcome::Auth,
        (Some(500..=599), _) | (_, "overloaded" | "server_error") => Outcome::Overloaded,
        (Some(400) | None, _) if is_spent => Outcome::UsageLimit,
        // No answer at all: the network, or a timeout.
        (None | Some(408), "unknown") => Outcome::Overloaded,
        _ => Outcome::Failed,
    }
}

/// Parses `… regain access on 2026-12-01 at 00:00 UTC`, or `…|1795314466` of older versions.
fn reset_time_in(text: &str) -> Option<DateTime<Utc>> {
    if let Some((_, rest)) = text.split_once("regain access on ") {
        let moment: String = rest.chars().take("2026-12-01 at 00:00".len()).collect();
        let parsed = NaiveDateTime::parse_from_str(&moment, "%Y-%m-%d at %H:%M").ok()?;
        return Some(parsed.and_utc());
    }
    let (_, seconds) = text.rsplit_once('|')?;
    DateTime::from_timestamp(seconds.trim().parse().ok()?, 0)
}

fn denied(denials: &[Denial]) -> String {
    let mut tools: Vec<&str> = denials.iter().map(|denial| denial.tool.as_str()).collect();
    tools.dedup();
    format!(
        "it was not allowed to use {}, and did nothing",
        tools.join(", ")
    )
}

/// Builds the end of a session; the first line of `reason` is for people.
fn end(outcome: Outcome, reason: &str) -> SessionEnd {
    let line = reason
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    SessionEnd::of(outcome, line.chars().take(300).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_to_be_woken_later_waits_until_its_next_turn() {
        let mut reading = Reading::default();
        let started = AgentEvent::Started {
            session: "s".to_owned(),
            model: None,
        };
        let call = |id: &str| AgentEvent::ToolCall {
            id: id.to_owned(),
            name: WAKER.to_owned(),
            input: serde_json::json!({"delaySeconds": 60}),
            nesting: Nesting::Main,
        };
        let result = |ok| AgentEvent::ToolResult {
            id: "1".to_owned(),
            ok,
            text: String::new(),
        };
        for (ok, waits) in [(false, false), (true, true)] {
            [started.clone(), call("1"), result(ok)]
                .iter()
                .for_each(|event| reading.note(event));
            assert_eq!(reading.has_open_task(), waits);
        }
        reading.note(&started);
        assert!(!reading.has_open_task());
    }
}
