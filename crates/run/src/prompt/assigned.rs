//! What an agent is told of its task, as plain values. Knows no template and no limit.

use serde::Serialize;

/// What an agent is told about the task that it holds. Templates see these fields by their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
    /// The paths in which it conflicts with what was merged since, in one line.
    pub conflict: Option<String>,
    /// Counted from 1.
    pub attempt: u32,
    pub max_attempts: u32,
    /// Oldest first.
    pub earlier: Vec<EarlierAttempt>,
    /// execute, delegate, plan, break_up or unify.
    pub mode: String,
    /// The branch that work is merged to.
    pub integration: String,
    /// answer or change, where the task says so.
    pub result: Option<String>,
    /// A person talks with it.
    pub attended: bool,
    /// With which its verdict or plan is given; `None`: in words.
    pub answer_tool: Option<String>,
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
    /// What people have said about it. Oldest first; in a prompt the letters stand behind them.
    pub notes: Vec<Remark>,
    /// What was sent to it and no agent was told. Oldest first.
    #[serde(skip)]
    pub letters: Vec<Remark>,
    /// What others have found out that it should know. Newest first.
    pub knowledge: Vec<Learned>,
    /// Why it is not done, though its agent says so.
    pub refutation: Option<Refutation>,
    /// What the fence of its verdict, plan or question names, of a program that may print more than its agent's words; another in each
    /// run. Else empty.
    pub nonce: String,
}

/// The task itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AssignedTask {
    pub id: String,
    pub title: String,
    /// As its owner wrote it; may be empty.
    pub description: String,
    /// Those of its steps that are not ticked, `2. Write tests` each; empty if its agent can't tick them.
    pub steps: Vec<String>,
    /// The headings, list items and introductions above it in its file, as they stand; may be empty.
    pub around: String,
    /// Shell commands that must all exit 0.
    pub done_when: Vec<String>,
    /// Globs of the paths that it is expected to change.
    pub touches: Vec<String>,
}

/// One run that did not end the task.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EarlierAttempt {
    pub number: u32,
    /// `failed`, `timeout` and so on.
    pub outcome: String,
    /// In one line.
    pub reason: String,
    /// What its last command, or its verification, printed; the end of it is kept.
    pub output: String,
    /// Its commits, `abc1234 Subject` each, newest first; they are on the branch.
    pub commits: Vec<String>,
    /// Where its uncommitted work was kept.
    pub salvage: Option<String>,
}

/// What was found when an answer was put to the proof.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Refutation {
    /// In one line.
    pub reason: String,
    /// What the command printed that failed; the end of it is kept. May be empty.
    pub output: String,
}

/// What is to be looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReviewTask {
    /// Abbreviated; `None`: the task needs no repository.
    pub commit: Option<String>,
    pub author: String,
    /// Counted from 1.
    pub round: u32,
    /// The end of the author's last answer; may be empty.
    pub said: String,
}

/// What a planner has to know of the board.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueState {
    pub name: String,
    /// How many items of each status.
    pub summary: String,
    /// Its items that have not ended well, a line each.
    pub items: Vec<String>,
}

/// A question with its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answered {
    pub question: String,
    pub answer: String,
}

/// What became of a child.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Remark {
    pub from: String,
    /// hint, warning or critical; `None`: nobody says how urgent it is.
    pub severity: Option<String>,
    pub text: String,
}

impl Remark {
    /// Tavern's own, of what is not there.
    pub(super) fn mark(text: String) -> Remark {
        Remark {
            from: "Tavern".to_owned(),
            severity: None,
            text,
        }
    }
}

/// What somebody has found out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Learned {
    pub id: String,
    /// learning, decision, fact, preference or error_resolution.
    pub kind: String,
    pub from: String,
    /// The item in whose work it was found out.
    pub task: Option<String>,
    /// The run that it comes from; `None`: a person says so.
    pub run: Option<String>,
    /// The day on which it was said.
    pub date: String,
    pub text: String,
}

impl Assigned {
    /// With everything that a task can have.
    pub(super) fn full_sample() -> Assigned {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let remark = |from: &str, text: &str| {
            vec![Remark {
                from: from.into(),
                text: text.into(),
                severity: None,
            }]
        };
        Assigned {
            task: AssignedTask {
                id: "T-k3f9".into(),
                title: "Add a login endpoint".into(),
                description: "Follow specs/auth.md#login.".into(),
                steps: texts(&["2. Write tests", "4. Name it in the README"]),
                around: "# Server\n\n- Accounts".into(),
                done_when: texts(&["cargo test login"]),
                touches: texts(&["src/auth/**"]),
            },
            agent: "Frodo".into(),
            role: "coder".into(),
            queue: "main".into(),
            worktree: "/project/.tavern/worktrees/T-k3f9".into(),
            branch: Some("tavern/T-k3f9".into()),
            base: Some("1a2b3c4".into()),
            conflict: Some("src/auth.rs".into()),
            attempt: 2,
            max_attempts: 3,
            earlier: vec![EarlierAttempt {
                number: 1,
                outcome: "failed".into(),
                reason: "`cargo test login` exited with 101".into(),
                output: "test login::refuses_a_wrong_password ... FAILED".into(),
                commits: texts(&["9f8e7d6 Add the route"]),
                salvage: Some("refs/tavern/salvage/T-k3f9/1".into()),
            }],
            mode: "unify".into(),
            integration: "tavern/integration".into(),
            result: Some("answer".into()),
            attended: true,
            answer_tool: Some("StructuredOutput".into()),
            review: Some(ReviewTask {
                commit: Some("9f8e7d6".into()),
                author: "Sam".into(),
                round: 2,
                said: "I chose argon2.".into(),
            }),
            planning: Some(Planning {
                trigger: Some("T-b7q2 is dead".into()),
                lane: "draft".into(),
                most: 30,
                roles: texts(&["coder", "drone (model haiku)"]),
                queues: vec![QueueState {
                    name: "main".into(),
                    summary: "1 dead".into(),
                    items: texts(&["T-b7q2 (dead): Add a table"]),
                }],
                specs: texts(&["specs/auth.md"]),
            }),
            findings: remark("Merry", "- blocker src/auth.rs:12: no salt"),
            answers: vec![Answered {
                question: "red or blue?".into(),
                answer: "blue".into(),
            }],
            children: vec![ChildResult {
                id: "T-k3f9.1".into(),
                title: "The table".into(),
                status: "completed".into(),
                commit: Some("1b2c3d4".into()),
                kept: None,
                said: "Made it.".into(),
            }],
            notes: remark("Rosie", "Use argon2."),
            letters: remark("Rosie", "And a salt."),
            knowledge: vec![Learned {
                id: "L-k3f9".into(),
                kind: "fact".into(),
                from: "Sam, an agent".into(),
                task: Some("T-b7q2".into()),
                run: Some("T-b7q2@3".into()),
                date: "2026-01-31".into(),
                text: "The API needs a trailing slash.".into(),
            }],
            nonce: "1f3a57c2".into(),
            refutation: Some(Refutation {
                reason: "`cargo test login` exited with 101".into(),
                output: "test login::refuses_a_wrong_password ... FAILED".into(),
            }),
        }
    }
}
