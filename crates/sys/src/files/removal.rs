//! Removes folders, whatever whoever made them has done to keep them: such that nobody may look into or change, and
//! such that lie deeper than a path is long, or than a program may have folders open.
#![expect(
    clippy::disallowed_methods,
    reason = "whoever owns a folder has it removed here"
)]

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// What lies deeper, or has a longer path, is brought up before it is removed.
const DEEPEST: usize = 50;
const LONGEST: usize = 2048;

/// Removes the folder at `path` with all that is in it, also while others do so too.
///
/// # Errors
/// What the system says of what can't be removed. [`ErrorKind::NotFound`] is none.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match gone(take_apart(path)) {
            // Somebody was at work in it.
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
            // Killed in between, all of it is still below the root.
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

/// Makes all folders down to a depth ours to look into and to change; gives those at that depth.
fn far_below(folder: &Path) -> Vec<PathBuf> {
    let longest = folder.as_os_str().len() + LONGEST;
    let (mut places, mut far) = (vec![(folder.to_owned(), 0)], Vec::new());
    while let Some((place, depth)) = places.pop() {
        // What can't be changed shows when it is removed.
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

/// Already removed is as good as removed.
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
        // Longer than what is gone down at once, and wide at its end.
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
