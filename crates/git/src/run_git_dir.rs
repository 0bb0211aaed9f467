//! The private git directory of a run outside of a sandbox, in place of the worktree's entry: an open cell.
//!
//! All worktrees of a repository share its stash, branches, tags, notes, settings, hooks and clean-up, so an agent's
//! changes there would affect its owner and other agents. In a cell they don't. It reads the repository's objects
//! through `alternates`, and its results are taken over when the run ends.
#![expect(
    clippy::disallowed_methods,
    reason = "git owns the worktrees, and waits for other processes of git"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use git2::{IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag, Oid};
use walkdir::WalkDir;

use super::branch::oid;
use super::history::path_of;
use super::registration::{OWN, Registration, link_to, resolved};
use super::repository::Checkout;
use super::salvage::Index;
use super::sandbox_git_dir::{KEPT, STASHED, given_to, references};
use super::special_files::remove_endless;
use super::tamper_check::{hooks_in, settings_of};
use super::{CommitId, GitError, Head, Repository};
use tavern_sys::clock;
use tavern_sys::files::{self, gone};

/// The state of a work tree beside `HEAD`: files that may exist.
const STATE: [&str; 8] = [
    "index",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "ORIG_HEAD",
    "info/sparse-checkout",
];

/// The same for folders.
const UNDER_WAY: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// A folder in a cell: its initial settings, hooks and the like.
const BEFORE: &str = "tavern-before";

/// A file in git's entry for a worktree: see [`Repository::left_on`].
const LEFT_ON: &str = "tavern-left-on";

/// Message of the entries in a worktree's log that protect commits of its cell.
const HELD: &str = "tavern: held for its run";

/// References of a cell that are not kept beside the item's branch: copies of a remote's, and those that git keeps
/// per worktree.
const PASSED_OVER: [&str; 6] = [
    "refs/remotes/",
    "refs/stash",
    "refs/bisect/",
    "refs/worktree/",
    "refs/rewritten/",
    "refs/tavern/",
];

/// Results of a cell beside the work on the item's branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellLeft {
    pub kept: Vec<KeptRef>,
    /// Changed settings, hooks and the like, in words. They are removed with the cell.
    pub gone: Vec<String>,
    /// Remote-tracking branches that contain its work now, with their tips: it was pushed there.
    pub pushed: Vec<(String, CommitId)>,
}

/// A reference that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRef {
    /// The agent's name for it: `heads/topic`, `tags/v1`, `stash`, `worktrees/inner`.
    pub name: String,
    pub reference: String,
}

impl Repository {
    /// Gives the linked worktree a cell at `cell`, below this repository's git directory, until
    /// [`Repository::leave_cell`]. The path must not exist.
    pub fn enter_cell(&self, worktree: &Path, cell: &Path) -> Result<(), GitError> {
        let entry = self.registered(worktree)?;
        self.fill_cell(worktree, cell)?;
        let common = self.common_dir();
        copy_hooks(common, cell)
            .and_then(|()| keep_settings(common, &cell.join(BEFORE)))
            // Includes, for example, a rebase that an earlier run left.
            .and_then(|()| carry_state(&entry.admin, cell))
            .map_err(GitError::io("write in", cell))?;
        let shared = |name: &str, from: &Path| {
            let made = std::os::unix::fs::symlink(from, cell.join(name));
            made.map_err(GitError::io("write in", cell))
        };
        // Submodules that the agent adds outlive the cell, like existing ones.
        let modules = entry.admin.join("modules");
        fs::create_dir_all(&modules).map_err(GitError::io("make", &modules))?;
        shared("modules", &modules)?;
        let lfs = common.join("lfs");
        if lfs.exists() {
            shared("lfs", &lfs)?;
        }
        let place = cell.strip_prefix(common).unwrap_or(cell);
        let own = entry.admin.join(OWN);
        fs::write(&own, place.as_os_str().as_encoded_bytes())
            .map_err(GitError::io("write", &own))?;
        self.hold_given(&entry, cell)?;
        let link = worktree.join(".git");
        files::write(&link, &link_to(cell)).map_err(GitError::io("write", link))
    }

