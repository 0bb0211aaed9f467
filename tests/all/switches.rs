//! Random programs and saves with git in between: switches, merges, resets, stashes. No item and no transition is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tavern_core::document::parse;
use tavern_core::event::{Blame, Event, Retry};
use tavern_core::new_item::NewItem;
use tavern_core::task::{Status, TaskId};
use tavern_run::ASK_GIT;
use tavern_store::{Board, Note};

use crate::dice::{Dice, number};
use crate::state::{State, board, seek};
use crate::support::{QUEUE, Scratch};

const BEGIN: &str = "Words.\n\n## Pending\n\n- [ ] T-1: item 1.\n- [ ] T-2: item 2.\n\n## In Progress\n\n## Completed\n";

/// A repository with two branches, and what must hold of it.
struct World {
    scratch: Scratch,
    board: Board,
    dice: Dice,
    /// Titles that were added or typed, and not taken out by hand since.
    titles: Vec<String>,
    typed: BTreeSet<String>,
    claims: BTreeMap<TaskId, u64>,
    ended: BTreeSet<TaskId>,
    told: Vec<String>,
}

impl World {
    fn begin(seed: u64) -> World {
        let scratch = Scratch::initialized();
        scratch.write(QUEUE, BEGIN);
        scratch.commit(&["--all"], "Board");
        scratch.git(&["branch", "other"]);
        let board = board(&scratch).with_git(ASK_GIT);
        board.settle().expect("it can be written");
        let titles = ["item 1.", "item 2."].map(str::to_owned).to_vec();
        let (typed, claims, ended) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        let dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        World {
            scratch,
            board,
            dice,
            titles,
            typed,
            claims,
            ended,
            told: Vec::new(),
        }
    }

    fn title(&mut self) -> String {
        let title = format!("item {}.", self.told.len() + 3);
        self.titles.push(title.clone());
        title
    }

    /// What git can't do as things are it refuses.
    fn git(&mut self, line: &str) -> bool {
        let ran = self
            .scratch
            .command(Path::new("git"))
            .args(&line.split(' ').collect::<Vec<_>>())
            .run();
        self.told.push(format!("git {line}: {:?}", ran.code));
        ran.code == Some(0)
    }

    /// Some commit has it.
    fn is_committed(&self, title: &str) -> bool {
        let commits = self.scratch.git(&["rev-list", "--all", "--reflog"]);
        commits.lines().any(|commit| {
            let show = self
                .scratch
                .command(Path::new("git"))
                .args(&["show", &format!("{commit}:{QUEUE}")]);
            show.run().stdout.contains(title)
        })
    }

