//! How files came into this clone: their texts in commits that HEAD was moved to, on other branches and tags, and in
//! the ancestors of those, in order of arrival.
//!
//! Source: the reflogs of HEAD and of branches, git-reflog(1). Texts without a reflog entry count as brought by git.

use std::collections::{BinaryHeap, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use git2::{
    AttrCheckFlags, AttrValue, ErrorCode, ObjectType, Oid, Reflog, ReflogEntry, Sort, TreeEntry,
};

use super::program::records;
use super::{GitError, Repository};
use tavern_sys::files;

/// Limit of reported moves of HEAD that changed the files; older ones count as brought by git. Also the limit of
/// reported contents that HEAD did not hold; the newest win.
const MOST_CHANGES: usize = 1024;

/// Limit of moves of HEAD that are read.
const MOST_MOVES: usize = 4096;

/// Limit of commits beside HEAD's with other contents that are read; the newest win.
const MOST_BESIDE: usize = 256;

/// Limit of ancestors that are read for each commit that arrived; the newest win.
const MOST_BELOW: usize = 32_768;

/// Largest size of one text, in bytes.
const MOST_BYTES: usize = 16 << 20;

/// Limit of files below one folder.
const MOST_FILES: usize = 4096;

/// Reflog messages of commits that a person made here. Commits that end a merge, a rebase or a cherry-pick have other
/// messages.
const BY_HAND: [&str; 3] = ["commit: ", "commit (initial): ", "commit (amend): "];

/// Reflog message of a remote-tracking branch after a push from this clone.
const PUSHED: &str = "update by push";

/// The way in which an [`Arrival`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// It was committed here.
    Commit,
    /// HEAD was moved in another way: a clone, a pull, a switch, a merge.
    Move,
    /// It was fetched, is on another branch or tag, or is an ancestor of an arrived commit, and HEAD does not hold
    /// it.
    Fetch,
}

/// Texts of files that arrived together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub carrier: Carrier,
    /// All files at that time, by their paths from the root.
    pub files: Vec<(PathBuf, Rc<str>)>,
}

/// A commit and the time since when it has been here.
#[derive(Clone, Copy)]
struct Arrived {
    time: i64,
    commit: Oid,
    carrier: Carrier,
    /// Whether the files did not change: the commit counts only for its ancestors.
    is_same: bool,
}

/// The objects of a commit at the requested paths; equal if the files are equal.
type Contents = Vec<Option<Object>>;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Object {
    File(Oid),
    Folder(Oid),
}

impl Object {
    /// Returns `None` for a submodule.
    fn of(entry: &TreeEntry<'_>) -> Option<Object> {
        match entry.kind() {
            Some(ObjectType::Blob) => Some(Object::File(entry.id())),
            Some(ObjectType::Tree) => Some(Object::Folder(entry.id())),
            _ => None,
        }
    }
}

impl Repository {
    /// Returns true if git stores the file at `path` exactly as it is on disk, so that arrivals can be compared with
    /// it. False inside a nested repository, such as a submodule, or where an attribute makes git convert on checkout
    /// (`ident`, an encoding, a filter).
    pub fn tells_of(&self, path: &Path) -> bool {
        let root = self.main_worktree();
        let mut folders = path
            .ancestors()
            .filter(|folder| !folder.as_os_str().is_empty());
        let is_own =
            !folders.any(|folder| fs::symlink_metadata(root.join(folder).join(".git")).is_ok());
        let is_converted = |attribute: &str| {
            let value = self
                .git
                .get_attr(path, attribute, AttrCheckFlags::FILE_THEN_INDEX)
                .map(|value| {
                    matches!(
                        AttrValue::from_string(value),
                        AttrValue::True | AttrValue::String(_)
                    )
                });
            value.unwrap_or_else(|_| self.is_converted_by_git(path, attribute))
        };
        // libgit2 would block on a pipe; it ignores a folder.
        let can_be_read = |folder: &Path| {
            let entry = fs::symlink_metadata(root.join(folder).join(".gitattributes"));
            entry.map_or(true, |entry| entry.is_file() || entry.is_dir())
        };
        is_own
            && path.ancestors().all(can_be_read)
            && !["ident", "working-tree-encoding", "filter"]
                .into_iter()
                .any(is_converted)
            && !self.was_converted(path)
    }

