//! What a terminal shows of a text, and what it would obey.

/// Words of anybody's as one line of at most so many characters, with nothing in it that is obeyed.
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

/// A terminal obeys it instead of showing it, or shows nothing of it. So are control characters, and those that reorder what stands
/// around them (Unicode's bidirectional marks). So are those without a width (tags, joiners): words can be hidden in them, which a
/// model reads.
pub fn is_command(c: char) -> bool {
    c.is_control() && c != '\t'
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
