//! The baseline of a linked worktree: everything that it held beyond its commit before any work began. This includes
//! copies, output of a set-up, and line endings that git would change. It is not part of the work.
//!
//! The baseline is kept as a commit on top of the commit that was checked out. Later states count only where they
//! differ from it. Unchanged baseline files, even if moved, and unchanged baseline lines are reverted to the
//! checked-out state. If the two can't be separated, nothing is merged.
#![expect(
    clippy::disallowed_methods,
    reason = "git owns the worktrees, and waits for other processes of git"
)]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use git2::build::TreeUpdateBuilder;
use git2::{
    Commit, Delta, DiffFile, DiffFindOptions, ErrorCode, FileMode, ObjectType, Oid, Reference, Tree,
};
use xxhash_rust::xxh3::xxh3_64;

use super::branch::oid;
use super::history::path_of;
use super::program::{THOROUGH, pathspec, records};
use super::repository::Checkout;
use super::salvage::Index;
use super::successive_changes::{Compared, separated};
use super::worktree::Furnished;
use super::{CommitId, GitError, Repository};

/// Prefix of the references of baselines; the name of the worktree follows.
const BASELINES: &str = "refs/tavern/baseline/";

/// Subject of a baseline commit.
const WORDS: &str = "tavern: the worktree before the run";

/// Prefix of a message line that names a submodule with changes.
const DIRTY: &str = "submodule ";

/// Prefixes of message lines that name a copied path, and the blob id of a copied file.
const COPIED: &str = "copy ";
const COPIED_BLOB: &str = "blob ";

/// Prefixes of message lines that name an ignored path, and a nested repository.
const IGNORED: &str = "ignored ";
const NESTED: &str = "nested ";

/// Message line: git may store files otherwise than they are checked out.
const CONVERTS: &str = "converts";

/// Limits for recognizing copied files at other paths: their number, their largest size in bytes, and the size up to
/// which equal files may be a coincidence.
const MOST_COPIES: usize = 2_000;
const LONGEST_COPY: u64 = 4 << 20;
const TRIVIAL: u64 = 8;

/// Limit of ignored paths that are remembered.
const MOST_IGNORED: usize = 500;

/// The baseline of a worktree, for comparison.
pub(super) struct Baseline<'r> {
    repository: &'r Repository,
    reference: String,
    commit: CommitId,
    message: String,
    start: Commit<'r>,
    before: Tree<'r>,
    held: Tree<'r>,
    /// Paths where `before` and `held` differ, with both entries.
    places: Sides,
    /// The tip of the branch that work is merged into.
    mainline: Option<Oid>,
}

/// A tree, separated into work and baseline.
pub(super) struct Parted {
    /// The tree without baseline content and without undecidable paths.
    pub(super) own: Oid,
    /// Undecidable paths: baseline content that was changed or moved.
    mixed: Vec<(PathBuf, Entry)>,
}

impl Repository {
    /// Records everything that the new worktree at `path` holds beyond its commit.
    pub(super) fn remember_baseline(
        &self,
        path: &Path,
        furnished: &Furnished,
    ) -> Result<(), GitError> {
        let checkout = self.checkout(path)?;
        let reference = reference(path);
        let before = self.tip(&reference)?;
        let compared = if self.converts_files(&checkout) {
            Compared::ButItsEnd
        } else {
            Compared::All
        };
        let may_differ = *furnished != Furnished::default() || compared == Compared::ButItsEnd;
        let _held = may_differ.then(|| self.hold_clean_up()).transpose()?;
        let commit = if may_differ {
            self.held_beyond_head(&checkout, &furnished.copied, compared)?
        } else {
            None
        };
        if commit == before {
            return Ok(());
        }
        self.swap(
            &reference,
            before.as_ref(),
            commit.as_ref(),
            "tavern: a new worktree",
        )
    }

    /// Returns true if attributes or a setting may make git store files otherwise than they are checked out.
    fn converts_files(&self, checkout: &Checkout) -> bool {
        let is_set = |name: &str| self.setting(name).ok().flatten().is_some();
        let has_attributes = |index: git2::Index| {
            let is_of_them = |path: &[u8]| path.ends_with(b".gitattributes");
            index.iter().any(|entry| is_of_them(&entry.path))
        };
        is_set("core.autocrlf")
            || is_set("core.attributesFile")
            || self.common_dir().join("info/attributes").exists()
            // An index that only git can read may have attributes.
            || git2::Index::open(&checkout.git_dir.join("index")).map_or(true, has_attributes)
    }

