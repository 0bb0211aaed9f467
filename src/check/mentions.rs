//! Files that an item's text refers to; only references that clearly mean a file of the repository.

use std::ops::Range;

/// Extensions of files that people write as instructions.
const ENDINGS: [&str; 6] = [".md", ".adoc", ".rst", ".txt", ".yaml", ".json"];

/// Words before such a path.
const VERBS: [&str; 6] = ["follow", "follows", "obey", "per", "read", "see"];

/// Pairs of words before such a path.
const PHRASES: [(&str, &str); 6] = [
    ("according", "to"),
    ("as", "in"),
    ("defined", "in"),
    ("described", "in"),
    ("documented", "in"),
    ("specified", "in"),
];

/// Returns the ranges of paths in `block`, without anchors and line numbers: of links, and after words such
/// as `follow`. Code and fenced blocks are skipped.
pub(super) fn mentioned(block: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut start, mut is_code) = (0, false);
    let (mut last, mut before_last) = (String::new(), String::new());
    for line in block.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        is_code ^= is_fence;
        for word in line.split_whitespace().filter(|_| !is_code && !is_fence) {
            let at = start + word.as_ptr() as usize - line.as_ptr() as usize;
            let link = word.find("](").map(|open| open + 2);
            let is_told = VERBS.contains(&last.as_str())
                || PHRASES.contains(&(before_last.as_str(), last.as_str()));
            if let Some(from) = link.or(is_told.then_some(0))
                && let Some(path) = path_in(&word[from..])
            {
                found.push(at + from + path.start..at + from + path.end);
            }
            before_last = std::mem::replace(
                &mut last,
                word.trim_matches(|c: char| !c.is_alphanumeric())
                    .to_lowercase(),
            );
        }
        start += line.len();
    }
    found
}

/// Returns the path at the beginning of `word`, if it clearly is a file below the root.
fn path_in(word: &str) -> Option<Range<usize>> {
    let from = word.len()
        - word
            .trim_start_matches(['`', '"', '\'', '(', '<', '*'])
            .len();
    let is_path = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let length = word[from..]
        .find(|c| !is_path(c))
        .unwrap_or(word.len() - from);
    let path = word[from..from + length].trim_end_matches('.');
    // `https://…`, `~/…` and `*.md` continue with other characters.
    let next = word[from + path.len()..]
        .trim_start_matches('.')
        .chars()
        .next();
    let ends = next.is_none_or(|c| "#:,;)>`\"'*!?".contains(c));
    let is_file = ENDINGS
        .iter()
        .any(|ending| path.len() > ending.len() && path.ends_with(ending));
    let is_below = path.contains('/')
        && !path.starts_with(['/', '.', '-'])
        && !path.contains("//")
        && !path.contains("..");
    (ends && is_file && is_below).then(|| from..from + path.len())
}
