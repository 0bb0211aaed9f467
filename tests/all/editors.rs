//! People with editors of all kinds, several at one queue, beside claimers: all at once, through the real programs.
#![expect(clippy::print_stdout, reason = "whoever looks further is told how far")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tavern::board::event::Kind;
use tavern::board::task::Status;

use crate::dice::{Dice, number};
use crate::state::{State, temp_files};
use crate::support::{Scratch, wait_until};
use crate::typed::words;

/// How an editor saves, as `strace` shows it.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// nano, ed, VS Code: the file is emptied, and written anew.
    InPlace,
    /// gedit: a new file takes its name.
    ByRename,
    /// vim: a probe file, the old file gets another name, a new one is made and emptied, the backup goes.
    WithBackup,
    /// vim with `backupcopy=yes`: the old text is copied, the file is emptied and written anew.
    WithCopy,
    /// Emacs: the old file stays under another name.
    KeepingBackup,
}

const WAYS: [Way; 5] = [Way::InPlace, Way::ByRename, Way::WithBackup, Way::WithCopy, Way::KeepingBackup];

impl Way {
    /// With this pause somewhere in the middle; `at` tells where.
    fn save(self, path: &Path, text: &str, at: usize, pause: Duration) {
        let (temp, backup) = (path.with_extension("swp"), path.with_extension("md~"));
        // Somebody may have taken the file away or put it back in between.
        match self {
            Way::WithBackup | Way::KeepingBackup => {
                let probe = path.with_file_name("4913");
                File::create(&probe).and_then(|_| fs::remove_file(&probe)).expect("the folder is ours");
                let _ = fs::rename(path, &backup);
                if at.is_multiple_of(4) {
                    thread::sleep(pause);
                }
            }
            Way::WithCopy => drop(fs::copy(path, &backup)),
            Way::InPlace | Way::ByRename => {}
        }
        let target = if let Way::ByRename = self { &temp } else { path };
        let mut file =
            File::options().write(true).create(true).truncate(false).open(target).expect("the folder is ours");
        file.set_len(0).expect("it is ours");
        let (half, rest) = text.as_bytes().split_at(at);
        file.write_all(half).expect("there is room");
        thread::sleep(pause);
        file.write_all(rest).expect("there is room");
        drop(file);
        match self {
            Way::ByRename => fs::rename(&temp, path).expect("the folder is ours"),
            Way::WithBackup | Way::WithCopy => drop(fs::remove_file(&backup)),
            Way::InPlace | Way::KeepingBackup => {}
        }
    }
}

const ITEMS: u64 = 40;

/// A queue to which several people have turned.
struct Desk<'s> {
    scratch: &'s Scratch,
    name: &'static str,
    /// What has to be there in the end. Locked while somebody saves: two people who save in the same moment would overwrite
    /// each other without Tavern.
    typed: Mutex<BTreeSet<String>>,
    number: AtomicUsize,
}

/// A person's buffer.
struct Buffer {
    loaded: String,
    text: String,
    before: Option<String>,
    /// Words that were in it since.
    ever: BTreeSet<String>,
    /// Words that it had when it was last saved: what somebody has put in their place since is not typed again.
    saved: BTreeSet<String>,
}

impl Buffer {
    fn of(text: String) -> Buffer {
        Buffer { loaded: text.clone(), before: None, ever: words(&text), saved: BTreeSet::new(), text }
    }
}

