//! What Tavern owns of an item: its status, with exactly what is true in it.
//!
//! Read from an item's keys as a whole and written as a whole, so that no transition leaves behind what was true of an
//! earlier status. Reading never fails: keys that a person typed and that mean nothing in a status are passed over, and
//! go with the next transition. Knows no transition and no text.

use chrono::SecondsFormat;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_yaml::Value;

use super::key::{Key, Shape};
use super::metadata::{Field, Fields};
use super::status::{Mode, Status, Timestamp};

/// Where an item stands, and what Tavern remembers of its way there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub phase: Phase,
    /// While held: the number of this attempt. Otherwise: how many attempts the agents have used up.
    pub attempt: u32,
    /// How often it came back through nobody's fault.
    pub returns: u32,
    /// How often a review has rejected it.
    pub rounds: u32,
    pub mode: Mode,
    /// A person has allowed it to start.
    pub allowed: bool,
    /// It used up its attempts once and got them anew, as its `on_failure: retry` says.
    pub retried: bool,
    /// Why it waits, died, ended or came back, in one line.
    pub reason: Option<String>,
}

/// A status, with what is true in no other.
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
        /// Nothing but while a person chats with its agent.
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
        /// It goes back into review.
        work: Option<Submission>,
    },
    Approved {
        work: Submission,
    },
    Completed {
        at: Option<Timestamp>,
        /// As it was merged.
        commit: Option<String>,
    },
    Dead,
    Cancelled {
        /// Of work that was not merged.
        commit: Option<String>,
    },
}

/// Who holds it since when, as the queue tells it; the lease is what counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holding {
    pub agent: Option<String>,
    pub started: Option<Timestamp>,
}

/// What an item has again after a chat: of the status before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aside {
    pub not_before: Option<Timestamp>,
    pub question: Option<Question>,
    pub work: Option<Submission>,
}

/// Submission that passed its commands, and who has approved it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Submission {
    /// The commit that was verified, full or abbreviated hex; `None`: the item needs no repository.
    pub commit: Option<String>,
    /// Whose work it is; `None` if nobody has to review it.
    pub author: Option<String>,
    /// Of this commit and no other.
    pub approvals: Vec<Approval>,
}

/// One reviewer's approval of the work that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The role that it counts for.
    pub role: String,
    /// Nothing if a person typed only the role.
    pub by: String,
}

/// What the agent of an item has asked of a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub text: String,
    /// How many `Answer:` lines the item had when it was asked.
    pub answers: u32,
    /// What a person has typed as the answer, as a key.
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
    /// The state of an item with this status and these keys. What isn't true in the status is passed over.
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

    /// All keys of a state but `status`, which box and lane may say: those that it has, and those that it hasn't.
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

    /// What is, or will again be, in review, or was approved.
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

    /// What a person has typed as the answer, as a key.
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

    /// It waits for its children, and for nobody's word.
    pub fn is_parked(&self) -> bool {
        self.mode == Mode::Unify && matches!(self.phase, Phase::Waiting { question: None, .. })
    }

    /// The same, and nobody says why it stands so.
    pub fn without_reason(self) -> State {
        State {
            reason: None,
            ..self
        }
    }
}

/// One flat object, with a value for each key; of approvals it is who gave them.
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
    /// The approvals as they stand in a queue.
    pub fn written_approvals(&self) -> Vec<String> {
        self.approvals
            .iter()
            .map(|approval| approval.written(self.commit.as_deref()))
            .collect()
    }
}

/// Digits of a commit that an approval is written with.
const DIGITS: usize = 12;

impl Approval {
    /// Of an item whose work is at `commit`: `role/name@commit`. One of another commit counts for nothing; one that names
    /// none, as a person may type it, is of this commit.
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

    /// As it stands in a queue.
    fn written(&self, commit: Option<&str>) -> String {
        match commit.filter(|commit| is_hex(commit)) {
            Some(commit) => format!("{self}@{}", &commit[..commit.len().min(DIGITS)]),
            // The name must not read as one with a commit.
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

/// Either may be abbreviated.
pub fn are_same_commit(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// As a person would take it for a commit.
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