    /// Protects the commits of the cell's references from a clean-up of the main repository, even if the repository's
    /// own references change. git keeps all commits in the log of a worktree's `HEAD`.
    fn hold_given(&self, entry: &Registration, cell: &Path) -> Result<(), GitError> {
        let (zero, now) = ("0".repeat(40), clock::now().timestamp());
        let ids: BTreeSet<CommitId> = references(&given_to(cell)).into_values().collect();
        let lines: String = ids
            .iter()
            .map(|id| format!("{zero} {id} Tavern <tavern@localhost> {now} +0000\t{HELD}\n"))
            .collect();
        let log = entry.admin.join("logs/HEAD");
        let write = || {
            log.parent().map_or(Ok(()), files::make_folder)?;
            let before = files::read_text(&log).unwrap_or_default();
            files::write(&log, format!("{}{lines}", without_held(&before)).as_bytes())
        };
        write().map_err(GitError::io("write", &log))
    }

    /// Returns the branch in its cell that the worktree's last run ended on; `HEAD` is at its commit now.
    pub fn left_on(&self, worktree: &Path) -> Option<String> {
        files::read_text(self.registered(worktree).ok()?.admin.join(LEFT_ON)).ok()
    }

    /// Returns the current commit of the worktree's cell, if it has one.
    pub fn cell_tip(&self, worktree: &Path) -> Result<Option<CommitId>, GitError> {
        let Some(cell) = self.registered(worktree)?.cell(self.common_dir()) else {
            return Ok(None);
        };
        remove_endless(&cell)?;
        self.see_objects(&cell)?;
        Ok(self.head_in(&cell)?.commit())
    }

    /// Takes over the current objects of the worktree's cell and the item's `branch`, while the run goes on.
    pub fn publish_cell(&self, worktree: &Path, branch: &str) -> Result<(), GitError> {
        let Some(cell) = self.registered(worktree)?.cell(self.common_dir()) else {
            return Ok(());
        };
        let _held = self.hold_clean_up()?;
        remove_endless(&cell)?;
        self.absorb(&cell)?;
        let refs = refs_of(&cell)?;
        self.take_branch(&refs, branch)
    }

    /// Takes over the worktree's cell, and makes the worktree a regular one of this repository again, in its current
    /// state. Other changed branches, tags, notes and the stash are kept at `refs/tavern/cells/`. Idempotent.
    pub fn leave_cell(
        &self,
        worktree: &Path,
        cell: &Path,
        branch: Option<&str>,
    ) -> Result<CellLeft, GitError> {
        let _held = self.hold_clean_up()?;
        let name = worktree
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let entry = match self.registered(worktree) {
            Err(GitError::NotAWorktree { .. }) => None,
            entry => Some(entry?),
        };
        let given = references(&given_to(cell));
        remove_endless(cell)?;
        self.see_objects(cell)?;
        let inner = self.inner_worktrees(cell, worktree, &name)?;
        self.absorb(cell)?;
        if !cell.join("lfs").is_symlink() {
            self.receive_lfs(cell)?;
        }
        let refs = refs_of(cell)?;
        let own = branch.map(|branch| format!("refs/heads/{branch}"));
        let mut kept = self.keep_refs(&name, &given, &refs, own.as_deref())?;
        let stash = stash_of(cell);
        kept.extend(stash.iter().map(|id| KeptRef {
            name: "stash".to_owned(),
            reference: format!("{KEPT}{name}/{STASHED}{id}"),
        }));
        self.keep_stash(&name, &stash)?;
        if let Some(branch) = branch {
            self.take_branch(&refs, branch)?;
        }
        let pushed = self.pushed(&given, &refs, own.as_deref())?;
        let gone = gone_with(cell)?;
        let head = self.head_in(cell);
        match (entry, head) {
            (Some(entry), Ok(head)) => {
                self.stand_as(&entry, cell, &head, own.as_deref())?;
                self.show_hidden(&entry)?;
            }
            (None, Ok(head)) => {
                let at = head.commit();
                at.map_or(Ok(()), |at| self.keep(&format!("{KEPT}{name}/HEAD"), &at))?;
            }
            (_, Err(_)) => {}
        }
        for (path, inner) in inner {
            kept.push(inner);
            if let Some(path) = path {
                files::remove_tree(&path).map_err(GitError::io("remove", &path))?;
            }
        }
        Ok(CellLeft { kept, gone, pushed })
    }

