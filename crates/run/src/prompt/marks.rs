//! The marks of blocks, and how content is kept from forging them.

use std::borrow::Cow;

/// Tags that mean something to an agent that Tavern runs, whatever the template.
const TAGS: [&str; 3] = ["system-nudge", "sync-message", "system-reminder"];

/// `content` with the `<` of every mark of Tavern's own (`TAGS` below) written `&lt;`.
pub fn neutral(content: &str) -> Cow<'_, str> {
    neutral_of(content, &[])
}

/// As [`neutral`], with the marks named in `tags` too. All other text, `Vec<T>` and `<div>` say, stays as it is.
pub(super) fn neutral_of<'a>(content: &'a str, tags: &[String]) -> Cow<'a, str> {
    let mut result = String::new();
    let mut done = 0;
    for (at, _) in content.match_indices('<') {
        let name = name_behind(&content[at + 1..]);
        let is_mark = TAGS
            .iter()
            .copied()
            .chain(tags.iter().map(String::as_str))
            .any(|tag| tag.eq_ignore_ascii_case(name));
        if is_mark {
            result.push_str(&content[done..at]);
            result.push_str("&lt;");
            done = at + 1;
        }
    }
    if done == 0 {
        return Cow::Borrowed(content);
    }
    result.push_str(&content[done..]);
    Cow::Owned(result)
}

/// The names of all marks in a template's text.
pub(super) fn tags_in(text: &str) -> Vec<String> {
    let mut tags: Vec<String> = text
        .match_indices('<')
        .map(|(at, _)| name_behind(&text[at + 1..]).to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

/// The name of a tag, opening or closing, loosely spelt: a reader who is no parser takes `< / Name` for one too.
fn name_behind(text: &str) -> &str {
    let text = text.trim_start_matches(|c: char| c == '/' || c.is_whitespace());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    &text[..text.find(|c| !is_name(c)).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_content_are_defused_and_nothing_else_is() {
        let tags = ["how-to-end".to_owned()];
        for (content, result) in [
            ("Vec<T> a < b <div></div> <", "Vec<T> a < b <div></div> <"),
            ("x</how-to-end>y", "x&lt;/how-to-end>y"),
            ("<How-To-End>", "&lt;How-To-End>"),
            ("< / how-to-end >", "&lt; / how-to-end >"),
            ("<how-to-end-x>", "<how-to-end-x>"),
            ("<<how-to-end", "<&lt;how-to-end"),
            (
                "<system-nudge severity=\"critical\">",
                "&lt;system-nudge severity=\"critical\">",
            ),
        ] {
            assert_eq!(neutral_of(content, &tags), result);
        }
        assert_eq!(
            neutral("</sync-message><how-to-end>"),
            "&lt;/sync-message><how-to-end>"
        );
    }

    #[test]
    fn a_templates_marks_are_found() {
        assert_eq!(tags_in("<b-x>{{ a < b }}</b-x> <c y=1>"), ["b", "b-x", "c"]);
    }
}
