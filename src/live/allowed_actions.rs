//! Which actions of a person on an item the board's rules allow now.

use crate::release::freed;
use crate::report::judge::is_to_start;
use crate::shared::person;
use tavern_core::decide::decide;
use tavern_core::event::{Event, Review};
use tavern_core::lease::Lease;
use tavern_core::task::{PERSON, Task, TaskId, Timestamp};

/// The allowed actions; else the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offers {
    pub approve: Result<(), String>,
    pub reject: Result<(), String>,
    pub release: Result<(), String>,
}

impl Default for Offers {
    /// Allows everything for an unknown item; the program itself may refuse.
    fn default() -> Offers {
        Offers {
            approve: Ok(()),
            reject: Ok(()),
            release: Ok(()),
        }
    }
}

impl Offers {
    /// Returns the actions for a task called `name` and its lease at `now`.
    pub fn of(name: &str, task: &Task, lease: Option<&Lease>, now: Timestamp) -> Offers {
        let may = |event: &Event| match decide(task, lease, event, now) {
            Ok(_) => Ok(()),
            // An item without an ID is called by its place.
            Err(refusal) => Err(refusal
                .to_string()
                .replace(&format!("`{}`", TaskId::nobody()), &format!("`{name}`"))),
        };
        let by = person();
        let review = || Review {
            token: None,
            by: by.clone(),
            role: PERSON.to_owned(),
            reviewers: Vec::new(),
        };
        let approve = if is_to_start(task) {
            Event::Allow { by: by.clone() }
        } else {
            Event::Approve {
                review: review(),
                commit: None,
            }
        };
        let reject = Event::Reject {
            review: review(),
            findings: String::new(),
            most: u32::MAX,
        };
        let release = match lease {
            Some(lease) => Err(format!(
                "`{name}` is held by {}: p pauses its run",
                lease.agent
            )),
            None => match freed(task, None) {
                Ok(event) => may(&event),
                Err(why) => Err(format!(
                    "`{name}` can't be released: {why}, and it is not held"
                )),
            },
        };
        Offers {
            approve: may(&approve),
            reject: may(&reject),
            release,
        }
    }
}
