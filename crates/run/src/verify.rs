//! Verification of an agent's answer: Tavern runs commands itself, at one commit.
//!
//! Begins with a plan, which writes nothing and which a dry run prints; then executes it.

use std::path::PathBuf;

use super::artifacts::{Artifacts, PROBLEMS, VERIFY};
use super::children;
use super::error::Error;
use super::evidence::{Bench, Evidence, run_done_when};
use super::plan;
use super::processes::mark_of;
use super::record::{Metadata, Record, run_name, runs_of};
use super::result::{AgentAnswer, RunResult, ShownBy};
use super::review;
use super::workspace::Workspace;
use super::worktree::make_plain;
use crate::runner::Outcome;
use tavern_core::event::Kind;
use tavern_core::markup;
use tavern_core::task::{Expected, Status, Task};
use tavern_git::{Changes, CommitId};
use tavern_store::config::{Dirty, Does};
use tavern_store::{Claimed, walk_log};

/// The work left to do before an answer counts.
#[derive(Clone, Debug, PartialEq)]
pub enum Verification {
    /// Nothing: this is the result, with the rendered problems of a rejected plan.
    Over { result: RunResult, problems: String },
    /// `done_when` is run at the work's commit.
    Prove(Unproven),
}

/// Finished work that is not verified yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Unproven {
    reason: String,
    pub state: WorkState,
    /// The proof that it is done if `done_when` passes.
    shown_by: ShownBy,
    /// The commit at which `done_when` has passed already.
    proven: Option<CommitId>,
}

/// The content of an item's folder before its work is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkState {
    /// Files: the item needs no repository.
    Plain,
    /// All is committed, and this is the branch's tip.
    At(CommitId),
    /// Changes that are not committed.
    Uncommitted(Changes),
}

impl Verification {
    /// Returns the result if all commands pass.
    pub fn expected(self) -> RunResult {
        match self {
            Verification::Over { result, .. } => result,
            Verification::Prove(Unproven {
                reason,
                state,
                shown_by,
                ..
            }) => {
                let commit = if let WorkState::At(tip) = state {
                    Some(tip.as_str().to_owned())
                } else {
                    None
                };
                RunResult::Passed {
                    commit,
                    reason,
                    shown_by,
                }
            }
        }
    }
}

/// Returns true if the verification may take long: without a worktree and without commands there is nothing to check.
pub fn takes_time(held: &Claimed) -> bool {
    held.task.worktree || !held.task.done_when.is_empty()
}

