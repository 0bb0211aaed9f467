//! Secrets in a text, and the text without them: values of variables that look like keys, and what tokens of known services look
//! like. It knows neither where a text comes from nor where it goes.
//!
//! What stands in their place has nothing that JSON would have to escape, so a line of JSON stays one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// What is looked for.
#[derive(Debug)]
struct Secrets {
    beginnings: AhoCorasick,
    /// Of each beginning.
    what: Vec<Secret>,
    /// Bytes of the longest beginning.
    longest: usize,
}

#[derive(Debug)]
enum Secret {
    /// The value of this variable.
    Value(String),
    Token(&'static TokenShape),
}

/// The tokens of a service.
#[derive(Debug)]
struct TokenShape {
    name: &'static str,
    begins: &'static str,
    /// Where what begins so ends, if it is a token; given what follows.
    ends: fn(&[u8]) -> Option<usize>,
}

/// As the services document them, and as gitleaks' rules have them.
const TOKENS: [TokenShape; 26] = [
    TokenShape {
        name: "Anthropic key",
        begins: "sk-ant-",
        ends: |rest| run(rest, is_word, 20),
    },
    TokenShape {
        name: "OpenAI key",
        begins: "sk-proj-",
        ends: |rest| run(rest, is_word, 20),
    },
    TokenShape {
        name: "OpenAI key",
        begins: "sk-svcacct-",
        ends: |rest| run(rest, is_word, 20),
    },
    TokenShape {
        name: "OpenRouter key",
        begins: "sk-or-v1-",
        ends: |rest| run(rest, is_word, 32),
    },
    TokenShape {
        name: "OpenAI key",
        begins: "sk-",
        ends: |rest| run(rest, is_plain, 40),
    },
    TokenShape {
        name: "GitHub token",
        begins: "ghp_",
        ends: |rest| run(rest, is_plain, 30),
    },
    TokenShape {
        name: "GitHub token",
        begins: "gho_",
        ends: |rest| run(rest, is_plain, 30),
    },
    TokenShape {
        name: "GitHub token",
        begins: "ghu_",
        ends: |rest| run(rest, is_plain, 30),
    },
    TokenShape {
        name: "GitHub token",
        begins: "ghs_",
        ends: |rest| run(rest, is_plain, 30),
    },
    TokenShape {
        name: "GitHub token",
        begins: "ghr_",
        ends: |rest| run(rest, is_plain, 30),
    },
    TokenShape {
        name: "GitHub token",
        begins: "github_pat_",
        ends: |rest| run(rest, is_word, 30),
    },
    TokenShape {
        name: "GitLab token",
        begins: "glpat-",
        ends: |rest| run(rest, is_word, 20),
    },
    TokenShape {
        name: "Slack token",
        begins: "xoxb-",
        ends: |rest| run(rest, is_word, 10),
    },
    TokenShape {
        name: "Slack token",
        begins: "xoxa-",
        ends: |rest| run(rest, is_word, 10),
    },
    TokenShape {
        name: "Slack token",
        begins: "xoxp-",
        ends: |rest| run(rest, is_word, 10),
    },
    TokenShape {
        name: "Slack token",
        begins: "xoxr-",
        ends: |rest| run(rest, is_word, 10),
    },
    TokenShape {
        name: "Slack token",
        begins: "xoxs-",
        ends: |rest| run(rest, is_word, 10),
    },
    TokenShape {
        name: "AWS key",
        begins: "AKIA",
        ends: |rest| run(rest, is_capital, 16).filter(|end| *end == 16),
    },
    TokenShape {
        name: "AWS key",
        begins: "ASIA",
        ends: |rest| run(rest, is_capital, 16).filter(|end| *end == 16),
    },
    TokenShape {
        name: "Google key",
        begins: "AIza",
        ends: |rest| run(rest, is_word, 35),
    },
    TokenShape {
        name: "npm token",
        begins: "npm_",
        ends: |rest| run(rest, is_plain, 36),
    },
    TokenShape {
        name: "PyPI token",
        begins: "pypi-AgE",
        ends: |rest| run(rest, is_word, 50),
    },
    TokenShape {
        name: "Stripe key",
        begins: "sk_live_",
        ends: |rest| run(rest, is_plain, 20),
    },
    TokenShape {
        name: "Hugging Face token",
        begins: "hf_",
        ends: |rest| run(rest, is_plain, 30),
    },
    TokenShape {
        name: "JSON web token",
        begins: "eyJ",
        ends: web_token,
    },
    TokenShape {
        name: "private key",
        begins: "-----BEGIN ",
        ends: private_key,
    },
];

/// `text` without secrets that this process knows of.
pub fn redact(text: &str) -> Cow<'_, str> {
    let secrets = known();
    let (redacted, _) = secrets.without(text.as_bytes(), 0, More::Never);
    if redacted == text.as_bytes() {
        return Cow::Borrowed(text);
    }
    // Values may be no UTF-8.
    Cow::Owned(String::from_utf8_lossy(&redacted).into_owned())
}

