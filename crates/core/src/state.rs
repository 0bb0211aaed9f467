//! The part of an item that Tavern owns: its status, with exactly the facts true in it.
//!
//! Read from an item's keys as a whole and written as a whole, so that no transition leaves facts of an
//! earlier status behind. Reading never fails: typed keys without a meaning in the status are ignored, and
//! removed by the next transition. Knows no transition and no text.

use chrono::SecondsFormat;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_yaml::Value;

use super::key::{Key, Shape};
use super::metadata::{Field, Fields};
use super::status::{Mode, Status, Timestamp};

/// The status of an item, and its history as far as Tavern needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub phase: Phase,
    /// While held: the number of this attempt. Otherwise: the number of attempts used.
    pub attempt: u32,
    /// Number of returns without fault.
    pub returns: u32,
    /// Number of rejections by a review.
    pub rounds: u32,
    pub mode: Mode,
    /// Whether a person has allowed it to start.
    pub allowed: bool,
    /// Whether it used up its attempts once and got new ones by `on_failure: retry`.
    pub retried: bool,
    /// Why it waits, died, ended or was returned, in one line.
    pub reason: Option<String>,
}

/// A status, with the facts true in no other.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    Draft {
        not_before: Option<Timestamp>,
    },
    Pending {
        /// Not to be claimed before this.
        not_before: Option<Timestamp>,
    },
    InProgress {
        holder: Holding,
        /// Empty except while a person chats with its agent.
        aside: Aside,
    },
    InReview {
        work: Submission,
        /// Not to be reviewed before this.
        not_before: Option<Timestamp>,
    },
    Reviewing {
        work: Submission,
        holder: Holding,
    },
    Waiting {
        question: Option<Question>,
        /// Set if it goes back into review.
        work: Option<Submission>,
    },
    Approved {
        work: Submission,
    },
    Completed {
        at: Option<Timestamp>,
        /// The merged commit.
        commit: Option<String>,
    },
    Dead,
    Cancelled {
        /// Commit of work that was not merged.
        commit: Option<String>,
    },
}

/// The holder and the start, as shown in the queue; the lease is authoritative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holding {
    pub agent: Option<String>,
    pub started: Option<Timestamp>,
}

/// The facts of the status before a chat, restored after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aside {
    pub not_before: Option<Timestamp>,
    pub question: Option<Question>,
    pub work: Option<Submission>,
}

/// Work that passed its commands, with its approvals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Submission {
    /// The verified commit, full or abbreviated hex; `None`: the item needs no repository.
    pub commit: Option<String>,
    /// Author of the work; `None` if it needs no review.
    pub author: Option<String>,
    /// Approvals of this commit only.
    pub approvals: Vec<Approval>,
}

/// One reviewer's approval of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The role that it counts for.
    pub role: String,
    /// Empty if a person typed only the role.
    pub by: String,
}

/// The agent's question to a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub text: String,
    /// Number of the item's `Answer:` lines when it was asked.
    pub answers: u32,
    /// The answer that a person typed as a key.
    pub answer: Option<String>,
}

impl Default for Phase {
    fn default() -> Phase {
        Phase::Pending { not_before: None }
    }
}

impl From<Status> for State {
    fn from(status: Status) -> State {
        State::read(status, &Fields::default())
    }
}

