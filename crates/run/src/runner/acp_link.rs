//! The client's side of the Agent Client Protocol (JSON-RPC over standard input and output, version 1), as far as
//! unattended work needs it: the program reads files and runs commands itself.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use super::acp_lines::{AcpLines, answered, is_auth, numbered, option_of};
use super::conversation::{Link, Urgency, Wire};
use super::event::AgentEvent;
use super::job::{Job, Opening};
use super::permission::Leave;
use super::programs::Counting;
use super::provider;
use super::reading::Reading;
use super::tool_rules::ToolRules;
use tavern_sys::clock;

/// The version of the protocol.
const VERSION: u64 = 1;

/// How a program is spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcpSettings {
    /// The mode to work in; `None`: the one that sessions begin in.
    pub mode: Option<String>,
    /// How it signs in if it asks for that, in this order: methods that it may offer.
    pub sign_in: Vec<String>,
    /// Whether it gets the model on its command line.
    pub is_given_model: bool,
    /// The usage in the answer to a prompt.
    pub counts: Counting,
    pub rules: ToolRules,
}

pub(super) struct AcpLink {
    job: Job,
    settings: AcpSettings,
    lines: AcpLines,
    /// The ways of signing in that are left to try.
    sign_in: VecDeque<String>,
    /// Requests that set up the session, in order.
    set_up: VecDeque<(&'static str, Value)>,
    /// Whether the session can be continued by a later run.
    is_kept: bool,
    /// The request that opens the session.
    opening: &'static str,
    is_ready: bool,
    is_working: bool,
    /// Whether the current turn was cancelled from here.
    is_cancelled: bool,
    prompts: u32,
    /// Messages for the next turn.
    waiting: VecDeque<String>,
    /// Events of a turn that was begun outside of `read`.
    begun: Vec<AgentEvent>,
    /// The options of open requests for permission: one allows the call, one rejects it.
    options: HashMap<String, [Option<String>; 2]>,
}

impl AcpLink {
    pub(super) fn of(job: &Job, settings: AcpSettings) -> AcpLink {
        let resumed = (job.opening == Opening::Resumed).then(|| job.session.clone());
        AcpLink {
            lines: AcpLines::of(resumed, &job.before, settings.counts),
            sign_in: settings.sign_in.iter().cloned().collect(),
            set_up: VecDeque::new(),
            is_kept: false,
            opening: "session/new",
            is_ready: false,
            is_working: false,
            is_cancelled: false,
            prompts: 0,
            waiting: VecDeque::from([job.prompt.clone()]),
            begun: Vec::new(),
            options: HashMap::new(),
            job: job.clone(),
            settings,
        }
    }

    fn open_session(&self, wire: &Wire) {
        let mut params = json!({"cwd": self.job.worktree, "mcpServers": []});
        if self.opening != "session/new" {
            params["sessionId"] = json!(self.job.session);
        }
        wire.send(&request(self.opening, &params));
    }

    /// Reacts to the answer to a request. Returns an error that ends the run.
    fn answered(&mut self, method: &str, value: &Value, wire: &Wire) -> Result<(), String> {
        let result = &value["result"];
        match method {
            "initialize" => {
                let version = &result["protocolVersion"];
                if *version != VERSION {
                    return Err(format!(
                        "it speaks version {version} of the Agent Client Protocol, not {VERSION}"
                    ));
                }
                let able = &result["agentCapabilities"];
                let resumes = able["sessionCapabilities"]["resume"].is_object();
                let loads = able["loadSession"] == true;
                self.is_kept = resumes || loads;
                let offered: HashSet<&str> = result["authMethods"]
                    .as_array()
                    .map_or(&[][..], Vec::as_slice)
                    .iter()
                    .filter_map(|method| method["id"].as_str())
                    .collect();
                self.sign_in
                    .retain(|method| offered.contains(method.as_str()));
                self.opening = match self.job.opening {
                    Opening::New => "session/new",
                    // qwen offers to resume, and can't. The replay of a load is not counted.
                    Opening::Resumed if resumes && !loads => "session/resume",
                    Opening::Resumed => "session/load",
                };
                self.open_session(wire);
            }
            "authenticate" => self.open_session(wire),
            "session/new" | "session/load" | "session/resume" => {
                self.prepare(result)?;
                self.go_on(wire);
            }
            "session/set_mode" | "session/set_model" | "session/set_config_option" => {
                self.go_on(wire);
            }
            _ => {}
        }
        Ok(())
    }

