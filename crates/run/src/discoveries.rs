//! Records the discoveries that an agent prints during its run for others, as `tavern learn` does.

use std::collections::HashSet;

use super::knowledge::{Source, make_known};
use super::launch::Launch;
use super::record::run_name;
use super::workspace::Workspace;
use crate::prompt::PromptLimits;
use crate::runner::{AgentEvent, MendedCommands, discoveries};
use tavern_core::learning::{LIFETIME, LearningKind};
use tavern_store::{Claimed, KnowledgeFile, MOST_OF_RUN};
use tavern_sys::clock;

/// Follows one agent.
pub(super) struct Discoveries<'a> {
    workspace: &'a Workspace,
    held: &'a Claimed,
    /// False if the program only prints: then its agent's words can't be distinguished from text that it has read.
    has_own_words: bool,
    said: HashSet<String>,
    commands: MendedCommands,
}

impl<'a> Discoveries<'a> {
    /// Starts with a new agent.
    pub(super) fn begin(
        workspace: &'a Workspace,
        held: &'a Claimed,
        launch: &Launch<'_>,
    ) -> Discoveries<'a> {
        let (said, commands) = Default::default();
        Discoveries {
            workspace,
            held,
            has_own_words: launch.hears(),
            said,
            commands,
        }
    }

    /// Records its discoveries, and those that its commands show. Errors are ignored.
    pub(super) fn note(&mut self, event: &AgentEvent) {
        if !self.has_own_words {
            return;
        }
        for said in discoveries(event) {
            self.found(LearningKind::Learning, said);
        }
        if let Some(shown) = self.commands.note(event) {
            self.found(LearningKind::ErrorResolution, &shown);
        }
    }

    fn found(&mut self, kind: LearningKind, said: &str) {
        let is_bounded =
            said.len() <= PromptLimits::default().note && self.said.len() < MOST_OF_RUN;
        if is_bounded && self.said.insert(said.to_owned()) {
            self.keep(kind, said);
        }
    }

    /// Records it for items that share its tags, paths or parent, unless it is known.
    fn keep(&self, kind: LearningKind, said: &str) {
        let Claimed { task, lease, .. } = self.held;
        let run = run_name(&task.id, lease.token);
        let source = Source::of(
            self.workspace,
            lease.agent.clone(),
            Some(task.id.clone()),
            Some(run),
        );
        let (tags, scope) = (task.tags.clone(), task.touches.clone());
        let learning = source.learning(kind, tags, scope, said, LIFETIME);
        let is_known = |file: &KnowledgeFile| {
            let same = file
                .learning
                .as_ref()
                .ok()
                .filter(|known| known.text == learning.text);
            same.is_some_and(|known| known.run == learning.run || known.is_valid(clock::now()))
        };
        if !self.workspace.board.knowledge().iter().any(is_known) {
            drop(make_known(self.workspace, &learning));
        }
    }
}
