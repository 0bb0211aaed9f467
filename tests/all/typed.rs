//! What people typed, and whether it can still be found: plain search in plain files, and none of Tavern's code.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Of a program that somebody told what to do, and not of an editor.
pub const NOBODY: usize = usize::MAX;

/// So the log tells of a save that took back the one before it: what that had typed stands in the kept texts alone.
const TAKEN_BACK: &str = "the text before the last save was restored";

/// And of what an old text lacks.
const STAYS: &str = "stays: ";

/// A queue as somebody saved it, before Tavern has looked at it.
#[derive(Clone, Debug)]
pub struct Save {
    pub by: usize,
    pub text: String,
    /// What it was made of.
    pub loaded: String,
    /// Words that were in its buffer, and were taken out there.
    pub deleted: BTreeSet<String>,
}

/// Everything that was typed into one queue.
#[derive(Debug)]
pub struct Typed {
    queue: PathBuf,
    /// Folders in which a word may be found too: the archive, what was set aside, the log.
    archive: PathBuf,
    seen: PathBuf,
    log: PathBuf,
    /// The queue as it was when Tavern last looked.
    pub newest: String,
    saved: Option<Save>,
    words: BTreeSet<String>,
    /// Words that somebody took out: who still has them in a buffer does not bring them back.
    taken_out: BTreeSet<String>,
    /// What Tavern was told while somebody was writing, who can't have known of it.
    told: BTreeSet<String>,
    /// Lines that Tavern, and nobody else, has put others in the place of.
    replaced: HashSet<String>,
    /// Who typed in which item; under `""` what was typed between items.
    touched: BTreeMap<String, BTreeSet<usize>>,
    /// Words that a save lacks which can't be told from one that takes them out.
    pub excused: usize,
}

impl Typed {
    /// The words in `text` are looked for from the beginning.
    pub fn of(folder: &Path, private: &Path, text: &str) -> Typed {
        Typed {
            queue: folder.join("queues/main.md"),
            archive: folder.join("queues/archive/main.md"),
            seen: private.join("seen"),
            log: private.join("events"),
            newest: text.to_owned(),
            saved: None,
            words: words(text),
            taken_out: BTreeSet::new(),
            told: BTreeSet::new(),
            replaced: HashSet::new(),
            touched: BTreeMap::new(),
            excused: 0,
        }
    }

    /// Somebody types in an item, or between items (`""`).
    pub fn touches(&mut self, by: usize, item: &str) {
        self.touched.entry(item.to_owned()).or_default().insert(by);
    }

    /// Saved over what nobody may have looked at yet.
    pub fn saves(&mut self, save: Save) {
        // Whoever has loaded the one before has not got what that took out.
        for word in self
            .saved
            .take()
            .into_iter()
            .flat_map(|before| before.deleted)
        {
            self.words.remove(&word);
            self.taken_out.insert(word);
        }
        self.saved = Some(save);
    }

    /// A program changed the file, with what was saved last in it.
    pub fn goes_on_with(&mut self, text: String, deleted: Option<String>) {
        let loaded = self.newest.clone();
        let save = self.saved.get_or_insert(Save {
            by: NOBODY,
            text: String::new(),
            loaded,
            deleted: BTreeSet::new(),
        });
        save.by = NOBODY;
        save.text = text;
        save.deleted.extend(deleted);
    }

    /// The last of them is still to be looked at.
    pub fn is_saved(&self) -> bool {
        self.saved.is_some()
    }

    /// Tavern has done something that no save came in between; words that it was told are `added`.
    pub fn was_done(&mut self, added: &[String]) {
        let now = self.shown();
        self.goes_on(now);
        self.words.extend(added.iter().cloned());
    }

    /// The same while somebody is writing, who can't have known of it: the file is theirs.
    pub fn was_done_meanwhile(&mut self, added: &[String]) {
        let seen = fs::read_to_string(self.seen.join("main.md")).unwrap_or_default();
        self.goes_on(
            seen.split_once('\n')
                .map_or_else(String::new, |(_, text)| text.to_owned()),
        );
        self.told.extend(added.iter().cloned());
    }

    fn goes_on(&mut self, now: String) {
        let (before, after) = (lines(&self.newest), lines(&now));
        self.replaced
            .extend(before.difference(&after).map(|line| (*line).to_owned()));
        self.newest = now;
    }

    /// Tavern has taken over what was saved.
    pub fn was_looked_at(&mut self) -> Result<(), String> {
        let now = self.shown();
        let Some(save) = self.saved.take() else {
            let is_same = now == self.newest;
            return if is_same {
                Ok(())
            } else {
                Err(format!("nobody saved\n{}", self.newest))
            };
        };
        let (text, was) = (lines(&save.text), lines(&self.newest));
        let loaded = lines(&save.loaded);
        // By what Tavern did it is known for certain that the newest was not loaded.
        let is_old = text.iter().any(|line| {
            self.replaced.contains(*line) && !was.contains(line) && loaded.contains(line)
        });
        let lacks = |word: &&String| !save.text.contains(word.as_str());
        let lacking: Vec<String> = self.words.iter().filter(lacks).cloned().collect();
        for word in lacking {
            let is_taken_out = save.deleted.contains(&word);
            if is_taken_out || !is_old {
                self.words.remove(&word);
                self.taken_out.insert(word.clone());
                self.touches(save.by, &item_of(&self.newest.clone(), &word));
            }
            if !is_taken_out && !is_old {
                self.excused += 1;
                if !now.contains(&word) && !self.is_in_folder(&self.log, &word) {
                    return Err(format!("{word} is not even in the log"));
                }
            }
        }
        let typed = words(&save.text)
            .difference(&words(&save.loaded))
            .cloned()
            .collect::<BTreeSet<_>>();
        self.words
            .extend(typed.difference(&self.taken_out).cloned());
        self.words.append(&mut self.told);
        // What was added last may be what the text from before it lacks.
        let is_told = text.is_subset(&lines(&now)) && self.is_in_folder(&self.log, STAYS);
        if save.loaded == self.newest && save.by != NOBODY && save.text != now && !is_told {
            return Err(format!(
                "a save on the newest was not taken byte for byte:\n{}",
                save.text
            ));
        }
        self.newest = now;
        Ok(())
    }

