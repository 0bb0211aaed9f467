//! Earlier texts of a queue's file, both Tavern's and external saves, each stored as a difference from a recent one.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::path::PathBuf;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::atomic_write::replace_own;
use super::baseline_files::{digest, path};
use super::board::Board;
use super::entry::Entry;
use super::error::Error;
use super::queue::Queue;
use tavern_core::document::open;
use tavern_core::nearest::Nearness;
use tavern_core::task::{TaskId, Timestamp};
use tavern_sys::clock;
use tavern_sys::files;

/// At least this many of Tavern's texts are kept, and this many saves.
const MOST: usize = 200;

/// Saves are kept this long while there is space, however many texts follow.
const PINNED: TimeDelta = TimeDelta::days(30);

/// A text is stored relative to one of this many before it.
const NEAR: usize = 4;

/// The file is compacted beyond this many bytes, plus a multiple of the text's length.
const LONGEST: u64 = 1 << 20;

/// The facts about an external save when it was merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SaveMark {
    /// The digest of its first merge base.
    pub base: u64,
    /// The apparent writer.
    pub writer: Writer,
    /// The first event of its merge; if that is not logged, the merge never happened.
    pub event: u64,
}

/// The traces of a program that saves a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Writer {
    /// The file was overwritten rather than replaced.
    pub in_place: bool,
    pub user: u32,
    pub mode: u32,
}

/// A line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    digest: u64,
    time: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    save: Option<SaveMark>,
    /// The digest of the text it is relative to; `None`: it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    /// The numbers of bytes at the beginning and the end that are shared with that text.
    start: usize,
    end: usize,
    text: String,
    /// To be ignored, and dropped by the next compaction.
    #[serde(skip)]
    is_void: bool,
}

/// An earlier text of the file.
#[derive(Clone, Debug)]
pub(super) struct KeptText {
    pub digest: u64,
    pub time: Timestamp,
    pub save: Option<SaveMark>,
    pub text: String,
}

/// The texts of a queue, oldest first.
pub(super) struct Texts(Vec<Record>);

/// The nearest text to a save.
pub(super) struct Nearest {
    pub text: String,
    pub digest: u64,
    pub distance: u64,
}

impl Texts {
    pub(super) fn of(board: &Board, queue: &Queue) -> Texts {
        let file = files::read(texts_path(board, queue)).unwrap_or_default();
        // A line torn by a crash is skipped.
        let lines = file.split(|byte| *byte == b'\n');
        Texts(
            lines
                .filter_map(|line| serde_json::from_slice(line).ok())
                .collect(),
        )
    }

    /// Returns true if the file had this text before.
    pub(super) fn has(&self, text: &str) -> bool {
        let wanted = digest(text);
        self.0.iter().any(|record| record.digest == wanted)
    }

    /// Excludes saves if the log has lost their merge. The queue shows all events up to `shown`; `later` are those
    /// after it.
    pub(super) fn retain_logged(&mut self, shown: u64, later: &[Entry]) {
        let is_logged = |record: &Record| {
            let is_its = |entry: &Entry| {
                Some(entry.seq) == record.save.as_ref().map(|save| save.event)
                    && entry.time == record.time
            };
            let is_shown = |save: &SaveMark| save.event <= shown;
            record.save.as_ref().is_none_or(is_shown) || later.iter().any(is_its)
        };
        self.0.iter_mut().for_each(|record| {
            record.is_void = !is_logged(record);
        });
    }

    /// Returns the text that differs from `saved` in the fewest lines; of several, the newest. `newest` is the current
    /// text.
    pub(super) fn nearest(&self, newest: &str, saved: &str) -> Nearest {
        let mut nearness = Nearness::of(saved);
        let mut best: Option<Nearest> = None;
        self.each(&mut nearness, |nearness, record| {
            let is_nearer = best
                .as_ref()
                .is_none_or(|best| nearness.distance() <= best.distance);
            if is_nearer {
                best = Some(Nearest {
                    text: nearness.other().to_owned(),
                    digest: record.digest,
                    distance: nearness.distance(),
                });
            }
        });
        turn(&mut nearness, newest);
        let newest = Nearest {
            text: newest.to_owned(),
            digest: digest(newest),
            distance: nearness.distance(),
        };
        match best {
            Some(best) if best.distance < newest.distance => best,
            _ => newest,
        }
    }

