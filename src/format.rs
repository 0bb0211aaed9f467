//! Numbers and words in short form for people. JSON has full values.

use std::borrow::Cow;
use std::fmt::Display;
use std::os::fd::AsFd;
use std::time::Duration;

use anstyle::Style;
use rustix::termios::tcgetwinsize;
use unicode_width::UnicodeWidthChar;

use tavern_core::printable::is_command;
use tavern_sys::secrets::redact;

/// Formats a duration in its largest unit: `12s`, `3m`, `5h`, `2d`.
pub fn age(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Formats how long something took, to about three figures: `85ms`, `1.4s`, `2m05s`, `1h12m`.
pub fn took(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{seconds}.{}s", duration.subsec_millis() / 100),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

/// As [`took`], for durations known only to the second: `0s`, `12s`, `2m05s`.
pub fn took_seconds(seconds: u64) -> String {
    if seconds < 60 {
        format!("{seconds}s")
    } else {
        took(Duration::from_secs(seconds))
    }
}

/// Formats US dollars to the cent; amounts below a cent are `<$0.01`.
pub fn money(usd: f64) -> String {
    if usd > 0.0 && usd < 0.01 {
        "<$0.01".to_owned()
    } else {
        format!("${usd:.2}")
    }
}

/// Formats a large number, such as tokens: `950`, `12.3k`, `1.5M`.
pub fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}.{}k", number / 1_000, number / 100 % 10),
        _ => format!("{}.{}M", number / 1_000_000, number / 100_000 % 10),
    }
}

/// Formats commands, one per line, indented under a line of text.
pub fn commands(commands: &[String]) -> String {
    let lines = commands
        .iter()
        .flat_map(|command| command.lines().enumerate());
    lines
        .map(|(number, line)| format!("\n  {} {line}", if number == 0 { "$" } else { ">" }))
        .collect()
}

/// Returns a status, a mode or the like, as it stands in files, for people.
pub fn word(name: &str) -> String {
    name.replace('_', " ")
}

/// Formats a count: `1 item`, `2 items`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

/// The maximal width of a title, in cells.
const TITLE: usize = 120;

/// The maximal width of other words in a line, in cells: a reason, a line of a document.
const WORDS: usize = 300;

/// Returns a title cut to fit a line; control characters are shown as `·`.
pub fn title(title: &str) -> Cow<'_, str> {
    cut(title, TITLE)
}

/// As [`title`], for longer words.
pub fn words(words: &str) -> Cow<'_, str> {
    cut(words, WORDS)
}

/// Returns untrusted words in one line: their line ends could fake rows of a table.
pub fn one_line(words: &str) -> Cow<'_, str> {
    if words.contains(['\n', '\r']) {
        words
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .into()
    } else {
        words.into()
    }
}

/// As [`title`], but not cut.
pub fn printable(line: &str) -> Cow<'_, str> {
    cut(line, usize::MAX)
}

/// Indents lines by two columns.
pub fn indented(lines: impl Iterator<Item = impl Display>) -> String {
    lines.map(|line| format!("  {line}\n")).collect()
}

/// The minimal width of a title beside its mark, in cells.
const LEAST: usize = 24;

/// Formats a row of a table for a terminal of `width` (`None`: no terminal): the columns, the title cut to
/// fit, and the mark in parentheses. The mark goes on its own line if too little of the title would fit.
pub fn row(width: Option<usize>, columns: &str, title: &str, mark: &str) -> String {
    let mark = if mark.is_empty() {
        String::new()
    } else {
        format!(" ({mark})")
    };
    let room = width.map_or(TITLE, |width| {
        width.saturating_sub(cells(columns)).clamp(LEAST / 2, TITLE)
    });
    let beside = width.map_or(TITLE, |_| room.saturating_sub(cells(&mark)));
    let shown = |most: usize| {
        let most = if overflow(title, most).is_some() && width.is_some() {
            most.saturating_sub(1)
        } else {
            most
        };
        cut(title, most)
    };
    if mark.is_empty() || cells(title).min(LEAST) <= beside {
        return format!("{columns}{}{mark}", shown(beside))
            .trim_end()
            .to_owned();
    }
    let indent = columns.len() - columns.trim_start().len() + 2;
    format!(
        "{columns}{}\n{:indent$}{}",
        shown(room),
        "",
        mark.trim_start()
    )
}

