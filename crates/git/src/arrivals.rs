//! How some files came into this clone: the texts of them that HEAD was moved to, those on other branches and tags, and those of
//! the commits below, in the order in which that happened.
//!
//! Source: the reflogs of HEAD and of branches, git-reflog(1). What they don't tell counts as brought by git.

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

/// So many moves of HEAD that changed the files are told; what is older has been brought. Of the contents that it did not hold so
/// many are told, the newest.
const MOST_CHANGES: usize = 1024;

/// So many moves of HEAD are looked at.
const MOST_MOVES: usize = 4096;

/// So many commits beside HEAD's with other contents are looked at, the newest.
const MOST_BESIDE: usize = 256;

/// So many commits are looked at below one that came, the newest.
const MOST_BELOW: usize = 32_768;

/// Bytes of one text.
const MOST_BYTES: usize = 16 << 20;

/// Files below one folder.
const MOST_FILES: usize = 4096;

/// As the reflog tells a commit that a person has made here. One that ends a merge, a rebase or a cherry-pick is another.
const BY_HAND: [&str; 3] = ["commit: ", "commit (initial): ", "commit (amend): "];

/// As the reflog of a remote-tracking branch tells what went there from here.
const PUSHED: &str = "update by push";

/// What brought an [`Arrival`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Somebody committed it here.
    Commit,
    /// HEAD was moved otherwise: a clone, a pull, a switch, a merge.
    Move,
    /// It was fetched, or stands on another branch or tag, or below what came, and is not what HEAD holds.
    Fetch,
}

/// Texts of files that came at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub carrier: Carrier,
    /// All that there were then, by their paths from the root.
    pub files: Vec<(PathBuf, Rc<str>)>,
}

/// A commit that was there from a time on.
#[derive(Clone, Copy)]
struct Came {
    time: i64,
    commit: Oid,
    carrier: Carrier,
    /// The files are as they were: it counts only for what is below it.
    is_same: bool,
}

/// The objects of a commit at the paths that are asked for: equal where the files are.
type Contents = Vec<Option<Object>>;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Object {
    File(Oid),
    Folder(Oid),
}

impl Object {
    /// A submodule is neither.
    fn of(entry: &TreeEntry<'_>) -> Option<Object> {
        match entry.kind() {
            Some(ObjectType::Blob) => Some(Object::File(entry.id())),
            Some(ObjectType::Tree) => Some(Object::Folder(entry.id())),
            _ => None,
        }
    }
}

impl Repository {
    /// What git has of the file at `path` is what stands there, so it can be told what git brought. It is not so of a repository
    /// within this one, such as a submodule, or where an attribute has git convert what it checks out (`ident`, an encoding, a
    /// filter).
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
        // libgit2 would wait for a pipe, and says nothing of a folder.
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

    /// The attribute is set, as git says: an index that has whole folders as one entry is for git alone to read.
    fn is_converted_by_git(&self, path: &Path, attribute: &str) -> bool {
        let call = self.call(&self.main_checkout());
        let asked = call
            .args(["check-attr", "-z", attribute, "--"])
            .arg(path)
            .read();
        // The path, the attribute and its value, with a zero byte behind each.
        let is_set = |said: Vec<u8>| {
            let value = records(&said).nth(2);
            !value.is_some_and(|value| [&b"unspecified"[..], b"unset"].contains(&value))
        };
        asked.map_or(true, is_set)
    }

    /// By its index nobody but git has written the file, and it is not what git holds of it. Then git has converted it, whatever
    /// its attributes say by now. Line ends alone are another matter.
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
        // git keeps 32 bits of each.
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

