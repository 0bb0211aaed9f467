//! The marks of blocks, and how content is kept from forging them.

use std::borrow::Cow;

/// Tags with a meaning for every agent, in any template.
const TAGS: [&str; 3] = ["system-nudge", "sync-message", "system-reminder"];

/// Characters that a model may read as the start of a mark: `<`, its lookalikes and its other sizes (Unicode's
/// confusables.txt).
const OPENERS: [char; 11] = [
    '<',
    '\u{2c2}',
    '\u{1438}',
    '\u{2039}',
    '\u{2329}',
    '\u{276e}',
    '\u{2770}',
    '\u{27e8}',
    '\u{3008}',
    '\u{fe64}',
    '\u{1d236}',
];

/// Returns `content` with `&lt;` for each opener of a mark that is named in `tags`, or is one of Tavern's own (`TAGS`
/// above). All other text, such as `Vec<T>` and `<div>`, is unchanged.
pub(super) fn neutral_of<'a>(content: &'a str, tags: &[String]) -> Cow<'a, str> {
    let mut result = String::new();
    let mut done = 0;
    for (at, c) in content.char_indices() {
        if !OPENERS.contains(&plain(c)) {
            continue;
        }
        let name = loose_name(&content[at + c.len_utf8()..]);
        let mut known = TAGS.iter().copied().chain(tags.iter().map(String::as_str));
        if known.any(|tag| may_read(&name, tag)) {
            result.push_str(&content[done..at]);
            result.push_str("&lt;");
            done = at + c.len_utf8();
        }
    }
    if done == 0 {
        return Cow::Borrowed(content);
    }
    result.push_str(&content[done..]);
    Cow::Owned(result)
}

/// Maps Unicode's two other forms of ASCII to it: full width, and invisible tags.
fn plain(c: char) -> char {
    let ascii = match c {
        '\u{ff01}'..='\u{ff5e}' => u32::from(c) - 0xfee0,
        '\u{e0000}'..='\u{e007f}' => u32::from(c) - 0xe0000,
        c => return c,
    };
    char::from_u32(ascii).unwrap_or(c)
}

/// Returns the possible name of a mark behind its opener. Another opener ends it, so a text is read once.
fn loose_name(text: &str) -> Vec<char> {
    let is_before =
        |c: &char| *c == '/' || c.is_whitespace() || !c.is_ascii() && !c.is_alphanumeric();
    let is_name = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii();
    let plain = text.chars().map(plain);
    plain
        .take_while(|c| !OPENERS.contains(c))
        .skip_while(is_before)
        .take_while(is_name)
        .collect()
}

/// Returns true if a model may read `name` as `tag`. A character beyond ASCII may stand for any other or for none:
/// letters of another script or font, accents, invisible ones. Names wholly in another script never match.
fn may_read(name: &[char], tag: &str) -> bool {
    let is_latin = |c: &char| c.is_ascii() || ('\u{1d400}'..='\u{1d7ff}').contains(c);
    if !name.iter().any(is_latin) {
        return false;
    }
    // `ends[n]`: the name so far may read as the first `n` bytes of the tag.
    let tag = tag.as_bytes();
    let mut ends = vec![false; tag.len() + 1];
    ends[0] = true;
    for c in name {
        for end in (0..=tag.len()).rev() {
            let is_next = |byte: u8| !c.is_ascii() || char::from(byte).eq_ignore_ascii_case(c);
            let goes_on = end > 0 && ends[end - 1] && is_next(tag[end - 1]);
            ends[end] = goes_on || ends[end] && !c.is_ascii();
        }
    }
    ends[tag.len()]
}

/// Returns the names of all marks in a template's text.
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

/// Returns the name of a tag, opening or closing. It is lenient, because a model also reads `< / Name` as a tag.
fn name_behind(text: &str) -> &str {
    let text = text.trim_start_matches(|c: char| c == '/' || c.is_whitespace());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    &text[..text.find(|c| !is_name(c)).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_are_not_seen_or_look_alike_are_defused() {
        let tags = ["note".to_owned()];
        for mark in [
            "<\u{200b}/note>",
            "</no\u{ad}te>",
            "</n\u{2060}o\u{fe0f}te>",
            "<\u{202e}/note>",
            "</note\u{34f}>",
            "\u{ff1c}/note\u{ff1e}",
            "\u{ff1c}\u{ff0f}\u{ff4e}\u{ff4f}\u{ff54}\u{ff45}\u{ff1e}",
            "\u{2039}/note\u{203a}",
            "</n\u{43e}te>",
            "</no\u{301}te>",
            "<\u{a0}/ note>",
            "\u{e003c}\u{e002f}\u{e006e}\u{e006f}\u{e0074}\u{e0065}\u{e003e}",
            "\u{1d4c3}</NOT\u{ff25}>",
            &format!("</n{}ote>", "\u{200b}".repeat(1000)),
            &format!("<{}/note>", "\u{200b} ".repeat(1000)),
        ] {
            let neutral = neutral_of(mark, &tags);
            assert!(neutral.contains("&lt;"), "{mark:?}: {neutral:?}");
        }
        for words in [
            "<notes>",
            "<d\u{ad}iv>",
            "a \u{2039}mot\u{203a}",
            "👩\u{200d}💻 <3",
            "<-note",
            "1 \u{2039} note2",
            "Vec<Слово> <名前です>",
        ] {
            assert_eq!(neutral_of(words, &tags), words);
        }
    }

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
            neutral_of("</sync-message><how-to-end>", &[]),
            "&lt;/sync-message><how-to-end>"
        );
    }

    #[test]
    fn a_templates_marks_are_found() {
        assert_eq!(tags_in("<b-x>{{ a < b }}</b-x> <c y=1>"), ["b", "b-x", "c"]);
    }
}