    /// Returns true if the `git` program reports the attribute as set. Only git can read a sparse index, with whole
    /// folders as one entry.
    fn is_converted_by_git(&self, path: &Path, attribute: &str) -> bool {
        let call = self.call(&self.main_checkout());
        let asked = call
            .args(["check-attr", "-z", attribute, "--"])
            .arg(path)
            .read();
        // Output format: path, attribute and value, each followed by a zero byte.
        let is_set = |said: Vec<u8>| {
            let value = records(&said).nth(2);
            !value.is_some_and(|value| [&b"unspecified"[..], b"unset"].contains(&value))
        };
        asked.map_or(true, is_set)
    }

    /// Returns true if git converted the file on checkout, by any attributes: by the index git wrote it last, but
    /// its contents differ from the stored object. Different line endings alone don't count.
    fn was_converted(&self, path: &Path) -> bool {
        let file = self.main_worktree().join(path);
        let (Ok(found), Ok(mut index)) = (fs::symlink_metadata(&file), self.git.index()) else {
            return false;
        };
        let Some(entry) = index
            .read(false)
            .ok()
            .and_then(|()| index.get_path(path, 0))
        else {
            return false;
        };
        let (seconds, nanoseconds) = (entry.mtime.seconds(), entry.mtime.nanoseconds());
        // The index keeps only 32 bits of each.
        let is_untouched = entry.file_size == found.len() as u32
            && seconds == found.mtime() as i32
            && (nanoseconds == 0 || i64::from(nanoseconds) == found.mtime_nsec());
        let is_other =
            |bytes: &[u8]| Oid::hash_object(ObjectType::Blob, bytes).is_ok_and(|id| id != entry.id);
        is_untouched
            && files::read_text(&file).is_ok_and(|text| {
                is_other(text.as_bytes()) && is_other(text.replace("\r\n", "\n").as_bytes())
            })
    }

    /// Returns how the files at or below `paths` came here, oldest first.
    ///
    /// # Errors
    /// Fails if they can't all be read.
    pub fn arrivals(&self, paths: &[PathBuf]) -> Result<Vec<Arrival>, GitError> {
        let mut reader = CommitReader {
            repository: self,
            paths,
            contents: HashMap::new(),
            texts: HashMap::new(),
        };
        let head = self.reflog("HEAD")?;
        let mut own = commits_by_hand(&head);
        own.extend(self.own_board_commits()?);
        let mut beside = self
            .beside(&head, &own, &mut reader)?
            .into_iter()
            .peekable();
        let mut all = Vec::new();
        for step in self.moves(&head, &mut reader)? {
            // Arrivals in the same second count as earlier, unless they are based on this commit.
            let is_before = |came: &Arrived| {
                let rests = || self.contains(came.commit, step.commit).unwrap_or_default();
                came.time < step.time
                    || (came.time == step.time && !(step.carrier == Carrier::Commit && rests()))
            };
            all.extend(std::iter::from_fn(|| beside.next_if(is_before)));
            all.push(step);
        }
        all.extend(beside);
        let mut arrivals = Vec::new();
        for came in self.with_below(all, &own, &mut reader) {
            arrivals.push(reader.arrival(came)?);
        }
        Ok(arrivals)
    }

    /// Returns all of `came`, each after its ancestors by others, oldest first. Each content is listed once. Of
    /// contents that HEAD did not hold, only the newest are kept.
    fn with_below(
        &self,
        came: Vec<Arrived>,
        own: &HashMap<Oid, i64>,
        reader: &mut CommitReader<'_>,
    ) -> Vec<Arrived> {
        let (mut seen, mut told, mut all) = (HashSet::new(), HashSet::new(), Vec::new());
        for came in came {
            let mut below = if came.carrier == Carrier::Commit {
                Vec::new()
            } else {
                self.below(came.commit, &mut seen)
            };
            seen.insert(came.commit);
            told.insert(reader.contents(came.commit).clone());
            below.retain(|commit| {
                !own.contains_key(commit) && told.insert(reader.contents(*commit).clone())
            });
            let below = below.into_iter().rev();
            all.extend(below.map(|commit| Arrived {
                commit,
                carrier: Carrier::Fetch,
                is_same: false,
                ..came
            }));
            all.extend(Some(came).filter(|came| !came.is_same));
        }
        let mut fetched = all
            .iter()
            .filter(|came| came.carrier == Carrier::Fetch)
            .count();
        all.retain(|came| {
            let is_left_out = came.carrier == Carrier::Fetch && fetched > MOST_CHANGES;
            fetched -= usize::from(is_left_out);
            !is_left_out
        });
        all
    }

