//! `tavern-report --approve` and `--reject`: the verdict of a reviewer, usually a person, on work in review.

use serde::Serialize;

use crate::flags::HeldItem;
use crate::shared::{person, read_stdin, without_token};
use crate::{CliError, Context, Exit, hints};
use tavern_core::event::{Event, Review};
use tavern_core::task::{PERSON, Status, Task, TaskId};
use tavern_run::{Workspace, report, review};
use tavern_store::{Board, Note};

use super::args::Args;

#[derive(Serialize)]
struct Judged {
    task: TaskId,
    status: Status,
    /// Reviewers that have not approved yet.
    open: Vec<String>,
}

pub(super) fn run(
    args: &Args,
    named: &HeldItem,
    context: &Context,
    board: Board,
) -> Result<Exit, CliError> {
    let workspace = context.light_site(board)?;
    let task = workspace.board.task(&named.task)?.task;
    let by = person();
    if args.approve && is_to_start(&task) {
        let why = format!(
            "only a person may allow `{}` to start, and a token is an agent's",
            task.id
        );
        without_token(named.token, why, &format!("tavern approve {}", task.id))?;
        let event = Event::Allow { by: by.clone() };
        return submit(named, context, &workspace, &event, &by);
    }
    let review = reviewer(named, context, &workspace, &task, by)?;
    let by = review.by.clone();
    if let Some(findings) = &args.reject {
        let event = Event::Reject {
            review,
            findings: words(findings)?,
            most: report::rounds(&workspace, &task),
        };
        return submit(named, context, &workspace, &event, &by);
    }
    let event = Event::Approve {
        review,
        commit: review::named(&workspace, &task)?,
    };
    // An item that is not in review is refused for that, regardless of its branch.
    workspace
        .board
        .clone()
        .dry()
        .submit(&task.id, &event, &Note::default())?;
    if let Some(moved) = review::moved(&workspace, &task)? {
        let hint = format!(
            "have it verified there: tavern report {} --reject \"look at the new commits\"",
            task.id
        );
        return Err(CliError::refused(moved.trim_end_matches('.'), hint));
    }
    submit(named, context, &workspace, &event, &by)
}

/// Returns whether `--approve` allows the item to begin, rather than its work to be merged.
pub fn is_to_start(task: &Task) -> bool {
    matches!(task.status(), Status::Pending | Status::Draft)
}

/// Returns the review: the holder's under its lease, else a person's, which needs no lease.
fn reviewer(
    named: &HeldItem,
    context: &Context,
    workspace: &Workspace,
    task: &Task,
    person: String,
) -> Result<Review, CliError> {
    let reviewers = task.reviewers(&workspace.config.review);
    if let (Some(token), Some(lease)) = (named.token, workspace.board.lease(&task.id)?) {
        return Ok(Review {
            token: Some(token),
            by: lease.agent,
            role: lease.role,
            reviewers,
        });
    }
    // An agent's own lease ends with its report.
    if let Some(run) = context.own_run() {
        return Err(run.refused());
    }
    Ok(Review {
        token: named.token,
        by: person,
        role: PERSON.to_owned(),
        reviewers,
    })
}

fn submit(
    named: &HeldItem,
    context: &Context,
    workspace: &Workspace,
    event: &Event,
    by: &str,
) -> Result<Exit, CliError> {
    let task = &named.task;
    let after = workspace
        .board
        .submit(
            task,
            event,
            &Note {
                agent: Some(by.to_owned()),
                run: None,
            },
        )?
        .task;
    let open = match after.status() {
        Status::InReview => after.open_reviews(&after.reviewers(&workspace.config.review)),
        _ => Vec::new(),
    };
    let mut text = format!("{task} is {}", after.status());
    if !open.is_empty() {
        text.push_str(&format!(", and waits for {}", open.join(", ")));
    }
    if after.status() == Status::Approved && context.own_run().is_none() {
        text.push_str(&hints::approved(&workspace.board, task));
    }
    if matches!(after.status(), Status::InReview | Status::Approved) {
        text.push_str(&format!("\nits changes: tavern diff {task}"));
    }
    context.out.record(
        &Judged {
            task: task.clone(),
            status: after.status(),
            open,
        },
        text,
    )?;
    Ok(Exit::Done)
}

fn words(findings: &str) -> Result<String, CliError> {
    let text = if findings == "-" {
        read_stdin("the findings")?
    } else {
        findings.to_owned()
    };
    if text.trim().is_empty() {
        let hint = "name the changes to make: tavern report ID --reject \"…\"";
        return Err(CliError::usage("a rejection needs findings", hint));
    }
    Ok(text.trim().to_owned())
}
