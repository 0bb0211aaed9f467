//! Checks whether an item may have one more child: depth, number, and no cycle of waiting. Also determines
//! the keys that a child inherits.

use super::decide::Refusal;
use super::front::Front;
use super::key::Key;
use super::patch::Patch;
use super::task::{Consent, Task, TaskId};

/// Limits for breaking up items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum levels below an item without a parent.
    pub depth: u32,
    /// Maximum children of one item.
    pub most: u32,
    /// Maximum children that runs add in a day, of all items together.
    pub day: u32,
}

/// An item that is to get a child.
#[derive(Clone, Debug)]
pub struct Parent<'a> {
    pub task: &'a Task,
    /// Its own parent, that one's parent, and so on.
    pub above: &'a [TaskId],
    /// Number of its children, ended ones included.
    pub children: usize,
    /// Number of children added by runs in the last day, of all items; 0 if no run adds this one.
    pub today: usize,
}

/// Checks that `parent` may have one more child, which waits for `after`.
pub fn may_have_child(
    parent: &Parent<'_>,
    after: &[TaskId],
    bounds: Bounds,
) -> Result<(), Refusal> {
    let task = parent.task.id.clone();
    if parent.task.status().is_ended() {
        return Err(Refusal::EndedParent {
            task,
            status: parent.task.status(),
        });
    }
    if parent.above.len() >= bounds.depth as usize {
        return Err(Refusal::TooDeep {
            task,
            depth: bounds.depth,
        });
    }
    if parent.children >= bounds.most as usize {
        return Err(Refusal::TooMany {
            task,
            most: bounds.most,
        });
    }
    if parent.today >= bounds.day as usize {
        return Err(Refusal::TooManyToday { most: bounds.day });
    }
    match after
        .iter()
        .find(|id| **id == task || parent.above.contains(id))
    {
        Some(waiting) => Err(Refusal::WaitsForChild {
            task: waiting.clone(),
        }),
        None => Ok(()),
    }
}

/// Returns the patch for the approvals that `child` inherits. Unless it sets its own, its work needs the
/// approvals of its parent's: otherwise a child would be a way around them. `front` is that of the child's
/// queue; `general` are the default approvers of config.yaml.
pub fn heritage(parent: &Task, child: &Task, front: &Front, general: &[String]) -> Patch {
    let mut set = Vec::new();
    let review = parent.review.as_deref().unwrap_or(general);
    let here = front.review.as_deref().unwrap_or(general);
    if child.review.is_none() && review != here && (parent.review.is_some() || !review.is_empty()) {
        set.push((Key::Review, Some(review.to_vec().into())));
    }
    let own = if child.approve.is_empty() {
        &front.approve
    } else {
        &child.approve
    };
    if parent.approve.contains(&Consent::Merge) && !own.contains(&Consent::Merge) {
        set.push((Key::Approve, Some(Consent::with_merge(own))));
    }
    Patch {
        set,
        ..Patch::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_yaml::Value;

    use super::*;
    use crate::metadata::flow;

    fn id(text: &str) -> TaskId {
        text.parse().expect("an ID")
    }

    #[test]
    fn a_child_is_approved_by_those_who_approve_its_parent() {
        let words = |words: &str| {
            words
                .split(' ')
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let review = |names: &str| Some(words(names)).filter(|names| !names.is_empty());
        for (parent, child, front, general, inherited) in [
            (("", ""), ("", ""), ("", ""), "", ""),
            (("person", ""), ("", ""), ("", ""), "", "review: [person]"),
            (("person", ""), ("", ""), ("person", ""), "", ""),
            (("person", ""), ("none", ""), ("", ""), "", ""),
            (("", "merge"), ("", ""), ("", ""), "", "approve: merge"),
            (("", "merge"), ("", ""), ("", "start merge"), "", ""),
            (
                ("", "start merge"),
                ("", "start"),
                ("", ""),
                "",
                "approve: [start, merge]",
            ),
            (
                ("", "merge"),
                ("", ""),
                ("", "start"),
                "",
                "approve: [start, merge]",
            ),
            (("", "start"), ("", ""), ("", ""), "", ""),
            (
                ("2", "merge"),
                ("", ""),
                ("reviewer", ""),
                "",
                "review: [\"2\"], approve: merge",
            ),
            // Those of config.yaml hold for the child of an item that says nothing, wherever it goes.
            (
                ("", ""),
                ("", ""),
                ("none", ""),
                "person",
                "review: [person]",
            ),
            (("", ""), ("", ""), ("", ""), "person", ""),
            (("", ""), ("", ""), ("person", ""), "person", ""),
            (("", ""), ("none", ""), ("none", ""), "person", ""),
            (("person", ""), ("", ""), ("", ""), "person", ""),
        ] {
            let task = |(names, moments): (&str, &str)| Task {
                review: review(names),
                approve: Consent::read_all(moments.split_whitespace()).expect("moments"),
                ..Task::new(id("T-1"), "Do it")
            };
            let front = Front {
                review: review(front.0),
                approve: Consent::read_all(front.1.split_whitespace()).expect("moments"),
                ..Front::default()
            };
            let patch = heritage(&task(parent), &task(child), &front, &words(general));
            let told = |(key, value): &(Key, Option<Value>)| {
                format!(
                    "{}: {}",
                    key.as_str(),
                    flow(value.as_ref().expect("it is set"))
                )
            };
            let set: Vec<String> = patch.set.iter().map(told).collect();
            assert_eq!(
                set.join(", "),
                inherited,
                "{parent:?} {child:?} {front:?} {general}"
            );
        }
    }
}
