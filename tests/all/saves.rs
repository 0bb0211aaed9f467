//! Random programs and random editors, whose texts are fresh and old, against what must hold whatever they are.
#![expect(clippy::print_stdout, reason = "whoever looks further is told how far")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy};
use proptest::prop_oneof;
use proptest::sample::select;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tavern_core::event::{Blame, Event, Retry};
use tavern_core::new_item::NewItem;
use tavern_core::task::{Status, TaskId};
use tavern_store::{Board, Note};

use crate::dice::{number, share, slice};
use crate::state::{State, board, id, seek};
use crate::support::{QUEUE, Scratch};
use crate::typed::{NOBODY, Save, Typed, item_of, words};

const LANES: &str = "---\nid: main\n---\n\nTyped 0.\n\n## Pending\n\n- [ ] T-0: Typed 1.\n- [ ] T-1: Typed 2.\n  Typed 3.\n\
    - [ ] T-2: Typed 4.\n- [ ] Typed 5.\n\n## In Progress\n\n## Waiting\n\n## Completed\n\n- [x] T-3: Typed 6.\n";

const LOOSE: &str = "Typed 0.\n\n- [ ] T-0: Typed 1.\n\n- [ ] T-1: Typed 2.\n  Typed 3.\n\n- [ ] T-2: Typed 4.\n\
    - [ ] Typed 5.\n\nMore words.\n\n1. [x] T-3: Typed 6.\n";

/// Words that the queues begin with.
const BEGUN: usize = 7;

#[derive(Clone, Debug)]
enum Step {
    Claim,
    /// Of the item that was claimed so many claims ago.
    End(usize, Ending),
    Cancel(usize),
    Add,
    Look,
    /// One of the editors.
    Editor(usize, Act),
    /// `echo '- [ ] …' >>`
    Append,
    /// `sed -i` of the nth word.
    Replace(usize),
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Done,
    Failed,
    Waiting,
    Released,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Load,
    Type(Edit),
    Undo,
    Save,
    /// Writes so many hundredths of it, and the rest when somebody next does anything by hand.
    SaveSlowly(usize),
}

#[derive(Clone, Copy, Debug)]
enum Edit {
    /// Above the nth heading or item.
    Prose(usize),
    Item(usize),
    Known(usize),
    Text(usize),
    Title(usize),
    /// On the line with the nth word.
    GoOn(usize),
    Tick(usize),
    Delete(usize),
    /// The line with the nth word.
    DeleteLine(usize),
    Move(usize),
}

/// How an editor saves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// nano, ed, vim with `backupcopy=yes`: emptied and written anew.
    InPlace,
    /// The same, and what others made of the file is loaded where nothing is unsaved: VS Code.
    Following,
    /// A new file takes the name: gedit, `sed -i`.
    ByRename,
    /// The old file gets another name, and a new one is made: vim, Emacs.
    WithBackup,
}

const WAYS: [Way; 4] = [Way::InPlace, Way::Following, Way::ByRename, Way::WithBackup];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let edit = prop_oneof![
        3 => (0..6usize).prop_map(Edit::Prose),
        3 => (0..6usize).prop_map(Edit::Item),
        1 => (0..6usize).prop_map(Edit::Known),
        3 => (0..4usize).prop_map(Edit::Text),
        2 => (0..4usize).prop_map(Edit::Title),
        2 => (0..20usize).prop_map(Edit::GoOn),
        1 => (0..4usize).prop_map(Edit::Tick),
        1 => (0..4usize).prop_map(Edit::Delete),
        1 => (0..20usize).prop_map(Edit::DeleteLine),
        1 => (0..4usize).prop_map(Edit::Move),
    ];
    let act = prop_oneof![
        3 => Just(Act::Load),
        8 => edit.prop_map(Act::Type),
        2 => Just(Act::Undo),
        6 => Just(Act::Save),
        1 => (0..100usize).prop_map(Act::SaveSlowly),
    ];
    let ending = select(vec![
        Ending::Done,
        Ending::Failed,
        Ending::Waiting,
        Ending::Released,
    ]);
    let step = prop_oneof![
        4 => Just(Step::Claim),
        4 => (0..2usize, ending).prop_map(|(ago, ending)| Step::End(ago, ending)),
        1 => (0..4usize).prop_map(Step::Cancel),
        2 => Just(Step::Add),
        4 => Just(Step::Look),
        24 => (0..3usize, act).prop_map(|(editor, act)| Step::Editor(editor, act)),
        1 => Just(Step::Append),
        1 => (0..20usize).prop_map(Step::Replace),
    ];
    vec(step, 1..40)
}

