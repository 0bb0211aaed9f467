//! Items that the agents of a drain could do nothing with, told before anything is begun.

use super::crew::Post;
use crate::board::eligible::Lack;
use crate::cli::check::{Fault, errors_if};
use crate::cli::{CliError, Context, human};
use crate::process::quoted;
use crate::run::Site;
use crate::run::readiness::unready;
use crate::store::Queue;

/// How many of a long list are named.
const NAMED: usize = 10;

/// The errors that `tavern check` finds in the queues, in words: nobody takes an item that has one.
pub(super) fn errors(context: &Context, site: &Site, queues: &[Queue]) -> Result<Option<String>, CliError> {
    // Where all items have one runner, it is none of theirs.
    let config = site.runner.is_none().then_some(&site.config);
    let texts = queues.iter().map(|queue| site.board.read(queue)).collect::<Result<Vec<_>, _>>()?;
    let texts: Vec<(&Queue, &str)> = texts.iter().map(|text| (&text.queue, text.content.as_str())).collect();
    let errors = errors_if(&site.board, &texts, config, &context.here())?;
    let told = || list(&human::count(errors.len(), "error"), errors.iter().map(Fault::sentence));
    Ok((!errors.is_empty()).then(told))
}

/// A drain that leaves items behind from the outset is a mistake in the command line.
pub(super) fn refuse(site: &Site, queues: &[Queue], crew: &[Post]) -> Result<(), CliError> {
    let is_ours =
        |lack: &&Lack| matches!(lack, Lack::NoScript { role, .. } if crew.iter().any(|post| post.role == *role));
    let mut unfit = unready(site, queues, None);
    unfit.retain(|one| !one.is_broken() && one.lacks.iter().any(|lack| is_ours(&lack)));
    if unfit.is_empty() {
        return Ok(());
    }
    let lines = unfit.iter().map(|one| {
        let lacks = one.lacks.iter().filter(is_ours).map(Lack::to_string).collect::<String>();
        format!("{}:{}: {}: {lacks}", one.queue, one.line, human::title(&one.title))
    });
    let message = list(&format!("no agent can take {}", human::count(unfit.len(), "item")), lines);
    let mut files: Vec<String> = unfit.iter().map(|one| quoted(&one.queue)).collect();
    files.dedup();
    let files = files.join(" ");
    let hint = format!("use an agent: tavern drain {files} --runner claude; or indent an ```sh block under each");
    Err(CliError::refused(format!("nothing was started: {message}"), hint))
}

/// The first of these lines, and how many more there are.
fn list(head: &str, lines: impl ExactSizeIterator<Item = String>) -> String {
    let more = lines.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    let lines = lines.take(NAMED).chain(more).map(|line| format!("\n  {line}"));
    format!("{head}{}", lines.collect::<String>())
}
