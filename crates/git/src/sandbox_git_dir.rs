//! A cell: the private git directory of a run in a sandbox, in place of the repository's.
//!
//! The agent may write anything into it: references, settings, hooks, an index, objects. The repository's own objects
//! are read through `alternates`. git opens such a cell only in a sandbox of its own, and outputs only text and a
//! pack, which git checks object by object. So its settings and links have no effect here.
#![expect(
    clippy::disallowed_methods,
    reason = "git owns the worktrees, and waits for other processes of git"
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::Reference;

use super::branch::oid;
use super::history::path_of;
use super::program::{THOROUGH, records};
use super::repository::Checkout;
use super::{CommitId, GitError, Repository};
use tavern_sys::files::{self, gone};
use tavern_sys::process::start::UNATTENDED;
use tavern_sys::process::{Spec, run_program};

/// References that every cell gets. All others are Tavern's own, or a person's.
const GIVEN: [&str; 4] = ["refs/heads/", "refs/tags/", "refs/remotes/", "refs/notes/"];

/// Prefix of kept references: branches, tags and stashes that an agent made in its cells. The name of the worktree
/// follows.
pub(super) const KEPT: &str = "refs/tavern/cells/";

/// Prefix of the names of kept stashes.
pub(super) const STASHED: &str = "stashed-";

/// A file in git's entry for a worktree: its agents have cells, so it may contain arbitrary repositories.
const MARK: &str = "tavern-cell";

/// A file in a cell: its initial references, in the format of `packed-refs`.
const GIVEN_LIST: &str = "tavern-given";

/// A file in a cell: the path of the repository's git directory, where Tavern's programs find the board.
const MAIN: &str = "tavern-main";

/// Limit of references in a state.
const MOST_REFERENCES: usize = 10_000;

/// Packs of fewer objects are unpacked into loose ones, as with git's own `fetch.unpackLimit`.
const LARGE: u32 = 100;

/// Script that runs in the sandbox: prints the state of the cell.
const LOOK: &str = r#"out=$1
odd=$(find "$GIT_DIR" ! -type f ! -type d ! -path "$GIT_DIR/hooks")
if test -n "$odd"; then echo "there are pipes, links or devices in it" >&2; exit 1; fi
head=$(git symbolic-ref --quiet HEAD) || head=HEAD
echo "head $head"
at=$(git rev-parse --quiet --verify 'HEAD^{commit}') && echo "at $at"
if test -d "$GIT_DIR/rebase-merge" || test -d "$GIT_DIR/rebase-apply"; then echo rebase; fi
if test -f "$GIT_DIR/MERGE_HEAD"; then sed 's/^/merge /' "$GIT_DIR/MERGE_HEAD"; fi
git for-each-ref --format='ref %(objectname) %(refname)' refs/heads refs/tags
git rev-list --walk-reflogs refs/stash 2>/dev/null | sed 's/^/stash /'
if test -n "$at"; then git diff-index --cached --raw -z --no-renames --no-abbrev HEAD >"$out/staged"; fi
git ls-files --unmerged -z >"$out/unmerged"
"#;

/// Time limit of each look into a cell: its settings may make git read without end.
const PATIENCE: Duration = Duration::from_secs(300);

/// Script that runs in the sandbox: packs the wanted objects.
const PACK: &str =
    r#"git pack-objects --quiet --revs --thin --indexed-objects --stdout <"$1/wanted" >"$1/pack""#;

/// The state that a cell reports. It is untrusted, and grants nothing that its agent could not have done anyway.
#[derive(Debug, Default, PartialEq, Eq)]
struct CellState {
    /// The reference that `HEAD` names; `None` if it names a commit.
    head: Option<String>,
    at: Option<CommitId>,
    is_rebasing: bool,
    merges: Vec<CommitId>,
    refs: BTreeMap<String, CommitId>,
    stash: Vec<CommitId>,
}

/// The cell of an ended run, and how to look into it.
#[derive(Clone, Copy, Debug)]
pub struct LeftCell<'a> {
    pub cell: &'a Path,
    /// An empty folder, the only one that git may write to while it looks.
    pub out: &'a Path,
    /// Command line prefix of the sandbox in which git looks.
    pub wrapper: &'a [OsString],
    /// The item's own branch; `None` for a worktree without one.
    pub branch: Option<&'a str>,
}

