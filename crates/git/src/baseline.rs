//! What a linked worktree held before anybody worked in it, beyond its commit: copies, what a set-up made, line ends that
//! git would change. It is nobody's work.
//!
//! A commit keeps it, whose parent is the commit that was checked out. Of a later state counts what differs from that: a file
//! that is as it was is taken back to the checked-out one, and so is each place in a text that is.
#![expect(
    clippy::disallowed_methods,
    reason = "git owns the worktrees, and waits for other processes of git"
)]

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use git2::build::TreeUpdateBuilder;
use git2::{Commit, ErrorCode, FileMode, ObjectType, Oid, Reference, Tree};
use similar::{Algorithm, DiffOp, capture_diff_slices};
use xxhash_rust::xxh3::xxh3_64;

use super::branch::oid;
use super::history::paths;
use super::program::THOROUGH;
use super::repository::Checkout;
use super::salvage::Index;
use super::worktree::Furnished;
use super::{CommitId, GitError, Repository};

/// Where baselines are, below it the names of their worktrees.
const BASELINES: &str = "refs/tavern/baseline/";

/// Longest text of which places are compared, in bytes: of a longer one the whole counts.
const MOST_OF_TEXT: usize = 4 << 20;

/// What the commit says.
const WORDS: &str = "tavern: what the worktree held before";

/// So begins a line of it that names a submodule which had changes.
const DIRTY: &str = "submodule ";

/// A worktree's baseline, to be compared with.
pub(super) struct Baseline<'r> {
    repository: &'r Repository,
    reference: String,
    commit: CommitId,
    message: String,
    start: Commit<'r>,
    before: Tree<'r>,
    held: Tree<'r>,
    /// Where the two differ.
    paths: Vec<PathBuf>,
    /// Where the branch is that work is merged into.
    mainline: Option<Oid>,
}

impl Repository {
    /// Remembers what the new worktree at `path` holds beyond its commit, if anything.
    pub(super) fn remember_baseline(
        &self,
        path: &Path,
        furnished: Furnished,
    ) -> Result<(), GitError> {
        let checkout = self.checkout(path)?;
        let reference = reference(path);
        let before = self.tip(&reference)?;
        let may_differ = furnished == Furnished::Something || self.converts_files(&checkout);
        let _held = may_differ.then(|| self.hold_clean_up()).transpose()?;
        let commit = if may_differ {
            self.held_beyond_head(&checkout)?
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

    /// Attributes or a setting may have git store files otherwise than they are checked out.
    fn converts_files(&self, checkout: &Checkout) -> bool {
        let is_set = |name: &str| self.setting(name).ok().flatten().is_some();
        let has_attributes = |index: git2::Index| {
            let is_of_them = |path: &[u8]| path.ends_with(b".gitattributes");
            index.iter().any(|entry| is_of_them(&entry.path))
        };
        is_set("core.autocrlf")
            || is_set("core.attributesFile")
            || self.common_dir().join("info/attributes").exists()
            // One that git alone can read may have them.
            || git2::Index::open(&checkout.git_dir.join("index")).map_or(true, has_attributes)
    }

    /// Of a worktree that is gone.
    pub(super) fn forget_baseline(&self, path: &Path) -> Result<(), GitError> {
        self.forget(&reference(path), "tavern: a worktree is gone")
    }

    /// Takes what was there before out of the commits of the linked worktree's branch that took it in. Files stay as they are.
    pub fn disown_baseline(&self, worktree: &Path) -> Result<(), GitError> {
        let Some(baseline) = self.baseline(worktree)? else {
            return Ok(());
        };
        let _held = self.hold_clean_up()?;
        let checkout = self.checkout(worktree)?;
        let Some(commit) = self.head_in(&checkout.git_dir)?.commit() else {
            return Ok(());
        };
        let (head, tip) = (oid(&commit), baseline.rewritten(oid(&commit))?);
        if head == baseline.start.id() {
            return Ok(());
        }
        let nested = self.status(&checkout)?.nested;
        let tree = self.tree_of_work(&checkout, &nested)?;
        baseline.settle(tip, &tree)?;
        if tip == head {
            return Ok(());
        }
        self.stand_at(&checkout, tip)
    }

    /// Moves the worktree's branch to `tip`, and its index; its files stay.
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
            let paths = paths(
                &self
                    .git
                    .diff_tree_to_tree(Some(&before), Some(&held), None)?,
            );
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
                paths,
                mainline,
            })
        };
        read()
            .map(Some)
            .map_err(GitError::library("read what a worktree held before"))
    }

    /// Writes back what the worktree held before, where it is not so.
    pub(super) fn restore_baseline(&self, checkout: &Checkout) -> Result<(), GitError> {
        let Some(baseline) = self.baseline(&checkout.root)? else {
            return Ok(());
        };
        let (held, gone): (Vec<&PathBuf>, Vec<&PathBuf>) = baseline
            .paths
            .iter()
            .partition(|path| baseline.held.get_path(path).is_ok());
        for path in gone {
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
            .flat_map(|path| [path.as_os_str().as_encoded_bytes(), b"\0"].concat())
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

    /// A commit on top of `HEAD` of all that is there and not ignored; `None` if `HEAD` has it.
    fn held_beyond_head(&self, checkout: &Checkout) -> Result<Option<CommitId>, GitError> {
        let Some(head) = self.head_in(&checkout.git_dir)?.commit() else {
            return Ok(None);
        };
        let changes = self.refreshed_status(checkout)?;
        if changes.is_clean() {
            return Ok(None);
        }
        let head = self.find_commit(&head)?;
        let tree = self.tree_of_work(checkout, &changes.nested)?;
        if tree.id() == head.tree_id() && changes.submodules.is_empty() {
            return Ok(None);
        }
        let dirty: String = changes
            .submodules
            .iter()
            .map(|path| format!("{DIRTY}{}\n", path.display()))
            .collect();
        let message = format!("{WORDS}\n\n{dirty}");
        self.write_commit(&tree, &[&head], &message).map(Some)
    }

    /// What a commit of all that is there would have, without `nested` repositories. Neither index nor references change.
    pub(super) fn tree_of_work(
        &self,
        checkout: &Checkout,
        nested: &[PathBuf],
    ) -> Result<Tree<'_>, GitError> {
        Index::copied(self, checkout.clone())?.tree_without(nested)
    }
}

