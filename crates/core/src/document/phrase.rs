//! Words of people, without the marks around and between them.

use std::borrow::Cow;

use memchr::memmem;

/// Its words in lower case, without all that is between them.
pub(super) fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The letters and digits of a text, as links to headings have them.
pub(super) fn slug(text: &str) -> String {
    words(text).join("-")
}

/// Without blanks and marks of Markdown around it.
pub(super) fn bare(words: &str) -> &str {
    words.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '"'))
}

/// Links by their texts: `[A-1]` of `[A-1](https://x.y)`.
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

/// Whoever writes this says that an item waits for nothing.
pub(super) fn says_nothing(line: &str) -> bool {
    let words = slug(line);
    let behind = ["none", "nothing", "n-a"].map(|word| words.strip_prefix(word));
    let is_word = |behind: &str| behind.is_empty() || behind.starts_with('-');
    words.is_empty() && !line.is_empty() || behind.into_iter().flatten().any(is_word)
}
