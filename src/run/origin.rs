//! Where words of the board came from: made in this clone, or brought by git.
//!
//! What nobody has committed was made here. Of what is in a commit counts who had it first: a commit that was made here, or a
//! clone, a pull, a switch, a fetch. Whoever edits what git has brought, and nobody has trusted, does not make it theirs by that,
//! and neither does git where it puts lines of it among others.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::error::Error;
use super::site::Site;
use crate::board::document::parse;
use crate::board::front::{Front, read};
use crate::board::task::{Task, TaskId};
use crate::config::FILE;
use crate::git::{Arrival, Carrier};
use crate::store::{Digest, Trusted};

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
    is_front: bool,
}

impl Clause {
    /// The file `name` of the board, which says `text`.
    pub fn of_file(name: &str, text: String) -> Clause {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        let (digest, title) = (Digest::of(name, &text), None);
        Clause { digest, name: name.to_owned(), text, title, lines, is_front: false }
    }

    /// What `task` says, with the defaults of its queue; `text` is how it stands there.
    pub fn of_item(task: &Task, text: String) -> Clause {
        let name = if task.id == TaskId::nobody() { task.title.clone() } else { task.id.to_string() };
        let digest = Digest::of("item", &task.wording());
        Clause { digest, name, text, title: Some(task.title.clone()), lines: task.wording_lines(), is_front: false }
    }

    /// What the queue in the file `name` says of all its items, and to a planner; `None` if that is nothing.
    pub fn of_front(front: &Front, name: String, text: String) -> Option<Clause> {
        let words = front.wording();
        let lines = words.replace("\\n", "\n").lines().map(|line| line.trim().to_owned()).collect();
        let digest = Digest::of("front", &words);
        (!words.is_empty()).then_some(Clause { digest, name, text, title: None, lines, is_front: true })
    }

    /// The names under which it may have been known: its own, and that of an item which had no ID yet.
    fn names(&self) -> impl Iterator<Item = &String> {
        [Some(&self.name), self.title.as_ref()].into_iter().flatten()
    }

    /// Its lines that say something by themselves.
    fn telling(&self) -> impl Iterator<Item = &String> {
        self.lines.iter().filter(|line| line.contains(char::is_alphanumeric) && !line.ends_with(['[', '{']))
    }

    /// Each of its lines stands in `text`, be it as no item.
    fn stands_in(&self, text: &str) -> bool {
        let typed = self.text.lines().skip(1).map(str::trim).filter(|line| line.contains(char::is_alphanumeric));
        self.title.as_deref().into_iter().chain(typed).all(|line| text.contains(line))
    }
}