    /// Returns the newest text that satisfies `is_it`.
    pub(super) fn find(&self, is_it: &dyn Fn(&KeptText) -> bool) -> Option<KeptText> {
        let mut found = None;
        self.each(&mut Nearness::of(""), |nearness, record| {
            let text = KeptText {
                digest: record.digest,
                time: record.time,
                save: record.save.clone(),
                text: nearness.other().to_owned(),
            };
            if is_it(&text) {
                found = Some(text);
            }
        });
        found
    }

    /// Calls `look` with each text set in `nearness`.
    fn each(&self, nearness: &mut Nearness, mut look: impl FnMut(&Nearness, &Record)) {
        let mut near: VecDeque<(u64, String)> = VecDeque::new();
        for record in &self.0 {
            match record.from {
                None => turn(nearness, &record.text),
                // The text it is relative to may have been torn by a crash.
                Some(from) => {
                    let Some((_, other)) = near.iter().rev().find(|(digest, _)| *digest == from)
                    else {
                        continue;
                    };
                    turn(nearness, other);
                    let span = record.start..nearness.other().len() - record.end;
                    nearness.replace(span, &record.text);
                }
            }
            if !record.is_void {
                look(nearness, record);
            }
            if near.len() == NEAR {
                near.pop_front();
            }
            near.push_back((record.digest, nearness.other().to_owned()));
        }
    }
}

/// An earlier text of a queue's file.
#[derive(Clone, Debug)]
pub struct PastText {
    /// The name by which it is requested.
    pub name: String,
    /// When it was written or merged.
    pub time: Timestamp,
    /// Whether it was saved externally.
    pub is_save: bool,
    pub lines: usize,
    /// The numbers of lines added and removed relative to the text before it.
    pub added: usize,
    pub removed: usize,
}

impl Board {
    /// Returns the stored texts of the queue's file, newest first.
    pub fn past_texts(&self, queue: &Queue) -> Vec<PastText> {
        let (mut all, mut before) = (Vec::new(), String::new());
        Texts::of(self, queue).each(&mut Nearness::of(""), |nearness, record| {
            let text = nearness.other();
            if text == before && !all.is_empty() {
                return;
            }
            let [added, removed] = [[text, &before], [&before, text]].map(lacking);
            all.push(PastText {
                name: name_of(record.digest),
                time: record.time,
                is_save: record.save.is_some(),
                lines: text.lines().count(),
                added,
                removed,
            });
            text.clone_into(&mut before);
        });
        all.reverse();
        all
    }

    /// Returns the newest of these texts with a name that begins with `name`.
    pub fn past_text(&self, queue: &Queue, name: &str) -> Option<String> {
        let is_it = |kept: &KeptText| !name.is_empty() && name_of(kept.digest).starts_with(name);
        Some(Texts::of(self, queue).find(&is_it)?.text)
    }

    /// Returns the title of the item with this ID, from the newest text in which the ID was unique.
    pub fn title_by(&self, queue: &Queue, id: &TaskId) -> Option<String> {
        let name = format!("{id}:");
        let is_one =
            |kept: &KeptText| kept.text.contains(&name) && open(&kept.text).named(id).len() == 1;
        let kept = Texts::of(self, queue).find(&is_one)?;
        let document = open(&kept.text);
        Some(document.title(document.find(id)?).to_owned())
    }
}

fn name_of(digest: u64) -> String {
    format!("{digest:016x}")[..8].to_owned()
}

/// Returns how many lines of the first text the other one lacks, regardless of order.
fn lacking([text, other]: [&str; 2]) -> usize {
    let mut left: HashMap<&str, usize> = HashMap::new();
    other
        .lines()
        .for_each(|line| *left.entry(line).or_default() += 1);
    let new = text.lines().filter(|line| match left.get_mut(*line) {
        Some(count @ 1..) => {
            *count -= 1;
            false
        }
        _ => true,
    });
    new.count()
}

/// Makes `text` the other text.
fn turn(nearness: &mut Nearness, text: &str) {
    if nearness.other() != text {
        let (start, end) = common(nearness.other(), text);
        let span = start..nearness.other().len() - end;
        nearness.replace(span, &text[start..text.len() - end]);
    }
}

