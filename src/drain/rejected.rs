//! Items that a drain's agents can't work on, reported before it begins.

use std::collections::{HashMap, HashSet};

use super::roster::Post;
use crate::check::{Fault, errors_if};
use crate::{CliError, Context, Exit, format};
use tavern_core::eligible::{DEFAULT_ROLE, Lack, for_roles};
use tavern_core::need::NeedKind;
use tavern_core::problem::{Position, listed};
use tavern_core::task::{REVIEWER, Status, Task};
use tavern_run::Workspace;
use tavern_run::readiness::{Unready, unready};
use tavern_store::Queue;
use tavern_sys::process::quoted;

/// The number of entries of a long list that are shown.
pub(super) const NAMED: usize = 10;

/// How many open items a crew will work, and how many it will leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Prospect {
    pub worked: usize,
    pub left: usize,
    /// The titles of items that it leaves because they have no script.
    pub scriptless: HashSet<String>,
    /// Places of second scripts in items that it works; runners ignore these.
    pub second_scripts: Vec<String>,
}

impl Prospect {
    /// Returns the prospect of the items of `queues` as they are now.
    pub(super) fn of(
        workspace: &Workspace,
        queues: &[Queue],
        crew: &[Post],
    ) -> Result<Prospect, CliError> {
        let (mut prospect, lacking, roles) = (
            Prospect::default(),
            lacking(workspace, queues),
            workspace.config.known_roles(),
        );
        for queue in queues {
            let text = workspace.board.read(queue)?;
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
                let hindrance = hindrance(workspace, &task, lacking, crew);
                if let (None, Some(second)) = (&hindrance, item.second_script())
                    && let Some(role) = workspace
                        .config
                        .roles
                        .get(task.role.as_deref().unwrap_or(DEFAULT_ROLE))
                    && workspace
                        .config
                        .runs_scripts(&workspace.runner_of(&task, role))
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

    /// Returns a note on scripts that will not run.
    pub(super) fn not_run(&self) -> Option<String> {
        let places = listed(&self.second_scripts);
        (!places.is_empty())
            .then(|| format!("only the first script of an item is run; skipped: {places}"))
    }

    /// Returns the suffix about skipped items.
    pub(super) fn rest(&self) -> String {
        match self.left {
            0 => String::new(),
            1 => "; 1 skipped".to_owned(),
            left => format!("; {left} skipped"),
        }
    }
}

/// Returns all items of `queues` that lack something, by place.
pub(super) fn lacking(
    workspace: &Workspace,
    queues: &[Queue],
) -> HashMap<(String, usize), Unready> {
    unready(workspace, queues, None)
        .into_iter()
        .map(|one| ((one.queue.clone(), one.line), one))
        .collect()
}

/// Returns the obstacle that keeps `crew` from an item as long as only agents work; `None` if one will act on it.
pub(super) fn hindrance(
    workspace: &Workspace,
    task: &Task,
    lacking: Option<&Unready>,
    crew: &[Post],
) -> Option<Lack> {
    let lacks = lacking.map_or(&[][..], |one| &one.lacks);
    let needs_person = |lack: &&Lack| {
        // With untrusted items, the drain does not begin at all.
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
            let open = task.open_reviews(&task.reviewers(&workspace.config.review));
            let first = open.first().map_or(REVIEWER, String::as_str).to_owned();
            (!is_of_crew(&first) && !open.iter().any(|role| is_of_crew(role)))
                .then_some(Lack::Reviewer(first))
        }
        _ => None,
    }
}

/// Returns the errors that `tavern check` finds in the queues; no agent takes an item with an error.
pub(super) fn errors(
    context: &Context,
    workspace: &Workspace,
    queues: &[Queue],
) -> Result<Option<String>, CliError> {
    // With one runner for all items, the config's runners don't matter.
    let config = workspace.runner.is_none().then_some(&workspace.config);
    let texts = queues
        .iter()
        .map(|queue| workspace.board.read(queue))
        .collect::<Result<Vec<_>, _>>()?;
    let texts: Vec<(&Queue, &str)> = texts
        .iter()
        .map(|text| (&text.queue, &*text.content))
        .collect();
    let errors = errors_if(&workspace.board, &texts, config, &context.here())?;
    let told = || {
        list(
            &format::count(errors.len(), "error"),
            errors.iter().map(Fault::sentence),
        )
    };
    Ok((!errors.is_empty()).then(told))
}

/// Refuses to begin if no item can be worked, because of `errors` or because all lack a script for their
/// runner.
pub(super) fn refuse(
    workspace: &Workspace,
    queues: &[Queue],
    crew: &[Post],
    errors: Option<&str>,
) -> Result<(), CliError> {
    let is_ours = |lack: &&Lack| matches!(lack, Lack::NoScript { role, .. } if crew.iter().any(|post| post.role == *role));
    let mut unfit = unready(workspace, queues, None);
    let waits = unfit
        .iter()
        .flat_map(|one| &one.lacks)
        .any(|lack| NeedKind::of(lack).is_some());
    unfit.retain(|one| !one.is_broken() && one.lacks.iter().any(|lack| is_ours(&lack)));
    // Items that wait for a person are in the final list.
    let is_mistake = errors.is_some() || !unfit.is_empty() && !waits;
    if !is_mistake || Prospect::of(workspace, queues, crew)?.worked > 0 {
        return Ok(());
    }
    if let Some(errors) = errors {
        let files: Vec<String> = queues.iter().map(|queue| quoted(&queue.id)).collect();
        let hint = format!(
            "fix them; to see each in its line: tavern check {}",
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
            format::title(&one.title)
        )
    });
    let message = list(
        &format!("no agent can take {}", format::count(unfit.len(), "item")),
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

/// Returns the first of these lines, and the number of others.
fn list(head: &str, lines: impl ExactSizeIterator<Item = String>) -> String {
    let more = lines.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    let lines = lines
        .take(NAMED)
        .chain(more)
        .map(|line| format!("\n  {line}"));
    format!("{head}{}", lines.collect::<String>())
}
