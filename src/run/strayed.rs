//! What changed in the repository outside of an agent's worktree while it ran. Without a sandbox that can't be prevented, so it is told.

use super::error::Error;
use super::site::{ITEM_BRANCHES, Site};
use super::worktree::Worktree;
use crate::board::rule::{Act, BoardRules, Breach, Consequence, of_act};
use crate::config::Role;
use crate::git::{Outside, OutsideChange};

/// What an agent of `role` could change, as it is when it begins; `None` in a sandbox, which it does not leave, and where there is
/// no repository.
pub(super) fn look(site: &Site, role: &Role) -> Option<Outside> {
    if role.sandbox { None } else { outside(site).ok() }
}

/// Without the branches that Tavern itself moves.
fn outside(site: &Site) -> Result<Outside, Error> {
    Ok(site.repository()?.outside(&format!("refs/heads/{ITEM_BRANCHES}"))?)
}

/// What has changed since, with where the work in `worktree` is now.
pub(super) fn changes(site: &Site, before: &Outside, worktree: &Worktree) -> Result<Vec<OutsideChange>, Error> {
    let repository = site.repository()?;
    let now = outside(site)?;
    let branch = worktree.branch.as_ref();
    let tip = branch.map_or(Ok(None), |branch| repository.branch_tip(&branch.name))?;
    let work = branch.zip(tip.as_ref()).map(|(branch, tip)| (&branch.base, tip));
    let integration = site.integration();
    let mut changes = repository.changed_since(before, &now, work)?;
    // Where that is is looked at before each merge.
    changes.retain(|change| !matches!(change, OutsideChange::Published { reference, .. } if reference == integration));
    Ok(changes)
}

/// The rules that these changes break. What was found by comparing may be somebody else's doing: nobody fails for it, a person is asked.
pub(super) fn broken(rules: &BoardRules, changes: &[OutsideChange]) -> Vec<Breach> {
    let of = |change: &OutsideChange| {
        let act = match change {
            OutsideChange::Published { .. } => Act::Push,
            OutsideChange::Set { .. } | OutsideChange::Unset { .. } => Act::Settings,
            OutsideChange::Hook { .. } => Act::Hooks,
        };
        of_act(rules, act, &change.to_string())
    };
    let at_most = |breach: Breach| Breach { consequence: breach.consequence.min(Consequence::Pause), ..breach };
    changes.iter().flat_map(of).map(at_most).collect()
}
