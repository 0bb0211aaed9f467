//! Words of people, without the punctuation around and between them.

use std::borrow::Cow;

use memchr::memmem;

/// Returns the words of a text in lower case, without everything between them.
pub(super) fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Returns the letters and digits of a text, as in links to headings.
pub(super) fn slug(text: &str) -> String {
    words(text).join("-")
}

/// Returns the text without blanks and Markdown marks around it.
pub(super) fn bare(words: &str) -> &str {
    words.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '"'))
}

/// Replaces links by their texts: `[A-1]` for `[A-1](https://x.y)`.
pub(super) fn without_targets(text: &str) -> Cow<'_, str> {
    let (mut bare, mut rest) = (String::new(), text);
    while let Some(at) = memmem::find(rest.as_bytes(), b"](") {
        let Some(length) = rest[at..].find(')') else {
            break;
        };
        bare.push_str(&rest[..=at]);
        rest = &rest[at + length + 1..];
    }
    if bare.is_empty() {
        text.into()
    } else {
        (bare + rest).into()
    }
}

/// Returns true if the line says that an item waits for nothing.
pub(super) fn says_nothing(line: &str) -> bool {
    let words = slug(line);
    let behind = ["none", "nothing", "n-a"].map(|word| words.strip_prefix(word));
    let is_word = |behind: &str| behind.is_empty() || behind.starts_with('-');
    words.is_empty() && !line.is_empty() || behind.into_iter().flatten().any(is_word)
}
