//! Secrets assigned to a name: in code and settings, flags, headers, URLs.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::names::{Named, named};
use super::shape::{is_key, is_password, is_password_in_address, is_random, stands_for_value};
use super::text::{MOST, Text, is_word};

/// The beginning, the end and the name of a secret.
pub(super) type Found<'t> = (usize, usize, &'t [u8]);

/// Returns the secret that belongs to the word at `at`.
pub(super) fn assigned_at<'t>(text: &Text<'t>, at: usize) -> Option<Found<'t>> {
    let end = text.run(at, is_word);
    let name = &text.bytes()[at..end];
    if text.has(end, "://") {
        return in_address(text, end + 3);
    }
    if name.first() == Some(&b'-')
        && let Some(found) = in_flag(text, at, end)
    {
        return Some(found);
    }
    if matches!(name, b"Bearer" | b"bearer" | b"Basic" | b"basic") && text.get(end) == Some(b' ') {
        return in_header(text, name, end + 1);
    }
    in_assignment(text, at, end).or_else(|| in_pgpass(text, at))
}

fn in_assignment<'t>(text: &Text<'t>, at: usize, end: usize) -> Option<Found<'t>> {
    // The joint is checked first, since few words have one.
    let (joint, value) = joint(text, at, end)?;
    let name = &text.bytes()[at..end];
    let before = text.before(at);
    let before = before.strip_suffix(b" ").unwrap_or_default();
    let start = before
        .iter()
        .rposition(|byte| !is_word(*byte))
        .map_or(0, |start| start + 1);
    let kind = named(&before[start..], name)?;
    let value = if text.has(value, "Some(") {
        value + "Some(".len()
    } else {
        value
    };
    let (value, closer) = opener(text, value);
    let value = after_scheme(text, value);
    let is_dump = kind == Named::Password
        && joint == Joint::Equals
        && name.iter().all(|byte| !byte.is_ascii_lowercase())
        && !matches!(
            text.before(at).last(),
            Some(b'?' | b'&' | b';' | b',' | b'.' | b'{')
        );
    let last = match (&closer, kind, joint) {
        (Some(closer), ..) => closing(text, value, closer),
        (None, Named::Cookie, _) => line_end(text, value),
        (None, _, Joint::Tag) => {
            text.bounded(value, 4, |byte| byte != b'<' && !byte.is_ascii_whitespace())
        }
        (None, _, joint) => unquoted(text, value, if is_dump { Joint::Dump } else { joint }),
    };
    if last - value > MOST {
        return None;
    }
    let found = &text.bytes()[value..last];
    let is_quoted = closer.is_some();
    let is_flag = name.starts_with(b"--");
    let is_compound = name.contains(&b'_') || name.iter().skip(1).any(u8::is_ascii_uppercase);
    let fits = match kind {
        Named::Cookie => {
            found.contains(&b'=') && found.split(|byte| b"=;, .:%".contains(byte)).any(is_random)
        }
        _ if has_credentials(found) && joint != Joint::Blank => true,
        Named::Password if joint != Joint::Blank || is_quoted || is_flag || is_netrc(text, at) => {
            is_password(found)
        }
        _ if joint == Joint::Blank && !is_quoted && !is_flag && !is_compound => false,
        _ if is_list(found) => found.split(|byte| b", ;".contains(byte)).all(is_key),
        _ => is_key(found),
    };
    fits.then_some((value, last, trimmed(name)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    Equals,
    /// A variable in a dump of the environment.
    Dump,
    Colon,
    /// Percent-encoded, as in URLs.
    Encoded,
    /// `<name>value<`
    Tag,
    /// A blank, or a column of a table.
    Blank,
}

/// Returns how the name is joined with its value, and where the value begins.
fn joint(text: &Text<'_>, at: usize, end: usize) -> Option<(Joint, usize)> {
    let closer = opener(text, end).0;
    let bracket = if text.get(closer) == Some(b']') {
        closer + 1
    } else {
        closer
    };
    let is_blank = |byte: u8| matches!(byte, b' ' | b'\t');
    let blank = text.run(bracket, is_blank);
    if blank - bracket > 32 {
        return None;
    }
    let rest = |count: usize| text.run(blank + count, is_blank);
    let next = text.get(blank + 1);
    Some(match text.get(blank)? {
        b'=' if next == Some(b'>') => (Joint::Equals, rest(2)),
        b'=' if next == Some(b'=') => return None,
        b'=' => (Joint::Equals, rest(1)),
        b':' if next == Some(b'=') => (Joint::Equals, rest(2)),
        b':' if next == Some(b':') => return None,
        b':' => (Joint::Colon, rest(1)),
        b'%' if text.has(blank, "%3D") || text.has(blank, "%3d") => (Joint::Encoded, blank + 3),
        b'%' if text.has(blank, "%3A") || text.has(blank, "%3a") => (Joint::Encoded, blank + 3),
        b'>' if text.before(at).last() == Some(&b'<') => (Joint::Tag, blank + 1),
        b'|' if blank > bracket && next == Some(b' ') => (Joint::Blank, rest(1)),
        _ if blank > bracket => (Joint::Blank, blank),
        _ => return None,
    })
}

/// The end of a quoted value.
struct Closer {
    slashes: usize,
    quote: &'static str,
}

/// Returns the position after the quote at `at`, if there is one; it may be escaped, as in JSON within JSON.
fn opener(text: &Text<'_>, at: usize) -> (usize, Option<Closer>) {
    let begin = text.run(at, |byte| byte == b'\\');
    let slashes = begin - at;
    for quote in ["\"", "'", "%22", "%27"] {
        if text.has(begin, quote) {
            return (begin + quote.len(), Some(Closer { slashes, quote }));
        }
    }
    (at, None)
}

fn closing(text: &Text<'_>, value: usize, closer: &Closer) -> usize {
    let mut at = value;
    loop {
        let slashes = text.run(at, |byte| byte == b'\\') - at;
        let quote = at + slashes;
        let is_escape = if closer.slashes == 0 {
            slashes % 2 == 1
        } else {
            slashes > closer.slashes
        };
        match text.get(quote) {
            None | Some(b'\n' | b'\r') => return at,
            _ if text.has(quote, closer.quote) && !is_escape => {
                return if closer.slashes > 0 { at } else { quote };
            }
            // The end of the surrounding JSON string.
            Some(b'"') if slashes == 0 => return at,
            _ if quote > value + MOST => return quote,
            _ => at = quote + 1,
        }
    }
}

fn line_end(text: &Text<'_>, value: usize) -> usize {
    text.bounded(value, 6, |byte| {
        !matches!(byte, b'\n' | b'\r' | b'"' | b'\'' | b'\\')
    })
}

/// Returns the end of an unquoted value; in a dump of the environment it extends to the next blank.
fn unquoted(text: &Text<'_>, value: usize, joint: Joint) -> usize {
    let is_dump = joint == Joint::Dump;
    let is_part = |byte: u8| {
        !byte.is_ascii_whitespace()
            && !b"\"'`\\<>".contains(&byte)
            && byte >= b' '
            && (is_dump || !b",;&|)}]".contains(&byte))
    };
    let tag = 8 + usize::from(is_dump);
    let mut end = text.bounded(value, tag, is_part);
    if joint == Joint::Encoded {
        let ends =
            |part: &[u8]| matches!(part, b"%26" | b"%22" | b"%27" | b"%0A" | b"%0D" | b"%20");
        let found = text.bytes()[value..end].windows(3).position(ends);
        end = found.map_or(end, |found| value + found);
    }
    while text.get(end) == Some(b',')
        && !is_dump
        && (value + 1..value + MOST).contains(&end)
        && is_listed(text, value, end)
    {
        end = text.bounded(end + 1, tag, is_part);
    }
    let kept = text.bytes()[value..end].iter().rev();
    end - kept.take_while(|byte| b".,:;".contains(byte)).count()
}

/// Returns whether the part after the comma is a key like the one before it.
fn is_listed(text: &Text<'_>, value: usize, comma: usize) -> bool {
    let next = text.run(comma + 1, is_word);
    let last = text.bytes()[value..comma]
        .rsplit(|byte| *byte == b',')
        .next()
        .unwrap_or_default();
    is_random(last) && is_random(&text.bytes()[comma + 1..next])
}

fn is_list(value: &[u8]) -> bool {
    value.iter().take(256).any(|byte| b", ;".contains(byte))
}

/// Skips `Bearer ` and similar schemes before the secret.
fn after_scheme(text: &Text<'_>, value: usize) -> usize {
    let word = text.run(value, |byte| byte.is_ascii_alphabetic());
    let is_scheme = ["bearer", "basic", "token", "bot", "apikey", "splunk"]
        .iter()
        .any(|scheme| text.bytes()[value..word].eq_ignore_ascii_case(scheme.as_bytes()));
    if is_scheme && text.get(word) == Some(b' ') {
        word + 1
    } else {
        value
    }
}

fn in_header<'t>(text: &Text<'t>, name: &'t [u8], value: usize) -> Option<Found<'t>> {
    let is_part = |byte: u8| is_word(byte) || b"._~+/=".contains(&byte);
    let end = text.sentence(value, 18, is_part);
    let found = &text.bytes()[value..end];
    let fits = if name.eq_ignore_ascii_case(b"basic") {
        has_credentials(found)
    } else {
        found.len() >= 16 && is_key(found)
    };
    fits.then_some((value, end, name))
}

/// Returns whether it is base64 of a user and a password, or of a password.
fn has_credentials(value: &[u8]) -> bool {
    const BASE64: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let is_text = |text: &Vec<u8>| text.iter().all(|byte| (b' '..0x7f).contains(byte));
    let decoded = (8..=1024)
        .contains(&value.len())
        .then(|| BASE64.decode(value).ok())
        .flatten();
    decoded.filter(is_text).is_some_and(|text| {
        let colon = text.iter().position(|byte| *byte == b':');
        colon.is_some_and(|colon| is_password_in_address(&text[colon + 1..]))
    })
}

/// Returns the password after the user, or a user that is a key.
fn in_address<'t>(text: &Text<'t>, at: usize) -> Option<Found<'t>> {
    let is_part = |byte: u8| byte > b' ' && byte < 0x7f && !b"/?#\"'`\\<>@()[]|".contains(&byte);
    let end = text.bounded(at, 12, is_part);
    if text.get(end) != Some(b'@') || end - at > MOST {
        return None;
    }
    let user = &text.bytes()[at..end];
    let colon = user.iter().position(|byte| *byte == b':');
    let begin = colon.map_or(at, |colon| at + colon + 1);
    let found = &text.bytes()[begin..end];
    let fits = match colon {
        Some(_) => is_password_in_address(found),
        None => is_key(found),
    };
    fits.then_some((begin, end, b"password"))
}

