//! Finds unmerged work of items, so that a person can look at it. Skips unreadable work.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use super::error::Error;
use super::record::last_token;
use super::workspace::{ITEM_BRANCHES, SALVAGED, Workspace};
use tavern_core::eligible::NotReady;
use tavern_core::state::is_hex;
use tavern_core::task::{Status, Task, TaskId};
use tavern_git::{CommitId, GitError, Head, Repository, UNSHALLOW};
use tavern_store::config::Config;
use tavern_store::{Board, ItemIndex};
use tavern_sys::process::quoted;

/// The work that a repository keeps of items that did not end completed.
pub struct Unmerged<'r> {
    repository: &'r Repository,
    /// All salvage refs, with their commits.
    salvaged: Vec<(String, CommitId)>,
    /// The commit where merged work is, or would be.
    tip: Option<CommitId>,
}

impl<'r> Unmerged<'r> {
    /// Looks once for all items. `integration` is the branch that work is merged into.
    pub fn of(repository: &'r Repository, integration: &str) -> Unmerged<'r> {
        let head = || repository.head().ok().and_then(Head::commit);
        let tip = repository
            .branch_tip(integration)
            .ok()
            .flatten()
            .or_else(head);
        Unmerged {
            repository,
            salvaged: repository.references(SALVAGED).unwrap_or_default(),
            tip,
        }
    }

    /// Returns the commit where merged work is, or would be.
    pub fn tip(&self) -> Option<&CommitId> {
        self.tip.as_ref()
    }

    /// Returns the item's branch if it has unmerged work, then the newest salvage ref; as git takes them.
    pub fn places(&self, task: &TaskId) -> Vec<String> {
        let branch = format!("tavern/{task}");
        let own = self.repository.branch_tip(&branch).ok().flatten();
        let folder = format!("{SALVAGED}{task}/");
        let token = |name: &str| {
            name.strip_prefix(&folder)
                .and_then(|token| token.parse::<u64>().ok())
        };
        let salvaged = self
            .salvaged
            .iter()
            .filter(|(name, _)| token(name).is_some());
        let last = salvaged
            .max_by_key(|(name, _)| token(name))
            .map(|(name, commit)| (name.clone(), commit));
        let mut places = Vec::new();
        let mut known: Vec<&CommitId> = self.tip.iter().collect();
        for (name, commit) in own
            .as_ref()
            .map(|commit| (branch, commit))
            .into_iter()
            .chain(last)
        {
            if !known
                .iter()
                .any(|other| self.repository.is_ancestor(commit, other).unwrap_or(false))
            {
                known.push(commit);
                places.push(name);
            }
        }
        places
    }
}

/// Returns the findings of `look` in the kept work. Only for display: unreadable settings are ignored.
pub fn kept(board: &Board, look: impl FnOnce(&Unmerged<'_>) -> Vec<String>) -> Vec<String> {
    let integration = Config::load(board.dir())
        .unwrap_or_default()
        .integration
        .branch;
    let Ok(repository) = Repository::discover(board.root()) else {
        return Vec::new();
    };
    look(&Unmerged::of(&repository, &integration))
}

impl Unmerged<'_> {
    /// Returns the items that may have kept work.
    pub fn tasks(&self) -> BTreeSet<TaskId> {
        let salvaged = self
            .salvaged
            .iter()
            .filter_map(|(name, _)| name.split('/').nth(3)?.parse().ok());
        let branches = self.repository.branches(ITEM_BRANCHES).unwrap_or_default();
        salvaged
            .chain(
                branches
                    .iter()
                    .filter_map(|name| name.strip_prefix(ITEM_BRANCHES)?.parse().ok()),
            )
            .collect()
    }

    /// Returns the places of unmerged work on the item, in any status.
    pub fn of_item(&self, board: &Board, task: &Task) -> Vec<String> {
        if task.status() == Status::Completed {
            self.beside(board, &task.id)
        } else {
            self.places(&task.id)
        }
    }

    /// Returns the kept work of the last run of an item that was completed without it, such as in another clone. The
    /// last run has seen the work of earlier ones.
    pub fn beside(&self, board: &Board, task: &TaskId) -> Vec<String> {
        let Ok(last) = last_token(board, task) else {
            return Vec::new();
        };
        let mut places = self.places(task);
        places.retain(|place| !place.starts_with(SALVAGED) || place.ends_with(&format!("/{last}")));
        places
    }
}

/// Returns why no work can begin that depends on `task`, which is completed: it was merged in another clone, or the
/// integration branch was moved or has reverted it. Work found once is not looked up again by this process.
pub fn missing_work(
    workspace: &Workspace,
    task: &TaskId,
    index: &ItemIndex<'_>,
) -> Option<NotReady> {
    let found = || {
        workspace
            .found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    };
    if found().contains(task) {
        return None;
    }
    // An unknown state is no obstacle, and an item that is not completed yet is looked up later.
    let missing = look_for(workspace, task, &index.commit_of(task)?).ok()?;
    if missing.is_none() {
        found().insert(task.clone());
    }
    missing
}

fn look_for(workspace: &Workspace, task: &TaskId, commit: &str) -> Result<Option<NotReady>, Error> {
    let (repository, branch) = (workspace.repository()?, workspace.integration());
    // Quoted for a shell.
    let name = quoted(branch);
    let work = repository.commit_of(commit)?;
    if work.is_none() && !is_hex(commit) {
        return Ok(None);
    }
    if let Some(work) = &work {
        // The branch will get all of its base.
        for tip in workspace
            .integration_tip()?
            .into_iter()
            .chain([workspace.base()?.1])
        {
            match repository.lacks(&tip, work) {
                Err(error @ GitError::Shallow { .. }) => {
                    return Ok(Some(NotReady::from(Error::from(error))));
                }
                Err(error) => return Err(error.into()),
                Ok(false) => return Ok(None),
                Ok(true) => {}
            }
        }
    }
    if let (Some(work), Some(tip)) = (&work, workspace.integration_tip()?)
        && let Some(revert) = repository.taken_back(work, &tip)?
    {
        let revert = revert.short();
        let hint = format!(
            "git switch {name} && git revert {revert}; or have it done again: reopen {task}"
        );
        let message =
            format!("the work of {task}, {commit}, was reverted on `{branch}` by {revert}");
        return Ok(Some(NotReady::new(message, hint)));
    }
    let way = match (work, workspace.remote()?) {
        (None, _) if repository.is_shallow() => UNSHALLOW.to_owned(),
        (None, Some(remote)) => format!("fetch it: git fetch {} {name}:{name}", quoted(remote)),
        (None, None) => "fetch it from the clone where it was done".to_owned(),
        (Some(_), _) if repository.branch_tip(branch)?.is_none() => {
            format!("git branch {name} {}", quoted(commit))
        }
        (Some(_), _) => format!("git switch {name} && git merge {}", quoted(commit)),
    };
    let hint = format!("{way}; or, if it is there in another form, take `commit` out of {task}");
    Ok(Some(NotReady::new(
        format!("the work of {task}, {commit}, is not on `{branch}` here"),
        hint,
    )))
}