impl Repository {
    /// Creates a cell at `cell`, which must not exist, with the state of the worktree: `HEAD`, index, a merge under
    /// way. It gets the repository's branches and those from the worktree's earlier cells.
    pub fn make_cell(&self, worktree: &Path, cell: &Path) -> Result<(), GitError> {
        let checkout = self.fill_cell(worktree, cell)?;
        [
            "index",
            "MERGE_HEAD",
            "MERGE_MSG",
            "MERGE_MODE",
            "info/sparse-checkout",
        ]
        .iter()
        .try_for_each(|name| copied(&checkout.git_dir.join(name), &cell.join(name)))?;
        std::os::unix::fs::symlink(self.common_dir().join("hooks"), cell.join("hooks"))
            .map_err(GitError::io("write in", cell))?;
        fs::write(checkout.git_dir.join(MARK), "")
            .map_err(GitError::io("write in", &checkout.git_dir))
    }

    /// Fills a cell, except for hooks, the index, and a merge under way.
    pub(super) fn fill_cell(&self, worktree: &Path, cell: &Path) -> Result<Checkout, GitError> {
        let checkout = self.checkout(worktree)?;
        let writing = || GitError::io("write in", cell);
        for folder in [
            "objects/info",
            "objects/pack",
            "refs/heads",
            "refs/tags",
            "info",
        ] {
            fs::create_dir_all(cell.join(folder)).map_err(writing())?;
        }
        let common = self.common_dir();
        for (from, names) in [
            (&checkout.git_dir, &["HEAD", "config.worktree"][..]),
            (
                &common.to_owned(),
                &["config", "shallow", "info/exclude", "info/attributes"],
            ),
        ] {
            names
                .iter()
                .try_for_each(|name| copied(&from.join(name), &cell.join(name)))?;
        }
        let mut config = git2::Config::open(&cell.join("config"))
            .map_err(GitError::library("read the configuration"))?;
        // The work tree is where the link to the cell is.
        for name in ["core.worktree", "core.bare"] {
            let _ = config.remove(name);
        }
        let objects = [common.join("objects").as_os_str().as_encoded_bytes(), b"\n"].concat();
        fs::write(cell.join("objects/info/alternates"), objects).map_err(writing())?;
        let given = self.given(worktree)?;
        for name in ["packed-refs", GIVEN_LIST] {
            fs::write(cell.join(name), &given).map_err(writing())?;
        }
        let main = [common.as_os_str().as_encoded_bytes(), b"\n"].concat();
        fs::write(cell.join(MAIN), main).map_err(writing())?;
        self.give_stash(worktree, cell)?;
        Ok(checkout)
    }

    /// Takes over a cell: its objects, the item's branch, and the state of the worktree, if that still exists. Other
    /// changed branches and tags are kept at `refs/tavern/cells/`. Idempotent.
    ///
    /// Fails with [`GitError::Program`] if git can't read the cell.
    pub fn receive(&self, worktree: &Path, left: &LeftCell<'_>) -> Result<(), GitError> {
        let _held = self.hold_clean_up()?;
        let given = references(&given_to(left.cell));
        let state = self.look_into(left)?;
        let is_new = |name: &&String| {
            state.refs.get(*name) != given.get(*name) && Some(name.as_str()) != own(left).as_deref()
        };
        let others: Vec<&String> = state.refs.keys().filter(is_new).collect();
        self.take_objects(left, &state)?;
        let name = worktree.file_name().unwrap_or_default().to_string_lossy();
        for other in others {
            self.keep(
                &format!("{KEPT}{name}/{}", other.trim_start_matches("refs/")),
                &state.refs[other],
            )?;
        }
        self.keep_stash(&name, &state.stash)?;
        if let Some(reference) = own(left)
            && let Some(tip) = state.refs.get(&reference)
        {
            let before = self.tip(&reference)?;
            if before.as_ref() != Some(tip) {
                self.swap(
                    &reference,
                    before.as_ref(),
                    Some(tip),
                    "tavern: the commits of its agent",
                )?;
            }
        }
        match self.checkout(worktree) {
            Ok(checkout) => self.stand(&checkout, left, &state),
            Err(GitError::NotAWorktree { .. }) => state
                .at
                .map_or(Ok(()), |at| self.keep(&format!("{KEPT}{name}/HEAD"), &at)),
            Err(error) => Err(error),
        }
    }

    /// Keeps each stash of the cells of the worktree `name` at its own reference, since git keeps only the last one
    /// by itself.
    pub(super) fn keep_stash(&self, name: &str, stash: &[CommitId]) -> Result<(), GitError> {
        let place = |id: &CommitId| format!("{KEPT}{name}/{STASHED}{id}");
        for (reference, id) in self.references(&format!("{KEPT}{name}/{STASHED}"))? {
            if !stash.contains(&id) {
                self.swap(&reference, Some(&id), None, "tavern: taken from the stash")?;
            }
        }
        for id in stash {
            if self.tip(&place(id))?.is_none() {
                self.swap(&place(id), None, Some(id), "tavern: stashed in a cell")?;
            }
        }
        Ok(())
    }

