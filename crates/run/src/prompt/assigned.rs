//! The context of an agent's task, as plain values. Knows no template and no limit.

use serde::Serialize;

/// The agent's context about the task that it holds. Templates use these field names.
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
    /// The paths that conflict with work merged since, in one line.
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
    /// answer or change, if the task sets it.
    pub result: Option<String>,
    /// A person talks with it.
    pub attended: bool,
    /// The tool for its verdict or plan; `None`: it answers in text.
    pub answer_tool: Option<String>,
    /// For a reviewer of the work.
    pub review: Option<ReviewTask>,
    /// For a planner of the task.
    pub planning: Option<Planning>,
    /// The findings of reviews. Oldest first.
    pub findings: Vec<Remark>,
    /// Questions to a person, with their answers. Oldest first.
    pub answers: Vec<Answered>,
    /// The items that this one was broken up into, when all of them have ended.
    pub children: Vec<ChildResult>,
    /// People's remarks. Oldest first; in a prompt, the letters follow them.
    pub notes: Vec<Remark>,
    /// Messages that no agent has received. Oldest first.
    #[serde(skip)]
    pub letters: Vec<Remark>,
    /// Relevant learnings of other agents. Newest first.
    pub knowledge: Vec<Learned>,
    /// Why it is not done, although its agent reported so.
    pub refutation: Option<Refutation>,
    /// The nonce in the fence of its verdict, plan or question, random for each run. Empty if its program
    /// keeps its agent's words apart.
    pub nonce: String,
}

/// The task itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AssignedTask {
    pub id: String,
    pub title: String,
    /// As its owner wrote it; may be empty.
    pub description: String,
    /// Its open steps, `2. Write tests` each; empty if its agent can't tick them.
    pub steps: Vec<String>,
    /// The headings, list items and introductions above it in its file, verbatim; may be empty.
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
    /// The output of its last command or its verification; its end is kept. May be empty.
    pub output: String,
    /// Its commits, `abc1234 Subject` each, newest first; they are on the branch.
    pub commits: Vec<String>,
    /// The ref of its uncommitted work.
    pub salvage: Option<String>,
}

/// Why an answer failed its check.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Refutation {
    /// In one line.
    pub reason: String,
    /// The output of the failed command; its end is kept. May be empty.
    pub output: String,
}

/// The work to review.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReviewTask {
    /// Abbreviated; `None`: the task needs no repository.
    pub commit: Option<String>,
    pub author: String,
    /// Counted from 1.
    pub round: u32,
    /// The end of the author's last answer; may be empty.
    pub last_words: String,
}

/// The planner's context of the board.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Planning {
    /// The trigger that woke it; `None`: a person asked.
    pub trigger: Option<String>,
    /// The status of planned items: pending or draft.
    pub lane: String,
    /// The most items of one plan.
    pub most: u32,
    /// Roles that take items, a line each.
    pub roles: Vec<String>,
    pub queues: Vec<QueueState>,
    /// Paths of files that may be specifications.
    pub specs: Vec<String>,
}

/// The state of a queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueState {
    pub name: String,
    /// The number of items of each status.
    pub summary: String,
    /// Its items except those that ended well, a line each.
    pub items: Vec<String>,
}

/// A question with its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answered {
    pub question: String,
    pub answer: String,
}

/// The result of a child.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChildResult {
    pub id: String,
    pub title: String,
    pub status: String,
    /// The commit where it was merged, abbreviated.
    pub commit: Option<String>,
    /// The ref of its work if it was not merged.
    pub kept: Option<String>,
    /// In a line or two, its agent's last words, or why it failed; may be empty.
    pub last_words: String,
}

/// A short text with its sender.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Remark {
    pub from: String,
    /// hint, warning or critical; `None`: no urgency was given.
    pub severity: Option<String>,
    pub text: String,
}

impl Remark {
    /// Returns Tavern's own remark about omitted text.
    pub(super) fn mark(text: String) -> Remark {
        Remark {
            from: "Tavern".to_owned(),
            severity: None,
            text,
        }
    }
}

/// A learning.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Learned {
    pub id: String,
    /// learning, decision, fact, preference or error_resolution.
    pub kind: String,
    pub from: String,
    /// The item of its run.
    pub task: Option<String>,
    /// The run that it comes from; `None`: it is a person's.
    pub run: Option<String>,
    /// The day of the learning.
    pub date: String,
    pub text: String,
}

impl Assigned {
    /// Returns a sample with every field set.
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
                last_words: "I chose argon2.".into(),
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
                last_words: "Made it.".into(),
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
