//! Turns lines of a program that speaks the Agent Client Protocol (JSON-RPC, version 1) into events. Pure, and can't
//! fail: unknown lines, JSON or not, yield no events.
//!
//! Requests to the program have the name of their method as ID, so that its own lines name the request that they answer.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::event::{AgentEvent, Nesting, TurnResult};
use super::outcome::Usage;
use super::programs::Counting;
use super::provider;

/// The separator between the method and the number in the ID of a request that is sent more than once.
const NUMBER: char = '#';

/// The part of a session that was read.
#[derive(Clone, Debug, Default)]
pub struct AcpLines {
    pub session: Option<String>,
    /// Whether the session is open; updates before that replay earlier turns.
    is_open: bool,
    /// The agent's message so far, and its ID.
    said: String,
    message: Option<String>,
    /// The last whole message of the turn; empty if a call came after it.
    last: String,
    calls: HashMap<String, Call>,
    /// The usage in finished turns, and in the calls to the model of the current one.
    usage: Usage,
    of_turn: Usage,
    /// The session's cost so far, and before this run.
    cost: f64,
    cost_before: f64,
    /// The usage in the answer to a prompt, and the last one of the session.
    counts: Counting,
    total: Usage,
    /// Whether a call of this turn was refused from here, for which some programs cancel it.
    pub was_refused: bool,
}

/// A tool call, as far as it was reported.
#[derive(Clone, Debug, Default)]
struct Call {
    kind: String,
    title: String,
    name: Option<String>,
    input: Value,
    path: Option<String>,
    output: String,
    is_told: bool,
}

/// Returns the method that the answer `value` answers; `None` if it is none.
pub fn answered(value: &Value) -> Option<&str> {
    if value["method"].is_string() {
        return None;
    }
    value["id"].as_str()?.split(NUMBER).next()
}

/// Returns the ID of the `number`th request of a method.
pub fn numbered(method: &str, number: u32) -> String {
    format!("{method}{NUMBER}{number}")
}

impl AcpLines {
    /// Returns the reader of a new or resumed session with this usage before.
    pub fn of(session: Option<String>, before: &Usage, counts: Counting) -> AcpLines {
        AcpLines {
            session,
            cost: before.usd,
            cost_before: before.usd,
            total: before.clone(),
            counts,
            ..AcpLines::default()
        }
    }

    /// Returns the reader of lines of a session that is open.
    pub fn opened() -> AcpLines {
        AcpLines {
            is_open: true,
            ..AcpLines::default()
        }
    }

    /// Returns the events of one line.
    pub fn read(&mut self, value: &Value) -> Vec<AgentEvent> {
        match (value["method"].as_str(), answered(value)) {
            (Some("session/update"), _) => {
                self.is_of(&value["params"]);
                self.update(&value["params"]["update"])
            }
            (Some("session/request_permission"), _) => {
                self.is_of(&value["params"]);
                let mut events = self.update_call(&value["params"]["toolCall"]);
                let id = text(&value["params"]["toolCall"], "toolCallId");
                let (tool, input) = self
                    .calls
                    .get(id)
                    .map_or_else(Default::default, Call::described);
                events.push(AgentEvent::LeaveAsked {
                    request: value["id"].to_string(),
                    tool,
                    input,
                });
                events
            }
            (None, Some(method)) => self.answer(method, value),
            _ => Vec::new(),
        }
    }

    /// Returns true if the program waits for its model, which has not begun to answer.
    pub fn awaits_model(&self) -> bool {
        self.is_open && self.said.is_empty() && self.calls.is_empty()
    }

    fn is_of(&mut self, params: &Value) {
        if let Some(session) = params["sessionId"].as_str() {
            self.session.get_or_insert_with(|| session.to_owned());
        }
    }

    fn update(&mut self, update: &Value) -> Vec<AgentEvent> {
        let kind = text(update, "sessionUpdate");
        if kind == "usage_update"
            && let Some(cost) = update["cost"]["amount"].as_f64()
            && update["cost"]["currency"]
                .as_str()
                .is_none_or(|of| of == "USD")
        {
            self.cost = cost;
            if !self.is_open {
                self.cost_before = cost;
            }
        }
        if !self.is_open {
            return Vec::new();
        }
        match kind {
            "agent_message_chunk" => self.chunk(update),
            "agent_thought_chunk" => {
                let mut events = self.flush();
                events.push(AgentEvent::Thinking);
                events
            }
            "tool_call" | "tool_call_update" => self.update_call(update),
            "usage_update" => {
                let mut events = self.flush();
                events.push(self.spent());
                events
            }
            "plan" | "user_message_chunk" => self.flush(),
            _ => Vec::new(),
        }
    }

