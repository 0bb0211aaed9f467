//! What is trusted in this clone: digests of texts, in a file of the user's own, outside of all work trees and of the git directory,
//! by the path of the clone.
//!
//! No agent in a sandbox can write there, and no archive can bring it along. Lost, it is only asked again.
#![expect(
    clippy::disallowed_methods,
    reason = "what is trusted no longer is removed"
)]

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

use super::error::Error;
use super::find::Board;
use tavern_sys::files;

/// Of a text, so that nobody can make another one with the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 20]);

impl Digest {
    /// Of a `text` that is a `kind` of thing.
    pub fn of(kind: &str, text: &str) -> Digest {
        let bytes = Sha256::new()
            .chain_update(kind)
            .chain_update([0])
            .chain_update(text)
            .finalize();
        // 160 bits are more than anybody can search.
        Digest(std::array::from_fn(|at| bytes[at]))
    }

    /// One that says something else of the same text.
    pub fn of_kind(&self, kind: &str) -> Digest {
        Digest::of(kind, &self.to_string())
    }
}

/// In hexadecimal.
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

/// The digests that are trusted in a clone.
#[derive(Default)]
pub struct Trusted {
    root: PathBuf,
    /// `None`: the user has no folder for it.
    path: Option<PathBuf>,
    /// One a line, as they stand in the file.
    lines: String,
    /// The same, for whoever asks often.
    index: OnceCell<HashSet<Digest>>,
    asked: Cell<usize>,
    added: HashSet<Digest>,
}

/// Looked for in the text, so many at most: most programs ask for one item.
const FEW: usize = 8;

impl Trusted {
    /// As they stand now; none if they can't be read.
    pub fn of(board: &Board) -> Trusted {
        let root = files::real(board.root()).unwrap_or_else(|_| board.root().to_owned());
        let path = folder()
            .map(|folder| folder.join(Digest::of("clone", &root.to_string_lossy()).to_string()));
        let read = |path: &PathBuf| match files::read_text(path) {
            // A home may well be behind a link.
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

    /// Trusts these in this value alone.
    pub fn suppose(&mut self, digests: impl IntoIterator<Item = Digest>) {
        self.added.extend(digests);
    }

    /// Trusts these, from now on, and in this value even if it can't be written down.
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
            return Err(Error::io("write down what is trusted of", &self.root)(
                missing,
            ));
        };
        let write = || {
            let folder = path.parent().expect("it is in a folder");
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
            // A home may well be behind a link.
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

    /// Trusts none from now on. False if there were none.
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

/// The user's, by the XDG Base Directory Specification.
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
