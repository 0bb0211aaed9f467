//! The end of a title line that other programs read: it stays there, and is no part of the title.
//!
//! Obsidian's block IDs and comments, and the fields of its Tasks plugin
//! (obsidian-tasks-group/obsidian-tasks, `DefaultTaskSerializer.ts`): Tasks takes one field after the other
//! from the end of a line, up to the first other text.

/// Returns the length of a title line, from behind its box, without that end.
pub fn before_tail(line: &str) -> usize {
    let mut rest = without_block_id(line).unwrap_or(line);
    let mut tail = rest.len();
    loop {
        let bare = rest.trim_end();
        if let Some(before) = without_field(bare).or_else(|| without_comment(bare)) {
            rest = before;
            tail = before.trim_end().len();
        } else if let Some(before) = without_tag(bare) {
            // A tag is title, unless a field is before it.
            rest = before;
        } else {
            break;
        }
    }
    // The title must not be empty, nor an ID alone.
    let title = line[..tail].trim();
    if title.is_empty() || title.ends_with(':') {
        line.len()
    } else {
        tail
    }
}

/// Removes ` ^k3j9ab`, which must be at the very end for links to the block.
fn without_block_id(line: &str) -> Option<&str> {
    let (rest, name) = line.trim_end().rsplit_once('^')?;
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    rest.strip_suffix(' ').filter(|_| is_name)
}

fn without_comment(line: &str) -> Option<&str> {
    let (rest, comment) = line.strip_suffix("%%")?.rsplit_once("%%")?;
    (!comment.is_empty() && rest.ends_with([' ', '\t'])).then_some(rest)
}

fn without_tag(line: &str) -> Option<&str> {
    let (rest, tag) = line.rsplit_once([' ', '\t'])?;
    let name = tag.strip_prefix('#')?;
    (!name.is_empty() && !name.contains(|c: char| "!@#$%^&*(),.?\":{}|<>".contains(c)))
        .then_some(rest)
}

fn without_field(line: &str) -> Option<&str> {
    // Signs are not ASCII, and most lines are.
    let (at, sign) = line
        .char_indices()
        .rev()
        .find(|(_, c)| !c.is_ascii() && *c != VARIANT && !c.is_alphanumeric())?;
    let value = line[at + sign.len_utf8()..]
        .trim_start_matches(VARIANT)
        .trim();
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_field = match sign {
        '🔺' | '⏫' | '🔼' | '🔽' | '⏬' => value.is_empty(),
        '🛫' | '➕' | '⏳' | '⌛' | '📅' | '📆' | '🗓' | '✅' | '❌' => is_date(value),
        '⏰' => {
            is_date(value)
                || value
                    .split_once(' ')
                    .is_some_and(|(date, time)| is_date(date) && is_time(time))
        }
        '🔁' => {
            !value.is_empty()
                && value
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b", !".contains(&byte))
        }
        '🏁' | '🆔' => is_word(value),
        '⛔' => value.split(',').all(|id| is_word(id.trim())),
        _ => false,
    };
    is_field.then_some(&line[..at])
}

/// May follow a sign, for a version in colour.
const VARIANT: char = '\u{fe0f}';

fn is_date(text: &str) -> bool {
    has_shape(text, "0000-00-00")
}

fn is_time(text: &str) -> bool {
    has_shape(text, "00:00")
}

/// Returns true if the text has digits where the shape has them, and is equal elsewhere.
fn has_shape(text: &str, shape: &str) -> bool {
    let fits = |(byte, wanted): (u8, u8)| {
        if wanted == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == wanted
        }
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_programs_read_from_the_end_is_no_title() {
        let rows = [
            (" Pay 📅 2026-12-01", " Pay"),
            (
                " Pay ⏫ 🔁 every week on Monday, 1st 📅 2026-12-01 ^k3j-9ab",
                " Pay",
            ),
            (
                " Pay #home ⏳2026-12-01 #tag/sub 🗓\u{fe0f} 2026-12-01",
                " Pay #home",
            ),
            (" Pay 🆔 a-1 ⛔ b,c , d 🏁 delete 🔽\u{fe0f}", " Pay"),
            (
                " Pay ⏰ 2026-12-01 10:00 ✅ 2026-12-01 ❌ 2026-12-01 ➕ 2026-12-01 🛫 2026-12-01",
                " Pay",
            ),
            (
                " Pay (priority: 1) 📅 2026-12-01 %%later%% ^a",
                " Pay (priority: 1)",
            ),
            (" T-1: Pay  %% later %%  ", " T-1: Pay"),
            // None of it.
            (" Fix #123", " Fix #123"),
            (" Pay 📅 tomorrow", " Pay 📅 tomorrow"),
            (
                " Pay 📅 2026-12-01 (priority: 1)",
                " Pay 📅 2026-12-01 (priority: 1)",
            ),
            (" Celebrate 🎉", " Celebrate 🎉"),
            (" Done ✅", " Done ✅"),
            (" 50%% of 100%%", " 50%% of 100%%"),
            (" 📅 2026-12-01", " 📅 2026-12-01"),
            (" T-1: ^k3j9ab", " T-1: ^k3j9ab"),
            (" ümläut straße", " ümläut straße"),
            ("", ""),
        ];
        for (line, title) in rows {
            assert_eq!(&line[..before_tail(line)], title, "{line:?}");
        }
    }
}