    /// Restores the stash of the previous cell in a new cell.
    fn give_stash(&self, worktree: &Path, cell: &Path) -> Result<(), GitError> {
        let name = worktree.file_name().unwrap_or_default().to_string_lossy();
        let mut stash = Vec::new();
        for (_, id) in self.references(&format!("{KEPT}{name}/{STASHED}"))? {
            let commit = self.find_commit(&id)?;
            let words = commit
                .summary()
                .ok()
                .flatten()
                .unwrap_or_default()
                .to_owned();
            stash.push((commit.time().seconds(), id, words));
        }
        stash.sort();
        let Some((_, last, _)) = stash.last() else {
            return Ok(());
        };
        let writing = || GitError::io("write in", cell);
        fs::write(cell.join("refs/stash"), format!("{last}\n")).map_err(writing())?;
        fs::create_dir_all(cell.join("logs/refs")).map_err(writing())?;
        let mut before = "0".repeat(40);
        let mut log = String::new();
        for (time, id, words) in &stash {
            let _ = writeln!(
                log,
                "{before} {id} Tavern <tavern@localhost> {time} +0000\t{words}"
            );
            before = id.to_string();
        }
        fs::write(cell.join("logs/refs/stash"), log).map_err(writing())
    }

    /// Returns the lines of `packed-refs` for a cell.
    pub(super) fn given(&self, worktree: &Path) -> Result<String, GitError> {
        let listing = || GitError::library("list the references");
        let mut all = BTreeMap::new();
        let name = worktree.file_name().unwrap_or_default().to_string_lossy();
        let kept = format!("{KEPT}{name}/");
        let starts = [kept.as_str()].into_iter().chain(GIVEN);
        for start in starts {
            for reference in self
                .git
                .references_glob(&format!("{start}*"))
                .map_err(listing())?
            {
                let reference = reference.map_err(listing())?;
                // Annotated tags are not peeled.
                if let (Ok(name), Some(id)) = (reference.name(), reference.target()) {
                    let inner = name
                        .strip_prefix(&kept)
                        .map(|inner| format!("refs/{inner}"));
                    all.insert(inner.unwrap_or_else(|| name.to_owned()), id);
                }
            }
        }
        all.retain(|name, _| name != "refs/HEAD" && !name[5..].starts_with(STASHED));
        let mut lines = String::new();
        for (reference, id) in all {
            let _ = writeln!(lines, "{id} {reference}");
        }
        Ok(lines)
    }

    fn look_into(&self, left: &LeftCell<'_>) -> Result<CellState, GitError> {
        let output = boxed(left, &self.common_dir().join("objects"), LOOK, [])?;
        Ok(state(&String::from_utf8_lossy(&output)))
    }

    /// Packs all objects that the repository lacks, and takes the pack over. git checks each object, and that no
    /// object it refers to is missing.
    fn take_objects(&self, left: &LeftCell<'_>, state: &CellState) -> Result<(), GitError> {
        let wanted = state
            .refs
            .values()
            .chain(&state.at)
            .chain(&state.merges)
            .chain(&state.stash);
        let mut lines: Vec<String> = wanted.map(CommitId::to_string).collect();
        lines.extend(
            self.references("refs/")?
                .into_iter()
                .map(|(_, id)| format!("^{id}")),
        );
        lines.push(String::new());
        let path = left.out.join("wanted");
        fs::write(&path, lines.join("\n")).map_err(GitError::io("write", path))?;
        boxed(left, &self.common_dir().join("objects"), PACK, [])?;
        let path = left.out.join("pack");
        let reading = || GitError::io("read", &path);
        let mut pack = files::open(&path).map_err(reading())?;
        // `PACK`, version, number of objects; source: gitformat-pack(5).
        let mut head = [0; 12];
        pack.read_exact(&mut head).map_err(reading())?;
        let [.., a, b, c, d] = head;
        let call = self.call(&self.main_checkout()).limit(THOROUGH);
        match u32::from_be_bytes([a, b, c, d]) {
            0 => return Ok(()),
            1..LARGE => call
                .args(["unpack-objects", "-q", "--strict"])
                .input_of(pack)
                .read()?,
            _ => call
                .args(["index-pack", "--stdin", "--fix-thin", "--strict"])
                .input_of(pack)
                .read()?,
        };
        // libgit2 has to see the objects that git has just written.
        self.git
            .odb()
            .and_then(|objects| objects.refresh())
            .map_err(GitError::library("read the objects"))
    }