    /// Forgets the baseline of a removed worktree.
    pub(super) fn forget_baseline(&self, path: &Path) -> Result<(), GitError> {
        self.forget(&reference(path), "tavern: a worktree is gone")
    }

    /// Removes baseline content from commits of the linked worktree's branch. Files stay as they are.
    ///
    /// Fails with [`GitError::Mixed`] if some of it can't be separated from work; then nothing is changed.
    pub fn disown_baseline(&self, worktree: &Path) -> Result<(), GitError> {
        self.disown(worktree, refuse_mixed)
    }

    /// Like `disown_baseline`, but also removes undecidable paths, which must have been saved before.
    pub fn disown_mixed(&self, worktree: &Path) -> Result<(), GitError> {
        self.disown(worktree, |_| Ok(()))
    }

    fn disown(
        &self,
        worktree: &Path,
        judge: impl FnOnce(Vec<PathBuf>) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let Some(baseline) = self.baseline(worktree)? else {
            return Ok(());
        };
        let _held = self.hold_clean_up()?;
        let checkout = self.checkout(worktree)?;
        let Some(commit) = self.head_in(&checkout.git_dir)?.commit() else {
            return Ok(());
        };
        let head = oid(&commit);
        if head == baseline.start.id() {
            return Ok(());
        }
        let (tip, mixed) = baseline.rewritten(head)?;
        judge(mixed)?;
        baseline.settle(tip, &baseline.held_at(head)?)?;
        if tip == head {
            return Ok(());
        }
        self.stand_at(&checkout, tip)
    }

    /// Moves the worktree's branch and index to `tip`; files stay.
    pub(super) fn stand_at(&self, checkout: &Checkout, tip: Oid) -> Result<(), GitError> {
        self.call(checkout)
            .args(["reset", "--quiet", "--mixed", "--no-recurse-submodules"])
            .arg(tip.to_string())
            .limit(THOROUGH)
            .ending(&[0, 1])
            .map(drop)
    }

