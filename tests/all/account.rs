//! What people typed and what programs were told, and whether all of it stands in the end: plain search in plain files, and
//! none of Tavern's code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{ARCHIVE, QUEUE, Scratch};

/// How an agent gave an item back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done,
    Failed,
    Asked,
    Released,
}

impl End {
    /// The lanes in which the item stands since.
    fn lanes(self) -> &'static [&'static str] {
        match self {
            End::Done => &["Completed", "Archive of main"],
            // One that fails too often waits for a person.
            End::Failed => &["Pending", "Dead Letter"],
            End::Asked | End::Released => &["Pending"],
        }
    }

    /// The event that the log has of it.
    fn kind(self) -> &'static str {
        match self {
            End::Done => "submitted",
            End::Failed => "failed",
            End::Asked => "asked",
            End::Released => "returned",
        }
    }
}

/// All that must stand.
#[derive(Debug, Default)]
pub struct Account {
    /// Each is there once.
    pub words: BTreeSet<String>,
    /// Words that somebody has undone or thrown away, and that others may have: at most once.
    pub loose: BTreeSet<String>,
    /// Words of which somebody has corrected the end: as it was and as it is both may stand, where it can't be told what was loaded.
    pub corrected: BTreeSet<String>,
    /// Each once.
    pub items: BTreeSet<String>,
    /// Of each token its item, and what became of that.
    pub ends: BTreeMap<u64, (String, End)>,
    /// git has put texts there.
    pub is_in_git: bool,
}

impl Account {
    /// The words that stand twice, as they were and corrected.
    pub fn twice(&self, scratch: &Scratch) -> usize {
        let all = Account::all(scratch);
        self.corrected
            .iter()
            .filter(|word| all.matches(word.as_str()).count() > 1)
            .count()
    }

    fn all(scratch: &Scratch) -> String {
        let archive = fs::read_to_string(scratch.work().join(ARCHIVE)).unwrap_or_default();
        format!("{}\n{archive}", scratch.queue())
    }

    /// What is not as it must be.
    pub fn faults(&self, scratch: &Scratch) -> Vec<String> {
        let all = Account::all(scratch);
        let mut faults = Vec::new();
        // A mark repeats what both versions of a title have.
        let (marks, said): (Vec<&str>, Vec<&str>) = all
            .lines()
            .partition(|line| line.contains("<!-- conflict: title"));
        let [marks, said] = [marks, said].map(|lines| lines.join("\n"));
        let times = |word: &str| match said.matches(word).count() {
            0 => usize::from(marks.contains(word)),
            times => times,
        };
        // What contradicts stands from each side as that has it, also where some of it is what another has.
        let repeated = |word: &str| {
            let texts = said.split("<!-- conflict: one side says -->").skip(1);
            let texts = texts.map(|text| {
                text.split("<!-- conflict: end -->")
                    .next()
                    .unwrap_or_default()
            });
            let versions = texts.map(|text| {
                let versions = text.split("<!-- conflict: the other side says -->");
                versions
                    .filter(|version| version.contains(word))
                    .count()
                    .saturating_sub(1)
            });
            versions.sum::<usize>()
        };
        for (words, least) in [(&self.words, 1), (&self.loose, 0)] {
            let times = words.iter().map(|word| (word, times(word)));
            let most =
                |word: &String| if self.corrected.contains(word) { 2 } else { 1 } + repeated(word);
            let wrong = times.filter(|(word, times)| !(least..=most(word)).contains(times));
            faults.extend(wrong.map(|(word, times)| format!("{word} is there {times} times")));
        }
        let mut lanes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut lane = "";
        for line in all.lines() {
            lane = line
                .strip_prefix("## ")
                .or(line.strip_prefix("# "))
                .unwrap_or(lane);
            let is_item = line.starts_with("- [ ] ") || line.starts_with("- [x] ");
            if let Some((id, _)) = is_item.then(|| line[6..].split_once(": ")).flatten() {
                lanes.entry(id).or_default().push(lane);
            }
        }
        let told: BTreeMap<&str, End> = self
            .ends
            .values()
            .map(|(item, end)| (item.as_str(), *end))
            .collect();
        let typed = as_typed(scratch);
        // It has got an ID on each of two branches, which a merge has brought together: one stands.
        let has_another = |item: &str| {
            typed.contains_key(item)
                && lanes
                    .keys()
                    .any(|other| *other != item && typed.get(*other) == typed.get(item))
        };
        // Whoever takes back what they have typed takes the item out, if nobody holds it.
        let is_undone = |item: &str| {
            let typed = typed.get(item).map_or("", String::as_str);
            self.loose.iter().any(|word| typed.contains(word.as_str()))
        };
        for item in self
            .items
            .iter()
            .map(String::as_str)
            .chain(told.keys().copied())
        {
            let stands = lanes.get(item).map_or(&[][..], Vec::as_slice);
            if stands.is_empty() && (has_another(item) || is_undone(item)) {
                continue;
            }
            let is_right =
                |lane: &&str| told.get(item).is_none_or(|end| end.lanes().contains(lane));
            if stands.len() != 1 || !stands.iter().all(is_right) {
                faults.push(format!(
                    "{item}, {:?}, stands in {stands:?}",
                    told.get(item)
                ));
            }
        }
        faults.extend(self.faults_of_log(scratch));
        faults.extend(
            ["<<<<<<<", ">>>>>>>"]
                .iter()
                .filter(|mark| all.contains(**mark))
                .map(|_| "git's markers".to_owned()),
        );
        let leases = fs::read_dir(scratch.work().join(".git/tavern/leases"))
            .into_iter()
            .flatten()
            .flatten();
        faults.extend(leases.map(|lease| format!("a lease is left: {}", lease.path().display())));
        let seen = fs::read_dir(scratch.work().join(".git/tavern/seen"))
            .into_iter()
            .flatten()
            .flatten();
        // git reads of a file only so many bytes as it had when it looked: what it stashes while a program writes may be cut.
        let is_gits =
            |path: &Path| self.is_in_git && fs::read(path).is_ok_and(|text| !text.ends_with(b"\n"));
        let aside = seen.filter(|file| {
            file.file_name().to_string_lossy().ends_with(".aside") && !is_gits(&file.path())
        });
        faults.extend(aside.map(|file| format!("a save was set aside: {}", file.path().display())));
        faults
    }

