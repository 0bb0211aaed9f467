//! An agent program that speaks the Agent Client Protocol and follows a script: for each prompt one step, the first
//! unused one whose `for` the prompt holds. Its file is the script; it notes all messages beside it.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::{Command, exit};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

/// The variable that holds the path of its script.
pub const SCRIPT: &str = "ACP_SCRIPT";

/// Returns the command line that starts it.
pub fn command_line() -> Vec<String> {
    let program = std::env::current_exe().expect("a test has a file");
    let own = [
        program.to_str().expect("it is text"),
        "acp::scripted::plays",
        "--exact",
        "--nocapture",
    ];
    own.map(str::to_owned).into()
}

/// The agent program, if a test of this module has started it; else there is nothing to test.
#[test]
fn plays() {
    let Some(path) = std::env::var_os(SCRIPT) else {
        return;
    };
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    // The name of the test stands before it.
    writeln!(std::io::stdout()).expect("it is read");
    let mut agent = Agent::of(path.into(), lines);
    while let Some(message) = agent.next() {
        agent.take(&message);
    }
    exit(0);
}

struct Agent {
    path: PathBuf,
    script: Value,
    lines: Receiver<String>,
    session: String,
    is_signed_in: bool,
    calls: u32,
    cost: f64,
}

/// Why a step of the script ends.
enum End {
    Turn(&'static str),
    Error(Value),
}

impl Agent {
    fn of(path: PathBuf, lines: Receiver<String>) -> Agent {
        let text = fs::read_to_string(&path).expect("the script is there");
        Agent {
            script: serde_json::from_str(&text).expect("the script is JSON"),
            path,
            lines,
            session: String::new(),
            is_signed_in: false,
            calls: 0,
            cost: 0.0,
        }
    }

    fn note(&self, kind: &str, text: &str) {
        let path = self.path.with_extension(kind);
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .expect("it is ours");
        writeln!(file, "{text}").expect("it is ours");
    }

    fn noted(&self, kind: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path.with_extension(kind)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn next(&self) -> Option<Value> {
        let line = self.lines.recv().ok()?;
        self.note("seen", &line);
        Some(serde_json::from_str(&line).expect("a client sends JSON"))
    }

    fn send(&self, message: &Value) {
        let mut out = std::io::stdout().lock();
        // The client may have ended it.
        drop(writeln!(out, "{message}").and_then(|()| out.flush()));
    }

    fn answer(&self, to: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": to["id"], "result": result}));
    }

    fn fail(&self, to: &Value, error: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": to["id"], "error": error}));
    }

    fn update(&self, update: &Value) {
        let params = json!({"sessionId": self.session, "update": update});
        self.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn say(&self, text: &str) {
        // In two parts, as models write.
        let middle = text.char_indices().nth(text.chars().count() / 2);
        let (one, two) = text.split_at(middle.map_or(0, |(at, _)| at));
        for part in [one, two] {
            let content = json!({"type": "text", "text": part});
            self.update(&json!({"sessionUpdate": "agent_message_chunk", "content": content}));
        }
    }

    fn take(&mut self, message: &Value) {
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                let methods = [json!({"id": "gemini-api-key", "name": "key"})];
                let capabilities = json!({"loadSession": self.script["loads"] != false});
                let version = self.script.get("version").unwrap_or(&json!(1)).clone();
                self.answer(message, &json!({"protocolVersion": version, "agentCapabilities": capabilities, "authMethods": methods}));
            }
            "authenticate" => {
                self.is_signed_in = message["params"]["methodId"] == "gemini-api-key";
                self.answer(message, &json!({}));
            }
            "session/new" if self.script["signs_in"] == true && !self.is_signed_in => {
                self.fail(
                    message,
                    &json!({"code": -32000, "message": "Authentication required"}),
                );
            }
            "session/new" => {
                self.session = format!("s-{}", self.noted("sessions").len() + 1);
                self.note("sessions", &self.session);
                let mut opened = self.opened();
                opened["sessionId"] = json!(self.session);
                self.answer(message, &opened);
            }
            "session/load" => {
                let asked = message["params"]["sessionId"].as_str().unwrap_or_default();
                if self.noted("sessions").iter().any(|known| known == asked) {
                    asked.clone_into(&mut self.session);
                    let old = json!({"type": "text", "text": "an earlier prompt"});
                    self.update(&json!({"sessionUpdate": "user_message_chunk", "content": old}));
                    self.call("echo replayed", "completed", "replayed");
                    self.say("An earlier answer.\n\nDONE");
                    // Like opencode it does not tell the cost so far.
                    let spent = self.noted("cost");
                    self.cost = spent
                        .last()
                        .map_or(0.0, |cost| cost.parse().expect("a number"));
                    self.answer(message, &self.opened());
                } else {
                    self.fail(
                        message,
                        &json!({"code": -32002, "message": "Resource not found"}),
                    );
                }
            }
            "session/prompt" => match self.play(message) {
                End::Turn(reason) => {
                    let usage = json!({"inputTokens": 100, "outputTokens": 20, "totalTokens": 120});
                    self.answer(message, &json!({"stopReason": reason, "usage": usage}));
                }
                End::Error(error) => self.fail(message, &error),
            },
            "session/set_mode" | "session/set_config_option" => self.answer(message, &json!({})),
            _ => {}
        }
    }

