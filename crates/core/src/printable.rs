//! Makes text safe for a terminal.

/// Returns untrusted text as one line of at most `most` characters, with control characters replaced.
pub fn one_line(words: &str, most: usize) -> String {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = line.chars().map(|c| if is_command(c) { '·' } else { c });
    let cut = if line.chars().count() > most {
        "…"
    } else {
        ""
    };
    shown.take(most).collect::<String>() + cut
}

/// Returns true if a terminal would obey or hide the character. These are control characters, and Unicode's
/// bidirectional marks, which reorder text around them. Also those without a width (tags, joiners): they can
/// hide text that a model reads.
pub fn is_command(c: char) -> bool {
    c.is_control() && c != '\t'
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