/// A person's buffer.
#[derive(Clone, Debug)]
struct Editor {
    way: Way,
    loaded: String,
    text: String,
    /// As it was saved last, or loaded.
    clean: String,
    undo: Vec<String>,
    ever: String,
}

impl Editor {
    fn load(&mut self, text: String) {
        *self = Editor {
            way: self.way,
            loaded: text.clone(),
            clean: text.clone(),
            undo: Vec::new(),
            ever: text.clone(),
            text,
        };
    }
}

/// A save that is under way.
struct Writing {
    file: Option<File>,
    rest: Vec<u8>,
    save: Save,
}

/// One board, and people with buffers.
struct World {
    scratch: Scratch,
    board: Board,
    editors: Vec<Editor>,
    writing: Option<Writing>,
    typed: Typed,
    claims: Vec<(TaskId, u64)>,
    ended: Vec<TaskId>,
    number: usize,
    saves: BTreeMap<String, usize>,
}

impl World {
    fn of(text: &str, ways: &[Way]) -> World {
        let scratch = Scratch::empty();
        scratch.write(".tavern/config.yaml", "");
        scratch.write(QUEUE, text);
        let board = board(&scratch);
        board.make_folders().expect("the folder is ours");
        board.settle().expect("it can be written");
        let editor = |way: &Way| {
            let text = text.to_owned();
            Editor {
                way: *way,
                loaded: text.clone(),
                text: text.clone(),
                clean: text.clone(),
                undo: Vec::new(),
                ever: text,
            }
        };
        let folder = scratch.work().join(".tavern");
        World {
            board,
            editors: ways.iter().map(editor).collect(),
            writing: None,
            typed: Typed::of(&folder, &folder, text),
            claims: Vec::new(),
            ended: Vec::new(),
            number: BEGUN,
            saves: BTreeMap::new(),
            scratch,
        }
    }

    fn path(&self) -> PathBuf {
        self.scratch.work().join(QUEUE)
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Editor(..) | Step::Append | Step::Replace(_) => {
                self.finish();
                if let Step::Replace(_) | Step::Append | Step::Editor(_, Act::Load) = step {
                    // What rests on a save at which nobody has looked is as near to what that rests on.
                    self.look()?;
                }
                self.by_hand(step);
            }
            Step::Look => self.look()?,
            _ => {
                if self.writing.is_none() {
                    self.look()?;
                }
                let added = self.program(step);
                if self.writing.is_none() {
                    self.typed.was_done(&added);
                } else {
                    self.typed.was_done_meanwhile(&added);
                }
            }
        }
        if self.writing.is_none() && !self.typed.is_saved() {
            self.holds()?;
            for editor in &mut self.editors {
                if editor.way == Way::Following
                    && editor.text == editor.clean
                    && editor.clean != self.typed.newest
                {
                    editor.load(self.typed.newest.clone());
                }
            }
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), String> {
        self.board.settle().expect("it can be written");
        if self.writing.is_some() {
            return Ok(());
        }
        match self.typed.was_looked_at() {
            // What is held is put back, whoever takes it out or ticks it.
            Err(why) if why.starts_with("a save on the newest") && !self.claims.is_empty() => {
                self.typed.newest = self.typed.shown();
                Ok(())
            }
            looked => looked,
        }
    }

