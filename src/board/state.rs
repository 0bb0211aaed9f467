//! What Tavern owns of an item: its status, with exactly what is true in it.
//!
//! Read from an item's keys as a whole and written as a whole, so that no transition leaves behind what was true of an
//! earlier status. Reading never fails: keys that a person typed and that mean nothing in a status are passed over, and
//! go with the next transition. Knows no transition and no text.

use std::borrow::Cow;

use serde_yaml::Value;

use super::key::Key;
use super::metadata::Field;
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

/// A state as the values of keys, whatever the status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub attempt: u32,
    pub returns: u32,
    pub not_before: Option<Timestamp>,
    pub agent: Option<String>,
    pub started: Option<Timestamp>,
    pub completed: Option<Timestamp>,
    pub commit: Option<String>,
    pub reason: Option<String>,
    pub allowed: bool,
    pub author: Option<String>,
    /// `role/name@commit` each.
    pub approvals: Vec<String>,
    pub rounds: u32,
    pub mode: Mode,
    pub retried: bool,
    pub question: Option<String>,
    pub answer: Option<String>,
    pub answers: u32,
}

impl Default for Phase {
    fn default() -> Phase {
        Phase::Pending { not_before: None }
    }
}

impl From<Status> for State {
    fn from(status: Status) -> State {
        State::of(status, Facts::default())
    }
}

impl State {
    /// The state of an item with this status and these keys. What isn't true in the status is passed over.
    pub fn of(status: Status, facts: Facts) -> State {
        let Facts { not_before, agent, started, completed, commit, author, approvals, question, .. } = facts;
        let holder = Holding { agent, started };
        let is_work = commit.is_some() || author.is_some() || !approvals.is_empty();
        let approvals = approvals.iter().filter_map(|text| Approval::read(text, commit.as_deref())).collect();
        let work = Submission { commit, author, approvals };
        let question = question.map(|text| Question { text, answers: facts.answers, answer: facts.answer });
        let phase = match status {
            Status::Draft => Phase::Draft { not_before },
            Status::Pending => Phase::Pending { not_before },
            Status::InProgress => {
                let aside = Aside { not_before, question, work: is_work.then_some(work) };
                Phase::InProgress { holder, aside }
            }
            Status::InReview => Phase::InReview { work, not_before },
            Status::Reviewing => Phase::Reviewing { work, holder },
            Status::Waiting => Phase::Waiting { question, work: is_work.then_some(work) },
            Status::Approved => Phase::Approved { work },
            Status::Completed => Phase::Completed { at: completed, commit: work.commit },
            Status::Dead => Phase::Dead,
            Status::Cancelled => Phase::Cancelled { commit: work.commit },
        };
        State {
            phase,
            attempt: facts.attempt,
            returns: facts.returns,
            rounds: facts.rounds,
            mode: facts.mode,
            allowed: facts.allowed,
            retried: facts.retried,
            reason: facts.reason,
        }
    }