    /// Keeps changed references other than the item's `own` branch.
    fn keep_refs(
        &self,
        name: &str,
        given: &BTreeMap<String, CommitId>,
        refs: &BTreeMap<String, CommitId>,
        own: Option<&str>,
    ) -> Result<Vec<KeptRef>, GitError> {
        let is_kept = |(reference, tip): &(&String, &CommitId)| {
            given.get(*reference) != Some(tip)
                && Some(reference.as_str()) != own
                && !PASSED_OVER.iter().any(|start| reference.starts_with(start))
        };
        let keep = |(reference, tip): (&String, &CommitId)| {
            let short = reference.trim_start_matches("refs/").to_owned();
            let reference = format!("{KEPT}{name}/{short}");
            self.keep(&reference, tip)?;
            Ok(KeptRef {
                name: short,
                reference,
            })
        };
        refs.iter().filter(is_kept).map(keep).collect()
    }

    /// Returns the remote-tracking branches that contain work of the item's `own` branch now.
    fn pushed(
        &self,
        given: &BTreeMap<String, CommitId>,
        refs: &BTreeMap<String, CommitId>,
        own: Option<&str>,
    ) -> Result<Vec<(String, CommitId)>, GitError> {
        let Some((base, work)) = own.and_then(|own| given.get(own).zip(refs.get(own))) else {
            return Ok(Vec::new());
        };
        let mut pushed = Vec::new();
        for (reference, tip) in refs {
            if let Some(short) = reference.strip_prefix("refs/remotes/")
                && given.get(reference) != Some(tip)
                && self.is_ancestor(tip, work)?
                && !self.is_ancestor(tip, base)?
            {
                pushed.push((short.to_owned(), tip.clone()));
            }
        }
        Ok(pushed)
    }

    /// Makes the worktree a regular one of this repository again, as before its unreadable cell.
    pub fn forsake_cell(&self, worktree: &Path) -> Result<(), GitError> {
        self.registered(worktree)?.forsake_cell()
    }

