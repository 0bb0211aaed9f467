//! Work in a cell that is in no object of the repository: files of git-lfs, and commits in submodules.
//!
//! Both are taken over as data. A git-lfs file is named by its digest, so it is the same everywhere. Commits in a
//! submodule become a bundle, which git checks on fetch. Settings and hooks of the cell stay there.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use walkdir::{DirEntry, WalkDir};
use xxhash_rust::xxh3::xxh3_64;

use super::program::THOROUGH;
use super::repository::{Checkout, Head};
use super::sandbox_git_dir::{LeftCell, boxed, gitlinks};
use super::worktree::{bin_beside, sweep};
use super::{GitError, Repository};
use tavern_sys::files;

/// Script that runs in the sandbox, with an output folder and git directories as arguments. It bundles each
/// repository that has commits on none of its remotes, and prints its number; also the numbers of those with
/// uncommitted changes. The boundary of a shallow clone was fetched, and tags may be, so both are excluded.
const BUNDLE: &str = r#"out=$1 number=0
shift
for module; do
    number=$((number + 1))
    if GIT_DIR=$module git bundle create --quiet "$out/$number.bundle" HEAD --exclude='refs/tags/*' --all --reflog \
        --not --remotes $(cat "$module/shallow" 2>/dev/null) 2>/dev/null; then
        echo "new $number"
    fi
    if test -n "$(GIT_DIR=$module git config core.worktree)" && test -n "$(GIT_DIR=$module git status --porcelain 2>/dev/null)"; then
        echo "dirty $number"
    fi
done
"#;

/// A file in git's entry for a worktree: the submodules that an agent in a cell left with changes, one a line.
const DIRTY: &str = "tavern-dirty";

/// A folder in a cell: repositories taken from the places of submodules, by number.
const INNER: &str = "inner";

/// Longest name of a bundle without its extension, in bytes.
const LONGEST_NAME: usize = 200;

/// A repository inside a worktree.
struct Inner {
    git_dir: PathBuf,
    /// Its path in the worktree, or the name of the submodule.
    place: String,
    kind: InnerKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InnerKind {
    /// A submodule, as git creates it.
    Module,
    /// A repository that is, or was, in the place of a submodule.
    Link,
    Other,
}

/// Commits of a repository inside a worktree that are nowhere else.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Its path in the worktree, or the name of the submodule.
    pub place: String,
    pub is_submodule: bool,
    /// The bundle file, from which git can fetch.
    pub file: PathBuf,
    /// Its file name, unique within the worktree.
    pub name: String,
}

/// Returns the name of a repository's bundle.
pub(super) fn bundle_name(place: &str, kind: InnerKind) -> String {
    let mut name = place.replace('%', "%25").replace('/', "%2F");
    if name.len() > LONGEST_NAME {
        name = format!("{:016x}", xxh3_64(place.as_bytes()));
    }
    // A submodule may have the name of another repository's path.
    let end = if kind == InnerKind::Module {
        ""
    } else {
        ".git"
    };
    format!("{name}{end}.bundle")
}

impl Repository {
    /// Takes over the files of git-lfs from a cell. Idempotent.
    pub fn receive_lfs(&self, cell: &Path) -> Result<(), GitError> {
        let to = self.common_dir().join("lfs/objects");
        for entry in WalkDir::new(cell.join("lfs/objects"))
            .into_iter()
            .filter_map(Result::ok)
        {
            let name = entry.file_name().to_string_lossy();
            let is_digest = name.len() == 64
                && name
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if entry.file_type().is_file() && is_digest {
                let folder = to.join(&name[..2]).join(&name[2..4]);
                if !folder.join(&*name).exists() {
                    copied(entry.path(), &folder, &name)
                        .map_err(GitError::io("take over", entry.path()))?;
                }
            }
        }
        Ok(())
    }

    /// Moves repositories from the places of submodules in the worktree into its cell: git would obey their settings
    /// at any later command in the worktree. Submodules are those of the index, and of HEAD, which `git reset`
    /// restores. Their files stay. Returns their paths, sorted.
    pub fn take_inner(&self, worktree: &Path, cell: &Path) -> Result<Vec<PathBuf>, GitError> {
        let checkout = match self.checkout(worktree) {
            Err(GitError::NotAWorktree { .. }) => return Ok(Vec::new()),
            checkout => checkout?,
        };
        let places = self.filled_links(&checkout)?;
        for (number, place) in places.iter().enumerate() {
            let (folder, to) = (
                checkout.root.join(place),
                cell.join(INNER).join(number.to_string()),
            );
            take(&folder, &to).map_err(GitError::io("take the repository out of", folder))?;
        }
        Ok(places)
    }