    pub(super) fn baseline(&self, worktree: &Path) -> Result<Option<Baseline<'_>>, GitError> {
        let reference = reference(worktree);
        let Some(id) = self.tip(&reference)? else {
            return Ok(None);
        };
        let read = || {
            let commit = self.git.find_commit(oid(&id))?;
            let start = commit.parent(0)?;
            let (before, held) = (start.tree()?, commit.tree()?);
            let places = sides(&self.git, &before, &held)?;
            let mainline = self
                .git
                .refname_to_id(&format!("refs/heads/{}", self.mainline))
                .ok();
            Ok(Baseline {
                repository: self,
                reference: reference.clone(),
                commit: id.clone(),
                message: commit.message().unwrap_or_default().to_owned(),
                start,
                before,
                held,
                places,
                mainline,
            })
        };
        read()
            .map(Some)
            .map_err(GitError::library("read the baseline of a worktree"))
    }

    /// Restores files of the baseline that differ from it.
    pub(super) fn restore_baseline(&self, checkout: &Checkout) -> Result<(), GitError> {
        let Some(baseline) = self.baseline(&checkout.root)? else {
            return Ok(());
        };
        let paths = baseline.places.iter();
        let (held, gone): (Vec<_>, Vec<_>) = paths.partition(|(_, (_, held))| held.is_some());
        for (path, _) in gone {
            match fs::remove_file(checkout.root.join(path)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(GitError::io("remove", path)(error));
                }
                _ => {}
            }
        }
        if held.is_empty() {
            return Ok(());
        }
        let list: Vec<u8> = held
            .iter()
            .flat_map(|(path, _)| [path.as_os_str().as_encoded_bytes(), b"\0"].concat())
            .collect();
        self.call(checkout)
            .args([
                "--literal-pathspecs",
                "restore",
                "--worktree",
                "--pathspec-from-file=-",
                "--pathspec-file-nul",
            ])
            .arg(format!("--source={}", baseline.held.id()))
            .input(&list)?
            .limit(THOROUGH)
            .read()
            .map(drop)
    }

    /// Commits all files that are not ignored, on top of `HEAD`. `None` if there is nothing beyond `HEAD`.
    fn held_beyond_head(
        &self,
        checkout: &Checkout,
        copied: &[PathBuf],
        compared: Compared,
    ) -> Result<Option<CommitId>, GitError> {
        let Some(head) = self.head_in(&checkout.git_dir)?.commit() else {
            return Ok(None);
        };
        let changes = self.refreshed_status(checkout)?;
        let ignored = self.ignored_in(checkout)?;
        let head = self.find_commit(&head)?;
        let tree = if changes.is_clean() {
            head.tree().map_err(GitError::library("read a tree"))?
        } else {
            self.tree_of_work(checkout, &changes.nested)?
        };
        let besides = [&changes.submodules, &changes.nested, &ignored, copied];
        if tree.id() == head.tree_id() && besides.iter().all(|paths| paths.is_empty()) {
            return Ok(None);
        }
        let mut message = format!("{WORDS}\n\n");
        for (word, paths) in [DIRTY, NESTED, IGNORED, COPIED].into_iter().zip(besides) {
            for path in paths {
                message += &format!("{word}{}\n", path.display());
            }
        }
        for blob in copies(&checkout.root, copied) {
            message += &format!("{COPIED_BLOB}{blob}\n");
        }
        if compared == Compared::ButItsEnd {
            message += CONVERTS;
        }
        self.write_commit(&tree, &[&head], &message).map(Some)
    }

    /// Returns files and folders that git ignores.
    fn ignored_in(&self, checkout: &Checkout) -> Result<Vec<PathBuf>, GitError> {
        let listing = [
            "ls-files",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--directory",
            "-z",
        ];
        let listed = self.call(checkout).args(listing).limit(THOROUGH).read()?;
        let mut ignored = names(&listed);
        ignored.truncate(MOST_IGNORED);
        Ok(ignored)
    }

    /// Returns paths that git ignored before the agent began and no longer ignores, although they were not added.
    pub(super) fn no_longer_ignored(&self, checkout: &Checkout) -> Result<Vec<PathBuf>, GitError> {
        let Some(id) = self.tip(&reference(&checkout.root))? else {
            return Ok(Vec::new());
        };
        let commit = self.find_commit(&id)?;
        let message = commit.message().unwrap_or_default();
        let mut ignored: Vec<PathBuf> = listed(message, IGNORED).collect();
        let in_git = |ignored: &[PathBuf], which: &[&str]| {
            let paths = ignored.iter().map(|path| pathspec("top,literal", path));
            let listing = self.call(checkout).args(["ls-files", "-z"]).args(which);
            let found = listing.arg("--").args(paths).limit(THOROUGH).read()?;
            Ok::<_, GitError>(names(&found))
        };
        let is_in = |found: &[PathBuf], path: &Path| found.iter().any(|one| one.starts_with(path));
        if !ignored.is_empty() {
            let shown = in_git(&ignored, &["--others", "--exclude-standard"])?;
            ignored.retain(|path| is_in(&shown, path));
        }
        if !ignored.is_empty() {
            let added = in_git(&ignored, &[])?;
            ignored.retain(|path| !is_in(&added, path));
        }
        Ok(ignored)
    }

    /// Returns the tree that a commit of all files would have, without `nested` repositories. Neither the index nor
    /// references change.
    pub(super) fn tree_of_work(
        &self,
        checkout: &Checkout,
        nested: &[PathBuf],
    ) -> Result<Tree<'_>, GitError> {
        Index::copied(self, checkout.clone())?.tree_without(nested)
    }
}

/// Returns the paths in lines of a baseline's message that begin with `word`.
fn listed<'m>(message: &'m str, word: &'static str) -> impl Iterator<Item = PathBuf> + use<'m> {
    let lines = message.lines();
    lines
        .filter_map(move |line| line.strip_prefix(word))
        .map(PathBuf::from)
}

/// Returns the paths of a zero-separated list of files and folders.
fn names(listed: &[u8]) -> Vec<PathBuf> {
    records(listed)
        .map(|name| path_of(name.strip_suffix(b"/").unwrap_or(name)))
        .collect()
}