    /// Links the objects of a cell into the repository.
    fn absorb(&self, cell: &Path) -> Result<(), GitError> {
        let (from, to) = (cell.join("objects"), self.common_dir().join("objects"));
        let taking = || GitError::io("take over the objects of", cell);
        let mut is_packed = false;
        let entries = WalkDir::new(&from).min_depth(2).max_depth(2);
        // A pack must exist before its index, by which git finds it.
        let by_kind = |one: &walkdir::DirEntry, other: &walkdir::DirEntry| {
            let is_index = |entry: &walkdir::DirEntry| {
                entry.path().extension().is_some_and(|kind| kind == "idx")
            };
            is_index(one).cmp(&is_index(other))
        };
        for entry in entries.sort_by(by_kind) {
            let entry = entry.map_err(io::Error::from).map_err(taking())?;
            let path = entry.path();
            let inner = path.strip_prefix(&from).expect("it was found there");
            let folder = inner.parent().unwrap_or(inner).to_string_lossy();
            let name = entry.file_name().to_string_lossy();
            let is_loose = folder.len() == 2 && name.len() == 38;
            let is_pack = folder == "pack"
                && name.starts_with("pack-")
                && ["pack", "idx", "rev"]
                    .iter()
                    .any(|kind| path.extension().is_some_and(|own| own == *kind));
            if !entry.file_type().is_file() || !(is_loose || is_pack) {
                continue;
            }
            is_packed |= is_pack;
            let to = to.join(inner);
            fs::create_dir_all(to.parent().unwrap_or(&to)).map_err(taking())?;
            match fs::hard_link(path, &to) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(_) => copied_whole(path, &to).map_err(taking())?,
            }
        }
        if is_packed {
            self.git
                .odb()
                .and_then(|objects| objects.refresh())
                .map_err(GitError::library("read the objects"))?;
        }
        Ok(())
    }

    fn take_branch(&self, refs: &BTreeMap<String, CommitId>, branch: &str) -> Result<(), GitError> {
        let reference = format!("refs/heads/{branch}");
        let Some(tip) = refs.get(&reference) else {
            return Ok(());
        };
        let before = self.tip(&reference)?;
        if before.as_ref() == Some(tip) {
            return Ok(());
        }
        // A branch with missing objects would break every git that walks it.
        self.walk_new(tip, before.as_ref())?;
        let log = "tavern: the commits of its agent";
        self.swap(&reference, before.as_ref(), Some(tip), log)
    }

    /// Reads each commit of `tip` that is not in `before`.
    fn walk_new(&self, tip: &CommitId, before: Option<&CommitId>) -> Result<(), GitError> {
        let read = || {
            let mut walk = self.histories()?.revwalk()?;
            walk.push(oid(tip))?;
            before.map_or(Ok(()), |before| walk.hide(oid(before)))?;
            for id in walk {
                self.git.find_commit(id?)?.tree()?;
            }
            Ok(())
        };
        read().map_err(GitError::library("read the commits of a run"))
    }

    /// Gives the entry the state of the cell: `HEAD`, index, a merge or rebase under way; and links the worktree to
    /// it.
    fn stand_as(
        &self,
        entry: &Registration,
        cell: &Path,
        head: &Head,
        own: Option<&str>,
    ) -> Result<(), GitError> {
        let admin = &entry.admin;
        let writing = || GitError::io("write in", admin);
        carry_state(cell, admin).map_err(writing())?;
        let own_line = |own: &str| format!("ref: {own}\n");
        let (line, left_on) = match head {
            Head::Branch { name, commit } => {
                match own.filter(|own| own.strip_prefix("refs/heads/") == Some(name)) {
                    Some(own) => (own_line(own), None),
                    // The branch exists only in the cell.
                    None => (format!("{commit}\n"), Some(name)),
                }
            }
            Head::Detached { commit } => (format!("{commit}\n"), None),
            // The agent deleted its branch.
            Head::Unborn { .. } => (own.map(own_line).unwrap_or_default(), None),
        };
        let note = admin.join(LEFT_ON);
        match left_on {
            Some(name) => files::write(note, name.as_bytes()),
            None => gone(fs::remove_file(note)),
        }
        .map_err(writing())?;
        if !line.is_empty() {
            files::write(admin.join("HEAD"), line.as_bytes()).map_err(writing())?;
        }
        let log = admin.join("logs/HEAD");
        if let Ok(text) = files::read_text(&log) {
            files::write(&log, without_held(&text).as_bytes()).map_err(writing())?;
        }
        entry.forsake_cell()
    }

    /// Removes the marks that make git ignore changes of files (`git update-index --assume-unchanged`, and
    /// `--skip-worktree` where nothing is sparse). Otherwise an agent's changes to them would be lost.
    fn show_hidden(&self, entry: &Registration) -> Result<(), GitError> {
        // An index that only git can read has no such marks of an agent, or is sparse.
        let Ok(index) = git2::Index::open(&entry.admin.join("index")) else {
            return Ok(());
        };
        let is_there = |path: &[u8]| entry.path.join(path_of(path)).symlink_metadata().is_ok();
        let is_sparse = self.is_sparse(entry);
        let is_assumed = |found: &IndexEntry| found.flags & IndexEntryFlag::VALID.bits() != 0;
        let is_skipped = |found: &IndexEntry| {
            let skips = IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
            !is_sparse && found.flags_extended & skips != 0
        };
        let unmark = |option: &str, is_marked: &dyn Fn(&IndexEntry) -> bool| {
            let marked = index
                .iter()
                .filter(|found| is_marked(found) && is_there(&found.path));
            let list: Vec<u8> = marked
                .flat_map(|found| [&found.path[..], b"\0"].concat())
                .collect();
            if list.is_empty() {
                return Ok(());
            }
            let checkout = Checkout {
                git_dir: entry.admin.clone(),
                root: entry.path.clone(),
            };
            let call = self
                .call(&checkout)
                .args(["update-index", option, "-z", "--stdin"]);
            call.input(&list)?.read().map(drop)
        };
        unmark("--no-assume-unchanged", &is_assumed)?;
        unmark("--no-skip-worktree", &is_skipped)
    }

    fn is_sparse(&self, entry: &Registration) -> bool {
        let own = git2::Config::open(&entry.admin.join("config.worktree"));
        let has = |config: git2::Config| config.get_bool("core.sparseCheckout").unwrap_or(false);
        own.is_ok_and(has) || self.git.config().is_ok_and(has)
    }

    /// Keeps the contents of worktrees that were made in the cell, such as those of subagents. Returns them, with the
    /// folders of those below `worktree`.
    fn inner_worktrees(
        &self,
        cell: &Path,
        worktree: &Path,
        name: &str,
    ) -> Result<Vec<(Option<PathBuf>, KeptRef)>, GitError> {
        let (worktree, mut found) = (resolved(worktree)?, Vec::new());
        for entry in fs::read_dir(cell.join("worktrees"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let git_dir = entry.path();
            let Ok(link) = files::read_text(git_dir.join("gitdir")) else {
                continue;
            };
            // An agent may have written a link that leads elsewhere.
            let Some(Ok(root)) = Path::new(link.trim_end()).parent().map(resolved) else {
                continue;
            };
            let Ok(inside) = git2::Repository::open(&git_dir) else {
                continue;
            };
            let Some(head) = inside.head().ok().and_then(|head| head.target()) else {
                continue;
            };
            let short = format!("worktrees/{}", entry.file_name().to_string_lossy());
            let reference = format!("{KEPT}{name}/{short}");
            let tip = self.held_in(
                &Checkout {
                    git_dir,
                    root: root.clone(),
                },
                head,
            )?;
            self.absorb(cell)?;
            self.keep(&reference, &tip)?;
            let is_inside = root.starts_with(&worktree) && root != worktree;
            found.push((
                is_inside.then_some(root),
                KeptRef {
                    name: short,
                    reference,
                },
            ));
        }
        Ok(found)
    }

    /// Commits everything in a worktree of a cell on top of `head`; returns `head` if nothing differs.
    fn held_in(&self, checkout: &Checkout, head: Oid) -> Result<CommitId, GitError> {
        let commit = self.find_commit(&head.into())?;
        if !checkout.root.is_dir() {
            return Ok(head.into());
        }
        let (tree, _) = Index::copied(self, checkout.clone())?.tree_of_everything(Vec::new())?;
        if tree == commit.tree_id() {
            return Ok(head.into());
        }
        self.write_commit(
            &self.found_tree(tree)?,
            &[&commit],
            "the files of its worktree",
        )
    }
}

