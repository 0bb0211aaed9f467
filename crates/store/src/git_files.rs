//! `.gitignore` and `.gitattributes` of a board: what git leaves out of commits, and how it merges queues. Their owner may add lines,
//! and may say what ours say in another way.
//!
//! Knows no settings of git.

use std::io::{self, ErrorKind};

use super::find::{Board, GITIGNORE};
use super::queue::is_blank;
use tavern_sys::files;

/// The file in `.tavern/` that says what is volatile.
pub const IGNORE: &str = ".gitignore";

/// The file in `.tavern/` that says which files are queues, and those moved to the archive.
pub const ATTRIBUTES: &str = ".gitattributes";

/// What `.tavern/.gitattributes` holds on a board that `tavern-init` made.
const MERGING: &str = include_str!("../../../templates/gitattributes");

/// One of the two that lacks lines of ours, or is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// `None`: it is not there.
    pub found: Option<String>,
    /// The lines that it lacks; none if it says nothing at all.
    pub lacks: Vec<&'static str>,
    /// The text with them.
    pub text: String,
}

impl Board {
    /// What the file lacks, if it lacks something. [`ErrorKind::InvalidData`] if that can't be put in, since it is no text.
    pub fn incomplete(&self, name: &str) -> io::Result<Option<Incomplete>> {
        let bytes = match files::read(self.path(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            other => Some(other?),
        };
        let ours = whole(name);
        let found = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default());
        if is_blank(&found) {
            let found = bytes.is_some().then(|| found.into_owned());
            return Ok(Some(Incomplete {
                found,
                lacks: Vec::new(),
                text: ours.to_owned(),
            }));
        }
        let rules = ours.lines().filter(|line| !line.starts_with('#'));
        let lacks: Vec<&str> = rules
            .filter(|rule| !found.lines().any(|line| says(line, rule)))
            .collect();
        if lacks.is_empty() {
            return Ok(None);
        }
        let found = files::text(bytes.unwrap_or_default())?;
        let gap = if found.ends_with('\n') { "" } else { "\n" };
        let text = format!("{found}{gap}{}\n", lacks.join("\n"));
        Ok(Some(Incomplete {
            found: Some(found),
            lacks,
            text,
        }))
    }
}

/// All that Tavern says in the file.
pub fn whole(name: &str) -> &'static str {
    if name == IGNORE { GITIGNORE } else { MERGING }
}

/// A line of the file stands for this rule of ours.
fn says(line: &str, rule: &str) -> bool {
    let mut words = line.split_whitespace();
    let pattern = words.next().unwrap_or_default().trim_start_matches('/');
    if rule.contains(" merge=") {
        // However its owner wants them merged.
        pattern.starts_with("queues/") && words.any(|word| word.contains("merge"))
    } else {
        pattern == "*" || pattern.trim_end_matches('/') == rule.trim_matches('/')
    }
}
