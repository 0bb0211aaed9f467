//! `.tavern/schedules.yaml`: items to queue at given times. Each schedule is parsed by itself, so an invalid one does
//! not block the others.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_yaml::{Mapping, Value};

use super::flaw::Flaw;
use super::{ConfigError, locate, read_saved};
use tavern_core::document::parse;
use tavern_core::key::{Key, KeyUse};
use tavern_core::new_item::{NewItem, render};
use tavern_core::problem::{Problem, Severity};
use tavern_core::schedule::{Missed, Schedule, WhileOpen};
use tavern_core::suggestion::nearest;
use tavern_core::timetable::{BadTime, Timetable, Zone};
use tavern_core::yaml;

/// Name of the file in `.tavern/`.
pub const SCHEDULES: &str = "schedules.yaml";

/// Limits of one file, in schedules and in bytes.
const MOST: usize = 2000;
const MOST_BYTES: usize = 1024 * 1024;

/// After this many faults, parsing stops.
const MOST_FLAWS: usize = 20;

/// The queue of schedules that name none.
const QUEUE: &str = "main";

/// The keys of a schedule, besides those of its item.
const OWN: [&str; 10] = [
    "cron",
    "every",
    "zone",
    "queue",
    "title",
    "text",
    "missed",
    "while_open",
    "paused",
    "draft",
];

/// The content of the file.
#[derive(Debug, Default)]
pub struct Schedules {
    /// The text of the file; empty if there is none.
    pub text: String,
    /// The valid schedules, in order.
    pub all: Vec<Schedule>,
    pub flaws: Vec<Flaw>,
    /// All names in the file, including invalid schedules. `None` if the whole file is invalid or empty: git and
    /// editors replace files.
    pub names: Option<HashSet<String>>,
}

impl Schedules {
    /// Loads the schedules of the board in `dir`; none if there is no file.
    pub fn load(dir: &Path) -> Result<Schedules, ConfigError> {
        let path = dir.join(SCHEDULES);
        match read_saved(&path) {
            Ok(text) => Ok(Schedules::parse(text, &path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Schedules::default()),
            Err(source) => Err(ConfigError::Read { path, source }),
        }
    }

    /// Parses `text`; `path` is used only in messages.
    pub fn parse(text: String, path: &Path) -> Schedules {
        let mut read = Schedules::default();
        let block = |at| Block {
            path,
            text: &text,
            at,
        };
        let blocks = blocks(&text);
        let whole = if text.len() > MOST_BYTES || blocks.len() > MOST {
            Some((
                format!("more than {MOST} schedules, or than {MOST_BYTES} bytes"),
                "remove some",
            ))
        } else if text.lines().any(|line| line.starts_with("<<<<<<< ")) {
            Some((
                "git has left both sides of a conflict here".to_owned(),
                "keep one of them",
            ))
        } else {
            None
        };
        if let Some((why, hint)) = &whole {
            let message = format!("the file is ignored: {why}");
            read.flaws.push(Flaw::at(
                path.to_owned(),
                "",
                None,
                message,
                Some((*hint).to_owned()),
            ));
        }
        let names = blocks.iter().map(|at| block(at.clone()).name().to_owned());
        read.names = (whole.is_none() && !text.is_empty()).then(|| names.collect());
        let mut seen = HashSet::new();
        for block in blocks.into_iter().map(block).filter(|_| whole.is_none()) {
            if read.flaws.len() == MOST_FLAWS {
                break;
            }
            let name = block.name();
            let schedule = if seen.insert(name) {
                block.schedule(name)
            } else {
                Err(block.twice(name))
            };
            match schedule {
                Ok(schedule) => read.all.push(schedule),
                Err(flaw) => read.flaws.push(flaw),
            }
        }
        drop(seen);
        read.text = text;
        read
    }
}

/// Returns the range of each entry: from one unindented line to the next.
fn blocks(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut starts = Vec::new();
    for line in text.split_inclusive('\n') {
        let says = line.strip_prefix('\u{feff}').unwrap_or(line);
        let is_mark = ["---", "..."].contains(&says.trim_end());
        if !says.starts_with([' ', '\t', '#']) && !says.trim().is_empty() && !is_mark {
            starts.push(at + line.len() - says.len());
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(start, end)| start..end)
        .collect()
}

/// One entry of the file.
struct Block<'t> {
    path: &'t Path,
    text: &'t str,
    at: Range<usize>,
}

impl<'t> Block<'t> {
    fn own(&self) -> &'t str {
        &self.text[self.at.clone()]
    }

