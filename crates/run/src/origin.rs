//! Where words of the board came from: made in this clone, or brought by git.
//!
//! What nobody has committed was made here. Of what is in a commit counts who had it first: a commit that was made here, or a
//! clone, a pull, a switch, a fetch. Whoever edits what git has brought, and nobody has trusted, does not make it theirs by that,
//! and neither does git where it puts lines of it among others. A line is whose it was first, whatever it stands in now.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::error::Error;
use super::site::Site;
use tavern_core::document::{Document, parse};
use tavern_core::eligible::with_role_in_title;
use tavern_core::front::Front;
use tavern_core::learning::{self, Learning};
use tavern_core::task::{Status, Task, TaskId};
use tavern_git::{Arrival, Carrier};
use tavern_store::config::{FILE, SCHEDULES};
use tavern_store::{Digest, KNOWLEDGE, Trusted};

/// One thing that can be trusted: a file of the board's settings, an item, or what a queue says of all its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// The file within the board, or beside it; the item's ID, else its title.
    pub name: String,
    /// As it stands, to be shown.
    pub text: String,
    pub digest: Digest,
    /// Of an item; it may get an ID, or another one, and still be the same.
    title: Option<String>,
    /// What it says, line by line.
    lines: Vec<String>,
    /// Of a link, where it stands in the board.
    link: Option<String>,
}

impl Clause {
    /// The file `name` of the board, which says `text`.
    pub fn of_file(name: &str, text: String) -> Clause {
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        let (digest, title) = (Digest::of(name, &text), None);
        Clause {
            digest,
            name: name.to_owned(),
            text,
            title,
            lines,
            link: None,
        }
    }

    /// What the file `name` has of a learning that could be told to an agent: its words, and whose they are.
    pub fn of_learning(name: &str, learning: &Learning) -> Clause {
        let digest = Digest::of(
            "learning",
            &format!("{}\n{}", learning.source(), learning.text),
        );
        Clause {
            digest,
            ..Clause::of_file(name, learning.text.clone())
        }
    }

    /// The link `name` among the queues, which leads to `target`.
    pub fn of_link(name: &str, target: &str) -> Clause {
        let digest = Digest::of("link", &format!("{name}\n{target}"));
        let link = Some(name.to_owned());
        Clause {
            digest,
            link,
            ..Clause::of_file(&format!("{name} -> {target}"), target.to_owned())
        }
    }

    /// The file of the board that it is, or stands in the place of.
    pub fn file(&self) -> &str {
        self.link.as_ref().unwrap_or(&self.name)
    }

    /// That the file `name` of the board, which said `was`, is gone or empty.
    pub fn of_removed(name: &str, was: &str) -> Clause {
        let digest = Digest::of("removed", &format!("{name}\n{was}"));
        Clause {
            digest,
            ..Clause::of_file(name, String::new())
        }
    }

    /// What `task` says, with the defaults of its queue; `text` is how it stands there.
    pub fn of_item(task: &Task, text: String) -> Clause {
        let name = if task.id == TaskId::nobody() {
            task.title.clone()
        } else {
            task.id.to_string()
        };
        let digest = Clause::digest_of(task);
        Clause {
            digest,
            name,
            text,
            title: Some(task.title.clone()),
            lines: task.wording_lines(),
            link: None,
        }
    }

    /// That of what `task` says: by it an item is known without being taken apart.
    pub fn digest_of(task: &Task) -> Digest {
        // A draft that was made here, or trusted, is not released by that.
        let kind = if task.status() == Status::Draft {
            "draft"
        } else {
            "item"
        };
        Digest::of(kind, &task.wording())
    }

    /// What the queue in the file `name` says of all its items, and to a planner; `None` if that is nothing.
    pub fn of_front(front: &Front, name: String, text: String) -> Option<Clause> {
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
        Some(Clause {
            digest,
            name,
            text,
            title: None,
            lines,
            link: None,
        })
    }

    /// What stands around the items of `document`, in the file `name`: an agent is told of it where its item stands; `None` if that is
    /// nothing.
    pub fn of_prose(document: &Document<'_>, name: &str) -> Option<Clause> {
        let prose = document.prose();
        let digest = Digest::of("prose", &prose);
        let clause = || Clause {
            digest,
            ..Clause::of_file(&format!("{name}, around its items"), prose.clone())
        };
        (!prose.is_empty()).then(clause)
    }

    /// It is that a file is gone.
    pub(super) fn is_removal(&self) -> bool {
        self.lines.is_empty()
    }

    /// The names under which it may have been known: its own, and that of an item which had no ID yet.
    fn names(&self) -> impl Iterator<Item = &String> {
        [Some(&self.name), self.title.as_ref()]
            .into_iter()
            .flatten()
    }

