//! The store against a model of it: random events from rightful and stale senders, while time passes. The model has
//! `specs/states.md` again, in other words; it knows no document, no file and no code of the state machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use chrono::TimeDelta;
use proptest::prelude::{BoxedStrategy, Just, ProptestConfig, Strategy};
use proptest::prop_oneof;
use proptest::sample::select;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use tavern_core::decide::Refusal;
use tavern_core::event::{Blame, Event, Kind, Retry, Review};
use tavern_core::key::Key;
use tavern_core::lease::{Life, Work};
use tavern_core::new_item::NewItem;
use tavern_core::task::{PERSON, Status, TaskId, Timestamp};
use tavern_store::{ClaimRequest, Entry, Error, NamedItem, Note, TextChange, tail_log};
use tavern_sys::clock::at_moment;

use crate::dice::share;
use crate::state::{State, board, id, seek};
use crate::support::Scratch;

/// Seconds that a lease lasts.
const LEASE: u32 = 60;

/// Attempts, and blameless returns, that an item has.
const MOST: u32 = 2;

/// Rejections that an item's work has.
const ROUNDS: u32 = 2;

/// The item whose work is reviewed; that of the others is approved as it is.
const REVIEWED: usize = 2;

/// Seconds before an item that came back may be taken again.
const BACK_OFF: i64 = 30;

#[derive(Clone, Debug)]
enum Step {
    Add(usize),
    Claim(usize),
    /// A reviewer takes it.
    Review(usize, Reviewer),
    Renew(usize, Whose),
    Held(usize, Whose, Held),
    Reap(usize, Option<Whose>, Life, Blame),
    Person(usize, Person),
    Pass(u32),
}

/// Who looks at the work; all of it is Frodo's.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reviewer {
    Frodo,
    Sam,
}

/// Whose token is shown.
#[derive(Clone, Copy, Debug)]
enum Whose {
    /// That of the item's last claim, which may be over.
    Newest,
    /// That of the claim before it.
    Former,
    /// That of another item's last claim.
    Another,
}

/// What a holder does.
#[derive(Clone, Copy, Debug)]
enum Held {
    Start,
    Submit,
    Fail,
    Return,
    Ask,
    Park,
    Approve,
    Reject,
}

/// What needs no token.
#[derive(Clone, Copy, Debug)]
enum Person {
    Integrate,
    SendBack,
    Resume,
    Revive,
    Reopen,
    Cancel,
    Approve,
    Reject,
}

/// One item, as the model has it.
#[derive(Clone, Debug, Default)]
struct Item {
    status: Option<Status>,
    attempt: u32,
    returns: u32,
    rounds: u32,
    /// Its work is at a commit that has passed.
    has_work: bool,
    /// It waits for children, of which there are none here, so it may be taken again at once.
    is_parked: bool,
    needs_review: bool,
    /// A person has approved the work as it is.
    has_consent: bool,
    not_before: Option<i64>,
    /// Token and last heartbeat of who holds it.
    lease: Option<(u64, i64)>,
    /// All tokens that it ever gave.
    tokens: Vec<u64>,
}

/// What the board answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Done,
    /// Only the lease's heartbeat is another.
    Renewed,
    /// A claim finds nothing.
    Nothing,
    Taken,
    NoTask,
    WrongStatus,
    SecondApproval,
    Held,
    StaleToken,
    NoLease,
    StillLive,
}

#[derive(Clone, Debug)]
struct Model {
    items: [Item; 3],
    /// Seconds since the beginning.
    now: i64,
    /// Lines in the log.
    events: u64,
    /// The token that the last step showed, and what it is answered.
    shown: u64,
    answer: Answer,
}

impl Model {
    fn token(&self, item: usize, whose: Whose) -> u64 {
        let tokens = &self.items[item].tokens;
        let found = match whose {
            Whose::Newest => tokens.last(),
            Whose::Former => tokens.len().checked_sub(2).and_then(|at| tokens.get(at)),
            Whose::Another => self.items[(item + 1) % self.items.len()].tokens.last(),
        };
        found.copied().unwrap_or(0)
    }