    /// It has each claim and each end once, and its numbers have no gap.
    fn faults_of_log(&self, scratch: &Scratch) -> Vec<String> {
        let log = log(scratch);
        let mut faults = Vec::new();
        let seqs = log.iter().filter_map(|event| event["seq"].as_u64());
        if !seqs.eq((1..).take(log.len())) {
            faults.push("the log's numbers have a gap".to_owned());
        }
        let of = |token: &u64, kinds: &[&str]| {
            let is_it = |event: &&Value| {
                event["token"].as_u64() == Some(*token)
                    && kinds.iter().any(|kind| event["kind"] == *kind)
            };
            log.iter().filter(is_it).count()
        };
        for (token, (item, end)) in &self.ends {
            let all = [
                "submitted",
                "failed",
                "asked",
                "returned",
                "reaped",
                "withdrawn",
            ];
            if of(token, &["claimed"]) != 1 || of(token, &[end.kind()]) != 1 || of(token, &all) != 1
            {
                faults.push(format!(
                    "the log does not tell once that {item} was taken with {token} and {end:?}"
                ));
            }
        }
        let claims = log
            .iter()
            .filter(|event| event["kind"] == "claimed")
            .filter_map(|event| event["token"].as_u64());
        faults.extend(
            claims
                .filter(|token| !self.ends.contains_key(token))
                .map(|token| format!("nobody was told of claim {token}")),
        );
        faults
    }
}

/// The items that got their IDs from Tavern, and what they were before.
fn as_typed(scratch: &Scratch) -> BTreeMap<String, String> {
    let mut typed = BTreeMap::new();
    for event in log(scratch) {
        let (Some(task), Some(before)) = (event["task"].as_str(), event["before"].as_str()) else {
            continue;
        };
        if !before.contains(&format!("{task}: ")) {
            typed
                .entry(task.to_owned())
                .or_insert_with(|| before.to_owned());
        }
    }
    typed
}

/// All events, the oldest first.
pub fn log(scratch: &Scratch) -> Vec<Value> {
    let event = |line| serde_json::from_str(line).expect("a line of the log is JSON");
    log_text(scratch).lines().map(event).collect()
}

pub fn log_text(scratch: &Scratch) -> String {
    let days = fs::read_dir(scratch.work().join(".git/tavern/events"))
        .into_iter()
        .flatten()
        .flatten();
    let mut days: Vec<_> = days.map(|day| day.path()).collect();
    days.sort();
    days.iter()
        .map(|day| fs::read_to_string(day).expect("it is text"))
        .collect()
}

/// Tavern has it in the queue as it last saw or wrote it, or the log tells of it.
pub fn is_known(scratch: &Scratch, word: &str) -> bool {
    seen(scratch).contains(word) || log_text(scratch).contains(word)
}

/// The queue as Tavern last saw or wrote it.
pub fn seen(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.work().join(".git/tavern/seen/main.md")).unwrap_or_default()
}

/// Whether a commit that git still knows has it.
pub fn is_committed(scratch: &Scratch, word: &str) -> bool {
    !scratch
        .git(&[
            "log",
            "--all",
            "--format=%h",
            "-S",
            word,
            "--",
            QUEUE,
            ARCHIVE,
        ])
        .is_empty()
}
