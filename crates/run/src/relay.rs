//! The relay: passes other agents' new learnings to a running agent between two of its steps, if they concern its item.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::knowledge::message_for;
use super::prompt_context::PromptContext;
use super::record::Metadata;
use super::workspace::Workspace;
use crate::runner::Session;
use tavern_core::event::Kind;
use tavern_core::learning::Learning;
use tavern_core::task::{Task, Timestamp};
use tavern_store::walk_log;
use tavern_sys::clock;
use tavern_sys::secrets::redact;

/// An agent gets at most so many learnings per interval.
const MOST: usize = 5;
const INTERVAL: Duration = Duration::from_secs(60);

/// Follows the learnings of other agents while one agent runs.
pub(super) struct Relay<'a> {
    workspace: &'a Workspace,
    task: &'a Task,
    run: String,
    /// Older learnings were known when the prompt was written.
    since: Timestamp,
    /// The last event of the log that was read.
    seen: u64,
    /// There may be something to pass on.
    has_news: bool,
    /// The learnings in the prompt, and those passed on since.
    known: HashSet<String>,
    /// Learnings and the words in which they were sent, not read by the agent yet.
    delivered: Vec<(String, String)>,
    /// When the latest ones were sent.
    times: VecDeque<Instant>,
}

impl<'a> Relay<'a> {
    /// Begins the relay for an agent that starts now with the prompt of `brief`.
    pub(super) fn begin(
        workspace: &'a Workspace,
        task: &'a Task,
        run: &Metadata,
        brief: &PromptContext<'_>,
    ) -> Relay<'a> {
        let known = run.knowledge.iter().cloned().collect();
        let (since, seen) = (clock::whole_seconds(run.started.into()), brief.seen());
        let (has_news, delivered, times) = Default::default();
        Relay {
            workspace,
            task,
            run: run.run.clone(),
            since,
            seen,
            has_news,
            known,
            delivered,
            times,
        }
    }

    /// Looks for new learnings after something was logged.
    pub(super) fn look(&mut self) {
        let seen = self.seen;
        // If the log can't be read now, the next event reads it.
        drop(walk_log(&self.workspace.board, None, &mut |entry| {
            let is_new = entry.seq > seen;
            self.seen = self.seen.max(entry.seq);
            self.has_news |= is_new && entry.kind == Kind::Learned;
            is_new
        }));
    }

    /// Returns how long there is nothing to pass on.
    pub(super) fn patience(&self) -> Duration {
        if self.has_news {
            self.pause()
        } else {
            Duration::MAX
        }
    }

    /// Returns the time until one more may be passed on.
    fn pause(&self) -> Duration {
        let first = self.times.front().filter(|_| self.times.len() == MOST);
        first.map_or(Duration::ZERO, |first| {
            INTERVAL.saturating_sub(first.elapsed())
        })
    }

    /// Passes on new learnings that concern the item, in the words of `brief`, as far as the limit allows.
    pub(super) fn pass_on(&mut self, brief: &PromptContext<'_>, session: &mut Session) {
        if !self.patience().is_zero() {
            return;
        }
        let is_new = |id: &str, learning: &Learning| {
            learning.created >= self.since
                && learning.run.as_ref() != Some(&self.run)
                && !self.known.contains(id)
        };
        let mut found = message_for(self.workspace, self.task, is_new).collect::<VecDeque<_>>();
        while self.pause().is_zero()
            && let Some(learned) = found.pop_front()
        {
            let id = learned.id.clone();
            self.known.insert(id.clone());
            // A learning that can't be phrased or delivered is left to the prompt of the next run.
            let Ok(words) = brief
                .relayed(learned)
                .map(|words| redact(&words).into_owned())
            else {
                continue;
            };
            if session.say(&words) {
                self.delivered.push((id, words));
                self.times.push_back(clock::instant());
                self.times.drain(..self.times.len().saturating_sub(MOST));
            }
        }
        self.has_news = !found.is_empty();
    }

    /// Returns the learning that the agent has read with these words; `None` if it is none of these.
    pub(super) fn read(&mut self, words: &str) -> Option<String> {
        let place = self
            .delivered
            .iter()
            .position(|(_, delivered)| delivered == words)?;
        Some(self.delivered.remove(place).0)
    }
}
