//! The parts of the board that may be run here, or shown to an agent: those that a person has trusted, and those made
//! in this clone.
//!
//! Checked before anything is started. The caller passes settings and items as it has read them, and the answer depends
//! on their text alone, so nothing can change in between.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::error::Error;
use super::provenance::{
    Origins, TrustUnit, agreed, brought, file_name, first_carriers, overruled,
};
use super::workspace::Workspace;
use crate::runner::programs::obeyed_by_any;
use tavern_core::document::{Document, open};
use tavern_core::eligible::{Doubt, Untrusted, for_roles};
use tavern_core::front;
use tavern_core::learning::Learning;
use tavern_core::task::{Status, Task};
use tavern_git::Carrier;
use tavern_store::config::{FILE, SCHEDULES};
use tavern_store::{Board, Digest, KNOWLEDGE, Queue, Trusted};
use tavern_sys::files;

/// The trusted units, as known while this value lives.
pub struct Trust<'s> {
    workspace: &'s Workspace,
    trusted: RefCell<Option<Trusted>>,
    settings: OnceCell<Result<(), Untrusted>>,
    /// Parts found not to be made here.
    look: OnceCell<HashMap<Digest, Doubt>>,
}

/// An untrusted part of the board, which came from elsewhere.
#[derive(Clone, Debug)]
pub struct UntrustedUnit {
    pub part: TrustUnit,
    /// Its file, and the line of an item, counted from 1.
    pub place: PathBuf,
    pub line: Option<usize>,
    /// Its text when it was last trusted.
    pub was: Option<String>,
    /// Whether an agent would take it as it stands.
    is_open: bool,
    /// The digest of git's version of it.
    committed: Option<Digest>,
}

impl UntrustedUnit {
    fn of(part: TrustUnit, place: PathBuf, line: Option<usize>) -> UntrustedUnit {
        UntrustedUnit {
            part,
            place,
            line,
            was: None,
            is_open: true,
            committed: None,
        }
    }
}

