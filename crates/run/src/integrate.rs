//! Integration: approved work becomes one merge commit on the integration branch, without touching a person's
//! checkout.
//!
//! The merge is made in memory, and `done_when` runs again at the merged commit in a scratch worktree. Only then is
//! the branch moved, by compare-and-swap. After a kill at any point, a retry gives the same result.

use std::path::{Path, PathBuf};

use super::approval::not_approved;
use super::artifacts::{Artifacts, MERGED};
use super::error::Error;
use super::evidence::{Bench, Evidence, run_done_when};
use super::import_sandbox::lost_link;
use super::processes::{INTEGRATION, end_processes, mark_of};
use super::record::{last_token, role_of_work, run_name};
use super::report::sent_back;
use super::trust::Trust;
use super::workspace::Workspace;
use super::worktree::{clean, clear_ended, named};
use super::worktree_setup::furnish;
use tavern_core::eligible::Lack;
use tavern_core::event::{Event, Kind};
use tavern_core::task::{Status, Task, TaskId};
use tavern_git::{CommitId, GitError, Merge};
use tavern_store::config::OutcomePolicy;
use tavern_store::{Entry, Found, Note, Queue, walk_log};
use tavern_sys::clock;
use tavern_sys::failpoint;

/// The most retries of a merge after git pruned its objects.
const MOST_PRUNED: usize = 20;

/// The result for an approved task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integrated {
    /// On the integration branch; `None` for a task that needs no repository.
    Merged(Option<CommitId>),
    /// Back in the queue, with the reason.
    SentBack(String),
    /// It is not merged now, for the reason in the text.
    Blocked(String),
    /// It stays approved until a person approves or trusts it, or resolves the lack.
    Lacks(Lack),
    /// It is a dry run, and no obstacle is known.
    Untried,
}

/// Returns the approved tasks of `queues`, in their order.
pub fn approved(workspace: &Workspace, queues: &[Queue]) -> Vec<TaskId> {
    let mut found = Vec::new();
    for queue in queues {
        // One unreadable queue does not block the others.
        let Ok(text) = workspace.board.read(queue) else {
            continue;
        };
        // A fast path: an agent calls this twice for each item.
        if !text.content.may_have(Status::Approved) {
            continue;
        }
        let document = text.content.open();
        let approved =
            (0..document.count()).filter(|at| document.status_at(*at) == Status::Approved);
        let sound = approved
            .map(|at| document.item(at))
            .filter(|item| !item.quarantined);
        found.extend(sound.filter_map(|item| item.id.clone()));
    }
    found
}

/// Integrates one approved task, in any queue. The caller holds the board's merge slot.
pub fn integrate(workspace: &Workspace, id: &TaskId) -> Result<Integrated, Error> {
    // A person may have ticked or changed it since.
    workspace.board.settle()?;
    let Found { task, queue, .. } = match workspace.board.task(id) {
        Ok(found) if found.task.status() == Status::Approved => found,
        Ok(found) => {
            return Ok(Integrated::Blocked(format!(
                "it is {} now",
                found.task.status()
            )));
        }
        Err(tavern_store::Error::NoTask(_)) => {
            return Ok(Integrated::Blocked("it is in no queue now".to_owned()));
        }
        Err(error) => return Err(error.into()),
    };
    match Trust::of(workspace).item_of(&queue, &task) {
        Err(Error::NotTrusted(untrusted)) => {
            return Ok(Integrated::Lacks(Lack::NotTrusted(untrusted)));
        }
        trusted => trusted?,
    }
    let Some(work) = &task.commit() else {
        if task.worktree {
            return Ok(Integrated::Blocked(format!(
                "`{id}` names no commit: move it to the Pending lane"
            )));
        }
        if let Some(lack) = not_approved(workspace, &task, None)? {
            return Ok(Integrated::Lacks(lack));
        }
        if workspace.board.is_dry() {
            return Ok(Integrated::Untried);
        }
        complete(workspace, &task, None)?;
        clear_ended(workspace, &task)?;
        return Ok(Integrated::Merged(None));
    };
    let Some(work) = workspace.repository()?.commit_of(work)? else {
        let reason = format!("its commit {work} is not in the repository");
        return send_back(workspace, &task, &failed(workspace), reason);
    };
    if let Some(lack) = not_approved(workspace, &task, Some(&work))? {
        return Ok(Integrated::Lacks(lack));
    }
    if workspace.board.is_dry() {
        return Ok(Integrated::Untried);
    }
    let mut pruned = 0;
    loop {
        let attempted = attempt(workspace, &queue, &task, &work);
        workspace.repository()?.forget_merge()?;
        match attempted {
            // The next merge may be referenced before git prunes it.
            Err(Error::Git(GitError::Pruned { .. })) if pruned < MOST_PRUNED => pruned += 1,
            // It waits until a person has fetched the missing commits.
            Err(Error::Git(error @ GitError::Shallow { .. })) => {
                return Ok(Integrated::Lacks(Lack::NotReady(Error::from(error).into())));
            }
            Err(error) => return Err(error),
            Ok(Some(result)) => return Ok(result),
            // A lost race uses no attempt.
            Ok(None) if workspace.interrupt.is_raised() => {
                return Ok(Integrated::Blocked("interrupted".to_owned()));
            }
            Ok(None) => {}
        }
    }
}