/// Looks for the values of these variables too, where they look like keys.
pub fn learn(variables: impl IntoIterator<Item = (String, String)>) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found: Vec<(String, String)> = variables
        .into_iter()
        .flat_map(|(name, value)| keys(&name, &value))
        .collect();
    if !found.is_empty() {
        let mut all = known.take().map_or_else(of_environment, |(all, _)| all);
        all.extend(found.into_iter().map(|(name, value)| (value, name)));
        let secrets = Arc::new(Secrets::new(&all));
        *known = Some((all, secrets));
    }
}

/// An output that comes in parts, which may end in the midst of a secret, or of a letter.
#[derive(Debug)]
pub struct Redacting {
    secrets: Arc<Secrets>,
    held: Vec<u8>,
    /// So many of those held were given on: they tell what stands before the others.
    given: usize,
    has_found: bool,
}

/// What is held back of an output for what may follow.
const MOST_HELD: usize = 64 * 1024;

/// What stands before a token tells whether it is one.
const BEFORE: usize = 32;

impl Redacting {
    pub fn new() -> Redacting {
        Redacting {
            secrets: known(),
            held: Vec::new(),
            given: 0,
            has_found: false,
        }
    }

    /// What can be given on, now that `part` has come.
    pub fn push(&mut self, part: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(part);
        let (redacted, end) = self.secrets.without(&self.held, self.given, More::MayCome);
        self.has_found |= redacted != self.held[self.given..end];
        let kept = end.saturating_sub(BEFORE);
        self.held.drain(..kept);
        self.given = end - kept;
        redacted
    }

    /// The rest, when nothing more comes.
    pub fn finish(&mut self) -> Vec<u8> {
        let (redacted, _) = self.secrets.without(&self.held, self.given, More::Never);
        self.has_found |= redacted != self.held[self.given..];
        self.held.clear();
        self.given = 0;
        redacted
    }

    /// Whether there was a secret in what has come.
    pub fn has_found(&self) -> bool {
        self.has_found
    }
}

impl Default for Redacting {
    fn default() -> Redacting {
        Redacting::new()
    }
}

/// By their values the names of what is looked for, and how.
type KnownSecrets = (BTreeMap<String, String>, Arc<Secrets>);

static KNOWN: Mutex<Option<KnownSecrets>> = Mutex::new(None);

fn known() -> Arc<Secrets> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, secrets) = known.get_or_insert_with(|| {
        let all = of_environment();
        let secrets = Arc::new(Secrets::new(&all));
        (all, secrets)
    });
    Arc::clone(secrets)
}

fn of_environment() -> BTreeMap<String, String> {
    let all = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    all.flat_map(|(name, value)| keys(&name, &value))
        .map(|(name, value)| (value, name))
        .collect()
}

/// Whether more of a text may come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    MayCome,
    Never,
}

