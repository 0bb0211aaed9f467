//! What an agent has made in its cell that is in no object of the repository: the files of git-lfs, and what it committed in submodules.
//!
//! Both are taken as data. A file of git-lfs is named by its digest, so it is the same wherever it lies. What was committed in a
//! submodule becomes a bundle, which git checks when somebody fetches from it: settings and hooks of the cell stay there.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use super::cell::{LeftCell, boxed, gitlinks};
use super::program::THOROUGH;
use super::repository::{Checkout, Head};
use super::worktree::{bin_beside, sweep};
use super::{GitError, Repository};
use tavern_sys::files;

/// Run inside: a bundle for each submodule in which there is what none of its remotes has, and the number and the place of each; and which
/// have changes that are not committed.
const BUNDLE: &str = r#"number=0
find "$GIT_DIR/modules" "$GIT_DIR/inner" -name HEAD -type f 2>/dev/null | while read -r head; do
    module=${head%/HEAD}
    test -d "$module/objects" && test -d "$module/refs" || continue
    number=$((number + 1))
    if GIT_DIR=$module git bundle create --quiet "$1/$number.bundle" HEAD --all --reflog --not --remotes 2>/dev/null; then
        echo "$number ${module#"$GIT_DIR/"}"
    fi
    if test -n "$(GIT_DIR=$module git config core.worktree)" && test -n "$(GIT_DIR=$module git status --porcelain 2>/dev/null)"; then
        echo "dirty ${module#"$GIT_DIR/"}"
    fi
done
"#;

/// A file in git's entry for a worktree: the submodules that an agent in a cell left with changes, a line each.
const DIRTY: &str = "tavern-dirty";

/// Where in a cell the repositories are that stood in the places of submodules, each by its number.
const INNER: &str = "inner";

/// What was committed in a repository inside a worktree, and is nowhere else.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Its place in the worktree, or the name of the submodule.
    pub place: String,
    pub is_submodule: bool,
    /// For git to fetch from.
    pub file: PathBuf,
}

impl Repository {
    /// Takes over the files of git-lfs from a cell. Done twice it comes to the same.
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

    /// Takes the repositories out of the worktree that stand in the places of submodules, and puts them into its cell: git would obey their
    /// settings whenever somebody looks at the worktree. A submodule is what its index has, or HEAD, which `git reset` puts there.
    /// Their files stay. Returns their places, in order.
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

    /// The places of submodules, by the index and by HEAD, in which a repository stands, in order.
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

    /// What was committed in repositories inside the linked worktree and is on none of their remotes, as bundles in the folder
    /// `out`. Those of cells are taken by [`Repository::submodules_of`].
    pub fn bundle_inner(&self, worktree: &Path, out: &Path) -> Result<Vec<Bundle>, GitError> {
        let checkout = self.checkout(worktree)?;
        if checkout.has_cells() {
            return Ok(Vec::new());
        }
        let modules = checkout.git_dir.join("modules");
        let mut found: Vec<(PathBuf, String, bool)> = Vec::new();
        for entry in WalkDir::new(&modules).into_iter().filter_map(Result::ok) {
            let path = entry.path();
            if is_git_dir(path)
                && let Ok(name) = path.strip_prefix(&modules)
            {
                let name = name.to_string_lossy().into_owned();
                found.push((path.to_owned(), name, true));
            }
        }
        let mut places: Vec<(PathBuf, bool)> = self
            .status(&checkout)?
            .nested
            .into_iter()
            .map(|place| (place, false))
            .collect();
        if has_links(&checkout) {
            let links = self.filled_links(&checkout)?.into_iter();
            places.extend(links.map(|place| (place, true)));
        }
        for (place, is_submodule) in places {
            let git_dir = checkout.root.join(&place).join(".git");
            // A file leads to a repository that is elsewhere.
            if is_git_dir(&git_dir) {
                found.push((git_dir, place.to_string_lossy().into_owned(), is_submodule));
            }
        }
        let mut bundles = Vec::new();
        for (number, (git_dir, place, is_submodule)) in found.into_iter().enumerate() {
            let inner = Checkout {
                git_dir,
                root: checkout.root.clone(),
            };
            let file = out.join(format!("{}.bundle", number + 1));
            let call = self.call(&inner).args(["bundle", "create", "--quiet"]);
            // The stash, too, and what it has below its top.
            let refs = ["HEAD", "--all", "--reflog", "--not", "--remotes"];
            // One that has nothing new is refused, and so is one without a commit.
            let ran = call.arg(&file).args(refs).limit(THOROUGH);
            if ran.ending(&[0, 1, 128])?.exit.is_success() {
                bundles.push(Bundle {
                    place,
                    is_submodule,
                    file,
                });
            }
        }
        Ok(bundles)
    }