    fn step(&mut self, step: &Step) -> Answer {
        let now = self.now;
        let next = self.events + 1;
        match *step {
            Step::Pass(seconds) => {
                self.now += i64::from(seconds);
                Answer::Renewed
            }
            Step::Add(item) => {
                let needs_review = item == REVIEWED;
                let item = &mut self.items[item];
                if item.status.is_some() {
                    return Answer::Taken;
                }
                item.needs_review = needs_review;
                item.status = Some(Status::Pending);
                Answer::Done
            }
            Step::Claim(item) => {
                let item = &mut self.items[item];
                let is_early = item.not_before.is_some_and(|at| now < at);
                let is_open = item.status == Some(Status::Pending) || item.is_parked;
                if !is_open || is_early {
                    return Answer::Nothing;
                }
                (item.has_work, item.is_parked) = (false, false);
                item.attempt += 1;
                item.take(Status::InProgress, next, now)
            }
            Step::Review(item, who) => {
                let item = &mut self.items[item];
                let is_early = item.not_before.is_some_and(|at| now < at);
                if item.status != Some(Status::InReview) || is_early || who == Reviewer::Frodo {
                    return Answer::Nothing;
                }
                item.take(Status::Reviewing, next, now)
            }
            Step::Renew(item, whose) => {
                self.shown = self.token(item, whose);
                match &mut self.items[item].lease {
                    None => Answer::NoLease,
                    Some((token, _)) if *token != self.shown => Answer::StaleToken,
                    Some((_, heartbeat)) => {
                        *heartbeat = now;
                        Answer::Renewed
                    }
                }
            }
            Step::Held(item, whose, held) => {
                self.shown = self.token(item, whose);
                let item = &mut self.items[item];
                match item.lease {
                    None => Answer::NoLease,
                    Some((token, _)) if token != self.shown => Answer::StaleToken,
                    Some(_) => item.hold(held, now),
                }
            }
            Step::Reap(item, whose, life, blame) => {
                self.shown = whose.map_or(0, |whose| self.token(item, whose));
                let item = &mut self.items[item];
                let Some(status) = item.status else {
                    return Answer::NoTask;
                };
                let Some((token, heartbeat)) = item.lease else {
                    assert!(
                        !matches!(status, Status::InProgress | Status::Reviewing),
                        "who holds an item has a lease"
                    );
                    return Answer::WrongStatus;
                };
                let is_live = now < heartbeat + i64::from(LEASE);
                match whose {
                    None => Answer::StillLive,
                    Some(_) if token != self.shown => Answer::StaleToken,
                    Some(_) if is_live && life != Life::Gone => Answer::StillLive,
                    Some(_) => {
                        item.come_back(blame, now);
                        Answer::Done
                    }
                }
            }
            Step::Person(item, person) => self.items[item].person(person, now),
        }
    }

    /// What leads on from each item, so that random steps come far.
    fn rightful(&self) -> impl Fn(usize) -> BoxedStrategy<Step> + use<> {
        let (statuses, now) = (
            self.items
                .clone()
                .map(|item| (item.status, item.not_before)),
            self.now,
        );
        move |item| {
            use Status::{
                Approved, Cancelled, Completed, Dead, Draft, InProgress, InReview, Pending,
                Reviewing, Waiting,
            };
            let (status, not_before) = statuses[item];
            let person = |person| Step::Person(item, person);
            let held = |held| Step::Held(item, Whose::Newest, held);
            let open = match status {
                _ if not_before.is_some_and(|at| now < at) => {
                    vec![Step::Pass(u32::try_from(BACK_OFF).expect("it is short"))]
                }
                None => vec![Step::Add(item)],
                Some(Draft) => unreachable!("nothing is drafted here"),
                Some(Pending) => vec![Step::Claim(item)],
                Some(InProgress) => vec![
                    held(Held::Submit),
                    held(Held::Submit),
                    held(Held::Fail),
                    held(Held::Return),
                ],
                Some(InReview) => {
                    vec![
                        Step::Review(item, Reviewer::Sam),
                        Step::Review(item, Reviewer::Frodo),
                        person(Person::Reject),
                    ]
                }
                Some(Reviewing) => vec![
                    held(Held::Approve),
                    held(Held::Reject),
                    held(Held::Fail),
                    held(Held::Fail),
                ],
                Some(Waiting) => vec![
                    person(Person::Resume),
                    person(Person::Resume),
                    Step::Claim(item),
                ],
                Some(Approved) => vec![person(Person::Integrate), person(Person::SendBack)],
                Some(Dead) => vec![person(Person::Revive)],
                Some(Completed | Cancelled) => vec![person(Person::Reopen)],
            };
            select(open).boxed()
        }
    }
}