    /// Returns `tip` and its ancestors that are not in `seen`, newest first.
    fn below(&self, tip: Oid, seen: &mut HashSet<Oid>) -> Vec<Oid> {
        let time = |commit: Oid| {
            self.git
                .find_commit(commit)
                .ok()
                .map(|commit| commit.time().seconds())
        };
        let (mut found, mut next) = (
            Vec::new(),
            BinaryHeap::from_iter(time(tip).map(|time| (time, tip))),
        );
        while let Some((_, commit)) = next.pop().filter(|_| found.len() < MOST_BELOW) {
            found.push(commit);
            let Ok(commit) = self.git.find_commit(commit) else {
                continue;
            };
            let new = commit.parent_ids().filter(|parent| seen.insert(*parent));
            next.extend(new.filter_map(|parent| Some((time(parent)?, parent))));
        }
        found
    }

    /// Returns the moves of HEAD, oldest first.
    fn moves(
        &self,
        reflog: &Reflog,
        reader: &mut CommitReader<'_>,
    ) -> Result<Vec<Arrived>, GitError> {
        let head = match self.git.head().and_then(|head| head.peel_to_commit()) {
            Ok(commit) => Some(commit.id()),
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => {
                None
            }
            Err(error) => return Err(GitError::library("read the files of HEAD")(error)),
        };
        // Steps run from newest to oldest. The first is the current HEAD, even if the reflog disagrees.
        let (mut steps, mut later, mut changes) = (Vec::new(), head, 0);
        let mut push = |step: Arrived, before: Option<Oid>, reader: &mut CommitReader<'_>| {
            let before = before.map(|before| reader.contents(before).clone());
            let is_same = before.as_ref() == Some(reader.contents(step.commit));
            changes += usize::from(!is_same);
            steps.push(Arrived { is_same, ..step });
            changes < MOST_CHANGES
        };
        let mut goes_on = true;
        for entry in reflog.iter().take(MOST_MOVES) {
            let time = entry.committer().when().seconds();
            let (old, new) = (entry.id_old(), entry.id_new());
            if let Some(commit) = later.filter(|later| *later != new) {
                // The reflog has a gap between these two commits.
                goes_on = push(
                    Arrived {
                        time,
                        commit,
                        carrier: Carrier::Move,
                        is_same: false,
                    },
                    None,
                    reader,
                );
            }
            later = Some(old).filter(|old| !old.is_zero());
            let carrier = if is_by_hand(&entry) {
                Carrier::Commit
            } else {
                Carrier::Move
            };
            goes_on = goes_on
                && push(
                    Arrived {
                        time,
                        commit: new,
                        carrier,
                        is_same: false,
                    },
                    later,
                    reader,
                );
            if !goes_on {
                break;
            }
        }
        // The state before the oldest reflog entry.
        if let Some(commit) = later {
            steps.push(Arrived {
                time: 0,
                commit,
                carrier: Carrier::Move,
                is_same: false,
            });
        }
        steps.reverse();
        Ok(steps)
    }

    /// Returns commits that were fetched or are on other branches or tags, oldest first; each content once.
    fn beside(
        &self,
        head: &Reflog,
        own: &HashMap<Oid, i64>,
        reader: &mut CommitReader<'_>,
    ) -> Result<Vec<Arrived>, GitError> {
        let reading = || GitError::library("read branches and tags");
        let (mut dated, mut undated) = (Vec::new(), Vec::new());
        let moves: HashSet<(i64, Oid)> = head
            .iter()
            .take(MOST_MOVES)
            .map(|entry| moved(&entry))
            .collect();
        for reference in self.git.references().map_err(reading())? {
            let reference = reference.map_err(reading())?;
            let Ok(name) = reference.name() else { continue };
            // Stashes were typed here, and the board's branch repeats its queues.
            if Repository::is_board(name)
                || !["refs/remotes/", "refs/heads/", "refs/tags/"]
                    .iter()
                    .any(|place| name.starts_with(place))
            {
                continue;
            }
            let reflog = self.reflog(name)?;
            for entry in reflog.iter().take(MOST_BESIDE) {
                let is_pushed = entry
                    .message()
                    .ok()
                    .flatten()
                    .is_some_and(|message| message.starts_with(PUSHED));
                // A move of HEAD's branch is in HEAD's reflog too, which alone has the order within one second.
                let is_heads = name.starts_with("refs/heads/") && moves.contains(&moved(&entry));
                dated.extend((!is_pushed && !is_heads).then(|| moved(&entry)));
            }
            let oldest = reflog
                .iter()
                .take(MOST_BESIDE)
                .next_back()
                .map(|entry| entry.id_old());
            let tip = || reference.peel_to_commit().ok().map(|commit| commit.id());
            undated.extend(oldest.or_else(tip).filter(|commit| !commit.is_zero()));
        }
        let path = self.common_dir().join("FETCH_HEAD");
        let time = fs::metadata(&path).map_or(0, |file| file.mtime());
        let listed = fs::read_to_string(path).unwrap_or_default();
        let ids = listed
            .lines()
            .filter_map(|line| Oid::from_str(line.split('\t').next()?).ok());
        dated.extend(ids.map(|commit| (time, commit)));
        // Commits made here are not arrivals, even if they came back.
        dated.retain(|(_, commit)| !own.contains_key(commit));
        undated.retain(|commit| !own.contains_key(commit));
        let mut seen = HashSet::new();
        undated.retain(|commit| seen.insert(reader.contents(*commit).clone()));
        // An undated commit arrived, at the earliest, when the newest own commit below it was made.
        let earliest = |commit: &Oid| (self.newest_of(own, *commit), *commit);
        let mut steps: Vec<(i64, Oid)> = undated.iter().map(earliest).collect();
        steps.extend(dated);
        steps.sort_by_key(|(time, _)| *time);
        seen.clear();
        steps.retain(|(_, commit)| seen.insert(reader.contents(*commit).clone()));
        steps.drain(..steps.len().saturating_sub(MOST_BESIDE));
        let came = |(time, commit)| Arrived {
            time,
            commit,
            carrier: Carrier::Fetch,
            is_same: false,
        };
        Ok(steps.into_iter().map(came).collect())
    }

    /// Returns the time of the newest commit of `own` in the history of `commit`; 0 if none is near.
    fn newest_of(&self, own: &HashMap<Oid, i64>, commit: Oid) -> i64 {
        let walk = || {
            let mut walk = self.histories()?.revwalk()?;
            walk.set_sorting(Sort::TIME)?;
            walk.push(commit)?;
            Ok::<_, git2::Error>(
                walk.take(MOST_MOVES)
                    .find_map(|id| own.get(&id.ok()?).copied()),
            )
        };
        walk().ok().flatten().unwrap_or_default()
    }

    fn reflog(&self, name: &str) -> Result<Reflog, GitError> {
        self.git
            .reflog(name)
            .map_err(GitError::library("read a reflog"))
    }
}