/// Short flags that take a password, and their programs.
const FLAGS: [(&[u8], &[u8]); 7] = [
    (b"-p", b"login "),
    (b"-p", b"sshpass "),
    (b"-p", b"mysql"),
    (b"-p", b"mariadb"),
    (b"-a", b"redis-cli "),
    (b"-w", b"ldap"),
    (b"-P", b"unzip "),
];

fn in_flag<'t>(text: &Text<'t>, at: usize, end: usize) -> Option<Found<'t>> {
    let name = &text.bytes()[at..end];
    let has_user = matches!(name, b"-u" | b"--user" | b"-U" | b"--proxy-user");
    let is_short = FLAGS.iter().any(|(flag, _)| name.starts_with(flag));
    if !has_user && !is_short {
        return None;
    }
    let is_joined =
        is_short && end - at > 2 || text.get(end).is_some_and(|byte| b"'\"".contains(&byte));
    let value = match text.get(end) {
        _ if is_joined && is_short => at + 2,
        Some(b' ' | b'=') if has_user || end - at == 2 => end + 1,
        _ => return None,
    };
    let (value, closer) = opener(text, value);
    let last = closer.map_or_else(
        || {
            text.bounded(value, 14, |byte| {
                byte > b' ' && !b"\"'`\\<>;|&".contains(&byte)
            })
        },
        |closer| closing(text, value, &closer),
    );
    if last - value > MOST {
        return None;
    }
    let found = &text.bytes()[value..last];
    if has_user {
        let colon = found.iter().position(|byte| *byte == b':')?;
        return is_password(&found[colon + 1..]).then_some((value + colon + 1, last, b"password"));
    }
    if !is_password(found) {
        return None;
    }
    let line = text.line_before(at);
    let is_of = |(flag, program): &(&[u8], &[u8])| {
        name.starts_with(flag) && line.windows(program.len()).any(|part| part == *program)
    };
    FLAGS
        .iter()
        .any(is_of)
        .then_some((value, last, b"password"))
}

