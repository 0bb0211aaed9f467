//! What the agent of a run says that it has found out: noted for others, as by `tavern learn`.

use std::collections::HashSet;

use super::knowledge::{Source, make_known};
use super::launch::Launch;
use super::record::run_name;
use super::site::Site;
use crate::board::learning::{LIFETIME, LearningKind};
use crate::clock;
use crate::prompt::PromptLimits;
use crate::runner::{AgentEvent, discoveries};
use crate::store::{Claimed, KnowledgeFile, MOST_OF_RUN};

/// Follows one agent.
pub(super) struct Discoveries<'a> {
    site: &'a Site,
    held: &'a Claimed,
    /// Of a program that only prints nobody knows which words are its own, and which it has read.
    has_own_words: bool,
    said: HashSet<String>,
}

impl<'a> Discoveries<'a> {
    /// Of an agent that begins now.
    pub(super) fn begin(site: &'a Site, held: &'a Claimed, launch: &Launch<'_>) -> Discoveries<'a> {
        Discoveries { site, held, has_own_words: launch.hears(), said: HashSet::new() }
    }

    /// Notes what it says. A board that can't be written now does without.
    pub(super) fn note(&mut self, event: &AgentEvent) {
        for said in discoveries(event).into_iter().filter(|_| self.has_own_words) {
            let is_bounded = said.len() <= PromptLimits::default().note && self.said.len() < MOST_OF_RUN;
            if is_bounded && self.said.insert(said.to_owned()) {
                self.keep(said);
            }
        }
    }

    /// For the agents of items with a tag, a path or a parent of its own, unless it is known.
    fn keep(&self, said: &str) {
        let Claimed { task, lease, .. } = self.held;
        let run = run_name(&task.id, lease.token);
        let source = Source::of(self.site, lease.agent.clone(), Some(task.id.clone()), Some(run));
        let (tags, scope) = (task.tags.clone(), task.touches.clone());
        let learning = source.learning(LearningKind::Learning, tags, scope, said, LIFETIME);
        let is_known = |file: &KnowledgeFile| {
            let same = file.learning.as_ref().ok().filter(|known| known.text == learning.text);
            same.is_some_and(|known| known.run == learning.run || known.is_valid(clock::now()))
        };
        if !self.site.board.knowledge().iter().any(is_known) {
            drop(make_known(self.site, &learning));
        }
    }
}