impl<'s> Trust<'s> {
    pub fn of(workspace: &'s Workspace) -> Trust<'s> {
        let (trusted, settings, look) = Default::default();
        Trust {
            workspace,
            trusted,
            settings,
            look,
        }
    }

    /// Checks config.yaml, as this program has read it, and the board's templates.
    pub fn settings(&self) -> Result<(), Untrusted> {
        let look = || self.refuse(settings(self.workspace));
        self.settings.get_or_init(look).clone()
    }

    /// Checks the settings, and the item's text.
    pub fn item(&self, task: &Task) -> Result<(), Untrusted> {
        self.settings()?;
        if self.knows(task) {
            Ok(())
        } else {
            self.refuse([TrustUnit::of_item(task, String::new())])
        }
    }

    /// Returns true if the item's whole text is known to be trusted. Does not ask git, so others need not wait for it.
    pub fn knows(&self, task: &Task) -> bool {
        self.workspace.board.trusts_all()
            || self.with_trusted(|trusted| trusted.has(&TrustUnit::digest_of(task)))
    }

    /// Checks the queue's front matter, which applies to all its items and is shown to planners.
    pub fn front(&self, document: &Document<'_>) -> Result<(), Untrusted> {
        self.refuse(front(document, "the front matter of its queue".to_owned()))
    }

    /// Checks the text around the items of `document`.
    pub fn prose(&self, document: &Document<'_>) -> Result<(), Untrusted> {
        self.refuse(TrustUnit::of_prose(document, "its queue"))
    }

    /// Checks the file of the learning `id`.
    pub fn learning(&self, id: &str, learning: &Learning) -> Result<(), Untrusted> {
        self.refuse([of_learning(id, learning)])
    }

    /// Checks the board's schedules.
    pub fn schedules(&self, text: &str) -> Result<(), Untrusted> {
        self.refuse([TrustUnit::of_file(SCHEDULES, text.to_owned())])
    }

    /// Checks the settings, the item, and the front matter of its queue.
    ///
    /// # Errors
    /// Not all of it is trusted, or the queue can't be read.
    pub fn item_of(&self, queue: &Queue, task: &Task) -> Result<(), Error> {
        let text = self.workspace.board.read(queue)?.content;
        let (_, body) = front::read(&text, &mut Vec::new());
        self.front(&open(&text[..body]))?;
        Ok(self.item(task)?)
    }

    /// Checks the files of `folder`, a checkout or worktree, that an agent program obeys: its [`Runner::obeyed_files`].
    ///
    /// [`Runner::obeyed_files`]: crate::runner::Runner::obeyed_files
    pub fn program(&self, folder: &Path, files: &[&str]) -> Result<(), Untrusted> {
        self.refuse(obeyed(folder, files).into_iter().map(|(part, _)| part))
    }

    /// Returns all untrusted parts of the board and of the named files.
    pub fn unknown(&self) -> Vec<UntrustedUnit> {
        self.look()
    }

    /// Refuses to begin with `queues` if the settings, or an open part of these queues, are untrusted.
    pub fn queues(&self, queues: &[Queue]) -> Result<(), Untrusted> {
        if self.workspace.board.trusts_all() {
            return Ok(());
        }
        let files: Vec<PathBuf> = queues.iter().map(place).collect();
        let mut unknown = self.unknown();
        unknown.retain(|one| one.is_open && (one.line.is_none() || files.contains(&one.place)));
        let Some(doubt) = unknown.iter().map(|one| self.came(one)).min() else {
            return Ok(());
        };
        Err(Untrusted {
            what: unknown.into_iter().map(|one| one.part.name).collect(),
            doubt,
        })
    }

    /// Trusts these parts from now on.
    pub fn allow(&self, unknown: impl IntoIterator<Item = UntrustedUnit>) -> Result<(), Error> {
        let digests = unknown.into_iter().flat_map(|one| {
            let before = one
                .committed
                .filter(|committed| *committed != one.part.digest);
            [Some(one.part.digest), before.as_ref().map(overruled)]
                .into_iter()
                .flatten()
        });
        Ok(self.with_trusted(|trusted| trusted.add(digests.chain([agreed()])))?)
    }

    /// Revokes all trust, except in units that were made here.
    pub fn forget(&self) -> Result<bool, Error> {
        Ok(self.with_trusted(Trusted::forget)?)
    }

    fn refuse(&self, parts: impl IntoIterator<Item = TrustUnit>) -> Result<(), Untrusted> {
        if self.workspace.board.trusts_all() {
            return Ok(());
        }
        let parts: Vec<TrustUnit> = parts.into_iter().collect();
        let is_known = |part: &TrustUnit| self.with_trusted(|trusted| trusted.has(&part.digest));
        if parts.iter().all(is_known) {
            return Ok(());
        }
        // Looking remembers units that were made here. Changes from git and unreadable units stay untrusted.
        let look = || {
            self.look()
                .iter()
                .map(|one| (one.part.digest.clone(), self.came(one)))
                .collect()
        };
        let found = self.look.get_or_init(look);
        let is_told =
            |part: &TrustUnit| self.with_trusted(|trusted| trusted.has(&brought(&part.digest)));
        let came = |part: &TrustUnit| match found.get(&part.digest) {
            Some(came) => *came,
            None if is_told(part) => Doubt::ByGit,
            None => Doubt::Since,
        };
        let unknown: Vec<TrustUnit> = parts.into_iter().filter(|part| !is_known(part)).collect();
        let Some(doubt) = unknown.iter().map(came).min() else {
            return Ok(());
        };
        Err(Untrusted {
            what: unknown.into_iter().map(|part| part.name).collect(),
            doubt,
        })
    }

    /// Returns where an untrusted part came from.
    fn came(&self, one: &UntrustedUnit) -> Doubt {
        let root = fs::canonicalize(self.workspace.board.root());
        if root.is_ok_and(|root| !one.place.starts_with(root)) {
            Doubt::FromOutside
        } else {
            Doubt::ByGit
        }
    }

    /// Finds out where all unknown parts came from, and remembers those made here. Returns the others.
    fn look(&self) -> Vec<UntrustedUnit> {
        let mut unknown = self.look_at_board();
        unknown.extend(self.look_at_programs());
        unknown
    }

    /// The same for the files of the repository that agent programs obey.
    fn look_at_programs(&self) -> Vec<UntrustedUnit> {
        let files = obeyed_by_any();
        let mut unknown = obeyed(self.workspace.board.root(), &files);
        unknown.retain(|(part, _)| !self.with_trusted(|trusted| trusted.has(&part.digest)));
        if unknown.is_empty() {
            return Vec::new();
        }
        // If git fails, they count as brought by it.
        let firsts = first_carriers(self.workspace, &files).ok();
        let is_made = |part: &TrustUnit| {
            firsts.as_ref().is_some_and(|firsts| {
                let committed = firsts.last.get(&part.name);
                let is_known = |digest: &Digest| {
                    firsts.carriers.get(digest) == Some(&Carrier::Commit)
                        || self.with_trusted(|trusted| trusted.has(digest))
                };
                // Uncommitted edits are as good as the text below.
                committed.is_none_or(is_known)
            })
        };
        let (made, unknown): (Vec<_>, Vec<_>) =
            unknown.into_iter().partition(|(part, _)| is_made(part));
        self.with_trusted(|trusted| {
            let made = made.iter().map(|(part, _)| part.digest.clone());
            if !self.workspace.board.is_dry() {
                // If this write fails, the next look repeats it.
                drop(trusted.add(made.clone()));
            }
            trusted.suppose(made);
        });
        // Programs are kept from obeying them, or wait.
        let closed = |(part, place)| UntrustedUnit {
            is_open: false,
            ..UntrustedUnit::of(part, place, None)
        };
        unknown.into_iter().map(closed).collect()
    }

    fn look_at_board(&self) -> Vec<UntrustedUnit> {
        let is_trusted =
            |one: &UntrustedUnit| self.with_trusted(|trusted| trusted.has(&one.part.digest));
        let (known, mut unknown): (Vec<UntrustedUnit>, Vec<UntrustedUnit>) =
            standing(self.workspace).into_iter().partition(is_trusted);
        if unknown.is_empty() {
            return unknown;
        }
        let parts: Vec<&TrustUnit> = unknown.iter().map(|one| &one.part).collect();
        let paths: Vec<&Path> = unknown.iter().map(|one| one.place.as_path()).collect();
        let known: Vec<TrustUnit> = known.into_iter().map(|one| one.part).collect();
        // If git fails, a part counts as brought by it.
        let origins = self
            .with_trusted(|trusted| Origins::of(self.workspace, &parts, &paths, &known, trusted));
        let origins = origins.unwrap_or_default();
        let made: Vec<Digest> = parts
            .iter()
            .filter(|part| origins.is_made_here(part))
            .map(|part| part.digest.clone())
            .collect();
        let is_made: HashSet<Digest> = made.iter().cloned().collect();
        // git removes a file before it moves HEAD, so parts that HEAD still holds are looked at again next time.
        let is_leaving =
            |part: &&&TrustUnit| part.is_removal() && origins.committed(part).is_some();
        let leaving: HashSet<&Digest> = parts
            .iter()
            .filter(is_leaving)
            .map(|part| &part.digest)
            .collect();
        let (here, known): (Vec<Digest>, Vec<Digest>) = made
            .into_iter()
            .chain(origins.brought().iter().map(brought))
            .partition(|digest| leaving.contains(digest));
        self.with_trusted(|trusted| {
            if !self.workspace.board.is_dry() {
                // If this write fails, the next look repeats it.
                drop(trusted.add(known.iter().cloned()));
            }
            trusted.suppose(known.into_iter().chain(here));
        });
        unknown.retain(|one| !is_made.contains(&one.part.digest));
        for one in &mut unknown {
            one.was = origins.was(&one.part);
            one.committed = origins.committed(&one.part);
        }
        unknown
    }

    fn with_trusted<R>(&self, then: impl FnOnce(&mut Trusted) -> R) -> R {
        then(
            self.trusted
                .borrow_mut()
                .get_or_insert_with(|| Trusted::of(&self.workspace.board)),
        )
    }
}

/// Trusts items that a person has just added here. This only saves asking git, so a failed write is harmless.
pub fn made_here<'t>(board: &Board, tasks: impl IntoIterator<Item = &'t Task>) {
    if !board.is_dry() {
        drop(Trusted::of(board).add(tasks.into_iter().map(TrustUnit::digest_of)));
    }
}