impl Item {
    fn take(&mut self, status: Status, token: u64, now: i64) -> Answer {
        self.status = Some(status);
        self.not_before = None;
        self.lease = Some((token, now));
        self.tokens.push(token);
        Answer::Done
    }

    fn hold(&mut self, held: Held, now: i64) -> Answer {
        let is_review = self.status == Some(Status::Reviewing);
        match held {
            Held::Start => self.lease = self.lease.map(|(token, _)| (token, now)),
            Held::Submit | Held::Park if is_review => return Answer::WrongStatus,
            Held::Approve | Held::Reject if !is_review => return Answer::WrongStatus,
            Held::Submit => {
                (self.has_work, self.has_consent) = (true, false);
                self.returns = if self.needs_review { 0 } else { self.returns };
                self.goes(if self.needs_review {
                    Status::InReview
                } else {
                    Status::Approved
                });
            }
            Held::Park => {
                self.goes(Status::Waiting);
                (self.attempt, self.is_parked) = (self.attempt - 1, true);
            }
            Held::Approve => self.is_approved(),
            Held::Reject => self.is_rejected(),
            Held::Fail => self.come_back(Blame::Agent, now),
            Held::Return => self.come_back(Blame::Nobody, now),
            Held::Ask => {
                self.goes(Status::Waiting);
                self.attempt -= u32::from(!is_review);
            }
        }
        Answer::Done
    }

    fn is_approved(&mut self) {
        self.ends(Status::Approved);
        self.returns = 0;
    }

    /// A rejection uses a round, and no attempt.
    fn is_rejected(&mut self) {
        self.rounds += 1;
        (self.attempt, self.returns, self.has_work) = (self.attempt.saturating_sub(1), 0, false);
        self.ends(if self.rounds >= ROUNDS {
            Status::Dead
        } else {
            Status::Pending
        });
    }

    fn goes(&mut self, status: Status) {
        self.status = Some(status);
        self.lease = None;
    }

    /// An agent's fault counts as an attempt; nobody's as a return, and the attempt is given back.
    fn come_back(&mut self, blame: Blame, now: i64) {
        // A review that came to nothing says nothing of the work.
        if self.status == Some(Status::Reviewing) {
            self.returns += 1;
            self.goes(Status::InReview);
            self.not_before = Some(now + BACK_OFF);
            if self.returns >= MOST {
                self.ends(Status::Waiting);
            }
            return;
        }
        self.goes(Status::Pending);
        self.not_before = Some(now + BACK_OFF);
        match blame {
            Blame::Agent if self.attempt >= MOST => self.ends(Status::Dead),
            Blame::Agent => {}
            Blame::Nobody => {
                self.attempt = self.attempt.saturating_sub(1);
                if self.returns >= MOST {
                    self.ends(Status::Waiting);
                } else {
                    self.returns += 1;
                }
            }
        }
    }

    /// Whatever it was held or waited for is over.
    fn ends(&mut self, status: Status) {
        self.goes(status);
        self.not_before = None;
    }

