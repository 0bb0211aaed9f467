//! Durable replacement of a file: temp file in the same folder, fsync, rename, fsync of the folder.
//!
//! After a crash at any point, the file is the old or the new one, never a part of either.
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
use super::file_version::Stamp;
use tavern_sys::failpoint;
use tavern_sys::files;
use tavern_sys::process::file_in_use::{is_being_written, is_open_here_alone};

/// Prefix of temp files, by which the remains of a crash are found and removed.
pub const TEMP_PREFIX: &str = ".tavern-";

/// Replaces `path`, or its target, and returns when both the bytes and the name are on disk.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    Staged::durable(path, bytes)?.put()
}

/// Like `replace`, for a file that only Tavern writes: a link in its place is replaced, not followed.
pub fn replace_own(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    Staged::synced(path, bytes, None)?.put()
}

/// Replaces `path`, a file that only Tavern writes, atomically but without waiting for the disk: for files about a run,
/// which a power cut ends anyway.
pub fn replace_volatile(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    Staged::volatile(path, &[bytes], None)?.put()
}

/// Replaces `path` atomically, without waiting for the disk, by writing `parts` over `spare`. A long text then needs no
/// new space. The replaced file becomes the next spare. The caller holds the lock.
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

/// The new content of a file, in a temp file beside it. All steps that can fail for lack of space or permission are
/// done, and nothing is visible yet. Dropping it leaves nothing.
#[derive(Debug)]
pub(super) struct Staged {
    temp: NamedTempFile,
    path: PathBuf,
    /// Whether there is a file to replace.
    is_over: bool,
    is_durable: bool,
}

impl Staged {
    /// Stages `bytes`; they are on disk on return. A symlink is written through.
    pub(super) fn durable(path: &Path, bytes: &[u8]) -> Result<Staged, Error> {
        Staged::synced(&target_of(path)?, bytes, None)
    }

    /// Like [`Staged::durable`], but overwrites `spent`, an old file with only this name, if no process has it open. A
    /// long text then needs no new space, which would take longer than writing it.
    pub(super) fn over(spent: &Path, path: &Path, bytes: &[u8]) -> Result<Staged, Error> {
        Staged::synced(&target_of(path)?, bytes, Some(spent))
    }

    fn synced(path: &Path, bytes: &[u8], spent: Option<&Path>) -> Result<Staged, Error> {
        let (temp, is_over) = stage(path, &[bytes], spent)?;
        failpoint::hit("replace.written")
            .and_then(|()| temp.as_file().sync_all())
            .map_err(Error::io("write", path))?;
        Ok(Staged {
            temp,
            path: path.to_owned(),
            is_over,
            is_durable: true,
        })
    }

    /// Stages the concatenated `parts`, with `modified` as the modification time (else now), without a sync.
    pub(super) fn volatile(
        path: &Path,
        parts: &[&[u8]],
        modified: Option<SystemTime>,
    ) -> Result<Staged, Error> {
        let (temp, is_over) = stage(path, parts, None)?;
        if let Some(modified) = modified {
            temp.as_file()
                .set_modified(modified)
                .map_err(Error::io("set the time of", path))?;
        }
        Ok(Staged {
            temp,
            path: path.to_owned(),
            is_over,
            is_durable: false,
        })
    }

