//! A board as it stands on disk, read with the library and without a lock, to be compared and checked as a whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tavern_core::key::Key;
use tavern_core::states::StateKeys;
use tavern_core::task::{Status, Task, TaskId};
use tavern_store::config::Config;
use tavern_store::{Board, ClaimRequest, Entry, no_process, tail_log};

use crate::support::Scratch;

/// What a board's files say.
#[derive(Debug)]
pub struct State {
    /// The text of each queue, by name.
    pub texts: BTreeMap<String, String>,
    /// Each item with an ID: its status and its exact text. A second one of the same ID has `#2` behind it.
    pub items: BTreeMap<String, (Status, String)>,
    /// All that each of them is, with what is remembered apart from its text.
    pub tasks: BTreeMap<String, Task>,
    /// The token of each lease, by task.
    pub leases: BTreeMap<String, u64>,
    pub log: Vec<Entry>,
}

impl State {
    pub fn of(scratch: &Scratch) -> State {
        let board = board(scratch);
        let mut state = State {
            texts: BTreeMap::new(),
            items: BTreeMap::new(),
            tasks: BTreeMap::new(),
            leases: BTreeMap::new(),
            log: Vec::new(),
        };
        for queue in board.queues().expect("the queues can be listed") {
            let text = board.read(&queue).expect("the queue can be read");
            let (document, _) = text.content.parse();
            for item in document.items() {
                let Some(id) = &item.id else { continue };
                let mut name = id.to_string();
                if state.items.contains_key(&name) {
                    name.push_str("#2");
                }
                let block = document.block(item).to_owned();
                state.items.insert(name.clone(), (item.status, block));
                let task = document.task_as(item, id.clone(), item.status);
                state.tasks.insert(name, task);
            }
            state.texts.insert(queue.id, text.content.into_string());
        }
        let leases = board.leases().expect("the leases can be listed");
        state.leases = leases
            .into_iter()
            .map(|lease| (lease.task.to_string(), lease.token))
            .collect();
        state.log = tail_log(&board, 0).expect("the log can be read");
        state
    }

    /// The status of an item, if it is there.
    pub fn status(&self, id: &str) -> Option<Status> {
        self.items.get(id).map(|(status, _)| *status)
    }

    /// All that an item is.
    pub fn task(&self, name: &str) -> &Task {
        &self.tasks[name]
    }

    /// Queue documents, leases and log say the same.
    #[track_caller]
    pub fn agrees(&self) {
        let twice: Vec<&String> = self.items.keys().filter(|id| id.contains('#')).collect();
        assert!(
            twice.is_empty(),
            "items that are there twice: {twice:?}\n{self:#?}"
        );
        let seqs: Vec<u64> = self.log.iter().map(|entry| entry.seq).collect();
        let first = seqs.first().copied().unwrap_or(1);
        let expected: Vec<u64> = (first..).take(seqs.len()).collect();
        assert_eq!(
            seqs, expected,
            "the log's numbers have no gap and none is there twice"
        );
        let mut tokens = BTreeMap::new();
        for entry in &self.log {
            let Some(task) = &entry.task else { continue };
            match &entry.lease {
                Some(tavern_store::LeaseEntry::Put(lease)) => {
                    tokens.insert(task.to_string(), lease.token);
                }
                Some(tavern_store::LeaseEntry::Drop) => {
                    tokens.remove(task.as_str());
                }
                None => {}
            }
            let is_last = |of: &dyn Fn(&Entry) -> bool| {
                let later = self
                    .log
                    .iter()
                    .filter(|later| later.seq > entry.seq && later.task == entry.task);
                !later.into_iter().any(of)
            };
            // A person took it out.
            let mut changes = self
                .log
                .iter()
                .rev()
                .filter(|last| last.change.is_of_item());
            if changes
                .find(|last| last.task == entry.task)
                .is_some_and(|last| last.change.after().is_none())
            {
                continue;
            }
            if let Some(to) = entry
                .to()
                .filter(|_| is_last(&|later| later.to().is_some()))
            {
                assert_eq!(
                    self.status(task.as_str()),
                    Some(to),
                    "{task} after event {}\n{self:#?}",
                    entry.seq
                );
            }
            if let Some(after) = entry
                .change
                .after()
                .filter(|_| is_last(&|later| later.change.after().is_some()))
            {
                let block = &self
                    .items
                    .get(task.as_str())
                    .expect("its status was there")
                    .1;
                assert_eq!(
                    block.trim_end(),
                    after.trim_end(),
                    "{task} after event {}",
                    entry.seq
                );
            }
        }
        assert_eq!(
            self.leases, tokens,
            "leases on disk, and by the log\n{self:#?}"
        );
        self.remembers();
    }

    /// How often an item was tried, came back or was rejected is what the log's newest word of it says.
    #[track_caller]
    fn remembers(&self) {
        let mut told = BTreeMap::new();
        for entry in &self.log {
            told.extend(entry.task.as_ref().zip(entry.state.as_ref()));
        }
        let counts = |keys: &StateKeys| {
            let is_count = |key: &Key| matches!(key, Key::Attempt | Key::Returns | Key::Rounds);
            let mut counts: Vec<_> = keys.fields().filter(|(key, _)| is_count(key)).collect();
            counts.sort_by_key(|(key, _)| key.as_str());
            counts
        };
        // Of what is told to be as it was at first the text may say more.
        for (id, state) in told.into_iter().filter(|(_, state)| !state.is_empty()) {
            if let Some(task) = self.tasks.get(id.as_str()) {
                let known = StateKeys::of(&task.state);
                assert_eq!(counts(&known), counts(state), "{id}\n{self:#?}");
            }
        }
    }
}

pub fn board(scratch: &Scratch) -> Board {
    Board::open(&scratch.work()).expect("there is a board")
}

/// A claimer of any item in its turn, with a lease of so many seconds.
pub fn seek(agent: &str, role: &str, seconds: u32) -> ClaimRequest {
    ClaimRequest {
        roles: Config::default().known_roles(),
        is_chat: false,
        agent: agent.into(),
        role: role.into(),
        queues: None,
        item: None,
        seconds,
        holder: no_process(),
        is_for_program: true,
        runner: None,
    }
}

pub fn id(text: &str) -> TaskId {
    text.parse().expect("it is an ID")
}

/// What a crash left in the places where files are replaced: the board's folder without its worktrees, and the root.
pub fn temp_files(scratch: &Scratch) -> Vec<PathBuf> {
    let is_ours = |path: &Path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(".tavern-"))
    };
    let worktrees = scratch.work().join(".tavern/worktrees");
    let below = walkdir::WalkDir::new(scratch.work().join(".tavern"))
        .into_iter()
        .filter_entry(|entry| {
            entry.depth() < 2
                || entry
                    .path()
                    .parent()
                    .is_none_or(|up| up != worktrees.as_path())
        })
        .filter_map(Result::ok)
        .map(walkdir::DirEntry::into_path);
    let beside = |folder: PathBuf| {
        std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
    };
    let admins = beside(scratch.work().join(".git/worktrees"))
        .filter(|path| path.is_dir())
        .flat_map(beside);
    let is_salvage = |path: &Path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("tavern-salvage-"))
    };
    below
        .chain(beside(scratch.work()))
        .chain(beside(worktrees.clone()))
        .filter(|path| is_ours(path))
        .filter(|path| path != &scratch.work().join(".tavern"))
        .chain(admins.filter(|path| is_salvage(path)))
        .collect()
}
