//! Records an agent's activity while it runs, for watchers: `activity.json` in the run's folder.

use std::collections::HashMap;
use std::env::temp_dir;
use std::path::Path;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64;

use super::artifacts::Artifacts;
use super::launch::Launch;
use crate::prompt::head;
use crate::runner::forbidden::breaches;
use crate::runner::{AgentEvent, Nesting, RateWindow, may_change};
use tavern_core::activity::{Activity, Effect, PastCall, WindowUse};
use tavern_core::rule::{BoardRules, Breach};
use tavern_core::task::{Task, Timestamp};
use tavern_store::config::Does;
use tavern_sys::clock;

const FILE: &str = "activity.json";

/// Bytes of an agent's last words that are shown.
const MOST_SAID: usize = 150;

/// The tool shown for a task that runs on when its turn is over.
const BACKGROUND: &str = "background";

/// The least time between two writes.
const INTERVAL: Duration = Duration::from_secs(1);

/// Follows one agent.
pub(super) struct Following<'a> {
    artifacts: &'a Artifacts,
    rules: &'a BoardRules,
    worktree: &'a Path,
    activity: Activity,
    /// The calls that have not ended, by their IDs.
    open: HashMap<String, OpenToolCall>,
    written: Option<Instant>,
    has_news: bool,
}

struct OpenToolCall {
    tool: String,
    input: u64,
    /// The rules that it breaks if it succeeds.
    breaches: Vec<Breach>,
    began: Instant,
}

impl<'a> Following<'a> {
    /// Starts with a new agent. A program that does not report its actions, such as a script, is one long call.
    pub(super) fn begin(
        artifacts: &'a Artifacts,
        rules: &'a BoardRules,
        task: &Task,
        launch: &'a Launch<'_>,
    ) -> Following<'a> {
        let hears = launch.hears();
        let activity = Activity {
            watch: task.watch.clone(),
            parent: task.parent.clone(),
            limit: launch.job.limits.wall.map(|wall| wall.as_secs()),
            makes_changes: launch.role.does == Does::Work,
            hears,
            tool: (!hears).then(|| launch.metadata.runner.clone()),
            ..Activity::begin(clock::now())
        };
        let (worktree, open) = (&launch.worktree.path, HashMap::new());
        let mut following = Following {
            artifacts,
            rules,
            worktree,
            activity,
            open,
            written: None,
            has_news: true,
        };
        following.write();
        following
    }

    /// Returns the time until the next write.
    pub(super) fn patience(&self) -> Duration {
        let since = self.written.map_or(INTERVAL, |written| written.elapsed());
        if self.has_news {
            INTERVAL.saturating_sub(since)
        } else {
            Duration::MAX
        }
    }

    /// Takes `event` into account. Returns whether a rule was broken.
    pub(super) fn note(&mut self, event: &AgentEvent) -> bool {
        let before = self.activity.breaches.len();
        self.take(event);
        if self.activity.hears {
            let last = self.open.values().max_by_key(|call| call.began);
            self.activity.tool = last.map(|call| call.tool.clone());
        }
        self.activity.breaches.len() > before
    }

    fn take(&mut self, event: &AgentEvent) {
        let (now, activity) = (clock::now(), &mut self.activity);
        activity.seen = now;
        self.has_news = true;
        match event {
            AgentEvent::Text {
                text,
                nesting: Nesting::Main,
            } => activity.last_words = head(text.trim(), MOST_SAID),
            AgentEvent::ToolCall {
                id, name, input, ..
            } => {
                let digest = xxh3_64(input.to_string().as_bytes());
                let breaches = breaches(self.rules, [self.worktree, &temp_dir()], name, input);
                let call = OpenToolCall {
                    tool: name.clone(),
                    input: digest,
                    breaches,
                    began: clock::instant(),
                };
                self.open.insert(id.clone(), call);
            }
            AgentEvent::ToolResult { id, ok, .. } => {
                let Some(OpenToolCall {
                    tool,
                    input,
                    breaches,
                    began,
                }) = self.open.remove(id)
                else {
                    return;
                };
                if *ok {
                    activity.broke(breaches);
                }
                let effect = if may_change(&tool) {
                    Effect::Change
                } else {
                    Effect::Look
                };
                let seconds = began.elapsed().as_secs();
                activity.ended(
                    PastCall {
                        tool,
                        input,
                        ok: *ok,
                        seconds,
                        got_on: false,
                    },
                    effect,
                    now,
                );
            }
            AgentEvent::TaskStarted { id, .. } => {
                let call = OpenToolCall {
                    tool: BACKGROUND.to_owned(),
                    input: 0,
                    breaches: Vec::new(),
                    began: clock::instant(),
                };
                self.open.insert(id.clone(), call);
            }
            AgentEvent::TaskEnded { id } => {
                self.open.remove(id);
            }
            AgentEvent::RateLimit { windows, .. } if !windows.is_empty() => {
                let use_of = |window: &RateWindow| {
                    let resets_at = Timestamp::from_timestamp(window.resets_at, 0)?;
                    Some(WindowUse {
                        used: window.used,
                        resets_at,
                    })
                };
                activity.windows = windows.iter().filter_map(use_of).collect();
            }
            AgentEvent::Spent { usage } => {
                (activity.output, activity.usd) = (usage.output, usage.usd);
            }
            AgentEvent::Turn(turn) => {
                (activity.output, activity.usd) = (turn.usage.output, turn.usage.usd);
                self.open.retain(|_, open| open.tool == BACKGROUND);
            }
            _ => {}
        }
    }

    /// Writes news, if due. Errors are ignored: they affect only watchers.
    pub(super) fn write(&mut self) {
        if self.patience().is_zero() {
            self.end();
        }
    }

    /// Writes the current state.
    pub(super) fn end(&mut self) {
        let text = serde_json::to_string(&self.activity).expect("it is plain data");
        drop(self.artifacts.write(FILE, &(text + "\n")));
        (self.written, self.has_news) = (Some(clock::instant()), false);
    }
}

/// Returns the activity of a run's agent, from its artifacts; `None` if it can't be read.
pub fn activity_of(artifacts: &Artifacts) -> Option<Activity> {
    serde_json::from_str(&artifacts.read(FILE)).ok()
}
