//! A scripted stand-in for the Messages API on the loopback interface, so that the real CLI can be driven without a
//! network, an account or a model. It knows only as much of the API as CLI 2.1.197 asks of it.
//!
//! A step is JSON. It says what is answered: `text`, `tool` and `input`, or `error` (an HTTP status) with `message` and
//! `headers`. It says how: `delay` (seconds before the answer), `hang` (never answer), `stall` (begin to answer, then
//! say nothing more), `drip` (seconds between two words of the answer). `repeat` (a number, or true for ever) says how often. Calls without the text in `for` pass the
//! step over.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::wait_until;

/// One scripted server. It ends, with all its connections, when it is dropped.
pub struct StandIn {
    port: u16,
    state: Arc<State>,
}

/// A call for the model's next words.
#[derive(Clone, Debug)]
pub struct Call {
    /// The session that the CLI says it is.
    pub session: String,
    /// What it has enabled of the API besides.
    pub betas: String,
    pub body: Value,
}

#[derive(Default)]
struct State {
    steps: Mutex<Vec<Value>>,
    /// The calls that offered tools, in order.
    calls: Mutex<Vec<Call>>,
    messages: AtomicU32,
    is_over: AtomicBool,
}

impl StandIn {
    /// Answer the calls with `steps`, each in turn; then with the text `out of script`.
    #[expect(clippy::needless_pass_by_value, reason = "called with `json!`")]
    pub fn start(steps: Value) -> StandIn {
        let listener =
            TcpListener::bind(("127.0.0.1", 0)).expect("the loopback interface has a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let state = Arc::new(State {
            steps: Mutex::new(steps.as_array().expect("a list").clone()),
            ..State::default()
        });
        let served = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if served.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let served = Arc::clone(&served);
                // A client that hangs up is part of the tests.
                thread::spawn(move || stream.and_then(|stream| serve(stream, &served)));
            }
        });
        StandIn { port, state }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.state
            .calls
            .lock()
            .expect("no server thread panics")
            .clone()
    }

    /// Wait until there were `number` calls.
    #[track_caller]
    pub fn wait_for_calls(&self, number: usize) {
        wait_until(&format!("there were {number} calls"), || {
            self.calls().len() >= number
        });
    }
}

impl Call {
    /// The whole conversation as JSON text.
    pub fn messages(&self) -> String {
        self.body["messages"].to_string()
    }

    /// What holds for the whole session, as JSON text.
    pub fn system(&self) -> String {
        self.body["system"].to_string()
    }