    fn opened(&self) -> Value {
        let modes = ["default", "yolo"].map(|id| json!({"id": id, "name": id}));
        let models = ["one", "two"].map(|id| json!({"value": id, "name": id}));
        json!({
            "modes": {"currentModeId": "default", "availableModes": modes},
            "configOptions": [{"id": "m", "category": "model", "type": "select", "currentValue": "one", "options": models}],
        })
    }

    /// Plays the step for a prompt.
    fn play(&mut self, message: &Value) -> End {
        let prompt: String = message["params"]["prompt"]
            .as_array()
            .expect("a prompt has parts")
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        let used = self.noted("used");
        let steps = self.script["steps"]
            .as_array()
            .expect("it has steps")
            .clone();
        let fits = |step: &Value| {
            step["for"]
                .as_str()
                .is_none_or(|marker| prompt.contains(marker))
        };
        let found = steps.iter().enumerate().find(|(number, step)| {
            fits(step) && (step["repeat"] == true || !used.contains(&number.to_string()))
        });
        let Some((number, step)) = found else {
            self.say("DONE");
            return End::Turn("end_turn");
        };
        self.note("used", &number.to_string());
        // `NONCE` is the one that the prompt names.
        let nonce = prompt
            .split("```yaml ")
            .chain(prompt.split("```markdown "))
            .filter_map(|rest| rest.get(..8))
            .find(|word| word.chars().all(|c| c.is_ascii_hexdigit()))
            .unwrap_or_default()
            .to_owned();
        let mut end = End::Turn("end_turn");
        for act in step["do"].as_array().expect("it does things") {
            let text = |name: &str| act[name].as_str().map(|text| text.replace("NONCE", &nonce));
            if let Some(words) = text("say") {
                self.say(&words);
            } else if let Some(command) = text("sh") {
                if !self.shell(&command) && self.script["stops_when_refused"] == true {
                    return End::Turn("cancelled");
                }
            } else if let Some(cost) = act["cost"].as_f64() {
                self.cost += cost;
                self.note("cost", &self.cost.to_string());
                let cost = json!({"amount": self.cost, "currency": "USD"});
                self.update(
                    &json!({"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": cost}),
                );
            } else if act["error"].is_object() {
                end = End::Error(act["error"].clone());
            } else if act["hang"] == true {
                // Until it is cancelled, or its input ends.
                loop {
                    match self.next() {
                        Some(message) if message["method"] == "session/cancel" => {
                            // As gemini, opencode and qwen do.
                            return match self.script["when_cancelled"].as_str() {
                                None => End::Turn("cancelled"),
                                Some("end") => End::Turn("end_turn"),
                                Some(_) => End::Error(
                                    json!({"code": -32603, "message": "Request was aborted."}),
                                ),
                            };
                        }
                        Some(_) => {}
                        None => exit(0),
                    }
                }
            } else if let Some(code) = act["exit"].as_i64() {
                exit(i32::try_from(code).expect("a code is small"));
            }
        }
        end
    }

    fn call(&mut self, command: &str, status: &str, output: &str) {
        self.calls += 1;
        let content = json!([{"type": "content", "content": {"type": "text", "text": output}}]);
        self.update(&json!({"sessionUpdate": "tool_call", "toolCallId": format!("c-{}", self.calls), "title": command,
            "kind": "execute", "status": status, "rawInput": {"command": command}, "content": content}));
    }

    /// Runs a command if it may. Returns whether it did.
    fn shell(&mut self, command: &str) -> bool {
        self.call(command, "pending", "");
        let id = format!("c-{}", self.calls);
        if self.script["asks"] != false {
            let options = [
                ("a", "allow_always"),
                ("y", "allow_once"),
                ("n", "reject_once"),
            ]
            .map(|(id, kind)| json!({"optionId": id, "name": id, "kind": kind}));
            let call = json!({"toolCallId": id, "title": command, "kind": "execute", "rawInput": {"command": command}});
            let params = json!({"sessionId": self.session, "toolCall": call, "options": options});
            self.send(&json!({"jsonrpc": "2.0", "id": self.calls, "method": "session/request_permission", "params": params}));
            let answer = loop {
                match self.next() {
                    Some(message) if message["id"] == self.calls => break message,
                    Some(_) => {}
                    None => exit(0),
                }
            };
            if answer["result"]["outcome"]["optionId"] != "y" {
                self.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed"}));
                return false;
            }
        }
        let ran = Command::new("sh")
            .args(["-c", command])
            .output()
            .expect("sh starts");
        let text = String::from_utf8_lossy(&ran.stdout).into_owned()
            + &String::from_utf8_lossy(&ran.stderr);
        let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
        let status = if ran.status.success() {
            "completed"
        } else {
            "failed"
        };
        self.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content}));
        true
    }
}