/// Returns the time and the new commit of a move.
fn moved(entry: &ReflogEntry<'_>) -> (i64, Oid) {
    (entry.committer().when().seconds(), entry.id_new())
}

/// A reader of commits that reads each content once.
struct CommitReader<'r> {
    repository: &'r Repository,
    paths: &'r [PathBuf],
    contents: HashMap<Oid, Contents>,
    texts: HashMap<Oid, Rc<str>>,
}

impl CommitReader<'_> {
    /// Returns the contents of `commit`; all `None` if it was pruned. git prunes only commits that are in no history.
    fn contents(&mut self, commit: Oid) -> &Contents {
        let (git, paths) = (&self.repository.git, self.paths);
        self.contents.entry(commit).or_insert_with(|| {
            let tree = git
                .find_commit(commit)
                .and_then(|commit| commit.tree())
                .ok();
            let at = |path: &PathBuf| Object::of(&tree.as_ref()?.get_path(path).ok()?);
            paths.iter().map(at).collect()
        })
    }

    fn arrival(&mut self, step: Arrived) -> Result<Arrival, GitError> {
        let (mut files, paths) = (Vec::new(), self.paths);
        let contents = self.contents(step.commit).clone();
        for (path, object) in paths.iter().zip(contents) {
            object.map_or(Ok(()), |object| {
                self.collect(object, path.clone(), &mut files)
            })?;
        }
        Ok(Arrival {
            carrier: step.carrier,
            files,
        })
    }

    fn collect(
        &mut self,
        object: Object,
        path: PathBuf,
        files: &mut Vec<(PathBuf, Rc<str>)>,
    ) -> Result<(), GitError> {
        let folder = match object {
            Object::File(_) if files.len() >= MOST_FILES => {
                return Err(reading()(git2::Error::from_str("there are too many")));
            }
            Object::File(id) => {
                files.push((path, self.text(id)?));
                return Ok(());
            }
            Object::Folder(id) => self.repository.git.find_tree(id).map_err(reading())?,
        };
        for entry in &folder {
            let below = path.join(String::from_utf8_lossy(entry.name_bytes()).as_ref());
            Object::of(&entry).map_or(Ok(()), |object| self.collect(object, below, files))?;
        }
        Ok(())
    }

    fn text(&mut self, id: Oid) -> Result<Rc<str>, GitError> {
        if let Some(text) = self.texts.get(&id) {
            return Ok(Rc::clone(text));
        }
        let objects = self.repository.git.odb().map_err(reading())?;
        let (length, _) = objects.read_header(id).map_err(reading())?;
        if length > MOST_BYTES {
            return Err(reading()(git2::Error::from_str("it is too long")));
        }
        let object = objects.read(id).map_err(reading())?;
        let text: Rc<str> = String::from_utf8_lossy(object.data()).into();
        self.texts.insert(id, Rc::clone(&text));
        Ok(text)
    }
}