    /// The words that it was told.
    fn program(&mut self, step: &Step) -> Vec<String> {
        let note = Note::default();
        match step {
            Step::Claim => {
                let seek = seek("Frodo", "coder", 600);
                if let Ok(claimed) = self
                    .board
                    .claim(&seek, &|_, _, _, _| Ok(()))
                    .expect("it can be written")
                {
                    self.claims.push((claimed.task.id, claimed.lease.token));
                }
            }
            Step::End(ago, ending) => {
                let Some(at) = self.claims.len().checked_sub(ago + 1) else {
                    return Vec::new();
                };
                let (task, token) = self.claims.remove(at);
                let retry = |blame| Retry {
                    blame,
                    not_before: None,
                    most: 99,
                };
                let reason = "so it is".to_owned();
                let event = match ending {
                    Ending::Done => Event::Submit {
                        token,
                        commit: None,
                        reviewers: Vec::new(),
                        asks: None,
                    },
                    Ending::Failed => Event::Fail {
                        token,
                        retry: retry(Blame::Agent),
                        reason,
                    },
                    Ending::Waiting => Event::Ask {
                        token,
                        question: reason,
                    },
                    Ending::Released => Event::Return {
                        token,
                        retry: retry(Blame::Nobody),
                        reason,
                    },
                };
                self.board.submit(&task, &event, &note).expect("it is held");
                if let Ending::Done = ending {
                    // One without a worktree is completed already.
                    let _ = self
                        .board
                        .submit(&task, &Event::Integrate { commit: None }, &note);
                    self.ended.push(task);
                }
            }
            Step::Cancel(number) => {
                let task = id(&format!("T-{number}"));
                if self
                    .board
                    .submit(&task, &Event::Cancel { reason: None }, &note)
                    .is_ok()
                {
                    self.ended.push(task);
                }
            }
            Step::Add => {
                let title = self.word();
                let queue = self.board.queues().expect("they can be listed").remove(0);
                let new = NewItem {
                    title: title.clone(),
                    ..NewItem::default()
                };
                self.board
                    .add(&queue, new, Status::Pending, &note)
                    .expect("it can be written");
                return vec![title];
            }
            _ => {}
        }
        Vec::new()
    }

    /// None reads as if another were corrected.
    fn word(&mut self) -> String {
        let number = self.number;
        self.number += 1;
        format!("Typed {number} a{number} b{number} c{number}.")
    }

    fn by_hand(&mut self, step: &Step) {
        let now = self.typed.shown();
        match *step {
            Step::Append => {
                let line = format!("- [ ] {}\n", self.word());
                let mut file = File::options()
                    .append(true)
                    .open(self.path())
                    .expect("it is there");
                file.write_all(line.as_bytes()).expect("there is room");
                self.typed.goes_on_with(now + &line, None);
                *self.saves.entry("append".to_owned()).or_default() += 1;
            }
            Step::Replace(nth) => {
                let words: Vec<String> = words(&now).into_iter().collect();
                let Some(old) = words.get(nth % words.len().max(1)) else {
                    return;
                };
                let new = self.word();
                let text = now.replace(old.as_str(), &new);
                let temp = self.path().with_file_name("sed1234");
                fs::write(&temp, &text)
                    .and_then(|()| fs::rename(&temp, self.path()))
                    .expect("the folder is ours");
                // Each run of it is another writer: unlike words that take each other's place twice can't be told from those of two.
                self.typed
                    .touches(NOBODY - self.number, &item_of(&now, old));
                self.typed.goes_on_with(text, Some(old.clone()));
                *self.saves.entry("sed".to_owned()).or_default() += 1;
            }
            Step::Editor(editor, Act::Load) => self.editors[editor].load(now),
            Step::Editor(editor, Act::Undo) => {
                let editor = &mut self.editors[editor];
                if let Some(text) = editor.undo.pop() {
                    editor.text = text;
                }
            }
            Step::Editor(editor, Act::Type(edit)) => {
                let text = self.editors[editor].text.clone();
                if let Some((edited, item)) = self.edited(&text, edit) {
                    self.typed.touches(editor, &item);
                    let editor = &mut self.editors[editor];
                    editor.ever += &edited;
                    editor
                        .undo
                        .push(std::mem::replace(&mut editor.text, edited));
                }
            }
            Step::Editor(editor, Act::Save) => self.save(editor, None),
            Step::Editor(editor, Act::SaveSlowly(hundredths)) => {
                self.save(editor, Some(hundredths));
            }
            _ => {}
        }
    }

