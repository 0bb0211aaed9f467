//! Redacts secrets in a text: values of variables named like keys, tokens of known services, and values assigned to
//! secret names. Knows neither the source nor the destination of a text.
//!
//! The replacement needs no escapes in JSON, so a line of JSON stays valid.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use assigned::assigned_at;
use spellings::spellings;
use text::{BEFORE, Text, is_apart, is_word};
use tokens::token_at;
use variables::keys;

mod assigned;
mod names;
mod shape;
mod spellings;
mod text;
mod tokens;
mod variables;

/// Known secrets, besides text that looks like one.
#[derive(Debug)]
struct Secrets {
    /// The values of variables, in all spellings.
    values: Option<AhoCorasick>,
    /// The variable of each value.
    names: Vec<String>,
    /// Length of the longest value in bytes.
    longest: usize,
}

/// Returns `text` with the secrets redacted that this process can recognise.
pub fn redact(text: &str) -> Cow<'_, str> {
    let secrets = known();
    let (redacted, _) = secrets.without(text.as_bytes(), 0, More::Never);
    if redacted == text.as_bytes() {
        return Cow::Borrowed(text);
    }
    // Redacting a value may leave invalid UTF-8.
    Cow::Owned(String::from_utf8_lossy(&redacted).into_owned())
}

/// Adds the values of these variables to the known secrets, if they look like keys.
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

/// Redacts an output that comes in parts, which may be split within a secret or a character.
#[derive(Debug)]
pub struct Redacting {
    secrets: Arc<Secrets>,
    held: Vec<u8>,
    /// The number of held bytes that were returned already: they are context for the rest.
    given: usize,
    has_found: bool,
}

/// The most output held back while a secret may continue.
const MOST_HELD: usize = 64 * 1024;

impl Redacting {
    pub fn new() -> Redacting {
        Redacting {
            secrets: known(),
            held: Vec::new(),
            given: 0,
            has_found: false,
        }
    }

    /// Adds `part`, and returns the output that is safe to pass on.
    pub fn push(&mut self, part: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(part);
        let (redacted, end) = self.secrets.without(&self.held, self.given, More::MayCome);
        self.has_found |= redacted != self.held[self.given..end];
        let kept = end.saturating_sub(BEFORE);
        self.held.drain(..kept);
        self.given = end - kept;
        redacted
    }

    /// Returns the rest, at the end of the output.
    pub fn finish(&mut self) -> Vec<u8> {
        let (redacted, _) = self.secrets.without(&self.held, self.given, More::Never);
        self.has_found |= redacted != self.held[self.given..];
        self.held.clear();
        self.given = 0;
        redacted
    }

    /// Returns whether a secret was found so far.
    pub fn has_found(&self) -> bool {
        self.has_found
    }
}

impl Default for Redacting {
    fn default() -> Redacting {
        Redacting::new()
    }
}

/// The names of known secrets by their values, and the compiled search.
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

/// Whether a text may continue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    MayCome,
    Never,
}