    fn person(&mut self, person: Person, now: i64) -> Answer {
        use Status::{
            Approved, Cancelled, Completed, Dead, InProgress, InReview, Pending, Reviewing, Waiting,
        };
        let Some(status) = self.status else {
            return Answer::NoTask;
        };
        let is_live = self
            .lease
            .is_some_and(|(_, heartbeat)| now < heartbeat + i64::from(LEASE));
        match (person, status) {
            (Person::Integrate, Approved) => {
                self.ends(Completed);
                (self.returns, self.rounds) = (0, 0);
            }
            (Person::SendBack, Approved) => {
                self.has_work = false;
                self.come_back(Blame::Agent, now);
            }
            (Person::Resume, Waiting) => {
                self.ends(if self.has_work { InReview } else { Pending });
                (self.returns, self.is_parked) = (0, false);
            }
            (Person::Resume, Pending | InReview) if self.not_before.is_some() => {
                self.not_before = None;
            }
            (Person::Revive, Dead) | (Person::Reopen, Completed | Cancelled) => {
                self.ends(Pending);
                (self.attempt, self.returns, self.rounds) = (0, 0, 0);
                self.has_work = false;
            }
            // Somebody else looks at it, or works on it.
            (Person::Approve | Person::Reject, InProgress | Reviewing) => return Answer::Held,
            // What stands as approved may stand so by an edit of the queue alone: a person says it once.
            (Person::Approve, Approved) if self.has_consent => return Answer::SecondApproval,
            (Person::Approve, InReview | Approved) => {
                self.is_approved();
                self.has_consent = true;
            }
            (Person::Reject, InReview) => self.is_rejected(),
            (Person::Cancel, InProgress | Reviewing) if is_live => return Answer::Held,
            (Person::Cancel, Completed | Cancelled) => return Answer::WrongStatus,
            (Person::Cancel, _) => {
                self.ends(Cancelled);
                self.is_parked = false;
            }
            _ => return Answer::WrongStatus,
        }
        Answer::Done
    }
}

impl ReferenceStateMachine for Model {
    type State = Model;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Model> {
        let model = Model {
            items: Default::default(),
            now: 0,
            events: 0,
            shown: 0,
            answer: Answer::Renewed,
        };
        Just(model).boxed()
    }

    fn transitions(model: &Model) -> BoxedStrategy<Step> {
        use Held::{Ask, Fail, Park, Return, Start, Submit};
        use Person::{Cancel, Integrate, Reopen, Resume, Revive, SendBack};
        let item = || prop_oneof![1 => Just(0), 1 => Just(1), 3 => Just(REVIEWED)];
        let whose = || {
            prop_oneof![6 => Just(Whose::Newest), 1 => Just(Whose::Former), 1 => Just(Whose::Another)].boxed()
        };
        let held = vec![
            Start,
            Submit,
            Fail,
            Fail,
            Return,
            Ask,
            Park,
            Held::Approve,
            Held::Reject,
        ];
        let person = vec![
            Integrate,
            SendBack,
            Resume,
            Revive,
            Reopen,
            Cancel,
            Person::Approve,
            Person::Reject,
        ];
        let life = vec![Life::Alive, Life::Gone, Life::Unknown];
        let blame = vec![Blame::Agent, Blame::Nobody];
        let reviewer = vec![Reviewer::Frodo, Reviewer::Sam];
        prop_oneof![
            30 => item().prop_flat_map(model.rightful()),
            2 => item().prop_map(Step::Add),
            6 => item().prop_map(Step::Claim),
            4 => (item(), select(reviewer)).prop_map(|(item, who)| Step::Review(item, who)),
            2 => (item(), whose()).prop_map(|(item, whose)| Step::Renew(item, whose)),
            8 => (item(), whose(), select(held)).prop_map(|(item, whose, held)| Step::Held(item, whose, held)),
            3 => (item(), proptest::option::weighted(0.8, whose()), select(life), select(blame))
                .prop_map(|(item, whose, life, blame)| Step::Reap(item, whose, life, blame)),
            6 => (item(), select(person)).prop_map(|(item, person)| Step::Person(item, person)),
            3 => (1..90u32).prop_map(Step::Pass),
        ]
        .boxed()
    }

