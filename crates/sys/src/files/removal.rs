//! Removes folders even if they resist: without permissions, nested deeper than a path may be long, or deeper than a
//! program may have folders open.
#![expect(
    clippy::disallowed_methods,
    reason = "the owner of a folder removes it here"
)]

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// Folders that are deeper, or have a longer path, are moved up before they are removed.
const DEEPEST: usize = 50;
const LONGEST: usize = 2048;

/// Removes the folder at `path` with its content, even while other processes do the same.
///
/// # Errors
/// The system's error about the first path that can't be removed. A missing folder is no error.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match gone(take_apart(path)) {
            // Another process was working in it.
            Err(_) if tries < 3 => tries += 1,
            other => return other,
        }
    }
}

fn take_apart(root: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(root)?.is_dir() {
        return fs::remove_file(root);
    }
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for inner in far_below(&folder) {
            // After a crash, everything is still below the root.
            let aside = root.join(format!(".{}", Uuid::new_v4()));
            match fs::rename(&inner, &aside) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                renamed => renamed.map(|()| folders.push(aside))?,
            }
        }
        if folder != root {
            gone(fs::remove_dir_all(&folder))?;
        }
    }
    fs::remove_dir_all(root)
}

/// Makes all folders down to a depth accessible; returns those at that depth.
fn far_below(folder: &Path) -> Vec<PathBuf> {
    let longest = folder.as_os_str().len() + LONGEST;
    let (mut places, mut far) = (vec![(folder.to_owned(), 0)], Vec::new());
    while let Some((place, depth)) = places.pop() {
        // A failure shows later, on removal.
        let _ = fs::set_permissions(&place, fs::Permissions::from_mode(0o700));
        if depth >= DEEPEST || place.as_os_str().len() > longest {
            far.push(place);
            continue;
        }
        let entries = fs::read_dir(&place).into_iter().flatten().flatten();
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        places.extend(inner.map(|entry| (entry.path(), depth + 1)));
    }
    far
}

/// Treats a missing file as removed.
pub fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn all_goes_that_is_in_it_and_nothing_that_it_leads_to() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| scratch.path().join(name);
        fs::create_dir_all(path("kept")).expect("it is ours");
        fs::write(path("kept/file"), "").expect("it is ours");
        let name = "n".repeat(200);
        // Deeper than one descent goes, and wide at its end.
        let deep = path("root").join([name.as_str(); 11].join("/"));
        fs::create_dir_all(&deep).expect("it is ours");
        let low = path("root").join(["d"; 120].join("/"));
        for number in 0..3 {
            fs::create_dir_all(low.join(number.to_string())).expect("it is ours");
            fs::write(deep.join(number.to_string()), "").expect("it is ours");
        }
        symlink(path("kept"), path("root/link")).expect("it is ours");
        symlink(path("kept"), deep.join("link")).expect("it is ours");
        remove_tree(&path("root")).expect("it is ours");
        assert!(!path("root").exists() && path("kept/file").exists());
        remove_tree(&path("root")).expect("there is nothing");
        symlink(path("kept"), path("root")).expect("it is ours");
        remove_tree(&path("root")).expect("it is ours");
        assert!(path("root").symlink_metadata().is_err() && path("kept/file").exists());
    }
}
