//! git's entries for linked worktrees, `<common dir>/worktrees/<id>/`, read from disk and written for new worktrees.
//!
//! Includes incomplete entries, which git itself and libgit2 skip. Source of the files' meaning:
//! gitrepository-layout(5).

#![expect(
    clippy::disallowed_methods,
    reason = "git owns the worktrees, and waits for other processes of git"
)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::GitError;
use super::lock::FileLock;
use tavern_sys::files;

/// A file in an entry: the path of the worktree's cell within the repository's git directory.
pub(super) const OWN: &str = "tavern-own";

/// One entry with a known folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registration {
    /// `<common dir>/worktrees/<id>`.
    pub(super) admin: PathBuf,
    /// The root of the worktree; the folder may be gone.
    pub(super) path: PathBuf,
    /// The text of the file `locked`, if it exists.
    pub(super) locked: Option<String>,
    pub(super) head: RegisteredHead,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RegisteredHead {
    /// `refs/heads/…`, in full.
    Branch(String),
    Commit(String),
    /// Missing, or the zero id that git writes at first: the entry was never completed.
    Nothing,
}

/// Returns all entries that name a folder.
pub(super) fn all(common_dir: &Path) -> Result<Vec<Registration>, GitError> {
    let mut found = Vec::new();
    for admin in admin_dirs(common_dir)? {
        if let Some(path) = folder(&admin)? {
            found.push(entry(admin, path)?);
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Returns the entry of the worktree at `path`, which must be [`resolved`]. Other entries are not read, however many
/// there are.
pub(super) fn find(common_dir: &Path, path: &Path) -> Result<Option<Registration>, GitError> {
    let linked =
        pointed_from(path).filter(|admin| admin.parent() == Some(&common_dir.join("worktrees")));
    if let Some(admin) = linked
        && is_of(&admin, path)?
    {
        return entry(admin, path.to_owned()).map(Some);
    }
    for admin in named_for(common_dir, path)? {
        if is_of(&admin, path)? {
            return entry(admin, path.to_owned()).map(Some);
        }
    }
    Ok(None)
}

/// Returns the branches (`refs/heads/…`) that the work tree with this git directory holds: checked out, or being
/// rebased or bisected.
pub(super) fn held_by(git_dir: &Path) -> Result<Vec<String>, GitError> {
    held(&|file| read(&git_dir.join(file)))
}

/// Like [`held_by`], for the git directory that `read` reads.
fn held(read: &ReadFile<'_>) -> Result<Vec<String>, GitError> {
    match head_of(read)? {
        RegisteredHead::Branch(name) => Ok(vec![name]),
        // During a rebase or a bisect HEAD is on no branch.
        _ => branches_under_way(read),
    }
}

/// Returns the branches that linked worktrees hold, each with its entry; also if the folder is gone.
pub(super) fn held_by_linked(common_dir: &Path) -> Result<Vec<(PathBuf, String)>, GitError> {
    let mut found = Vec::new();
    each(common_dir, &mut |admin, read| {
        found.extend(
            held(read)?
                .into_iter()
                .map(|branch| (admin.to_owned(), branch)),
        );
        Ok(())
    })?;
    Ok(found)
}

/// Returns the entries that hold `branch`.
pub(super) fn holding(common_dir: &Path, branch: &str) -> Result<Vec<Registration>, GitError> {
    let mut found = Vec::new();
    for (admin, _) in held_by_linked(common_dir)?
        .into_iter()
        .filter(|(_, held)| held == branch)
    {
        if let Some(path) = folder(&admin)? {
            found.push(entry(admin, path)?);
        }
    }
    Ok(found)
}

/// Returns a worktree below `path` with an existing folder.
pub(super) fn inside(common_dir: &Path, path: &Path) -> Result<Option<PathBuf>, GitError> {
    let mut named = Vec::new();
    each(common_dir, &mut |admin, read| {
        named.extend(folder_named(admin, read)?.map(|named| (admin.to_owned(), named)));
        Ok(())
    })?;
    for (admin, named) in named {
        // Following the links of hundreds of others would cost more than the rest of a removal.
        let may_be_inside = named.starts_with(path) || named.starts_with(&admin);
        if may_be_inside
            && let Some(folder) = folder(&admin)?
            && folder != path
            && folder.starts_with(path)
            && folder.exists()
        {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}

/// Registers a worktree at `path` with the `HEAD` `head`, locked for `reason`. Returns it with a held lock on its
/// file `locked`. The entry appears with all of its files or not at all. Only one caller at a time: leftovers of a
/// killed one are overwritten.
///
/// Writes the same as `git worktree add --no-checkout --lock`; source: add_worktree() in git's builtin/worktree.c.
pub(super) fn add(
    common_dir: &Path,
    path: &Path,
    head: &str,
    reason: &str,
) -> Result<(Registration, FileLock), GitError> {
    let draft = common_dir.join("tavern/worktree");
    let lock = fill(&draft, common_dir, path, head, reason)?;
    let admin = claim(common_dir, path, &draft)?;
    let entry = Registration {
        head: self::head(&admin)?,
        admin,
        path: path.to_owned(),
        locked: Some(reason.to_owned()),
    };
    Ok((entry, lock))
}

fn fill(
    draft: &Path,
    common_dir: &Path,
    path: &Path,
    head: &str,
    reason: &str,
) -> Result<FileLock, GitError> {
    let writing = |source| GitError::Io {
        doing: "write in",
        path: draft.to_owned(),
        source,
    };
    if draft.exists() {
        fs::remove_dir_all(draft).map_err(writing)?;
    }
    fs::create_dir_all(draft).map_err(writing)?;
    let link = path.join(".git");
    let files = [
        ("locked", reason.as_bytes()),
        ("gitdir", link.as_os_str().as_bytes()),
        ("commondir", b"../.."),
        ("HEAD", head.as_bytes()),
    ];
    for (name, text) in files {
        fs::write(draft.join(name), [text, b"\n"].concat()).map_err(writing)?;
    }
    // The rules of a sparse checkout and the settings are copied from the main work tree, except for the location of
    // its files.
    let sparse = Path::new("info/sparse-checkout");
    if common_dir.join(sparse).exists() {
        fs::create_dir(draft.join("info")).map_err(writing)?;
        fs::copy(common_dir.join(sparse), draft.join(sparse)).map_err(writing)?;
    }
    if common_dir.join("config.worktree").exists() {
        let copy = draft.join("config.worktree");
        fs::copy(common_dir.join("config.worktree"), &copy).map_err(writing)?;
        let mut config =
            git2::Config::open(&copy).map_err(GitError::library("read the configuration"))?;
        for name in ["core.worktree", "core.bare"] {
            // The setting may be missing.
            let _ = config.remove(name);
        }
    }
    let gone = || writing(ErrorKind::NotFound.into());
    FileLock::try_take_existing(&draft.join("locked"))?.ok_or_else(gone)
}

/// Moves a complete entry to its final place, named after the worktree's folder.
fn claim(common_dir: &Path, path: &Path, draft: &Path) -> Result<PathBuf, GitError> {
    let parent = common_dir.join("worktrees");
    fs::create_dir_all(&parent).map_err(GitError::io("make", &parent))?;
    let name = sanitized(path.file_name().unwrap_or_default().as_bytes());
    let mut number = 0;
    loop {
        let suffix = if number == 0 {
            String::new()
        } else {
            number.to_string()
        };
        let admin = parent.join(path_of(&[&name[..], suffix.as_bytes()].concat()));
        // As in git, the process that creates the folder owns the name. A rename replaces an empty folder.
        match fs::create_dir(&admin) {
            Ok(()) => {
                return fs::rename(draft, &admin)
                    .map(|()| admin)
                    .map_err(GitError::io("move", draft));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(source) => {
                return Err(GitError::Io {
                    doing: "make",
                    path: admin,
                    source,
                });
            }
        }
    }
}

/// Returns the absolute path of a folder that may not exist; links are resolved as far as it exists.
pub(super) fn resolved(path: &Path) -> Result<PathBuf, GitError> {
    let whole = absolute(path).map_err(GitError::io("resolve", path))?;
    let mut missing = Vec::new();
    let mut there = whole.as_path();
    loop {
        match fs::canonicalize(there) {
            Ok(real) => {
                return Ok(missing
                    .iter()
                    .rev()
                    .fold(real, |path, name| path.join(name)));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => {
                return Err(GitError::Io {
                    doing: "resolve",
                    path: whole,
                    source,
                });
            }
        }
        match (there.parent(), there.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name.to_owned());
                there = parent;
            }
            _ => return Ok(whole),
        }
    }
}

impl Registration {
    /// Writes the folder's `.git` file.
    pub(super) fn link(&self) -> Result<(), GitError> {
        let link = self.path.join(".git");
        fs::write(&link, link_to(&self.admin)).map_err(GitError::io("write", link))
    }

    /// Returns the current cell of the worktree.
    pub(super) fn cell(&self, common_dir: &Path) -> Option<PathBuf> {
        let place = files::read(self.admin.join(OWN)).ok()?;
        let cell = common_dir.join(path_of(&place));
        cell.is_dir().then_some(cell)
    }

    /// Links the worktree to this entry, if it had a cell.
    pub(super) fn forsake_cell(&self) -> Result<(), GitError> {
        let own = self.admin.join(OWN);
        if !own.exists() {
            return Ok(());
        }
        // A repository that the agent put in its place is left for later checks.
        if !self.path.join(".git").is_dir() {
            self.link()?;
        }
        files::gone(fs::remove_file(&own)).map_err(GitError::io("remove", own))
    }

    /// Returns true if the folder's `.git` file points back to this entry, or to its former place.
    pub(super) fn is_linked_back(&self) -> bool {
        pointed_from(&self.path).as_ref() == Some(&self.admin) || self.was_moved()
    }

    /// Returns true if the repository was moved together with the worktree: both links lead to the former places.
    fn was_moved(&self) -> bool {
        was_moved(&self.admin, &self.path).unwrap_or(false)
    }

    /// Updates both links to the current places of the worktree and this entry, as `git worktree repair` does.
    pub(super) fn follow_move(&self) -> Result<(), GitError> {
        if !self.was_moved() {
            return Ok(());
        }
        let (gitdir, link) = (self.admin.join("gitdir"), self.path.join(".git"));
        fs::write(&gitdir, [link.as_os_str().as_bytes(), b"\n"].concat())
            .map_err(GitError::io("write", gitdir))?;
        self.link()
    }
}

/// Returns the content of a `.git` file that leads to this git directory.
pub(super) fn link_to(git_dir: &Path) -> Vec<u8> {
    [b"gitdir: ", git_dir.as_os_str().as_bytes(), b"\n"].concat()
}

/// Returns the `refs/heads/…` names to which a rebase or bisect in this git directory will return.
fn branches_under_way(read: &ReadFile<'_>) -> Result<Vec<String>, GitError> {
    let mut found = Vec::new();
    for (file, prefix) in [
        ("rebase-merge/head-name", ""),
        ("rebase-apply/head-name", ""),
        ("BISECT_START", "refs/heads/"),
    ] {
        if let Some(bytes) = read(file)? {
            found.push(format!(
                "{prefix}{}",
                String::from_utf8_lossy(&bytes).trim_end()
            ));
        }
    }
    Ok(found)
}

/// Returns the entry that the `.git` file of a folder points to; it may be gone.
pub(super) fn pointed_from(folder: &Path) -> Option<PathBuf> {
    let link = folder.join(".git");
    // Reading a pipe would block.
    let bytes = fs::metadata(&link)
        .is_ok_and(|link| link.is_file())
        .then(|| fs::read(link).ok())
        .flatten()?;
    let target = bytes.strip_prefix(b"gitdir: ")?;
    resolved(&folder.join(path_of(target.strip_suffix(b"\n").unwrap_or(target)))).ok()
}

/// Returns `HEAD` of a git directory, as in the file.
pub(super) fn head(git_dir: &Path) -> Result<RegisteredHead, GitError> {
    head_of(&|file| read(&git_dir.join(file)))
}

fn head_of(read: &ReadFile<'_>) -> Result<RegisteredHead, GitError> {
    let bytes = read("HEAD")?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    Ok(match text.strip_prefix("ref: ") {
        Some(name) => RegisteredHead::Branch(name.trim().to_owned()),
        None if text.bytes().all(|byte| byte == b'0') => RegisteredHead::Nothing,
        None => RegisteredHead::Commit(text.to_owned()),
    })
}

fn entry(admin: PathBuf, path: PathBuf) -> Result<Registration, GitError> {
    let locked = read(&admin.join("locked"))?
        .map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
    let head = head(&admin)?;
    Ok(Registration {
        admin,
        path,
        locked,
        head,
    })
}

/// Returns the entries that may belong to a worktree at `path`: named after its folder, with a number if the name was
/// taken.
fn named_for(common_dir: &Path, path: &Path) -> Result<Vec<PathBuf>, GitError> {
    let name = sanitized(path.file_name().unwrap_or_default().as_bytes());
    let may_be_it = |admin: &PathBuf| {
        let found = sanitized(admin.file_name().unwrap_or_default().as_bytes());
        // git strips `.lock`.
        name.ends_with(b"-lock")
            || found
                .strip_prefix(&name[..])
                .is_some_and(|number| number.iter().all(u8::is_ascii_digit))
    };
    Ok(admin_dirs(common_dir)?
        .into_iter()
        .filter(may_be_it)
        .collect())
}

/// Replaces every byte that git may replace in the name of an entry by `-`.
fn sanitized(name: &[u8]) -> Vec<u8> {
    name.iter()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || !byte.is_ascii() {
                *byte
            } else {
                b'-'
            }
        })
        .collect()
}

fn admin_dirs(common_dir: &Path) -> Result<Vec<PathBuf>, GitError> {
    let parent = common_dir.join("worktrees");
    let entries = match fs::read_dir(&parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(GitError::Io {
                doing: "list",
                path: parent,
                source,
            });
        }
    };
    let mut found = Vec::new();
    for entry in entries {
        found.push(entry.map_err(GitError::io("list", &parent))?.path());
    }
    Ok(found)
}

fn is_of(admin: &Path, path: &Path) -> Result<bool, GitError> {
    // Resolving links would cost more than all the rest, and usually there are none.
    Ok(named_folder(admin)?.as_deref() == Some(path)
        || folder(admin)?.as_deref() == Some(path)
        || was_moved(admin, path)?)
}

/// Returns true if `admin` is the entry of the worktree at `path` but names another folder with the same name, which
/// is gone. The worktree must point to this entry, or to a missing entry of the same name or its missing cell.
fn was_moved(admin: &Path, path: &Path) -> Result<bool, GitError> {
    let Some(named) =
        named_folder(admin)?.filter(|named| named != path && named.file_name() == path.file_name())
    else {
        return Ok(false);
    };
    let cell = read(&admin.join(OWN))?.map(|place| path_of(&place));
    let is_back = |pointed: PathBuf| {
        let is_gone_cell = || cell.is_some_and(|cell| pointed.ends_with(cell));
        let was_here = pointed.file_name() == admin.file_name() || is_gone_cell();
        pointed == admin || was_here && !pointed.exists()
    };
    Ok(!named.exists() && pointed_from(path).is_some_and(is_back))
}

/// Returns the folder of an entry, resolved.
fn folder(admin: &Path) -> Result<Option<PathBuf>, GitError> {
    // An unreadable folder of one worktree must not hide the others.
    Ok(named_folder(admin)?.map(|named| resolved(&named).unwrap_or(named)))
}

/// Returns the folder that the file `gitdir` names. Relative ones (git 2.48 and later) start from the entry.
fn named_folder(admin: &Path) -> Result<Option<PathBuf>, GitError> {
    folder_named(admin, &|file| read(&admin.join(file)))
}

fn folder_named(admin: &Path, read: &ReadFile<'_>) -> Result<Option<PathBuf>, GitError> {
    let bytes = read("gitdir")?.filter(|bytes| !bytes.is_empty());
    let named = bytes.map(|bytes| admin.join(path_of(bytes.strip_suffix(b"\n").unwrap_or(&bytes))));
    Ok(named.and_then(|named| named.parent().map(Path::to_owned)))
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Reads a file of a git directory.
type ReadFile<'r> = dyn Fn(&str) -> Result<Option<Vec<u8>>, GitError> + 'r;

/// Calls `look` for each entry. Files are opened relative to the folder of all entries: resolving absolute paths
/// would cost more than the rest.
fn each(
    common_dir: &Path,
    look: &mut dyn FnMut(&Path, &ReadFile<'_>) -> Result<(), GitError>,
) -> Result<(), GitError> {
    let parent = common_dir.join("worktrees");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = match rustix::fs::open(&parent, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => {
            return Err(GitError::Io {
                doing: "open",
                path: parent,
                source: error.into(),
            });
        }
    };
    for admin in admin_dirs(common_dir)? {
        let name = Path::new(admin.file_name().unwrap_or_default());
        look(&admin, &|file| read_in(folder.as_fd(), &name.join(file)))?;
    }
    Ok(())
}

/// Returns `None` if there is no such file; entries may come and go meanwhile.
fn read(path: &Path) -> Result<Option<Vec<u8>>, GitError> {
    read_in(CWD, path)
}

/// Like [`read`], with a path relative to the folder `start`. Unchanged files are cached: there may be hundreds of
/// entries, and each move of a branch reads them all.
fn read_in(start: BorrowedFd<'_>, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
    thread_local! {
        static FILES: RefCell<HashMap<Inode, (Version, Vec<u8>)>> = RefCell::default();
    }
    let look = || -> io::Result<Vec<u8>> {
        let (inode, version) = version_of(&rustix::fs::statat(start, path, AtFlags::empty())?);
        let known = FILES.with_borrow(|files| {
            files
                .get(&inode)
                .filter(|known| known.0 == version)
                .cloned()
        });
        if let Some((_, bytes)) = known {
            return Ok(bytes);
        }
        let mut bytes = Vec::new();
        let file =
            rustix::fs::openat(start, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        File::from(file).read_to_end(&mut bytes)?;
        FILES.with_borrow_mut(|files| files.insert(inode, (version, bytes.clone())));
        Ok(bytes)
    };
    match look() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(GitError::Io {
            doing: "read",
            path: path.to_owned(),
            source,
        }),
    }
}

/// Device and inode number.
type Inode = (u64, u64);

/// Length and time of the last change. They tell a file from its replacement with the same inode number.
type Version = (i64, (i64, u64));

fn version_of(file: &Stat) -> (Inode, Version) {
    (
        (file.st_dev, file.st_ino),
        (file.st_size, (file.st_ctime, file.st_ctime_nsec)),
    )
}
