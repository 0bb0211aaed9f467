//! Turns one line of the Claude CLI's `stream-json` output into events (as of CLI 2.1.197). Pure, and can't fail:
//! unknown lines, JSON or not, yield no events.

use std::collections::BTreeMap;

use serde_json::Value;

use super::event::{AgentEvent, Background, Nesting, RateWindow, TurnResult};
use super::outcome::{Denial, Usage};

/// Returns the events of one line: several if a reply has several blocks, or if the whole run is one JSON array.
pub fn read(line: &str) -> Vec<AgentEvent> {
    serde_json::from_str::<Value>(line).map_or_else(|_| Vec::new(), |value| of_value(&value))
}

/// Returns the events of one line that was parsed.
pub fn of_value(value: &Value) -> Vec<AgentEvent> {
    match value {
        Value::Array(events) => events.iter().flat_map(event).collect(),
        value => event(value),
    }
}

/// The model that the CLI names in replies that it made up itself to report a failure.
const SYNTHETIC: &str = "<synthetic>";

fn event(value: &Value) -> Vec<AgentEvent> {
    match text(value, "type") {
        "system" => system(value).into_iter().collect(),
        "assistant" => assistant(value),
        "user" => user(value),
        "result" => vec![AgentEvent::Turn(Box::new(turn(value)))],
        "rate_limit_event" => vec![rate_limit(&value["rate_limit_info"])],
        "control_request" if text(&value["request"], "subtype") == "can_use_tool" => {
            vec![AgentEvent::LeaveAsked {
                request: text(value, "request_id").to_owned(),
                tool: text(&value["request"], "tool_name").to_owned(),
                input: value["request"]["input"].clone(),
            }]
        }
        "control_request" if text(&value["request"], "subtype") == "hook_callback" => {
            vec![AgentEvent::CallProposed {
                request: text(value, "request_id").to_owned(),
                tool: text(&value["request"]["input"], "tool_name").to_owned(),
                input: value["request"]["input"]["tool_input"].clone(),
            }]
        }
        "control_response" => reply(&value["response"]).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn system(value: &Value) -> Option<AgentEvent> {
    match text(value, "subtype") {
        "init" => Some(AgentEvent::Started {
            session: text(value, "session_id").to_owned(),
            model: value["model"].as_str().map(str::to_owned),
        }),
        "api_retry" => Some(AgentEvent::Retry {
            status: status(&value["error_status"]),
            error: text(value, "error").to_owned(),
        }),
        "task_started" => Some(AgentEvent::TaskStarted {
            id: text(value, "task_id").to_owned(),
            by: if text(value, "task_type") == "local_agent" {
                Background::SubAgent
            } else {
                Background::Command
            },
        }),
        "task_notification" => Some(AgentEvent::TaskEnded {
            id: text(value, "task_id").to_owned(),
        }),
        _ => None,
    }
}

fn assistant(value: &Value) -> Vec<AgentEvent> {
    let message = &value["message"];
    let nesting = nesting(value);
    let blocks = blocks(&message["content"]);
    if text(message, "model") == SYNTHETIC || value["error"].is_string() {
        let said = blocks
            .iter()
            .map(|block| text(block, "text"))
            .collect::<Vec<_>>()
            .join("\n");
        return vec![AgentEvent::Failure {
            error: text(value, "error").to_owned(),
            text: said,
        }];
    }
    let event = |block: &Value| match text(block, "type") {
        "text" => Some(AgentEvent::Text {
            text: text(block, "text").to_owned(),
            nesting,
        }),
        "tool_use" => Some(AgentEvent::ToolCall {
            id: text(block, "id").to_owned(),
            name: text(block, "name").to_owned(),
            input: block["input"].clone(),
            nesting,
        }),
        "thinking" | "redacted_thinking" => Some(AgentEvent::Thinking),
        _ => None,
    };
    blocks.into_iter().filter_map(event).collect()
}

fn user(value: &Value) -> Vec<AgentEvent> {
    let content = &value["message"]["content"];
    if value["isReplay"] == Value::Bool(true) {
        return vec![AgentEvent::Delivered {
            text: flatten(content),
        }];
    }
    let results = blocks(content)
        .into_iter()
        .filter(|block| text(block, "type") == "tool_result");
    let event = |block: &Value| AgentEvent::ToolResult {
        id: text(block, "tool_use_id").to_owned(),
        ok: block["is_error"] != Value::Bool(true),
        text: flatten(&block["content"]),
    };
    results.map(event).collect()
}

fn turn(value: &Value) -> TurnResult {
    let string = |name: &str| value[name].as_str().map(str::to_owned);
    let mut usage = models(&value["modelUsage"]);
    usage.usd = value["total_cost_usd"].as_f64().unwrap_or(usage.usd);
    TurnResult {
        subtype: text(value, "subtype").to_owned(),
        // A result without this field is judged by its subtype.
        is_error: value["is_error"]
            .as_bool()
            .unwrap_or(text(value, "subtype") != "success"),
        api_status: status(&value["api_error_status"]),
        terminal_reason: string("terminal_reason"),
        stop_reason: string("stop_reason"),
        result: string("result"),
        structured: value
            .get("structured_output")
            .filter(|answer| answer.is_object())
            .cloned(),
        errors: blocks(&value["errors"])
            .into_iter()
            .filter_map(|error| error.as_str().map(str::to_owned))
            .collect(),
        denials: blocks(&value["permission_denials"])
            .into_iter()
            .map(|denial| Denial {
                tool: text(denial, "tool_name").to_owned(),
                input: denial["tool_input"].clone(),
            })
            .collect(),
        turns: count(&value["num_turns"]),
        usage,
    }
}

fn rate_limit(info: &Value) -> AgentEvent {
    let resets_at = |value: &Value| value["resetsAt"].as_f64().map(|seconds| seconds as i64);
    let window = |value: &Value| {
        Some(RateWindow {
            used: value["utilization"].as_f64()?,
            resets_at: resets_at(value)?,
        })
    };
    // Older versions report only the window that counts, near its end.
    let windows = match info["unifiedWindows"].as_object() {
        Some(windows) => windows.values().filter_map(window).collect(),
        None => window(info).into_iter().collect(),
    };
    AgentEvent::RateLimit {
        status: text(info, "status").to_owned(),
        resets_at: resets_at(info),
        windows,
    }
}

/// Parses the reply to a control request; that to `get_usage` has the usage.
fn reply(response: &Value) -> Option<AgentEvent> {
    let session = &response["response"]["session"];
    let usd = session["total_cost_usd"].as_f64()?;
    Some(AgentEvent::Spent {
        usage: Usage {
            usd,
            ..models(&session["model_usage"])
        },
    })
}

/// Parses `{model: {inputTokens, …}}` into the sum and the usage of each model.
fn models(value: &Value) -> Usage {
    let Some(models) = value.as_object() else {
        return Usage::default();
    };
    let mut all = Usage::default();
    let mut each = BTreeMap::new();
    for (model, figures) in models {
        let tokens = |name: &str| figures[name].as_u64().unwrap_or(0);
        let usage = Usage {
            input: tokens("inputTokens"),
            output: tokens("outputTokens"),
            cache_read: tokens("cacheReadInputTokens"),
            cache_write: tokens("cacheCreationInputTokens"),
            usd: figures["costUSD"].as_f64().unwrap_or(0.0),
            ..Usage::default()
        };
        all.add(&usage);
        each.insert(model.clone(), usage);
    }
    Usage {
        models: each,
        ..all
    }
}

/// Returns the text of a `content`: a string, or the texts of an array of blocks.
fn flatten(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn nesting(value: &Value) -> Nesting {
    if value["parent_tool_use_id"].is_string() {
        Nesting::Inner
    } else {
        Nesting::Main
    }
}

fn blocks(value: &Value) -> Vec<&Value> {
    value
        .as_array()
        .map(|blocks| blocks.iter().collect())
        .unwrap_or_default()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn status(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|status| u16::try_from(status).ok())
}

fn count(value: &Value) -> u32 {
    value
        .as_u64()
        .and_then(|count| u32::try_from(count).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    proptest! {
        #[test]
        fn no_line_makes_it_fail(line in any::<String>()) {
            read(&line);
        }

        #[test]
        fn no_event_makes_it_fail(kind in "system|assistant|user|result|control_response|rate_limit_event", rest in "[a-z\":,{}\\[\\]0-9]{0,40}") {
            read(&format!(r#"{{"type":"{kind}","message":{{"content":[{{{rest}}}]}}}}"#));
            read(&format!(r#"{{"type":"{kind}",{rest}}}"#));
        }
    }
}
