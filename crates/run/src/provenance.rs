//! Provenance of the board's text: made in this clone, or brought by git.
//!
//! Uncommitted text was made here. Committed text belongs to its first source: a commit made here, or a clone, pull,
//! switch or fetch. Editing untrusted text from git does not make it the editor's own, and neither does git when it
//! merges such lines into other text. A line keeps its first author, wherever it stands now.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::error::Error;
use super::workspace::Workspace;
use tavern_core::document::{Document, parse};
use tavern_core::eligible::with_role_in_title;
use tavern_core::front::Front;
use tavern_core::learning::{self, Learning};
use tavern_core::task::{Status, Task, TaskId};
use tavern_git::{Arrival, Carrier};
use tavern_store::config::{FILE, SCHEDULES};
use tavern_store::{Digest, KNOWLEDGE, Trusted};

/// A unit of trust: a file of the board's settings, an item, or a queue's text about all its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustUnit {
    /// The file within the board, or beside it; the item's ID, else its title.
    pub name: String,
    /// The text as it stands, for display.
    pub text: String,
    pub digest: Digest,
    /// An item's title: it identifies the item even if its ID is new or has changed.
    title: Option<String>,
    /// The text, line by line.
    lines: Vec<String>,
    /// A link's place in the board.
    link: Option<String>,
}

impl TrustUnit {
    /// Returns the clause for the board's file `name` with content `text`.
    pub fn of_file(name: &str, text: String) -> TrustUnit {
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        let (digest, title) = (Digest::of(name, &text), None);
        TrustUnit {
            digest,
            name: name.to_owned(),
            text,
            title,
            lines,
            link: None,
        }
    }

    /// Returns the clause for the learning in the file `name`: its text and its source.
    pub fn of_learning(name: &str, learning: &Learning) -> TrustUnit {
        let digest = Digest::of(
            "learning",
            &format!("{}\n{}", learning.source(), learning.text),
        );
        TrustUnit {
            digest,
            ..TrustUnit::of_file(name, learning.text.clone())
        }
    }

    /// Returns the clause for the link `name` among the queues, which leads to `target`.
    pub fn of_link(name: &str, target: &str) -> TrustUnit {
        let digest = Digest::of("link", &format!("{name}\n{target}"));
        let link = Some(name.to_owned());
        TrustUnit {
            digest,
            link,
            ..TrustUnit::of_file(&format!("{name} -> {target}"), target.to_owned())
        }
    }

    /// Returns the board's file that this is, or that the link replaces.
    pub fn file(&self) -> &str {
        self.link.as_ref().unwrap_or(&self.name)
    }

    /// Returns the clause for the removal of the board's file `name`, or for its emptying; `was` is its earlier text.
    pub fn of_removed(name: &str, was: &str) -> TrustUnit {
        let digest = Digest::of("removed", &format!("{name}\n{was}"));
        TrustUnit {
            digest,
            ..TrustUnit::of_file(name, String::new())
        }
    }

    /// Returns the clause for `task`, with its queue's defaults; `text` is its block in the queue.
    pub fn of_item(task: &Task, text: String) -> TrustUnit {
        let name = if task.id == TaskId::nobody() {
            task.title.clone()
        } else {
            task.id.to_string()
        };
        let digest = TrustUnit::digest_of(task);
        TrustUnit {
            digest,
            name,
            text,
            title: Some(task.title.clone()),
            lines: task.wording_lines(),
            link: None,
        }
    }

    /// Returns the digest of the wording of `task`, which identifies it without parsing.
    pub fn digest_of(task: &Task) -> Digest {
        // Trust in a draft does not release it.
        let kind = if task.status() == Status::Draft {
            "draft"
        } else {
            "item"
        };
        Digest::of(kind, &task.wording())
    }

    /// Returns the clause for the front matter of the queue in the file `name`: its text about all items, and for a
    /// planner. `None` if it is empty.
    pub fn of_front(front: &Front, name: String, text: String) -> Option<TrustUnit> {
        let words = front.wording();
        if words.is_empty() {
            return None;
        }
        let lines = words
            .replace("\\n", "\n")
            .lines()
            .map(|line| line.trim().to_owned())
            .collect();
        let digest = Digest::of("front", &words);
        Some(TrustUnit {
            digest,
            name,
            text,
            title: None,
            lines,
            link: None,
        })
    }