impl Desk<'_> {
    fn path(&self) -> std::path::PathBuf {
        self.scratch.work().join(format!(".tavern/queues/{}.md", self.name))
    }

    fn word(&self) -> String {
        format!("Typed {}{}.", self.name, self.number.fetch_add(1, Ordering::Relaxed))
    }

    /// The file, once it is whole.
    fn load(&self) -> String {
        let mut text = String::new();
        wait_until("the queue is whole", || {
            text = fs::read_to_string(self.path()).unwrap_or_default();
            text.contains("## Completed")
        });
        text
    }

    fn types(&self, text: &str, dice: &mut Dice) -> String {
        let (word, number, name) = (self.word(), dice.below(ITEMS), self.name);
        let item = format!("- [ ] {name}-{number}:");
        match dice.below(4) {
            0 => text.replacen("\n## In Progress", &format!("- [ ] {word}\n\n## In Progress"), 1),
            1 => text.replacen("## Pending", &format!("{word}\n\n## Pending"), 1),
            2 => text.replacen(&item, &format!("  {word}\n{item}"), 1),
            _ => text.replacen(&format!("{item} item"), &format!("{item} item {word}"), 1),
        }
    }

    /// What was saved is in the log, or in Tavern's own copy of the queue.
    fn was_taken_over(&self, word: &str) -> bool {
        ["events", "seen"].iter().any(|folder| {
            let files = fs::read_dir(self.scratch.work().join(".git/tavern").join(folder)).expect("it is there");
            let texts = files.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
            texts.into_iter().any(|text| text.contains(word))
        })
    }

    /// One person edits so often, and loads what others did only now and then.
    fn edit(&self, rounds: u64, dice: &mut Dice) {
        let mut buffer = Buffer::of(self.load());
        for _ in 0..rounds {
            thread::sleep(Duration::from_millis(dice.below(200)));
            match dice.below(10) {
                0..4 => buffer = Buffer::of(self.load()),
                4 if buffer.before.is_some() => buffer.text = buffer.before.take().unwrap_or_default(),
                5 => {
                    self.append();
                    continue;
                }
                6 => {
                    self.replace();
                    continue;
                }
                _ => {}
            }
            buffer.before = Some(buffer.text.clone());
            buffer.text = self.types(&buffer.text, dice);
            self.save(&mut buffer, dice);
        }
    }

    /// `echo '- [ ] …' >>`
    fn append(&self) {
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        let word = self.word();
        self.run("printf -- '- [ ] %s\\n' \"$1\" >>\"$2\"", &word, "");
        typed.insert(word);
    }

    /// `sed -i` of a word that somebody has typed.
    fn replace(&self) {
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = words(&self.load());
        let Some(old) = typed.intersection(&newest).next().cloned() else { return };
        let word = self.word();
        self.run("sed -i \"s/$3/$1/\" \"$2\"", &word, &old.replace('.', "[.]"));
        typed.insert(word);
        typed.remove(&old);
    }

    /// A line of shell with a new word, the file, and the word in whose place it comes.
    fn run(&self, line: &str, word: &str, old: &str) {
        let path = self.path();
        let arguments = ["-c", line, "sh", word, &path.to_string_lossy(), old];
        self.scratch.command(Path::new("sh")).args(&arguments).run().succeeds();
        wait_until(&format!("{word} is known, {line}\n{}", self.load()), || self.was_taken_over(word));
    }

    fn save(&self, buffer: &mut Buffer, dice: &mut Dice) {
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = self.load();
        // A text that lacks words, and else reads like the newest, takes them out. Who was told that the file has changed loads it.
        let lacks = words(&newest).difference(&words(&buffer.text)).next().is_some();
        let of_tavern = |line: &&str| line.starts_with("- [") && !newest.contains(*line);
        let is_old = buffer.loaded.lines().filter(of_tavern).any(|line| {
            let title = line.split(" (").next().unwrap_or_default();
            buffer.text.contains(line) && newest.contains(&title[5..]) && title[5..].contains(": item")
        });
        if lacks && !is_old {
            *buffer = Buffer::of(newest);
            buffer.text = self.types(&buffer.text, dice);
        }
        buffer.ever.extend(words(&buffer.text));
        let way = WAYS[dice.below(WAYS.len() as u64) as usize];
        let pause = [0, 0, 0, 0, 2, 15, 30, 60, 200, 1000][dice.below(10) as usize];
        let mut at = dice.below(buffer.text.len() as u64) as usize;
        while !buffer.text.is_char_boundary(at) {
            at -= 1;
        }
        way.save(&self.path(), &buffer.text, at, Duration::from_millis(pause));
        let text = words(&buffer.text);
        let is_new = |word: &&String| !buffer.loaded.contains(word.as_str()) && !buffer.saved.contains(*word);
        let new: Vec<String> = text.iter().filter(is_new).cloned().collect();
        for word in &new {
            wait_until(&format!("{word} is known"), || self.was_taken_over(word));
        }
        // What an undo has taken out of a buffer is there still, or not.
        typed.retain(|word| text.contains(word) || !buffer.ever.contains(word));
        typed.extend(new);
        buffer.saved = text;
    }
}