/// Trusts a learning that was added here, by its text, whichever file it goes to.
pub fn learned_here(board: &Board, learning: &Learning) {
    if !board.is_dry() {
        drop(Trusted::of(board).add([of_learning("", learning).digest]));
    }
}

fn of_learning(id: &str, learning: &Learning) -> TrustUnit {
    TrustUnit::of_learning(&format!("{KNOWLEDGE}/{id}.md"), learning)
}

/// Trusts config.yaml, which Tavern has just written.
pub fn settings_made_here(board: &Board, text: &str) {
    drop(Trusted::of(board).add([TrustUnit::of_file(FILE, text.to_owned()).digest]));
}

/// Returns the front matter of the queue.
fn front(document: &Document<'_>, name: String) -> Option<TrustUnit> {
    TrustUnit::of_front(document.front(), name, document.front_text().to_owned())
}

/// Returns the real path of the queue's file.
fn place(queue: &Queue) -> PathBuf {
    files::real(&queue.path).unwrap_or_else(|_| queue.path.clone())
}

/// Returns the settings: config.yaml and the templates.
fn settings(workspace: &Workspace) -> Vec<TrustUnit> {
    let folder = workspace.board.path("templates");
    let found = WalkDir::new(&folder)
        .sort_by_file_name()
        .into_iter()
        .filter_map(Result::ok);
    let templates = found
        .filter(|entry| entry.file_type().is_file())
        .filter_map(|entry| {
            let name = entry
                .path()
                .strip_prefix(workspace.board.dir())
                .ok()?
                .to_string_lossy()
                .into_owned();
            // An unreadable template can't reach any agent.
            Some(TrustUnit::of_file(
                &name,
                files::read_text(entry.path()).ok()?,
            ))
        });
    let config = Some(&workspace.settings).filter(|text| !text.is_empty());
    let config = config.map(|text| TrustUnit::of_file(FILE, text.clone()));
    let gone = workspace
        .board
        .removed_files()
        .into_iter()
        .filter(|(name, _)| name != FILE || config.is_none());
    let gone: Vec<TrustUnit> = gone
        .map(|(name, was)| TrustUnit::of_removed(&name, &was))
        .collect();
    config
        .into_iter()
        .chain(templates)
        .chain(gone)
        .chain(links(workspace))
        .collect()
}