    /// Returns the clause for the prose around the items of `document` in the file `name`, which agents are shown as
    /// context. `None` if there is none.
    pub fn of_prose(document: &Document<'_>, name: &str) -> Option<TrustUnit> {
        let prose = document.prose();
        let digest = Digest::of("prose", &prose);
        let clause = || TrustUnit {
            digest,
            ..TrustUnit::of_file(&format!("{name}, around its items"), prose.clone())
        };
        (!prose.is_empty()).then(clause)
    }

    /// Returns true if the file was removed.
    pub(super) fn is_removal(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the possible earlier names: its own, and the title of an item that had no ID yet.
    fn names(&self) -> impl Iterator<Item = &String> {
        [Some(&self.name), self.title.as_ref()]
            .into_iter()
            .flatten()
    }

    /// Returns the lines, and each pair of neighbours, because the same lines in another order mean something else.
    fn words(&self) -> impl Iterator<Item = String> {
        self.lines
            .iter()
            .cloned()
            .chain(self.lines.windows(2).map(|two| two.join("\n")))
    }

    /// Returns the lines that carry meaning in any place; for an item also the first line of its block.
    fn telling(&self) -> impl Iterator<Item = &str> {
        let typed = self.text.lines().next().map(str::trim);
        self.lines
            .iter()
            .map(String::as_str)
            .chain(typed)
            .filter(|line| is_telling(line))
    }
}

/// Returns true if the line carries meaning: it is neither a common code fence nor mere punctuation.
fn is_telling(line: &str) -> bool {
    const MARKS: [&str; 4] = ["", "sh", "yaml", "yaml task"];
    let mark = ["```", "~~~"]
        .iter()
        .find_map(|fence| line.strip_prefix(fence));
    let says = |letter: char| letter.is_alphanumeric() || "/*?$".contains(letter);
    line.contains(says) && mark.is_none_or(|mark| !MARKS.contains(&mark.trim()))
}

/// Returns the line without quote or HTML comment marks.
fn bare(line: &str) -> &str {
    let line = line.trim_start_matches(|letter: char| letter == '>' || letter.is_whitespace());
    line.trim_start_matches("<!--")
        .trim()
        .trim_end_matches("-->")
        .trim()
}

/// Returns the name of the file at `path`, relative to the board in `folder`.
pub(super) fn file_name(path: &Path, folder: &Path) -> String {
    let above = [Some(folder), folder.parent()].into_iter().flatten();
    let within = above
        .into_iter()
        .find_map(|above| path.strip_prefix(above).ok());
    within.unwrap_or(path).to_string_lossy().into_owned()
}

/// The provenance of some clauses, and of the text they replaced.
#[derive(Default)]
pub struct Origins {
    made: HashSet<Digest>,
    /// By name, the text last made here or trusted.
    was: HashMap<String, String>,
    /// By name, the digest in HEAD.
    head: HashMap<String, Digest>,
    /// The requested clauses that git has brought.
    brought: Vec<Digest>,
}

/// Returns the mark that git has brought `digest`. It outlives git's own record.
pub(super) fn brought(digest: &Digest) -> Digest {
    digest.of_kind("brought")
}

/// Returns the mark that the committed text `committed` was overruled by trusted text. It is not trusted itself, but a
/// person's edits of it are.
pub(super) fn overruled(committed: &Digest) -> Digest {
    committed.of_kind("overruled")
}

/// Returns the mark that a person has trusted this clone's initial content.
pub(super) fn agreed() -> Digest {
    Digest::of("clone", "agreed")
}

/// The history of files that agent programs obey.
#[derive(Default)]
pub(super) struct FirstCarriers {
    /// What first brought each text.
    pub carriers: HashMap<Digest, Carrier>,
    /// The text that HEAD has, by name.
    pub last: HashMap<String, Digest>,
}

/// Returns what brought these files, or those below, into the clone.
///
/// # Errors
/// git has no history of this place, or can't read it.
pub(super) fn first_carriers(site: &Workspace, files: &[&str]) -> Result<FirstCarriers, Error> {
    let repository = site.repository()?;
    let paths: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let mut found = FirstCarriers::default();
    for arrival in repository.arrivals(&paths)? {
        let parts: Vec<(String, Digest)> = arrival
            .files
            .iter()
            .map(|(path, text)| {
                let part = TrustUnit::of_file(&path.to_string_lossy(), text.to_string());
                (part.name, part.digest)
            })
            .collect();
        for (_, digest) in &parts {
            let carrier = arrival.carrier;
            found.carriers.entry(digest.clone()).or_insert(carrier);
        }
        if arrival.carrier != Carrier::Fetch {
            found.last = parts.into_iter().collect();
        }
    }
    Ok(found)
}

impl Origins {
    /// Finds the origins of `parts`, each in its file of `places`; `known` are other, trusted clauses.
    pub(super) fn of(
        workspace: &Workspace,
        parts: &[&TrustUnit],
        places: &[&Path],
        known: &[TrustUnit],
        trusted: &Trusted,
    ) -> Result<Origins, Error> {
        let repository = workspace.repository()?;
        let dir = workspace.board.dir();
        let all = [FILE, SCHEDULES, "templates", "queues", KNOWLEDGE].map(|name| dir.join(name));
        let within = |path: &Path| {
            let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            path.strip_prefix(repository.main_worktree())
                .map(Path::to_owned)
                .ok()
        };
        let message_for = |path: &Path| within(path).filter(|path| repository.tells_of(path));
        let Some(mut paths) = all
            .iter()
            .map(|path| message_for(path))
            .collect::<Option<Vec<PathBuf>>>()
        else {
            let brought = parts.iter().map(|part| part.digest.clone()).collect();
            return Ok(Origins {
                brought,
                ..Origins::default()
            });
        };
        let files: HashSet<&Path> = places.iter().copied().collect();
        let is_told: HashMap<&Path, Option<PathBuf>> = files
            .into_iter()
            .map(|file| (file, message_for(file)))
            .collect();
        // The board's folders are already covered.
        let mut others: Vec<PathBuf> = is_told.values().flatten().cloned().collect();
        others.retain(|path| !paths.iter().any(|above| path.starts_with(above)));
        others.sort();
        paths.extend(others);
        // This repository's history does not cover files of another repository.
        let (asked, untold): (Vec<_>, Vec<_>) = parts
            .iter()
            .zip(places)
            .partition(|(_, place)| is_told[**place].is_some());
        let asked: Vec<&TrustUnit> = asked.into_iter().map(|(part, _)| *part).collect();
        let untold = untold.into_iter().map(|(part, _)| part.digest.clone());
        let folder = within(dir).unwrap_or_default();
        let arrivals = repository.arrivals(&paths)?;
        let mut told = CloneHistory::new(trusted, Sought::of(&asked), folder);
        for arrival in &arrivals {
            told.take(arrival);
        }
        known
            .iter()
            .for_each(|part| told.lines.note(part.telling(), Author::Trusted));
        let mut moved = arrivals
            .iter()
            .filter(|arrival| arrival.carrier != Carrier::Fetch && !arrival.files.is_empty());
        let is_cloned = moved
            .next()
            .is_some_and(|first| first.carrier == Carrier::Move);
        let is_agreed = !is_cloned || trusted.has(&agreed());
        for part in &asked {
            if !is_agreed && !told.is_settled(part) {
                told.brought.insert(part.digest.clone());
            }
            told.settle(part, Carrier::Commit);
        }
        let came = asked
            .iter()
            .map(|part| &part.digest)
            .filter(|digest| told.brought.contains(digest));
        told.origins.brought = came.cloned().chain(untold).collect();
        Ok(told.origins)
    }