impl Secrets {
    fn new(values: &BTreeMap<String, String>) -> Secrets {
        let (mut beginnings, mut what) = (Vec::new(), Vec::new());
        for (value, name) in values {
            for spelling in spellings(value) {
                beginnings.push(spelling);
                what.push(Secret::Value(name.clone()));
            }
        }
        for token in &TOKENS {
            beginnings.push(token.begins.to_owned());
            what.push(Secret::Token(token));
        }
        let longest = beginnings.iter().map(String::len).max().unwrap_or(0);
        let found = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&beginnings);
        Secrets {
            beginnings: found.expect("a few short texts are no more than it takes"),
            what,
            longest,
        }
    }

    /// `text` from `start` on, and where what is returned of it ends: of an open part the end may be the beginning of a secret.
    fn without(&self, text: &[u8], start: usize, more: More) -> (Vec<u8>, usize) {
        let (mut redacted, mut at) = (Vec::with_capacity(text.len() - start), start);
        let is_open =
            |from: usize| more == More::MayCome && text.len() - from < MOST_HELD.max(self.longest);
        // From here on all may belong to a token that goes on.
        let tail = text.len() - text.iter().rev().take_while(|byte| is_part(**byte)).count();
        while let Some(found) = self.beginnings.find(Input::new(text).span(at..text.len())) {
            let (begin, what) = (found.start(), &self.what[found.pattern().as_usize()]);
            // What is no token wherever it ends is not followed: a text may be all beginnings.
            let is_whole = matches!(what, Secret::Value(_)) || is_apart(&text[..begin]);
            let may_go_on = begin + self.longest > text.len() || found.end() >= tail;
            if is_whole && is_open(begin) && may_go_on {
                redacted.extend_from_slice(&text[at..begin]);
                return (redacted, begin);
            }
            let (end, name) = match what {
                Secret::Value(name) => (Some(found.end()), name.as_str()),
                Secret::Token(token) => {
                    let ends = |rest| (token.ends)(rest).map(|end| found.end() + end);
                    (
                        is_whole.then(|| ends(&text[found.end()..])).flatten(),
                        token.name,
                    )
                }
            };
            let next = end.unwrap_or(begin + 1);
            let kept = if next == begin + 1 { next } else { begin };
            redacted.extend_from_slice(&text[at..kept]);
            if kept == begin {
                redacted.extend_from_slice(format!("[redacted {name}]").as_bytes());
            }
            at = next;
        }
        let held = if more == More::MayCome {
            (self.longest - 1).min(text.len() - at)
        } else {
            0
        };
        redacted.extend_from_slice(&text[at..text.len() - held]);
        (redacted, text.len() - held)
    }
}

/// A value as it stands, and as JSON, addresses and base64 have it.
fn spellings(value: &str) -> BTreeSet<String> {
    std::iter::once(value.to_owned())
        .chain(in_json(value))
        .chain(in_addresses(value))
        .chain(in_base64(value))
        .collect()
}

/// Some programs escape slashes, and some all but ASCII.
fn in_json(value: &str) -> [String; 4] {
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'))
        .unwrap_or_default();
    let mut units = [0; 2];
    let mut ascii = String::new();
    for letter in json.chars() {
        match letter {
            letter if letter.is_ascii() => ascii.push(letter),
            letter => ascii.extend(
                letter
                    .encode_utf16(&mut units)
                    .iter()
                    .map(|unit| format!("\\u{unit:04x}")),
            ),
        }
    }
    [
        json.replace('/', "\\/"),
        ascii.replace('/', "\\/"),
        json.to_owned(),
        ascii,
    ]
}

