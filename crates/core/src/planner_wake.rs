//! Reasons to wake a planner: states of the board that no agent's work changes any more.
//!
//! Each state has its own ID, made only from the state. The planning item for it gets that ID. Wherever the
//! ID is found, in a queue, an archive or the log, the planner has been woken for it.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::document::Document;
use crate::eligible::DEFAULT_ROLE;
use crate::key::Key;
use crate::new_item::NewItem;
use crate::task::{Status, Task, TaskId};

/// Reasons to wake a planner, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeCause {
    /// An item used up its attempts.
    Dead,
    /// Work passed its commands but could not be merged, twice.
    Integration,
    /// An item waits for one that was cancelled or does not exist.
    Blocked,
    /// A queue has a `goal` and no open items.
    Goal,
}

/// A state that needs a planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannerNeed {
    /// The ID of the planning item for it.
    pub id: TaskId,
    pub trigger: String,
    title: String,
    description: String,
}

/// Facts from outside the document.
pub struct Known<'a> {
    /// Returns the status of any item of the board.
    pub status_of: &'a dyn Fn(&TaskId) -> Option<Status>,
    /// Returns the failed merges of an item since a person last looked after it.
    pub sent_back: &'a dyn Fn(&TaskId) -> usize,
    /// Returns true if the role plans.
    pub plans: &'a dyn Fn(&str) -> bool,
    /// Returns true if the item's text may be sent to an agent.
    pub may_be_told: &'a dyn Fn(&Task) -> bool,
}

const PREFIX: &str = "WAKE-";

/// Minimum number of failed merges.
const SENT_BACK: usize = 2;

impl PlannerNeed {
    fn new(state: &[&str], trigger: String, title: String, description: String) -> PlannerNeed {
        // With ten digits, two of a thousand states collide in one of 20,000 boards.
        let number = xxh3_64(state.join("\0").as_bytes()) % 10_000_000_000;
        let id = format!("{PREFIX}{number:010}")
            .parse()
            .expect("it is an ID");
        PlannerNeed {
            id,
            trigger,
            title,
            description,
        }
    }

    /// Returns the planning item, for agents of `role`.
    pub fn item(&self, role: &str) -> NewItem {
        NewItem {
            id: Some(self.id.clone()),
            title: self.title.clone(),
            fields: vec![
                (Key::Role, role.into()),
                (Key::Trigger, self.trigger.as_str().into()),
            ],
            yaml_fields: Vec::new(),
            description: self.description.clone(),
        }
    }
}

/// Returns the states of `causes` in the queue that need a planner; none while one of its planning items is
/// open. The results of a planning item wake no planner again, which could loop for ever.
pub fn needs(
    queue: &str,
    document: &Document<'_>,
    causes: &[WakeCause],
    known: &Known<'_>,
) -> Vec<PlannerNeed> {
    let tasks = || {
        document
            .items()
            .iter()
            .filter(|item| !item.nested)
            .map(|item| (item, document.task_of(item)))
    };
    let plans = |task: &Task| (known.plans)(task.role.as_deref().unwrap_or(DEFAULT_ROLE));
    if tasks().any(|(_, task)| plans(&task) && !task.status().is_ended()) {
        return Vec::new();
    }
    let is_ours = |task: &Task| plans(task) || task.id.as_str().starts_with(PREFIX);
    let is_meant = |task: &Task| !is_ours(task) && (known.may_be_told)(task);
    let named = || {
        tasks()
            .filter(|(item, task)| item.id.is_some() && is_meant(task))
            .map(|(_, task)| task)
    };
    let mut needs = Vec::new();
    for cause in [
        WakeCause::Dead,
        WakeCause::Integration,
        WakeCause::Blocked,
        WakeCause::Goal,
    ] {
        if !causes.contains(&cause) {
            continue;
        }
        match cause {
            WakeCause::Dead => needs.extend(named().filter_map(|task| dead(&task))),
            WakeCause::Integration => {
                needs.extend(named().filter_map(|task| not_merged(&task, known)));
            }
            WakeCause::Blocked => needs.extend(named().filter_map(|task| blocked(&task, known))),
            WakeCause::Goal => {
                let is_over = tasks().all(|(_, task)| {
                    matches!(task.status(), Status::Completed | Status::Cancelled)
                });
                needs.extend(
                    document
                        .front()
                        .goal
                        .as_ref()
                        .filter(|_| is_over)
                        .map(|goal| aim(queue, goal)),
                );
            }
        }
    }
    needs
}

