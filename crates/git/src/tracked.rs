//! The paths that git tracks in a folder, by its index.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::program::records;
use super::{GitError, Repository};

impl Repository {
    /// Returns the direct children of the folder `path` in the main work tree that the index contains, or has paths
    /// below.
    pub fn tracked_in(&self, path: &Path) -> Result<BTreeSet<OsString>, GitError> {
        let prefix = path.join("");
        let prefix = prefix.as_os_str().as_bytes();
        // Only git can read a sparse index, with whole folders as one entry.
        let paths = self.indexed(prefix).or_else(|_| {
            let list = self
                .call(&self.main_checkout())
                .args(["ls-files", "-z"])
                .read()?;
            Ok::<_, GitError>(
                records(&list)
                    .filter(|path| path.starts_with(prefix))
                    .map(<[u8]>::to_vec)
                    .collect(),
            )
        })?;
        let name = |path: &Vec<u8>| {
            path[prefix.len()..]
                .split(|byte| *byte == b'/')
                .next()
                .map(<[u8]>::to_vec)
        };
        Ok(paths
            .iter()
            .filter_map(name)
            .map(OsString::from_vec)
            .collect())
    }

    /// Returns true if the index has a file at or below `path`.
    pub fn tracks(&self, path: &Path) -> Result<bool, GitError> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(true);
        };
        Ok(self.tracked_in(folder)?.contains(name))
    }

    /// Returns the paths in the index that begin with `prefix`.
    fn indexed(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, git2::Error> {
        let mut index = self.git.index()?;
        // Other processes change it while this program runs.
        index.read(false)?;
        let begin = index.find_prefix(prefix).unwrap_or(index.len());
        let paths = (begin..index.len())
            .map_while(|place| index.get(place))
            .map(|entry| entry.path);
        Ok(paths.take_while(|path| path.starts_with(prefix)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn what_is_right_in_a_folder_is_told() {
        let fixture = Fixture::new();
        for name in ["one/a/1", "one/a/2", "one/b", "one.txt", "onemore/c", "z"] {
            fixture.write(name, "x\n");
        }
        fixture.git(&["add", "--all"]);
        let names = |path: &str| {
            let found = fixture
                .repository()
                .tracked_in(Path::new(path))
                .expect("it can be read");
            found
                .into_iter()
                .map(|name| name.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("one"), ["a", "b"]);
        assert_eq!(names("none"), [""; 0]);
        assert!(names("").contains(&"one".to_owned()));
        fixture.git(&["commit", "--quiet", "--message=All"]);
        fixture.git(&["sparse-checkout", "set", "--sparse-index", "onemore"]);
        assert_eq!(names("one"), ["a", "b"]);
    }
}
