//! Opens files of a board: only regular files, never through links, without blocking, with bounded reads. Removes
//! folders completely, with any content that an agent made.
//!
//! A clone may contain a link to a user's keys, a pipe without a writer, or an endless device in place of any file.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

mod removal;

pub use removal::{gone, remove_tree};

use rustix::fs::{CWD, Dir, DirEntry, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// The most bytes read of one file. Queues of 10,000 items have two million.
const MOST: u64 = 256 * 1024 * 1024;

/// Opens the file at `path`, no part of which may be a link; callers that mean the target must resolve it. If the
/// kernel can't check the folders above (before Linux 5.6, or in some containers), only the last part is checked.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    open_as(path.as_ref(), OFlags::RDONLY)
}

/// Like `open`, and returns the file's metadata.
pub fn open_known(path: impl AsRef<Path>) -> io::Result<(File, Metadata)> {
    open_known_as(path.as_ref(), OFlags::RDONLY)
}

/// Returns the names in a folder, and whether each is known to be a regular file. No part of the path may be a link.
pub fn names_in(folder: &Path) -> io::Result<Vec<(OsString, bool)>> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match opened(folder, flags, Mode::empty()) {
        Err(Errno::LOOP) => return Err(refused(A_LINK)),
        opened => opened?,
    };
    let named = |entry: rustix::io::Result<DirEntry>| {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
        Ok((name, entry.file_type() == FileType::RegularFile))
    };
    let all: io::Result<Vec<_>> = Dir::new(opened)?.map(named).collect();
    let mut all = all?;
    all.retain(|(name, _)| name != "." && name != "..");
    Ok(all)
}

/// Like `open`, for reading and writing.
pub fn open_to_write(path: impl AsRef<Path>) -> io::Result<File> {
    open_as(path.as_ref(), OFlags::RDWR)
}

/// Like `open_to_write`, and returns the file's metadata.
pub fn open_known_to_write(path: impl AsRef<Path>) -> io::Result<(File, Metadata)> {
    open_known_as(path.as_ref(), OFlags::RDWR)
}

/// Like `open_to_write`, but creates a missing file. Existing content stays.
pub fn open_or_make(path: impl AsRef<Path>) -> io::Result<File> {
    open_as(path.as_ref(), OFlags::RDWR | OFlags::CREATE)
}

/// Like `open_or_make`, but for appending.
pub fn open_to_append(path: impl AsRef<Path>) -> io::Result<File> {
    open_as(
        path.as_ref(),
        OFlags::RDWR | OFlags::APPEND | OFlags::CREATE,
    )
}

/// Writes a file that no other process uses yet: a crash may leave a part of it.
pub fn write(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    open_as(
        path.as_ref(),
        OFlags::WRONLY | OFlags::TRUNC | OFlags::CREATE,
    )?
    .write_all(bytes)
}

/// Copies a file with its modification time. A git index needs its own: git compares the contents of files that are not
/// older.
pub fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    let from = open(from)?;
    let changed = from.metadata()?.modified()?;
    let copy = open_as(to, OFlags::WRONLY | OFlags::TRUNC | OFlags::CREATE)?;
    io::copy(&mut &from, &mut &copy)?;
    copy.set_modified(changed)
}

/// Reads the file at `path`.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let (file, known) = open_known(path)?;
    read_known(&file, &known)
}

/// Reads the file at `path` as text; [`ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    text(read(path)?)
}

/// Returns `bytes` as text; [`ErrorKind::InvalidData`] if they are not UTF-8.
pub fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

/// Describes the encoding of bytes that are not UTF-8; UTF-16 is known by its byte order mark.
pub fn encoding(bytes: &[u8]) -> &'static str {
    let is_wide = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    if is_wide {
        "UTF-16, not UTF-8"
    } else {
        "not UTF-8"
    }
}

/// Resolves `path`. A link inside the folder `root` must not lead out of it, nor to files that git or Tavern keeps
/// there. A typed way out (`..`) is intentional.
pub fn led(path: &Path, root: &Path) -> io::Result<PathBuf> {
    let (typed, target) = (plain_path(path), real(path)?);
    let is_out = typed.starts_with(root) && !target.starts_with(root);
    if is_out {
        return Err(refused("it is a link that leads out of the repository"));
    }
    let is_gits = target
        .strip_prefix(root)
        .is_ok_and(|inner| inner.iter().any(|name| name == ".git"));
    let is_ours = target.starts_with(root.join(".tavern"))
        && !target.starts_with(root.join(".tavern/queues"));
    if typed != target && (is_gits || is_ours) {
        return Err(refused(
            "it is a link into the private files of git or Tavern",
        ));
    }
    Ok(target)
}

/// Like [`fs::canonicalize`], but faster for the usual path without links.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    let plain = plain_path(path);
    if path.is_absolute() && plain.as_os_str() == path.as_os_str() && is_plain(path) {
        return Ok(plain);
    }
    fs::canonicalize(path)
}

/// Returns the path without `.`, `..` and doubled slashes, without looking at the disk.
pub fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Creates the folder and its missing parents; none is more open than its parent.
pub fn make_folder(path: &Path) -> io::Result<()> {
    match (is_plain_folder(path), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == ErrorKind::NotFound => {
            make_folder(parent)?;
            match DirBuilder::new().mode(mode_in(parent, 0o777)?).create(path) {
                // Another process created it first.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => is_plain_folder(path),
                made => made,
            }
        }
        (is_plain, _) => is_plain,
    }
}