    fn name(&self) -> &'t str {
        let line = self.own().lines().next().unwrap_or_default();
        line.split(':')
            .next()
            .unwrap_or_default()
            .trim()
            .trim_matches(['"', '\''])
    }

    fn schedule(&self, name: &str) -> Result<Schedule, Flaw> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > 40 || !name.bytes().all(is_part) {
            let hint = "a schedule begins with its name and a colon: letters, digits, `-`, `_` and `.`, 40 at most";
            return Err(self.flaw(
                0,
                format!("`{}` is not a valid schedule name", excerpt(name)),
                hint,
            ));
        }
        let whole: Value = yaml::read(self.own()).map_err(|error| self.moved(&error))?;
        let set = match whole.get(name) {
            Some(Value::Mapping(set)) => set.clone(),
            _ => {
                return Err(self.flaw(
                    0,
                    format!("`{name}` is empty"),
                    "write its keys below it: `cron`, `title`",
                ));
            }
        };
        for key in set.keys() {
            self.is_known(key)?;
        }
        let zone: Zone = self
            .of(&set, "zone")?
            .map_or(Ok(Zone::Local), |zone: String| {
                zone.parse().map_err(|error| self.bad_time("zone", error))
            })?;
        let (cron, every) = (
            self.of::<String>(&set, "cron")?,
            self.of::<String>(&set, "every")?,
        );
        let when = match (cron, every) {
            (Some(cron), None) => {
                Timetable::of_cron(&cron, zone).map_err(|error| self.bad_time("cron", error))?
            }
            (None, Some(words)) => {
                Timetable::of_words(&words, zone).map_err(|error| self.bad_time("every", error))?
            }
            (Some(_), Some(_)) => {
                return Err(self.flaw_at("every", "`cron` and `every` are both set", "remove one"));
            }
            (None, None) => {
                let hint = "write `cron: \"0 6 * * *\"` or `every: day at 06:00`";
                return Err(self.flaw(0, format!("`{name}` has no time"), hint));
            }
        };
        let item = self.item(name, &set)?;
        Ok(Schedule {
            name: name.to_owned(),
            when,
            queue: self.of(&set, "queue")?.unwrap_or_else(|| QUEUE.to_owned()),
            missed: self.of::<Missed>(&set, "missed")?.unwrap_or_default(),
            while_open: self
                .of::<WhileOpen>(&set, "while_open")?
                .unwrap_or_default(),
            is_paused: self.of(&set, "paused")?.unwrap_or_default(),
            is_draft: self.of(&set, "draft")?.unwrap_or_default(),
            item,
        })
    }

    /// Returns the item to queue, if it would parse as intended.
    fn item(&self, name: &str, set: &Mapping) -> Result<NewItem, Flaw> {
        let title = self.of::<String>(set, "title")?.unwrap_or_default();
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        if title.is_empty() {
            return Err(self.flaw(
                0,
                format!("`{name}` has no title"),
                "set its title: `title: …`",
            ));
        }
        let mut item = NewItem {
            title,
            ..NewItem::default()
        };
        let bare = format!("- [ ] {}\n", item.title);
        if parse(&bare)
            .0
            .items()
            .first()
            .is_some_and(|item| item.metadata.is_some())
        {
            let hint = "write each as a key of the schedule, beside `title`";
            return Err(self.flaw_at("title", "`title` has keys of an item in it", hint));
        }
        item.id = Some("T-0000".parse().expect("an ID"));
        self.is_readable("title", &item)?;
        for key in Key::all_for(KeyUse::Scheduled) {
            let Some(value) = set.get(key.as_str()).filter(|value| !value.is_null()) else {
                continue;
            };
            let mut alone = item.clone();
            alone.fields = vec![(key, value.clone())];
            self.is_readable(key.as_str(), &alone)?;
            let fields = if [Key::DoneWhen, Key::Touches].contains(&key) {
                &mut item.yaml_fields
            } else {
                &mut item.fields
            };
            fields.push((key, value.clone()));
        }
        item.description = self.of::<String>(set, "text")?.unwrap_or_default();
        self.is_readable("text", &item)?;
        Ok(NewItem { id: None, ..item })
    }

    /// Checks that the item renders as exactly one item with these words, without problems.
    fn is_readable(&self, key: &str, item: &NewItem) -> Result<(), Flaw> {
        let mut signed = item.clone();
        signed
            .fields
            .push((Key::QueuedFor, "a@2026-11-28T06:00+01:00".into()));
        let block = render(&signed);
        let (document, problems) = parse(&block);
        let is_error = |problem: &&Problem| {
            let is_slip = problem.code == "wrong-type"
                || problem.code == "unknown-key" && Key::is_mistyped(&block[problem.span.clone()]);
            problem.severity == Severity::Error || is_slip
        };
        if let Some(problem) = problems.iter().find(is_error) {
            return Err(self.flaw_at(key, problem.message.clone(), problem.hint.clone()));
        }
        let has_control = item.title.chars().any(char::is_control);
        let first = document.items().first();
        let is_meant = first.is_some_and(|found| {
            let names: HashSet<&str> = document
                .entries(found)
                .iter()
                .map(|entry| entry.name)
                .collect();
            let is_whole = document
                .items()
                .iter()
                .filter(|item| item.within.is_none())
                .count()
                == 1;
            let is_set = item
                .fields
                .iter()
                .chain(&item.yaml_fields)
                .all(|(key, _)| names.contains(key.as_str()));
            let is_own = found.id == item.id
                && document.title(found) == item.title
                && document.left_out(found).is_none();
            is_whole && is_set && is_own && names.contains(Key::QueuedFor.as_str())
        });
        if has_control || !is_meant {
            let hint = "write it without brackets, keys, marks and boxes of a list";
            return Err(self.flaw_at(
                key,
                format!("`{key}` would be read differently in a queue"),
                hint,
            ));
        }
        Ok(())
    }

    fn is_known(&self, key: &Value) -> Result<(), Flaw> {
        let name = key.as_str().unwrap_or_default();
        let known = || {
            let of_items = Key::all_for(KeyUse::Scheduled).map(Key::as_str);
            OWN.iter().copied().chain(of_items)
        };
        if known().any(|key| key == name) {
            return Ok(());
        }
        let hint = match nearest(name, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("one of: {}", known().collect::<Vec<_>>().join(", ")),
        };
        Err(self.flaw_at(
            name,
            format!("unknown key `{}` in `{}`", excerpt(name), self.name()),
            hint,
        ))
    }

    /// Returns the value of a key, as a `T`.
    fn of<T: DeserializeOwned>(&self, set: &Mapping, key: &str) -> Result<Option<T>, Flaw> {
        let Some(value) = set.get(key).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        T::deserialize(value.clone()).map(Some).map_err(|error| {
            let flaw = Flaw::from_yaml(self.path.to_owned(), "", &error.into());
            let message = format!("`{key}`: {}", flaw.message);
            Flaw {
                span: self.flaw_at(key, "", "").span,
                text: self.text.to_owned(),
                message,
                ..flaw
            }
        })
    }

    fn bad_time(&self, key: &str, error: BadTime) -> Flaw {
        self.flaw_at(key, error.message, error.hint)
    }

    fn twice(&self, name: &str) -> Flaw {
        self.flaw(
            0,
            format!("duplicate schedule `{name}`"),
            "give one of them another name",
        )
    }

    /// Creates a flaw at a key of the entry.
    fn flaw_at(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) -> Flaw {
        let place = locate(
            self.own(),
            &[self.own().split(':').next().unwrap_or_default(), key],
        );
        self.flaw(place.unwrap_or_default(), message, hint)
    }

    /// Creates a flaw at byte `place` of the entry.
    fn flaw(&self, place: usize, message: impl Into<String>, hint: impl Into<String>) -> Flaw {
        let start = Some(self.at.start + place);
        Flaw::at(
            self.path.to_owned(),
            self.text,
            start,
            message.into(),
            Some(hint.into()),
        )
    }

    /// Converts an error of the YAML reader to a flaw in the whole file.
    fn moved(&self, error: &yaml::YamlError) -> Flaw {
        let flaw = Flaw::from_yaml(self.path.to_owned(), self.own(), error);
        let start = self.at.start;
        let span = flaw.span.map(|span| start + span.start..start + span.end);
        let hint = flaw.hint.or_else(|| {
            Some("write it as YAML, an expression in quotes: `cron: \"0 6 * * *\"`".to_owned())
        });
        Flaw {
            span,
            hint,
            text: self.text.to_owned(),
            ..flaw
        }
    }
}

/// Returns the beginning of text of unknown length.
fn excerpt(words: &str) -> String {
    words.chars().take(40).collect()
}