    fn chunk(&mut self, update: &Value) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        let message = update["messageId"].as_str().map(str::to_owned);
        if message != self.message {
            events.extend(self.flush());
            self.message = message;
        }
        self.said += text(&update["content"], "text");
        // It comes at the end of each answer of the model.
        if update["_meta"]["usage"].is_object() {
            self.of_turn.add(&usage(&update["_meta"]["usage"]));
            events.extend(self.flush());
            events.push(self.spent());
        }
        events
    }

    /// Ends the agent's current message.
    fn flush(&mut self) -> Vec<AgentEvent> {
        let said = std::mem::take(&mut self.said);
        self.message = None;
        if !said.trim().is_empty() {
            self.last.clone_from(&said);
        }
        let text = (!said.is_empty()).then_some(AgentEvent::Text {
            text: said,
            nesting: Nesting::Main,
        });
        text.into_iter().collect()
    }

    fn update_call(&mut self, update: &Value) -> Vec<AgentEvent> {
        let id = text(update, "toolCallId").to_owned();
        let mut events = self.flush();
        self.last.clear();
        let call = self.calls.entry(id.clone()).or_default();
        call.take(update);
        let status = text(update, "status");
        let is_over = matches!(status, "completed" | "failed");
        // Many programs report a call before its input.
        let is_known =
            call.input.as_object().is_some_and(|of| !of.is_empty()) || status != "pending";
        if !call.is_told && (is_known || is_over) {
            call.is_told = true;
            let (name, input) = call.described();
            events.push(AgentEvent::ToolCall {
                id: id.clone(),
                name,
                input,
                nesting: Nesting::Main,
            });
        }
        if is_over {
            let text = std::mem::take(&mut call.output);
            self.calls.remove(&id);
            events.push(AgentEvent::ToolResult {
                id,
                ok: status == "completed",
                text,
            });
        }
        events
    }

    fn answer(&mut self, method: &str, value: &Value) -> Vec<AgentEvent> {
        let (result, error) = (&value["result"], &value["error"]);
        match method {
            "session/load" | "session/resume" if error.is_object() && !is_auth(error) => {
                let why = format!("No conversation found: {}", provider::message(error));
                vec![AgentEvent::Turn(Box::new(TurnResult {
                    subtype: "error_during_execution".to_owned(),
                    errors: vec![why],
                    ..TurnResult::default()
                }))]
            }
            _ if error.is_object() => self.failure(error),
            "session/new" | "session/load" | "session/resume" => {
                self.is_open = true;
                self.calls.clear();
                self.is_of(result);
                vec![AgentEvent::Started {
                    session: self.session.clone().unwrap_or_default(),
                    model: model(result),
                }]
            }
            "session/prompt" => self.end_turn(result),
            _ => Vec::new(),
        }
    }

    fn end_turn(&mut self, result: &Value) -> Vec<AgentEvent> {
        let mut events = self.flush();
        let said = std::mem::take(&mut self.last);
        self.calls.clear();
        self.count(result);
        let reason = match text(result, "stopReason") {
            "cancelled" if std::mem::take(&mut self.was_refused) => "end_turn",
            reason => reason,
        };
        let mut turn = TurnResult {
            subtype: "success".to_owned(),
            stop_reason: Some(reason.to_owned()),
            result: Some(said),
            turns: 1,
            usage: self.spent_so_far(),
            ..TurnResult::default()
        };
        match reason {
            "cancelled" => turn.terminal_reason = Some("aborted_streaming".to_owned()),
            "max_turn_requests" => "error_max_turns".clone_into(&mut turn.subtype),
            "max_tokens" | "refusal" => {
                turn.is_error = true;
                turn.errors = vec![format!("its model ended early: {reason}")];
                turn.result = None;
                events.push(AgentEvent::Failure {
                    error: "max_output_tokens".to_owned(),
                    text: reason.to_owned(),
                });
            }
            _ => {}
        }
        events.push(AgentEvent::Turn(Box::new(turn)));
        events
    }

    fn failure(&mut self, error: &Value) -> Vec<AgentEvent> {
        let mut events = self.flush();
        self.calls.clear();
        self.usage.add(&std::mem::take(&mut self.of_turn));
        let (said, status) = (provider::message(error), provider::status(error));
        events.push(AgentEvent::Failure {
            error: if is_auth(error) {
                "authentication_failed".to_owned()
            } else {
                provider::kind(&said).to_owned()
            },
            text: said.clone(),
        });
        events.push(AgentEvent::Turn(Box::new(TurnResult {
            subtype: "success".to_owned(),
            is_error: true,
            api_status: status,
            errors: vec![said],
            usage: self.spent_so_far(),
            ..TurnResult::default()
        })));
        events
    }

    /// Counts the usage of a turn, from its answer; else from the calls to the model in it.
    fn count(&mut self, result: &Value) {
        let of_calls = std::mem::take(&mut self.of_turn);
        let quota = &result["_meta"]["quota"]["token_count"];
        let told = if result["usage"].is_object() {
            Some(usage(&result["usage"]))
        } else if quota.is_object() {
            Some(Usage {
                input: count(quota, "input_tokens"),
                output: count(quota, "output_tokens"),
                ..Usage::default()
            })
        } else {
            None
        };
        match told {
            Some(total) if self.counts == Counting::Session => {
                self.usage.add(&total.since(&self.total));
                self.total = total;
            }
            Some(of_turn) => self.usage.add(&of_turn),
            None => self.usage.add(&of_calls),
        }
    }

    fn spent_so_far(&self) -> Usage {
        let mut usage = self.usage.clone();
        usage.add(&self.of_turn);
        usage.usd = (self.cost - self.cost_before).max(0.0);
        usage
    }

    fn spent(&self) -> AgentEvent {
        AgentEvent::Spent {
            usage: self.spent_so_far(),
        }
    }
}

