//! Styles for terminals with or without colours and Unicode.

use clap::ColorChoice;
use ratatui::style::{Color, Modifier, Style};

use crate::format::Painted;

/// The abilities of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub colours: Colours,
    pub signs: Signs,
}

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    Usual,
    None,
}

/// The character set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    Unicode,
    Ascii,
}

/// The role of a part of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Heading,
    /// A person should act.
    Asks,
    /// Work in progress.
    Works,
    /// A problem, or a removal.
    Bad,
    /// Less important.
    Faint,
}

/// Returns true if the terminal of `TERM` can move its cursor.
pub fn can_move() -> bool {
    let term = std::env::var("TERM").unwrap_or_default();
    !term.is_empty() && term != "dumb"
}

impl Tone {
    /// Returns its CSS class on a page.
    pub fn word(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Heading => "heading",
            Tone::Asks => "asks",
            Tone::Works => "works",
            Tone::Bad => "bad",
            Tone::Faint => "faint",
        }
    }
}

impl Look {
    /// Returns the look for the flag and the environment.
    pub fn of(color: ColorChoice) -> Look {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let colours = match color {
            ColorChoice::Never => Colours::None,
            ColorChoice::Auto if variable("NO_COLOR").is_some() => Colours::None,
            _ => Colours::Usual,
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(variable)
            .unwrap_or_default()
            .to_lowercase();
        let has_signs = locale.contains("utf-8") || locale.contains("utf8");
        Look {
            colours,
            signs: if has_signs {
                Signs::Unicode
            } else {
                Signs::Ascii
            },
        }
    }

    /// Returns the style of a tone.
    pub fn style(self, tone: Tone) -> Style {
        let style = match tone {
            Tone::Plain => return Style::new(),
            Tone::Heading => Style::new().add_modifier(Modifier::BOLD),
            Tone::Asks => Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
            Tone::Works => Style::new().fg(Color::Green),
            Tone::Bad => Style::new().fg(Color::Red),
            Tone::Faint => Style::new().add_modifier(Modifier::DIM),
        };
        if self.colours == Colours::None {
            Style { fg: None, ..style }
        } else {
            style
        }
    }

    /// Returns `text` in the available characters.
    pub fn spelt(self, text: &str) -> String {
        if self.signs == Signs::Unicode {
            return text.to_owned();
        }
        let spelt = text.chars().map(|c| match c {
            '…' | '·' => '.',
            '—' | '–' => '-',
            '“' | '”' => '"',
            c if c.is_ascii() => c,
            _ => '?',
        });
        spelt.collect()
    }
}

/// Returns untrusted words in one line, sanitized, with secrets redacted.
pub fn line(words: &str) -> String {
    let words: String = words
        .split(['\n', '\r'])
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join(" ");
    Painted::whole(&words).as_str().replace('\t', " ")
}

/// Returns untrusted text in lines, sanitized, with secrets redacted.
pub fn lines(text: &str) -> Vec<String> {
    let shown = Painted::whole(text);
    shown
        .as_str()
        .lines()
        .map(|line| line.trim_end_matches('\r').replace('\t', "    "))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_anybody_is_obeyed() {
        assert_eq!(line("a\u{1b}[2J\u{202e}b\nc\td"), "a·[2J·b c d");
        assert_eq!(lines("one\r\ntwo\u{7}"), ["one", "two·"]);
    }

    #[test]
    fn without_signs_all_is_ascii() {
        let look = Look {
            colours: Colours::None,
            signs: Signs::Ascii,
        };
        assert_eq!(look.spelt("ä … — “x”"), "? . - \"x\"");
        assert_eq!(look.style(Tone::Asks).fg, None);
    }
}