    /// Replaces the file.
    pub(super) fn put(self) -> Result<(), Error> {
        let Staged {
            temp,
            path,
            is_over,
            is_durable,
        } = self;
        failpoint::hit("replace.synced").map_err(Error::io("rename to", &path))?;
        // Without a sync, names are exchanged: some file systems flush a file that is renamed over another.
        let is_exchanged = is_over && !is_durable && exchange_names(temp.path(), &path).is_ok();
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
    /// Replaces the queue's file if it has this stamp (`None`: no file), and in the same step keeps the old file at
    /// `old`, since an editor that has it open writes there. Returns the new file's stamp. Returns `None` without any
    /// effect if the file has changed: a fresh save stays in place, so that the next editor loads it.
    /// The caller syncs `folder` some time later; any other folder is synced here.
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

    /// Creates the file; returns `None` if it exists already.
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
            // The file was saved between the check and now, or is about to be.
            Ok(()) => {
                // The file changed again between the two exchanges; the one now at the temp path must not be removed.
                if exchange().is_err() || Stamp::at(&temp) != Some(stamp) {
                    old.keep(&temp, stamp);
                }
                return Ok(None);
            }
            // An editor, or git, is about to write the file anew.
            Err(Errno::NOENT) => return Ok(None),
            // The file system does not support the exchange.
            Err(_) => fs::rename(&temp, &self.path).map_err(Error::io("rename to", &self.path))?,
        }
        failpoint::hit("replace.renamed").map_err(Error::io("sync the folder of", &self.path))?;
        Ok(Some(stamp))
    }
}

/// Where the replaced file is kept.
pub(super) struct Replaced {
    pub path: PathBuf,
    /// Where the previously replaced file goes then.
    pub spent: PathBuf,
    /// The stamp of the previously replaced file when it was merged.
    pub known: Option<Stamp>,
}

impl Replaced {
    /// Keeps the file at `temp` as the replaced file, unless the previous one is in use: an editor that opened it long
    /// ago still writes there. Returns false if both are in use; then `temp` stays, and differs from `expected` or is
    /// being written.
    fn keep(&self, temp: &Path, expected: Stamp) -> bool {
        // A writer that has finished shows only in the stamp.
        let is_free = |stamp: Option<Stamp>| !is_being_written(&[temp]) && Stamp::at(temp) == stamp;
        if exchange_names(temp, &self.path).is_err() {
            // On another disk the file can't be kept, so later writes to it are lost.
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

/// Returns the parent folder; a bare name is in the working directory.
fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Syncs the folder of `path`, so that its names are on disk.
pub(super) fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = folder_of(path);
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(Error::io("sync the folder", folder))
}

/// Returns the target of a symlink, else the path.
fn target_of(path: &Path) -> Result<PathBuf, Error> {
    match path.is_symlink().then(|| fs::canonicalize(path)) {
        Some(Ok(target)) => Ok(target),
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("follow", path)(error))
        }
        _ => Ok(path.to_owned()),
    }
}

/// Writes the new content to a temp file beside the file to replace, with its mode and owner, over `spent` where
/// possible. Returns it, and whether there is a file to replace.
fn stage(
    path: &Path,
    parts: &[&[u8]],
    spent: Option<&Path>,
) -> Result<(NamedTempFile, bool), Error> {
    let folder = folder_of(path);
    // The folder may have been removed with its content.
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
    let is_over = keep_mode(path, temp.as_file()).map_err(Error::io("keep the owner of", path))?;
    let mut write = || {
        failpoint::hit("replace.staged")?;
        parts.iter().try_for_each(|part| temp.write_all(part))?;
        if spent.is_some() {
            let length = parts.iter().map(|part| part.len() as u64).sum();
            temp.as_file().set_len(length)?;
        }
        Ok(())
    };
    write().map_err(Error::io("write", path))?;
    Ok((temp, is_over))
}

/// Returns the file at `spent`, moved to the place of `temp`, to be overwritten.
///
/// # Errors
/// The file is open, has another name, or is on another disk. It is then removed from `spent`, or stays there.
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

/// Gives `temp` the mode and owner of the file at `path`. Returns false if there is none.
fn keep_mode(path: &Path, temp: &File) -> io::Result<bool> {
    let old = match fs::symlink_metadata(path) {
        Ok(old) if old.is_file() => old,
        _ => return Ok(false),
    };
    let new = temp.metadata()?;
    if old.mode() != new.mode() {
        temp.set_permissions(old.permissions())?;
    }
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
        std::os::unix::fs::fchown(temp, Some(old.uid()), Some(old.gid()))?;
    }
    Ok(true)
}