    /// How the files at or below `paths` came here, the first first.
    ///
    /// # Errors
    /// They can't all be read.
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
            // What came in the same second was there before, unless it rests on this.
            let is_before = |came: &Came| {
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

    /// All that `came`, each behind the commits of others that came with it: of each content once, the oldest first. Of what HEAD
    /// did not hold the newest.
    fn with_below(
        &self,
        came: Vec<Came>,
        own: &HashMap<Oid, i64>,
        reader: &mut CommitReader<'_>,
    ) -> Vec<Came> {
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
            all.extend(below.map(|commit| Came {
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

    /// The commits on which `tip` rests and that were not `seen`, the newest first.
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

    /// The moves of HEAD, the first first.
    fn moves(&self, reflog: &Reflog, reader: &mut CommitReader<'_>) -> Result<Vec<Came>, GitError> {
        let head = match self.git.head().and_then(|head| head.peel_to_commit()) {
            Ok(commit) => Some(commit.id()),
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => {
                None
            }
            Err(error) => return Err(GitError::library("read what HEAD holds")(error)),
        };
        // From the newest to the oldest: a commit, and how HEAD came there. It is at the first, whatever the reflog says.
        let (mut steps, mut later, mut changes) = (Vec::new(), head, 0);
        let mut push = |step: Came, before: Option<Oid>, reader: &mut CommitReader<'_>| {
            let before = before.map(|before| reader.contents(before).clone());
            let is_same = before.as_ref() == Some(reader.contents(step.commit));
            changes += usize::from(!is_same);
            steps.push(Came { is_same, ..step });
            changes < MOST_CHANGES
        };
        let mut goes_on = true;
        for entry in reflog.iter().take(MOST_MOVES) {
            let time = entry.committer().when().seconds();
            let (old, new) = (entry.id_old(), entry.id_new());
            if let Some(commit) = later.filter(|later| *later != new) {
                // Nothing tells how HEAD came from the one to the other.
                goes_on = push(
                    Came {
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
                    Came {
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
        // What stood there before all that is told.
        if let Some(commit) = later {
            steps.push(Came {
                time: 0,
                commit,
                carrier: Carrier::Move,
                is_same: false,
            });
        }
        steps.reverse();
        Ok(steps)
    }

    /// What was fetched, or stands on another branch or tag, the first first; of each content once.
    fn beside(
        &self,
        head: &Reflog,
        own: &HashMap<Oid, i64>,
        reader: &mut CommitReader<'_>,
    ) -> Result<Vec<Came>, GitError> {
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
            // What somebody has stashed here they have typed, and the board's branch has what its queues say.
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
                // The move of a branch that HEAD was on is HEAD's, which alone tells what was before it in that second.
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
        // What went from here, and came back.
        dated.retain(|(_, commit)| !own.contains_key(commit));
        undated.retain(|commit| !own.contains_key(commit));
        let mut seen = HashSet::new();
        undated.retain(|commit| seen.insert(reader.contents(*commit).clone()));
        // A commit was there at the earliest when what it rests on was made here.
        let earliest = |commit: &Oid| (self.newest_of(own, *commit), *commit);
        let mut steps: Vec<(i64, Oid)> = undated.iter().map(earliest).collect();
        steps.extend(dated);
        steps.sort_by_key(|(time, _)| *time);
        seen.clear();
        steps.retain(|(_, commit)| seen.insert(reader.contents(*commit).clone()));
        steps.drain(..steps.len().saturating_sub(MOST_BESIDE));
        let came = |(time, commit)| Came {
            time,
            commit,
            carrier: Carrier::Fetch,
            is_same: false,
        };
        Ok(steps.into_iter().map(came).collect())
    }

    /// When the newest of `own` was made on which `commit` rests; 0 if there is none near.
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

/// When, and to what.
fn moved(entry: &ReflogEntry<'_>) -> (i64, Oid) {
    (entry.committer().when().seconds(), entry.id_new())
}

/// Reads commits, each content once.
struct CommitReader<'r> {
    repository: &'r Repository,
    paths: &'r [PathBuf],
    contents: HashMap<Oid, Contents>,
    texts: HashMap<Oid, Rc<str>>,
}

impl CommitReader<'_> {
    /// Nothing of a commit that is gone: only what is in nobody's history goes.
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

    fn arrival(&mut self, step: Came) -> Result<Arrival, GitError> {
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

/// The commits that a person has made here, with their times, as HEAD's reflog tells.
fn commits_by_hand(head: &Reflog) -> HashMap<Oid, i64> {
    let by_hand = head.iter().take(MOST_MOVES).filter(is_by_hand);
    by_hand
        .map(|entry| (entry.id_new(), entry.committer().when().seconds()))
        .collect()
}

/// A person has made the commit here.
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

    /// What came, in short: how, and the text of `list.md`.
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
        // Without a reflog nobody knows.
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
        // What was fetched came before whoever commits it.
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
