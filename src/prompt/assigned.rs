//! What an agent is told of its task, as plain values. Knows no template and no limit.

use serde::Serialize;

/// What an agent is told about the task that it holds. Templates see these fields by their names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assigned {
    pub task: AssignedTask,
    /// The agent's own name.
    pub agent: String,
    pub role: String,
    pub queue: String,
    /// Absolute path of the folder that it works in.
    pub worktree: String,
    /// The branch that is checked out there; `None`: the task needs no repository.
    pub branch: Option<String>,
    /// The commit that the branch started from, abbreviated.
    pub base: Option<String>,
    /// Counted from 1.
    pub attempt: u32,
    pub max_attempts: u32,
    /// Oldest first.
    pub earlier: Vec<EarlierAttempt>,
    /// execute, delegate, plan, break_up or unify.
    pub mode: String,
    /// The branch that work is merged to.
    pub integration: String,
    /// For who looks at the work of somebody else.
    pub review: Option<ReviewTask>,
    /// For who turns it into items.
    pub planning: Option<Planning>,
    /// What reviews have found in the work. Oldest first.
    pub findings: Vec<Remark>,
    /// What was asked of a person, with the answer. Oldest first.
    pub answers: Vec<Answered>,
    /// The items that this one was broken up into, when all of them have ended.
    pub children: Vec<ChildResult>,
    /// What people have said about it. Oldest first.
    pub notes: Vec<Remark>,
}

/// The task itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AssignedTask {
    pub id: String,
    pub title: String,
    /// As its owner wrote it; may be empty.
    pub description: String,
    /// Shell commands that must all exit 0.
    pub done_when: Vec<String>,
    /// Globs of the paths that it is expected to change.
    pub touches: Vec<String>,
}

/// One run that did not end the task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EarlierAttempt {
    pub number: u32,
    /// `failed`, `timeout` and so on.
    pub outcome: String,
    /// In one line.
    pub reason: String,
    /// The command that failed, if one did.
    pub command: Option<String>,
    /// What it printed; the end of it is kept.
    pub output: String,
    /// Its commits, `abc1234 Subject` each, newest first; they are on the branch.
    pub commits: Vec<String>,
    /// Where its uncommitted work was kept.
    pub salvage: Option<String>,
}

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReviewTask {
    /// Abbreviated; `None`: the task needs no repository.
    pub commit: Option<String>,
    pub author: String,
    pub integration: String,
    /// Counted from 1.
    pub round: u32,
    /// The end of the author's last answer; may be empty.
    pub said: String,
}

/// What a planner has to know of the board.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Planning {
    /// What woke it, if no person asked.
    pub trigger: Option<String>,
    /// How planned items begin: pending or draft.
    pub lane: String,
    /// Items of one plan.
    pub most: u32,
    /// Roles that take items, a line each.
    pub roles: Vec<String>,
    pub queues: Vec<QueueState>,
    /// Paths of files that may be specifications.
    pub specs: Vec<String>,
}

/// How a queue stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueState {
    pub name: String,
    /// How many items of each status.
    pub summary: String,
    /// Its items that have not ended well, a line each.
    pub items: Vec<String>,
}

/// A question with its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answered {
    pub question: String,
    pub answer: String,
}

/// What became of a child.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChildResult {
    pub id: String,
    pub title: String,
    pub status: String,
    /// Where it was merged, abbreviated.
    pub commit: Option<String>,
    /// Where its work is kept if it was not.
    pub kept: Option<String>,
    /// In a line or two, what its agent said at the end, or why it failed; may be empty.
    pub said: String,
}

/// A few words from somebody.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remark {
    pub from: String,
    pub text: String,
}

impl Assigned {
    /// With as little as a task can have.
    pub(super) fn bare_sample() -> Assigned {
        Assigned {
            task: AssignedTask {
                id: "T-k3f9".into(),
                title: "Add a login endpoint".into(),
                description: String::new(),
                done_when: Vec::new(),
                touches: Vec::new(),
            },
            agent: "Frodo".into(),
            role: "coder".into(),
            queue: "main".into(),
            worktree: "/project/.tavern/worktrees/T-k3f9".into(),
            branch: None,
            base: None,
            attempt: 1,
            max_attempts: 3,
            earlier: Vec::new(),
            mode: "execute".into(),
            integration: "tavern/integration".into(),
            review: None,
            planning: None,
            findings: Vec::new(),
            answers: Vec::new(),
            children: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// With everything that a task can have.
    pub(super) fn full_sample() -> Assigned {
        let mut sample = Assigned::bare_sample();
        sample.task.description = "Follow specs/auth.md#login.".into();
        sample.task.done_when = vec!["cargo test login".into()];
        sample.task.touches = vec!["src/auth/**".into()];
        sample.branch = Some("tavern/T-k3f9".into());
        sample.base = Some("1a2b3c4".into());
        sample.attempt = 2;
        sample.earlier = vec![EarlierAttempt {
            number: 1,
            outcome: "failed".into(),
            reason: "`cargo test login` exited with 101".into(),
            command: Some("cargo test login".into()),
            output: "test login::refuses_a_wrong_password ... FAILED".into(),
            commits: vec!["9f8e7d6 Add the route".into()],
            salvage: Some("refs/tavern/salvage/T-k3f9/1".into()),
        }];
        sample.mode = "unify".into();
        sample.review = Some(ReviewTask {
            commit: Some("9f8e7d6".into()),
            author: "Sam".into(),
            integration: "tavern/integration".into(),
            round: 2,
            said: "I chose argon2.".into(),
        });
        sample.planning = Some(Planning {
            trigger: Some("T-b7q2 is dead".into()),
            lane: "draft".into(),
            most: 30,
            roles: vec!["coder".into(), "drone (model haiku)".into()],
            queues: vec![QueueState {
                name: "main".into(),
                summary: "1 dead".into(),
                items: vec!["T-b7q2 (dead): Add a table".into()],
            }],
            specs: vec!["specs/auth.md".into()],
        });
        sample.findings = vec![Remark { from: "Merry".into(), text: "- blocker src/auth.rs:12: no salt".into() }];
        sample.answers = vec![Answered { question: "red or blue?".into(), answer: "blue".into() }];
        sample.children = vec![ChildResult {
            id: "T-k3f9.1".into(),
            title: "The table".into(),
            status: "completed".into(),
            commit: Some("1b2c3d4".into()),
            kept: None,
            said: "Made it.".into(),
        }];
        sample.notes = vec![Remark { from: "Rosie".into(), text: "Use argon2.".into() }];
        sample
    }
}