/// Plans the verification of `answer`.
pub fn plan(
    workspace: &Workspace,
    held: &Claimed,
    answer: AgentAnswer,
) -> Result<Verification, Error> {
    let over = |result| {
        Ok(Verification::Over {
            result,
            problems: String::new(),
        })
    };
    let (reason, is_silent, proven) = match answer {
        AgentAnswer::Result(result) => return over(result),
        AgentAnswer::Verdict(verdict) => return over(review::confirm(workspace, held, verdict)?),
        AgentAnswer::Done {
            reason,
            is_silent,
            proven,
        } => (reason, is_silent, proven),
    };
    let run = run_name(&held.task.id, held.lease.token);
    let reason = match workspace.expected(held) {
        Some(Expected::Answer) => plan::first_line(&last_words(workspace, &run)).unwrap_or(reason),
        Some(Expected::Change) | None => reason,
    };
    let shown_by = match held.task.done_when.is_empty() {
        false => ShownBy::Commands,
        true if is_silent => ShownBy::Nothing,
        true => ShownBy::Word,
    };
    // A reviewer without a verdict has nothing to verify: the board asks for the verdict.
    if held.task.status() == Status::Reviewing {
        return over(RunResult::Passed {
            commit: None,
            reason,
            shown_by,
        });
    }
    if workspace.does(held, Does::Answer) {
        return over(plan::answered(&last_words(workspace, &run)));
    }
    if workspace.does(held, Does::Plan) {
        let (result, problems) =
            plan::look(workspace, held, &Artifacts::open(&workspace.board, &run));
        return Ok(Verification::Over { result, problems });
    }
    let children = children::parked(workspace, held);
    if !children.is_empty() {
        return over(RunResult::Parked(children));
    }
    if !held.task.worktree {
        return Ok(Verification::Prove(Unproven {
            reason,
            state: WorkState::Plain,
            shown_by,
            proven: None,
        }));
    }
    let folder = workspace.board.worktree(&held.task.id);
    let changes = workspace.repository()?.changes(&folder)?;
    if let [submodule, ..] = &changes.submodules[..] {
        return over(RunResult::failed(format!(
            "it left changes uncommitted in the submodule `{}`: commit them there, then the submodule here",
            submodule.display()
        )));
    }
    if !changes.is_clean() {
        return match workspace.config.dirty {
            Dirty::Refuse => over(RunResult::failed(
                "it left changes uncommitted (`dirty: refuse` in config.yaml)",
            )),
            Dirty::Commit => {
                let state = WorkState::Uncommitted(changes);
                Ok(Verification::Prove(Unproven {
                    reason,
                    state,
                    shown_by,
                    proven: None,
                }))
            }
        };
    }
    let tip = workspace.tip_of(&folder)?;
    let may_be_empty = workspace.expected(held) == Some(Expected::Answer)
        || children::has_completed(&workspace.board.children(&held.task.id));
    if !may_be_empty && !may_be_done(workspace, held) && is_empty(workspace, held, &tip)? {
        return over(left_nothing(&[]));
    }
    let proven = proven.filter(|proven| *proven == tip);
    Ok(Verification::Prove(Unproven {
        reason,
        state: WorkState::At(tip),
        shown_by,
        proven,
    }))
}

/// Verifies an answer: commits uncommitted changes, and runs `done_when` at the commit.
pub fn verify(
    workspace: &Workspace,
    held: &Claimed,
    answer: AgentAnswer,
) -> Result<RunResult, Error> {
    // A final result has been written down already.
    if let AgentAnswer::Result(result) = answer {
        return Ok(result);
    }
    let run = run_name(&held.task.id, held.lease.token);
    let (result, proof) = match plan(workspace, held, answer)? {
        Verification::Over { result, problems } => {
            if !problems.is_empty() {
                Artifacts::create(&workspace.board, &run)?.write(PROBLEMS, &problems)?;
            }
            (result, None)
        }
        Verification::Prove(work) => prove(workspace, held, work)?,
    };
    let result = match result {
        RunResult::Passed { .. } if is_reworded(workspace, held) => {
            RunResult::failed_as(Outcome::Killed, REWORDED)
        }
        result => result,
    };
    if let Some(mut record) = Record::open(workspace, &run) {
        // Commits made for the agent belong to its patch, with any result.
        let is_work = held.task.worktree
            && !matches!(
                result,
                RunResult::Reviewed { .. } | RunResult::Planned { .. }
            );
        let tip = is_work
            .then(|| {
                workspace
                    .tip_of(&workspace.board.worktree(&held.task.id))
                    .ok()
            })
            .flatten();
        record.verified(&result, proof, tip.as_ref())?;
    }
    Ok(result)
}