    pub fn is_made_here(&self, part: &TrustUnit) -> bool {
        self.made.contains(&part.digest)
    }

    /// Returns the requested clauses that git has brought as they stand.
    pub(super) fn brought(&self) -> &[Digest] {
        &self.brought
    }

    /// Returns the digest that HEAD has under the same name.
    pub(super) fn committed(&self, part: &TrustUnit) -> Option<Digest> {
        part.names().find_map(|name| self.head.get(name)).cloned()
    }

    /// Returns the text under the same name that was last made here or trusted.
    pub fn was(&self, part: &TrustUnit) -> Option<String> {
        self.was.get(&part.name).cloned()
    }
}

/// The names and lines of the requested clauses. A clause that matches none of them is irrelevant.
struct Sought {
    names: HashSet<String>,
    lines: HashSet<String>,
}

impl Sought {
    fn of(parts: &[&TrustUnit]) -> Sought {
        let names = parts
            .iter()
            .flat_map(|part| part.names())
            .cloned()
            .collect();
        let lines = parts
            .iter()
            .flat_map(|part| part.telling())
            .map(str::to_owned)
            .collect();
        Sought { names, lines }
    }

    fn wants(&self, part: &TrustUnit) -> bool {
        part.names().any(|name| self.names.contains(name))
            || part.telling().any(|line| self.lines.contains(line))
    }
}

/// The first author of a line, over the board's whole history.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Person,
    Others,
    /// A person has trusted the line, regardless of its author.
    Trusted,
}

