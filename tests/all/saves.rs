//! Random programs and random saves, fresh ones and old ones, against what must hold whatever they are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use tavern::board::edit::NewItem;
use tavern::board::event::{Blame, Event, Retry};
use tavern::board::task::{Status, TaskId, Timestamp};
use tavern::store::{Board, Note};

use crate::state::{State, board, id, seek};
use crate::support::{QUEUE, Scratch};

const LANES: &str = "---\nid: main\n---\n\nWords.\n\n## Pending\n\n- [ ] T-0: a\n- [ ] T-1: b\n  text\n- [ ] T-2: c\n- [ ] d\n\n## In Progress\n\n## Waiting\n\n## Completed\n\n- [x] T-3: e\n";

const LOOSE: &str =
    "Words.\n\n- [ ] T-0: a\n\n- [ ] T-1: b\n  text\n\n- [ ] T-2: c\n- [ ] d\n\nMore words.\n\n1. [x] T-3: e\n";

#[derive(Clone, Debug)]
enum Step {
    Claim,
    /// Of the item that was claimed so many claims ago.
    Return(usize),
    Cancel(usize),
    Add,
    /// A person opens the queue.
    Load,
    /// And saves it, with one more change.
    Save(Edit),
}

#[derive(Clone, Copy, Debug)]
enum Edit {
    Prose,
    Item,
    Text(usize),
    Tick(usize),
    Delete(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let edit = prop_oneof![
        4 => select(vec![Edit::Prose, Edit::Item]),
        3 => (0..4usize).prop_map(Edit::Text),
        1 => (0..4usize).prop_map(Edit::Tick),
        1 => (0..4usize).prop_map(Edit::Delete),
    ];
    let step = prop_oneof![
        4 => Just(Step::Claim),
        3 => (0..2usize).prop_map(Step::Return),
        1 => (0..4usize).prop_map(Step::Cancel),
        1 => Just(Step::Add),
        3 => Just(Step::Load),
        4 => edit.prop_map(Step::Save),
    ];
    vec(step, 1..16)
}

/// One board, and a person with a buffer.
struct World {
    scratch: Scratch,
    board: Board,
    now: Timestamp,
    buffer: String,
    /// Words that were typed or added, and are not in an item that the person took out since.
    typed: BTreeMap<String, Option<TaskId>>,
    claims: Vec<(TaskId, u64)>,
    cancelled: BTreeSet<TaskId>,
    number: usize,
}

impl World {
    fn of(text: &str) -> World {
        let scratch = Scratch::initialized();
        scratch.write(QUEUE, text);
        let board = board(&scratch);
        let now = SystemTime::now().into();
        board.settle(now).expect("it can be written");
        let (typed, claims, cancelled) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        World { scratch, board, now, buffer: text.to_owned(), typed, claims, cancelled, number: 0 }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Claim => {
                let seek = seek(&self.board, "Frodo", "coder", 600).expect("the queues can be listed");
                if let Ok(claimed) = self.board.claim(&seek, self.now, &|_, _, _| Ok(())).expect("it can be written") {
                    self.claims.push((claimed.task.id, claimed.lease.token));
                }
            }
            Step::Return(ago) => {
                let Some(at) = self.claims.len().checked_sub(ago + 1) else { return };
                let (task, token) = self.claims.remove(at);
                let retry = Retry { blame: Blame::Nobody, not_before: None, most: 99 };
                let event = Event::Return { token, retry, reason: "given back".into() };
                self.board.submit(&task, &event, &Note::default(), self.now).expect("it is held");
            }
            Step::Cancel(number) => {
                let task = id(&format!("T-{number}"));
                let event = Event::Cancel { reason: None };
                if self.board.submit(&task, &event, &Note::default(), self.now).is_ok() {
                    self.cancelled.insert(task);
                }
            }
            Step::Add => {
                self.number += 1;
                let title = format!("added {}.", self.number);
                let queue = self.board.queues().expect("they can be listed").remove(0);
                let new = NewItem { title: title.clone(), ..NewItem::default() };
                self.board.add(&queue, new, Status::Pending, &Note::default(), self.now).expect("it can be written");
                self.typed.insert(title, None);
            }
            Step::Load => self.buffer = self.scratch.queue(),
            Step::Save(edit) => self.save(*edit),
        }
    }

    fn save(&mut self, edit: Edit) {
        self.number += 1;
        let word = format!("Typed {}.", self.number);
        let is_of = |line: &str, number: usize| line.contains(&format!("] T-{number}:"));
        let mut lines: Vec<String> = self.buffer.lines().map(str::to_owned).collect();
        match edit {
            Edit::Prose => {
                lines.push(String::new());
                lines.push(word.clone());
                self.typed.insert(word, None);
            }
            Edit::Item => {
                let at = lines.iter().position(|line| line.contains("] T-0:") || line.contains("] d")).unwrap_or(0);
                lines.insert(at, format!("- [ ] {word}"));
                if at == 0 {
                    return;
                }
                self.typed.insert(word, None);
            }
            Edit::Text(number) => {
                let Some(at) = lines.iter().position(|line| is_of(line, number)) else { return };
                lines.insert(at + 1, format!("  {word}"));
                self.typed.insert(word, Some(id(&format!("T-{number}"))));
            }
            Edit::Tick(number) => {
                let Some(line) = lines.iter_mut().find(|line| is_of(line, number)) else { return };
                *line = line.replacen("[ ]", "[x]", 1);
            }
            Edit::Delete(number) => {
                let Some(at) = lines.iter().position(|line| is_of(line, number)) else { return };
                let rest = lines[at + 1..].iter().take_while(|line| line.starts_with("  ")).count();
                lines.drain(at..=at + rest);
                let task = id(&format!("T-{number}"));
                self.typed.retain(|_, of| of.as_ref() != Some(&task));
            }
        }
        self.buffer = lines.join("\n") + "\n";
        self.scratch.write(QUEUE, &self.buffer);
        self.board.settle(self.now).expect("it can be written");
        // An editor shows that the file has changed, and is told to load it.
        self.buffer = self.scratch.queue();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_save_undoes_a_transition_or_loses_a_word(text in select(vec![LANES, LOOSE]), steps in steps()) {
        let mut world = World::of(text);
        for step in &steps {
            world.step(step);
            let state = State::of(&world.scratch);
            let text = &state.texts["main"];
            for word in world.typed.keys() {
                prop_assert_eq!(text.matches(word.as_str()).count(), 1, "{} after {:?}\n{}", word, step, text);
            }
            for (task, token) in &world.claims {
                prop_assert_eq!(state.leases.get(task.as_str()), Some(token), "after {:?}", step);
                prop_assert_eq!(state.status(task.as_str()), Some(Status::InProgress), "{} after {:?}\n{}", task, step, text);
            }
            for task in &world.cancelled {
                let is_ended = state.status(task.as_str()).is_none_or(Status::is_ended);
                prop_assert!(is_ended, "{} after {:?}\n{}", task, step, text);
            }
            state.agrees();
        }
    }
}