    /// What `edit` makes of a text, and of which item.
    fn edited(&mut self, text: &str, edit: Edit) -> Option<(String, String)> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let is_top = |line: &String| line.contains("- [") && !line.starts_with(' ');
        let line_of = |lines: &[String], number: usize| {
            lines
                .iter()
                .position(|line| line.contains(&format!("] T-{number}:")))
        };
        let rest = |lines: &[String], at: usize| {
            lines[at + 1..]
                .iter()
                .take_while(|line| line.starts_with("  "))
                .count()
        };
        let item = match edit {
            Edit::Prose(nth) => {
                let places: Vec<usize> = (0..lines.len())
                    .filter(|at| lines[*at].starts_with('#'))
                    .collect();
                let at = places.get(nth).copied().unwrap_or(lines.len());
                lines.splice(at..at, [String::new(), self.word(), String::new()]);
                String::new()
            }
            Edit::Item(nth) | Edit::Known(nth) => {
                let places: Vec<usize> = (0..lines.len())
                    .filter(|at| is_top(&lines[*at]) && lines[*at].contains("[ ]"))
                    .collect();
                let at = *places.get(nth % places.len().max(1))?;
                let word = self.word();
                let id = if let Edit::Known(_) = edit {
                    format!("T-{}: ", 100 + self.number)
                } else {
                    String::new()
                };
                lines.insert(at, format!("- [ ] {id}{word}"));
                id.trim_end_matches(": ").to_owned()
            }
            Edit::Text(number) => {
                let at = line_of(&lines, number)?;
                lines.insert(at + 1, format!("  {}", self.word()));
                format!("T-{number}")
            }
            Edit::Title(number) => {
                let at = line_of(&lines, number)?;
                let end = lines[at].find(" (").unwrap_or(lines[at].len());
                let word = self.word();
                lines[at].insert_str(end, &format!(" {word}"));
                format!("T-{number}")
            }
            Edit::GoOn(nth) | Edit::DeleteLine(nth) => {
                let places: Vec<usize> = (0..lines.len())
                    .filter(|at| lines[*at].contains("Typed ") && !lines[*at].contains("] T-"))
                    .collect();
                let at = *places.get(nth % places.len().max(1))?;
                let item = item_of(text, &lines[at]);
                if let Edit::GoOn(_) = edit {
                    let end = lines[at].find(" (").unwrap_or(lines[at].len());
                    let word = self.word();
                    lines[at].insert_str(end, &format!(" {word}"));
                } else if is_top(&lines[at]) {
                    lines.drain(at..=at + rest(&lines, at));
                } else {
                    lines.remove(at);
                }
                item
            }
            Edit::Tick(number) => {
                let at = line_of(&lines, number)?;
                lines[at] = lines[at].replacen("[ ]", "[x]", 1);
                format!("T-{number}")
            }
            Edit::Delete(number) => {
                let at = line_of(&lines, number)?;
                lines.drain(at..=at + rest(&lines, at));
                format!("T-{number}")
            }
            Edit::Move(number) => {
                let at = line_of(&lines, number)?;
                let block: Vec<String> = lines.drain(at..=at + rest(&lines, at)).collect();
                let to = lines[..at].iter().rposition(is_top)?;
                lines.splice(to..to, block);
                format!("T-{number}")
            }
        };
        Some((lines.join("\n") + "\n", item))
    }

    fn save(&mut self, by: usize, slowly: Option<usize>) {
        let path = self.path();
        let editor = &mut self.editors[by];
        let text = editor.text.clone();
        let deleted = words(&editor.ever)
            .into_iter()
            .filter(|word| !text.contains(word.as_str()))
            .collect();
        let save = Save {
            by,
            text: text.clone(),
            loaded: editor.loaded.clone(),
            deleted,
        };
        editor.clean.clone_from(&text);
        let name = format!(
            "{:?}{}",
            editor.way,
            if slowly.is_some() { " slowly" } else { "" }
        );
        let (half, rest) = text
            .as_bytes()
            .split_at(slowly.map_or(text.len(), |part| text.len() * part / 100));
        let way = editor.way;
        let mut file = match way {
            Way::ByRename => None,
            Way::WithBackup => {
                fs::rename(&path, path.with_extension("md~")).expect("it is there");
                // Nothing has been written to the new file when others look.
                (slowly != Some(0)).then(|| File::create(&path).expect("the folder is ours"))
            }
            Way::InPlace | Way::Following => Some(File::create(&path).expect("the folder is ours")),
        };
        if let Some(file) = &mut file {
            file.write_all(half).expect("there is room");
        }
        let rest = if file.is_some() {
            rest
        } else {
            text.as_bytes()
        };
        *self.saves.entry(name).or_default() += 1;
        self.writing = Some(Writing {
            file,
            rest: rest.to_owned(),
            save,
        });
        if way == Way::ByRename || slowly.is_none() {
            self.finish();
        }
    }

    fn finish(&mut self) {
        let Some(Writing { file, rest, save }) = self.writing.take() else {
            return;
        };
        let temp = self.path().with_extension("tmp");
        match file {
            Some(mut file) => file.write_all(&rest).expect("there is room"),
            None if self.editors[save.by].way == Way::ByRename => {
                fs::write(&temp, &rest)
                    .and_then(|()| fs::rename(&temp, self.path()))
                    .expect("the folder is ours");
            }
            // As vim does: what somebody has put there meanwhile is emptied.
            None => fs::write(self.path(), &rest).expect("the folder is ours"),
        }
        self.typed.saves(save);
    }

    fn holds(&self) -> Result<(), String> {
        self.typed.holds()?;
        let queue = self.typed.shown();
        let known = self.board.queues().expect("they can be listed").remove(0);
        let text = self.board.read(&known).expect("it can be read");
        let (document, _) = text.content.parse();
        let line = |task: &TaskId| {
            let start = format!("] {task}: ");
            queue
                .lines()
                .find(|line| line.contains(&start))
                .unwrap_or_default()
                .to_owned()
        };
        for (task, token) in &self.claims {
            let lease = fs::read_to_string(
                self.scratch
                    .work()
                    .join(format!(".tavern/leases/{task}.yaml")),
            );
            let is_held = lease.is_ok_and(|lease| lease.contains(&format!("token: {token}\n")));
            let (line, item) = (line(task), document.find(task));
            let is_taken = item.is_some_and(|item| {
                let state = document.task(item, task.clone()).state;
                let agent = state.holder().and_then(|holder| holder.agent.as_deref());
                state.status() == Status::InProgress && agent == Some("Frodo")
            });
            if !is_held || !line.contains("[ ]") || !is_taken {
                return Err(format!("{task} is held with {token}: {line}"));
            }
        }
        let is_open = |task: &&TaskId| line(task).contains("[ ]");
        self.ended.iter().find(is_open).map_or(Ok(()), |task| {
            Err(format!("{task} has ended: {}", line(task)))
        })
    }
}

