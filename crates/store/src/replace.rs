//! Durable replacement of a file: temp file in the same folder, fsync, rename, fsync of the folder.
//!
//! Killed anywhere, the file is the old one or the new one, never a part of either.
#![expect(clippy::disallowed_methods, reason = "the store writes the board")]

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use super::error::Error;
use super::stamp::Stamp;
use tavern_sys::failpoint;
use tavern_sys::files;
use tavern_sys::process::file_in_use::{is_being_written, is_open_here_alone};

/// Prefix of temp files: what a crash leaves behind is known by it, and reaped.
pub const TEMP_PREFIX: &str = ".tavern-";

/// Replaces `path`, or what it leads to, and returns when both the bytes and the name are on disk.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    Staged::durable(path, bytes)?.put()
}

/// The same for a file that Tavern alone writes: an agent's link in its place is replaced, and not followed.
pub fn replace_own(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    Staged::synced(path, bytes, None)?.put()
}

/// Replaces `path`, a file that Tavern alone writes, atomically but without waiting for the disk: for what tells of a run, which a power cut ends.
pub fn replace_volatile(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    Staged::volatile(path, &[bytes], None)?.put()
}

/// Replaces `path` atomically, by `spare` with these parts written over it, and without waiting for the disk: a long text then
/// needs no new room, and its old pages are not given back. What is replaced is the next spare. Only for who holds the lock.
pub(super) fn replace_by_spare(path: &Path, spare: &Path, parts: &[&[u8]]) -> Result<(), Error> {
    let write = || {
        let mut file = files::open_or_make(spare)?;
        keep_mode(path, &file)?;
        failpoint::hit("replace.staged")?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.set_len(parts.iter().map(|part| part.len() as u64).sum())
    };
    write().map_err(Error::io("write", spare))?;
    let put = || {
        failpoint::hit("replace.synced")?;
        exchange_names(spare, path).or_else(|_| fs::rename(spare, path))?;
        failpoint::hit("replace.renamed")
    };
    put().map_err(Error::io("rename to", path))
}

/// The new bytes of a file in a temp file beside it: all that can fail for lack of room or of leave has been done, and
/// nothing can be seen yet. Dropped, it leaves nothing.
#[derive(Debug)]
pub(super) struct Staged {
    temp: NamedTempFile,
    path: PathBuf,
    is_durable: bool,
}

impl Staged {
    /// On disk when it returns. A symlink is written through.
    pub(super) fn durable(path: &Path, bytes: &[u8]) -> Result<Staged, Error> {
        Staged::synced(&target_of(path)?, bytes, None)
    }

    /// As [`Staged::durable`], written over `spent`, a file of the past that nothing names but this path, if nobody has it open: a long text
    /// then needs no new room, which takes longer than to write it.
    pub(super) fn over(spent: &Path, path: &Path, bytes: &[u8]) -> Result<Staged, Error> {
        Staged::synced(&target_of(path)?, bytes, Some(spent))
    }

    fn synced(path: &Path, bytes: &[u8], spent: Option<&Path>) -> Result<Staged, Error> {
        let temp = stage(path, &[bytes], spent)?;
        failpoint::hit("replace.written")
            .and_then(|()| temp.as_file().sync_all())
            .map_err(Error::io("write", path))?;
        Ok(Staged {
            temp,
            path: path.to_owned(),
            is_durable: true,
        })
    }

    /// Of these parts in a row, with `modified` as its modification time (else now), and written to disk when the system likes.
    pub(super) fn volatile(
        path: &Path,
        parts: &[&[u8]],
        modified: Option<SystemTime>,
    ) -> Result<Staged, Error> {
        let temp = stage(path, parts, None)?;
        if let Some(modified) = modified {
            temp.as_file()
                .set_modified(modified)
                .map_err(Error::io("set the time of", path))?;
        }
        Ok(Staged {
            temp,
            path: path.to_owned(),
            is_durable: false,
        })
    }