impl Secrets {
    fn new(values: &BTreeMap<String, String>) -> Secrets {
        let (mut all, mut names) = (Vec::new(), Vec::new());
        for (value, name) in values {
            for spelling in spellings(value) {
                all.push(spelling);
                names.push(name.clone());
            }
        }
        let longest = all.iter().map(String::len).max().unwrap_or(0);
        // Most programs know no values and print little, so building the automaton costs more than searching.
        let found = (!all.is_empty()).then(|| {
            let found = AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::NoncontiguousNFA))
                .match_kind(MatchKind::LeftmostLongest)
                .build(&all);
            found.expect("a few short texts are no more than it takes")
        });
        Secrets {
            values: found,
            names,
            longest,
        }
    }

    /// Returns `text` from `start` on, redacted, and where the returned part ends: the end of an unfinished text may be
    /// the beginning of a secret.
    fn without(&self, text: &[u8], start: usize, more: More) -> (Vec<u8>, usize) {
        let (mut redacted, mut copied) = (Vec::with_capacity(text.len() - start), start);
        let is_open =
            |from: usize| more == More::MayCome && text.len() - from < MOST_HELD.max(self.longest);
        // A known value that continues may begin here.
        let held = if more == More::MayCome {
            self.longest.saturating_sub(1)
        } else {
            0
        };
        let limit = text.len().saturating_sub(held).max(start);
        let (text, mut at) = (Text::new(text), start);
        let mut value = self.value(&text, at);
        while at < limit {
            if value.as_ref().is_some_and(|value| value.begin < at) {
                value = self.value(&text, at);
            }
            let found = if value.as_ref().is_some_and(|value| value.begin == at) {
                value.clone()
            } else {
                let found = shaped(&text, at);
                let goes_on = found.as_ref().is_some_and(|found| found.end > limit);
                if (text.has_ended() || goes_on) && is_open(at) {
                    break;
                }
                found
            };
            let Some(found) = found else {
                at += 1;
                continue;
            };
            // A variable's name is more informative than a shape's.
            let found = match &value {
                Some(value) if value.begin < found.end => found.with(value),
                _ => found,
            };
            redacted.extend_from_slice(&text.bytes()[copied..found.begin]);
            redacted.extend_from_slice(b"[redacted ");
            redacted.extend_from_slice(found.name);
            redacted.push(b']');
            (at, copied) = (found.end, found.end);
        }
        redacted.extend_from_slice(&text.bytes()[copied..at]);
        (redacted, at)
    }

    /// Returns the first value of a variable from `at` on.
    fn value<'a>(&'a self, text: &Text<'a>, at: usize) -> Option<Found<'a>> {
        let rest = Input::new(text.bytes()).span(at..text.bytes().len());
        let found = self.values.as_ref()?.find(rest)?;
        Some(Found {
            begin: found.start(),
            end: found.end(),
            name: self.names[found.pattern().as_usize()].as_bytes(),
        })
    }
}

/// A secret in a text.
#[derive(Clone, Debug)]
struct Found<'t> {
    begin: usize,
    end: usize,
    name: &'t [u8],
}

impl<'t> Found<'t> {
    /// Returns the union of both, under the name of `value`.
    fn with(&self, value: &Found<'t>) -> Found<'t> {
        Found {
            begin: self.begin.min(value.begin),
            end: self.end.max(value.end),
            name: value.name,
        }
    }
}

/// Returns the secret that begins at `at`, recognised by its shape or its name.
fn shaped<'t>(text: &Text<'t>, at: usize) -> Option<Found<'t>> {
    let byte = text.bytes()[at];
    let is_first = (is_word(byte) || byte == b'*') && is_apart(text.before(at));
    // In a patch, another `-` may precede it.
    let is_block = byte == b'-' && text.has(at, "-----BEGIN ");
    if !is_first && !is_block {
        return None;
    }
    let token = token_at(text, at).map(|(begin, end, name)| (begin, end, name.as_bytes()));
    let named = || {
        let (begin, end, name) = assigned_at(text, at)?;
        // A token is named for its kind.
        match token_at(text, begin) {
            Some((_, last, token)) if last >= end => Some((begin, last, token.as_bytes())),
            _ => Some((begin, end, name)),
        }
    };
    let (begin, end, name) = token.or_else(named)?;
    Some(Found { begin, end, name })
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
        let tokens = [
            "sk-ant-",
            " sk-ant-",
            "xsk-",
            " eyJ.eyJ",
            "eyJabc ",
            "-----BEGIN ",
            "AKIA",
        ];
        let names = [
            "token=",
            "token=\"",
            "token: \\\"",
            "--token ",
            "cookie: ",
            "x://",
            "-u a:",
            "-p a2b3c4d5e6f7 ",
            "a:1:b:",
            "*:",
            "dp.st.",
            "\\",
        ];
        let tokens = tokens.map(|part| (part, 1 << 20));
        for (part, length) in tokens.into_iter().chain(names.map(|part| (part, 1 << 17))) {
            let text = part.repeat(length / part.len());
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
                "of am9lOnMzY3JldC12YWx1ZQ==",
                "of am9lOn[redacted MY_KEY]Q==",
            ),
            (
                "of am86czNjcmV0LXZhbHVlLg==",
                "of am86[redacted MY_KEY]Lg==",
            ),
            (
                "of ajpzM2NyZXQtdmFsdWUuLg==",
                "of ajp[redacted MY_KEY]UuLg==",
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
                "password", "=", ": ", "token", "--token ", "a1B2c3D4e5F6g7H8", "joe:", "https://", "@", "%22", "%3D", "\\\"", "'",
                "Bearer ", "-u ", "*:", "cookie", "AKIA0123456789ABCDEF", "bot123456789:AA", ",", ".", "|", "login -p ",
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