/// One try; `None` if the branch moved meanwhile.
fn attempt(
    workspace: &Workspace,
    queue: &Queue,
    task: &Task,
    work: &CommitId,
) -> Result<Option<Integrated>, Error> {
    let (tip, lack) = workspace.follow_base()?;
    if let Some(lack) = lack {
        tell_once(workspace, &lack.to_string())?;
        return Ok(Some(Integrated::Lacks(lack)));
    }
    let protected = workspace.protected(queue);
    let protected: Vec<&str> = protected.iter().map(String::as_str).collect();
    let merge =
        workspace
            .repository()?
            .merge_kept(&tip, work, &protected, &message(workspace, task)?)?;
    if let Some(dropped) = workspace.dropped_from(&tip, work)? {
        let base = workspace.base()?.0.unwrap_or_default();
        let reason = format!(
            "its branch has commits that `{base}` has dropped, such as {}",
            dropped.short()
        );
        return send_back(workspace, task, &workspace.config.outcomes.conflict, reason).map(Some);
    }
    let is_there = merge == Merge::UpToDate;
    let (merged, left_out) = match merge {
        Merge::UpToDate => (tip.clone(), Vec::new()),
        Merge::Clean { commit, left_out } => (commit, left_out),
        Merge::Conflict(conflict) => {
            let (branch, paths) = (workspace.integration(), named(&conflict.paths));
            let text = format!(
                "$ git merge {branch}\nconflict in {paths}\n{}",
                conflict.patch
            );
            let run = run_name(&task.id, last_token(&workspace.board, &task.id)?);
            Artifacts::create(&workspace.board, &run)?.write(MERGED, &text)?;
            let reason = format!("conflict with `{branch}` in {paths}");
            return send_back(workspace, task, &workspace.config.outcomes.conflict, reason)
                .map(Some);
        }
    };
    if is_there && let Some(revert) = workspace.repository()?.reverted(work, &tip)? {
        let reason = format!(
            "{} on `{}` reverts its commit {}",
            revert.short(),
            workspace.integration(),
            work.short()
        );
        return send_back(workspace, task, &failed(workspace), reason).map(Some);
    }
    if let Some(lost) = lost_link(workspace, &task.id, &tip, &merged)? {
        return Ok(Some(Integrated::Lacks(Lack::NotReady(lost))));
    }
    if !task.done_when.is_empty() {
        // `advance` checks again, but only after the verification.
        if !is_there
            && let Some(path) = workspace
                .repository()?
                .checked_out_at(workspace.integration())?
        {
            return checked_out(workspace, &path).map(Some);
        }
        if let Some(not_merged) = verify(workspace, task, work, &tip, &merged)? {
            return Ok(Some(not_merged));
        }
    }
    if is_there {
        // The process that merged it died before it could report it, and other merges may have followed.
        let arrived = workspace.repository()?.arrival(work, &tip)?.unwrap_or(tip);
        return arrive(workspace, task, &arrived, &left_out).map(Some);
    }
    let reference = format!("refs/heads/{}", workspace.integration());
    workspace
        .repository()?
        .remember_tip(workspace.integration(), &merged)?;
    match workspace.repository()?.advance(
        &reference,
        &tip,
        &merged,
        &format!("tavern: merge {}", task.id),
    ) {
        Ok(()) => {}
        Err(GitError::Moved { .. }) => return Ok(None),
        Err(GitError::CheckedOut { path, .. }) => return checked_out(workspace, &path).map(Some),
        Err(error) => return Err(error.into()),
    }
    failpoint::hit("integrate.advanced")
        .map_err(Error::io("continue in", workspace.board.dir()))?;
    arrive(workspace, task, &merged, &left_out).map(Some)
}

/// Returns the message of the merge commit: the item, and the run of its work, in git-interpret-trailers(1) format.
fn message(workspace: &Workspace, task: &Task) -> Result<String, Error> {
    let (id, mut work) = (&task.id, None);
    walk_log(&workspace.board, Some(id), &mut |entry| {
        work = Some(entry).filter(|entry| entry.kind == Kind::Submitted);
        work.is_none()
    })?;
    let mut message = format!("{id}: {}\n\nTavern-Item: {id}\n", task.title);
    if let Some(Entry {
        agent, run, token, ..
    }) = work
    {
        let trailers = [
            ("Agent", agent),
            ("Run", run),
            ("Token", token.map(|token| token.to_string())),
        ];
        let trailers = trailers
            .into_iter()
            .filter_map(|(name, value)| Some(format!("Tavern-{name}: {}\n", value?)));
        message.extend(trailers);
    }
    Ok(message)
}