/// Like `make_folder`, but only its owner may enter it.
pub fn make_own_folder(path: &Path) -> io::Result<()> {
    make_folder(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

/// Returns `mode` reduced to the permissions of `folder`, so that a new file there is no more open.
pub fn mode_in(folder: &Path, mode: u32) -> io::Result<u32> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    Ok(mode & (fs::metadata(folder)?.mode() | 0o700))
}

/// Returns true if the path exists and no part of it is a link; false if the kernel can't tell.
fn is_plain(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), BY_NO_LINK).is_ok()
}

/// Checks that the folder exists, and that no part of its path is a link.
pub fn is_plain_folder(path: &Path) -> io::Result<()> {
    match opened(
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Err(Errno::LOOP) => Err(refused(A_LINK)),
        other => Ok(other.map(drop)?),
    }
}

/// Reads the rest of an open file.
pub fn read_all(file: &File) -> io::Result<Vec<u8>> {
    read_known(file, &file.metadata()?)
}

/// Like `read_all`, given the file's metadata.
pub fn read_known(file: &File, known: &Metadata) -> io::Result<Vec<u8>> {
    let length = known.len();
    if length > MOST {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it has {length} bytes; at most {MOST} are allowed"),
        ));
    }
    let length = usize::try_from(length).unwrap_or_default();
    // One extra byte: a read that does not fill the buffer was the last.
    let mut bytes = vec![0; length + 1];
    let (mut file, mut filled) = (file.take(MOST), 0);
    while filled == 0 || filled != length {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // The file may grow meanwhile, and files of /proc report no length.
        if filled == bytes.len() {
            bytes.resize(2 * filled + 8 * 1024, 0);
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn open_as(path: &Path, flags: OFlags) -> io::Result<File> {
    open_known_as(path, flags).map(|(file, _)| file)
}

fn open_known_as(path: &Path, flags: OFlags) -> io::Result<(File, Metadata)> {
    // Opening must not block on a pipe, nor acquire a controlling terminal.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let is_made = flags.contains(OFlags::CREATE);
    let file = match opened(path, flags - OFlags::CREATE, Mode::empty()) {
        Err(Errno::NOENT) if is_made => {
            let folder = path.parent().unwrap_or(Path::new(""));
            let mode = Mode::from_raw_mode(mode_in(folder, 0o644)?);
            opened(path, flags, mode)
        }
        there => there,
    };
    let file = match file {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return Err(refused(A_LINK)),
        // A pipe without a reader, or a socket.
        Err(Errno::NXIO) => return Err(refused(NOT_A_FILE)),
        Err(error) => return Err(error.into()),
    };
    let known = file.metadata()?;
    if known.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if known.is_file() {
        Ok((file, known))
    } else {
        Err(refused(NOT_A_FILE))
    }
}

const BY_NO_LINK: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

fn opened(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat2(CWD, path, flags, mode, BY_NO_LINK) {
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(path, flags | OFlags::NOFOLLOW, mode),
        opened => opened,
    }
}

/// The reason for refusing a link.
pub const A_LINK: &str = "it is a link, or in a folder that is one";
/// The reason for refusing a file of another kind.
pub const NOT_A_FILE: &str = "it is no regular file";

/// The error kind for a file that Tavern did not create: a link, a pipe, a device.
pub const REFUSED: ErrorKind = ErrorKind::InvalidInput;

/// Returns a `REFUSED` error with this reason.
pub fn refused(why: &str) -> io::Error {
    io::Error::new(REFUSED, why)
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

    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_by_no_link() {
        let scratch = tempfile::tempdir().expect("a temp dir");
        let root = fs::canonicalize(scratch.path()).expect("it is there");
        let path = |name: &str| root.join(name);
        fs::create_dir(path("folder")).expect("made");
        fs::write(path("folder/file"), "text").expect("written");
        symlink("folder/file", path("link")).expect("made");
        symlink("folder", path("linked-folder")).expect("made");
        symlink("/dev/zero", path("endless")).expect("made");
        symlink("nowhere", path("dangling")).expect("made");
        let _listener = UnixListener::bind(path("socket")).expect("made");
        rustix::fs::mkfifoat(CWD, path("pipe"), Mode::from_raw_mode(0o600)).expect("made");
        assert_eq!(read_text(path("folder/file")).expect("a file"), "text");
        for name in [
            "link",
            "linked-folder/file",
            "endless",
            "dangling",
            "socket",
            "pipe",
        ] {
            for opened in [open(path(name)), open_or_make(path(name))] {
                assert_eq!(opened.expect_err(name).kind(), REFUSED, "{name}");
            }
        }
        let kind = |name: &str| open(path(name)).expect_err(name).kind();
        assert_eq!(kind("folder"), ErrorKind::IsADirectory);
        assert_eq!(kind("missing"), ErrorKind::NotFound);
        assert!(!path("nowhere").exists(), "nothing is made through a link");
        for name in ["linked-folder", "linked-folder/new", "link/new"] {
            assert_eq!(
                make_folder(&path(name)).expect_err(name).kind(),
                REFUSED,
                "{name}"
            );
        }
        make_folder(&path("folder/one/two")).expect("made");
        assert!(path("folder/one/two").is_dir());
        drop(open_or_make(path("new")).expect("made"));
        assert!(path("new").is_file());
    }

    #[test]
    fn what_is_too_long_is_not_read() {
        let scratch = tempfile::tempdir().expect("a temp dir");
        let path = fs::canonicalize(scratch.path())
            .expect("it is there")
            .join("long");
        File::create(&path)
            .and_then(|file| file.set_len(MOST + 1))
            .expect("made");
        assert_eq!(
            read(&path).expect_err("too long").kind(),
            ErrorKind::FileTooLarge
        );
    }
}