/// What the file at `path` is called, of the board in `folder`.
pub(super) fn file_name(path: &Path, folder: &Path) -> String {
    let above = [Some(folder), folder.parent()].into_iter().flatten();
    let within = above.into_iter().find_map(|above| path.strip_prefix(above).ok());
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
    /// Of the `parts`, each of which stands in the file that `places` has for it.
    pub(super) fn of(site: &Site, parts: &[&Clause], places: &[&Path], trusted: &Trusted) -> Result<Origins, Error> {
        let repository = site.repository()?;
        let dir = site.board.dir();
        let all = [FILE, "templates", "queues"].map(|name| dir.join(name));
        let within = |path: &Path| {
            let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            path.strip_prefix(repository.main_worktree()).map(Path::to_owned).ok()
        };
        let told_of = |path: &Path| within(path).filter(|path| repository.tells_of(path));
        let Some(mut paths) = all.iter().map(|path| told_of(path)).collect::<Option<Vec<PathBuf>>>() else {
            let brought = parts.iter().map(|part| part.digest.clone()).collect();
            return Ok(Origins { brought, ..Origins::default() });
        };
        let files: HashSet<&Path> = places.iter().copied().collect();
        let is_told: HashMap<&Path, Option<PathBuf>> = files.into_iter().map(|file| (file, told_of(file))).collect();
        // What is below the board's folders is looked at anyway.
        let mut others: Vec<PathBuf> = is_told.values().flatten().cloned().collect();
        others.retain(|path| !paths.iter().any(|above| path.starts_with(above)));
        others.sort();
        paths.extend(others);
        // Of another repository's file nothing is told.
        let (asked, untold): (Vec<_>, Vec<_>) =
            parts.iter().zip(places).partition(|(_, place)| is_told[**place].is_some());
        let asked: Vec<&Clause> = asked.into_iter().map(|(part, _)| *part).collect();
        let untold = untold.into_iter().map(|(part, _)| part.digest.clone());
        let folder = within(dir).unwrap_or_default();
        let arrivals = repository.arrivals(&paths)?;
        let of_head = arrivals.iter().rev().find(|arrival| arrival.carrier != Carrier::Fetch);
        let mut wanted = Sought::of(&asked);
        wanted.add_like(&asked, of_head.map_or(&[][..], |arrival| &arrival.files));
        let mut told = CloneHistory::new(trusted, wanted, folder);
        for arrival in &arrivals {
            told.take(arrival);
        }
        let mut moved =
            arrivals.iter().filter(|arrival| arrival.carrier != Carrier::Fetch && !arrival.files.is_empty());
        let is_cloned = moved.next().is_some_and(|first| first.carrier == Carrier::Move);
        let is_agreed = !is_cloned || trusted.has(&agreed());
        let others = told.lines_of_others();
        for part in &asked {
            if !told.is_settled(part) && (!is_agreed || told.is_of_others(part, &others)) {
                told.brought.insert(part.digest.clone());
            }
        }
        let came = asked.iter().map(|part| &part.digest).filter(|digest| told.brought.contains(digest));
        told.origins.brought = came.cloned().chain(untold).collect();
        for part in asked {
            told.settle(part, Carrier::Commit);
        }
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

/// Names and words by which texts are passed over that have nothing to do with what is asked.
struct Sought {
    names: HashSet<String>,
    titles: HashSet<String>,
    /// What queues say of all their items.
    fronts: bool,
}

impl Sought {
    fn of(parts: &[&Clause]) -> Sought {
        let title =
            |part: &&Clause| parse(&part.text).0.items().first().map(|item| part.text[item.title.clone()].to_owned());
        let titles = parts.iter().filter_map(title).collect();
        let fronts = parts.iter().any(|part| part.is_front);
        Sought { names: parts.iter().map(|part| part.name.clone()).collect(), titles, fronts }
    }

    /// Also items that say a line which one of the parts says.
    fn add_like(&mut self, parts: &[&Clause], files: &[(PathBuf, Rc<str>)]) {
        let said: HashSet<&String> = parts.iter().flat_map(|part| part.telling()).collect();
        for (_, text) in files {
            let (document, _) = parse(text);
            for item in document.items() {
                let task = document.task_of(item);
                let part = Clause::of_item(&task, String::new());
                if part.telling().any(|line| said.contains(line)) {
                    self.names.insert(part.name);
                    self.titles.insert(task.title);
                }
            }
        }
    }

    fn wants(&self, name: &str, title: &str) -> bool {
        self.names.contains(name) || self.titles.contains(title)
    }

    /// A few words are looked for before a text is read.
    fn may_be_in(&self, text: &str) -> bool {
        self.names.len() > 16 || self.names.iter().chain(&self.titles).any(|word| text.contains(word.as_str()))
    }
}

/// What has come so far.
struct CloneHistory<'t> {
    trusted: &'t Trusted,
    wanted: Sought,
    /// The board's, from the root of the work tree.
    folder: PathBuf,
    brought: HashSet<Digest>,
    /// By name, each line of what was brought or made: whether somebody here had it first, or has trusted it.
    lines: HashMap<String, HashMap<String, bool>>,
    /// By name, the lines of what was last made here or trusted, and those that others have taken out of it.
    own: HashMap<String, Vec<String>>,
    taken: HashMap<String, HashSet<String>>,
    /// Of HEAD.
    head: Vec<Clause>,
    /// What git has brought as a whole.
    texts: Vec<Rc<str>>,
    origins: Origins,
}

impl<'t> CloneHistory<'t> {
    fn new(trusted: &'t Trusted, wanted: Sought, folder: PathBuf) -> CloneHistory<'t> {
        let (brought, lines, own, taken) = Default::default();
        let (head, texts, origins) = Default::default();
        CloneHistory { trusted, wanted, folder, brought, lines, own, taken, head, texts, origins }
    }

    fn take(&mut self, arrival: &Arrival) {
        let parts: Vec<Clause> = arrival.files.iter().flat_map(|(path, text)| self.parts_of(path, text)).collect();
        for part in &parts {
            self.settle(part, arrival.carrier);
        }
        if arrival.carrier != Carrier::Commit {
            let new = arrival.files.iter().filter(|(_, text)| !self.texts.iter().any(|known| Rc::ptr_eq(known, text)));
            let new: Vec<Rc<str>> = new.map(|(_, text)| Rc::clone(text)).collect();
            self.texts.extend(new);
        }
        if arrival.carrier != Carrier::Fetch {
            self.origins.head = parts.iter().map(|part| (part.name.clone(), part.digest.clone())).collect();
            self.head = parts;
        }
    }

    fn is_settled(&self, part: &Clause) -> bool {
        let is_known = self.brought.contains(&part.digest) || self.origins.made.contains(&part.digest);
        is_known || self.trusted.has(&part.digest)
    }

    /// Whoever had it first counts; a person, unless they changed what git had brought and nobody has trusted, or have lines of it.
    fn settle(&mut self, part: &Clause, carrier: Carrier) {
        if !self.is_settled(part) {
            let before = self.origins.committed(part);
            let is_brought = |before: &Digest| self.brought.contains(before) && !self.trusted.has(&overruled(before));
            let rests_on_brought = before.as_ref().is_some_and(is_brought);
            let is_by_hand = carrier == Carrier::Commit && !self.trusted.has(&brought(&part.digest));
            if is_by_hand && !rests_on_brought && !self.is_mixed(part) {
                self.origins.made.insert(part.digest.clone());
            } else {
                self.brought.insert(part.digest.clone());
                let own = part.names().filter_map(|name| self.own.get(name)).flatten();
                let gone: Vec<String> = own.filter(|line| !part.lines.contains(line)).cloned().collect();
                self.taken.entry(part.name.clone()).or_default().extend(gone);
            }
        }
        let is_own = !self.brought.contains(&part.digest);
        let is_seen = self.trusted.has(&part.digest) || self.trusted.has(&overruled(&part.digest));
        let lines = self.lines.entry(part.name.clone()).or_default();
        for line in &part.lines {
            *lines.entry(line.clone()).or_insert(is_own) |= is_seen;
        }
        if is_own {
            self.own.insert(part.name.clone(), part.lines.clone());
            self.origins.was.insert(part.name.clone(), part.text.clone());
        }
    }

    /// It has a line that others have added to what was here, or lacks one that they have taken out of it.
    fn is_mixed(&self, part: &Clause) -> bool {
        let has = |lines: &HashMap<String, bool>| part.lines.iter().any(|line| lines.get(line) == Some(&false));
        let own = || part.names().filter_map(|name| self.own.get(name)).flatten();
        let lacks = |taken: &HashSet<String>| own().any(|line| taken.contains(line) && !part.lines.contains(line));
        part.names().any(|name| self.lines.get(name).is_some_and(has) || self.taken.get(name).is_some_and(lacks))
    }

    /// The lines of what HEAD holds, was brought and nobody has trusted, that stand in nothing that is trusted or was made here.
    fn lines_of_others(&self) -> HashSet<String> {
        let is_known =
            |part: &&Clause| !self.brought.contains(&part.digest) || self.trusted.has(&overruled(&part.digest));
        let (known, others): (Vec<&Clause>, Vec<&Clause>) = self.head.iter().partition(is_known);
        let known: HashSet<&String> = known.into_iter().flat_map(Clause::telling).collect();
        let own: HashSet<&String> = self.own.values().flatten().collect();
        let others = others.into_iter().filter(|part| part.title.is_some()).flat_map(Clause::telling);
        others.filter(|line| !known.contains(line) && !own.contains(line)).cloned().collect()
    }

    /// What stands there and was never committed is made of what others have brought. It has lines of an item that HEAD holds, under
    /// whatever name, or it was there before as no item (in a fence that is closed now).
    fn is_of_others(&self, part: &Clause, others: &HashSet<String>) -> bool {
        let is_new = part.title.is_some() && self.origins.committed(part).is_none();
        part.title.is_some() && part.telling().any(|line| others.contains(line))
            || is_new && self.texts.iter().any(|text| part.stands_in(text))
    }

    fn parts_of(&self, path: &Path, text: &str) -> Vec<Clause> {
        if let Ok(name) = path.strip_prefix(&self.folder)
            && !name.starts_with("queues")
        {
            let name = name.to_string_lossy();
            let is_wanted = self.wanted.names.contains(name.as_ref());
            return is_wanted.then(|| Clause::of_file(&name, text.to_owned())).into_iter().collect();
        }
        let front = self.wanted.fronts.then(|| {
            let (front, end) = read(text, &mut Vec::new());
            Clause::of_front(&front, file_name(path, &self.folder), text[..end].to_owned())
        });
        let mut found: Vec<Clause> = front.flatten().into_iter().collect();
        if !self.wanted.may_be_in(text) {
            return found;
        }
        let (document, _) = parse(text);
        let name = |item: &crate::board::document::Item<'_>| {
            item.id.as_ref().map_or_else(|| document.title(item).to_owned(), ToString::to_string)
        };
        let items = document.items().iter().filter(|item| self.wanted.wants(&name(item), document.title(item)));
        found.extend(items.map(|item| Clause::of_item(&document.task_of(item), document.block(item).to_owned())));
        found
    }
}