    /// Returns the sorted paths of submodules, by the index and by HEAD, that contain a repository.
    fn filled_links(&self, checkout: &Checkout) -> Result<Vec<PathBuf>, GitError> {
        let listed = |args: &[&str]| self.call(checkout).args(args).read();
        let mut links = gitlinks(&listed(&["ls-files", "--stage", "-z"])?);
        if !matches!(self.head_in(&checkout.git_dir)?, Head::Unborn { .. }) {
            links.extend(gitlinks(&listed(&[
                "ls-tree",
                "-r",
                "-z",
                "--full-tree",
                "HEAD",
            ])?));
        }
        links.retain(|path| {
            let git = path.join(".git");
            !checkout.is_behind_link(&git) && checkout.root.join(git).symlink_metadata().is_ok()
        });
        links.sort();
        links.dedup();
        Ok(links)
    }

    /// Bundles the commits of repositories inside the linked worktree that are on none of their remotes, into the
    /// folder `out`. For cells, use [`Repository::submodules_of`].
    pub fn bundle_inner(&self, worktree: &Path, out: &Path) -> Result<Vec<Bundle>, GitError> {
        let checkout = self.checkout(worktree)?;
        if checkout.has_cells() {
            return Ok(Vec::new());
        }
        let links = if has_links(&checkout) {
            self.filled_links(&checkout)?
        } else {
            Vec::new()
        };
        let found = self.repositories_of(worktree, &self.registered(worktree)?.admin, &links);
        let left = LeftCell {
            cell: &checkout.git_dir,
            out,
            wrapper: &[],
            branch: None,
        };
        Ok(self.bundled(&left, &found)?.0)
    }

    /// Returns the repositories of a worktree: its submodules, with git directories in `admin`, those taken from
    /// `links`, and all others inside it, ignored or not.
    fn repositories_of(&self, worktree: &Path, admin: &Path, links: &[PathBuf]) -> Vec<Inner> {
        let walk = |root: &Path| {
            let within = WalkDir::new(root).min_depth(1).follow_root_links(false);
            within.into_iter()
        };
        let modules = admin.join("modules");
        let of_modules = walk(&modules).filter_map(Result::ok).map(|entry| Inner {
            place: relative(entry.path(), &modules),
            kind: InnerKind::Module,
            git_dir: entry.into_path(),
        });
        let taken = links.iter().enumerate().map(|(number, link)| Inner {
            place: link.to_string_lossy().into_owned(),
            kind: InnerKind::Link,
            git_dir: admin.join(INNER).join(number.to_string()),
        });
        let is_beside = |entry: &DirEntry| {
            entry
                .path()
                .parent()
                .is_none_or(|above| !above.ends_with(".git"))
        };
        let standing = walk(worktree)
            .filter_entry(is_beside)
            .filter_map(Result::ok);
        // If `.git` is a file or a link, the repository is elsewhere.
        let is_own = |entry: &DirEntry| entry.file_name() == ".git" && entry.file_type().is_dir();
        let standing = standing.filter(|entry| is_own(entry) && entry.depth() > 1);
        let standing = standing.map(|entry| {
            let folder = entry.path().parent().unwrap_or(worktree);
            let place = relative(folder, worktree);
            let is_link = links.iter().any(|link| *link == Path::new(&place));
            Inner {
                kind: if is_link {
                    InnerKind::Link
                } else {
                    InnerKind::Other
                },
                place,
                git_dir: entry.into_path(),
            }
        });
        let all = of_modules.chain(taken).chain(standing);
        all.filter(|inner| is_git_dir(&inner.git_dir)).collect()
    }

    /// Returns the bundles of these repositories, and the submodules with uncommitted changes.
    fn bundled(
        &self,
        left: &LeftCell<'_>,
        found: &[Inner],
    ) -> Result<(Vec<Bundle>, Vec<String>), GitError> {
        if found.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let dirs = found.iter().map(|inner| inner.git_dir.as_path());
        let told = boxed(left, &self.common_dir().join("objects"), BUNDLE, dirs)?;
        let told = String::from_utf8_lossy(&told);
        let (mut bundles, mut dirty) = (Vec::new(), Vec::new());
        for (what, number) in told.lines().filter_map(|line| line.split_once(' ')) {
            let index = number
                .parse::<usize>()
                .ok()
                .and_then(|nth| nth.checked_sub(1));
            let Some(inner) = index.and_then(|index| found.get(index)) else {
                continue;
            };
            if what == "new" {
                bundles.push(Bundle {
                    place: inner.place.clone(),
                    is_submodule: inner.kind != InnerKind::Other,
                    name: bundle_name(&inner.place, inner.kind),
                    file: left.out.join(format!("{number}.bundle")),
                });
            } else if inner.kind == InnerKind::Module {
                dirty.push(inner.place.clone());
            }
        }
        Ok((bundles, dirty))
    }