/// Returns changes in a cell that are not taken over, in words.
fn gone_with(cell: &Path) -> Result<Vec<String>, GitError> {
    let given = &cell.join(BEFORE);
    let (before, now) = (
        settings_of(&given.join("config"))?,
        settings_of(&cell.join("config"))?,
    );
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let is_new = |key: &&&String| {
        // A cell has no such `core` settings, and `branch.` ones come with pushes, which are reported anyway.
        let is_left_out =
            ["core.worktree", "core.bare"].contains(&key.as_str()) || key.starts_with("branch.");
        !is_left_out && before.get(**key) != now.get(**key)
    };
    let mut gone: Vec<String> = keys
        .iter()
        .filter(is_new)
        .map(|key| format!("the setting `{key}`"))
        .collect();
    let files = hooks_in(cell).chain(["info/exclude", "info/attributes"].map(str::to_owned));
    let differs = |name: &String| {
        let read = |folder: &Path| files::read(folder.join(name)).unwrap_or_default();
        read(given) != read(cell)
    };
    gone.extend(files.filter(differs).map(|name| format!("`.git/{name}`")));
    Ok(gone)
}

/// Copies settings and hooks, for the comparison at the end.
fn keep_settings(git_dir: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to.join("info"))?;
    copy_hooks(git_dir, to)?;
    for name in ["config", "info/exclude", "info/attributes"] {
        if let Ok(bytes) = files::read(git_dir.join(name)) {
            files::write(to.join(name), &bytes)?;
        }
    }
    Ok(())
}