    /// The same as the values of keys.
    pub fn facts(&self) -> Facts {
        let State { attempt, returns, rounds, mode, allowed, retried, .. } = *self;
        let mut facts = Facts { attempt, returns, allowed, rounds, mode, retried, ..Facts::default() };
        facts.reason.clone_from(&self.reason);
        (facts.not_before, facts.completed) = (self.not_before(), self.completed());
        if let Some(Holding { agent, started }) = self.holder().cloned() {
            (facts.agent, facts.started) = (agent, started);
        }
        facts.commit = self.commit().map(str::to_owned);
        if let Some(work) = self.work() {
            facts.author.clone_from(&work.author);
            facts.approvals = work.approvals.iter().map(|approval| approval.written(work.commit.as_deref())).collect();
        }
        if let Some(Question { text, answers, answer }) = self.question().cloned() {
            (facts.question, facts.answers, facts.answer) = (Some(text), answers, answer);
        }
        facts
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
            Phase::InReview { work, .. } | Phase::Reviewing { work, .. } | Phase::Approved { work } => Some(work),
            Phase::Waiting { work, .. } | Phase::InProgress { aside: Aside { work, .. }, .. } => work.as_ref(),
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
            Phase::Waiting { question, .. } | Phase::InProgress { aside: Aside { question, .. }, .. } => {
                question.as_ref()
            }
            _ => None,
        }
    }

    pub fn not_before(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Draft { not_before }
            | Phase::Pending { not_before }
            | Phase::InReview { not_before, .. }
            | Phase::InProgress { aside: Aside { not_before, .. }, .. } => not_before,
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

    /// The same without what a person has typed into it.
    pub fn without_answer(mut self) -> State {
        if let Phase::Waiting { question: Some(question), .. }
        | Phase::InProgress { aside: Aside { question: Some(question), .. }, .. } = &mut self.phase
        {
            question.answer = None;
        }
        self
    }

    /// The same with the approvals of `other` too, if both are in review at the same commit; what was approved in `base`
    /// and is not in one of them any more stays away.
    pub fn with_approvals_of(&self, other: &State, base: Option<&State>) -> Option<State> {
        let in_review = |state: &State| match &state.phase {
            Phase::InReview { work, .. } | Phase::Reviewing { work, .. } => Some(work.clone()),
            _ => None,
        };
        let is_same = |one: &Submission, two: &Submission| {
            let commits = (one.commit.as_deref(), two.commit.as_deref());
            matches!(commits, (Some(one), Some(two)) if are_same_commit(one, two)) && one.author == two.author
        };
        let (mine, others) = (in_review(self)?, in_review(other)?);
        if !is_same(&mine, &others) {
            return None;
        }
        let old = base.and_then(in_review).filter(|old| is_same(old, &mine)).unwrap_or_default();
        let stays = mine.approvals.iter().filter(|one| !old.approvals.contains(one) || others.approvals.contains(one));
        let comes = others.approvals.iter().filter(|one| !old.approvals.contains(one) && !mine.approvals.contains(one));
        let approvals = stays.chain(comes).cloned().collect();
        let mut united = self.clone();
        if let Phase::InReview { work, .. } | Phase::Reviewing { work, .. } = &mut united.phase {
            work.approvals = approvals;
        }
        Some(united)
    }

    /// All keys of a state but `status`, which box and lane may say: those that it has, and those that it hasn't.
    pub fn keys(&self) -> Vec<(Key, Option<Value>)> {
        let facts = self.facts();
        let time = |time: Option<Timestamp>| time.map(|time| written(time).into());
        let count = |count: u32| (count > 0).then(|| count.into());
        let text = |text: Option<String>| text.map(Value::from);
        let flag = |flag: bool| flag.then(|| true.into());
        vec![
            (Key::Mode, (facts.mode != Mode::Execute).then(|| facts.mode.as_str().into())),
            (Key::Agent, text(facts.agent)),
            (Key::Attempt, count(facts.attempt)),
            (Key::Started, time(facts.started)),
            (Key::Author, text(facts.author)),
            (Key::Completed, time(facts.completed)),
            (Key::Commit, text(facts.commit)),
            (Key::Approvals, (!facts.approvals.is_empty()).then(|| facts.approvals.into())),
            (Key::Rounds, count(facts.rounds)),
            (Key::Returns, count(facts.returns)),
            (Key::NotBefore, time(facts.not_before)),
            (Key::Question, text(facts.question)),
            (Key::Answers, count(facts.answers)),
            (Key::Answer, text(facts.answer)),
            (Key::Reason, text(facts.reason)),
            (Key::Allowed, flag(facts.allowed)),
            (Key::Retried, flag(facts.retried)),
        ]
    }
}