    /// Fetches the bundle `file` into the user's own repository of the submodule `place`, below the reference
    /// `prefix`. Returns false if there is no such repository.
    pub fn fetch_bundle(&self, place: &str, file: &Path, prefix: &str) -> Result<bool, GitError> {
        let Some(module) = self.own_module(place) else {
            return Ok(false);
        };
        let heads = self.call(&module).args(["bundle", "list-heads"]);
        let heads = heads.arg(file).read()?;
        let heads = String::from_utf8_lossy(&heads).into_owned();
        let names = heads
            .lines()
            .filter_map(|line| Some(line.split_once(' ')?.1));
        let specs =
            names.map(|name| format!("+{name}:{prefix}/{}", name.trim_start_matches("refs/")));
        let fetch = [
            "-c",
            "fetch.fsckObjects=true",
            "-c",
            "protocol.file.allow=always",
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
        ];
        let call = self.call(&module).args(fetch).arg(file).args(specs);
        call.limit(THOROUGH).read()?;
        Ok(true)
    }

    /// Returns the submodules in which an agent in a cell left changes.
    pub(super) fn dirty_in_cells(checkout: &Checkout) -> Vec<PathBuf> {
        let list = files::read_text(checkout.git_dir.join(DIRTY)).unwrap_or_default();
        list.lines().map(PathBuf::from).collect()
    }

    /// Removes repositories that commands, not agents, created in the places of submodules. Their files stay.
    pub fn remove_inner(&self, worktree: &Path) -> Result<(), GitError> {
        self.take_inner(worktree, &bin_beside(worktree))?;
        sweep(worktree);
        Ok(())
    }

    /// Bundles the commits of repositories in the cell and in its worktree, into its folder `out`. `places` come
    /// from the `worktree`; its entry records the submodules with changes.
    pub fn submodules_of(
        &self,
        worktree: &Path,
        left: &LeftCell<'_>,
        places: &[PathBuf],
    ) -> Result<Vec<Bundle>, GitError> {
        let found = self.repositories_of(worktree, left.cell, places);
        let has_submodules = found.iter().any(|inner| inner.kind != InnerKind::Other);
        let (bundles, dirty) = self.bundled(left, &found)?;
        if has_submodules && let Ok(checkout) = self.checkout(worktree) {
            let list: String = dirty.iter().map(|name| format!("{name}\n")).collect();
            let file = checkout.git_dir.join(DIRTY);
            files::write(&file, list.as_bytes()).map_err(GitError::io("write", &file))?;
        }
        Ok(bundles)
    }
}

/// Returns true if the index has gitlinks, or if only git can read it.
fn has_links(checkout: &Checkout) -> bool {
    let link = u32::from(git2::FileMode::Commit);
    git2::Index::open(&checkout.git_dir.join("index"))
        .map_or(true, |index| index.iter().any(|entry| entry.mode == link))
}

fn relative(path: &Path, root: &Path) -> String {
    let inner = path.strip_prefix(root).unwrap_or(path);
    inner.to_string_lossy().into_owned()
}

fn is_git_dir(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

/// Moves `.git` of the folder, a file or a folder, to `to`.
#[expect(
    clippy::disallowed_methods,
    reason = "a repository of an agent's is moved into its cell"
)]
fn take(folder: &Path, to: &Path) -> io::Result<()> {
    let git = folder.join(".git");
    let own = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    own(folder)?;
    if git.symlink_metadata()?.is_dir() {
        own(&git)?;
    }
    let above = to.parent().unwrap_or(to);
    fs::create_dir_all(above)?;
    files::remove_tree(to)?;
    fs::rename(git, to)
}

/// Copies a file with the SHA-256 digest `name`; skips any other file.
fn copied(from: &Path, folder: &Path, name: &str) -> io::Result<()> {
    let mut source = files::open(from)?;
    fs::create_dir_all(folder)?;
    let mut copy = tempfile::NamedTempFile::new_in(folder)?;
    let (mut digest, mut part) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let length = source.read(&mut part)?;
        if length == 0 {
            break;
        }
        digest.update(&part[..length]);
        copy.write_all(&part[..length])?;
    }
    let found: String = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if found == name {
        copy.as_file().sync_all()?;
        copy.persist(folder.join(name))?;
    }
    Ok(())
}
