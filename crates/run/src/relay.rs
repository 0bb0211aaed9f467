//! The relay: what others find out while an agent runs is told to it between two of its steps, where it concerns its item.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::brief::Brief;
use super::knowledge::told_of;
use super::record::Metadata;
use super::site::Site;
use crate::runner::Session;
use tavern_core::event::Kind;
use tavern_core::learning::Learning;
use tavern_core::task::{Task, Timestamp};
use tavern_store::walk_log;
use tavern_sys::clock;
use tavern_sys::secrets::redact;

/// So many learnings are the most that an agent is told in so long a time.
const MOST: usize = 5;
const INTERVAL: Duration = Duration::from_secs(60);

/// Follows what others find out while one agent runs.
pub(super) struct Relay<'a> {
    site: &'a Site,
    task: &'a Task,
    run: String,
    /// What is older was known when its prompt was written.
    since: Timestamp,
    /// The last event of the log that was looked at.
    seen: u64,
    /// There may be something to tell.
    has_news: bool,
    /// What its prompt has, and what it was told since.
    known: HashSet<String>,
    /// Learnings that were handed over in these words, and not yet read.
    said: Vec<(String, String)>,
    /// When the latest ones were handed over.
    times: VecDeque<Instant>,
}

impl<'a> Relay<'a> {
    /// Of an agent that begins now with the prompt of `brief`.
    pub(super) fn begin(
        site: &'a Site,
        task: &'a Task,
        run: &Metadata,
        brief: &Brief<'_>,
    ) -> Relay<'a> {
        let known = run.knowledge.iter().cloned().collect();
        let (since, seen) = (clock::whole_seconds(run.started.into()), brief.seen());
        let (has_news, said, times) = Default::default();
        Relay {
            site,
            task,
            run: run.run.clone(),
            since,
            seen,
            has_news,
            known,
            said,
            times,
        }
    }

    /// Something was logged: sees whether anybody has found out something.
    pub(super) fn look(&mut self) {
        let seen = self.seen;
        // What can't be read now is looked at with the next event.
        drop(walk_log(&self.site.board, None, &mut |entry| {
            let is_new = entry.seq > seen;
            self.seen = self.seen.max(entry.seq);
            self.has_news |= is_new && entry.kind == Kind::Learned;
            is_new
        }));
    }

    /// How long there is nothing to hand over.
    pub(super) fn patience(&self) -> Duration {
        if self.has_news {
            self.pause()
        } else {
            Duration::MAX
        }
    }

    /// Until it may be told of one more.
    fn pause(&self) -> Duration {
        let first = self.times.front().filter(|_| self.times.len() == MOST);
        first.map_or(Duration::ZERO, |first| {
            INTERVAL.saturating_sub(first.elapsed())
        })
    }

    /// Hands over what is new and concerns the item, in the words of `brief`, as far as it may be now.
    pub(super) fn pass_on(&mut self, brief: &Brief<'_>, session: &mut Session) {
        if !self.patience().is_zero() {
            return;
        }
        let is_new = |id: &str, learning: &Learning| {
            learning.created >= self.since
                && learning.run.as_ref() != Some(&self.run)
                && !self.known.contains(id)
        };
        let mut found = told_of(self.site, self.task, is_new).collect::<VecDeque<_>>();
        while self.pause().is_zero()
            && let Some(learned) = found.pop_front()
        {
            let id = learned.id.clone();
            self.known.insert(id.clone());
            // What can't be put into words, or is heard no more, is told to its successor.
            let Ok(words) = brief
                .relayed(learned)
                .map(|words| redact(&words).into_owned())
            else {
                continue;
            };
            if session.say(&words) {
                self.said.push((id, words));
                self.times.push_back(clock::instant());
                self.times.drain(..self.times.len().saturating_sub(MOST));
            }
        }
        self.has_news = !found.is_empty();
    }

    /// The learning that the agent has read with these words; `None` if it was none of these.
    pub(super) fn read(&mut self, words: &str) -> Option<String> {
        let place = self.said.iter().position(|(_, said)| said == words)?;
        Some(self.said.remove(place).0)
    }
}