impl State {
    /// Returns the state of an item with this status and these keys. Keys that have no meaning in the status
    /// are ignored.
    pub fn read(status: Status, keys: &Fields<'_>) -> State {
        let not_before = keys.time(Key::NotBefore);
        let holder = || Holding {
            agent: keys.text(Key::Agent),
            started: keys.time(Key::Started),
        };
        let commit = keys.text(Key::Commit);
        let work = || {
            let approvals = keys.texts(Key::Approvals).unwrap_or_default();
            let approvals = approvals
                .iter()
                .filter_map(|text| Approval::read(text, commit.as_deref()))
                .collect();
            Submission {
                commit: commit.clone(),
                author: keys.text(Key::Author),
                approvals,
            }
        };
        let is_work = || {
            [Key::Commit, Key::Author]
                .iter()
                .any(|key| keys.get(*key).is_some())
                || keys
                    .texts(Key::Approvals)
                    .is_some_and(|approvals| !approvals.is_empty())
        };
        let question = || {
            let answers = keys.number(Key::Answers).unwrap_or_default();
            keys.text(Key::Question).map(|text| Question {
                text,
                answers,
                answer: keys.text(Key::Answer),
            })
        };
        let phase = match status {
            Status::Draft => Phase::Draft { not_before },
            Status::Pending => Phase::Pending { not_before },
            Status::InProgress => {
                let aside = Aside {
                    not_before,
                    question: question(),
                    work: is_work().then(work),
                };
                Phase::InProgress {
                    holder: holder(),
                    aside,
                }
            }
            Status::InReview => Phase::InReview {
                work: work(),
                not_before,
            },
            Status::Reviewing => Phase::Reviewing {
                work: work(),
                holder: holder(),
            },
            Status::Waiting => Phase::Waiting {
                question: question(),
                work: is_work().then(work),
            },
            Status::Approved => Phase::Approved { work: work() },
            Status::Completed => Phase::Completed {
                at: keys.time(Key::Completed),
                commit,
            },
            Status::Dead => Phase::Dead,
            Status::Cancelled => Phase::Cancelled { commit },
        };
        let mode = match keys.get(Key::Mode) {
            Some(Field::Mode(mode)) => *mode,
            _ => Mode::default(),
        };
        let [attempt, returns, rounds] = [Key::Attempt, Key::Returns, Key::Rounds]
            .map(|key| keys.number(key).unwrap_or_default());
        let [allowed, retried] =
            [Key::Allowed, Key::Retried].map(|key| keys.flag(key).unwrap_or_default());
        State {
            phase,
            attempt,
            returns,
            rounds,
            mode,
            allowed,
            retried,
            reason: keys.text(Key::Reason),
        }
    }

    /// Returns all keys of a state but `status`, which box and lane may show; those without a value are `None`.
    pub fn keys(&self) -> Vec<(Key, Option<Value>)> {
        let (holder, work, question) = (self.holder(), self.work(), self.question());
        let time = |time: Option<Timestamp>| {
            time.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true).into())
        };
        let count = |count: u32| (count > 0).then(|| count.into());
        let text = |text: Option<&str>| text.map(Value::from);
        let flag = |flag: bool| flag.then(|| true.into());
        let approvals = work
            .map(Submission::written_approvals)
            .filter(|approvals| !approvals.is_empty());
        vec![
            (
                Key::Mode,
                (self.mode != Mode::Execute).then(|| self.mode.as_str().into()),
            ),
            (
                Key::Agent,
                text(holder.and_then(|holder| holder.agent.as_deref())),
            ),
            (Key::Attempt, count(self.attempt)),
            (Key::Started, time(holder.and_then(|holder| holder.started))),
            (
                Key::Author,
                text(work.and_then(|work| work.author.as_deref())),
            ),
            (Key::Completed, time(self.completed())),
            (Key::Commit, text(self.commit())),
            (Key::Approvals, approvals.map(Value::from)),
            (Key::Rounds, count(self.rounds)),
            (Key::Returns, count(self.returns)),
            (Key::NotBefore, time(self.not_before())),
            (
                Key::Question,
                text(question.map(|question| question.text.as_str())),
            ),
            (
                Key::Answers,
                count(question.map_or(0, |question| question.answers)),
            ),
            (
                Key::Answer,
                text(question.and_then(|question| question.answer.as_deref())),
            ),
            (Key::Reason, text(self.reason.as_deref())),
            (Key::Allowed, flag(self.allowed)),
            (Key::Retried, flag(self.retried)),
        ]
    }

    pub fn status(&self) -> Status {
        match self.phase {
            Phase::Draft { .. } => Status::Draft,
            Phase::Pending { .. } => Status::Pending,
            Phase::InProgress { .. } => Status::InProgress,
            Phase::InReview { .. } => Status::InReview,
            Phase::Reviewing { .. } => Status::Reviewing,
            Phase::Waiting { .. } => Status::Waiting,
            Phase::Approved { .. } => Status::Approved,
            Phase::Completed { .. } => Status::Completed,
            Phase::Dead => Status::Dead,
            Phase::Cancelled { .. } => Status::Cancelled,
        }
    }

    pub fn holder(&self) -> Option<&Holding> {
        match &self.phase {
            Phase::InProgress { holder, .. } | Phase::Reviewing { holder, .. } => Some(holder),
            _ => None,
        }
    }

    /// Returns the work that is in review, will return to it, or was approved.
    pub fn work(&self) -> Option<&Submission> {
        match &self.phase {
            Phase::InReview { work, .. }
            | Phase::Reviewing { work, .. }
            | Phase::Approved { work } => Some(work),
            Phase::Waiting { work, .. }
            | Phase::InProgress {
                aside: Aside { work, .. },
                ..
            } => work.as_ref(),
            _ => None,
        }
    }

    pub fn commit(&self) -> Option<&str> {
        match &self.phase {
            Phase::Completed { commit, .. } | Phase::Cancelled { commit } => commit.as_deref(),
            _ => self.work()?.commit.as_deref(),
        }
    }

    pub fn question(&self) -> Option<&Question> {
        match &self.phase {
            Phase::Waiting { question, .. }
            | Phase::InProgress {
                aside: Aside { question, .. },
                ..
            } => question.as_ref(),
            _ => None,
        }
    }

    /// Returns the answer that a person typed as a key.
    pub fn answer(&self) -> Option<&str> {
        self.question()?.answer.as_deref()
    }

    pub fn not_before(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Draft { not_before }
            | Phase::Pending { not_before }
            | Phase::InReview { not_before, .. }
            | Phase::InProgress {
                aside: Aside { not_before, .. },
                ..
            } => not_before,
            _ => None,
        }
    }

    pub fn completed(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Completed { at, .. } => at,
            _ => None,
        }
    }

    /// Returns true if it waits for its children, not for a person.
    pub fn is_parked(&self) -> bool {
        self.mode == Mode::Unify && matches!(self.phase, Phase::Waiting { question: None, .. })
    }

    /// Returns the state without its reason.
    pub fn without_reason(self) -> State {
        State {
            reason: None,
            ..self
        }
    }
}

