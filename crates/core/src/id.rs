//! The ID of an item.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An item's ID: an upper-case prefix, a hyphen, and a part with at least one digit (`T-k3f9`, `WI-001`,
/// `AUTH-7`); a child adds `.1`, `.2` and so on. By construction it is safe as a file name and as a part of a
/// branch name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(transparent)]
pub struct TaskId(String);

/// Maximum length of an ID in bytes: between `tavern/` and `.lock` it is still a valid ref file everywhere.
pub const MAX_ID: usize = 64;

/// A text that is no ID, cut to 80 characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` can't be a task ID")]
pub struct BadId(pub String);

impl BadId {
    pub const HINT: &str =
        "an ID is capitals, a hyphen and letters with at least one digit, such as T-k3f9 or AUTH-7";
}

impl TaskId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a placeholder for an item that has no ID yet.
    pub fn nobody() -> TaskId {
        TaskId("T-0".to_owned())
    }

    /// Returns true if it has the prefix of IDs that Tavern assigns.
    pub fn is_tavern_s(&self) -> bool {
        self.0.starts_with("T-")
    }

    /// Returns true if it extends `other`, as IDs of children and planned items do.
    pub fn is_below(&self, other: &TaskId) -> bool {
        self.0
            .strip_prefix(&other.0)
            .is_some_and(|rest| rest.starts_with('.'))
    }

    /// Returns the IDs that it extends, nearest first.
    pub fn above(&self) -> impl Iterator<Item = TaskId> {
        self.0
            .rmatch_indices('.')
            .map(|(end, _)| TaskId(self.0[..end].to_owned()))
    }

    /// Returns the ID of this item's `number`th child.
    pub fn child(&self, number: u32) -> TaskId {
        TaskId(format!("{}.{number}", self.0))
    }

    /// Returns a fresh ID: `T-` and four characters of Crockford's base32 from `random`, with at least one
    /// digit. It is one character longer for each time that `is_taken` returns true.
    pub fn mint(mut random: u64, is_taken: impl Fn(&TaskId) -> bool) -> TaskId {
        const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let mut id = String::from("T-");
        // The last of the four is a digit if none of the others is.
        for _ in 0..3 {
            id.push(char::from(ALPHABET[(random % 32) as usize]));
            random /= 32;
        }
        let has_digit = id.bytes().any(|byte| byte.is_ascii_digit());
        let choices = if has_digit { 32 } else { 10 };
        id.push(char::from(ALPHABET[(random % choices) as usize]));
        random /= 32;
        while is_taken(&TaskId(id.clone())) && id.len() < MAX_ID {
            id.push(char::from(ALPHABET[(random % 32) as usize]));
            random = random.rotate_right(5) ^ 0x9e37_79b9_7f4a_7c15;
        }
        TaskId(id)
    }
}

impl FromStr for TaskId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<TaskId, BadId> {
        if is_id(text.as_bytes()) {
            Ok(TaskId(text.to_owned()))
        } else {
            Err(BadId(text.chars().take(80).collect()))
        }
    }
}

fn is_id(text: &[u8]) -> bool {
    let is_capital = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let prefix = text.iter().take_while(|byte| is_capital(byte)).count();
    if text.len() > MAX_ID
        || !text.first().is_some_and(u8::is_ascii_uppercase)
        || text.get(prefix) != Some(&b'-')
    {
        return false;
    }
    let rest = &text[prefix + 1..];
    let mut has_digit = false;
    // No part is empty.
    let mut is_open = true;
    for byte in rest {
        match byte {
            b'-' | b'.' | b'_' if is_open => return false,
            b'-' | b'.' | b'_' => is_open = true,
            byte if byte.is_ascii_alphanumeric() => {
                is_open = false;
                has_digit |= byte.is_ascii_digit();
            }
            _ => return false,
        }
    }
    // Git refuses a ref that ends in `.lock`.
    has_digit && !is_open && !rest.ends_with(b".lock")
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<TaskId, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_names() {
        for good in [
            "T-k3f9",
            "WI-001",
            "AUTH-7",
            "T-k3f9.1",
            "T-k3f9.1.12",
            "A2-0",
            "X-1_2",
        ] {
            assert_eq!(
                good.parse::<TaskId>().map(|id| id.to_string()),
                Ok(good.to_owned())
            );
        }
        let long = format!("T-{}", "1".repeat(MAX_ID));
        for bad in [
            "", "-rf", "../x", "a b", "T-", "t-1", "T", "T-abc", "T-1.", "T-1..2", "T-1/2",
            "T-1.lock", "Ä-1", &long,
        ] {
            assert!(bad.parse::<TaskId>().is_err(), "`{bad}` must not be an ID");
        }
    }

    #[test]
    fn minted_ids_are_ids_and_avoid_taken_ones() {
        for random in (0..50_000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let id = TaskId::mint(random, |_| false);
            assert_eq!(id.as_str().len(), 6);
            assert_eq!(id.as_str().parse(), Ok(id.clone()));
            let other = TaskId::mint(random, |taken| *taken == id);
            assert_eq!(other.as_str().len(), 7);
            assert_eq!(other.as_str().parse(), Ok(other));
        }
    }
}