/// Some programs leave a slash as it is, some write the digits small, and forms have a plus for a blank.
fn in_addresses(value: &str) -> impl Iterator<Item = String> {
    let spelt = |left: &[u8], is_small: bool| {
        let letter = |byte: u8| match byte {
            byte if is_word(byte) || b".~".contains(&byte) || left.contains(&byte) => {
                char::from(byte).to_string()
            }
            byte if is_small => format!("%{byte:02x}"),
            byte => format!("%{byte:02X}"),
        };
        value.bytes().map(letter).collect()
    };
    let all: [String; 4] = [
        spelt(b"", false),
        spelt(b"/", false),
        spelt(b"", true),
        spelt(b"/", true),
    ];
    all.into_iter()
        .flat_map(|spelt| [spelt.replace("%20", "+"), spelt])
}

/// Three bytes are four letters: what stands before the value decides which letters it is, and the outermost are not its own
/// alone.
fn in_base64(value: &str) -> impl Iterator<Item = String> {
    let spelt = move |engine: &GeneralPurpose, before: usize| {
        let letters = engine.encode([vec![0; before], value.as_bytes().to_vec()].concat());
        let (first, end) = ((before * 8).div_ceil(6), (before + value.len()) * 8 / 6);
        letters[first..end].to_owned()
    };
    [STANDARD_NO_PAD, URL_SAFE_NO_PAD]
        .into_iter()
        .flat_map(move |engine| (0..3).map(move |before| spelt(&engine, before)))
}