/// Returns the terminal's number of columns; `COLUMNS` takes precedence.
pub fn columns_of(stream: impl AsFd) -> Option<usize> {
    let set = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    set.or_else(|| Some(tcgetwinsize(stream).ok()?.ws_col.into()))
        .filter(|width| *width > 0)
}

/// Returns the width of a character in cells: at most eight for a tab, two for an ideograph.
fn cells_of(c: char) -> usize {
    match c {
        '\t' => 8,
        c if is_command(c) => 1,
        c => c.width().unwrap_or(1),
    }
}

fn cells(text: &str) -> usize {
    text.chars().map(cells_of).sum()
}

/// Returns where `text` exceeds `most` cells.
fn overflow(text: &str, most: usize) -> Option<usize> {
    let mut used = 0;
    let mut ends = text.char_indices().map(|(at, c)| {
        used += cells_of(c);
        (at, used)
    });
    ends.find_map(|(at, used)| (used > most).then_some(at))
}

/// The maximal width of a label with its value beside it.
const LABEL: usize = 20;

/// Folds lines to `width` cells (`None`: unchanged). Lines break between words, inside a command only if it
/// is longer than a line, and continuations are indented. Lines of an excerpt are cut.
pub fn fold(width: Option<usize>, text: &str) -> String {
    let Some(width) = width.map(|width| width.max(LEAST)) else {
        return text.to_owned();
    };
    text.split('\n')
        .map(|line| fold_line(line, width))
        .collect::<Vec<_>>()
        .join("\n")
}

fn fold_line(line: &str, width: usize) -> String {
    if overflow(line, width).is_none() {
        return line.to_owned();
    }
    if line
        .trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit())
        .starts_with("| ")
    {
        return cut(line, width - 1).into_owned();
    }
    let lead = line.len() - line.trim_start_matches(' ').len();
    let label = line[lead..]
        .find("  ")
        .map(|end| lead + end)
        .filter(|end| *end <= LABEL);
    let value = label.and_then(|end| Some(end + line[end..].find(|c| c != ' ')?));
    let indent = value
        .map_or(lead + 2, |at| cells(&line[..at]))
        .min(width / 2);
    let (mut folded, mut used) = (String::new(), 0);
    for (gap, piece) in pieces(line, width - indent) {
        let is_next = used + gap + cells(piece) > width;
        let before = if is_next { indent } else { gap };
        folded.push_str(if is_next { "\n" } else { "" });
        folded.push_str(&format!("{:before$}{piece}", ""));
        used = before + cells(piece) + if is_next { 0 } else { used };
    }
    folded
}

/// Splits a line into words and commands that stay together, each with the number of blanks before it. Pieces
/// wider than `most` are split.
fn pieces(line: &str, most: usize) -> Vec<(usize, &str)> {
    let (mut pieces, mut rest) = (Vec::new(), line);
    while let Some(mut gap) = rest.find(|c| c != ' ') {
        rest = &rest[gap..];
        let command = command_end(rest).filter(|end| overflow(&rest[..*end], most).is_none());
        let end = command.or_else(|| rest.find(' ')).unwrap_or(rest.len());
        let mut piece = &rest[..end];
        rest = &rest[end..];
        while let Some(at) = overflow(piece, most) {
            let (part, more) = piece.split_at(at);
            pieces.push((gap, part));
            (gap, piece) = (0, more);
        }
        pieces.push((gap, piece));
    }
    pieces
}

