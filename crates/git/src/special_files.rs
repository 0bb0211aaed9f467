//! Removes pipes and devices from a worktree before git starts in it: git would block on them, or read without end.
//! They hold nothing worth keeping. Sockets stay, since git can't read them and goes on.
//!
//! All paths are resolved from the worktree's own folder, as git does, so no path that git reaches is too long here.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::GitError;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A folder that is still to be searched.
struct Unseen {
    path: PathBuf,
    /// Whether it is a repository or inside one, where git follows links.
    is_repository: bool,
}

/// Removes them from the worktree at `root`, if it exists.
pub(super) fn remove_endless(root: &Path) -> Result<(), GitError> {
    let top = match openat(CWD, root, FOLDER, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        opened => opened
            .map_err(io::Error::from)
            .map_err(GitError::io("open", root))?,
    };
    let mut places = vec![Unseen {
        path: PathBuf::new(),
        is_repository: false,
    }];
    while let Some(place) = places.pop() {
        let found = look(&top, &place, &mut places);
        found
            .map_err(io::Error::from)
            .map_err(GitError::io("look for pipes in", root.join(&place.path)))?;
    }
    Ok(())
}

fn look(top: &OwnedFd, place: &Unseen, places: &mut Vec<Unseen>) -> Result<(), Errno> {
    let Some(folder) = opened(top, &place.path)? else {
        return Ok(());
    };
    let entries: Vec<(PathBuf, FileType)> = Dir::read_from(&folder)?
        .filter_map(Result::ok)
        .map(|entry| {
            (
                PathBuf::from(OsStr::from_bytes(entry.file_name().to_bytes())),
                entry.file_type(),
            )
        })
        .filter(|(name, _)| name != Path::new(".") && name != Path::new(".."))
        .collect();
    let has = |wanted: &str| entries.iter().any(|(name, _)| name == Path::new(wanted));
    let is_repository = place.is_repository || has("objects") && has("refs");
    for (name, kind) in entries {
        let path = place.path.join(name);
        let kind = if kind == FileType::Unknown {
            kind_of(top, &path, AtFlags::SYMLINK_NOFOLLOW)
        } else {
            kind
        };
        let is_in_the_way = match kind {
            FileType::Symlink => is_repository && is_endless(kind_of(top, &path, AtFlags::empty())),
            kind => is_endless(kind),
        };
        let is_opened = is_repository
            || path
                .file_name()
                .is_some_and(|name| name.as_bytes().starts_with(b".git"));
        if kind == FileType::Directory {
            places.push(Unseen {
                path,
                is_repository,
            });
        } else if is_in_the_way {
            match remove(top, &place.path, &path) {
                // An entry in another user's folder may stay if git would not open it.
                Err(_) if !is_opened => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}

fn is_endless(kind: FileType) -> bool {
    matches!(
        kind,
        FileType::Fifo | FileType::CharacterDevice | FileType::BlockDevice
    )
}

/// Returns `None` for a folder that git can't open either.
fn opened(top: &OwnedFd, path: &Path) -> Result<Option<OwnedFd>, Errno> {
    let open = || openat(top, here(path), FOLDER, Mode::empty());
    match open() {
        // git opens tracked files in it by name.
        Err(Errno::ACCESS) if may_be_entered(top, path) => {
            // Another user may own it, for example after a run in a container.
            let changed = chmodat(top, here(path), Mode::RWXU, AtFlags::empty());
            if changed.is_ok() {
                open().map(Some)
            } else {
                Ok(None)
            }
        }
        // It is gone, or deeper than git reaches.
        Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => {
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

fn may_be_entered(top: &OwnedFd, path: &Path) -> bool {
    statat(top, here(path), AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| Mode::from_raw_mode(stat.st_mode).contains(Mode::XUSR))
}

fn kind_of(top: impl AsFd, path: &Path, flags: AtFlags) -> FileType {
    statat(top, path, flags).map_or(FileType::Unknown, |stat| {
        FileType::from_raw_mode(stat.st_mode)
    })
}

fn remove(top: &OwnedFd, folder: &Path, path: &Path) -> Result<(), Errno> {
    let unlink = || unlinkat(top, path, AtFlags::empty());
    let unlinked = match unlink() {
        Err(Errno::ACCESS) => {
            chmodat(top, here(folder), Mode::RWXU, AtFlags::empty()).and_then(|()| unlink())
        }
        unlinked => unlinked,
    };
    match unlinked {
        // Another process removed it, or git can't name it either.
        Err(Errno::NOENT | Errno::NAMETOOLONG) => Ok(()),
        unlinked => unlinked,
    }
}

/// The top folder has no name from within.
fn here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::mkfifoat;

    use super::*;

    fn make_pipe(folder: impl AsFd, name: &str) {
        mkfifoat(folder, name, Mode::RWXU).expect("the folder is ours");
    }

    #[test]
    fn pipes_go_and_what_may_be_work_stays() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let root = fs::canonicalize(scratch.path())
            .expect("it is there")
            .join("w");
        let path = |name: &str| root.join(name);
        for folder in ["sub/inner", "q/refs/heads", "q/objects"] {
            fs::create_dir_all(path(folder)).expect("the folder is ours");
        }
        let top = fs::File::open(&root).expect("it is there");
        let gone = [
            ".gitignore",
            "sub/inner/pipe",
            "q/HEAD",
            "q/refs/heads/x",
            "q/config",
        ];
        gone[..3].iter().for_each(|name| make_pipe(&top, name));
        for name in &gone[3..] {
            symlink("/dev/zero", path(name)).expect("the folder is ours");
        }
        let kept = ["file", "link", "sub/masked", "socket"];
        fs::write(path("file"), "x").expect("the folder is ours");
        symlink("file", path("link")).expect("the folder is ours");
        symlink("/dev/null", path("sub/masked")).expect("the folder is ours");
        let _listener = UnixListener::bind(path("socket")).expect("the folder is ours");
        remove_endless(&root).expect("it can be looked at");
        let is_there = |name: &&str| path(name).symlink_metadata().is_ok();
        assert_eq!(
            (
                gone.iter().filter(|name| is_there(name)).count(),
                kept.iter().filter(|name| is_there(name)).count()
            ),
            (0, 4)
        );
        remove_endless(&path("nowhere")).expect("there is nothing");
    }

    /// git resolves paths relative to the worktree, although the absolute ones are longer than the system allows.
    #[test]
    fn none_is_too_deep_for_us_that_git_reaches() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let mut folder = openat(CWD, scratch.path(), FOLDER, Mode::empty()).expect("it is there");
        for _ in 0..20 {
            let name = "d".repeat(200);
            rustix::fs::mkdirat(&folder, &name, Mode::RWXU).expect("the folder is ours");
            folder = openat(&folder, &name, FOLDER, Mode::empty()).expect("it is there");
        }
        // 4020 bytes of folders.
        let name = "p".repeat(74);
        make_pipe(&folder, &name);
        remove_endless(scratch.path()).expect("it can be looked at");
        assert_eq!(
            kind_of(&folder, Path::new(&name), AtFlags::SYMLINK_NOFOLLOW),
            FileType::Unknown
        );
    }
}