    fn apply(mut model: Model, step: &Step) -> Model {
        model.answer = model.step(step);
        model.events += u64::from(model.answer == Answer::Done);
        model
    }
}

/// The bytes of each file, and the heartbeat of a lease.
type Files = BTreeMap<PathBuf, (Vec<u8>, Option<SystemTime>)>;

/// The real board, and all of its files as they were after the last step.
struct Real {
    scratch: Scratch,
    files: Files,
}

impl Real {
    fn files(&self) -> Files {
        let entries = walkdir::WalkDir::new(self.scratch.work())
            .into_iter()
            .map(|entry| entry.expect("it can be read"));
        let files = entries
            .filter(|entry| entry.file_type().is_file())
            .map(walkdir::DirEntry::into_path);
        let file = |path: PathBuf| {
            let is_lease = path
                .parent()
                .is_some_and(|folder| folder.ends_with("leases"));
            let beat = || {
                fs::metadata(&path)
                    .and_then(|file| file.modified())
                    .expect("it is there")
            };
            let file = (fs::read(&path).expect("it is there"), is_lease.then(beat));
            (path, file)
        };
        files.map(file).collect()
    }

    fn send(&self, model: &Model, step: &Step) -> Result<Option<Kind>, Error> {
        let board = board(&self.scratch);
        let token = model.shown;
        let retry = |blame| Retry {
            blame,
            not_before: Some(at(model.now + BACK_OFF)),
            most: MOST,
        };
        let reason = || "because".to_owned();
        let review = |token: Option<u64>| Review {
            token,
            by: if token.is_some() {
                "Sam".into()
            } else {
                "Rosie".into()
            },
            role: if token.is_some() {
                "reviewer".into()
            } else {
                PERSON.into()
            },
            reviewers: vec!["reviewer".into()],
        };
        let claim = |agent: &str, role: &str, item| {
            let seek = ClaimRequest {
                item: Some(NamedItem::Id(task(item))),
                ..seek(agent, role, LEASE)
            };
            Ok(board
                .claim(&seek, &|_, _, _, _| Ok(()))?
                .ok()
                .map(|_| Kind::Claimed))
        };
        let (item, event) = match *step {
            Step::Pass(_) => return Ok(None),
            Step::Add(item) => {
                let fields = if item == REVIEWED {
                    vec![(Key::Review, "reviewer".into())]
                } else {
                    Vec::new()
                };
                let new = NewItem {
                    id: Some(task(item)),
                    title: format!("Item {item}"),
                    fields,
                    ..NewItem::default()
                };
                board.add(&board.queues()?[0], new, Status::Pending, &Note::default())?;
                return Ok(Some(Kind::Added));
            }
            Step::Claim(item) => return claim("Frodo", "coder", item),
            Step::Review(item, who) => return claim(&format!("{who:?}"), "reviewer", item),
            Step::Renew(item, _) => return board.renew(&task(item), token).map(|_| None),
            Step::Held(item, _, held) => (
                item,
                match held {
                    Held::Start => {
                        let work = Work {
                            run: "r".into(),
                            worktree: "w".into(),
                            branch: None,
                            base: None,
                            session: None,
                            supervisor: None,
                        };
                        Event::Start { token, work }
                    }
                    Held::Submit => {
                        let reviewers = if item == REVIEWED {
                            vec!["reviewer".into()]
                        } else {
                            Vec::new()
                        };
                        Event::Submit {
                            token,
                            commit: Some("1a2b3c4".into()),
                            reviewers,
                            asks: None,
                        }
                    }
                    Held::Fail => Event::Fail {
                        token,
                        retry: retry(Blame::Agent),
                        reason: reason(),
                    },
                    Held::Return => Event::Return {
                        token,
                        retry: retry(Blame::Nobody),
                        reason: reason(),
                    },
                    Held::Ask => Event::Ask {
                        token,
                        question: "which?".into(),
                    },
                    Held::Park => Event::Park {
                        token,
                        children: vec![task(7)],
                    },
                    Held::Approve => Event::Approve {
                        review: review(Some(token)),
                        commit: Some("1a2b3c4".into()),
                    },
                    Held::Reject => Event::Reject {
                        review: review(Some(token)),
                        findings: reason(),
                        most: ROUNDS,
                    },
                },
            ),
            Step::Reap(item, whose, life, blame) => (
                item,
                Event::Reap {
                    token: whose.map(|_| token),
                    life,
                    retry: retry(blame),
                    reason: reason(),
                },
            ),
            Step::Person(item, person) => (
                item,
                match person {
                    Person::Integrate => Event::Integrate { commit: None },
                    Person::SendBack => Event::SendBack {
                        retry: retry(Blame::Agent),
                        reason: reason(),
                    },
                    Person::Resume => Event::Resume {
                        reason: Some(reason()),
                    },
                    Person::Revive => Event::Revive { reason: None },
                    Person::Reopen => Event::Reopen { reason: None },
                    Person::Cancel => Event::Cancel { reason: None },
                    Person::Approve => Event::Approve {
                        review: review(None),
                        commit: None,
                    },
                    Person::Reject => Event::Reject {
                        review: review(None),
                        findings: reason(),
                        most: ROUNDS,
                    },
                },
            ),
        };
        board
            .submit(&task(item), &event, &Note::default())
            .map(|done| Some(done.entry.kind))
    }
}