/// Returns the end of the command that `text` begins with.
fn command_end(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start_matches(['(', '`']).len();
    let is_command = ["tavern ", "git "]
        .iter()
        .any(|program| text[start..].starts_with(program));
    let end = start
        + text[start..]
            .find([',', ';', ')', '`'])
            .unwrap_or(text.len() - start);
    is_command.then(|| {
        text[end..]
            .find(' ')
            .map_or(text.len(), |blank| end + blank)
    })
}

/// Cuts to at most `most` cells, and marks the cut.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    let end = overflow(text, most);
    let start = &text[..end.unwrap_or(text.len())];
    let mark = if end.is_some() { "…" } else { "" };
    if mark.is_empty() && !start.contains(is_command) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(replaced(start, |_| None, |_| "·".to_owned()) + mark)
}

/// The maximal number of blanks and of empty lines in a row in a text to be judged: longer gaps would push
/// the rest off the screen.
const MOST_BLANKS: usize = 40;
const MOST_EMPTY_LINES: usize = 3;

/// Returns `text` with each long gap replaced by its length.
pub fn without_gaps(text: &str) -> String {
    let (mut shown, mut empty) = (String::with_capacity(text.len()), 0_usize);
    for line in text.trim_end().lines() {
        if line.trim().is_empty() {
            empty += 1;
            continue;
        }
        shown.push_str(&"\n".repeat(empty.min(MOST_EMPTY_LINES)));
        if empty > MOST_EMPTY_LINES {
            shown.push_str(&format!(
                "[… {} more empty lines …]\n",
                empty - MOST_EMPTY_LINES
            ));
        }
        shown.push_str(&without_wide_gaps(line));
        shown.push('\n');
        empty = 0;
    }
    shown
}

fn without_wide_gaps(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line.trim_end();
    while let Some(start) = rest.find(char::is_whitespace) {
        let length = rest[start..]
            .find(|c: char| !c.is_whitespace())
            .unwrap_or(rest.len() - start);
        let (gap, blanks) = (
            &rest[start..start + length],
            rest[start..start + length].chars().count(),
        );
        shown.push_str(&rest[..start]);
        match blanks {
            0..=MOST_BLANKS => shown.push_str(gap),
            _ => shown.push_str(&format!(" [… {blanks} blanks …] ")),
        }
        rest = &rest[start + length..];
    }
    shown + rest
}

/// Untrusted text, sanitized for a terminal. Control characters are replaced, except line ends and the
/// colours that Tavern adds around filtered words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Painted {
    text: String,
    /// Whether lines are data, and not folded.
    is_whole: bool,
}

impl Painted {
    /// Returns data with unfolded lines.
    pub fn whole(text: &str) -> Painted {
        Painted {
            text: for_terminal(text),
            is_whole: true,
        }
    }

    /// Returns data; the beginning of each line decides its style.
    pub fn by_line(text: &str, style: impl Fn(&str) -> Style) -> Painted {
        let lines = for_terminal(text);
        let painted = lines.lines().map(|line| {
            let style = style(line);
            format!("{style}{}{style:#}\n", line.trim_end_matches('\r'))
        });
        Painted {
            text: painted.collect(),
            is_whole: true,
        }
    }

    /// Appends `text` in this style.
    #[must_use]
    pub fn and(self, style: Style, text: &str) -> Painted {
        Painted {
            text: format!("{}{style}{}{style:#}", self.text, for_terminal(text)),
            ..self
        }
    }

    #[must_use]
    pub fn followed_by(self, more: &Painted) -> Painted {
        Painted {
            text: self.text + &more.text,
            is_whole: self.is_whole || more.is_whole,
        }
    }

    /// Removes trailing line ends.
    #[must_use]
    pub fn trimmed(self) -> Painted {
        Painted {
            text: self.text.trim_end().to_owned(),
            ..self
        }
    }