    fn other_branch(&self) -> &'static str {
        if self.scratch.git(&["branch", "--show-current"]) == "main" {
            "other"
        } else {
            "main"
        }
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0 | 1 => {
                let title = self.title();
                self.told.push(format!("add {title}"));
                let queue = self.board.queues().expect("they can be listed").remove(0);
                let new = NewItem {
                    title,
                    ..NewItem::default()
                };
                self.board
                    .add(&queue, new, Status::Pending, &Note::default())
                    .expect("it can be written");
            }
            2 | 3 => {
                let seek = seek("Frodo", "coder", 600);
                if let Ok(claimed) = self
                    .board
                    .claim(&seek, &|_, _, _, _| Ok(()))
                    .expect("it can be written")
                {
                    self.told.push(format!("claim {}", claimed.task.id));
                    self.claims.insert(claimed.task.id, claimed.lease.token);
                }
            }
            4 | 5 => self.report(),
            6 => self.cancel(),
            7 | 8 => self.save(),
            9..=11 => drop(self.git("commit --quiet --all --message=Queue")),
            12 => {
                let line = format!("checkout --quiet -f {}", self.other_branch());
                self.git(&line);
                self.forget_typed();
            }
            13 => {
                let line = format!("switch --quiet {}", self.other_branch());
                self.git(&line);
            }
            14 => {
                let line = format!("merge --quiet --no-edit {}", self.other_branch());
                if !self.git(&line) {
                    self.git("merge --abort");
                }
            }
            15 => {
                let line = format!("rebase --quiet {}", self.other_branch());
                if !self.git(&line) {
                    self.look();
                    self.git("rebase --abort");
                }
            }
            16 => {
                // There was no board before its first commit.
                if self.git(&format!("cat-file -e HEAD~1:{QUEUE}")) {
                    self.git("reset --quiet --hard HEAD~1");
                    self.forget_typed();
                }
            }
            17 => {
                if self.git("stash --quiet --all") && self.dice.below(2) == 0 {
                    self.look();
                }
                if !self.git("stash pop --quiet") {
                    self.git("checkout --quiet .");
                    self.git("stash pop --quiet");
                }
                self.git("stash clear");
            }
            18 => drop(self.git("clean -fdxq")),
            _ => {
                self.git("checkout --quiet .");
                self.forget_typed();
            }
        }
        if self.dice.below(2) == 0 {
            self.look();
        }
    }

    /// Who has git throw away what they typed means it.
    fn forget_typed(&mut self) {
        let titles = std::mem::take(&mut self.titles);
        let is_kept = |title: &String| !self.typed.contains(title) || self.is_committed(title);
        self.titles = titles.into_iter().filter(is_kept).collect();
    }

    fn report(&mut self) {
        let Some((task, token)) = self.claims.pop_first() else {
            return;
        };
        let event = if self.dice.below(2) == 0 {
            self.ended.insert(task.clone());
            Event::Submit {
                token,
                commit: None,
                reviewers: Vec::new(),
                asks: None,
            }
        } else {
            let retry = Retry {
                blame: Blame::Nobody,
                not_before: None,
                most: 99,
            };
            Event::Return {
                token,
                retry,
                reason: "given back".into(),
            }
        };
        self.told.push(format!("{task} {}", event.kind()));
        self.board
            .submit(&task, &event, &Note::default())
            .expect("it is held");
    }

    fn cancel(&mut self) {
        let items = State::of(&self.scratch).items;
        let Some(task) = items
            .keys()
            .nth(self.dice.below(4) as usize)
            .and_then(|id| id.parse::<TaskId>().ok())
        else {
            return;
        };
        if self
            .board
            .submit(&task, &Event::Cancel { reason: None }, &Note::default())
            .is_ok()
        {
            self.told.push(format!("cancel {task}"));
            self.ended.insert(task);
        }
    }

    /// A person loads the queue, and saves it with one more item, or with one less that nobody holds.
    fn save(&mut self) {
        self.look();
        let text = self.scratch.queue();
        if text.contains("<<<<<<<") {
            return;
        }
        let (document, _) = parse(&text);
        let free = document
            .items()
            .iter()
            .find(|item| item.status == Status::Pending);
        let saved = match free.filter(|_| self.dice.below(3) == 0) {
            Some(item) => {
                let title = document.title(item).to_owned();
                self.told.push(format!("delete {title}"));
                self.titles.retain(|other| *other != title);
                text.replacen(document.block(item), "", 1)
            }
            None => {
                let title = self.title();
                self.told.push(format!("type {title}"));
                self.typed.insert(title.clone());
                text.replacen(
                    "## Pending\n\n",
                    &format!("## Pending\n\n- [ ] {title}\n"),
                    1,
                )
            }
        };
        self.scratch.write(QUEUE, saved);
        self.look();
    }

    /// Tavern takes over what has happened, and all that must hold does.
    fn look(&mut self) {
        self.board.settle().expect("it can be written");
        self.told.push("look".to_owned());
        let state = State::of(&self.scratch);
        let text = &state.texts["main"];
        let story = || format!("{}\n{text}", self.told.join("\n"));
        assert!(
            self.board.set_aside().is_empty(),
            "set aside after {}",
            story()
        );
        if text.contains("<<<<<<<") {
            return;
        }
        for (task, token) in &self.claims {
            assert_eq!(
                state.leases.get(task.as_str()),
                Some(token),
                "{task} after {}",
                story()
            );
            assert_eq!(
                state.status(task.as_str()),
                Some(Status::InProgress),
                "{task} after {}",
                story()
            );
        }
        for task in &self.ended {
            let is_open = matches!(
                state.status(task.as_str()),
                Some(Status::Pending | Status::InProgress)
            );
            assert!(!is_open, "{task} after {}", story());
        }
        let head = self.scratch.git(&["show", &format!("HEAD:{QUEUE}")]);
        for title in &self.titles {
            match text.matches(title.as_str()).count() {
                1 => {}
                0 => {
                    assert!(
                        !head.contains(title.as_str()),
                        "HEAD has `{title}` after {}",
                        story()
                    );
                    assert!(
                        self.is_committed(title),
                        "`{title}` is lost after {}",
                        story()
                    );
                }
                _ => panic!("`{title}` is there twice after {}", story()),
            }
        }
        state.agrees();
    }
}

#[test]
fn whatever_git_does_no_item_and_no_transition_is_lost() {
    let first = number("TAVERN_GIT_SEED", 1);
    for seed in first..first + number("TAVERN_GIT_ROUNDS", 12) {
        let mut world = World::begin(seed);
        world.told.push(format!("seed {seed}"));
        for _ in 0..24 {
            world.step();
        }
        world.look();
    }
}