/// Returns the result, and whether `done_when` passed if it was run. It is not run again at the commit `proven`.
fn prove(
    workspace: &Workspace,
    held: &Claimed,
    work: Unproven,
) -> Result<(RunResult, Option<bool>), Error> {
    let Unproven {
        reason,
        state,
        shown_by,
        proven,
    } = work;
    let task = &held.task;
    let folder = workspace.board.worktree(&task.id);
    let mut changed_nothing = false;
    let commit = if state == WorkState::Plain {
        // An item claimed by a person had no run that would have made the folder.
        make_plain(&folder)?;
        None
    } else {
        commit_left(workspace, held, &state)?;
        let may_be_empty = children::gather(
            workspace,
            task,
            &workspace.board.children(&task.id),
            &folder,
        )? || workspace.expected(held) == Some(Expected::Answer);
        let tip = workspace.tip_of(&folder)?;
        if is_unrelated(workspace, &tip)? {
            let why = format!(
                "its work has no history in common with `{}`: it began a branch from nothing",
                workspace.integration()
            );
            return Ok((RunResult::failed(why), None));
        }
        changed_nothing = !may_be_empty && is_empty(workspace, held, &tip)?;
        if changed_nothing && !may_be_done(workspace, held) {
            let nested = match &state {
                WorkState::Uncommitted(changes) => &changes.nested[..],
                _ => &[],
            };
            return Ok((left_nothing(nested), None));
        }
        if rejected(workspace, held)?.is_some_and(|rejected| rejected == tip.as_str()) {
            return Ok((RunResult::failed_as(Outcome::Empty, AS_REJECTED), None));
        }
        Some(tip)
    };
    let run = run_name(&task.id, held.lease.token);
    let role = workspace.role(&held.lease.role)?;
    let bench = Bench {
        role,
        folder: &folder,
        commit: commit.as_ref(),
        mark: mark_of(workspace, &run),
    };
    let evidence = match proven {
        Some(_) if proven == commit => Evidence::Passed,
        _ => run_done_when(workspace, task, &bench, &run, VERIFY)?,
    };
    Ok(match evidence {
        Evidence::Passed => {
            let commit = commit.map(|tip| tip.as_str().to_owned());
            let reason = match shown_by {
                ShownBy::Nothing => UNSAID.to_owned(),
                _ if changed_nothing => ALREADY_DONE.to_owned(),
                _ => reason,
            };
            (
                RunResult::Passed {
                    commit,
                    reason,
                    shown_by,
                },
                Some(true).filter(|_| !task.done_when.is_empty()),
            )
        }
        Evidence::Failed(failure) if changed_nothing => (
            RunResult::failed_as(Outcome::Empty, format!("it changed nothing, and {failure}")),
            Some(false),
        ),
        Evidence::Failed(failure) => (RunResult::Refuted(failure), Some(false)),
        Evidence::CutShort => (
            RunResult::failed_as(Outcome::Killed, "interrupted while its work was verified"),
            None,
        ),
    })
}

/// Commits an agent's uncommitted changes, and removes from its commits those that the worktree held before it began.
pub fn commit_left(workspace: &Workspace, held: &Claimed, state: &WorkState) -> Result<(), Error> {
    let (task, folder) = (&held.task, workspace.board.worktree(&held.task.id));
    if let WorkState::Uncommitted(changes) = state {
        let protected = workspace.protected(&held.queue);
        let protected: Vec<&str> = protected.iter().map(String::as_str).collect();
        workspace.repository()?.commit_all(
            &folder,
            changes,
            &format!("{}: {}", task.id, task.title),
            &protected,
        )?;
    } else {
        // The agent may have committed that itself.
        workspace.repository()?.disown_baseline(&folder)?;
    }
    // Others may merge it while the program still runs.
    workspace
        .repository()?
        .publish_cell(&folder, &workspace.branch_of(task))?;
    Ok(())
}

/// A hint for a person; agents do not get it.
pub const IF_RIGHT: &str = "; if that is right, give the item `result: answer`";

const AS_REJECTED: &str = "it changed nothing since its work was rejected";

const UNSAID: &str = "its agent did not say that it is done, and no command shows it";

const ALREADY_DONE: &str = "already done: its commands pass, and nothing was changed";

const REWORDED: &str = "its text was edited during the run; starting over with the new text";

/// Returns true if the item's words in its queue have changed since the work began.
fn is_reworded(workspace: &Workspace, held: &Claimed) -> bool {
    let is_new = |command: &String| !held.task.done_when.contains(command);
    workspace.board.task(&held.task.id).is_ok_and(|found| {
        // A merge runs new commands anyway.
        let has_new = !found.task.worktree && found.task.done_when.iter().any(is_new);
        has_new || words(&found.task) != words(&held.task)
    })
}

/// Characters that formatters add, remove or move.
const MARKS: &str = "\\*_-+#|~=>`";

