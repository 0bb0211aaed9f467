//! A task: one item of a queue, read into typed fields. Knows nothing of how it is spelt in Markdown.

use serde::ser::{Serialize, SerializeMap, Serializer};

pub use super::budget::Budget;
pub use super::id::{BadId, MAX_ID, TaskId};
pub use super::state::{Approval, State};
pub use super::status::{Consent, Mode, OnFailure, Status, Timestamp};

/// An item, read. What stands in the queue document is the durable truth about it; who holds it is a `Lease`.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub title: String,
    /// The indented text under the title, dedented, without the `yaml task` block; may be empty.
    pub description: String,
    pub state: State,
    /// 0 is most urgent; the queue's own default, else 2.
    pub priority: u8,
    pub after: Vec<TaskId>,
    /// Who may take it; `None` means any coder.
    pub role: Option<String>,
    pub tags: Vec<String>,
    pub parent: Option<TaskId>,
    pub runner: Option<String>,
    pub model: Option<String>,
    /// Shell commands that must all exit 0 at the commit before it counts as done.
    pub done_when: Vec<String>,
    /// Globs of the paths that it is expected to change.
    pub touches: Vec<String>,
    pub budget: Budget,
    /// False: the item needs no repository and is run in an empty scratch folder.
    pub worktree: bool,
    /// True: done without any change is fine.
    pub allow_empty: bool,
    pub max_attempts: Option<u32>,
    /// When a person has to approve it: before the `start`, before the `merge`.
    pub approve: Vec<Consent>,
    /// Who has to approve the work before it is merged: roles or [`PERSON`]; a number stands for so many reviewers,
    /// `none` for nobody. `None`: as config.yaml says.
    pub review: Option<Vec<String>>,
    /// What its failure means to its parent.
    pub on_failure: OnFailure,
    /// Of a planning item: what woke the planner.
    pub trigger: Option<String>,
    /// Of a planning item: where the planned items begin, draft or pending.
    pub lane: Option<Status>,
}

/// The one that approves who is no role: a person.
pub const PERSON: &str = "person";

impl Task {
    /// A pending task with nothing but a title.
    pub fn new(id: TaskId, title: &str) -> Task {
        Task {
            id,
            title: title.to_owned(),
            description: String::new(),
            state: State::default(),
            priority: 2,
            after: Vec::new(),
            role: None,
            tags: Vec::new(),
            parent: None,
            runner: None,
            model: None,
            done_when: Vec::new(),
            touches: Vec::new(),
            budget: Budget::default(),
            worktree: true,
            allow_empty: false,
            max_attempts: None,
            approve: Vec::new(),
            review: None,
            on_failure: OnFailure::GoOn,
            trigger: None,
            lane: None,
        }
    }

    pub fn status(&self) -> Status {
        self.state.status()
    }

    pub fn mode(&self) -> Mode {
        self.state.mode
    }

    /// Why it waits, died, ended or came back.
    pub fn reason(&self) -> Option<&str> {
        self.state.reason.as_deref()
    }

    /// Of its work: as it was verified, approved or merged.
    pub fn commit(&self) -> Option<&str> {
        self.state.commit()
    }

    /// Whose work is in review.
    pub fn author(&self) -> Option<&str> {
        self.state.work()?.author.as_deref()
    }

    /// Who has approved its work so far.
    pub fn approvals(&self) -> &[Approval] {
        self.state.work().map_or(&[], |work| &work.approvals)
    }

    /// What its agent has asked of a person.
    pub fn question(&self) -> Option<&str> {
        Some(&self.state.question()?.text)
    }

    /// A person has to allow it before it is started.
    pub fn waits_for_permission(&self) -> bool {
        !self.state.allowed && self.approve.contains(&Consent::Start)
    }

    /// Who has to approve the work before it is merged, one name for each approval: roles, or [`PERSON`]. `general` is
    /// what config.yaml says.
    pub fn reviewers(&self, general: &[String]) -> Vec<String> {
        let mut reviewers = Vec::new();
        for name in self.review.as_deref().unwrap_or(general) {
            match name.parse::<usize>() {
                Ok(number) => reviewers.extend(std::iter::repeat_n(REVIEWER.to_owned(), number.min(9))),
                Err(_) if name == "none" => {}
                Err(_) => reviewers.push(name.clone()),
            }
        }
        if self.approve.contains(&Consent::Merge) && !reviewers.iter().any(|name| name == PERSON) {
            reviewers.push(PERSON.to_owned());
        }
        reviewers
    }

    /// Those of `reviewers` whose approval is still missing.
    pub fn open_reviews(&self, reviewers: &[String]) -> Vec<String> {
        let mut open = reviewers.to_vec();
        for approval in self.approvals() {
            if let Some(place) = open.iter().position(|name| *name == approval.role) {
                open.remove(place);
            }
        }
        open
    }

    /// Has `agent` approved the work already?
    pub fn is_approved_by(&self, agent: &str) -> bool {
        self.approvals().iter().any(|approval| approval.by == agent)
    }

