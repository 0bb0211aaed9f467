//! Items that the agents of a drain could do nothing with.

use crate::board::document::parse;
use crate::board::eligible::{Lack, in_order};
use crate::cli::{CliError, human};
use crate::process::quoted;
use crate::run::{Preflight, Site};
use crate::store::Queue;

/// A pending item that its runner could do nothing with.
struct Unfit {
    queue: String,
    line: usize,
    title: String,
    lack: Lack,
}

/// Told before anything is begun: a drain that leaves items behind from the outset is a mistake in the command line.
pub(super) fn refuse(site: &Site, queues: &[Queue], role: &str) -> Result<(), CliError> {
    let unfit = unfit(site, queues, role)?;
    if unfit.is_empty() { Ok(()) } else { Err(refused(&unfit)) }
}

fn unfit(site: &Site, queues: &[Queue], role_name: &str) -> Result<Vec<Unfit>, CliError> {
    let look = Preflight::of(site);
    let mut unfit = Vec::new();
    for queue in queues {
        let text = site.board.read(queue)?;
        let (document, _) = parse(&text.content);
        for item in in_order(&document).into_iter().filter(|item| !item.quarantined) {
            if let Err(lack @ Lack::NoScript { .. }) = look.taker(&document, item)
                && matches!(&lack, Lack::NoScript { role, .. } if role == role_name)
            {
                let title = document.title(item).to_owned();
                unfit.push(Unfit { queue: queue.id.clone(), line: item.line, title, lack });
            }
        }
    }
    unfit.sort_by(|a, b| (&a.queue, a.line).cmp(&(&b.queue, b.line)));
    Ok(unfit)
}

/// How many of a long list are named.
const NAMED: usize = 10;

fn refused(unfit: &[Unfit]) -> CliError {
    let mut message = format!("nothing was begun: no agent can take {}", human::count(unfit.len(), "item"));
    for one in unfit.iter().take(NAMED) {
        let (place, title) = (format!("{}:{}", one.queue, one.line), human::title(&one.title));
        message.push_str(&format!("\n  {place}: {title}: {}", one.lack));
    }
    if unfit.len() > NAMED {
        message.push_str(&format!("\n  and {} more", unfit.len() - NAMED));
    }
    let mut files: Vec<String> = unfit.iter().map(|one| quoted(&one.queue)).collect();
    files.dedup();
    let files = files.join(" ");
    let hint = format!(
        "have them done by an agent: tavern drain {files} --runner claude; or indent an ```sh block under each"
    );
    CliError::refused(message, hint)
}