/// Returns the blob ids of copied files.
fn copies(root: &Path, copied: &[PathBuf]) -> Vec<Oid> {
    let files = copied
        .iter()
        .flat_map(|path| walkdir::WalkDir::new(root.join(path)));
    let files = files.filter_map(Result::ok).filter(|entry| {
        let length = entry.metadata().map_or(0, |found| found.len());
        entry.file_type().is_file() && (TRIVIAL + 1..=LONGEST_COPY).contains(&length)
    });
    let blob = |entry: walkdir::DirEntry| Oid::hash_file(ObjectType::Blob, entry.path()).ok();
    files.take(MOST_COPIES).filter_map(blob).collect()
}

/// Fails with [`GitError::Mixed`] if `paths` is not empty.
pub(super) fn refuse_mixed(mut paths: Vec<PathBuf>) -> Result<(), GitError> {
    paths.sort();
    paths.dedup();
    if paths.is_empty() {
        Ok(())
    } else {
        Err(GitError::Mixed { paths })
    }
}

impl Parted {
    pub(super) fn into_mixed(self) -> impl Iterator<Item = PathBuf> {
        self.mixed.into_iter().map(|(path, _)| path)
    }
}

impl Baseline<'_> {
    pub(super) fn dirty_submodules(&self) -> Vec<PathBuf> {
        self.listed(DIRTY).collect()
    }

    fn listed(&self, word: &'static str) -> impl Iterator<Item = PathBuf> {
        listed(&self.message, word)
    }

    /// Separates `tree`, based on `at` and its history, into work and baseline.
    pub(super) fn part(&self, tree: &Tree<'_>, at: Oid) -> Result<Parted, GitError> {
        let newer = self.newer_mainline(at)?;
        self.parted(tree, newer.as_ref())
            .map_err(GitError::library("leave out the baseline of a worktree"))
    }

    /// Returns the work in `tree`, including undecidable paths.
    pub(super) fn without(&self, tree: &Tree<'_>, at: Oid) -> Result<Oid, GitError> {
        let Parted { own, mixed } = self.part(tree, at)?;
        if mixed.is_empty() {
            return Ok(own);
        }
        let own = self.repository.found_tree(own)?;
        self.replaced(&own, &mixed)
            .map_err(GitError::library("keep the files of a worktree"))
    }

    fn parted(&self, tree: &Tree<'_>, newer: Option<&Tree<'_>>) -> Result<Parted, git2::Error> {
        let others = newer.unwrap_or(&self.before);
        let (mut changed, mut mixed) = (Vec::new(), Vec::new());
        let mut put = |path: PathBuf, now: Entry, is: Option<Entry>, left: Entry| {
            let own = is.unwrap_or(left);
            if is.is_none() {
                mixed.push((path.clone(), now));
            }
            if own != now {
                changed.push((path, own));
            }
        };
        let git = &self.repository.git;
        let diff = git.diff_tree_to_tree(Some(&self.held), Some(tree), None)?;
        let since = sides_of(&diff);
        let by_others =
            newer.map_or_else(|| Ok(Sides::new()), |newer| sides(git, &self.before, newer))?;
        for (path, (before, held)) in &self.places {
            let (before, held) = (*before, *held);
            let now = since.get(path).map_or(held, |(_, now)| *now);
            let theirs = by_others.get(path).map_or(before, |(_, theirs)| *theirs);
            let own = if now == held {
                Some(theirs)
            } else if now == theirs || now.is_none() || held.is_none() {
                Some(now)
            } else {
                self.agents(before, held, now, theirs)?
            };
            put(path.clone(), now, own, theirs);
        }
        let moved = self.moved(tree, others, &since, diff)?;
        for (from, path) in &moved {
            let (before, held) = self.places.get(from).copied().unwrap_or_default();
            let now = entry(tree, path)?;
            let own = self.agents(before, held, now, before)?;
            put(path.clone(), now, own, None);
        }
        for path in self.listed(NESTED) {
            let at = |tree: &Tree<'_>| entry(tree, &path);
            let is_link = |found: &Entry| matches!(found, Some((_, FileMode::Commit)));
            let now = at(tree)?;
            if is_link(&now) && at(others)?.is_none() {
                put(path.clone(), now, Some(None), None);
            }
        }
        for path in self.listed(COPIED) {
            let is_in = |tree: &Tree<'_>| tree.get_path(&path).is_ok();
            let is_done = || {
                let mut done = moved
                    .iter()
                    .map(|(_, at)| at.clone())
                    .chain(self.listed(NESTED));
                done.any(|done| done.starts_with(&path))
            };
            if is_in(tree)
                && !is_done()
                && ![&self.before, &self.held, others].into_iter().any(is_in)
            {
                let now = tree.get_path(&path)?;
                put(
                    path.clone(),
                    Some((now.id(), mode(now.filemode()))),
                    None,
                    None,
                );
            }
        }
        let own = self.replaced(tree, &changed)?;
        Ok(Parted { own, mixed })
    }

    /// Returns baseline files that are at other paths now, as (old path, new path); for a known copy both are the new
    /// path. Entries that the newer mainline, or else the original commit, has too are skipped.
    fn moved(
        &self,
        tree: &Tree<'_>,
        others: &Tree<'_>,
        since: &Sides,
        mut diff: git2::Diff<'_>,
    ) -> Result<Vec<(PathBuf, PathBuf)>, git2::Error> {
        let (mut places, mut known, mut is_one_gone) = (HashMap::new(), HashSet::new(), false);
        for (path, (before, held)) in &self.places {
            if let Some((id, _)) = held {
                places.insert(*id, path);
                is_one_gone |= since.get(path).is_some_and(|(_, now)| now.is_none());
            }
            known.extend(before.map(|(id, _)| id));
        }
        places.retain(|id, _| !known.contains(id));
        let copied: HashSet<String> = self
            .message
            .lines()
            .filter_map(|line| Some(line.strip_prefix(COPIED_BLOB)?.to_owned()))
            .collect();
        let git = &self.repository.git;
        if is_one_gone {
            diff.find_similar(Some(DiffFindOptions::new().renames(true)))?;
        }
        let mut moved = Vec::new();
        for delta in diff.deltas() {
            let (old, new) = (delta.old_file(), delta.new_file());
            let Some(path) = new.path() else { continue };
            let from = match delta.status() {
                Delta::Added => places.get(&new.id()).map(|from| from.as_path()),
                Delta::Renamed => old.path().filter(|path| self.places.contains_key(*path)),
                _ => None,
            };
            let is_copy = || !copied.is_empty() && copied.contains(&new.id().to_string());
            let from = from.or_else(|| is_copy().then_some(path));
            let length = || git.find_blob(new.id()).map_or(0, |blob| blob.size() as u64);
            if let Some(from) = from
                && !self.places.contains_key(path)
                && entry(others, path)? != entry(tree, path)?
                && length() > entry(tree, from)?.map_or(0, |_| TRIVIAL)
            {
                moved.push((from.to_owned(), path.to_owned()));
            }
        }
        Ok(moved)
    }

    /// Returns `tree` with these entries. Removals go first, since a folder may make room for a file or the other way
    /// round. A file without room is left out.
    fn replaced(&self, tree: &Tree<'_>, changed: &[(PathBuf, Entry)]) -> Result<Oid, git2::Error> {
        let git = &self.repository.git;
        let (mut without, mut with) = (TreeUpdateBuilder::new(), TreeUpdateBuilder::new());
        for (path, _) in changed.iter().filter(|(_, own)| own.is_none()) {
            without.remove(path);
        }
        let room = git.find_tree(without.create_updated(git, tree)?)?;
        let is_in_the_way = |path: &Path| {
            let is_folder = |entry: git2::TreeEntry<'_>| entry.kind() == Some(ObjectType::Tree);
            let above = path.ancestors().skip(1);
            let mut above = above.filter(|above| !above.as_os_str().is_empty());
            room.get_path(path).is_ok_and(is_folder)
                || above.any(|above| room.get_path(above).is_ok_and(|entry| !is_folder(entry)))
        };
        for (path, own) in changed {
            if let Some((id, mode)) = own
                && !is_in_the_way(path)
            {
                with.upsert(path, *id, *mode);
            }
        }
        with.create_updated(git, &room)
    }

    /// Returns the agent's part of a changed baseline file; `None` if undecidable. A binary file belongs to its last
    /// writer.
    fn agents(
        &self,
        before: Entry,
        held: Entry,
        now: Entry,
        theirs: Entry,
    ) -> Result<Option<Entry>, git2::Error> {
        let (Some((before, old_mode)), Some((held, held_mode)), Some((id, mode))) =
            (before, held, now)
        else {
            return Ok(None);
        };
        let mode = if mode == held_mode { old_mode } else { mode };
        if id == held {
            return Ok(Some(Some((before, mode))));
        }
        let git = &self.repository.git;
        let theirs = theirs.map_or(before, |(id, _)| id);
        let texts = [before, held, id, theirs].map(|id| git.find_blob(id));
        let [Ok(before), Ok(held), Ok(text), Ok(theirs)] = &texts else {
            return Ok(Some(now));
        };
        let all = [before, held, text, theirs].map(git2::Blob::content);
        if all.iter().any(|text| text.contains(&0)) {
            return Ok(Some(now));
        }
        let others = Some(all[3]).filter(|text| *text != all[0]);
        let compared = if self.listed(CONVERTS).next().is_some() {
            Compared::ButItsEnd
        } else {
            Compared::All
        };
        let own = separated(all[0], all[1], all[2], others, compared)?;
        own.map(|own| Ok(Some((git.blob(&own)?, mode)))).transpose()
    }

    /// Returns the files of the newest mainline commit in the history of `at`, if it is newer than the start of the
    /// worktree.
    fn newer_mainline(&self, at: Oid) -> Result<Option<Tree<'_>>, GitError> {
        let Some(mainline) = self.mainline else {
            return Ok(None);
        };
        let shared = self.repository.merge_base(at, mainline)?;
        let Some(shared) = shared.filter(|shared| {
            !self
                .repository
                .contains(self.start.id(), *shared)
                .unwrap_or(false)
        }) else {
            return Ok(None);
        };
        let tree = self
            .repository
            .git
            .find_commit(shared)
            .and_then(|commit| commit.tree());
        tree.map(Some).map_err(GitError::library("read a tree"))
    }

    /// Returns the files of a commit, with the baseline where the commit did not change them. Files in neither may be
    /// work.
    fn held_at(&self, commit: Oid) -> Result<Tree<'_>, GitError> {
        let git = &self.repository.git;
        let held = || {
            let tree = git.find_commit(commit)?.tree()?;
            let mut changed = Vec::new();
            let since = sides(git, &self.before, &tree)?;
            for (path, (_, held)) in &self.places {
                if !since.contains_key(path) {
                    changed.push((path.clone(), *held));
                }
            }
            git.find_tree(self.replaced(&tree, &changed)?)
        };
        held().map_err(GitError::library("read the baseline of a worktree"))
    }

    /// Puts the baseline on top of `tip`, which contains all work: differences of `tree` in baseline paths become the
    /// new baseline. Call it before the branch is moved to `tip`; it is safe to repeat.
    pub(super) fn settle(&self, tip: Oid, tree: &Tree<'_>) -> Result<(), GitError> {
        let settling = || GitError::library("save the baseline of a worktree");
        let git = &self.repository.git;
        let tip = git.find_commit(tip).map_err(settling())?;
        let own = tip.tree().map_err(settling())?;
        let beyond = sides(git, &own, tree).map_err(settling())?;
        let beyond = beyond
            .into_iter()
            .filter(|(path, _)| self.places.contains_key(path));
        let changed: Vec<(PathBuf, Entry)> =
            beyond.map(|(path, (_, there))| (path, there)).collect();
        let held = self.replaced(&own, &changed).map_err(settling())?;
        let commit = self.repository.write_commit(
            &self.repository.found_tree(held)?,
            &[&tip],
            &self.message,
        )?;
        self.repository.swap(
            &self.reference,
            Some(&self.commit),
            Some(&commit),
            "tavern: its work is committed",
        )
    }

    /// Rewrites the history of `tip`, from the start of the worktree, without baseline content. Commits that become
    /// empty are dropped. Returns the new tip, or `tip` itself if nothing was removed, and the undecidable paths.
    pub(super) fn rewritten(&self, tip: Oid) -> Result<(Oid, Vec<PathBuf>), GitError> {
        let reading = || GitError::library("read the commits of a worktree");
        let git = &self.repository.git;
        let walk = self
            .repository
            .histories()
            .and_then(git2::Repository::revwalk);
        let mut walk = walk.map_err(reading())?;
        walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::REVERSE)
            .map_err(reading())?;
        walk.push(tip).map_err(reading())?;
        for known in [Some(self.start.id()), self.mainline].into_iter().flatten() {
            walk.hide(known).map_err(reading())?;
        }
        let (mut now, mut mixed) = (HashMap::new(), Vec::new());
        for id in walk {
            let id = id.map_err(reading())?;
            let commit = git.find_commit(id).map_err(reading())?;
            let tree = commit.tree().map_err(reading())?;
            let parted = self.part(&tree, id)?;
            let own = parted.own;
            mixed.extend(parted.into_mixed());
            let parents: Vec<Oid> = commit
                .parent_ids()
                .map(|parent| *now.get(&parent).unwrap_or(&parent))
                .collect();
            let is_same = own == tree.id() && commit.parent_ids().eq(parents.iter().copied());
            now.insert(
                id,
                if is_same {
                    id
                } else {
                    rewrite(git, &commit, own, &parents).map_err(reading())?
                },
            );
        }
        Ok((now.get(&tip).copied().unwrap_or(tip), mixed))
    }
}