/// Returns commits that a person made here, with their times, by HEAD's reflog.
fn commits_by_hand(head: &Reflog) -> HashMap<Oid, i64> {
    let by_hand = head.iter().take(MOST_MOVES).filter(is_by_hand);
    by_hand
        .map(|entry| (entry.id_new(), entry.committer().when().seconds()))
        .collect()
}

/// Returns true if a person made the commit here.
fn is_by_hand(entry: &ReflogEntry<'_>) -> bool {
    let message = entry.message().ok().flatten().unwrap_or_default();
    BY_HAND.iter().any(|hand| message.starts_with(hand))
}

fn reading() -> impl FnOnce(git2::Error) -> GitError {
    GitError::library("read the files of a commit")
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use std::path::Path;

    use super::super::fixture::{Fixture, discover};
    use super::*;

    /// Returns the carrier and the text of `list.md` of each arrival.
    fn told(root: &Path) -> Vec<(Carrier, String)> {
        let arrivals = discover(root)
            .expect("it is a repository")
            .arrivals(&["list.md".into()])
            .expect("it can be read");
        let text = |arrival: &Arrival| {
            arrival
                .files
                .first()
                .map_or_else(String::new, |(_, text)| text.trim().to_owned())
        };
        arrivals
            .iter()
            .map(|arrival| (arrival.carrier, text(arrival)))
            .collect()
    }

    fn expect(root: &Path, expected: &[(Carrier, &str)]) {
        let told = told(root);
        let told: Vec<(Carrier, &str)> = told
            .iter()
            .map(|(carrier, text)| (*carrier, text.as_str()))
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn what_was_committed_here_is_told_from_what_came() {
        use Carrier::{Commit, Fetch, Move};
        let fixture = Fixture::unborn();
        let root = fixture.root();
        expect(&root, &[]);
        fixture.commit(&[("list.md", "one\n")], "one");
        fixture.commit(&[("other", "1\n")], "other");
        fixture.git(&["branch", "old"]);
        fixture.commit(&[("list.md", "two\n")], "two");
        expect(&root, &[(Commit, "one"), (Commit, "two")]);
        fixture.git(&["checkout", "--quiet", "old"]);
        fixture.git(&["merge", "--quiet", "main"]);
        expect(
            &root,
            &[
                (Commit, "one"),
                (Commit, "two"),
                (Move, "one"),
                (Move, "two"),
            ],
        );
        // Without a reflog the origin is unknown.
        fs::remove_dir_all(root.join(".git/logs")).expect("it is there");
        expect(&root, &[(Fetch, "one"), (Fetch, "two"), (Move, "two")]);

        let clone = Fixture::unborn();
        let url = root.to_string_lossy().into_owned();
        clone.git(&["pull", "--quiet", &url, "old"]);
        clone.git(&["remote", "add", "origin", &url]);
        clone.git(&["fetch", "--quiet", "origin", "old"]);
        let first = told(&clone.root());
        assert!(
            first.contains(&(Move, "two".to_owned())) && !first.iter().any(|(by, _)| *by == Commit),
            "{first:?}"
        );
        fixture.commit(&[("list.md", "three\n")], "three");
        clone.git(&["fetch", "--quiet", "origin", "old"]);
        // The fetched text came before the commit of it.
        clone.git(&["merge", "--quiet", "--squash", "origin/old"]);
        clone.git(&["commit", "--quiet", "--message=mine"]);
        let squashed = told(&clone.root());
        let place = |one: (Carrier, &str)| {
            squashed
                .iter()
                .position(|(by, text)| (*by, text.as_str()) == one)
        };
        assert!(
            place((Fetch, "three")) < place((Commit, "three")),
            "{squashed:?}"
        );
        assert!(place((Fetch, "three")).is_some(), "{squashed:?}");
    }
}