    /// Returns the text; only for a terminal.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text for a terminal of that width, as [`fold`].
    pub fn within(&self, width: Option<usize>) -> Cow<'_, str> {
        if self.is_whole {
            Cow::Borrowed(&self.text)
        } else {
            Cow::Owned(fold(width, &self.text))
        }
    }
}

impl<T: Display> From<T> for Painted {
    fn from(text: T) -> Painted {
        Painted {
            text: for_terminal(&text.to_string()),
            is_whole: false,
        }
    }
}

fn for_terminal(text: &str) -> String {
    let kept = |rest: &str| {
        ["\n", "\r\n"]
            .iter()
            .find(|kept| rest.starts_with(**kept))
            .map(|kept| kept.len())
    };
    replaced(&redact(text), kept, |_| "·".to_owned())
}

/// Returns JSON for a terminal: control characters occur only in strings, and are escaped there.
pub fn json_for_terminal(json: &str) -> String {
    replaced(
        &redact(json),
        |_| None,
        |c| {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect()
        },
    )
}

/// Replaces control characters by `spelt`, except the bytes at the start of the rest that are `kept`.
fn replaced(
    text: &str,
    kept: impl Fn(&str) -> Option<usize>,
    spelt: impl Fn(char) -> String,
) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(is_command) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let command = rest.chars().next().unwrap_or_default();
        let length = match kept(rest) {
            Some(length) => {
                shown.push_str(&rest[..length]);
                length
            }
            None => {
                shown.push_str(&spelt(command));
                command.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut() {
        let rows = [
            (String::new(), String::new()),
            ("ä".repeat(TITLE), "ä".repeat(TITLE)),
            ("ä".repeat(TITLE + 1), "ä".repeat(TITLE) + "…"),
            ("a\u{1b}[31m\0b\tc".to_owned(), "a·[31m·b\tc".to_owned()),
        ];
        for (whole, shown) in rows {
            assert_eq!(title(&whole), shown);
        }
    }

    #[test]
    fn a_row_is_no_wider_than_the_terminal_and_says_all_of_its_mark() {
        let long = "x".repeat(200);
        assert_eq!(row(None, "  T-1 ", "One", ""), "  T-1 One");
        assert_eq!(row(Some(40), "  T-1 ", "One", "ready"), "  T-1 One (ready)");
        assert_eq!(
            row(Some(40), "  T-1 ", &long, "next"),
            format!("  T-1 {}… (next)", "x".repeat(26))
        );
        assert_eq!(
            row(Some(40), "  T-1 ", &long, ""),
            format!("  T-1 {}…", "x".repeat(33))
        );
        assert_eq!(
            row(Some(40), "  T-1 ", &"漢".repeat(99), ""),
            format!("  T-1 {}…", "漢".repeat(16))
        );
        let mark = "it waits for T-2 (pending)";
        assert_eq!(
            row(Some(40), "  T-1 ", &long, mark),
            format!("  T-1 {}…\n    ({mark})", "x".repeat(33))
        );
        assert_eq!(
            row(None, "  T-1 ", &long, mark),
            format!("  T-1 {}… ({mark})", "x".repeat(TITLE))
        );
    }

    #[test]
    fn lines_are_folded_between_words_and_commands_stay_together() {
        let rows = [
            ("short", "short"),
            (
                "error: words and more words that go on",
                "error: words and more words\n  that go on",
            ),
            (
                "  reason    it was this and then it was that",
                "  reason    it was this and\n            then it was that",
            ),
            (
                "T-1 died a while ago: tavern release T-1; or not",
                "T-1 died a while ago:\n  tavern release T-1; or not",
            ),
            (
                "a/path/that/is/longer/than/any/line/can/be",
                "a/path/that/is/longer/than\n  /any/line/can/be",
            ),
            (
                "漢字漢字漢字漢字漢字漢字漢字漢字漢字",
                "漢字漢字漢字漢字漢字漢字漢\n  字漢字漢字",
            ),
            (
                "7 | an excerpt that goes on and on\n  |     ^^",
                "7 | an excerpt that goes on…\n  |     ^^",
            ),
        ];
        for (text, folded) in rows {
            assert_eq!(fold(Some(28), text), folded);
            assert_eq!(fold(None, text), text);
        }
    }

    #[test]
    fn a_terminal_obeys_line_ends_only() {
        let rows = [
            ("", ""),
            ("plain ä\tb\r\nnext\n", "plain ä\tb\r\nnext\n"),
            ("\x1b[1m\x1b[31merror:\x1b[0m x", "·[1m·[31merror:·[0m x"),
            (
                "\x1b]0;title\x07\x1b[2J\x1b[8mhidden",
                "·]0;title··[2J·[8mhidden",
            ),
            ("a\rb\u{9b}31m\u{7f}", "a·b·31m·"),
            ("\u{202e}txt.exe\u{2066}", "·txt.exe·"),
            (
                "a\u{200b}b\u{2060}c\u{feff}d\u{e0041}e\u{e007f}\u{2028}\u{ad}",
                "a·b·c·d·e···",
            ),
            ("✔\u{fe0f} ﷽ 漢字 e\u{301}", "✔\u{fe0f} ﷽ 漢字 e\u{301}"),
        ];
        for (text, shown) in rows {
            assert_eq!(for_terminal(text), shown);
        }
        assert_eq!(
            json_for_terminal("{\"a\":\"\u{9b}\u{202e}\u{7f}ä\"}"),
            "{\"a\":\"\\u009b\\u202e\\u007fä\"}"
        );
    }

    #[test]
    fn a_tag_is_spelt_out_as_json_has_it() {
        let json = json_for_terminal("\"\u{e0041}\"");
        assert_eq!(
            (
                json.as_str(),
                serde_json::from_str::<String>(&json).ok().as_deref()
            ),
            ("\"\\udb40\\udc41\"", Some("\u{e0041}"))
        );
    }

    #[test]
    fn gaps_push_nothing_off_the_screen() {
        let wide = " ".repeat(41);
        for (text, shown) in [
            ("a  b\n\n\nc\n".to_owned(), "a  b\n\n\nc\n".to_owned()),
            (
                format!("a{wide}b \t \n"),
                "a [… 41 blanks …] b\n".to_owned(),
            ),
            (
                format!("a{}b", "\u{2003}".repeat(50)),
                "a [… 50 blanks …] b\n".to_owned(),
            ),
            (
                format!("a\n{}b\n", "\n".repeat(9)),
                "a\n\n\n\n[… 6 more empty lines …]\nb\n".to_owned(),
            ),
        ] {
            assert_eq!(without_gaps(&text), shown, "{text:?}");
        }
    }

    #[test]
    fn numbers_read_at_a_glance() {
        let seconds = Duration::from_secs;
        assert_eq!(
            [0, 59, 60, 3_599, 3_600, 172_799, 172_800].map(|s| age(seconds(s))),
            ["0s", "59s", "1m", "59m", "1h", "47h", "2d"]
        );
        assert_eq!(took(Duration::from_millis(85)), "85ms");
        assert_eq!(took(Duration::from_millis(1_490)), "1.4s");
        assert_eq!([0, 59, 125].map(took_seconds), ["0s", "59s", "2m05s"]);
        assert_eq!(
            [60, 125, 4_320].map(|s| took(seconds(s))),
            ["1m00s", "2m05s", "1h12m"]
        );
        assert_eq!(
            [0.0, 0.004, 0.42, 12.0].map(money),
            ["$0.00", "<$0.01", "$0.42", "$12.00"]
        );
        assert_eq!(
            [950, 12_345, 1_599_999].map(short),
            ["950", "12.3k", "1.5M"]
        );
        assert_eq!(
            [0, 1, 2].map(|number| count(number, "item")),
            ["0 items", "1 item", "2 items"]
        );
    }
}
