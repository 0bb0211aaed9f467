//! A text prompt at the bottom of the screen, and the command that it starts.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::keys::Key;
use tavern_core::printable::is_command;

/// A text prompt.
#[derive(Debug)]
pub struct TypedLine {
    /// The prompt, and the name of the item.
    label: String,
    name: String,
    pub text: String,
    /// The cursor's position in the text, in bytes.
    at: usize,
    need: Needs,
    /// The program and its arguments, before the flag, if any, and the text.
    words: Vec<String>,
    flag: &'static str,
}

/// Whether text is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Words,
    /// Text, or Enter alone.
    MaybeWords,
    /// Enter.
    Assent,
}

/// The result of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    More,
    /// It was cancelled; the text is kept.
    Nothing,
    For(Vec<String>),
}

/// Placeholder for the item's name.
const NAME: &str = "NAME";

/// The maximal length of the text, in bytes; messages to agents are limited, too.
const MOST: usize = 4000;

impl TypedLine {
    /// `NAME` in `label` and `words` is replaced by the item's name.
    fn new(need: Needs, name: &str, label: &str, words: &[&str], flag: &'static str) -> TypedLine {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        TypedLine {
            label: label.to_owned(),
            name: name.to_owned(),
            text: String::new(),
            at: 0,
            need,
            words,
            flag,
        }
    }

    /// Prompts for an answer, or a message to its agent.
    pub fn tell(name: &str) -> TypedLine {
        TypedLine::new(Needs::Words, name, "tell NAME", &["tell", NAME], "--")
    }

    pub fn approve(name: &str) -> TypedLine {
        TypedLine::new(
            Needs::Assent,
            name,
            "approve NAME? Enter does, Esc does not",
            &["report", NAME, "--approve"],
            "",
        )
    }

    pub fn reject(name: &str) -> TypedLine {
        TypedLine::new(
            Needs::Words,
            name,
            "reject NAME, because",
            &["report", NAME],
            "--reject=",
        )
    }

    pub fn pause(name: &str) -> TypedLine {
        let label = "pause NAME, because (may be empty)";
        TypedLine::new(
            Needs::MaybeWords,
            name,
            label,
            &["tell", NAME, "--pause"],
            "--",
        )
    }

    pub fn resume(name: &str) -> TypedLine {
        let label = "resume NAME, with a message (may be empty)";
        TypedLine::new(
            Needs::MaybeWords,
            name,
            label,
            &["tell", NAME, "--resume"],
            "--",
        )
    }

    pub fn release(name: &str) -> TypedLine {
        TypedLine::new(
            Needs::Assent,
            name,
            "release NAME? Enter does, Esc does not",
            &["release", NAME],
            "",
        )
    }

    pub fn revive(name: &str) -> TypedLine {
        TypedLine::new(
            Needs::Assent,
            name,
            "retry NAME? Enter does, Esc does not",
            &["release", NAME, "--revive"],
            "",
        )
    }

    /// Changes the item's name.
    pub fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    /// Returns the prompt.
    pub fn label(&self) -> String {
        self.label.replacen(NAME, &self.name, 1)
    }

    /// Restores a text that was typed before.
    pub fn with(mut self, text: String) -> TypedLine {
        (self.at, self.text) = (text.len(), text);
        self
    }

    /// Returns the command for a text typed elsewhere; line ends become spaces. `None` if required text is
    /// missing.
    pub fn words_for(mut self, text: &str) -> Option<Vec<String>> {
        if self.need != Needs::Assent {
            let typed = text
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .filter(|c| may_be_typed(*c));
            self.text = typed.collect();
            self.text.truncate(self.text.floor_char_boundary(MOST));
        }
        match self.enter() {
            Asked::For(words) => Some(words),
            _ => None,
        }
    }

    /// Handles a key.
    pub fn press(&mut self, key: Key) -> Asked {
        match key {
            Key::Escape => return Asked::Nothing,
            Key::Enter => return self.enter(),
            Key::Left | Key::Control('b') => self.at = self.before(),
            Key::Right | Key::Control('f') => self.at = self.behind(),
            Key::Home | Key::Control('a') => self.at = 0,
            Key::End | Key::Control('e') => self.at = self.text.len(),
            Key::Backspace => self.cut(self.before(), self.at),
            Key::Delete | Key::Control('d') => self.cut(self.at, self.behind()),
            Key::Control('u') => self.cut(0, self.at),
            Key::Control('k') => self.cut(self.at, self.text.len()),
            Key::Control('w') => self.cut(self.word(), self.at),
            Key::Char(c) | Key::Pasted(c)
                if self.need != Needs::Assent && may_be_typed(c) && self.text.len() < MOST =>
            {
                self.text.insert(self.at, c);
                self.at += c.len_utf8();
            }
            _ => {}
        }
        Asked::More
    }

    /// Returns where the character before the cursor begins, including combining characters.
    fn before(&self) -> usize {
        let start = |(at, c): &(usize, char)| (c.width() != Some(0) || *at == 0).then_some(*at);
        self.text[..self.at]
            .char_indices()
            .rev()
            .find_map(|one| start(&one))
            .unwrap_or_default()
    }

    /// Returns where the character at the cursor ends.
    fn behind(&self) -> usize {
        let next = self.text[self.at..]
            .char_indices()
            .skip(1)
            .find(|(_, c)| c.width() != Some(0));
        next.map_or(self.text.len(), |(length, _)| self.at + length)
    }

    /// Returns where the word before the cursor begins.
    fn word(&self) -> usize {
        let before = self.text[..self.at].trim_end();
        before.rfind(' ').map_or(0, |blank| blank + 1)
    }

    fn cut(&mut self, start: usize, end: usize) {
        self.text.replace_range(start..end, "");
        self.at = start;
    }

    fn enter(&self) -> Asked {
        let text = self.text.trim();
        if text.is_empty() && self.need == Needs::Words {
            return Asked::More;
        }
        let named = |word: &String| {
            if word == NAME {
                self.name.clone()
            } else {
                word.clone()
            }
        };
        let mut words: Vec<String> = self.words.iter().map(named).collect();
        match self.flag {
            _ if text.is_empty() => {}
            // The text may begin with `-`.
            flag if flag.ends_with('=') => words.push(format!("{flag}{text}")),
            flag => words.extend([flag.to_owned(), text.to_owned()]),
        }
        Asked::For(words)
    }

    /// Returns the line cut to `width` cells around the cursor, and the cursor's column.
    pub fn shown(&self, width: usize) -> (String, usize) {
        if self.need == Needs::Assent {
            let label = self.label();
            let end = label.width();
            return (label, end);
        }
        let before = format!("{}: ", self.label());
        let room = width.saturating_sub(before.width() + 1).max(8);
        let mut text = self.text[..self.at].to_owned();
        while text.width() > room {
            text.drain(..text.chars().next().map_or(0, char::len_utf8));
        }
        let cursor = before.width() + text.width();
        let mut left = room - text.width().min(room);
        text.extend(self.text[self.at..].chars().take_while(|c| {
            let cells = c.width().unwrap_or_default();
            let fits = cells <= left;
            left -= cells.min(left);
            fits
        }));
        (before + &text, cursor)
    }
}