/// The first authors of the requested lines, in any place.
struct LineAuthors {
    wanted: HashSet<String>,
    authors: HashMap<String, Author>,
}

impl LineAuthors {
    fn note<'t>(&mut self, lines: impl Iterator<Item = &'t str>, author: Author) {
        for line in lines.filter(|line| self.wanted.contains(*line)) {
            let first = self.authors.entry(line.to_owned()).or_insert(author);
            if author == Author::Trusted {
                *first = author;
            }
        }
    }

    fn are_of_others(&self, part: &TrustUnit) -> bool {
        part.telling()
            .any(|line| self.authors.get(line) == Some(&Author::Others))
    }
}

/// The history of the clone, replayed arrival by arrival.
struct CloneHistory<'t> {
    trusted: &'t Trusted,
    wanted: Sought,
    /// The board's folder, relative to the root of the work tree.
    folder: PathBuf,
    brought: HashSet<Digest>,
    lines: LineAuthors,
    /// By name, each line and each pair of neighbours; true if it was first made here, or is trusted.
    named: HashMap<String, HashMap<String, bool>>,
    /// Names that were removed from HEAD, and the carrier of the removal.
    gone: HashMap<String, Carrier>,
    /// By name, the lines of the text last made here or trusted, and those of them that others have removed.
    own: HashMap<String, Vec<String>>,
    taken: HashMap<String, HashSet<String>>,
    /// Caches: each text is parsed once, and so is each item under the same front matter.
    read: HashMap<(PathBuf, *const u8), Vec<Rc<TrustUnit>>>,
    items: HashMap<String, Vec<Rc<TrustUnit>>>,
    origins: Origins,
}

