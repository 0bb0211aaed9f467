//! Where words of the board came from: made in this clone, or brought by git.
//!
//! What nobody has committed was made here. Of what is in a commit counts who had it first: a commit that was made here, or a
//! clone, a pull, a switch, a fetch. Whoever edits what git has brought, and nobody has trusted, does not make it theirs by that,
//! and neither does git where it puts lines of it among others.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

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
    /// What it says, line by line.
    lines: Vec<String>,
    is_front: bool,
}

impl Clause {
    /// The file `name` of the board, which says `text`.
    pub fn of_file(name: &str, text: String) -> Clause {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        Clause { digest: Digest::of(name, &text), name: name.to_owned(), text, lines, is_front: false }
    }

    /// What `task` says, with the defaults of its queue; `text` is how it stands there.
    pub fn of_item(task: &Task, text: String) -> Clause {
        let name = if task.id == TaskId::nobody() { task.title.clone() } else { task.id.to_string() };
        let digest = Digest::of("item", &task.wording());
        Clause { digest, name, text, lines: task.wording_lines(), is_front: false }
    }

    /// What the queue in the file `name` says of all its items, and to a planner; `None` if that is nothing.
    pub fn of_front(front: &Front, name: String, text: String) -> Option<Clause> {
        let words = front.wording();
        let lines = words.replace("\\n", "\n").lines().map(|line| line.trim().to_owned()).collect();
        let digest = Digest::of("front", &words);
        (!words.is_empty()).then_some(Clause { digest, name, text, lines, is_front: true })
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
            return Ok(Origins::default());
        };
        let mut asked = Vec::new();
        for (part, place) in parts.iter().zip(places) {
            // Of another repository's file nothing is told.
            let Some(path) = told_of(place) else { continue };
            asked.push(*part);
            // What is below the board's folders is looked at anyway.
            if !paths.iter().any(|above| path.starts_with(above)) {
                paths.push(path);
            }
        }
        let folder = within(dir).unwrap_or_default();
        let wanted = Sought::of(&asked);
        let (brought, lines, origins) = Default::default();
        let mut told = CloneHistory { trusted, wanted, folder, brought, lines, origins };
        for arrival in repository.arrivals(&paths)? {
            told.take(&arrival);
        }
        let came = asked.iter().map(|part| &part.digest).filter(|digest| told.brought.contains(digest));
        told.origins.brought = came.cloned().collect();
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
        self.head.get(&part.name).cloned()
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
    origins: Origins,
}

impl CloneHistory<'_> {
    fn take(&mut self, arrival: &Arrival) {
        let parts: Vec<Clause> = arrival.files.iter().flat_map(|(path, text)| self.parts_of(path, text)).collect();
        for part in &parts {
            self.settle(part, arrival.carrier);
        }
        if arrival.carrier != Carrier::Fetch {
            self.origins.head = parts.into_iter().map(|part| (part.name, part.digest)).collect();
        }
    }

    /// Whoever had it first counts; a person, unless they changed what git had brought and nobody has trusted, or have lines of it.
    fn settle(&mut self, part: &Clause, carrier: Carrier) {
        let is_settled = self.brought.contains(&part.digest) || self.origins.made.contains(&part.digest);
        let is_trusted = self.trusted.has(&part.digest);
        if !is_settled && !is_trusted {
            let before = self.origins.head.get(&part.name);
            let is_brought = |before: &Digest| self.brought.contains(before) && !self.trusted.has(&overruled(before));
            let rests_on_brought = before.is_some_and(is_brought);
            let is_by_hand = carrier == Carrier::Commit && !self.trusted.has(&brought(&part.digest));
            if is_by_hand && !rests_on_brought && !self.has_lines_of_others(part) {
                self.origins.made.insert(part.digest.clone());
            } else {
                self.brought.insert(part.digest.clone());
            }
        }
        let is_own = !self.brought.contains(&part.digest);
        let is_seen = is_trusted || self.trusted.has(&overruled(&part.digest));
        let lines = self.lines.entry(part.name.clone()).or_default();
        for line in &part.lines {
            *lines.entry(line.clone()).or_insert(is_own) |= is_seen;
        }
        if is_own {
            self.origins.was.insert(part.name.clone(), part.text.clone());
        }
    }

    fn has_lines_of_others(&self, part: &Clause) -> bool {
        let lines = self.lines.get(&part.name);
        lines.is_some_and(|lines| part.lines.iter().any(|line| lines.get(line) == Some(&false)))
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
