//! `.gitignore` and `.gitattributes` of a board: which files git ignores, and how it merges queues. Users may add
//! lines, and may write equivalent ones.
//!
//! Knows no settings of git.

use std::io::{self, ErrorKind};

use super::board::{Board, GITIGNORE};
use super::queue::is_blank;
use tavern_sys::files;

/// The file in `.tavern/` that lists the volatile files.
pub const IGNORE: &str = ".gitignore";

/// The file in `.tavern/` that tells git which files are queues and archives.
pub const ATTRIBUTES: &str = ".gitattributes";

/// The content of `.tavern/.gitattributes` on a board that `tavern-init` made.
const MERGING: &str = include_str!("../../../templates/gitattributes");

/// One of the two files, missing or without some of the required lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// The found text; `None` if there is no file.
    pub found: Option<String>,
    /// The missing lines; empty if the file is blank.
    pub lacks: Vec<&'static str>,
    /// The completed text.
    pub text: String,
}

impl Board {
    /// Returns the missing lines of the file, if any. [`ErrorKind::InvalidData`] if lines can't be added because it is
    /// not text.
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

/// Returns Tavern's whole version of the file.
pub fn whole(name: &str) -> &'static str {
    if name == IGNORE { GITIGNORE } else { MERGING }
}

/// Returns true if a line of the file covers this rule.
fn says(line: &str, rule: &str) -> bool {
    let mut words = line.split_whitespace();
    let pattern = words.next().unwrap_or_default().trim_start_matches('/');
    if rule.contains(" merge=") {
        // The user may choose another merge driver.
        pattern.starts_with("queues/") && words.any(|word| word.contains("merge"))
    } else {
        pattern == "*" || pattern.trim_end_matches('/') == rule.trim_matches('/')
    }
}
