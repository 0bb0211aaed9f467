//! One line of the Claude CLI's `stream-json` output → events (as of CLI 2.1.197). Pure, and it can't fail: what
//! it doesn't know is [`AgentEvent::Other`], what is no JSON is [`AgentEvent::Unreadable`].

use std::collections::BTreeMap;

use serde_json::Value;

use super::event::{AgentEvent, Nesting, TurnResult};
use super::outcome::{Denial, Usage};

/// The events of one line. Several where a reply has several blocks, and where the whole run is one JSON array.
pub fn read(line: &str) -> Vec<AgentEvent> {
    if line.trim().is_empty() {
        return Vec::new();
    }
    match serde_json::from_str::<Value>(line) {
        Ok(Value::Array(events)) => events.iter().flat_map(event).collect(),
        Ok(value @ Value::Object(_)) => event(&value),
        Ok(_) | Err(_) => vec![AgentEvent::Unreadable { text: line.chars().take(200).collect() }],
    }
}

/// The model that the CLI gives for replies it made up itself to report a failure.
const SYNTHETIC: &str = "<synthetic>";

fn event(value: &Value) -> Vec<AgentEvent> {
    let kind = text(value, "type");
    match kind {
        "system" => vec![system(value)],
        "assistant" => assistant(value),
        "user" => user(value),
        "result" => vec![AgentEvent::Turn(Box::new(turn(value)))],
        "rate_limit_event" => vec![rate_limit(&value["rate_limit_info"])],
        "control_response" => vec![reply(&value["response"])],
        "stream_event" => vec![other(&format!("stream_event/{}", text(&value["event"], "type")))],
        _ => vec![other(kind)],
    }
}

fn system(value: &Value) -> AgentEvent {
    match text(value, "subtype") {
        "init" => AgentEvent::Started { session: text(value, "session_id").to_owned() },
        "api_retry" => {
            AgentEvent::Retry { status: status(&value["error_status"]), error: text(value, "error").to_owned() }
        }
        subtype => other(&format!("system/{subtype}")),
    }
}

fn assistant(value: &Value) -> Vec<AgentEvent> {
    let message = &value["message"];
    let nesting = nesting(value);
    let blocks = blocks(&message["content"]);
    if text(message, "model") == SYNTHETIC || value["error"].is_string() {
        let said = blocks.iter().map(|block| text(block, "text")).collect::<Vec<_>>().join("\n");
        return vec![AgentEvent::Failure { error: text(value, "error").to_owned(), text: said }];
    }
    blocks
        .into_iter()
        .map(|block| match text(block, "type") {
            "text" => AgentEvent::Text { text: text(block, "text").to_owned(), nesting },
            "tool_use" => AgentEvent::ToolCall {
                id: text(block, "id").to_owned(),
                name: text(block, "name").to_owned(),
                input: block["input"].clone(),
                nesting,
            },
            "thinking" | "redacted_thinking" => AgentEvent::Thinking,
            kind => other(&format!("assistant/{kind}")),
        })
        .collect()
}

fn user(value: &Value) -> Vec<AgentEvent> {
    let content = &value["message"]["content"];
    if value["isReplay"] == Value::Bool(true) {
        return vec![AgentEvent::Delivered { text: flatten(content) }];
    }
    if content.is_string() {
        return vec![other("user/text")];
    }
    blocks(content)
        .into_iter()
        .map(|block| match text(block, "type") {
            "tool_result" => AgentEvent::ToolResult {
                id: text(block, "tool_use_id").to_owned(),
                ok: block["is_error"] != Value::Bool(true),
                text: flatten(&block["content"]),
            },
            kind => other(&format!("user/{kind}")),
        })
        .collect()
}

fn turn(value: &Value) -> TurnResult {
    let string = |name: &str| value[name].as_str().map(str::to_owned);
    let mut usage = models(&value["modelUsage"]);
    usage.usd = value["total_cost_usd"].as_f64().unwrap_or(usage.usd);
    TurnResult {
        subtype: text(value, "subtype").to_owned(),
        // A result that doesn't say is taken for what its subtype says.
        is_error: value["is_error"].as_bool().unwrap_or(text(value, "subtype") != "success"),
        api_status: status(&value["api_error_status"]),
        terminal_reason: string("terminal_reason"),
        stop_reason: string("stop_reason"),
        result: string("result"),
        errors: blocks(&value["errors"]).into_iter().filter_map(|error| error.as_str().map(str::to_owned)).collect(),
        denials: blocks(&value["permission_denials"])
            .into_iter()
            .map(|denial| Denial { tool: text(denial, "tool_name").to_owned(), input: denial["tool_input"].clone() })
            .collect(),
        turns: count(&value["num_turns"]),
        usage,
    }
}

fn rate_limit(info: &Value) -> AgentEvent {
    AgentEvent::RateLimit {
        status: text(info, "status").to_owned(),
        resets_at: info["resetsAt"].as_f64().map(|seconds| seconds as i64),
    }
}

/// An answer to a control request; that to `get_usage` tells what was spent.
fn reply(response: &Value) -> AgentEvent {
    let session = &response["response"]["session"];
    match session["total_cost_usd"].as_f64() {
        Some(usd) => AgentEvent::Spent { usage: Usage { usd, ..models(&session["model_usage"]) } },
        None => other("control_response"),
    }
}

/// `{model: {inputTokens, …}}`, summed and one by one.
fn models(value: &Value) -> Usage {
    let Some(models) = value.as_object() else { return Usage::default() };
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
    Usage { models: each, ..all }
}

/// The text of a `content`: a string, or an array of blocks of which the texts count.
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
    if value["parent_tool_use_id"].is_string() { Nesting::Inner } else { Nesting::Main }
}

fn blocks(value: &Value) -> Vec<&Value> {
    value.as_array().map(|blocks| blocks.iter().collect()).unwrap_or_default()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn status(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|status| u16::try_from(status).ok())
}

fn count(value: &Value) -> u32 {
    value.as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

fn other(name: &str) -> AgentEvent {
    AgentEvent::Other { name: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn odd_lines_are_told_and_do_no_harm() {
        let rows = [
            ("", "[]"),
            ("  ", "[]"),
            ("not json", r#"[Unreadable { text: "not json" }]"#),
            ("7", r#"[Unreadable { text: "7" }]"#),
            ("{}", r#"[Other { name: "" }]"#),
            (r#"{"type":"new_thing"}"#, r#"[Other { name: "new_thing" }]"#),
            (r#"{"type":"system","subtype":"status"}"#, r#"[Other { name: "system/status" }]"#),
            (r#"{"type":"assistant","message":null}"#, "[]"),
            (r#"{"type":"user","message":{"content":[7]}}"#, r#"[Other { name: "user/" }]"#),
        ];
        for (line, events) in rows {
            assert_eq!(format!("{:?}", read(line)), events, "{line}");
        }
    }

    #[test]
    fn a_rate_limit_event_tells_when_it_ends() {
        // From the package's own schema: none was ever recorded.
        let line = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795314466,"rateLimitType":"five_hour"}}"#;
        assert_eq!(
            read(line),
            [AgentEvent::RateLimit { status: "rejected".to_owned(), resets_at: Some(1_795_314_466) }]
        );
    }

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
