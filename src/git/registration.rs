//! The entries that git keeps for linked worktrees, `<common dir>/worktrees/<id>/`, read as they are on disk.
//!
//! Also half-made ones, which git itself and libgit2 leave out. Source of the files' meaning: gitrepository-layout(5).

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};

use super::GitError;

/// One entry whose folder is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registration {
    /// `<common dir>/worktrees/<id>`.
    pub(super) admin: PathBuf,
    /// The root of the worktree; the folder may be gone.
    pub(super) path: PathBuf,
    /// What the file `locked` says, if there is one.
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

/// All entries that name a folder.
pub(super) fn all(common_dir: &Path) -> Result<Vec<Registration>, GitError> {
    let mut found = Vec::new();
    for admin in admin_dirs(common_dir)? {
        found.extend(entry(admin)?);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The entry of the worktree at `path`, which must be [`resolved`]. The others are not read, however many there are.
pub(super) fn find(common_dir: &Path, path: &Path) -> Result<Option<Registration>, GitError> {
    let linked = fs::read(path.join(".git")).ok().and_then(|bytes| git_file_target(&bytes));
    let linked = linked.and_then(|target| fs::canonicalize(path.join(target)).ok());
    let linked = linked.filter(|admin| admin.parent() == Some(&common_dir.join("worktrees")));
    if let Some(admin) = linked
        && folder(&admin)?.as_deref() == Some(path)
    {
        return entry(admin);
    }
    for admin in named_for(common_dir, path)? {
        if folder(&admin)?.as_deref() == Some(path) {
            return entry(admin);
        }
    }
    Ok(None)
}

/// The entries that hold `branch` (`refs/heads/…`): it is checked out there, or being rebased or bisected.
pub(super) fn holding(common_dir: &Path, branch: &str) -> Result<Vec<Registration>, GitError> {
    let mut found = Vec::new();
    for admin in admin_dirs(common_dir)? {
        let holds = match head(&admin)? {
            RegisteredHead::Branch(name) => name == branch,
            // In the middle of a rebase or a bisect HEAD is on no branch.
            _ => branches_under_way(&admin)?.iter().any(|name| name == branch),
        };
        if holds {
            found.extend(entry(admin)?);
        }
    }
    Ok(found)
}

/// A worktree whose folder is there, below `path`.
pub(super) fn inside(common_dir: &Path, path: &Path) -> Result<Option<PathBuf>, GitError> {
    for admin in admin_dirs(common_dir)? {
        let named = read(&admin.join("gitdir"))?.unwrap_or_default();
        // Following links of hundreds of others would cost more than all the rest of a removal.
        let may_be_inside = !named.starts_with(b"/") || named.starts_with(path.as_os_str().as_bytes());
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

/// Entries of the worktree at `path` without a folder, whose lock has exactly this reason: left by a `git worktree add`
/// that was killed at its start.
pub(super) fn nameless(common_dir: &Path, path: &Path, reason: &str) -> Result<Vec<PathBuf>, GitError> {
    let mut found = Vec::new();
    for admin in named_for(common_dir, path)? {
        let locked = read(&admin.join("locked"))?.unwrap_or_default();
        if folder(&admin)?.is_none() && String::from_utf8_lossy(&locked).trim_end() == reason {
            found.push(admin);
        }
    }
    Ok(found)
}

/// What the locks of entries without a folder say.
pub(super) fn marks_of_nameless(common_dir: &Path) -> Result<Vec<String>, GitError> {
    let mut found = Vec::new();
    for admin in admin_dirs(common_dir)? {
        if folder(&admin)?.is_none()
            && let Some(mark) = read(&admin.join("locked"))?
        {
            found.push(String::from_utf8_lossy(&mark).trim_end().to_owned());
        }
    }
    Ok(found)
}

/// The path of a folder that may be gone or not yet there: absolute, links resolved as far as it exists.
pub(super) fn resolved(path: &Path) -> Result<PathBuf, GitError> {
    let whole = absolute(path).map_err(GitError::io("resolve", path))?;
    let mut missing = Vec::new();
    let mut there = whole.as_path();
    loop {
        match fs::canonicalize(there) {
            Ok(real) => return Ok(missing.iter().rev().fold(real, |path, name| path.join(name))),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(GitError::Io { doing: "resolve", path: whole, source }),
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
    /// Does the folder's `.git` file point back to this entry?
    pub(super) fn is_linked_back(&self) -> bool {
        let pointed = fs::read(self.path.join(".git")).ok().and_then(|bytes| git_file_target(&bytes));
        let Some(target) = pointed else { return false };
        let target = self.path.join(target);
        fs::canonicalize(target).ok() == fs::canonicalize(&self.admin).ok()
    }
}

/// `refs/heads/…` names that a rebase or bisect in this git directory will come back to.
pub(super) fn branches_under_way(git_dir: &Path) -> Result<Vec<String>, GitError> {
    let mut found = Vec::new();
    for (file, prefix) in
        [("rebase-merge/head-name", ""), ("rebase-apply/head-name", ""), ("BISECT_START", "refs/heads/")]
    {
        if let Some(bytes) = read(&git_dir.join(file))? {
            found.push(format!("{prefix}{}", String::from_utf8_lossy(&bytes).trim_end()));
        }
    }
    Ok(found)
}

/// What a `.git` file points to.
pub(super) fn git_file_target(bytes: &[u8]) -> Option<PathBuf> {
    let target = bytes.strip_prefix(b"gitdir: ")?;
    Some(path_of(target.strip_suffix(b"\n").unwrap_or(target)))
}

/// `HEAD` of a git directory, as it stands in the file.
pub(super) fn head(git_dir: &Path) -> Result<RegisteredHead, GitError> {
    let bytes = read(&git_dir.join("HEAD"))?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    Ok(match text.strip_prefix("ref: ") {
        Some(name) => RegisteredHead::Branch(name.trim().to_owned()),
        None if text.bytes().all(|byte| byte == b'0') => RegisteredHead::Nothing,
        None => RegisteredHead::Commit(text.to_owned()),
    })
}

/// `None`: it names no folder.
fn entry(admin: PathBuf) -> Result<Option<Registration>, GitError> {
    let Some(path) = folder(&admin)? else { return Ok(None) };
    let locked = read(&admin.join("locked"))?.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
    let head = head(&admin)?;
    Ok(Some(Registration { admin, path, locked, head }))
}

/// The entries that git may have made for a worktree at `path`: it calls them by the name of the folder, with a number
/// behind it where that is taken.
fn named_for(common_dir: &Path, path: &Path) -> Result<Vec<PathBuf>, GitError> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    // Other names it writes in another way.
    let is_plain = name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
    let may_be_it = |admin: &PathBuf| {
        let rest = admin.file_name().and_then(|found| found.as_bytes().strip_prefix(name));
        !is_plain || rest.is_some_and(|number| number.iter().all(u8::is_ascii_digit))
    };
    Ok(admin_dirs(common_dir)?.into_iter().filter(may_be_it).collect())
}

fn admin_dirs(common_dir: &Path) -> Result<Vec<PathBuf>, GitError> {
    let parent = common_dir.join("worktrees");
    let entries = match fs::read_dir(&parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(GitError::Io { doing: "list", path: parent, source }),
    };
    let mut found = Vec::new();
    for entry in entries {
        found.push(entry.map_err(GitError::io("list", &parent))?.path());
    }
    Ok(found)
}

/// The folder that the file `gitdir` names; relative ones (git 2.48 and later) start from the entry.
fn folder(admin: &Path) -> Result<Option<PathBuf>, GitError> {
    let Some(bytes) = read(&admin.join("gitdir"))? else { return Ok(None) };
    let named = admin.join(path_of(bytes.strip_suffix(b"\n").unwrap_or(&bytes)));
    match named.parent() {
        // Somebody's worktree may be where nothing can be read; that is no reason to know nothing of the others.
        Some(root) if !bytes.is_empty() => Ok(Some(resolved(root).unwrap_or_else(|_| root.to_owned()))),
        _ => Ok(None),
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// `None` if there is no such file; entries come and go while others list them.
fn read(path: &Path) -> Result<Option<Vec<u8>>, GitError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(GitError::Io { doing: "read", path: path.to_owned(), source }),
    }
}