    /// Its lines, and which follows which: the same ones in another order say something else.
    fn words(&self) -> impl Iterator<Item = String> {
        self.lines
            .iter()
            .cloned()
            .chain(self.lines.windows(2).map(|two| two.join("\n")))
    }

    /// Its lines that say something wherever they stand; of an item also the first, as it is typed.
    fn telling(&self) -> impl Iterator<Item = &str> {
        let typed = self.text.lines().next().map(str::trim);
        self.lines
            .iter()
            .map(String::as_str)
            .chain(typed)
            .filter(|line| is_telling(line))
    }
}

/// It says something: it is neither the mark of a block nor a bracket or the like, such as many texts have.
fn is_telling(line: &str) -> bool {
    const MARKS: [&str; 4] = ["", "sh", "yaml", "yaml task"];
    let mark = ["```", "~~~"]
        .iter()
        .find_map(|fence| line.strip_prefix(fence));
    let says = |letter: char| letter.is_alphanumeric() || "/*?$".contains(letter);
    line.contains(says) && mark.is_none_or(|mark| !MARKS.contains(&mark.trim()))
}

/// Without what quotes it, or makes a comment of it.
fn bare(line: &str) -> &str {
    let line = line.trim_start_matches(|letter: char| letter == '>' || letter.is_whitespace());
    line.trim_start_matches("<!--")
        .trim()
        .trim_end_matches("-->")
        .trim()
}

/// What the file at `path` is called, of the board in `folder`.
pub(super) fn file_name(path: &Path, folder: &Path) -> String {
    let above = [Some(folder), folder.parent()].into_iter().flatten();
    let within = above
        .into_iter()
        .find_map(|above| path.strip_prefix(above).ok());
    within.unwrap_or(path).to_string_lossy().into_owned()
}

/// What is known of some parts, and of what stood in their places.
#[derive(Default)]
pub struct Origins {
    made: HashSet<Digest>,
    /// By name, what was last made here or trusted.
    was: HashMap<String, String>,
    /// What HEAD holds, by name.
    head: HashMap<String, Digest>,
    /// What git has brought of the parts that were asked for.
    brought: Vec<Digest>,
}

/// By this it is known that git has brought what `digest` is of, also when git tells of that no more.
pub(super) fn brought(digest: &Digest) -> Digest {
    digest.of_kind("brought")
}

/// By this it is known that what git holds as `committed` stood under something that was trusted: it is not trusted itself, and
/// what a person makes of it is.
pub(super) fn overruled(committed: &Digest) -> Digest {
    committed.of_kind("overruled")
}

/// By this it is known that a person has trusted what came with this clone.
pub(super) fn agreed() -> Digest {
    Digest::of("clone", "agreed")
}

impl Origins {
    /// Of the `parts`, each of which stands in the file that `places` has for it; `known` are those beside them that are trusted.
    pub(super) fn of(
        site: &Site,
        parts: &[&Clause],
        places: &[&Path],
        known: &[Clause],
        trusted: &Trusted,
    ) -> Result<Origins, Error> {
        let repository = site.repository()?;
        let dir = site.board.dir();
        let all = [FILE, SCHEDULES, "templates", "queues", KNOWLEDGE].map(|name| dir.join(name));
        let within = |path: &Path| {
            let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            path.strip_prefix(repository.main_worktree())
                .map(Path::to_owned)
                .ok()
        };
        let told_of = |path: &Path| within(path).filter(|path| repository.tells_of(path));
        let Some(mut paths) = all
            .iter()
            .map(|path| told_of(path))
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
            .map(|file| (file, told_of(file)))
            .collect();
        // What is below the board's folders is looked at anyway.
        let mut others: Vec<PathBuf> = is_told.values().flatten().cloned().collect();
        others.retain(|path| !paths.iter().any(|above| path.starts_with(above)));
        others.sort();
        paths.extend(others);
        // Of another repository's file nothing is told.
        let (asked, untold): (Vec<_>, Vec<_>) = parts
            .iter()
            .zip(places)
            .partition(|(_, place)| is_told[**place].is_some());
        let asked: Vec<&Clause> = asked.into_iter().map(|(part, _)| *part).collect();
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

    pub fn is_made_here(&self, part: &Clause) -> bool {
        self.made.contains(&part.digest)
    }

    /// Those of the parts that git has brought as they stand.
    pub(super) fn brought(&self) -> &[Digest] {
        &self.brought
    }

    /// What HEAD holds in its place.
    pub(super) fn committed(&self, part: &Clause) -> Option<Digest> {
        part.names().find_map(|name| self.head.get(name)).cloned()
    }

    /// What stood in its place when that was last made here or trusted.
    pub fn was(&self, part: &Clause) -> Option<String> {
        self.was.get(&part.name).cloned()
    }
}

/// Names and lines of what is asked for: what has none of them has nothing to do with it.
struct Sought {
    names: HashSet<String>,
    lines: HashSet<String>,
}

impl Sought {
    fn of(parts: &[&Clause]) -> Sought {
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

    fn wants(&self, part: &Clause) -> bool {
        part.names().any(|name| self.names.contains(name))
            || part.telling().any(|line| self.lines.contains(line))
    }
}

/// Who had a line first, of all that the board says and has said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Person,
    Others,
    /// Whoever it was, a person has trusted it.
    Trusted,
}

/// The lines that are asked for, wherever they stand.
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