/// Returns the files in `folder` that agent programs obey, of these files and folders, with their places. One that can't
/// be read is not the same as any other.
fn obeyed(folder: &Path, files: &[&str]) -> Vec<(TrustUnit, PathBuf)> {
    let all = files.iter().flat_map(|file| {
        WalkDir::new(folder.join(file))
            .sort_by_file_name()
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| !entry.file_type().is_dir())
    });
    let part = |path: PathBuf| {
        let name = path.strip_prefix(folder).ok()?.to_string_lossy();
        let unread = || format!("can't be read: {}", uuid::Uuid::new_v4());
        let text = files::read_text(&path).unwrap_or_else(|_| unread());
        Some((TrustUnit::of_file(&name, text), path))
    };
    all.filter_map(|entry| part(entry.into_path())).collect()
}

/// Returns the links that make a file elsewhere a queue.
fn links(workspace: &Workspace) -> Vec<TrustUnit> {
    let folder = workspace.board.path("queues");
    let mut links: Vec<PathBuf> = match files::names_in(&folder) {
        Ok(names) => names
            .into_iter()
            .filter_map(|(name, is_file)| (!is_file).then(|| folder.join(name)))
            .collect(),
        // The folder itself, or one above it, is a link.
        Err(_) => fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .chain([folder])
            .collect(),
    };
    links.sort();
    let clause = |path: PathBuf| {
        let target = fs::read_link(&path).ok()?;
        let name = path
            .strip_prefix(workspace.board.dir())
            .ok()?
            .to_string_lossy();
        Some(TrustUnit::of_link(&name, &target.to_string_lossy()))
    };
    links.into_iter().filter_map(clause).collect()
}

/// Returns all parts of the board that may be run some day.
fn standing(workspace: &Workspace) -> Vec<UntrustedUnit> {
    let unknown = UntrustedUnit::of;
    let mut all: Vec<UntrustedUnit> = settings(workspace)
        .into_iter()
        .map(|part| {
            let place = workspace.board.path(part.file());
            unknown(part, place, None)
        })
        .collect();
    all.extend(workspace.board.knowledge().into_iter().filter_map(|file| {
        let part = of_learning(&file.id, file.learning.as_ref().ok()?);
        // Work does not depend on a learning.
        Some(UntrustedUnit {
            is_open: false,
            ..unknown(part, file.path, None)
        })
    }));
    let schedules = files::read_text(workspace.board.path(SCHEDULES))
        .ok()
        .filter(|text| !text.is_empty());
    all.extend(schedules.map(|text| {
        let part = TrustUnit::of_file(SCHEDULES, text);
        // Nor on the schedules.
        UntrustedUnit {
            is_open: false,
            ..unknown(part, workspace.board.path(SCHEDULES), None)
        }
    }));
    let mut queues: Vec<Queue> = workspace.board.queues().unwrap_or_default();
    queues.extend(
        workspace
            .named
            .iter()
            .filter(|named| !queues.contains(named))
            .cloned()
            .collect::<Vec<_>>(),
    );
    queues.retain(|queue| !workspace.texts.contains_key(&queue.path));
    // An unreadable queue is reported where it is needed.
    let roles = workspace.config.known_roles();
    let read = |queue: &Queue| Some((place(queue), workspace.board.read(queue).ok()?.content));
    let shown = workspace
        .texts
        .iter()
        .map(|(path, text)| (path.clone(), text.clone().into()));
    let folder =
        files::real(workspace.board.dir()).unwrap_or_else(|_| workspace.board.dir().to_owned());
    for (place, text) in queues.iter().filter_map(read).chain(shown) {
        let (document, _) = text.parse();
        let file = file_name(&place, &folder);
        let prose = TrustUnit::of_prose(&document, &file);
        let parts = front(&document, file).into_iter().chain(prose);
        all.extend(parts.map(|part| unknown(part, place.clone(), Some(1))));
        for item in document.items() {
            // A person may chat with the agent of a dead item.
            if item.status.is_unfinished() {
                let part = TrustUnit::of_item(
                    &document.task_of(&for_roles(&document, item, &roles)),
                    document.block(item).to_owned(),
                );
                let is_open = !matches!(item.status, Status::Dead | Status::Draft);
                all.push(UntrustedUnit {
                    is_open,
                    ..unknown(part, place.clone(), Some(item.line))
                });
            }
        }
    }
    all
}