impl<'t> CloneHistory<'t> {
    fn new(trusted: &'t Trusted, wanted: Sought, folder: PathBuf) -> CloneHistory<'t> {
        let lines = LineAuthors {
            wanted: wanted.lines.clone(),
            authors: HashMap::new(),
        };
        let (brought, named, gone, own, taken) = Default::default();
        let (read, items, origins) = Default::default();
        CloneHistory {
            trusted,
            wanted,
            folder,
            brought,
            lines,
            named,
            gone,
            own,
            taken,
            read,
            items,
            origins,
        }
    }

    fn take(&mut self, arrival: &Arrival) {
        let mut parts: Vec<Rc<TrustUnit>> = Vec::new();
        for (path, text) in &arrival.files {
            let key = (path.clone(), text.as_ptr());
            if !self.read.contains_key(&key) {
                let found = self.parts_of(path, text);
                self.note_lines(text, &found, arrival.carrier);
                self.read.insert(key.clone(), found);
            }
            parts.extend(self.read[&key].iter().cloned());
        }
        for part in &parts {
            self.settle(part, arrival.carrier);
        }
        if arrival.carrier != Carrier::Fetch {
            let head = parts
                .iter()
                .map(|part| (part.name.clone(), part.digest.clone()))
                .collect();
            let before = std::mem::replace(&mut self.origins.head, head);
            let gone = before.into_keys().map(|name| (name, arrival.carrier));
            self.gone
                .extend(gone.filter(|(name, _)| !self.origins.head.contains_key(name)));
        }
    }

    /// Notes the authors of a new text's lines, and of the clauses in it. Trust overrides the first author.
    fn note_lines(&mut self, text: &str, parts: &[Rc<TrustUnit>], carrier: Carrier) {
        let author = if carrier == Carrier::Commit {
            Author::Person
        } else {
            Author::Others
        };
        for part in parts {
            let digest = &part.digest;
            let is_trusted = self.trusted.has(digest) || self.trusted.has(&overruled(digest));
            let is_told = !is_trusted && self.trusted.has(&brought(digest));
            let author = if is_trusted {
                Author::Trusted
            } else if is_told {
                Author::Others
            } else {
                author
            };
            self.lines.note(part.telling(), author);
        }
        self.lines.note(
            text.lines().flat_map(|line| [line.trim(), bare(line)]),
            author,
        );
    }

    fn is_settled(&self, part: &TrustUnit) -> bool {
        let is_known =
            self.brought.contains(&part.digest) || self.origins.made.contains(&part.digest);
        is_known || self.trusted.has(&part.digest)
    }

    /// Decides the origin of a clause; the first source counts. It is made here if a person committed it, unless it
    /// replaces or contains untrusted text from git.
    fn settle(&mut self, part: &TrustUnit, carrier: Carrier) {
        if !self.is_settled(part) {
            let before = self.origins.committed(part);
            let is_brought = |before: &Digest| {
                self.brought.contains(before) && !self.trusted.has(&overruled(before))
            };
            let rests_on_brought = before.as_ref().is_some_and(is_brought);
            let is_by_hand = carrier == Carrier::Commit
                && !self.trusted.has(&brought(&part.digest))
                && (!part.is_removal() || self.is_gone_by_hand(&part.name));
            if is_by_hand && !rests_on_brought && !self.is_mixed(part) {
                self.origins.made.insert(part.digest.clone());
            } else {
                self.brought.insert(part.digest.clone());
                let own = part.names().filter_map(|name| self.own.get(name)).flatten();
                let gone: Vec<String> = own
                    .filter(|line| !part.lines.contains(line))
                    .cloned()
                    .collect();
                self.taken
                    .entry(part.name.clone())
                    .or_default()
                    .extend(gone);
            }
        }
        let is_own = !self.brought.contains(&part.digest);
        let is_seen = self.trusted.has(&part.digest) || self.trusted.has(&overruled(&part.digest));
        let lines = self.named.entry(part.name.clone()).or_default();
        for words in part.words() {
            *lines.entry(words).or_insert(is_own) |= is_seen;
        }
        if is_own {
            self.own.insert(part.name.clone(), part.lines.clone());
            self.origins
                .was
                .insert(part.name.clone(), part.text.clone());
        }
    }

    /// Returns true if HEAD still holds it, or a commit made here removed it.
    fn is_gone_by_hand(&self, name: &str) -> bool {
        self.origins.head.contains_key(name)
            || self
                .gone
                .get(name)
                .is_none_or(|carrier| *carrier == Carrier::Commit)
    }

    /// Returns true if the clause has a line that others added or had first, or lacks a line that others removed.
    fn is_mixed(&self, part: &TrustUnit) -> bool {
        let has = |lines: &HashMap<String, bool>| {
            part.words().any(|words| lines.get(&words) == Some(&false))
        };
        let own = || part.names().filter_map(|name| self.own.get(name)).flatten();
        let lacks = |taken: &HashSet<String>| {
            own().any(|line| taken.contains(line) && !part.lines.contains(line))
        };
        self.lines.are_of_others(part)
            || part.names().any(|name| {
                self.named.get(name).is_some_and(has) || self.taken.get(name).is_some_and(lacks)
            })
    }

    /// Returns the clauses of a text that are relevant to the request.
    fn parts_of(&mut self, path: &Path, text: &str) -> Vec<Rc<TrustUnit>> {
        let wanted = &self.wanted;
        let is_wanted = |part: TrustUnit| Some(part).filter(|part| wanted.wants(part)).map(Rc::new);
        let name = path
            .strip_prefix(&self.folder)
            .ok()
            .map(|name| name.to_string_lossy());
        if let Some(name) = name.as_ref().filter(|name| name.starts_with(KNOWLEDGE)) {
            let part =
                learning::parse(text).map(|learning| TrustUnit::of_learning(name, &learning));
            return part.ok().and_then(is_wanted).into_iter().collect();
        }
        if let Some(name) = name.as_ref().filter(|name| !name.starts_with("queues")) {
            // Empty settings do not count.
            let part = (!text.is_empty()).then(|| TrustUnit::of_file(name, text.to_owned()));
            return part.and_then(is_wanted).into_iter().collect();
        }
        // The text of a link is its target.
        let link = name
            .filter(|_| !text.contains('\n'))
            .map(|name| TrustUnit::of_link(&name, text));
        let (document, _) = parse(text);
        let said = document.front_text();
        let file = file_name(path, &self.folder);
        let prose = TrustUnit::of_prose(&document, &file);
        let front = TrustUnit::of_front(document.front(), file, said.to_owned());
        let mut found: Vec<Rc<TrustUnit>> = link
            .into_iter()
            .chain(front)
            .chain(prose)
            .filter_map(is_wanted)
            .collect();
        for item in document.items() {
            let block = document.block(item);
            let key = format!("{said}\0{}\0{block}", item.status.as_str());
            // The current roles may allow either reading.
            let read = || {
                let readings = [Some(item.clone()), with_role_in_title(&document, item)]
                    .into_iter()
                    .flatten();
                let clauses = readings
                    .map(|item| TrustUnit::of_item(&document.task_of(&item), block.to_owned()));
                clauses.filter_map(is_wanted).collect()
            };
            found.extend(self.items.entry(key).or_insert_with(read).clone());
        }
        found
    }
}