fn at(seconds: i64) -> Timestamp {
    "2026-11-22T10:00:00Z"
        .parse::<Timestamp>()
        .expect("it is a time")
        + TimeDelta::seconds(seconds)
}

fn task(item: usize) -> TaskId {
    id(&format!("T-{item}"))
}

fn answer(result: &Result<Option<Kind>, Error>, step: &Step) -> Answer {
    match result {
        Ok(Some(_)) => Answer::Done,
        Ok(None) if matches!(step, Step::Claim(_) | Step::Review(..)) => Answer::Nothing,
        Ok(None) => Answer::Renewed,
        Err(Error::Taken(_)) => Answer::Taken,
        Err(Error::NoTask(_)) => Answer::NoTask,
        Err(Error::Refused(refusal)) => match refusal {
            Refusal::WrongStatus { .. } => Answer::WrongStatus,
            Refusal::SecondApproval { .. } => Answer::SecondApproval,
            Refusal::Held { .. } => Answer::Held,
            Refusal::StaleToken { .. } => Answer::StaleToken,
            Refusal::NoLease { .. } => Answer::NoLease,
            Refusal::StillLive { .. } => Answer::StillLive,
            other => panic!("nobody reviews their own work here: {other}"),
        },
        Err(error) => panic!("nothing is wrong with the world: {error}"),
    }
}

impl StateMachineTest for Real {
    type SystemUnderTest = Real;
    type Reference = Model;

    fn init_test(_: &Model) -> Real {
        let scratch = Scratch::empty();
        scratch.write(".tavern/config.yaml", "");
        scratch.write(
            ".tavern/queues/main.md",
            "# Main\n\n## Pending\n\n- [ ] T-9: Stay *as* you are (role: nobody)\n\n## Waiting\n\n## Completed\n",
        );
        let board = board(&scratch);
        board.make_folders().expect("the folder is ours");
        at_moment(at(0), || board.settle()).expect("the folder is ours");
        let mut real = Real {
            scratch,
            files: BTreeMap::new(),
        };
        real.files = real.files();
        real
    }