impl Facts {
    /// Takes the key in if it is one of a state.
    pub fn take(&mut self, key: Key, field: &Field<'_>) {
        let owned = |texts: &[Cow<'_, str>]| texts.iter().map(|text| text.clone().into_owned()).collect();
        match (key, field) {
            (Key::Attempt, Field::Number(number)) => self.attempt = *number,
            (Key::Returns, Field::Number(number)) => self.returns = *number,
            (Key::Rounds, Field::Number(number)) => self.rounds = *number,
            (Key::Answers, Field::Number(number)) => self.answers = *number,
            (Key::NotBefore, Field::Time(time)) => self.not_before = Some(*time),
            (Key::Started, Field::Time(time)) => self.started = Some(*time),
            (Key::Completed, Field::Time(time)) => self.completed = Some(*time),
            (Key::Agent, Field::Text(text)) => self.agent = Some(text.clone().into_owned()),
            (Key::Commit, Field::Text(text)) => self.commit = Some(text.clone().into_owned()),
            (Key::Reason, Field::Text(text)) => self.reason = Some(text.clone().into_owned()),
            (Key::Author, Field::Text(text)) => self.author = Some(text.clone().into_owned()),
            (Key::Question, Field::Text(text)) => self.question = Some(text.clone().into_owned()),
            (Key::Answer, Field::Text(text)) => self.answer = Some(text.clone().into_owned()),
            (Key::Approvals, Field::Texts(texts)) => self.approvals = owned(texts),
            (Key::Mode, Field::Mode(mode)) => self.mode = *mode,
            (Key::Allowed, Field::Flag(flag)) => self.allowed = *flag,
            (Key::Retried, Field::Flag(flag)) => self.retried = *flag,
            _ => {}
        }
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
        is_same.then(|| Approval { role: role.to_owned(), by: by.to_owned() })
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
        if self.by.is_empty() { f.write_str(&self.role) } else { write!(f, "{}/{}", self.role, self.by) }
    }
}

/// Either may be abbreviated.
pub fn are_same_commit(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// As a person would take it for a commit.
fn is_hex(text: &str) -> bool {
    text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn written(time: Timestamp) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option::of;
    use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest};
    use proptest::sample::select;

    use super::*;
    use crate::board::document::parse;
    use crate::board::edit::Patch;
    use crate::board::text::apply;

    fn times() -> impl Strategy<Value = Option<Timestamp>> {
        of((0i64..4_000_000_000).prop_map(|seconds| Timestamp::from_timestamp(seconds, 0).expect("a time")))
    }

    /// What may stand in a value: words, and all that means something in YAML or Markdown.
    fn texts() -> impl Strategy<Value = String> {
        const ODD: &[&str] = &[
            "", " ", "null", "~", "1e10", "true", "a, b: c", "[x", "x]", "{", "}", "\"", "'", "#", "(b", "c)", "\\",
            "é", "- ",
        ];
        prop_oneof![select(ODD).prop_map(str::to_owned), "[ -~]{1,20}", "[a-z ]{1,9}é[\t\n,:]?x"]
    }

    fn words() -> impl Strategy<Value = String> {
        "[A-Za-z][a-z0-9_@. -]{0,9}[a-z0-9]"
    }

    fn commits() -> impl Strategy<Value = Option<String>> {
        prop_oneof![
            Just(None),
            "[0-9a-f]{40}".prop_map(Some),
            "[0-9a-f]{7,12}".prop_map(Some),
            "[g-z]{1,9}".prop_map(Some)
        ]
    }

    fn facts() -> impl Strategy<Value = Facts> {
        let approvals = vec((words(), words()).prop_map(|(role, by)| format!("{}/{by}", role.replace('@', ""))), 0..3);
        let counts = (0u32..9, 0u32..9, 0u32..9, 0u32..9);
        let named = (of(words()), of(words()), commits(), approvals);
        let told = (of(texts()), of(texts()), of(texts()));
        (counts, named, told, (times(), times(), times()), (any::<bool>(), any::<bool>(), select(&Mode::ALL[..])))
            .prop_map(
                |(
                    counts,
                    (agent, author, commit, approvals),
                    (reason, question, answer),
                    times,
                    (allowed, retried, mode),
                )| {
                    let (attempt, returns, rounds, answers) = counts;
                    let (not_before, started, completed) = times;
                    Facts {
                        attempt,
                        returns,
                        not_before,
                        agent,
                        started,
                        completed,
                        commit,
                        reason,
                        allowed,
                        author,
                        approvals,
                        rounds,
                        mode,
                        retried,
                        question,
                        answer,
                        answers,
                    }
                },
            )
    }

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
            assert_eq!(Approval::read(text, commit).is_some(), counts, "{text} of {commit:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever state an item had, and wherever its keys stand, the state that is written is the one that is read.
        #[test]
        fn a_state_is_read_as_it_was_written(
            old in (select(&Status::ALL[..]), facts()),
            new in (select(&Status::ALL[..]), facts()),
            is_in_block: bool,
        ) {
            let (old, new) = (State::of(old.0, old.1), State::of(new.0, new.1));
            let keys: String = State::keys(&old)
                .iter()
                .map(|(key, value)| format!("  {}: {}\n", key.as_str(), crate::board::metadata::flow(value.as_ref().unwrap_or(&Value::Null))))
                .collect();
            let block = if is_in_block { format!("\n  ```yaml task\n{keys}  ```\n") } else { String::new() };
            let mut text = format!("- [ ] T-1: a\n{block}");
            for state in [&old, &new] {
                let (document, problems) = parse(&text);
                prop_assert_eq!(problems, vec![], "{}", text);
                let edits = document.change(&document.items()[0], &Patch::from(state));
                let result = apply(&text, &edits);
                let (document, problems) = parse(&result);
                prop_assert_eq!(problems, vec![], "{}", result);
                prop_assert_eq!(&document.task_of(&document.items()[0]).state, state, "{}", result);
                text = result;
            }
        }
    }
}