fn trimmed(name: &[u8]) -> &[u8] {
    let start = name.iter().take_while(|byte| **byte == b'-').count();
    &name[start..]
}

/// Returns true within `login joe password …`.
fn is_netrc(text: &Text<'_>, at: usize) -> bool {
    text.before(at).windows(6).any(|part| part == b"login ")
}

/// Matches `host:port:database:user:password`, with nothing after it.
fn in_pgpass<'t>(text: &Text<'t>, at: usize) -> Option<Found<'t>> {
    let is_start = |byte: &u8| byte.is_ascii_whitespace() || b"\"'".contains(byte);
    if !text.before(at).last().is_none_or(is_start) {
        return None;
    }
    let part = |from: usize| text.run(from, |byte| is_word(byte) || matches!(byte, b'.' | b'*'));
    let port = part(at);
    let [base, user, password] = {
        let mut ends = [0; 3];
        let mut end = port;
        for next in &mut ends {
            if text.get(end) != Some(b':') {
                return None;
            }
            let start = end + 1;
            end = part(start);
            if end == start || end - start > 64 {
                return None;
            }
            *next = end;
        }
        ends
    };
    let number = &text.bytes()[port + 1..base];
    let is_port =
        number == b"*" || (2..=5).contains(&number.len()) && number.iter().all(u8::is_ascii_digit);
    if !is_port || user == base || text.get(password) != Some(b':') {
        return None;
    }
    let begin = password + 1;
    let end = text.bounded(begin, 16, |byte| byte > b' ' && !b":\"'\\".contains(&byte));
    let is_last = text
        .get(end)
        .is_none_or(|byte| byte.is_ascii_whitespace() || byte == b'"' || byte == b'\\');
    let found = &text.bytes()[begin..end];
    let fits = is_last && end - begin <= 256 && is_password(found) && !stands_for_value(found);
    fits.then_some((begin, end, b"password"))
}
