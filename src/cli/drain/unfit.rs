//! Items that the agents of a drain could do nothing with.

use super::crew::Post;
use crate::board::eligible::Lack;
use crate::cli::{CliError, hints, human};
use crate::process::quoted;
use crate::run::Site;
use crate::run::readiness::unready;
use crate::store::Queue;

/// How many of a long list are named.
const NAMED: usize = 10;

/// Told before anything is begun: a drain that leaves items behind from the outset is a mistake in the command line.
pub(super) fn refuse(site: &Site, queues: &[Queue], crew: &[Post]) -> Result<(), CliError> {
    let is_ours =
        |lack: &Lack| matches!(lack, Lack::NoScript { role, .. } if crew.iter().any(|post| post.role == *role));
    let mut unfit = unready(site, queues, None);
    unfit.retain(|one| one.lacks.iter().any(is_ours));
    // With a script it could still not be done where its text has a problem.
    unfit.iter_mut().for_each(|one| one.lacks.retain(|lack| matches!(lack, Lack::Problem { .. }) || is_ours(lack)));
    if unfit.is_empty() {
        return Ok(());
    }
    let mut message = format!("nothing was started: no agent can take {}", human::count(unfit.len(), "item"));
    for one in unfit.iter().take(NAMED) {
        let (place, title) = (format!("{}:{}", one.queue, one.line), human::title(&one.title));
        let lack = match &one.lacks[0] {
            problem @ Lack::Problem { .. } => hints::sentence(problem, None, None),
            lack => lack.to_string(),
        };
        message.push_str(&format!("\n  {place}: {title}: {lack}"));
    }
    if unfit.len() > NAMED {
        message.push_str(&format!("\n  and {} more", unfit.len() - NAMED));
    }
    let mut files: Vec<String> = unfit.iter().map(|one| quoted(&one.queue)).collect();
    files.dedup();
    let files = files.join(" ");
    let hint = format!("use an agent: tavern drain {files} --runner claude; or indent an ```sh block under each");
    Err(CliError::refused(message, hint))
}