    /// Each word is there, once.
    pub fn holds(&self) -> Result<(), String> {
        let (queue, archive) = (
            self.shown(),
            fs::read_to_string(&self.archive).unwrap_or_default(),
        );
        for word in &self.words {
            let times =
                queue.matches(word.as_str()).count() + archive.matches(word.as_str()).count();
            let is_there = times == 1
                || (times == 0
                    && (self.is_in_folder(&self.seen, word) || self.is_taken_back(word)));
            let is_in_both = times > 1 && queue.contains("<!-- conflict:");
            if !(is_there || is_in_both) {
                return Err(format!("{word} is there {times} times"));
            }
        }
        let lines: Vec<&str> = queue.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            if line.starts_with("<<<<<<<") || line.starts_with(">>>>>>>") {
                return Err("git's markers".into());
            }
            if line.contains("<!-- conflict:") {
                let item = if line.starts_with(' ') {
                    item_above(&lines[..at])
                } else {
                    String::new()
                };
                // What had no ID was typed between items.
                let by: BTreeSet<&usize> = [item.as_str(), ""]
                    .iter()
                    .filter_map(|item| self.touched.get(*item))
                    .flatten()
                    .collect();
                if by.len() < 2 {
                    return Err(format!("a conflict in `{item}`, which only {by:?} touched"));
                }
            }
        }
        let ids: Vec<String> = lines.iter().filter_map(|line| id(line)).collect();
        let twice = ids
            .iter()
            .find(|id| ids.iter().filter(|other| other == id).count() > 1);
        twice.map_or(Ok(()), |id| Err(format!("{id} is there twice")))
    }

    /// The queue as it is, without whoever is still writing it.
    pub fn shown(&self) -> String {
        fs::read_to_string(&self.queue).unwrap_or_default()
    }

    fn is_in_folder(&self, folder: &Path, word: &str) -> bool {
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = files.map(|file| file.path());
        let mut texts = paths
            .filter(|path| *path != self.kept_texts())
            .filter_map(|path| fs::read(path).ok());
        texts.any(|text| String::from_utf8_lossy(&text).contains(word))
    }

    /// A save was taken back, of which the log tells, and the word can still be found.
    fn is_taken_back(&self, word: &str) -> bool {
        self.is_in_folder(&self.log, TAKEN_BACK)
            && texts(&fs::read_to_string(self.kept_texts()).unwrap_or_default())
                .iter()
                .any(|text| text.contains(word))
    }

    fn kept_texts(&self) -> PathBuf {
        self.seen.join("main.texts")
    }
}

/// The texts that are kept, each as what is another in it than in one before.
fn texts(kept: &str) -> Vec<String> {
    let mut texts: Vec<(Value, String)> = Vec::new();
    for line in kept.lines().filter(|line| !line.is_empty()) {
        let record: Value = serde_json::from_str(line).expect("no crash has torn it");
        let bytes = |key: &str| record[key].as_u64().unwrap_or(0) as usize;
        let other = texts
            .iter()
            .rev()
            .find(|(digest, _)| *digest == record["from"])
            .map_or("", |(_, text)| text.as_str());
        let text = [
            &other[..bytes("start")],
            record["text"].as_str().expect("it has one"),
            &other[other.len() - bytes("end")..],
        ];
        texts.push((record["digest"].clone(), text.concat()));
    }
    texts.into_iter().map(|(_, text)| text).collect()
}

/// `Typed 7.` and the like.
pub fn words(text: &str) -> BTreeSet<String> {
    let found = text.match_indices("Typed ").filter_map(|(at, _)| {
        let end = text[at..].find('.')?;
        Some(text[at..=at + end].to_owned())
    });
    found.collect()
}

/// The ID of the item whose first line this is.
pub fn id(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("] ")?;
    let (id, _) = rest.split_once(": ")?;
    id.starts_with("T-").then(|| id.to_owned())
}

/// The item in whose lines a part of the text stands.
pub fn item_of(text: &str, part: &str) -> String {
    let at = text.find(part).unwrap_or_default();
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let lines: Vec<&str> = text[..end].lines().collect();
    let from = lines.iter().rposition(|line| line.is_empty()).unwrap_or(0);
    item_above(&lines[from..])
}

/// The item under whose first line something stands; `""` between items.
fn item_above(lines: &[&str]) -> String {
    let is_first = |line: &&&str| line.contains("[ ] ") || line.contains("[x] ");
    lines
        .iter()
        .rev()
        .find(is_first)
        .and_then(|line| id(line))
        .unwrap_or_default()
}

fn lines(text: &str) -> HashSet<&str> {
    text.lines().collect()
}