fn dead(task: &Task) -> Option<PlannerNeed> {
    let reason = task.reason().unwrap_or("no reason was given");
    let (attempts, rounds) = (
        task.state.attempt.to_string(),
        task.state.rounds.to_string(),
    );
    let state = ["dead", task.id.as_str(), &attempts, &rounds, reason];
    let trigger = format!("{} used up its attempts: {reason}", task.id);
    (task.status() == Status::Dead)
        .then(|| PlannerNeed::new(&state, trigger, format!("Replace {}", task.id), about(task)))
}

fn not_merged(task: &Task, known: &Known<'_>) -> Option<PlannerNeed> {
    let is_open = matches!(
        task.status(),
        Status::Pending | Status::InProgress | Status::InReview | Status::Reviewing
    );
    // The log is read only for items that were returned at all.
    let is_so = is_open && task.state.attempt > 0 && (known.sent_back)(&task.id) >= SENT_BACK;
    let trigger = format!(
        "{} passes its commands, but its merge failed {SENT_BACK} times",
        task.id
    );
    let title = format!("Clear the way for {}", task.id);
    is_so.then(|| {
        PlannerNeed::new(
            &["integration", task.id.as_str()],
            trigger,
            title,
            about(task),
        )
    })
}

fn blocked(task: &Task, known: &Known<'_>) -> Option<PlannerNeed> {
    if task.status() != Status::Pending {
        return None;
    }
    let lost = |id: &&TaskId| matches!((known.status_of)(id), None | Some(Status::Cancelled));
    let lost: Vec<&str> = task.after.iter().filter(lost).map(TaskId::as_str).collect();
    let names = lost.join(", ");
    let trigger = format!(
        "{} waits for {names}, which will never be completed",
        task.id
    );
    let title = format!("Free {}", task.id);
    (!lost.is_empty()).then(|| {
        PlannerNeed::new(
            &["blocked", task.id.as_str(), &names],
            trigger,
            title,
            about(task),
        )
    })
}

fn aim(queue: &str, goal: &str) -> PlannerNeed {
    let description = format!("The goal of the queue:\n\n{}", goal.trim());
    PlannerNeed::new(
        &["goal", queue, goal.trim()],
        "nothing is planned".to_owned(),
        "Plan for the goal".to_owned(),
        description,
    )
}

fn about(task: &Task) -> String {
    let Task { id, title, .. } = task;
    format!(
        "{id} is: {title}\n\nIts work is on the branch `tavern/{id}`, if there is one. Plan items that replace it or come\n\
         before it; if only a person can help, ask one."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_with_states::with_states;

    #[test]
    fn a_state_has_one_id_whatever_is_around_it() {
        let known = Known {
            status_of: &|_| None,
            sent_back: &|_| 0,
            plans: &|_| false,
            may_be_told: &|_| true,
        };
        let id = |text: &str| {
            needs("main", &with_states(text), &[WakeCause::Dead], &known)
                .remove(0)
                .id
                .to_string()
        };
        let first = id("- [ ] T-1: a (status: dead, attempt: 3, reason: no)\n");
        assert_eq!(
            first,
            id(
                "## Pending\n- [ ] T-5: b\n\n## Dead\n- [ ] T-1: another title (attempt: 3, reason: \"no\")\n"
            )
        );
        assert_eq!(first, "WAKE-3729726506", "boards hold it for years");
        for other in [
            "attempt: 2, reason: no",
            "attempt: 3, reason: why",
            "attempt: 3, rounds: 1, reason: no",
        ] {
            assert_ne!(
                first,
                id(&format!("- [ ] T-1: a (status: dead, {other})\n"))
            );
        }
    }
}
