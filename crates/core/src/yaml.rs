//! Reads untrusted YAML within limits on its cost. Knows nothing of its content.
//!
//! The parser underneath is quadratic in open brackets, and exponential in nested aliases.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads YAML"
)]

use std::fmt;

use serde::de::DeserializeOwned;

/// Maximum bytes of a text.
pub const MOST_BYTES: usize = 64 * 1024;
/// Maximum depth of open brackets and braces.
pub const MOST_DEPTH: usize = 64;
/// Maximum aliases (`*name`) of a text with anchors (`&name`).
pub const MOST_ALIASES: usize = 8;

/// The reason why a text can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    message: String,
    /// Byte and line (from 1) in the text, if it is about a place.
    pub place: Option<(usize, usize)>,
}

/// Parses `text` as a `T`.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    bounded(text)?;
    serde_yaml::from_str(text).map_err(YamlError::from)
}

fn bounded(text: &str) -> Result<(), YamlError> {
    if text.len() > MOST_BYTES {
        return Err(YamlError::beyond(
            text,
            MOST_BYTES,
            format_args!("longer than {MOST_BYTES} bytes"),
        ));
    }
    let (mut depth, mut aliases, mut is_anchored, mut before) =
        (0_usize, 0, text.contains('&'), b' ');
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'*' if is_anchored && b" \t\n\r,[{:-?".contains(&before) => aliases += 1,
            _ => {}
        }
        if depth > MOST_DEPTH {
            return Err(YamlError::beyond(
                text,
                at,
                format_args!("more than {MOST_DEPTH} brackets deep"),
            ));
        }
        if aliases > MOST_ALIASES {
            // Globs in a script look the same.
            is_anchored = text.split([' ', '\t', '\n', ',', '[', '{']).any(is_anchor);
            if is_anchored {
                return Err(YamlError::beyond(
                    text,
                    at,
                    format_args!("more than {MOST_ALIASES} aliases (`*name`)"),
                ));
            }
            aliases = 0;
        }
        before = byte;
    }
    Ok(())
}

/// Returns true for `&name`, but not for `&&` or `&1` of a shell.
fn is_anchor(word: &str) -> bool {
    word.strip_prefix('&')
        .is_some_and(|name| !name.is_empty() && !name.starts_with(['&', '>']))
}

impl YamlError {
    fn beyond(text: &str, at: usize, fault: fmt::Arguments<'_>) -> YamlError {
        let at = text.floor_char_boundary(at);
        let line = 1 + text[..at].matches('\n').count();
        YamlError {
            message: format!("it is {fault}, which Tavern does not read"),
            place: Some((at, line)),
        }
    }
}

impl From<serde_yaml::Error> for YamlError {
    fn from(error: serde_yaml::Error) -> YamlError {
        let place = error
            .location()
            .map(|location| (location.index(), location.line()));
        YamlError {
            message: error.to_string(),
            place,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_yaml::Value;

    use super::*;

    #[test]
    fn what_would_take_too_long_is_not_read() {
        let levels: String = (1..20)
            .map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1))
            .collect();
        for (text, fault) in [
            (
                format!("a: {}", "[".repeat(100_000)),
                "it is longer than 65536 bytes, which Tavern does not read",
            ),
            (
                format!("a:\n b: {}", "[{a: ".repeat(33)),
                "it is more than 64 brackets deep, which Tavern does not read",
            ),
            (
                format!("a0: &a0 x\n{levels}"),
                "it is more than 8 aliases (`*name`), which Tavern does not read",
            ),
        ] {
            let error = read::<Value>(&text).expect_err("too much");
            assert_eq!(error.to_string(), fault);
            assert!(
                error
                    .place
                    .is_some_and(|(at, line)| text.is_char_boundary(at) && line > 0),
                "{error:?}"
            );
        }
    }

    #[test]
    fn what_people_write_is_read() {
        let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
        let script = format!(
            "setup: |\n  make && ls 2>&1\n  rm {}\nnames: [{}]",
            "*a ".repeat(100),
            "[a], ".repeat(1000)
        );
        for text in ["a: &x [1]\nb: *x\nc: [*x, *x]\n", &deep, &script] {
            assert!(read::<Value>(text).is_ok(), "{text}");
        }
    }
}