/// Stores `text` relative to `known`, a text stored shortly before; for a save, with its mark and time.
pub(super) fn keep(
    board: &Board,
    queue: &Queue,
    known: Option<&str>,
    text: &str,
    save: Option<(SaveMark, Timestamp)>,
) -> Result<(), Error> {
    let (save, time) = save.unzip();
    let path = texts_path(board, queue);
    let (start, end) = known.map_or((0, 0), |known| common(known, text));
    let from = known.map(digest).filter(|_| start + end > 0);
    let record = Record {
        digest: digest(text),
        time: time.unwrap_or_else(clock::now),
        save,
        from,
        start,
        end,
        text: text[start..text.len() - end].to_owned(),
        is_void: false,
    };
    if from == Some(record.digest) && record.save.is_none() {
        return Ok(());
    }
    let line = line_of(&record);
    let append = || {
        let mut file = files::open_to_append(&path)?;
        file.write_all(line.as_bytes())?;
        file.metadata()
    };
    let length = append().map_err(Error::io("write to", &path))?.len();
    if length > LONGEST + 8 * text.len() as u64 {
        shorten(board, queue)?;
    }
    Ok(())
}

fn line_of(record: &Record) -> String {
    // The leading newline ends a line torn by a crash.
    format!(
        "\n{}\n",
        serde_json::to_string(record).expect("all keys are strings")
    )
}

/// Compacts the file to the newest texts.
fn shorten(board: &Board, queue: &Queue) -> Result<(), Error> {
    let (mut texts, now) = (Texts::of(board, queue), clock::now());
    let (mut saves, mut own, mut length) = (0, 0, 0);
    for record in texts.0.iter_mut().rev() {
        let is_save = record.save.is_some();
        let count = if is_save { &mut saves } else { &mut own };
        *count += 1;
        length += record.text.len() as u64;
        let is_pinned = is_save && now - record.time < PINNED && length < LONGEST / 2;
        record.is_void = *count > MOST && !is_pinned;
    }
    let (mut lines, mut last) = (String::new(), None::<String>);
    texts.each(&mut Nearness::of(""), |nearness, record| {
        let text = nearness.other();
        let (start, end) = last.as_ref().map_or((0, 0), |last| common(last, text));
        let record = Record {
            from: last.as_ref().map(|last| digest(last)),
            start,
            end,
            text: text[start..text.len() - end].to_owned(),
            ..record.clone()
        };
        lines.push_str(&line_of(&record));
        last = Some(text.to_owned());
    });
    replace_own(&texts_path(board, queue), lines.as_bytes())
}

fn texts_path(board: &Board, queue: &Queue) -> PathBuf {
    path(board, queue).with_extension("texts")
}

/// Returns how many bytes two texts have in common at their beginning and at their end, in whole characters.
fn common(one: &str, other: &str) -> (usize, usize) {
    let mut start = same(one.as_bytes().chunks(CHUNK), other.as_bytes().chunks(CHUNK));
    start += one.as_bytes()[start..]
        .iter()
        .zip(&other.as_bytes()[start..])
        .take_while(|(one, other)| one == other)
        .count();
    while !one.is_char_boundary(start) || !other.is_char_boundary(start) {
        start -= 1;
    }
    let (one, other) = (&one[start..], &other[start..]);
    let mut end = same(
        one.as_bytes().rchunks(CHUNK),
        other.as_bytes().rchunks(CHUNK),
    );
    end += one.as_bytes()[..one.len() - end]
        .iter()
        .rev()
        .zip(other.as_bytes()[..other.len() - end].iter().rev())
        .take_while(|(one, other)| one == other)
        .count();
    while !one.is_char_boundary(one.len() - end) || !other.is_char_boundary(other.len() - end) {
        end -= 1;
    }
    (start, end)
}

/// The number of bytes compared at once.
const CHUNK: usize = 256;