/// Copies `commit` with this tree and these parents. Returns its parent if the copy would be empty.
fn rewrite(
    git: &git2::Repository,
    commit: &Commit<'_>,
    tree: Oid,
    parents: &[Oid],
) -> Result<Oid, git2::Error> {
    let parents = parents
        .iter()
        .map(|id| git.find_commit(*id))
        .collect::<Result<Vec<_>, _>>()?;
    if let [parent] = &parents[..]
        && parent.tree_id() == tree
    {
        return Ok(parent.id());
    }
    let message = String::from_utf8_lossy(commit.message_raw_bytes()).replace('\0', " ");
    git.commit(
        None,
        &commit.author(),
        &commit.committer(),
        &message,
        &git.find_tree(tree)?,
        &parents.iter().collect::<Vec<_>>(),
    )
}

/// The entry of a tree at a path: object and mode.
type Entry = Option<(Oid, FileMode)>;

/// Paths where two trees differ, with both entries.
type Sides = BTreeMap<PathBuf, (Entry, Entry)>;

fn sides(git: &git2::Repository, one: &Tree<'_>, other: &Tree<'_>) -> Result<Sides, git2::Error> {
    Ok(sides_of(&git.diff_tree_to_tree(
        Some(one),
        Some(other),
        None,
    )?))
}

