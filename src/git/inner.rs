//! What an agent has made in its cell that is in no object of the repository: the files of git-lfs, and what it committed in submodules.
//!
//! Both are taken as data. A file of git-lfs is named by its digest, so it is the same wherever it lies. What was committed in a
//! submodule becomes a bundle, which git checks when somebody fetches from it: settings and hooks of the cell stay there.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use super::cell::{LeftCell, boxed};
use super::{GitError, Repository};
use crate::files;

/// Run inside: a bundle for each submodule in which there is what none of its remotes has, and the number and the place of each.
const BUNDLE: &str = r#"number=0
find "$GIT_DIR/modules" -name HEAD -type f 2>/dev/null | while read -r head; do
    module=${head%/HEAD}
    test -d "$module/objects" && test -d "$module/refs" || continue
    number=$((number + 1))
    if GIT_DIR=$module git bundle create --quiet "$1/$number.bundle" HEAD --branches --not --remotes 2>/dev/null; then
        echo "$number ${module#"$GIT_DIR/modules/"}"
    fi
done
"#;

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
        for entry in WalkDir::new(cell.join("lfs/objects")).into_iter().filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy();
            let is_digest = name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if entry.file_type().is_file() && is_digest {
                let folder = to.join(&name[..2]).join(&name[2..4]);
                if !folder.join(&*name).exists() {
                    copied(entry.path(), &folder, &name).map_err(GitError::io("take over", entry.path()))?;
                }
            }
        }
        Ok(())
    }

    /// What was committed in submodules of the cell, as bundles in its folder `out`.
    pub fn submodules_of(&self, left: &LeftCell<'_>) -> Result<Vec<Bundle>, GitError> {
        if !left.cell.join("modules").is_dir() {
            return Ok(Vec::new());
        }
        let told = boxed(left, &self.common_dir().join("objects"), BUNDLE)?;
        let told = String::from_utf8_lossy(&told);
        let bundle = |(number, submodule): (&str, &str)| {
            let number: u32 = number.parse().ok()?;
            Some(Bundle { submodule: submodule.to_owned(), file: left.out.join(format!("{number}.bundle")) })
        };
        Ok(told.lines().filter_map(|line| line.split_once(' ')).filter_map(bundle).collect())
    }
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
    let found: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found == name {
        copy.as_file().sync_all()?;
        copy.persist(folder.join(name))?;
    }
    Ok(())
}
