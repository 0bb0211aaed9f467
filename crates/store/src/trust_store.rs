//! Trusted digests of this clone, in a file of the user's own, outside of all work trees and the git directory, keyed
//! by the clone's path.
//!
//! Agents in a sandbox can't write there, and no archive can contain it. If it is lost, the user is only asked again.
#![expect(clippy::disallowed_methods, reason = "expired trust is removed")]

use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::env;
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use memchr::memmem;
use sha2::{Digest as _, Sha256};

use super::board::Board;
use super::error::Error;
use tavern_sys::files;

/// A collision-resistant digest of a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 20]);

impl Digest {
    /// Returns the digest of `text`, which is of the given `kind`.
    pub fn of(kind: &str, text: &str) -> Digest {
        let bytes = Sha256::new()
            .chain_update(kind)
            .chain_update([0])
            .chain_update(text)
            .finalize();
        // 160 bits are beyond any search.
        Digest(std::array::from_fn(|at| bytes[at]))
    }

    /// Returns a digest with another meaning for the same text.
    pub fn of_kind(&self, kind: &str) -> Digest {
        Digest::of(kind, &self.to_string())
    }
}

/// Prints hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |half: u8| char::from_digit(half.into(), 16).expect("it is below 16");
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        f.write_str(&digits.map(digit).collect::<String>())
    }
}

impl FromStr for Digest {
    type Err = ();

    fn from_str(line: &str) -> Result<Digest, ()> {
        let pairs: &[u8; 40] = line.as_bytes().try_into().map_err(drop)?;
        let half = |at: usize| char::from(pairs[at]).to_digit(16);
        let byte = |at: usize| Some((half(2 * at)? << 4 | half(2 * at + 1)?) as u8);
        let mut bytes = [0; 20];
        for (at, place) in bytes.iter_mut().enumerate() {
            *place = byte(at).ok_or(())?;
        }
        Ok(Digest(bytes))
    }
}

/// The trusted digests of a clone.
#[derive(Default)]
pub struct Trusted {
    root: PathBuf,
    /// `None`: the user has no folder for it.
    path: Option<PathBuf>,
    /// The digests, one per line, as in the file.
    lines: String,
    /// The parsed digests, for many queries.
    index: OnceCell<HashSet<Digest>>,
    asked: Cell<usize>,
    added: HashSet<Digest>,
}

/// This many queries search the text, without an index: most programs ask about one item.
const FEW: usize = 8;

impl Trusted {
    /// Reads the trusted digests; none if they can't be read.
    pub fn of(board: &Board) -> Trusted {
        let root = board.root().to_owned();
        let path = folder()
            .map(|folder| folder.join(Digest::of("clone", &root.to_string_lossy()).to_string()));
        let read = |path: &PathBuf| match files::read_text(path) {
            // A home directory may be behind a link.
            Err(error) if error.kind() == files::REFUSED => {
                files::read_text(fs::canonicalize(path).ok()?).ok()
            }
            read => read.ok(),
        };
        let text = path.as_ref().and_then(read).unwrap_or_default();
        // The first line is for people.
        let lines = text
            .split_once('\n')
            .map(|(_, lines)| lines.to_owned())
            .unwrap_or_default();
        let (index, asked, added) = Default::default();
        Trusted {
            root,
            path,
            lines,
            index,
            asked,
            added,
        }
    }

    pub fn has(&self, digest: &Digest) -> bool {
        self.asked.set(self.asked.get() + 1);
        let is_in_text =
            || memmem::find(self.lines.as_bytes(), digest.to_string().as_bytes()).is_some();
        let index = || {
            self.index.get_or_init(|| {
                let lines = self.lines.lines();
                let mut index = HashSet::with_capacity(lines.clone().count());
                index.extend(lines.filter_map(|line| line.parse::<Digest>().ok()));
                index
            })
        };
        let is_few = self.asked.get() <= FEW;
        self.added.contains(digest)
            || if is_few {
                is_in_text()
            } else {
                index().contains(digest)
            }
    }

    /// Trusts these digests in this value only.
    pub fn suppose(&mut self, digests: impl IntoIterator<Item = Digest>) {
        self.added.extend(digests);
    }

    /// Trusts these digests from now on, and in this value even if the write fails.
    pub fn add(&mut self, digests: impl IntoIterator<Item = Digest>) -> Result<(), Error> {
        let new: Vec<Digest> = digests
            .into_iter()
            .filter(|digest| !self.has(digest))
            .collect();
        self.added.extend(new.iter().cloned());
        if new.is_empty() {
            return Ok(());
        }
        let Some(path) = &self.path else {
            let missing = io::Error::new(
                ErrorKind::NotFound,
                "neither XDG_STATE_HOME nor HOME is set",
            );
            return Err(Error::io("record the trust of", &self.root)(missing));
        };
        let write = || {
            let folder = path.parent().expect("it is in a folder");
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
            // A home directory may be behind a link.
            let path = fs::canonicalize(folder)?.join(path.file_name().expect("it has a name"));
            let mut file = files::open_to_append(&path)?;
            let is_new = file.metadata()?.len() == 0;
            let head = if is_new {
                format!("{}\n", self.root.display())
            } else {
                String::new()
            };
            let lines: String = new.iter().map(|digest| format!("{digest}\n")).collect();
            file.write_all(format!("{head}{lines}").as_bytes())
        };
        write().map_err(Error::io("write to", path))
    }

    /// Removes all trust. Returns false if there was none.
    pub fn forget(&mut self) -> Result<bool, Error> {
        let root = std::mem::take(&mut self.root);
        *self = Trusted {
            root,
            path: self.path.take(),
            ..Trusted::default()
        };
        let Some(path) = &self.path else {
            return Ok(false);
        };
        match fs::remove_file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true).map_err(Error::io("remove", path)),
        }
    }
}

/// Returns the user's folder, by the XDG Base Directory Specification.
fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(Path::new(".local/state"))))?;
    Some(state.join("tavern/trust"))
}