    /// Plans the requests that set mode and model of the session that was just opened.
    fn prepare(&mut self, opened: &Value) -> Result<(), String> {
        let model = self
            .job
            .model
            .clone()
            .filter(|_| !self.settings.is_given_model);
        let wanted = [
            (
                "mode",
                self.settings.mode.clone(),
                "modes",
                "availableModes",
                "id",
                "currentModeId",
            ),
            (
                "model",
                model,
                "models",
                "availableModels",
                "modelId",
                "currentModelId",
            ),
        ];
        for (category, wanted, list, all, id, now) in wanted {
            let Some(wanted) = wanted else { continue };
            let option = option_of(opened, category);
            let offered = option.map_or((&opened[list][all], id), |option| {
                (&option["options"], "value")
            });
            let offered: Vec<&str> = offered
                .0
                .as_array()
                .map_or(&[][..], Vec::as_slice)
                .iter()
                .flat_map(|one| {
                    one["options"]
                        .as_array()
                        .map_or(std::slice::from_ref(one), Vec::as_slice)
                })
                .filter_map(|one| one[offered.1].as_str())
                .collect();
            let current = option.map_or(&opened[list][now], |option| &option["currentValue"]);
            if *current == wanted {
                continue;
            }
            let is_same = |one: &&&str| **one == wanted;
            // Some programs name a model together with its provider.
            let is_of = |one: &&&str| one.split(['(', '|', '/']).any(|part| part == wanted);
            let found = offered
                .iter()
                .find(is_same)
                .or_else(|| offered.iter().find(is_of));
            let Some(found) = found else {
                return Err(format!(
                    "it has no {category} `{wanted}`; it has {}",
                    offered.join(", ")
                ));
            };
            let session = self.lines.session.clone();
            self.set_up.push_back(match option {
                Some(option) => (
                    "session/set_config_option",
                    json!({"sessionId": session, "configId": option["id"], "value": found}),
                ),
                None if category == "mode" => (
                    "session/set_mode",
                    json!({"sessionId": session, "modeId": found}),
                ),
                None => (
                    "session/set_model",
                    json!({"sessionId": session, "modelId": found}),
                ),
            });
        }
        Ok(())
    }

    /// Sends the next request that sets up the session, else the prompt.
    fn go_on(&mut self, wire: &Wire) {
        match self.set_up.pop_front() {
            Some((method, params)) => {
                wire.send(&request(method, &params));
            }
            None => {
                self.is_ready = true;
                self.begin_turn(wire);
            }
        }
    }

    /// Sends all waiting messages. Returns false if the program reads no more.
    fn begin_turn(&mut self, wire: &Wire) -> bool {
        let texts: Vec<String> = self.waiting.drain(..).collect();
        let parts: Vec<Value> = texts
            .iter()
            .map(|text| json!({"type": "text", "text": text}))
            .collect();
        let params = json!({"sessionId": self.lines.session, "prompt": parts});
        self.prompts += 1;
        self.is_working = true;
        self.is_cancelled = false;
        self.lines.was_refused = false;
        if self.prompts > 1 {
            self.begun.push(AgentEvent::Started {
                session: self.lines.session.clone().unwrap_or_default(),
                model: None,
            });
        }
        let delivered = texts.into_iter().map(|text| AgentEvent::Delivered { text });
        self.begun.extend(delivered);
        let mut prompt = request("session/prompt", &params);
        prompt["id"] = json!(numbered("session/prompt", self.prompts));
        wire.send(&prompt)
    }

    fn cancel(&mut self, wire: &Wire) {
        if self.is_working {
            self.is_cancelled = true;
            let params = json!({"sessionId": self.lines.session});
            wire.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
        }
    }