/// Returns the total length of the equal leading chunks.
fn same<'t>(one: impl Iterator<Item = &'t [u8]>, other: impl Iterator<Item = &'t [u8]>) -> usize {
    let both = one.zip(other).take_while(|(one, other)| one == other);
    both.map(|(one, _)| one.len()).sum()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use std::fs;

    use proptest::collection::vec;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn board() -> (tempfile::TempDir, Board, Queue) {
        let scratch = tempfile::tempdir().expect("a temp dir");
        let board = Board::open(scratch.path()).expect("it is there");
        let queue = Queue {
            id: "main".to_owned(),
            path: scratch.path().join("main.md"),
        };
        board.make_folders().expect("it is ours");
        (scratch, board, queue)
    }

    fn all(board: &Board, queue: &Queue) -> Vec<String> {
        let mut all = Vec::new();
        let mut nearness = Nearness::of("");
        Texts::of(board, queue).each(&mut nearness, |nearness, _| {
            all.push(nearness.other().to_owned());
        });
        all
    }

    fn mark(event: u64) -> SaveMark {
        let (base, writer) = Default::default();
        SaveMark {
            base,
            writer,
            event,
        }
    }

    proptest! {
        #[test]
        fn each_text_is_read_as_it_was_kept_but_for_those_that_rest_on_a_torn_one(
            texts in vec("(ä|a|b|\n){0,6}", 1..9),
            torn in 0..20usize,
        ) {
            let (_scratch, board, queue) = board();
            let mut known: Option<String> = None;
            let mut kept: Vec<String> = Vec::new();
            for text in &texts {
                keep(&board, &queue, known.as_deref(), text, None).expect("kept");
                if known.as_ref() != Some(text) || text.is_empty() {
                    kept.push(text.clone());
                }
                known = Some(text.clone());
            }
            prop_assert_eq!(all(&board, &queue), kept.clone());
            shorten(&board, &queue).expect("shortened");
            prop_assert_eq!(all(&board, &queue), kept.clone());
            let path = texts_path(&board, &queue);
            let file = fs::read(&path).expect("read");
            fs::write(&path, &file[..file.len().saturating_sub(torn)]).expect("written");
            let left = all(&board, &queue);
            prop_assert!(left.iter().all(|text| kept.contains(text)) && left.len() <= kept.len());
            keep(&board, &queue, None, "whole", None).expect("kept");
            prop_assert_eq!(all(&board, &queue).pop(), Some("whole".to_owned()));
        }
    }

    #[test]
    fn the_newest_of_the_nearest_texts_is_found_and_nothing_rests_on_a_save_that_the_log_lost() {
        let (_scratch, board, queue) = board();
        let time = Timestamp::default();
        let [first, save, newest] = ["- [ ] a\n", "- [ ] a\n- [ ] b\n", "- [x] a\n- [ ] c\n"];
        keep(&board, &queue, None, first, None).expect("kept");
        keep(&board, &queue, Some(first), save, Some((mark(7), time))).expect("kept");
        let mut texts = Texts::of(&board, &queue);
        let typed = "- [ ] a\n- [ ] b\n- [ ] d\n";
        assert_eq!(texts.nearest(newest, typed).text, save);
        assert_eq!(texts.nearest(newest, newest).text, newest);
        texts.retain_logged(6, &[]);
        assert_eq!(texts.nearest(newest, typed).text, first);
        texts.retain_logged(7, &[]);
        assert_eq!(texts.nearest(newest, typed).text, save);
    }

    #[test]
    fn the_newest_two_hundred_stay() {
        let (_scratch, board, queue) = board();
        let mut known = None;
        let first = "- [ ] saved\n";
        keep(&board, &queue, None, first, Some((mark(1), clock::now()))).expect("kept");
        for number in 0..3 * MOST {
            let text = format!("- [ ] {number}\n{}", "- [ ] another\n".repeat(200));
            keep(&board, &queue, known.as_deref(), &text, None).expect("kept");
            known = Some(text);
        }
        shorten(&board, &queue).expect("shortened");
        let left = all(&board, &queue);
        assert_eq!((left.len(), left.last()), (MOST + 1, known.as_ref()));
        assert_eq!(left[0], first, "it is the only save");
        let length = fs::metadata(texts_path(&board, &queue))
            .expect("it is there")
            .len();
        assert!(length < 50_000, "{length}");
    }

    #[test]
    fn a_save_stays_for_a_month() {
        for (time, most) in [(clock::now(), 2 * MOST), (Timestamp::default(), MOST)] {
            let (_scratch, board, queue) = board();
            for number in 0..2 * MOST {
                let (text, save) = (format!("- [ ] {number}\n"), (mark(number as u64), time));
                keep(&board, &queue, None, &text, Some(save)).expect("kept");
            }
            shorten(&board, &queue).expect("shortened");
            assert_eq!(all(&board, &queue).len(), most, "{time}");
        }
    }
}