fn without_held(log: &str) -> String {
    let own = log.lines().filter(|line| !line.ends_with(HELD));
    own.map(|line| format!("{line}\n")).collect()
}

/// Replaces the state of the work tree in the git directory `to` with that of `from`, except for `HEAD`.
fn carry_state(from: &Path, to: &Path) -> io::Result<()> {
    for name in STATE {
        let (from, copy) = (from.join(name), to.join(name));
        if from.symlink_metadata().is_ok_and(|found| found.is_file()) {
            fs::create_dir_all(copy.parent().unwrap_or(to))?;
            files::copy_with_time(&from, &copy)?;
        } else {
            gone(fs::remove_file(copy))?;
        }
    }
    for name in UNDER_WAY {
        files::remove_tree(&to.join(name))?;
        let found = WalkDir::new(from.join(name));
        for found in found.into_iter().filter_map(Result::ok) {
            let inner = found.path().strip_prefix(from).expect("it was found there");
            let copy = to.join(inner);
            if found.file_type().is_dir() {
                fs::create_dir_all(copy)?;
            } else if found.file_type().is_file() {
                fs::copy(found.path(), copy)?;
            }
        }
    }
    Ok(())
}

/// Copies hooks from one git directory to another.
fn copy_hooks(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to.join("hooks"))?;
    let mut hooks = hooks_in(from).filter(|hook| from.join(hook).is_file());
    hooks.try_for_each(|hook| fs::copy(from.join(&hook), to.join(&hook)).map(drop))
}

fn refs_of(cell: &Path) -> Result<BTreeMap<String, CommitId>, GitError> {
    let read = || {
        let mut refs = BTreeMap::new();
        for reference in git2::Repository::open_bare(cell)?.references()? {
            let reference = reference?;
            if let (Ok(name), Some(id)) = (reference.name(), reference.target()) {
                refs.insert(name.to_owned(), id.into());
            }
        }
        Ok(refs)
    };
    read().map_err(GitError::library("read the references of a run"))
}

/// Returns the stash entries, newest first.
fn stash_of(cell: &Path) -> Vec<CommitId> {
    let Ok(repository) = git2::Repository::open_bare(cell) else {
        return Vec::new();
    };
    let Ok(true) = repository.reference_has_log("refs/stash") else {
        return Vec::new();
    };
    let log = repository.reflog("refs/stash");
    log.map(|log| log.iter().map(|entry| entry.id_new().into()).collect())
        .unwrap_or_default()
}

fn copied_whole(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    let mut copy = tempfile::NamedTempFile::new_in(folder)?;
    io::copy(&mut fs::File::open(from)?, &mut copy)?;
    copy.persist(to).map(drop).map_err(|error| error.error)
}
