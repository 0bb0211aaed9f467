//! Words of people, without the marks around and between them.

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

/// Whoever writes this says that an item waits for nothing.
pub(super) fn says_nothing(line: &str) -> bool {
    let words = slug(line);
    let behind = ["none", "nothing", "n-a"].map(|word| words.strip_prefix(word));
    let is_word = |behind: &str| behind.is_empty() || behind.starts_with('-');
    words.is_empty() && !line.is_empty() || behind.into_iter().flatten().any(is_word)
}
