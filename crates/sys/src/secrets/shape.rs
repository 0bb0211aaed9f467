//! Whether a value looks like a secret, under any name: plain words, identifiers, numbers, paths and placeholders do
//! not.

use super::text::is_hex;

/// Returns true if the value looks random, like a key: it has so many small pieces, or so long a one, that it can't
/// consist of words.
pub(super) fn is_random(value: &[u8]) -> bool {
    // The beginning of a long value is enough.
    let value = &value[..value.len().min(256)];
    let pieces = Pieces::of(value);
    let letters = pieces.letters + pieces.digits;
    let is_hex = value.iter().all(|byte| is_hex(*byte) || *byte == b'-');
    letters >= 12
        && pieces.letters > 0
        && (pieces.longest >= 20
            || is_hex && letters >= 16 && pieces.digits > 0
            || pieces.digits > 0 && pieces.count * 3 >= letters
            // `RSAPrivateKey` has many capitals, too.
            || letters >= 16 && pieces.count * 12 >= letters * 5)
}

/// Returns true unless it is joined words of a single case.
pub(super) fn is_body(value: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    has_digit(value)
        || has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)
        || Pieces::of(value).longest >= 20
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

/// Returns true if a person or a program may use it as a password.
pub(super) fn is_password(value: &[u8]) -> bool {
    value.len() >= 8
        && value
            .iter()
            .any(|byte| !byte.is_ascii_digit() && *byte != b'.')
        && !stands_for_value(value)
        && !is_words(value)
        && (is_random(value) || !is_path(value) && !is_prose(value))
}

/// Returns true for a password in a URL, where nothing else can stand; a single word is none.
pub(super) fn is_password_in_address(value: &[u8]) -> bool {
    let is_word = value.len() < 16 && value.iter().all(u8::is_ascii_alphabetic);
    value.len() >= 8
        && !value.iter().all(u8::is_ascii_digit)
        && !stands_for_value(value)
        && (!is_word || is_random(value) || !is_words(value))
}

/// Returns true for a generated key.
pub(super) fn is_key(value: &[u8]) -> bool {
    is_random(value)
        && !stands_for_value(value)
        && !is_words(value)
        && !value.windows(3).any(|part| part == b"://")
}

/// Returns true for placeholders: `${NAME}`, `<your key>`, `****`, `YOUR_KEY_HERE`, a call.
pub(super) fn stands_for_value(value: &[u8]) -> bool {
    const WORDS: [&str; 10] = [
        "your",
        "here",
        "example",
        "placeholder",
        "changeme",
        "change",
        "replace",
        "dummy",
        "redacted",
        "insert",
    ];
    let value = &value[..value.len().min(256)];
    let starts = |part: &str| value.starts_with(part.as_bytes());
    let is_name = |bytes: &[u8]| bytes.iter().all(|byte| super::text::is_word(*byte));
    let is_variable = starts("$") && is_name(&value[1..]) || starts("%") && value.ends_with(b"%");
    let name = value.iter().position(|byte| matches!(byte, b'(' | b'['));
    let is_call = name.is_some_and(|end| {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.:&!".contains(byte);
        end > 0 && value[..end].iter().all(is_name)
    });
    let mut others = value.iter().filter(|byte| **byte != value[0]);
    let is_one = others
        .next()
        .is_none_or(|other| others.all(|byte| byte == other));
    [
        "${", "$(", "(", "`", "self.", "this.", "<", "{", "[", "*", "%{",
    ]
    .into_iter()
    .any(starts)
        || is_variable
        || is_call
        || is_one
        || value.split(|byte| !byte.is_ascii_alphabetic()).any(|part| {
            WORDS
                .iter()
                .any(|word| part.eq_ignore_ascii_case(word.as_bytes()))
        })
}

/// Returns true for words as in names of folders, branches, types and variables (`node_modules`, `self.token2`).
fn is_words(value: &[u8]) -> bool {
    let is_separator = |byte: &u8| !byte.is_ascii_alphanumeric();
    let words = || value.split(is_separator).filter(|word| !word.is_empty());
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./:".contains(byte);
    let may_join = |byte: &u8| joins(byte) || b"-".contains(byte);
    value.iter().all(may_join)
        && (words().count() <= 3 || value.iter().all(joins))
        && words().all(is_a_word)
}

fn is_a_word(word: &[u8]) -> bool {
    let letters = word
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let digits = &word[letters..];
    let pieces = Pieces::of(&word[..letters]);
    digits.iter().all(u8::is_ascii_digit)
        && if letters == 0 {
            digits.len() <= 3
        } else {
            digits.len() <= 1 && pieces.longest < 16
        }
        && (letters <= 4 || pieces.count * 3 <= letters)
}

/// Returns true for several words with blanks between them, none of which mixes letters and digits.
fn is_prose(value: &[u8]) -> bool {
    let is_mixed = |word: &[u8]| has_digit(word) && word.iter().any(u8::is_ascii_alphabetic);
    let mut words = value.split(u8::is_ascii_whitespace);
    value.contains(&b' ') && !words.any(is_mixed)
}

fn is_path(value: &[u8]) -> bool {
    let starts = |part: &str| value.starts_with(part.as_bytes());
    ["/", "~/", "./", "../"].into_iter().any(starts) || value.windows(3).any(|part| part == b"://")
}

/// The words of a value, split at capitals and digits.
#[derive(Default)]
struct Pieces {
    letters: usize,
    digits: usize,
    count: usize,
    /// The length of the longest run of letters in one case.
    longest: usize,
}

impl Pieces {
    fn of(value: &[u8]) -> Pieces {
        let mut pieces = Pieces::default();
        let mut rest = value;
        while let Some(first) = rest.first() {
            let is_digit = first.is_ascii_digit();
            let is_same = |byte: &u8| {
                if is_digit {
                    byte.is_ascii_digit()
                } else {
                    byte.is_ascii_alphabetic() == first.is_ascii_alphabetic()
                        && !byte.is_ascii_digit()
                }
            };
            let end = rest
                .iter()
                .position(|byte| !is_same(byte))
                .unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            rest = after;
            if is_digit {
                pieces.digits += end;
                pieces.count += 1;
            } else if first.is_ascii_alphabetic() {
                pieces.letters += end;
                let capitals = run.iter().filter(|byte| byte.is_ascii_uppercase()).count();
                pieces.count += match capitals {
                    capitals if capitals == end => 1,
                    capitals => capitals + usize::from(first.is_ascii_lowercase()),
                };
                let of_a_case =
                    run.chunk_by(|one, next| one.is_ascii_lowercase() == next.is_ascii_lowercase());
                pieces.longest = of_a_case
                    .map(<[u8]>::len)
                    .max()
                    .unwrap_or(0)
                    .max(pieces.longest);
            }
        }
        pieces
    }
}