/// Allows joiners, which Persian and joined emoji need, though a terminal would not show them.
fn may_be_typed(c: char) -> bool {
    !is_command(c) || matches!(c, '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &mut TypedLine, text: &str) {
        text.chars()
            .for_each(|c| assert_eq!(line.press(Key::Char(c)), Asked::More));
    }

    #[test]
    fn the_end_of_a_long_text_is_shown() {
        let mut line = TypedLine::tell("T-1");
        typed(&mut line, "abcdefghijklmnopqrstuvwxyz");
        assert_eq!(line.shown(24), ("tell T-1: nopqrstuvwxyz".to_owned(), 23));
        assert_eq!(line.press(Key::Home), Asked::More);
        assert_eq!(line.shown(24), ("tell T-1: abcdefghijklm".to_owned(), 10));
        assert_eq!(line.press(Key::End), Asked::More);
        assert_eq!(line.press(Key::Control('u')), Asked::More);
        typed(&mut line, "\u{1f469}\u{200d}\u{1f467}\u{202e}\u{1b}");
        assert_eq!(line.text, "\u{1f469}\u{200d}\u{1f467}");
        assert_eq!(line.press(Key::Control('u')), Asked::More);
        assert_eq!(line.press(Key::Enter), Asked::More);
    }

    #[test]
    fn a_text_is_mended_where_the_cursor_stands() {
        let rows: [(&[Key], &str, usize); 10] = [
            (&[Key::Left, Key::Char('x')], "say e\u{301}x漢", 8),
            (&[Key::Home, Key::Delete, Key::Delete], "y e\u{301}漢", 0),
            (
                &[
                    Key::Control('a'),
                    Key::Char('x'),
                    Key::Control('e'),
                    Key::Char('y'),
                ],
                "xsay e\u{301}漢y",
                12,
            ),
            (&[Key::Left, Key::Backspace], "say 漢", 4),
            (&[Key::Left, Key::Left, Key::Delete], "say 漢", 4),
            (&[Key::Control('w')], "say ", 4),
            (&[Key::Control('w'), Key::Control('w')], "", 0),
            (&[Key::Left, Key::Control('k')], "say e\u{301}", 7),
            (&[Key::Left, Key::Control('u'), Key::Left], "漢", 0),
            (
                &[Key::Right, Key::Delete, Key::Pasted('\u{202e}'), Key::Other],
                "say e\u{301}漢",
                10,
            ),
        ];
        for (keys, text, at) in rows {
            let mut line = TypedLine::tell("T-1");
            typed(&mut line, "say e\u{301}漢");
            keys.iter()
                .for_each(|key| assert_eq!(line.press(*key), Asked::More));
            assert_eq!((line.text.as_str(), line.at), (text, at), "{keys:?}");
        }
    }

    #[test]
    fn whatever_is_pressed_it_fits() {
        let mut line = TypedLine::tell("T-1");
        for (number, c) in "漢字e\u{301} \u{200d}"
            .chars()
            .cycle()
            .take(500)
            .enumerate()
        {
            let keys = [
                Key::Left,
                Key::Home,
                Key::Right,
                Key::Backspace,
                Key::Control('w'),
                Key::Delete,
            ];
            line.press(Key::Char(c));
            line.press(keys[number * number % 7 % 6]);
            let (shown, cursor) = line.shown(30);
            assert!(shown.width() <= 30 && cursor < 30, "{shown} {cursor}");
        }
    }
}
