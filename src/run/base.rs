//! The integration branch, brought up to the branch that it is based on.

use super::error::Error;
use super::site::Site;
use crate::git::{CommitId, Follow, GitError};

/// Brings the integration branch up to its base, making it if it is not there. The base's conflict, if there is one,
/// is returned in words: it stops integration, not work.
pub fn follow_base(site: &Site) -> Result<(CommitId, Option<String>), Error> {
    let (base, commit) = site.base()?;
    let branch = site.integration();
    if base.as_deref() != Some(branch) {
        site.repository()?.start_branch(branch, &commit)?;
    }
    let conflict = match site.repository()?.follow(branch, &commit) {
        Ok(Follow::Conflict(paths)) => {
            let base = base.as_deref().unwrap_or("HEAD");
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            Some(format!(
                "`{branch}` and `{base}` conflict in {}; merge them by hand: git switch {branch} && git merge {base}",
                paths.join(", ")
            ))
        }
        Ok(_) => None,
        // Somebody else moved it meanwhile, or has it checked out: it is used as it is.
        Err(GitError::Moved { .. } | GitError::CheckedOut { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let tip = site.repository()?.branch_tip(branch)?.ok_or(Error::NoCommits)?;
    Ok((tip, conflict))
}

/// The commit that [`follow_base`] would come to, where nothing has to be merged for it.
pub fn foreseen_base(site: &Site) -> Result<CommitId, Error> {
    let (_, base) = site.base()?;
    Ok(site.repository()?.foresee_follow(site.integration(), &base)?)
}
