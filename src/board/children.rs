//! Whether an item may have one more child: how deep and how many, and that no two wait for each other.

use super::decide::Refusal;
use super::task::{Task, TaskId};

/// How far items may be broken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Levels below an item that has no parent.
    pub depth: u32,
    /// Of one item.
    pub most: u32,
}

/// An item that is to have a child.
#[derive(Clone, Debug)]
pub struct Parent<'a> {
    pub task: &'a Task,
    /// Its own parent, that one's parent, and so on.
    pub above: &'a [TaskId],
    /// How many children it has already, ended ones too.
    pub children: usize,
}

/// May `parent` have one more child, which is to begin when `after` are completed?
pub fn may_have_child(parent: &Parent<'_>, after: &[TaskId], bounds: Bounds) -> Result<(), Refusal> {
    let task = parent.task.id.clone();
    if parent.task.status.is_ended() {
        return Err(Refusal::EndedParent { task, status: parent.task.status });
    }
    if parent.above.len() >= bounds.depth as usize {
        return Err(Refusal::TooDeep { task, depth: bounds.depth });
    }
    if parent.children >= bounds.most as usize {
        return Err(Refusal::TooMany { task, most: bounds.most });
    }
    match after.iter().find(|id| **id == task || parent.above.contains(id)) {
        Some(waiting) => Err(Refusal::WaitsForChild { task: waiting.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::task::Status;

    fn id(text: &str) -> TaskId {
        text.parse().expect("an ID")
    }

    #[test]
    fn children_are_bounded_and_never_wait_for_what_waits_for_them() {
        let bounds = Bounds { depth: 2, most: 3 };
        let above = [id("T-1"), id("T-0")];
        for (status, above, children, after, refusal) in [
            (Status::InProgress, &above[..1], 2, vec![id("T-7")], None),
            (Status::Draft, &[], 0, vec![], None),
            (Status::Completed, &[], 0, vec![], Some("completed")),
            (Status::Dead, &[], 0, vec![], Some("dead")),
            (Status::InProgress, &above[..], 0, vec![], Some("2 levels down")),
            (Status::InProgress, &[], 3, vec![], Some("3 children")),
            (Status::InProgress, &[], 0, vec![id("T-9")], Some("`T-9` waits for its children")),
            (Status::InProgress, &above[..1], 0, vec![id("T-1")], Some("`T-1` waits for its children")),
        ] {
            let task = Task { status, ..Task::new(id("T-9"), "Do it") };
            let parent = Parent { task: &task, above, children };
            let said = may_have_child(&parent, &after, bounds).map_err(|refusal| (refusal.to_string(), refusal.hint()));
            match (said, refusal) {
                (Ok(()), None) => {}
                (Err((text, hint)), Some(part)) => {
                    assert!(text.contains(part) && hint.len() > 10, "{text}; {hint}");
                }
                (said, refusal) => panic!("{said:?} is not {refusal:?}"),
            }
        }
    }
}