impl Baseline<'_> {
    pub(super) fn dirty_submodules(&self) -> Vec<PathBuf> {
        let lines = self.message.lines();
        lines
            .filter_map(|line| line.strip_prefix(DIRTY))
            .map(PathBuf::from)
            .collect()
    }

    /// `tree`, which stands on top of `at` and its history, without what was there before.
    pub(super) fn without(&self, tree: &Tree<'_>, at: Oid) -> Result<Oid, GitError> {
        let newer = self.newer_mainline(at)?;
        self.taken_out(tree, newer.as_ref())
            .map_err(GitError::library("leave out what the worktree held before"))
    }

    fn taken_out(&self, tree: &Tree<'_>, newer: Option<&Tree<'_>>) -> Result<Oid, git2::Error> {
        let mut changed = Vec::new();
        for path in &self.paths {
            let [before, held, now] =
                [&self.before, &self.held, tree].map(|tree| entry(tree, path));
            let (before, held, now) = (before?, held?, now?);
            let mainline = newer.map_or(Ok(before), |newer| entry(newer, path))?;
            let own = if now == held {
                mainline
            } else if mainline == before {
                self.text_without(before, held, now)?
            } else {
                // Others have changed it since, and what is here was made of both.
                now
            };
            if own != now {
                changed.push((path, own));
            }
        }
        self.replaced(tree, &changed)
    }

    /// `tree` with these entries. What is taken out goes first: a folder may make room for a file, or the other way round. A file for
    /// which there is no room stays out.
    fn replaced(&self, tree: &Tree<'_>, changed: &[(&PathBuf, Entry)]) -> Result<Oid, git2::Error> {
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

    /// Of a file that all three have, its text without the places that are as they were.
    fn text_without(&self, before: Entry, held: Entry, now: Entry) -> Result<Entry, git2::Error> {
        let (Some((before, old_mode)), Some((held, held_mode)), Some((id, mode))) =
            (before, held, now)
        else {
            return Ok(now);
        };
        let mode = if mode == held_mode { old_mode } else { mode };
        let git = &self.repository.git;
        let [before, held, text] = [before, held, id].map(|id| git.find_blob(id));
        let (Ok(before), Ok(held), Ok(text)) = (before, held, text) else {
            return Ok(Some((id, mode)));
        };
        let all = [before.content(), held.content(), text.content()];
        if all
            .iter()
            .any(|text| text.len() > MOST_OF_TEXT || text.contains(&0))
        {
            return Ok(Some((id, mode)));
        }
        let own = places_taken_back(all[0], all[1], all[2]);
        Ok(Some((git.blob(&own)?, mode)))
    }

    /// The files of the newest commit of the mainline that `at` has, if it is newer than where the worktree began.
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

    /// From now on the worktree begins at `tip`, which has all work in it: what `tree` has beyond that in the places of the baseline
    /// is the baseline. Done before the branch is moved there, it may be done again.
    pub(super) fn settle(&self, tip: Oid, tree: &Tree<'_>) -> Result<(), GitError> {
        let settling = || GitError::library("remember what a worktree held before");
        let git = &self.repository.git;
        let tip = git.find_commit(tip).map_err(settling())?;
        let own = tip.tree().map_err(settling())?;
        let mut changed = Vec::new();
        for path in &self.paths {
            let there = entry(tree, path).map_err(settling())?;
            if there != entry(&own, path).map_err(settling())? {
                changed.push((path, there));
            }
        }
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

    /// The history of `tip` from where the worktree began, each commit without what was there before; one that had nothing
    /// else is left out. `tip` itself if nothing of it was taken in.
    pub(super) fn rewritten(&self, tip: Oid) -> Result<Oid, GitError> {
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
        let mut now = HashMap::new();
        for id in walk {
            let id = id.map_err(reading())?;
            let commit = git.find_commit(id).map_err(reading())?;
            let tree = commit.tree().map_err(reading())?;
            let own = self.without(&tree, id)?;
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
        Ok(now.get(&tip).copied().unwrap_or(tip))
    }
}

/// `commit` with this tree and these parents, or its parent, if it has nothing beyond that any more.
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

/// What a tree has at a path: its object and mode.
type Entry = Option<(Oid, FileMode)>;

fn entry(tree: &Tree<'_>, path: &Path) -> Result<Entry, git2::Error> {
    match tree.get_path(path) {
        // A folder stands where a file was.
        Ok(found) if found.kind() == Some(ObjectType::Tree) => Ok(None),
        Ok(found) => Ok(Some((found.id(), mode(found.filemode())))),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn mode(bits: i32) -> FileMode {
    [FileMode::BlobExecutable, FileMode::Link, FileMode::Commit]
        .into_iter()
        .find(|mode| i32::from(*mode) == bits)
        .unwrap_or(FileMode::Blob)
}

/// `now`, in which each place that `held` has otherwise than `before`, and that is as it was there, is as in `before`.
fn places_taken_back(before: &[u8], held: &[u8], now: &[u8]) -> Vec<u8> {
    let lines = |text| <[u8]>::split_inclusive(text, |byte| *byte == b'\n').collect::<Vec<_>>();
    let (before, held, now) = (lines(before), lines(held), lines(now));
    let compared =
        |old: &[&[u8]], new: &[&[u8]]| capture_diff_slices(Algorithm::Histogram, old, new);
    let mut place_now = vec![None; held.len()];
    for op in compared(&held, &now) {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        {
            (0..len).for_each(|nth| place_now[old_index + nth] = Some(new_index + nth));
        }
    }
    // Where the line stands now; the ends of the text stand before the first and behind the last.
    let behind = |nth: usize| {
        if nth == 0 {
            Some(0)
        } else {
            place_now[nth - 1].map(|place| place + 1)
        }
    };
    let at = |nth: usize| place_now.get(nth).copied().unwrap_or(Some(now.len()));
    let (mut own, mut end) = (Vec::new(), 0);
    for op in compared(&before, &held) {
        let (old, new) = (op.old_range(), op.new_range());
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        // It stands there in one piece; of a place that was taken out, its two sides stand together.
        let place = if new.is_empty() {
            behind(new.start)
                .filter(|place| at(new.start) == Some(*place))
                .map(|place| place..place)
        } else {
            let whole = place_now[new.start].map(|first| first..first + new.len());
            whole.filter(|whole| {
                new.clone()
                    .map(|nth| place_now[nth])
                    .eq(whole.clone().map(Some))
            })
        };
        let Some(place) = place else { continue };
        own.extend(now[end..place.start].iter().copied().flatten());
        own.extend(before[old].iter().copied().flatten());
        end = place.end;
    }
    own.extend(now[end..].iter().copied().flatten());
    own
}

fn reference(worktree: &Path) -> String {
    let name = worktree.file_name().unwrap_or_default();
    let reference = format!("{BASELINES}{}", name.to_string_lossy());
    if Reference::is_valid_name(&reference) {
        return reference;
    }
    format!("{BASELINES}{:016x}", xxh3_64(name.as_encoded_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_as_they_were_go_back_and_all_others_stay() {
        for (before, held, now, own) in [
            ("a\nb\n", "a\nb\nset\n", "a\nb\nset\n", "a\nb\n"),
            (
                "a\nb\n",
                "a\nb\nset\n",
                "a\nb\nset\nset\nx\n",
                "a\nb\nset\nx\n",
            ),
            ("a\nb\n", "a\nb\nset\n", "x\na\nb\nset\n", "x\na\nb\n"),
            (
                "a\nb\n",
                "a\nb\nset\n",
                "a\nb\nset, mine\n",
                "a\nb\nset, mine\n",
            ),
            ("a\nb\nc\n", "a\nc\n", "a\nc\nx\n", "a\nb\nc\nx\n"),
            ("a\nb\nc\n", "a\nc\n", "a\nx\nc\n", "a\nx\nc\n"),
            ("a\n", "", "x\n", "x\n"),
            ("a\n", "a\nset", "a\nset", "a\n"),
            (
                "1\n2\n3\n",
                "one\n2\nthree\n",
                "one\ntwo\nthree\n",
                "1\ntwo\n3\n",
            ),
            ("a\r\nb\r\n", "a\nb\n", "a\nx\nb\n", "a\nx\nb\n"),
        ] {
            let found = places_taken_back(before.as_bytes(), held.as_bytes(), now.as_bytes());
            assert_eq!(
                String::from_utf8_lossy(&found),
                own,
                "{before:?} {held:?} {now:?}"
            );
        }
    }
}