    pub(super) fn keep(&self, reference: &str, id: &CommitId) -> Result<(), GitError> {
        // A tag may be annotated, or name no commit.
        let commit = self
            .git
            .find_object(oid(id), None)
            .and_then(|object| object.peel_to_commit());
        let Ok(id) = commit.map(|commit| CommitId::from(commit.id())) else {
            return Ok(());
        };
        match self.keep_commit(reference, &id) {
            // The reference's name conflicts with an existing one: a file can't be a folder too.
            Err(GitError::Library { .. } | GitError::Moved { .. }) => {
                let place = reference
                    .splitn(5, '/')
                    .take(4)
                    .collect::<Vec<_>>()
                    .join("/");
                self.keep_commit(&format!("{place}/others"), &id).map(drop)
            }
            kept => kept.map(drop),
        }
    }

    /// Gives the worktree the state of its cell: `HEAD`, index, a merge or rebase under way.
    fn stand(
        &self,
        checkout: &Checkout,
        left: &LeftCell<'_>,
        state: &CellState,
    ) -> Result<(), GitError> {
        let Some(at) = &state.at else { return Ok(()) };
        match own(left).filter(|own| state.head.as_ref() == Some(own)) {
            Some(own) => self
                .call(checkout)
                .args(["symbolic-ref", "-m", "tavern: as in its cell", "HEAD"])
                .arg(own)
                .read()?,
            None => {
                let update = [
                    "update-ref",
                    "-m",
                    "tavern: as in its cell",
                    "--no-deref",
                    "HEAD",
                ];
                self.call(checkout).args(update).arg(at.as_str()).read()?
            }
        };
        self.call(checkout)
            .args(["read-tree", "--reset", at.as_str()])
            .limit(THOROUGH)
            .read()?;
        let entries = index_entries(
            &read(&left.out.join("staged"))?,
            &read(&left.out.join("unmerged"))?,
        );
        if !entries.is_empty() {
            self.call(checkout)
                .args(["update-index", "-z", "--index-info"])
                .input(&entries)?
                .limit(THOROUGH)
                .read()?;
        }
        let place = |name: &str| checkout.git_dir.join(name);
        let merges: String = state.merges.iter().map(|id| format!("{id}\n")).collect();
        set(
            &place("MERGE_HEAD"),
            Some(merges).filter(|merges| !merges.is_empty()),
        )?;
        let rebase = place("rebase-merge");
        if state.is_rebasing {
            fs::create_dir_all(&rebase).map_err(GitError::io("make", &rebase))?;
            set(&rebase.join("head-name"), own(left).map(|name| name + "\n"))?;
        } else {
            gone(fs::remove_dir_all(&rebase)).map_err(GitError::io("remove", &rebase))?;
        }
        Ok(())
    }
}

impl Checkout {
    /// Returns true if agents in this worktree have cells.
    pub(super) fn has_cells(&self) -> bool {
        self.git_dir.join(MARK).exists()
    }
}

fn own(left: &LeftCell<'_>) -> Option<String> {
    left.branch.map(|branch| format!("refs/heads/{branch}"))
}

/// Returns the paths of gitlinks in the output of `git ls-files --stage -z` or `git ls-tree -z`.
pub(super) fn gitlinks(listed: &[u8]) -> Vec<PathBuf> {
    let links = records(listed).filter(|entry| entry.starts_with(b"160000 "));
    links
        .filter_map(|entry| Some(path_of(entry.splitn(2, |byte| *byte == b'\t').nth(1)?)))
        .collect()
}