    fn are_of_others(&self, part: &Clause) -> bool {
        part.telling()
            .any(|line| self.authors.get(line) == Some(&Author::Others))
    }
}

/// What has come so far.
struct CloneHistory<'t> {
    trusted: &'t Trusted,
    wanted: Sought,
    /// The board's, from the root of the work tree.
    folder: PathBuf,
    brought: HashSet<Digest>,
    lines: LineAuthors,
    /// By name, each line of what was brought or made, and which follows which: whether somebody here had it first, or has trusted it.
    named: HashMap<String, HashMap<String, bool>>,
    /// Names that HEAD held and holds no more, and by what they went.
    gone: HashMap<String, Carrier>,
    /// By name, the lines of what was last made here or trusted, and those that others have taken out of it.
    own: HashMap<String, Vec<String>>,
    taken: HashMap<String, HashSet<String>>,
    /// Each text is read once, and so is each item as it stands, below the front matter of its queue.
    read: HashMap<(PathBuf, *const u8), Vec<Rc<Clause>>>,
    items: HashMap<String, Vec<Rc<Clause>>>,
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
        let mut parts: Vec<Rc<Clause>> = Vec::new();
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

    /// Of a text that is new, and of the parts in it. Only what a person has trusted is theirs whoever had it first.
    fn note_lines(&mut self, text: &str, parts: &[Rc<Clause>], carrier: Carrier) {
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

    fn is_settled(&self, part: &Clause) -> bool {
        let is_known =
            self.brought.contains(&part.digest) || self.origins.made.contains(&part.digest);
        is_known || self.trusted.has(&part.digest)
    }

    /// Whoever had it first counts; a person, unless they changed what git had brought and nobody has trusted, or have lines of it.
    fn settle(&mut self, part: &Clause, carrier: Carrier) {
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

    /// HEAD holds it still, or whoever took it away did so here.
    fn is_gone_by_hand(&self, name: &str) -> bool {
        self.origins.head.contains_key(name)
            || self
                .gone
                .get(name)
                .is_none_or(|carrier| *carrier == Carrier::Commit)
    }

    /// It has a line that others have added to what was here, or had first, or it lacks one that they have taken out of it.
    fn is_mixed(&self, part: &Clause) -> bool {
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

    /// What of a text has to do with what is asked for.
    fn parts_of(&mut self, path: &Path, text: &str) -> Vec<Rc<Clause>> {
        let wanted = &self.wanted;
        let is_wanted = |part: Clause| Some(part).filter(|part| wanted.wants(part)).map(Rc::new);
        let name = path
            .strip_prefix(&self.folder)
            .ok()
            .map(|name| name.to_string_lossy());
        if let Some(name) = name.as_ref().filter(|name| name.starts_with(KNOWLEDGE)) {
            let part = learning::parse(text).map(|learning| Clause::of_learning(name, &learning));
            return part.ok().and_then(is_wanted).into_iter().collect();
        }
        if let Some(name) = name.as_ref().filter(|name| !name.starts_with("queues")) {
            // Empty settings are none.
            let part = (!text.is_empty()).then(|| Clause::of_file(name, text.to_owned()));
            return part.and_then(is_wanted).into_iter().collect();
        }
        // A link's text is where it leads.
        let link = name
            .filter(|_| !text.contains('\n'))
            .map(|name| Clause::of_link(&name, text));
        let (document, _) = parse(text);
        let said = document.front_text();
        let file = file_name(path, &self.folder);
        let prose = Clause::of_prose(&document, &file);
        let front = Clause::of_front(document.front(), file, said.to_owned());
        let mut found: Vec<Rc<Clause>> = link
            .into_iter()
            .chain(front)
            .chain(prose)
            .filter_map(is_wanted)
            .collect();
        for item in document.items() {
            let block = document.block(item);
            let key = format!("{said}\0{}\0{block}", item.status);
            // Whichever way the roles of now have it read.
            let read = || {
                let readings = [Some(item.clone()), with_role_in_title(&document, item)]
                    .into_iter()
                    .flatten();
                let clauses = readings
                    .map(|item| Clause::of_item(&document.task_of(&item), block.to_owned()));
                clauses.filter_map(is_wanted).collect()
            };
            found.extend(self.items.entry(key).or_insert_with(read).clone());
        }
        found
    }
}