/// Returns the letters of the task's words, and its lines of code, without keys, steps and parts. The title counts only
/// if there is nothing else.
fn words(task: &Task) -> (String, Vec<&str>) {
    let letters = |line: &str| -> String {
        let is_mark = |c: char| c.is_whitespace() || MARKS.contains(c);
        line.chars().filter(|c| !is_mark(*c)).collect()
    };
    let (mut prose, mut code) = (String::new(), Vec::new());
    let (mut fence, mut is_of_step) = (None, false);
    for line in task.description.lines().map(str::trim) {
        let marks = &line[..line.len() - line.trim_start_matches(['`', '~']).len()];
        let goes_on = is_of_step && !line.is_empty() && markup::bullet_end(line, 0).is_none();
        is_of_step = markup::has_box(line) || goes_on;
        if marks.len() > 2 && fence.is_none_or(|open| marks.starts_with(open)) {
            fence = fence.xor(Some(marks));
        } else if fence.is_some() {
            code.push(line);
        } else if !is_of_step {
            prose.push_str(&letters(line));
        }
    }
    if prose.is_empty() && code.is_empty() {
        prose = letters(&task.title);
    }
    (prose, code)
}

/// Returns the agent's last message in `run`.
fn last_words(workspace: &Workspace, run: &str) -> String {
    Artifacts::open(&workspace.board, run).read("result.txt")
}

/// Returns true if its commands decide whether it was done before it was claimed.
fn may_be_done(workspace: &Workspace, held: &Claimed) -> bool {
    !held.task.done_when.is_empty() && workspace.expected(held) != Some(Expected::Change)
}

/// Returns the result of work without changes. `nested` are repositories inside the worktree, which no commit can hold.
fn left_nothing(nested: &[PathBuf]) -> RunResult {
    let reason = match nested {
        [] => format!("it changed nothing{IF_RIGHT}"),
        [inner, ..] => format!(
            "it changed nothing but `{}`, a repository of its own, which a commit can't hold",
            inner.display()
        ),
    };
    RunResult::failed_as(Outcome::Empty, reason)
}

fn is_unrelated(workspace: &Workspace, tip: &CommitId) -> Result<bool, Error> {
    let Some(integration) = workspace
        .repository()?
        .branch_tip(workspace.integration())?
    else {
        return Ok(false);
    };
    Ok(workspace.repository()?.fork(&integration, tip)?.is_none())
}

/// Returns the commit that was rejected, unless it was sent back by a merge since.
fn rejected(site: &Workspace, held: &Claimed) -> Result<Option<String>, Error> {
    let (board, task) = (&site.board, &held.task);
    if task.state.rounds == 0 {
        return Ok(None);
    }
    let mut last = None;
    walk_log(board, Some(&task.id), &mut |entry| {
        last = Some(entry.kind).filter(|kind| matches!(kind, Kind::Rejected | Kind::SentBack));
        last.is_none()
    })?;
    let mut runs = runs_of(board, &task.id)?.into_iter().rev();
    let is_work = |run: &Metadata| {
        let is_over = run.token != held.lease.token && run.outcome == Some(Outcome::Success);
        is_over && run.commit.is_some()
    };
    let work = runs.find(is_work).filter(|_| last == Some(Kind::Rejected));
    Ok(work.and_then(|run| run.commit))
}

/// Returns true if the work at `tip` has nothing new for the integration branch, or only changes to protected paths.
fn is_empty(workspace: &Workspace, held: &Claimed, tip: &CommitId) -> Result<bool, Error> {
    let Some(integration) = workspace
        .repository()?
        .branch_tip(workspace.integration())?
    else {
        return Ok(false);
    };
    if workspace.repository()?.is_ancestor(tip, &integration)? {
        return Ok(true);
    }
    let protected = workspace.protected(&held.queue);
    let protected: Vec<&str> = protected.iter().map(String::as_str).collect();
    // Work that another branch has merged first does not count as empty.
    Ok(workspace
        .repository()?
        .changes_only(&integration, tip, &protected)?)
}
