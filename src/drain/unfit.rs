//! Items that the agents of a drain can do nothing with, told before anything is begun.

use std::collections::{HashMap, HashSet};

use super::crew::Post;
use crate::check::{Fault, errors_if};
use crate::{CliError, Context, Exit, human};
use tavern_core::eligible::{DEFAULT_ROLE, Lack, for_roles};
use tavern_core::need::NeedKind;
use tavern_core::problem::{Position, listed};
use tavern_core::task::{REVIEWER, Status, Task};
use tavern_run::Site;
use tavern_run::readiness::{Unready, unready};
use tavern_store::Queue;
use tavern_sys::process::quoted;

/// How many of a long list are named.
pub(super) const NAMED: usize = 10;

/// How many open items a crew will work, and how many it leaves as they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Prospect {
    pub worked: usize,
    pub left: usize,
    /// The titles of those that it leaves for want of a script.
    pub scriptless: HashSet<String>,
    /// Where an item that it works has a second script, which its runner does not run.
    pub second_scripts: Vec<String>,
}

impl Prospect {
    /// Of the items of `queues` as they stand now.
    pub(super) fn of(site: &Site, queues: &[Queue], crew: &[Post]) -> Result<Prospect, CliError> {
        let (mut prospect, lacking, roles) = (
            Prospect::default(),
            lacking(site, queues),
            site.config.known_roles(),
        );
        for queue in queues {
            let text = site.board.read(queue)?;
            let (document, _) = text.content.parse();
            for item in document
                .items()
                .iter()
                .map(|item| for_roles(&document, item, &roles))
            {
                if item.aside || matches!(item.status, Status::Completed | Status::Cancelled) {
                    continue;
                }
                let lacking = lacking.get(&(queue.id.clone(), item.line));
                let task = document.task_of(&item);
                let hindrance = hindrance(site, &task, lacking, crew);
                if let (None, Some(second)) = (&hindrance, item.second_script())
                    && let Some(role) = site
                        .config
                        .roles
                        .get(task.role.as_deref().unwrap_or(DEFAULT_ROLE))
                    && site.config.runs_scripts(&site.runner_of(&task, role))
                {
                    let line = Position::of(&text.content, second.start).line;
                    prospect.second_scripts.push(format!("{}:{line}", queue.id));
                }
                *if hindrance.is_some() {
                    &mut prospect.left
                } else {
                    &mut prospect.worked
                } += 1;
                if let Some(Lack::NoScript { .. }) = hindrance {
                    prospect.scriptless.insert(document.title(&item).to_owned());
                }
            }
        }
        Ok(prospect)
    }

    /// What it does not run of what it works.
    pub(super) fn not_run(&self) -> Option<String> {
        let places = listed(&self.second_scripts);
        (!places.is_empty()).then(|| {
            format!("only the first script of an item is run, and not what is in {places}")
        })
    }

    /// Of what it leaves, behind what it works.
    pub(super) fn rest(&self) -> String {
        match self.left {
            0 => String::new(),
            1 => "; 1 skipped".to_owned(),
            left => format!("; {left} skipped"),
        }
    }
}

/// All items of `queues` that lack something, by their places.
pub(super) fn lacking(site: &Site, queues: &[Queue]) -> HashMap<(String, usize), Unready> {
    unready(site, queues, None)
        .into_iter()
        .map(|one| ((one.queue.clone(), one.line), one))
        .collect()
}

