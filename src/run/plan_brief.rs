//! What a planner is told beside its request: the state of the queues, who takes items, what may specify them.

use std::path::Path;

use super::site::Site;
use super::worktree::Worktree;
use crate::board::document::{Document, Item, parse};
use crate::board::eligible::DEFAULT_ROLE;
use crate::board::task::{Status, Task, TaskId};
use crate::config::{Does, PlanLane, Role};
use crate::prompt::{Planning, QueueState};
use crate::store::Claimed;

/// Files that may be specifications, at most.
const MOST_SPECS: usize = 60;

/// Folders that they are in, beside the root.
const SPEC_FOLDERS: [&str; 6] = ["spec", "specs", "doc", "docs", "design", "rfcs"];

/// Gathers it for the holder of a planning item.
pub fn planning(site: &Site, held: &Claimed, worktree: &Worktree) -> Planning {
    let lane = held.task.lane.unwrap_or(match site.config.plan.lane {
        PlanLane::Pending => Status::Pending,
        PlanLane::Draft => Status::Draft,
    });
    let roles = site.config.roles.iter().filter(|(_, role)| role.does == Does::Work);
    // One queue that can't be read keeps nobody from planning.
    let queues = site.board.queues().unwrap_or_default().into_iter();
    let texts = queues.filter_map(|queue| site.board.read(&queue).ok());
    Planning {
        trigger: held.task.trigger.clone(),
        lane: lane.to_string(),
        most: site.config.plan.most,
        roles: roles.map(|(name, role)| described(name, role)).collect(),
        queues: texts.map(|text| state(&text.queue.id, &parse(&text.content).0, &held.task.id)).collect(),
        specs: specs(&worktree.path),
    }
}

fn described(name: &str, role: &Role) -> String {
    let model = role.model.as_ref().map(|model| format!("model {model}"));
    let minutes = role.budget.minutes.map(|minutes| format!("{minutes} minutes at most"));
    let tries = role.max_attempts.map(|most| format!("tried {most} times at most"));
    let said: Vec<String> = [model, minutes, tries].into_iter().flatten().collect();
    if said.is_empty() { name.to_owned() } else { format!("{name} ({})", said.join(", ")) }
}

fn state(name: &str, document: &Document<'_>, own: &TaskId) -> QueueState {
    let others = || document.items().iter().filter(|item| item.within.is_none() && item.id.as_ref() != Some(own));
    let count = |status: Status| others().filter(|item| item.status == status).count();
    let counts = Status::ALL.into_iter().map(|status| (count(status), status)).filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, status)| format!("{count} {status}")).collect();
    let is_told = |item: &&Item<'_>| !matches!(item.status, Status::Completed | Status::Cancelled);
    QueueState {
        name: name.to_owned(),
        summary: if counts.is_empty() { "no items".to_owned() } else { counts.join(", ") },
        items: others().filter(is_told).map(|item| told(document, item)).collect(),
    }
}

fn told(document: &Document<'_>, item: &Item<'_>) -> String {
    let task = document.task_of(item);
    let name = item.id.as_ref().map(|id| format!("{id} ")).unwrap_or_default();
    let why = task.question().or(task.reason()).map(|why| format!(" [{why}]"));
    let status = task.status();
    let Task { title, role, after, touches, .. } = task;
    let mut line = format!("{name}({status}");
    let role = role.filter(|role| role != DEFAULT_ROLE);
    line.extend(role.map(|role| format!(", role {role}")));
    let after: Vec<&str> = after.iter().map(TaskId::as_str).collect();
    line.extend((!after.is_empty()).then(|| format!(", after {}", after.join(" "))));
    line.extend((!touches.is_empty()).then(|| format!(", touches {}", touches.join(" "))));
    line.push_str(&format!("): {title}"));
    line.extend(why);
    line
}

/// Markdown files of the root and of folders for specifications.
fn specs(root: &Path) -> Vec<String> {
    let files = walkdir::WalkDir::new(root).max_depth(4).sort_by_file_name().into_iter();
    let files = files.filter_entry(|entry| {
        let is_spec = |name: &str| SPEC_FOLDERS.iter().any(|folder| folder.eq_ignore_ascii_case(name));
        entry.depth() != 1 || entry.file_type().is_file() || entry.file_name().to_str().is_some_and(is_spec)
    });
    let paths = files.filter_map(Result::ok).filter(|entry| entry.file_type().is_file());
    let paths = paths.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "md"));
    let names = paths.filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.to_string_lossy().into_owned()));
    names.take(MOST_SPECS).collect()
}
