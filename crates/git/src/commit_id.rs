//! The name of a commit: its full hexadecimal digest, validated once on input.
//!
//! Knows nothing of any repository: a well-formed id may name nothing.

use std::fmt;
use std::str::FromStr;

/// A full commit id: 40 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(String);

impl CommitId {
    /// Returns all digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first seven digits, for display; not unique in large repositories.
    pub fn short(&self) -> &str {
        &self.0[..7]
    }
}

/// The text is not a full commit id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a full commit id of 40 hexadecimal digits")]
pub struct BadCommitId {
    pub text: String,
}

impl FromStr for CommitId {
    type Err = BadCommitId;

    fn from_str(text: &str) -> Result<CommitId, BadCommitId> {
        let full = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if full {
            Ok(CommitId(text.to_ascii_lowercase()))
        } else {
            Err(BadCommitId {
                text: text.to_owned(),
            })
        }
    }
}

impl From<git2::Oid> for CommitId {
    fn from(oid: git2::Oid) -> CommitId {
        CommitId(oid.to_string())
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_digests_are_ids() {
        let forty = "0123456789abcdef0123456789ABCDEF01234567";
        let rows = [
            (forty.to_owned(), Some(forty.to_lowercase())),
            ("a".repeat(64), None),
            ("a".repeat(39), None),
            ("a".repeat(41), None),
            ("g".repeat(40), None),
            ("ä".repeat(20), None),
            (String::new(), None),
        ];
        for (text, expected) in rows {
            assert_eq!(
                text.parse::<CommitId>().ok().map(|id| id.to_string()),
                expected,
                "{text}"
            );
        }
    }
}
