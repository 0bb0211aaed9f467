//! A line that is typed at the foot of the screen, and the words that another program is started with for it.

use unicode_width::UnicodeWidthStr;

use super::keys::Key;
use crate::printable::is_command;

/// What is typed, and for what.
#[derive(Debug)]
pub struct TypedLine {
    /// What is asked.
    pub label: String,
    pub text: String,
    need: Needs,
    /// The program and its arguments, before the text and, if there is one, the flag that stands before it.
    words: Vec<String>,
    flag: &'static str,
}

/// Whether anything has to be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Words,
    /// Words, or Enter alone.
    MaybeWords,
    /// Enter.
    Assent,
}

/// What a key makes of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    More,
    /// It was given up.
    Nothing,
    For(Vec<String>),
}

/// Longest text, in bytes: what an agent is told at once is bounded, too.
const MOST: usize = 4000;

impl TypedLine {
    fn new(need: Needs, label: String, words: &[&str], flag: &'static str) -> TypedLine {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        TypedLine { label, text: String::new(), need, words, flag }
    }

    /// An answer, or a word to its agent.
    pub fn tell(name: &str) -> TypedLine {
        TypedLine::new(Needs::Words, format!("tell {name}"), &["tell", name], "--")
    }

    pub fn approve(name: &str) -> TypedLine {
        let label = format!("approve {name}? Enter does, Esc does not");
        TypedLine::new(Needs::Assent, label, &["report", name, "--approve"], "")
    }

    pub fn reject(name: &str) -> TypedLine {
        TypedLine::new(Needs::Words, format!("reject {name}, because"), &["report", name], "--reject=")
    }

    pub fn pause(name: &str) -> TypedLine {
        let label = format!("pause {name}, because (may be empty)");
        TypedLine::new(Needs::MaybeWords, label, &["tell", name, "--pause"], "--")
    }

    pub fn resume(name: &str) -> TypedLine {
        let label = format!("let {name} go on, with what you say (may be empty)");
        TypedLine::new(Needs::MaybeWords, label, &["tell", name, "--resume"], "--")
    }

    pub fn release(name: &str) -> TypedLine {
        let label = format!("release {name}? Enter does, Esc does not");
        TypedLine::new(Needs::Assent, label, &["release", name], "")
    }

    /// Takes a key.
    pub fn press(&mut self, key: Key) -> Asked {
        match key {
            Key::Escape => Asked::Nothing,
            Key::Enter => self.enter(),
            Key::Backspace => {
                self.text.pop();
                Asked::More
            }
            Key::Control('u') => {
                self.text.clear();
                Asked::More
            }
            Key::Char(c) | Key::Pasted(c)
                if self.need != Needs::Assent && may_be_typed(c) && self.text.len() < MOST =>
            {
                self.text.push(c);
                Asked::More
            }
            _ => Asked::More,
        }
    }

    fn enter(&self) -> Asked {
        let text = self.text.trim();
        if text.is_empty() && self.need == Needs::Words {
            return Asked::More;
        }
        let mut words = self.words.clone();
        match self.flag {
            _ if text.is_empty() => {}
            // It may begin with a `-`.
            flag if flag.ends_with('=') => words.push(format!("{flag}{text}")),
            flag => words.extend([flag.to_owned(), text.to_owned()]),
        }
        Asked::For(words)
    }

    /// What is shown in a line of `width` cells, the end of a long text.
    pub fn shown(&self, width: usize) -> String {
        if self.need == Needs::Assent {
            return self.label.clone();
        }
        let before = format!("{}: ", self.label);
        let room = width.saturating_sub(before.width() + 1).max(8);
        let mut text = self.text.as_str();
        while text.width() > room {
            text = &text[text.chars().next().map_or(0, char::len_utf8)..];
        }
        before + text
    }
}

/// Persian and joined emoji are spelt with two characters that a terminal would not show.
fn may_be_typed(c: char) -> bool {
    !is_command(c) || matches!(c, '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_text_is_shown() {
        let mut line = TypedLine::tell("T-1");
        "abcdefghijklmnopqrstuvwxyz".chars().for_each(|c| assert_eq!(line.press(Key::Char(c)), Asked::More));
        assert_eq!(line.shown(24), "tell T-1: nopqrstuvwxyz");
        assert_eq!(line.press(Key::Control('u')), Asked::More);
        "\u{1f469}\u{200d}\u{1f467}\u{202e}\u{1b}"
            .chars()
            .for_each(|c| assert_eq!(line.press(Key::Char(c)), Asked::More));
        assert_eq!(line.text, "\u{1f469}\u{200d}\u{1f467}");
        assert_eq!(line.press(Key::Control('u')), Asked::More);
        assert_eq!(line.press(Key::Enter), Asked::More);
    }
}