    /// Takes the file's place.
    pub(super) fn put(self) -> Result<(), Error> {
        let Staged {
            temp,
            path,
            is_durable,
        } = self;
        failpoint::hit("replace.synced").map_err(Error::io("rename to", &path))?;
        // Where nobody waits for the disk, names are exchanged: to rename over a file has some file systems write it.
        let is_exchanged = !is_durable && exchange_names(temp.path(), &path).is_ok();
        if !is_exchanged {
            temp.persist(&path)
                .map_err(|error| Error::io("rename to", &path)(error.error))?;
        }
        failpoint::hit("replace.renamed").map_err(Error::io("sync the folder of", &path))?;
        if is_durable {
            sync_folder(&path)
        } else {
            Ok(())
        }
    }
}

impl Staged {
    /// Takes the place of the queue's file with this stamp (`None`: there is none) in one step with keeping that in the place of
    /// `old`: whoever had it open writes there. Returns the new file's stamp. `None`, and nothing has happened, if it is another by
    /// now: what somebody has just saved stays where it is, so that whoever loads it next has it. Whoever calls syncs
    /// `folder` some time later; any other is synced here.
    pub(super) fn swap(
        self,
        expected: Option<Stamp>,
        old: &Replaced,
        folder: &Path,
    ) -> Result<Option<Stamp>, Error> {
        let path = self.path.clone();
        let stamp = match expected {
            Some(expected) => self.exchange(expected, old)?,
            None => self.put_new()?,
        };
        if path.parent() != Some(folder) {
            sync_folder(&path)?;
        }
        Ok(stamp)
    }

    /// Takes the place of no file.
    fn put_new(self) -> Result<Option<Stamp>, Error> {
        failpoint::hit("replace.synced").map_err(Error::io("rename to", &self.path))?;
        let stamp = self.stamp()?;
        match self.temp.persist_noclobber(&self.path) {
            Ok(_) => {}
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(Error::io("rename to", &self.path)(error.error)),
        }
        failpoint::hit("replace.renamed").map_err(Error::io("sync the folder of", &self.path))?;
        Ok(Some(stamp))
    }

    fn stamp(&self) -> Result<Stamp, Error> {
        let file = self
            .temp
            .as_file()
            .metadata()
            .map_err(Error::io("look at", &self.path))?;
        Ok(Stamp::of(&file))
    }

    fn exchange(self, expected: Stamp, old: &Replaced) -> Result<Option<Stamp>, Error> {
        failpoint::hit("replace.synced").map_err(Error::io("rename to", &self.path))?;
        let stamp = self.stamp()?;
        let temp = self.temp.into_temp_path();
        let exchange = || exchange_names(&temp, &self.path);
        match exchange() {
            Ok(()) if Stamp::at(&temp) == Some(expected) && old.keep(&temp, expected) => {}
            // Somebody saved it between our look and now, or is about to.
            Ok(()) => {
                // And again between the two, or has put it aside: what is in our hands then is not ours to remove.
                if exchange().is_err() || Stamp::at(&temp) != Some(stamp) {
                    old.keep(&temp, stamp);
                }
                return Ok(None);
            }
            // An editor, or git, is about to write it anew.
            Err(Errno::NOENT) => return Ok(None),
            // A file system that can't do it.
            Err(_) => fs::rename(&temp, &self.path).map_err(Error::io("rename to", &self.path))?,
        }
        failpoint::hit("replace.renamed").map_err(Error::io("sync the folder of", &self.path))?;
        Ok(Some(stamp))
    }
}

/// The file that the newest replaced.
pub(super) struct Replaced {
    pub path: PathBuf,
    /// Where the one before it goes when this one takes its place.
    pub spent: PathBuf,
    /// As it was when what stands there was taken over.
    pub known: Option<Stamp>,
}

