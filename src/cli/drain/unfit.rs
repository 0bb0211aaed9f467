//! Items that the agents of a drain could do nothing with.

use std::path::Path;

use crate::board::document::parse;
use crate::board::eligible::{DEFAULT_ROLE, in_order};
use crate::cli::{CliError, Exit, human};
use crate::git::quoted;
use crate::run::Site;
use crate::store::Queue;

/// A pending item that its runner could do nothing with.
struct Unfit {
    queue: String,
    line: usize,
    title: String,
    runner: String,
}

/// Told before anything is begun: a drain that leaves items behind from the outset is a mistake in the command line.
pub(super) fn refuse(site: &Site, queues: &[Queue], role: &str) -> Result<(), CliError> {
    let unfit = unfit(site, queues, role)?;
    if unfit.is_empty() { Ok(()) } else { Err(refused(&unfit)) }
}

fn unfit(site: &Site, queues: &[Queue], role_name: &str) -> Result<Vec<Unfit>, CliError> {
    let role = site.role(role_name)?;
    let scripted = site.scripted();
    let mut unfit = Vec::new();
    for queue in queues {
        let text = site.board.read(queue)?;
        let (document, _) = parse(&text.content);
        for item in in_order(&document).into_iter().filter(|item| !item.quarantined) {
            let task = document.task_of(item);
            let runner = site.runner_of(&task, role);
            let is_ours = task.role.as_deref().unwrap_or(DEFAULT_ROLE) == role_name;
            if is_ours && scripted.contains(&runner) && document.shell(item).is_none() {
                unfit.push(Unfit { queue: queue.id.clone(), line: item.line, title: task.title, runner });
            }
        }
    }
    unfit.sort_by(|a, b| (&a.queue, a.line).cmp(&(&b.queue, b.line)));
    Ok(unfit)
}

/// How many of a long list are named.
const NAMED: usize = 10;

fn refused(unfit: &[Unfit]) -> CliError {
    let items = if unfit.len() == 1 { "1 item has".to_owned() } else { format!("{} items have", unfit.len()) };
    let runner = &unfit[0].runner;
    let mut message = format!("nothing was begun: {items} no ```sh block, which the runner `{runner}` needs");
    for one in unfit.iter().take(NAMED) {
        message.push_str(&format!("\n  {}:{}: {}", one.queue, one.line, human::title(&one.title)));
    }
    if unfit.len() > NAMED {
        message.push_str(&format!("\n  and {} more", unfit.len() - NAMED));
    }
    let mut files: Vec<String> = unfit.iter().map(|one| quoted(Path::new(&one.queue))).collect();
    files.dedup();
    let files = files.join(" ");
    let hint = format!(
        "have them done by an agent: tavern drain {files} --runner claude; or indent an ```sh block under each"
    );
    CliError::new(Exit::Refused, message).with_hint(hint)
}
