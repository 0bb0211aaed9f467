//! What an agent is told: the task, its history and the rules, gathered for the prompt's template.

use std::fs;

use super::artifacts::{Artifacts, Metadata};
use super::error::Error;
use super::site::Site;
use super::worktree::{Worktree, salvage_ref};
use crate::config::Role;
use crate::prompt::{Assigned, AssignedTask, EarlierAttempt, PromptLimits, Template, TemplateError, assigned};
use crate::store::Claimed;

/// The prompt of a run, after `earlier` ones.
pub fn prompt(
    site: &Site,
    held: &Claimed,
    role: &Role,
    worktree: &Worktree,
    earlier: &[Metadata],
) -> Result<String, Error> {
    let task = &held.task;
    let branch = worktree.branch.as_ref();
    let values = Assigned {
        task: AssignedTask {
            id: task.id.to_string(),
            title: task.title.clone(),
            description: task.description.clone(),
            done_when: task.done_when.clone(),
            touches: task.touches.clone(),
        },
        agent: held.lease.agent.clone(),
        role: held.lease.role.clone(),
        queue: held.queue.id.clone(),
        worktree: worktree.path.to_string_lossy().into_owned(),
        branch: branch.map(|branch| branch.name.clone()),
        base: branch.map(|branch| branch.base.short().to_owned()),
        attempt: held.lease.attempt,
        max_attempts: task.max_attempts.unwrap_or(site.config.max_attempts),
        earlier: earlier.iter().map(|run| earlier_attempt(site, held, run)).collect(),
        notes: Vec::new(),
        learnings: Vec::new(),
    };
    Ok(assigned(&template(site, &role.template)?, &values, &PromptLimits::default())?)
}

/// The board's own template of that name, else the built-in one.
fn template(site: &Site, name: &str) -> Result<Template, TemplateError> {
    let path = site.board.path("templates").join(name);
    if let Ok(text) = fs::read_to_string(&path) {
        return Ok(Template { name: path.to_string_lossy().into_owned(), text });
    }
    Template::built_in(name).ok_or_else(|| TemplateError {
        name: name.to_owned(),
        line: 0,
        message: "there is no such template in .tavern/templates, and none is built in".to_owned(),
    })
}

fn earlier_attempt(site: &Site, held: &Claimed, run: &Metadata) -> EarlierAttempt {
    let artifacts = Artifacts::open(&site.board, &run.run);
    // What failed after the merge is the later word.
    let merged = artifacts.read("verify-merged.txt");
    let output = if merged.is_empty() { artifacts.read("verify.txt") } else { merged };
    let reference = salvage_ref(&held.task, run.token);
    let salvage = site.repository.commit_of(&reference).ok().flatten().map(|_| reference);
    EarlierAttempt {
        number: run.attempt,
        outcome: run.outcome.map_or_else(|| "killed".to_owned(), |outcome| outcome.to_string()),
        reason: run.reason.clone().unwrap_or_else(|| "its supervisor died".to_owned()),
        command: None,
        output,
        commits: commits(site, run),
        salvage,
    }
}

fn commits(site: &Site, run: &Metadata) -> Vec<String> {
    let (Some(base), Some(tip)) = (&run.base, &run.commit) else { return Vec::new() };
    let (Ok(base), Ok(tip)) = (base.parse(), tip.parse()) else { return Vec::new() };
    let found = site.repository.commits_between(&base, &tip).unwrap_or_default();
    found.iter().map(|commit| format!("{} {}", commit.id.short(), commit.subject)).collect()
}
