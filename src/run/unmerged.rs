//! Where the work of an item is that is not merged, so that a person can look at it. What can't be read is not named.

use crate::board::task::TaskId;
use crate::git::{CommitId, Head, Repository};

/// What a repository keeps of items that did not end completed.
pub struct Unmerged<'r> {
    repository: &'r Repository,
    /// All salvage refs, with their commits.
    salvaged: Vec<(String, CommitId)>,
    /// Where merged work is, or would be.
    tip: Option<CommitId>,
}

impl<'r> Unmerged<'r> {
    /// Looks once for all items. `integration` is the branch that work is merged into.
    pub fn of(repository: &'r Repository, integration: &str) -> Unmerged<'r> {
        let head = || match repository.head() {
            Ok(Head::Branch { commit, .. } | Head::Detached { commit }) => Some(commit),
            Ok(Head::Unborn { .. }) | Err(_) => None,
        };
        let tip = repository.branch_tip(integration).ok().flatten().or_else(head);
        Unmerged { repository, salvaged: repository.references("refs/tavern/salvage/").unwrap_or_default(), tip }
    }

    /// The branch of the item if it holds what is not merged, then what was salvaged last; as `git show` takes them.
    pub fn places(&self, task: &TaskId) -> Vec<String> {
        let branch = format!("tavern/{task}");
        let own = self.repository.branch_tip(&branch).ok().flatten();
        let folder = format!("refs/tavern/salvage/{task}/");
        let token = |name: &str| name.strip_prefix(&folder).and_then(|token| token.parse::<u64>().ok());
        let salvaged = self.salvaged.iter().filter(|(name, _)| token(name).is_some());
        let last = salvaged.max_by_key(|(name, _)| token(name)).map(|(name, commit)| (name.clone(), commit));
        let mut places = Vec::new();
        let mut known: Vec<&CommitId> = self.tip.iter().collect();
        for (name, commit) in own.as_ref().map(|commit| (branch, commit)).into_iter().chain(last) {
            if !known.iter().any(|other| self.repository.is_ancestor(commit, other).unwrap_or(false)) {
                known.push(commit);
                places.push(name);
            }
        }
        places
    }
}