    /// Returns the events of an answer, and reacts to it.
    fn take_answer(&mut self, method: &str, value: &Value, wire: &Wire) -> Vec<AgentEvent> {
        let cancelled;
        // opencode then calls it the end of a turn, and qwen an error.
        let value = if method == "session/prompt" && self.is_cancelled {
            let mut result = value["result"].clone();
            result["stopReason"] = json!("cancelled");
            cancelled = json!({"jsonrpc": "2.0", "id": value["id"], "result": result});
            self.lines.was_refused = false;
            &cancelled
        } else {
            value
        };
        let opens = method == self.opening;
        if opens
            && is_auth(&value["error"])
            && let Some(by) = self.sign_in.pop_front()
        {
            wire.send(&request("authenticate", &json!({"methodId": by})));
            return Vec::new();
        }
        let mut events = Vec::new();
        if value["error"].is_object() {
            let said = provider::message(&value["error"]);
            let details = value["error"].to_string();
            let until = provider::limit_ends(&said, clock::now())
                .or_else(|| provider::limit_ends(&details.replace('\\', ""), clock::now()));
            if let Some(until) = until {
                events.push(AgentEvent::RateLimit {
                    status: "rejected".to_owned(),
                    resets_at: Some(until.timestamp()),
                    windows: Vec::new(),
                });
            }
        }
        events.extend(self.lines.read(value));
        if method == "session/prompt" {
            self.is_working = false;
        }
        if value["error"].is_object() {
            return events;
        }
        if let Err(why) = self.answered(method, value, wire) {
            events.extend(self.lines.read(&failed(&why)));
        }
        if method == "session/prompt" && !self.waiting.is_empty() {
            self.begin_turn(wire);
        }
        events.append(&mut self.begun);
        events
    }
}

impl Link for AcpLink {
    fn open(&mut self, wire: &Wire) {
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
            "clientInfo": {"name": "tavern", "version": env!("CARGO_PKG_VERSION")},
        });
        wire.send(&request("initialize", &params));
    }

    fn read(&mut self, line: &str, wire: &Wire) -> Vec<AgentEvent> {
        let mut events = std::mem::take(&mut self.begun);
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return events;
        };
        if let Some(method) = answered(&value) {
            let method = method.to_owned();
            events.extend(self.take_answer(&method, &value, wire));
            return events;
        }
        if value["method"] == "session/request_permission" {
            let all = value["params"]["options"].as_array();
            let option = |kinds: [&str; 2]| {
                let of = |kind| all?.iter().find(|option| option["kind"] == kind);
                let found = kinds.into_iter().find_map(of)?;
                found["optionId"].as_str().map(str::to_owned)
            };
            // Never for longer than this call: Tavern's rules decide on each.
            let options = [
                option(["allow_once", "allow_always"]),
                option(["reject_once", "reject_always"]),
            ];
            self.options.insert(value["id"].to_string(), options);
        } else if !value["id"].is_null() && value["method"].is_string() {
            let error = json!({"code": -32601, "message": "not supported"});
            wire.send(&json!({"jsonrpc": "2.0", "id": value["id"], "error": error}));
        }
        events.extend(self.lines.read(&value));
        events
    }

    /// Messages are read between two turns only.
    fn say(&mut self, text: &str, urgency: Urgency, wire: &Wire) -> bool {
        self.waiting.push_back(text.to_owned());
        if !self.is_ready {
            return wire.is_open();
        }
        if !self.is_working {
            return self.begin_turn(wire);
        }
        if urgency == Urgency::Now {
            self.cancel(wire);
        }
        wire.is_open()
    }

    fn ruled(&self, tool: &str, input: &Value) -> Option<Leave> {
        self.settings
            .rules
            .leave(&self.job.forbids, &self.job.worktree, tool, input)
    }

    fn reply(&mut self, request: &str, _input: &Value, is: Leave, wire: &Wire) {
        let [allows, rejects] = self.options.remove(request).unwrap_or_default();
        self.lines.was_refused |= is != Leave::Given;
        let option = if is == Leave::Given { allows } else { rejects };
        let outcome = option.map_or_else(
            || json!({"outcome": "cancelled"}),
            |option| json!({"outcome": "selected", "optionId": option}),
        );
        let id: Value = serde_json::from_str(request).unwrap_or_default();
        wire.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}));
    }

    fn interrupt(&mut self, wire: &Wire) {
        self.cancel(wire);
    }

    fn awaits_model(&self) -> bool {
        self.is_working && self.lines.awaits_model()
    }

    /// The protocol has no end of a session; most programs end with their input.
    fn linger(&self) -> Duration {
        Duration::from_secs(3)
    }

    fn session(&self, _reading: &Reading) -> Option<String> {
        self.lines
            .session
            .clone()
            .filter(|_| self.is_kept && self.prompts > 0)
    }
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
}

/// Returns the line of a program that can't go on.
fn failed(why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "initialize", "error": {"code": 404, "message": why}})
}