impl Replaced {
    /// Keeps the file at `temp` in its place, unless somebody is at the one before it: who opened that long ago writes there. False
    /// if somebody is at both: `temp` is where it was, and not as it was at `expected`, or is being written.
    fn keep(&self, temp: &Path, expected: Stamp) -> bool {
        // Who has written and left is seen by the stamp alone.
        let is_free = |stamp: Option<Stamp>| !is_being_written(&[temp]) && Stamp::at(temp) == stamp;
        if exchange_names(temp, &self.path).is_err() {
            // Not kept where it is on another disk: then nobody can be asked to look there.
            drop(fs::rename(temp, &self.path).or_else(|_| fs::remove_file(temp)));
            return true;
        }
        if is_free(self.known) {
            drop(fs::rename(temp, &self.spent));
            return true;
        }
        exchange_names(temp, &self.path).is_err() || is_free(Some(expected))
    }
}

fn exchange_names(one: &Path, other: &Path) -> Result<(), Errno> {
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
}

/// A bare name is one in the working directory.
fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// The names in the folder that `path` is in are on disk when it returns.
pub(super) fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = folder_of(path);
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(Error::io("sync the folder", folder))
}

/// What a symlink leads to, else the path.
fn target_of(path: &Path) -> Result<PathBuf, Error> {
    match path.is_symlink().then(|| fs::canonicalize(path)) {
        Some(Ok(target)) => Ok(target),
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("follow", path)(error))
        }
        _ => Ok(path.to_owned()),
    }
}

/// The new bytes in a temp file beside the file that is to be replaced, with the mode and the owner of that; made of `spent`
/// where that can be written over.
fn stage(path: &Path, parts: &[&[u8]], spent: Option<&Path>) -> Result<NamedTempFile, Error> {
    let folder = folder_of(path);
    // Somebody may have removed it with all that was in it.
    files::make_folder(folder).map_err(Error::io("write to", folder))?;
    let make = || {
        let mode = Permissions::from_mode(files::mode_in(folder, 0o644)?);
        tempfile::Builder::new()
            .prefix(TEMP_PREFIX)
            .permissions(mode)
            .tempfile_in(folder)
    };
    let mut temp = make().map_err(Error::io("write to", folder))?;
    if let Some(spent) = spent {
        temp = reused(spent, temp)
            .or_else(|_| make())
            .map_err(Error::io("write to", folder))?;
    }
    keep_mode(path, temp.as_file()).map_err(Error::io("keep the owner of", path))?;
    failpoint::hit("replace.staged")
        .and_then(|()| parts.iter().try_for_each(|part| temp.write_all(part)))
        .and_then(|()| {
            temp.as_file()
                .set_len(parts.iter().map(|part| part.len() as u64).sum())
        })
        .map_err(Error::io("write", path))?;
    Ok(temp)
}

/// The file at `spent` in the place of `temp`, to be written over.
///
/// # Errors
/// Somebody has it open, or it has another name, or is on another disk: then it is gone from there, or stays.
fn reused(spent: &Path, temp: NamedTempFile) -> io::Result<NamedTempFile> {
    let place = temp.into_temp_path();
    fs::rename(spent, &place)?;
    let file = files::open_to_write(&place)?;
    let is_ours = file.metadata()?.nlink() == 1 && is_open_here_alone(&file);
    if is_ours {
        Ok(NamedTempFile::from_parts(file, place))
    } else {
        Err(io::ErrorKind::ResourceBusy.into())
    }
}

fn keep_mode(path: &Path, temp: &File) -> io::Result<()> {
    let old = match fs::symlink_metadata(path) {
        Ok(old) if old.is_file() => old,
        _ => return Ok(()),
    };
    let new = temp.metadata()?;
    if old.mode() != new.mode() {
        temp.set_permissions(old.permissions())?;
    }
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
        std::os::unix::fs::fchown(temp, Some(old.uid()), Some(old.gid()))?;
    }
    Ok(())
}
