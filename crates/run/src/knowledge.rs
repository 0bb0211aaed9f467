//! Learnings of people and agents: their sources, and those that an agent receives from others.

use super::error::Error;
use super::trust::{Trust, learned_here};
use super::workspace::Workspace;
use crate::prompt::{Learned, PromptLimits};
use tavern_core::learning::{Learning, LearningKind, expiry};
use tavern_core::period::Period;
use tavern_core::task::{Task, TaskId};
use tavern_sys::clock;
use tavern_sys::secrets::redact;

/// The source of a learning: its author and its work.
pub struct Source {
    by: String,
    task: Option<TaskId>,
    parent: Option<TaskId>,
    run: Option<String>,
    commit: Option<String>,
}

impl Source {
    /// Returns the source for `by` in the work on `task`: as the agent of `run`, or as a person.
    pub fn of(
        workspace: &Workspace,
        by: String,
        task: Option<TaskId>,
        run: Option<String>,
    ) -> Source {
        let parent = task
            .as_ref()
            .and_then(|task| workspace.board.task(task).ok()?.task.parent);
        let work = task
            .as_ref()
            .filter(|_| run.is_some())
            .and_then(|task| workspace.board.lease(task).ok()??.work);
        let tip = work.and_then(|work| {
            workspace
                .repository()
                .ok()?
                .branch_tip(&work.branch?)
                .ok()?
        });
        Source {
            by,
            task,
            parent,
            run,
            commit: tip.map(|tip| tip.as_str().to_owned()),
        }
    }

    /// Returns a learning of this source, created now.
    pub fn learning(
        self,
        kind: LearningKind,
        tags: Vec<String>,
        scope: Vec<String>,
        text: &str,
        lifetime: Period,
    ) -> Learning {
        let Source {
            by,
            task,
            parent,
            run,
            commit,
        } = self;
        // The file has whole seconds.
        let created = clock::whole_seconds(clock::now().into());
        let (expires, text) = (expiry(created, lifetime), redact(text).into_owned());
        Learning {
            kind,
            tags,
            scope,
            by,
            task,
            parent,
            run,
            commit,
            created,
            expires,
            superseded_by: None,
            text,
        }
    }
}

/// Records `learning` as made here, and returns its ID; `None` if its run has reached its limit.
///
/// # Errors
/// The board can't be written.
pub fn make_known(workspace: &Workspace, learning: &Learning) -> Result<Option<String>, Error> {
    // Trust it before others can read it.
    learned_here(&workspace.board, learning);
    Ok(workspace.board.learn(learning)?)
}

/// Returns the newest learnings that concern `task`, are valid now and are trusted here, newest first.
pub(super) fn known_of(workspace: &Workspace, task: &Task) -> Vec<Learned> {
    message_for(workspace, task, |_, _| true)
        .rev()
        .take(PromptLimits::default().learnings)
        .collect()
}

/// Returns the `wanted` learnings that concern `task`, are valid now and are trusted here, oldest first.
pub(super) fn message_for(
    workspace: &Workspace,
    task: &Task,
    wanted: impl Fn(&str, &Learning) -> bool,
) -> impl DoubleEndedIterator<Item = Learned> {
    let (now, trust) = (clock::now(), Trust::of(workspace));
    workspace
        .board
        .knowledge()
        .into_iter()
        .filter_map(move |file| {
            let is_told = |learning: &Learning| {
                learning.is_valid(now) && learning.concerns(task) && wanted(&file.id, learning)
            };
            let learning = file.learning.ok().filter(is_told)?;
            trust.learning(&file.id, &learning).ok()?;
            Some(Learned {
                id: file.id,
                kind: learning.kind.as_str().to_owned(),
                // It is part of a mark.
                from: learning.source().replace(['"', '<', '>', '\n'], " "),
                task: learning.task.map(|task| task.to_string()),
                run: learning.run,
                date: clock::day_of(learning.created),
                text: learning.text,
            })
        })
}