/// A token is no part of a longer word. A character as JSON or an address spells it is none, nor what sets a colour.
fn is_apart(before: &[u8]) -> bool {
    let are_hex = |digits: &[&u8]| digits.iter().all(|digit| digit.is_ascii_hexdigit());
    match before {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', one, two] if are_hex(&[one, two]) => true,
        [.., b'\\', b'u', one, two, three, four] if are_hex(&[one, two, three, four]) => true,
        [start @ .., b'm'] => {
            let is_colour = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
            let colours = start
                .iter()
                .rev()
                .take(BEFORE - 2)
                .take_while(is_colour)
                .count();
            start[..start.len() - colours].ends_with(b"[")
        }
        [.., last] => !is_word(*last),
        [] => true,
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_word(byte: u8) -> bool {
    is_plain(byte) || matches!(byte, b'_' | b'-')
}

fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

/// It may belong to a token.
fn is_part(byte: u8) -> bool {
    is_word(byte)
        || matches!(byte, b'.' | b'+' | b'/' | b'=' | b':' | b',' | b'\\')
        || byte.is_ascii_whitespace()
}

/// The end of the bytes that are such ones, if there are `least` of them.
fn run(rest: &[u8], is_part: fn(u8) -> bool, least: usize) -> Option<usize> {
    let end = rest
        .iter()
        .position(|byte| !is_part(*byte))
        .unwrap_or(rest.len());
    (end >= least).then_some(end)
}

/// Three parts, of which the first two are JSON.
fn web_token(rest: &[u8]) -> Option<usize> {
    let first = rest.iter().position(|byte| !is_word(*byte))?;
    if first < 10 || !rest[first..].starts_with(b".eyJ") {
        return None;
    }
    let end = run(rest, |byte| is_word(byte) || byte == b'.', 30)?;
    let has_three = rest[..end].split(|byte| *byte == b'.').nth(2).is_some();
    has_three.then_some(end)
}

/// PEM: to its last line, or as far as it goes, on lines of its own or in a text of JSON.
fn private_key(rest: &[u8]) -> Option<usize> {
    const LABEL: &[u8] = b"PRIVATE KEY";
    const IS_ONE: &[u8] = b"PRIVATE KEY-----";
    const END: &[u8] = b"-----END ";
    let find =
        |part: &[u8], text: &[u8]| text.windows(part.len()).position(|window| window == part);
    let label = rest
        .iter()
        .position(|byte| !is_capital(*byte) && *byte != b' ')?;
    let head = label + IS_ONE.len() - LABEL.len();
    if !rest[..label].ends_with(LABEL) || !rest[label..].starts_with(b"-----") {
        return None;
    }
    let mut end = head;
    while end < rest.len() {
        let slashes = rest[end..]
            .iter()
            .take_while(|byte| **byte == b'\\')
            .count();
        let next = rest.get(end + slashes).copied();
        if rest[end..].starts_with(END) {
            let last = find(IS_ONE, &rest[end..rest.len().min(end + 50)]);
            return Some(last.map_or(rest.len().min(end + END.len()), |last| {
                end + last + IS_ONE.len()
            }));
        }
        let is_escape = slashes > 0 && matches!(next, Some(b'n' | b'r' | b't'));
        let is_text = next.is_some_and(|byte| is_word(byte) || b"+/=:, \n\r\t".contains(&byte));
        if slashes > 0 && !is_escape || !is_text {
            return Some(end);
        }
        end += slashes + 1;
    }
    Some(end)
}

/// Words at the end of a part of a variable's name that tell of a key.
const KEYS: [&str; 9] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTHORIZATION",
];

/// Last parts of a name that tell where a key is, or something else of it.
const PLACES: [&str; 11] = [
    "COMMAND", "DIR", "FILE", "HELPER", "HOST", "ID", "NAME", "PATH", "SOCK", "TYPE", "VERSION",
];

/// The name that stands for each secret in the variable `name`: the value of one that looks like a key, the password in an address.
fn keys(name: &str, value: &str) -> Vec<(String, String)> {
    let upper = name.to_ascii_uppercase();
    let last = upper.rsplit('_').next().unwrap_or_default();
    let is_key = |part: &str| {
        KEYS.iter().any(|key| part.ends_with(key)) || matches!(part, "PAT" | "AUTH" | "PWD")
    };
    let is_own = ["PWD", "OLDPWD"].contains(&upper.as_str()) || upper.starts_with("TAVERN_");
    let is_named = !is_own && !PLACES.contains(&last) && upper.split('_').any(is_key);
    let password = value.split_once("://").and_then(|(_, rest)| {
        let (user, _) = rest.split('/').next()?.rsplit_once('@')?;
        Some(user.split_once(':')?.1)
    });
    let found = [
        Some(value).filter(|value| is_named && !is_identifier(value)),
        password,
    ];
    found
        .into_iter()
        .flatten()
        .filter(|value| is_telling(value))
        .map(|value| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Up to three words, as folders, branches and caches are called (`node_modules`): no secret, whatever the variable is called.
fn is_identifier(value: &str) -> bool {
    let words: Vec<&str> = value.split(['_', '-', '.', '/', ':', ' ']).collect();
    let is_word = |word: &&str| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_cased = letters.chars().skip(1).all(|c| c.is_ascii_lowercase())
            || letters.chars().all(|c| c.is_ascii_uppercase());
        let is_long = word.len() >= 16 || word.len() > letters.len() + 1;
        !letters.is_empty() && !is_long && is_cased
    };
    words.len() <= 3 && words.iter().all(is_word)
}

/// Short values, numbers and plain words stand in many texts, and are no secret there.
fn is_telling(value: &str) -> bool {
    let is_word = value.len() < 16 && value.bytes().all(|byte| byte.is_ascii_alphabetic());
    value.len() >= 8 && !is_word && !value.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod corpus;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, proptest};
    use proptest::{prop_assert, prop_assert_eq};

    const PEM: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk+/\nAAAA==\n-----END OPENSSH PRIVATE KEY-----";

    fn secrets() -> Secrets {
        let value = |value: &str, name: &str| (value.to_owned(), name.to_owned());
        Secrets::new(&BTreeMap::from([
            value("s3cret-value", "MY_KEY"),
            value("a \"quoted\" one", "QUOTED"),
        ]))
    }

    fn redacted(text: &str) -> String {
        String::from_utf8(secrets().without(text.as_bytes(), 0, More::Never).0)
            .expect("it was text")
    }

    /// Each of them followed to its end would take hours.
    #[test]
    fn a_text_of_nothing_but_beginnings_is_read_once() {
        for part in [
            "sk-ant-",
            " sk-ant-",
            "xsk-",
            " eyJ.eyJ",
            "eyJabc ",
            "-----BEGIN ",
            "AKIA",
        ] {
            let text = part.repeat((1 << 20) / part.len());
            redacted(&text);
            let mut redacting = Redacting {
                secrets: Arc::new(secrets()),
                ..Redacting::new()
            };
            let mut all: usize = text
                .as_bytes()
                .chunks(1 << 16)
                .map(|part| redacting.push(part).len())
                .sum();
            all += redacting.finish().len();
            assert!(all > 0, "{part}");
        }
    }

    #[test]
    fn values_and_tokens_are_named_and_nothing_else_is_touched() {
        let long = "0123456789abcdefABCDEF0123456789abcdefABCDEF";
        for (text, expected) in [
            (
                "a s3cret-value, b".to_owned(),
                "a [redacted MY_KEY], b".to_owned(),
            ),
            (
                "as3cret-valueb".to_owned(),
                "a[redacted MY_KEY]b".to_owned(),
            ),
            (
                r#"{"a":"a \"quoted\" one"}"#.to_owned(),
                r#"{"a":"[redacted QUOTED]"}"#.to_owned(),
            ),
            (
                format!("key=sk-ant-api03-{long}."),
                "key=[redacted Anthropic key].".to_owned(),
            ),
            (
                format!(r"\nghp_{long}\n"),
                r"\n[redacted GitHub token]\n".to_owned(),
            ),
            (
                format!("xghp_{long} task-{long}"),
                format!("xghp_{long} task-{long}"),
            ),
            (
                format!("\x1b[1;32mghp_{long}\x1b[0m"),
                "\x1b[1;32m[redacted GitHub token]\x1b[0m".to_owned(),
            ),
            (
                format!(r"\u001b[32mghp_{long}\u0022"),
                r"\u001b[32m[redacted GitHub token]\u0022".to_owned(),
            ),
            (
                format!(r"?a=x%3Dghp_{long}&\u0022ghp_{long}"),
                r"?a=x%3D[redacted GitHub token]&\u0022[redacted GitHub token]".to_owned(),
            ),
            (
                format!("mghp_{long} 3mghp_{long}"),
                format!("mghp_{long} 3mghp_{long}"),
            ),
            (
                "AKIAIOSFODNN7EXAMPLE AKIAIOSFODNN7EXAMPLES".to_owned(),
                "[redacted AWS key] AKIAIOSFODNN7EXAMPLES".to_owned(),
            ),
            (
                format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{long} eyJhbGci"),
                "[redacted JSON web token] eyJhbGci".to_owned(),
            ),
            (
                format!("x\n{PEM}\nö"),
                "x\n[redacted private key]\nö".to_owned(),
            ),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n".to_owned(),
                "-----BEGIN CERTIFICATE-----\nAAAA\n".to_owned(),
            ),
            (
                "sk-learn-something ghp_short npm_config_registry".to_owned(),
                "sk-learn-something ghp_short npm_config_registry".to_owned(),
            ),
        ] {
            assert_eq!(redacted(&text), expected);
            assert_eq!(redacted(&expected), expected, "twice is as once");
        }
    }

    #[test]
    fn values_are_known_in_other_spellings() {
        for (text, expected) in [
            (
                "?q=a%20%22quoted%22%20one&x=a%20%22quoted%22%20on",
                "?q=[redacted QUOTED]&x=a%20%22quoted%22%20on",
            ),
            ("czNjcmV0LXZhbHVl", "[redacted MY_KEY]"),
            // `joe:s3cret-value`, `jo:s3cret-value.`, `j:s3cret-value..`
            (
                "Basic am9lOnMzY3JldC12YWx1ZQ==",
                "Basic am9lOn[redacted MY_KEY]Q==",
            ),
            (
                "Basic am86czNjcmV0LXZhbHVlLg==",
                "Basic am86[redacted MY_KEY]Lg==",
            ),
            (
                "Basic ajpzM2NyZXQtdmFsdWUuLg==",
                "Basic ajp[redacted MY_KEY]UuLg==",
            ),
        ] {
            assert_eq!(redacted(text), expected);
        }
        let value = "k/e+y?=\u{fffd}ö";
        let spelt = |text: &str| spellings(value).contains(text);
        assert!(
            [
                "k%2Fe%2By%3F%3D%EF%BF%BD%C3%B6",
                "k/e%2by%3f%3d%ef%bf%bd%c3%b6"
            ]
            .into_iter()
            .all(spelt)
        );
        // As PHP has JSON, and as a form has a blank.
        assert!(spelt(r"k\/e+y?=\ufffd\u00f6") && spellings("two words").contains("two+words"));
    }

    #[test]
    fn a_line_of_json_stays_one_also_where_a_key_is_cut() {
        for end in 30..PEM.len() {
            for rest in ["", "\"", "\\", "\n\"x\""] {
                let line = serde_json::json!({"a": format!("{}{rest}", &PEM[..end]), "b": [1]})
                    .to_string();
                let told = redacted(&line);
                let value: serde_json::Value =
                    serde_json::from_str(&told).unwrap_or_else(|_| panic!("{line}\n{told}"));
                assert_eq!(value["b"][0], 1, "{told}");
            }
        }
    }

    #[test]
    fn names_of_keys_are_told_from_others() {
        let is_key = |name: &str, value: &str| !keys(name, value).is_empty();
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "PGPASSWORD",
            "SECRET_KEY_BASE",
            "npm_config__authToken",
            "MYSQL_PWD",
        ] {
            assert!(is_key(name, "abc123def456"), "{name}");
        }
        for name in [
            "PATH",
            "PWD",
            "TAVERN_TOKEN",
            "MAX_THINKING_TOKENS",
            "SSH_KEY_PATH",
            "KEYBOARD",
            "AWS_ACCESS_KEY_ID",
        ] {
            assert!(!is_key(name, "abc123def456"), "{name}");
        }
        for value in [
            "short1",
            "development",
            "12345678901",
            "",
            "node_modules",
            "linux-build-v2",
            "Cargo.lock",
            "MY_TABLE",
            "feature/login",
        ] {
            assert!(!is_key("API_KEY", value), "{value}");
        }
        for value in [
            "correct-horse-battery-staple",
            "hunter2hunter2",
            "Summer2026",
            "a1b2c3d4-e5f6",
            "0d9f-77aa-1c2b",
            "correct-horse-4711",
            "deadbeefdeadbeefdead",
        ] {
            assert!(is_key("API_KEY", value), "{value}");
        }
        let found = keys("DATABASE_URL", "postgres://joe:correct-horse@db:5432/joe");
        assert_eq!(
            found,
            [("DATABASE_URL".to_owned(), "correct-horse".to_owned())]
        );
    }

    proptest! {
        #[test]
        fn parts_make_the_same_as_the_whole(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "s3cret-value", "s3cret", "ghp_0123456789abcdefABCDEF0123456789abcd", "ghp_", "ö", " ", "\n", "\"", "\\n",
                PEM, "-----BEGIN ", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijkl", "x",
            ]), 0..12),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let text = pieces.concat();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            places.sort_unstable();
            let mut stream = Redacting { secrets: Arc::new(secrets()), held: Vec::new(), given: 0, has_found: false };
            let (mut told, mut from) = (Vec::new(), 0);
            for place in places.into_iter().chain([text.len()]) {
                told.extend(stream.push(&text.as_bytes()[from..place]));
                from = place;
            }
            told.extend(stream.finish());
            let told = String::from_utf8(told).expect("no letter is cut");
            prop_assert!(!told.contains("s3cret-value"));
            prop_assert_eq!(told, redacted(&text));
        }
    }
}