/// What keeps `crew` from an item as long as only agents work: `None` where one of them will do something with it.
pub(super) fn hindrance(
    site: &Site,
    task: &Task,
    lacking: Option<&Unready>,
    crew: &[Post],
) -> Option<Lack> {
    let lacks = lacking.map_or(&[][..], |one| &one.lacks);
    let needs_person = |lack: &&Lack| {
        // Of what is not trusted nothing is begun at all.
        lack.is_stuck() && !matches!(lack, Lack::NotTrusted(_))
            || matches!(
                lack,
                Lack::Answer(_) | Lack::Release(_) | Lack::Status(Status::Draft | Status::Dead)
            )
    };
    if let Some(lack) = lacks.iter().find(needs_person) {
        return Some(lack.clone());
    }
    let is_of_crew = |role: &str| crew.iter().any(|post| post.role == role);
    match task.status() {
        Status::Pending => {
            let role = task.role.as_deref().unwrap_or(DEFAULT_ROLE);
            (!is_of_crew(role)).then(|| Lack::Role(role.to_owned()))
        }
        Status::InReview => {
            let open = task.open_reviews(&task.reviewers(&site.config.review));
            let first = open.first().map_or(REVIEWER, String::as_str).to_owned();
            (!is_of_crew(&first) && !open.iter().any(|role| is_of_crew(role)))
                .then_some(Lack::Reviewer(first))
        }
        _ => None,
    }
}

/// The errors that `tavern check` finds in the queues, in words: nobody takes an item that has one.
pub(super) fn errors(
    context: &Context,
    site: &Site,
    queues: &[Queue],
) -> Result<Option<String>, CliError> {
    // Where all items have one runner, it is none of theirs.
    let config = site.runner.is_none().then_some(&site.config);
    let texts = queues
        .iter()
        .map(|queue| site.board.read(queue))
        .collect::<Result<Vec<_>, _>>()?;
    let texts: Vec<(&Queue, &str)> = texts
        .iter()
        .map(|text| (&text.queue, &*text.content))
        .collect();
    let errors = errors_if(&site.board, &texts, config, &context.here())?;
    let told = || {
        list(
            &human::count(errors.len(), "error"),
            errors.iter().map(Fault::sentence),
        )
    };
    Ok((!errors.is_empty()).then(told))
}

/// Refuses to begin where no item can be worked: by the `errors`, or since none has the script that its runner needs.
pub(super) fn refuse(
    site: &Site,
    queues: &[Queue],
    crew: &[Post],
    errors: Option<&str>,
) -> Result<(), CliError> {
    let is_ours = |lack: &&Lack| matches!(lack, Lack::NoScript { role, .. } if crew.iter().any(|post| post.role == *role));
    let mut unfit = unready(site, queues, None);
    let waits = unfit
        .iter()
        .flat_map(|one| &one.lacks)
        .any(|lack| NeedKind::of(lack).is_some());
    unfit.retain(|one| !one.is_broken() && one.lacks.iter().any(|lack| is_ours(&lack)));
    // What waits for a person is told with all that is left.
    let is_mistake = errors.is_some() || !unfit.is_empty() && !waits;
    if !is_mistake || Prospect::of(site, queues, crew)?.worked > 0 {
        return Ok(());
    }
    if let Some(errors) = errors {
        let files: Vec<String> = queues.iter().map(|queue| quoted(&queue.id)).collect();
        let hint = format!(
            "mend them; to see each in its line: tavern check {}",
            files.join(" ")
        );
        return Err(CliError::new(
            Exit::BoardHasErrors,
            format!("nothing was started: {errors}"),
        )
        .with_hint(hint));
    }
    let lines = unfit.iter().map(|one| {
        let lacks = one
            .lacks
            .iter()
            .filter(is_ours)
            .map(Lack::to_string)
            .collect::<String>();
        format!(
            "{}:{}: {}: {lacks}",
            one.queue,
            one.line,
            human::title(&one.title)
        )
    });
    let message = list(
        &format!("no agent can take {}", human::count(unfit.len(), "item")),
        lines,
    );
    let mut files: Vec<String> = unfit.iter().map(|one| quoted(&one.queue)).collect();
    files.dedup();
    let files = files.join(" ");
    let hint = format!(
        "use an agent: tavern drain {files} --runner claude; or indent an ```sh block under each"
    );
    Err(CliError::refused(
        format!("nothing was started: {message}"),
        hint,
    ))
}

/// The first of these lines, and how many more there are.
fn list(head: &str, lines: impl ExactSizeIterator<Item = String>) -> String {
    let more = lines.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    let lines = lines
        .take(NAMED)
        .chain(more)
        .map(|line| format!("\n  {line}"));
    format!("{head}{}", lines.collect::<String>())
}