/// None of them waits for another but to save, and no claimer for a slow editor.
#[test]
fn editors_and_eight_claimers_lose_nothing_of_each_other() {
    let rounds = number("TAVERN_TEST_ROUNDS", 20);
    let seed = number("TAVERN_TEST_SEED", 0x6861_6e64);
    let scratch = Scratch::initialized();
    fs::remove_file(scratch.work().join(crate::support::QUEUE)).expect("it is there");
    let desks = ["A", "B"].map(|name| {
        let items: String = (0..ITEMS).map(|number| format!("- [ ] {name}-{number}: item {number} ü\n")).collect();
        let text = format!("## Pending\n\n{items}\n## In Progress\n\n## Waiting\n\n## Completed\n");
        scratch.write(format!(".tavern/queues/{name}.md"), text);
        Desk { scratch: &scratch, name, typed: Mutex::default(), number: AtomicUsize::new(0) }
    });
    scratch.settle();
    let (left, longest) = (AtomicUsize::new(4), Mutex::new(Duration::ZERO));
    let claim = |agent: &str, dice: &mut Dice| {
        let begun = Instant::now();
        let ran = scratch.run("tavern-claim", &["--agent", agent, "--format", "json"]);
        let mut longest = longest.lock().unwrap_or_else(PoisonError::into_inner);
        *longest = begun.elapsed().max(*longest);
        drop(longest);
        // Nothing to do, or somebody else had the lock for long.
        assert!(matches!(ran.code, Some(0 | 3 | 75)), "{ran}");
        let Ok(claimed) = serde_json::from_str::<serde_json::Value>(&ran.stdout) else { return };
        let (task, token) = (claimed["id"].as_str().expect("a task"), claimed["lease"]["token"].to_string());
        let end: &[&str] = match dice.below(8) {
            0 => &["tavern-report", "--waiting", "which?"],
            1 => &["tavern-report", "--failed", "no time"],
            _ => &["tavern-release"],
        };
        // Where the machine does much else, a lock may be taken by others for ten seconds.
        let mut ended = None;
        while ended.is_none() {
            let told = scratch.run(end[0], &[&[task, "--token", &token], &end[1..]].concat());
            assert!(matches!(told.code, Some(0 | 1 | 8 | 75)), "it is released, failed or waits: {told}");
            assert!(told.code == Some(75) || !told.stdout.is_empty(), "{told}");
            ended = told.code.filter(|code| *code != 75);
        }
    };
    thread::scope(|scope| {
        for (desk, person) in desks.iter().zip(1..).flat_map(|(desk, number)| [(desk, number), (desk, number + 10)]) {
            let left = &left;
            scope.spawn(move || {
                // Also when it fails.
                struct Left<'l>(&'l AtomicUsize);
                impl Drop for Left<'_> {
                    fn drop(&mut self) {
                        self.0.fetch_sub(1, Ordering::Relaxed);
                    }
                }
                let _left = Left(left);
                desk.edit(rounds, &mut Dice(seed * person));
            });
        }
        for claimer in 0..8 {
            let (agent, left, claim) = (format!("Agent{claimer}"), &left, &claim);
            scope.spawn(move || {
                let mut dice = Dice(seed + claimer);
                while left.load(Ordering::Relaxed) > 0 {
                    claim(&agent, &mut dice);
                }
            });
        }
    });
    scratch.settle();
    let state = State::of(&scratch);
    for desk in &desks {
        let (text, name) = (&state.texts[desk.name], desk.name);
        for word in desk.typed.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let told = || state.log.iter().filter(|entry| format!("{entry:?}").contains(word.as_str()));
            let told = || told().map(|entry| format!("{entry:?}\n")).collect::<String>();
            assert_eq!(text.matches(word.as_str()).count(), 1, "seed {seed}: {word}\n{text}\n{}", told());
        }
        for number in 0..ITEMS {
            let id = format!("{name}-{number}");
            // What is given back or fails too often waits for a person.
            let is_back = matches!(state.status(&id), Some(Status::Pending | Status::Waiting | Status::Dead));
            let told = || state.log.iter().filter(|entry| entry.task.as_ref().is_some_and(|task| task.as_str() == id));
            let told = || told().map(|entry| format!("{entry:?}\n")).collect::<String>();
            let count = text.matches(&format!("{id}:")).count();
            assert!(is_back && count == 1, "seed {seed}: {id}\n{text}\n{}", told());
        }
        assert!(!text.contains("<<<<<<<"), "seed {seed}: {text}");
    }
    state.agrees();
    let ends = [Kind::Returned, Kind::Failed, Kind::Asked];
    let tokens = |kinds: &[Kind]| -> BTreeSet<u64> {
        state.log.iter().filter(|entry| kinds.contains(&entry.kind)).filter_map(|entry| entry.token).collect()
    };
    assert_eq!(tokens(&[Kind::Claimed]), tokens(&ends), "seed {seed}");
    println!("seed {seed}: {} claims, the longest took {:?}", tokens(&[Kind::Claimed]).len(), longest.lock());
    assert_eq!(temp_files(&scratch), Vec::<std::path::PathBuf>::new());
}
