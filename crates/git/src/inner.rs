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
use super::repository::Head;
use super::worktree::{bin_beside, sweep};
use super::{GitError, Repository};
use tavern_sys::files;

/// Run inside: a bundle for each submodule in which there is what none of its remotes has, and the number and the place of each.
const BUNDLE: &str = r#"number=0
find "$GIT_DIR/modules" "$GIT_DIR/inner" -name HEAD -type f 2>/dev/null | while read -r head; do
    module=${head%/HEAD}
    test -d "$module/objects" && test -d "$module/refs" || continue
    number=$((number + 1))
    if GIT_DIR=$module git bundle create --quiet "$1/$number.bundle" HEAD --branches --not --remotes 2>/dev/null; then
        echo "$number ${module#"$GIT_DIR/"}"
    fi
done
"#;

/// Where in a cell the repositories are that stood in the places of submodules, each by its number.
const INNER: &str = "inner";

/// What was committed in a submodule, and is nowhere else.
#[derive(Clone, Debug)]
pub struct Bundle {
    pub submodule: String,
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
        let mut links = gitlinks(
            &self
                .call(&checkout)
                .args(["ls-files", "--stage", "-z"])
                .read()?,
        );
        if !matches!(self.head_in(&checkout.git_dir)?, Head::Unborn { .. }) {
            links.extend(gitlinks(
                &self
                    .call(&checkout)
                    .args(["ls-tree", "-r", "-z", "--full-tree", "HEAD"])
                    .read()?,
            ));
        }
        let is_own = |path: &Path| {
            !path
                .ancestors()
                .any(|above| checkout.root.join(above).is_symlink())
        };
        let is_there = |path: &PathBuf| {
            is_own(path)
                && checkout
                    .root
                    .join(path)
                    .join(".git")
                    .symlink_metadata()
                    .is_ok()
        };
        let mut places: Vec<PathBuf> = links.into_iter().filter(is_there).collect();
        places.sort();
        places.dedup();
        for (number, place) in places.iter().enumerate() {
            let (folder, to) = (
                checkout.root.join(place),
                cell.join(INNER).join(number.to_string()),
            );
            take(&folder, &to).map_err(GitError::io("take the repository out of", folder))?;
        }
        Ok(places)
    }

    /// Removes those that commands have made in such places, and no agent. Their files stay.
    pub fn remove_inner(&self, worktree: &Path) -> Result<(), GitError> {
        self.take_inner(worktree, &bin_beside(worktree))?;
        sweep(worktree);
        Ok(())
    }

    /// What was committed in submodules of the cell, as bundles in its folder `out`. Some of them were taken from these places
    /// in the worktree.
    pub fn submodules_of(
        &self,
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
        let bundle = |(number, submodule): (&str, &str)| {
            let number: u32 = number.parse().ok()?;
            let submodule = match submodule.split_once('/')? {
                (INNER, taken) => places
                    .get(taken.parse::<usize>().ok()?)?
                    .to_string_lossy()
                    .into_owned(),
                (_, name) => name.to_owned(),
            };
            Some(Bundle {
                submodule,
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