#[test]
fn no_save_undoes_a_transition_or_loses_a_word() {
    let seed = number(
        "TAVERN_TEST_SEED",
        0x7361_7665 + slice().unwrap_or(0) as u64,
    );
    let cases = number("TAVERN_TEST_ROUNDS", share(256, 4).into());
    let config = ProptestConfig {
        cases: u32::try_from(cases).expect("it is not so many"),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let ways = vec(select(WAYS.to_vec()), 3);
    let counts = std::cell::RefCell::new((BTreeMap::<String, usize>::new(), 0));
    let result = runner.run(
        &(select(vec![LANES, LOOSE]), ways, steps()),
        |(text, ways, steps)| {
            let mut world = World::of(text, &ways);
            for (at, step) in steps.iter().enumerate() {
                world.step(step).map_err(|why| {
                    TestCaseError::fail(format!(
                        "{why}\nafter step {at}, {step:?}\n{}",
                        world.typed.shown()
                    ))
                })?;
            }
            world.finish();
            world.look().and_then(|()| world.holds()).map_err(|why| {
                TestCaseError::fail(format!("{why}\nat the end\n{}", world.typed.shown()))
            })?;
            State::of(&world.scratch).agrees();
            let (saves, excused) = &mut *counts.borrow_mut();
            world
                .saves
                .into_iter()
                .for_each(|(name, times)| *saves.entry(name).or_default() += times);
            *excused += world.typed.excused;
            Ok(())
        },
    );
    let (saves, excused) = counts.into_inner();
    println!(
        "seed {seed}: {saves:?}, {excused} words that a save lacked which can't be told from one that takes them out"
    );
    if let Err(error) = result {
        panic!("seed {seed}: {error}");
    }
}