fn sides_of(diff: &git2::Diff<'_>) -> Sides {
    let mut sides = Sides::new();
    for delta in diff.deltas() {
        let side = |file: DiffFile<'_>| Some((file.id(), mode(file.mode().into())));
        let (old, new) = (delta.old_file(), delta.new_file());
        let Some(path) = new.path_bytes().or(old.path_bytes()) else {
            continue;
        };
        // A file that became a link is listed twice.
        let both = sides.entry(path_of(path)).or_default();
        if delta.status() != Delta::Added {
            both.0 = side(old);
        }
        if delta.status() != Delta::Deleted {
            both.1 = side(new);
        }
    }
    sides
}

fn entry(tree: &Tree<'_>, path: &Path) -> Result<Entry, git2::Error> {
    match tree.get_path(path) {
        // A folder replaced the file.
        Ok(found) if found.kind() == Some(ObjectType::Tree) => Ok(None),
        Ok(found) => Ok(Some((found.id(), mode(found.filemode())))),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn mode(bits: i32) -> FileMode {
    [
        FileMode::BlobExecutable,
        FileMode::Link,
        FileMode::Commit,
        FileMode::Tree,
    ]
    .into_iter()
    .find(|mode| i32::from(*mode) == bits)
    .unwrap_or(FileMode::Blob)
}

fn reference(worktree: &Path) -> String {
    let name = worktree.file_name().unwrap_or_default();
    let reference = format!("{BASELINES}{}", name.to_string_lossy());
    if Reference::is_valid_name(&reference) {
        return reference;
    }
    format!("{BASELINES}{:016x}", xxh3_64(name.as_encoded_bytes()))
}