    fn apply(mut real: Real, model: &Model, step: Step) -> Real {
        let before = State::of(&real.scratch);
        // Only time passes between the model's step and this one, and no step does both.
        let result = at_moment(at(model.now), || real.send(model, &step));
        assert_eq!(answer(&result, &step), model.answer, "{step:?}: {result:?}");
        let is_beat = matches!(step, Step::Renew(..)) && model.answer == Answer::Renewed;
        match model.answer {
            Answer::Done => {
                let last = last_line(&real.scratch);
                assert_eq!(
                    (last.seq, Some(last.kind)),
                    (model.events, result.ok().flatten()),
                    "{step:?}"
                );
                tells(&last, &before, &State::of(&real.scratch));
            }
            _ if is_beat => assert_eq!(
                bytes(&real.files()),
                bytes(&real.files),
                "a heartbeat changes no byte"
            ),
            _ => assert_eq!(
                real.files(),
                real.files,
                "what is refused changes nothing: {step:?}"
            ),
        }
        real.files = real.files();
        real
    }

    fn check_invariants(real: &Real, model: &Model) {
        let state = State::of(&real.scratch);
        let leases = board(&real.scratch).leases().expect("they can be read");
        let mut held = 0;
        for (number, item) in model.items.iter().enumerate() {
            let name = format!("T-{number}");
            assert_eq!(state.status(&name), item.status, "{name}\n{state:#?}");
            if item.status.is_some() {
                let task = state.task(&name);
                let not_before = item.not_before.map(at);
                let has = (task.state.attempt, task.state.returns, task.state.rounds);
                let wants = (item.attempt, item.returns, item.rounds);
                assert_eq!(
                    (has, task.state.not_before()),
                    (wants, not_before),
                    "{name}\n{state:#?}"
                );
            }
            let lease = leases.iter().find(|lease| lease.task.as_str() == name);
            let on_disk = lease.map(|lease| (lease.token, lease.heartbeat_at));
            assert_eq!(
                on_disk,
                item.lease.map(|(token, heartbeat)| (token, at(heartbeat))),
                "{name}"
            );
            assert!(
                on_disk.is_none_or(|(token, _)| Some(&token) == item.tokens.iter().max()),
                "the newest token holds"
            );
            held += usize::from(lease.is_some());
        }
        assert_eq!(leases.len(), held, "no other lease is there");
        assert_eq!(state.status("T-9"), Some(Status::Pending));
    }

    fn teardown(real: Real, _: Model) {
        State::of(&real.scratch).agrees();
    }
}

fn has_ended(status: Option<Status>) -> bool {
    matches!(status, Some(Status::Completed | Status::Cancelled))
}

fn bytes(files: &Files) -> Vec<(&PathBuf, &Vec<u8>)> {
    files
        .iter()
        .map(|(path, (bytes, _))| (path, bytes))
        .collect()
}

fn last_line(scratch: &Scratch) -> Entry {
    tail_log(&board(scratch), 0)
        .expect("the log can be read")
        .pop()
        .expect("something happened")
}

/// The log's line says from what to what, and nothing but its item is another. The text says no more than whether it has ended.
fn tells(last: &Entry, before: &State, after: &State) {
    let task = last.task.as_ref().expect("each step has an item").as_str();
    let (from, to) = (before.status(task), after.status(task));
    assert_eq!(
        (last.from(), last.to()),
        if from == to { (None, None) } else { (from, to) },
        "{last:?}"
    );
    if let Some(text) = last.change.after() {
        assert_eq!(text.trim_end(), after.items[task].1.trim_end());
    }
    assert_eq!(
        last.change.before().is_some(),
        last.change.after().is_some() && from.is_some(),
        "{last:?}"
    );
    if from.is_some() && has_ended(from) == has_ended(to) {
        assert_eq!(last.change, TextChange::Nothing, "{last:?}");
        assert_eq!(after.texts, before.texts, "{last:?}");
    }
    for (name, item) in after.items.iter().filter(|(name, _)| *name != task) {
        assert_eq!(Some(item), before.items.get(name), "{name} is not {task}");
        assert_eq!(after.tasks.get(name), before.tasks.get(name), "{name}");
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: share(256, 8), ..ProptestConfig::default() })]
    #[test]
    fn the_board_is_its_model(sequential 1..100 => Real);
}