impl Call {
    fn take(&mut self, update: &Value) {
        let set = |field: &mut String, name: &str| {
            if let Some(value) = update[name].as_str() {
                value.clone_into(field);
            }
        };
        set(&mut self.kind, "kind");
        set(&mut self.title, "title");
        let name = update["name"]
            .as_str()
            .or(update["_meta"]["toolName"].as_str());
        self.name = name.map(str::to_owned).or(self.name.take());
        if update["rawInput"]
            .as_object()
            .is_some_and(|of| !of.is_empty())
        {
            self.input = update["rawInput"].clone();
        }
        let content = update["content"].as_array().map_or(&[][..], Vec::as_slice);
        let changed = content.iter().find_map(|part| part["path"].as_str());
        let path = changed.or_else(|| update["locations"][0]["path"].as_str());
        self.path = path.map(str::to_owned).or(self.path.take());
        let said: Vec<&str> = content
            .iter()
            .filter_map(|part| part["content"]["text"].as_str())
            .collect();
        if !said.is_empty() {
            self.output = said.join("\n");
        } else if let Some(output) = update["rawOutput"].as_str() {
            output.clone_into(&mut self.output);
        }
    }

    /// Returns the name and input of the call, as rules and permissions know them: the commands of a shell are in
    /// `command`, a changed file is in `file_path`.
    fn described(&self) -> (String, Value) {
        let name = match self.kind.as_str() {
            "read" => "Read",
            "edit" | "delete" | "move" => "Edit",
            "search" => "Grep",
            "execute" => "Bash",
            "think" => "TodoWrite",
            "fetch" => "WebFetch",
            "switch_mode" => "SwitchMode",
            _ => self.name.as_deref().unwrap_or(&self.title),
        };
        let mut input = match &self.input {
            Value::Object(fields) => Value::Object(fields.clone()),
            _ => json!({}),
        };
        match name {
            "Bash" => {
                let line = [&self.input["command"], &self.input["cmd"]]
                    .into_iter()
                    .find_map(command_line);
                input["command"] = json!(line.unwrap_or_else(|| self.title.clone()));
            }
            "Edit" => {
                let named = ["file_path", "filePath", "absolute_path", "path"]
                    .iter()
                    .find_map(|name| self.input[*name].as_str());
                let path = named.map(str::to_owned).or_else(|| self.path.clone());
                input["file_path"] = json!(path.unwrap_or_else(|| self.title.clone()));
            }
            _ => {}
        }
        (name.to_owned(), input)
    }
}

/// Returns the command line in a string, or in the words of a shell that runs it.
fn command_line(value: &Value) -> Option<String> {
    if let Some(line) = value.as_str() {
        return Some(line.to_owned());
    }
    let words: Vec<&str> = value.as_array()?.iter().filter_map(Value::as_str).collect();
    match words.as_slice() {
        [_, "-c" | "-lc", line] => Some((*line).to_owned()),
        words => Some(words.join(" ")),
    }
}

/// Returns true if the program needs an account first.
pub fn is_auth(error: &Value) -> bool {
    error["code"] == -32000
}

/// Returns the model of a session that has just been opened.
fn model(opened: &Value) -> Option<String> {
    let option = option_of(opened, "model").map(|option| &option["currentValue"]);
    let named = option
        .unwrap_or(&opened["models"]["currentModelId"])
        .as_str()?;
    // qwen names `$runtime|openai|model(openai)`, and takes `model`.
    let name = named.rsplit('|').next().unwrap_or(named);
    Some(name.split('(').next().unwrap_or(name).to_owned())
}

/// Returns the setting of this category that a session offers.
pub fn option_of<'v>(opened: &'v Value, category: &str) -> Option<&'v Value> {
    let options = opened["configOptions"].as_array()?;
    options.iter().find(|option| option["category"] == category)
}

fn usage(of: &Value) -> Usage {
    let [input, output, read, write, total] = [
        "inputTokens",
        "outputTokens",
        "cachedReadTokens",
        "cachedWriteTokens",
        "totalTokens",
    ]
    .map(|name| count(of, name));
    // Some programs count tokens from the cache as input, too.
    let is_counted_twice = read + write > 0 && input + output + read + write > total;
    Usage {
        input: if is_counted_twice {
            input.saturating_sub(read + write)
        } else {
            input
        },
        output,
        cache_read: read,
        cache_write: write,
        ..Usage::default()
    }
}

fn count(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}