/// Runs `done_when` at `merged`, which is `tip` with `work`. `None`: it passed.
fn verify(
    workspace: &Workspace,
    task: &Task,
    work: &CommitId,
    tip: &CommitId,
    merged: &CommitId,
) -> Result<Option<Integrated>, Error> {
    if let Some(why) = workspace.stuck.why(&task.id, work, tip) {
        return Ok(Some(Integrated::Blocked(why)));
    }
    let token = last_token(&workspace.board, &task.id)?;
    let run = run_name(&task.id, token);
    let role = match workspace.role(&role_of_work(workspace, task)?) {
        Ok(role) => role,
        Err(error) => return Ok(Some(Integrated::Blocked(error.in_words()))),
    };
    // A killed merge may have left processes that would work among our files.
    end_processes(workspace, INTEGRATION)?;
    let folder = workspace.scratch();
    clean(workspace, task, token, &folder, merged)?;
    // The cause may be the work, the network or the disk, so a person decides.
    if let Err(error) = furnish(
        workspace,
        role,
        task,
        mark_of(workspace, INTEGRATION),
        &folder,
    ) {
        if let Error::SetUp {
            command,
            how,
            output,
        } = &error
        {
            let text = format!("$ {command}\n{how}\n{output}");
            Artifacts::create(&workspace.board, &run)?.write(MERGED, &text)?;
        }
        let why = error.in_words();
        workspace.stuck.remember(&task.id, work, tip.clone(), &why);
        return Ok(Some(Integrated::Blocked(why)));
    }
    let bench = Bench {
        role,
        folder: &folder,
        commit: Some(merged),
        mark: mark_of(workspace, INTEGRATION),
    };
    match run_done_when(workspace, task, &bench, &run, MERGED)? {
        Evidence::Passed => Ok(None),
        Evidence::CutShort => Ok(Some(Integrated::Blocked("interrupted".to_owned()))),
        Evidence::Failed(failure) => {
            let reason = format!(
                "after the merge into `{}` {failure}",
                workspace.integration()
            );
            send_back(workspace, task, &failed(workspace), reason).map(Some)
        }
    }
}

/// Blocks the merge, because moving the branch would leave the files in `folder` behind.
fn checked_out(workspace: &Workspace, folder: &Path) -> Result<Integrated, Error> {
    let branch = workspace.integration();
    let text = format!(
        "`{branch}` is checked out in {}: {}",
        folder.display(),
        workspace.way_out(folder)
    );
    tell_once(workspace, &text)?;
    Ok(Integrated::Blocked(text))
}

/// Completes the task and clears its worktree. Its work is on the integration branch since `merged`.
fn arrive(
    workspace: &Workspace,
    task: &Task,
    merged: &CommitId,
    left_out: &[PathBuf],
) -> Result<Integrated, Error> {
    if !left_out.is_empty() {
        report_violation(workspace, task, left_out)?;
    }
    complete(workspace, task, Some(merged))?;
    clear_ended(workspace, task)?;
    Ok(Integrated::Merged(Some(merged.clone())))
}

fn complete(workspace: &Workspace, task: &Task, commit: Option<&CommitId>) -> Result<(), Error> {
    let event = Event::Integrate {
        commit: commit.map(|commit| commit.as_str().to_owned()),
    };
    workspace.board.submit(&task.id, &event, &Note::default())?;
    Ok(())
}

/// Returns the policy for approved work that failed after all. It always uses its attempt, because a whole run and
/// reviews were spent on it.
fn failed(workspace: &Workspace) -> OutcomePolicy {
    OutcomePolicy {
        attempt: true,
        ..workspace.config.outcomes.failed.clone()
    }
}

fn send_back(
    workspace: &Workspace,
    task: &Task,
    policy: &OutcomePolicy,
    reason: String,
) -> Result<Integrated, Error> {
    let event = sent_back(workspace, task, policy, &reason);
    let done = workspace.board.submit(&task.id, &event, &Note::default())?;
    if done.task.status() == Status::Dead {
        clear_ended(workspace, &done.task)?;
    }
    Ok(Integrated::SentBack(reason))
}

/// Logs that changes of the board in a task's branch were left out of the merge.
fn report_violation(workspace: &Workspace, task: &Task, paths: &[PathBuf]) -> Result<(), Error> {
    let paths: Vec<String> = paths
        .iter()
        .take(20)
        .map(|path| path.display().to_string())
        .collect();
    let cause = format!(
        "violation: its branch changed {}, which was left out of the merge",
        paths.join(", ")
    );
    let entry = Entry {
        task: Some(task.id.clone()),
        cause: Some(cause),
        ..Entry::new(Kind::Noted, clock::now())
    };
    Ok(workspace.board.note(entry)?)
}

/// Logs a standing problem when it begins, not at every look.
fn tell_once(workspace: &Workspace, text: &str) -> Result<(), Error> {
    let (mut is_told, mut looks) = (false, 0);
    walk_log(&workspace.board, None, &mut |entry| {
        is_told = entry.cause.as_deref() == Some(text);
        looks += 1;
        !is_told && looks < 50
    })?;
    if is_told {
        return Ok(());
    }
    let entry = Entry {
        cause: Some(text.to_owned()),
        ..Entry::new(Kind::Noted, clock::now())
    };
    Ok(workspace.board.note(entry)?)
}