    /// Has the owner's own repository of the submodule, if it is there, take in what `bundle` has, below the reference `prefix`
    /// there. Returns whether it did.
    pub fn fetch_bundle(&self, bundle: &Bundle, prefix: &str) -> Result<bool, GitError> {
        let git_dir = self.common_dir().join("modules").join(&bundle.place);
        if !bundle.is_submodule || !is_git_dir(&git_dir) {
            return Ok(false);
        }
        let module = Checkout {
            git_dir,
            root: self.main_worktree().to_owned(),
        };
        let heads = self.call(&module).args(["bundle", "list-heads"]);
        let heads = heads.arg(&bundle.file).read()?;
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
        let call = self.call(&module).args(fetch).arg(&bundle.file).args(specs);
        call.limit(THOROUGH).read()?;
        Ok(true)
    }

    /// The submodules in which an agent in a cell left changes.
    pub(super) fn dirty_in_cells(checkout: &Checkout) -> Vec<PathBuf> {
        let list = files::read_text(checkout.git_dir.join(DIRTY)).unwrap_or_default();
        list.lines().map(PathBuf::from).collect()
    }

    /// Removes those that commands have made in such places, and no agent. Their files stay.
    pub fn remove_inner(&self, worktree: &Path) -> Result<(), GitError> {
        self.take_inner(worktree, &bin_beside(worktree))?;
        sweep(worktree);
        Ok(())
    }

    /// What was committed in submodules of the cell, as bundles in its folder `out`. Some of them were taken from these places
    /// in the `worktree`, whose entry remembers in which there are changes.
    pub fn submodules_of(
        &self,
        worktree: &Path,
        left: &LeftCell<'_>,
        places: &[PathBuf],
    ) -> Result<Vec<Bundle>, GitError> {
        if !["modules", INNER]
            .iter()
            .any(|name| left.cell.join(name).is_dir())
        {
            return Ok(Vec::new());
        }
        let told = boxed(left, &self.common_dir().join("objects"), BUNDLE)?;
        let told = String::from_utf8_lossy(&told);
        if let Ok(checkout) = self.checkout(worktree) {
            let dirty = told
                .lines()
                .filter_map(|line| line.strip_prefix("dirty modules/"));
            let list: String = dirty.map(|name| format!("{name}\n")).collect();
            let file = checkout.git_dir.join(DIRTY);
            files::write(&file, list.as_bytes()).map_err(GitError::io("write", &file))?;
        }
        let bundle = |(number, submodule): (&str, &str)| {
            let number: u32 = number.parse().ok()?;
            let place = match submodule.split_once('/')? {
                (INNER, taken) => places
                    .get(taken.parse::<usize>().ok()?)?
                    .to_string_lossy()
                    .into_owned(),
                (_, name) => name.to_owned(),
            };
            Some(Bundle {
                place,
                is_submodule: true,
                file: left.out.join(format!("{number}.bundle")),
            })
        };
        Ok(told
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(bundle)
            .collect())
    }
}

/// Its index has repositories inside, or can't be read but by git.
fn has_links(checkout: &Checkout) -> bool {
    let link = u32::from(git2::FileMode::Commit);
    git2::Index::open(&checkout.git_dir.join("index"))
        .map_or(true, |index| index.iter().any(|entry| entry.mode == link))
}

fn is_git_dir(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

/// Moves `.git` of the folder to `to`, whatever it is.
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

/// A file that is not what its name says is left where it is.
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