/// Serializes as one flat object with a value for each key; approvals are listed by reviewer.
impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(Key::Status.as_str(), &self.status())?;
        for (key, value) in self.keys() {
            let value = match (key, value) {
                (Key::Approvals, _) => {
                    let approvals = self.work().map_or(&[][..], |work| &work.approvals);
                    approvals
                        .iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                        .into()
                }
                (Key::Mode, _) => self.mode.as_str().into(),
                (_, Some(value)) => value,
                (key, None) if key.shape() == Shape::Count => 0.into(),
                (key, None) if key.shape() == Shape::Flag => false.into(),
                (_, None) => Value::Null,
            };
            map.serialize_entry(key.as_str(), &value)?;
        }
        map.end()
    }
}

impl Submission {
    /// Returns the approvals as written in a queue.
    pub fn written_approvals(&self) -> Vec<String> {
        self.approvals
            .iter()
            .map(|approval| approval.written(self.commit.as_deref()))
            .collect()
    }
}

/// Digits of a commit in a written approval.
const DIGITS: usize = 12;

impl Approval {
    /// Parses `role/name@commit`, for work at `commit`. An approval of another commit does not count; one
    /// without a commit, as a person may type it, is for this commit.
    fn read(text: &str, commit: Option<&str>) -> Option<Approval> {
        let (who, given_for) = match text.rsplit_once('@') {
            Some((who, "")) => (who, commit),
            Some((who, hex)) if is_hex(hex) => (who, Some(hex)),
            _ => (text, commit),
        };
        let is_same = match (given_for, commit) {
            (Some(one), Some(other)) => are_same_commit(one, other),
            (one, other) => one == other,
        };
        let (role, by) = who.split_once('/').unwrap_or((who, ""));
        is_same.then(|| Approval {
            role: role.to_owned(),
            by: by.to_owned(),
        })
    }

    /// Returns the approval as written in a queue.
    fn written(&self, commit: Option<&str>) -> String {
        match commit.filter(|commit| is_hex(commit)) {
            Some(commit) => format!("{self}@{}", &commit[..commit.len().min(DIGITS)]),
            // A name with an `@` must not read as one with a commit.
            None if self.to_string().contains('@') => format!("{self}@"),
            None => self.to_string(),
        }
    }
}

impl std::fmt::Display for Approval {
    /// `role/name`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.by.is_empty() {
            f.write_str(&self.role)
        } else {
            write!(f, "{}/{}", self.role, self.by)
        }
    }
}

/// Returns true if the commits are the same; either may be abbreviated.
pub fn are_same_commit(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns true if the text looks like a commit to a person.
pub fn is_hex(text: &str) -> bool {
    text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_counts_for_the_commit_that_it_names() {
        let commit = Some("1a2b3c4d5e6f7");
        for (text, commit, counts) in [
            ("reviewer/Sam", commit, true),
            ("reviewer/Sam@1a2b3c4d5e6f", commit, true),
            ("reviewer/Sam@9a9b9c9", commit, false),
            ("reviewer/Sam@1a2b3c4", None, false),
            ("reviewer/Sam", None, true),
        ] {
            assert_eq!(
                Approval::read(text, commit).is_some(),
                counts,
                "{text} of {commit:?}"
            );
        }
    }
}