    /// The last thing that was said to the model by a person, or by the program that speaks for one.
    pub fn prompt(&self) -> String {
        let messages = self.body["messages"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let texts = messages
            .iter()
            .rev()
            .filter(|message| message["role"] == "user")
            .find_map(|message| {
                let content = &message["content"];
                let blocks = content.as_array().cloned().unwrap_or_default();
                let texts: Vec<String> = blocks
                    .iter()
                    .filter_map(|block| Some(block["text"].as_str()?.to_owned()))
                    .collect();
                match content.as_str() {
                    Some(text) => Some(text.to_owned()),
                    None => (!texts.is_empty()).then(|| texts.join("\n")),
                }
            });
        texts.unwrap_or_default()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it sees the flag.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn next_step(&self, body: &Value) -> Value {
        let mut steps = self.steps.lock().expect("no server thread panics");
        let text = body.to_string();
        let is_meant = |step: &Value| {
            step["for"]
                .as_str()
                .is_none_or(|wanted| text.contains(wanted))
        };
        let Some(place) = steps.iter().position(is_meant) else {
            return json!({"text": "out of script"});
        };
        let step = &mut steps[place];
        let this = step.clone();
        match step["repeat"].as_u64() {
            Some(left) if left > 1 => step["repeat"] = json!(left - 1),
            _ if step["repeat"] == json!(true) => {}
            _ => {
                steps.remove(place);
            }
        }
        this
    }

    fn fresh(&self, prefix: &str) -> String {
        format!(
            "{prefix}_{:022}",
            self.messages.fetch_add(1, Ordering::SeqCst)
        )
    }

    /// Sleep, but not longer than the server lives.
    fn sleep(&self, seconds: f64) {
        let deadline = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < deadline && !self.is_over.load(Ordering::SeqCst) {
            thread::sleep(
                Duration::from_millis(20).min(deadline.saturating_duration_since(Instant::now())),
            );
        }
    }
}

fn serve(mut stream: TcpStream, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request_line = String::new();
    reader.read_line(&mut request_line)?;
    let mut length = 0;
    let (mut session, mut betas) = (String::new(), String::new());
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        let Some((name, value)) = header.split_once(':') else {
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "x-claude-code-session-id" => value.trim().clone_into(&mut session),
            "anthropic-beta" => value.trim().clone_into(&mut betas),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    if !request_line.starts_with("POST /v1/messages") || request_line.contains("count_tokens") {
        return reply(&mut stream, 200, &json!({"input_tokens": 1}), &Value::Null);
    }
    // Titles and summaries offer no tools; they take no step.
    let offers_tools = body["tools"]
        .as_array()
        .is_some_and(|tools| !tools.is_empty());
    let step = if offers_tools {
        state.next_step(&body)
    } else {
        json!({"text": "aside"})
    };
    if offers_tools {
        state
            .calls
            .lock()
            .expect("no server thread panics")
            .push(Call {
                session,
                betas,
                body: body.clone(),
            });
    }
    if step["hang"] == json!(true) {
        state.sleep(600.0);
        return Ok(());
    }
    state.sleep(step["delay"].as_f64().unwrap_or(0.0));
    if let Some(status) = step["error"].as_u64() {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        let error =
            json!({"type": kind, "message": step["message"].as_str().unwrap_or("as scripted")});
        return reply(
            &mut stream,
            status,
            &json!({"type": "error", "error": error}),
            &step["headers"],
        );
    }
    let message = message(&step, &body, state);
    if body["stream"] != json!(true) {
        return reply(&mut stream, 200, &message, &Value::Null);
    }
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n",
    )?;
    write!(stream, "{}\r\n", lines(&step["headers"]))?;
    for (number, event) in events(&message).into_iter().enumerate() {
        if number == 3 && step["stall"] == json!(true) {
            state.sleep(600.0);
            return Ok(());
        }
        let drip = step["drip"]
            .as_f64()
            .filter(|_| event["delta"]["type"] == "text_delta");
        for event in drip.map_or_else(|| vec![event.clone()], |_| words(&event)) {
            write!(
                stream,
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap_or_default()
            )?;
            stream.flush()?;
            state.sleep(drip.unwrap_or_default());
        }
    }
    Ok(())
}

/// A piece of text word by word.
fn words(event: &Value) -> Vec<Value> {
    let text = event["delta"]["text"].as_str().unwrap_or_default();
    let word = |word: &str| {
        let mut event = event.clone();
        event["delta"]["text"] = json!(word);
        event
    };
    text.split_inclusive(' ').map(word).collect()
}

fn reply(
    stream: &mut TcpStream,
    status: u64,
    body: &Value,
    headers: &Value,
) -> std::io::Result<()> {
    let body = body.to_string();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
    );
    write!(
        stream,
        "{head}{}connection: close\r\n\r\n{body}",
        lines(headers)
    )
}

/// Headers as they are sent.
fn lines(headers: &Value) -> String {
    let line = |(name, value): (&String, &Value)| {
        format!("{name}: {}\r\n", value.as_str().unwrap_or_default())
    };
    headers
        .as_object()
        .into_iter()
        .flatten()
        .map(line)
        .collect()
}

/// The whole message of a step.
fn message(step: &Value, request: &Value, state: &State) -> Value {
    let mut content = Vec::new();
    if let Some(text) = step["text"].as_str() {
        content.push(json!({"type": "text", "text": text}));
    }
    let is_call = step["tool"].is_string();
    if is_call {
        let (name, input) = (&step["tool"], &step["input"]);
        content.push(
            json!({"type": "tool_use", "id": state.fresh("toolu"), "name": name, "input": input}),
        );
    }
    let stop = if is_call { "tool_use" } else { "end_turn" };
    let usage = json!({
        "input_tokens": 1200, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 8000, "output_tokens": 150
    });
    json!({
        "id": state.fresh("msg"), "type": "message", "role": "assistant", "model": request["model"],
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage
    })
}

/// The events in which the API streams `message`.
fn events(message: &Value) -> Vec<Value> {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in message["content"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let mut empty = block.clone();
        let delta = if block["type"] == "text" {
            empty["text"] = json!("");
            json!({"type": "text_delta", "text": block["text"]})
        } else {
            empty["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": message["stop_reason"], "stop_sequence": null});
    events.push(json!({"type": "message_delta", "usage": message["usage"], "delta": delta}));
    events.push(json!({"type": "message_stop"}));
    events
}
