//! What a run came to.

use super::verdict::Verdict;
use crate::board::plan::Plan;
use crate::board::task::{TaskId, Timestamp};
use crate::runner::Outcome;

/// A finished run.
#[derive(Clone, Debug)]
pub struct Finished {
    pub run: String,
    /// What ran; `None` where nothing did.
    pub runner: Option<String>,
    pub judged: Judged,
    /// `done_when` was run and did not pass.
    pub is_refuted: bool,
}

/// A run's result after verification.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub outcome: Outcome,
    /// In one line, for the item and the log.
    pub reason: String,
    /// The verified commit, for a success.
    pub commit: Option<String>,
    /// When the provider's limit ends, if it said so.
    pub resets_at: Option<Timestamp>,
    /// What is asked of a person, if that is the outcome.
    pub question: Option<String>,
    /// Of a review that came to one.
    pub verdict: Option<Verdict>,
    /// Of a planner's run that came to one.
    pub plan: Option<Plan>,
    /// That a success has to wait for.
    pub children: Vec<TaskId>,
}

impl Judged {
    /// An outcome with its reason; a question, where the outcome is to wait for a person.
    pub fn said(outcome: Outcome, reason: &str) -> Judged {
        let question = (outcome == Outcome::Waiting).then(|| reason.to_owned());
        Judged {
            outcome,
            reason: reason.to_owned(),
            commit: None,
            resets_at: None,
            question,
            verdict: None,
            plan: None,
            children: Vec::new(),
        }
    }
}