    /// What a person has answered to its question, if it has one: the `answer:` key, else what stands behind the last
    /// `Answer:` of its text and below it.
    pub fn answered(&self) -> Option<String> {
        let question = self.state.question()?;
        let typed = || {
            let lines: Vec<&str> = self.description.lines().collect();
            let starts: Vec<usize> = (0..lines.len()).filter(|at| is_answer(lines[*at])).collect();
            let last = *starts.last().filter(|_| starts.len() > question.answers as usize)?;
            let first = &lines[last][ANSWER.len()..];
            Some([&[first], &lines[last + 1..]].concat().join("\n").trim().to_owned())
        };
        question.answer.clone().or_else(typed).filter(|answer| !answer.trim().is_empty())
    }

    /// How many answers stand in its text.
    pub fn answers_in_text(&self) -> u32 {
        u32::try_from(self.description.lines().filter(|line| is_answer(line)).count()).unwrap_or(u32::MAX)
    }
}

/// One flat object: the keys of an item, those of its state among the others.
impl Serialize for Task {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let facts = self.state.facts();
        let approvals: Vec<String> = self.approvals().iter().map(ToString::to_string).collect();
        let mut map = serializer.serialize_map(None)?;
        macro_rules! entries {
            ($($name:literal: $value:expr,)*) => { $(map.serialize_entry($name, &$value)?;)* };
        }
        entries! {
            "id": self.id,
            "title": self.title,
            "description": self.description,
            "status": self.status(),
            "priority": self.priority,
            "after": self.after,
            "role": self.role,
            "tags": self.tags,
            "parent": self.parent,
            "runner": self.runner,
            "model": self.model,
            "done_when": self.done_when,
            "touches": self.touches,
            "budget": self.budget,
            "worktree": self.worktree,
            "allow_empty": self.allow_empty,
            "attempt": facts.attempt,
            "returns": facts.returns,
            "max_attempts": self.max_attempts,
            "not_before": facts.not_before,
            "agent": facts.agent,
            "started": facts.started,
            "completed": facts.completed,
            "commit": facts.commit,
            "reason": facts.reason,
            "approve": self.approve,
            "allowed": facts.allowed,
            "review": self.review,
            "author": facts.author,
            "approvals": approvals,
            "rounds": facts.rounds,
            "mode": facts.mode,
            "on_failure": self.on_failure,
            "question": facts.question,
            "answer": facts.answer,
            "answers": facts.answers,
            "trigger": self.trigger,
            "lane": self.lane,
        }
        map.end()
    }
}

/// The role that a bare number of reviews asks for.
pub const REVIEWER: &str = "reviewer";

/// How an answer begins that a person types under an item.
const ANSWER: &str = "Answer:";

fn is_answer(line: &str) -> bool {
    line.get(..ANSWER.len()).is_some_and(|start| start.eq_ignore_ascii_case(ANSWER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::state::Facts;

    #[test]
    fn reviews_are_counted_by_role() {
        let task = |review: &[&str], approvals: &[&str]| Task {
            review: Some(review.iter().map(|&name| name.to_owned()).collect()),
            state: State::of(
                Status::InReview,
                Facts { approvals: approvals.iter().map(|&name| name.to_owned()).collect(), ..Facts::default() },
            ),
            ..Task::new("T-1".parse().expect("an ID"), "Do it")
        };
        for (review, approvals, open) in [
            (&["none"][..], &[][..], &[][..]),
            (&["2"], &["reviewer/Sam"], &["reviewer"]),
            (&["reviewer", "security", "person"], &["security/Sam", "person/rosie"], &["reviewer"]),
            (&["reviewer"], &["reviewer/Sam", "reviewer/Merry"], &[]),
        ] {
            let task = task(review, approvals);
            assert_eq!(task.open_reviews(&task.reviewers(&[])), open, "{review:?} {approvals:?}");
        }
        let asked = Task { approve: vec![Consent::Merge], ..task(&["reviewer"], &[]) };
        assert_eq!(asked.reviewers(&[]), ["reviewer", PERSON]);
        let general = Task { review: None, ..task(&[], &["reviewer/Sam"]) };
        assert_eq!(general.reviewers(&["reviewer".into()]), ["reviewer"]);
        assert!(general.is_approved_by("Sam") && !general.is_approved_by("reviewer"));
    }

    #[test]
    fn an_answer_is_a_key_or_stands_under_the_item() {
        let asked = |question: bool, answers, answer: Option<&str>, text: &str| Task {
            state: State::of(
                Status::Waiting,
                Facts {
                    question: question.then(|| "red or blue?".to_owned()),
                    answers,
                    answer: answer.map(str::to_owned),
                    ..Facts::default()
                },
            ),
            description: text.to_owned(),
            ..Task::new("T-1".parse().expect("an ID"), "Do it")
        };
        for (question, answers, text, expected) in [
            (true, 0, "See a.md.\nAnswer: blue", Some("blue")),
            (true, 0, "answer:\nblue,\n\nand red", Some("blue,\n\nand red")),
            (true, 0, "Answer:", None),
            (true, 0, "The Answer: blue", None),
            (true, 1, "Answer: blue", None),
            (true, 1, "Answer: blue\nAnswer: red", Some("red")),
            (false, 0, "Answer: blue", None),
        ] {
            assert_eq!(asked(question, answers, None, text).answered().as_deref(), expected, "{text}");
        }
        let keyed = asked(true, 0, Some("blue"), "");
        assert_eq!(keyed.answered().as_deref(), Some("blue"));
    }
}