/// Runs the `sh` script on the cell, in its sandbox, with the output folder and `paths` as arguments. Returns
/// standard output.
pub(super) fn boxed<'a>(
    left: &LeftCell<'_>,
    objects: &Path,
    script: &str,
    paths: impl IntoIterator<Item = &'a Path>,
) -> Result<Vec<u8>, GitError> {
    let mut spec = Spec::new("sh", left.out)
        .args(["-c", script, "sh"])
        .args([left.out])
        .args(paths);
    spec.wrapper = left.wrapper.to_vec();
    spec.inherits = false;
    let fixed = [
        ("LC_ALL", "C"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_OPTIONAL_LOCKS", "0"),
    ];
    spec.env = UNATTENDED
        .iter()
        .chain(&fixed)
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    spec.env.push(("GIT_DIR".into(), left.cell.into()));
    // Needed if the repository has been moved since.
    spec.env
        .push(("GIT_ALTERNATE_OBJECT_DIRECTORIES".into(), objects.into()));
    spec.env
        .extend(std::env::var_os("PATH").map(|path| ("PATH".into(), path)));
    let start = |source| GitError::Io {
        doing: "start a sandbox for",
        path: left.cell.to_owned(),
        source,
    };
    let ran = run_program(spec, PATIENCE).map_err(start)?;
    let what = || "git in the sandbox".to_owned();
    let late = || GitError::TimedOut {
        command: what(),
        dir: left.cell.to_owned(),
        after: PATIENCE,
    };
    let ran = ran.ok_or_else(late)?;
    if ran.exit.is_success() {
        return Ok(ran.stdout);
    }
    let stderr = String::from_utf8_lossy(&ran.stderr)
        .trim()
        .replace('\n', "; ");
    Err(GitError::Program {
        command: what(),
        dir: left.cell.to_owned(),
        status: ran.exit.to_string(),
        stderr,
    })
}

/// Parses the output of [`LOOK`]. Invalid reference names and ids are skipped.
fn state(text: &str) -> CellState {
    let mut state = CellState::default();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("head", name)) => {
                state.head = Some(name.to_owned())
                    .filter(|name| Reference::is_valid_name(name) && name != "HEAD");
            }
            Some(("at", id)) => state.at = id.parse().ok(),
            Some(("merge", id)) => state.merges.extend(id.parse::<CommitId>()),
            Some(("stash", id)) => state.stash.extend(id.parse::<CommitId>()),
            Some(("ref", rest)) if state.refs.len() < MOST_REFERENCES => {
                state.refs.extend(reference(rest));
            }
            _ => state.is_rebasing |= line == "rebase",
        }
    }
    state
}

/// Returns the initial references of a cell. An agent's changes to the file affect only its own results.
pub(super) fn given_to(cell: &Path) -> String {
    files::read_text(cell.join(GIVEN_LIST)).unwrap_or_default()
}

pub(super) fn references(packed: &str) -> BTreeMap<String, CommitId> {
    packed.lines().filter_map(reference).collect()
}

fn reference(line: &str) -> Option<(String, CommitId)> {
    let (id, name) = line.split_once(' ')?;
    Some((name.to_owned(), id.parse().ok()?)).filter(|(name, _)| Reference::is_valid_name(name))
}

/// Converts the output of `git diff-index --raw -z` and `git ls-files --unmerged -z` to input for `git update-index
/// --index-info`.
fn index_entries(staged: &[u8], unmerged: &[u8]) -> Vec<u8> {
    const NOTHING: &str = "0000000000000000000000000000000000000000";
    let mut entries = Vec::new();
    let mut put =
        |start: &str, path: &[u8]| entries.extend([start.as_bytes(), b"\t", path, b"\0"].concat());
    let mut staged = records(staged);
    while let (Some(about), Some(path)) = (staged.next(), staged.next()) {
        let about = String::from_utf8_lossy(about);
        let fields: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
        match fields[..] {
            [_, "000000", _, _, kind] if kind != "U" => put(&format!("0 {NOTHING}"), path),
            [_, mode, _, id, kind] if kind != "U" && id != NOTHING => {
                put(&format!("{mode} {id} 0"), path);
            }
            _ => {}
        }
    }
    let split = |record: &[u8]| {
        let at = record.iter().position(|byte| *byte == b'\t')?;
        Some((
            String::from_utf8_lossy(&record[..at]).into_owned(),
            record[at + 1..].to_vec(),
        ))
    };
    let unmerged: Vec<(String, Vec<u8>)> = records(unmerged).filter_map(split).collect();
    unmerged
        .iter()
        .for_each(|(_, path)| put(&format!("0 {NOTHING}"), path));
    unmerged.iter().for_each(|(about, path)| put(about, path));
    entries
}

fn read(path: &Path) -> Result<Vec<u8>, GitError> {
    match files::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(GitError::io("read", path)),
    }
}

fn copied(from: &Path, to: &Path) -> Result<(), GitError> {
    gone(files::copy_with_time(from, to)).map_err(GitError::io("copy", from))
}

/// Writes `text` to the file, or removes the file.
fn set(path: &Path, text: Option<String>) -> Result<(), GitError> {
    match text {
        Some(text) => fs::write(path, text).map_err(GitError::io("write", path)),
        None => gone(fs::remove_file(path)).map_err(GitError::io("remove", path)),
    }
}
