//! Recognises names of secrets by their words, however joined (`api_key`, `apiKey`, `API-KEYS`, `PGPASSWORD`).

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Password,
    Key,
    /// A header, of which each part that looks secret counts.
    Cookie,
}

const PASSWORDS: [&str; 7] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pswd",
    "pass",
    "pwd",
];

const KEYS: [&str; 9] = [
    "key",
    "token",
    "secret",
    "credential",
    "auth",
    "authorization",
    "pat",
    "jwt",
    "sig",
];

/// Endings of words joined with another.
const JOINED: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "apikey",
    "authkey",
    "accesskey",
    "secretkey",
    "privatekey",
    "signingkey",
    "masterkey",
];

/// Pairs of words that name a secret only together.
const PAIRS: [[&str; 2]; 1] = [["amz", "signature"]];

/// Last words of names for a secret's location or another property of it.
const PLACES: [&str; 38] = [
    "algorithm",
    "budget",
    "class",
    "command",
    "count",
    "digest",
    "dir",
    "enabled",
    "endpoint",
    "env",
    "expires",
    "expiry",
    "file",
    "fingerprint",
    "format",
    "helper",
    "host",
    "id",
    "length",
    "limit",
    "name",
    "path",
    "policy",
    "port",
    "prefix",
    "ref",
    "server",
    "size",
    "sock",
    "store",
    "timeout",
    "ttl",
    "type",
    "uri",
    "url",
    "usage",
    "version",
    "at",
];

/// Words of names for keys that unlock nothing, or for counted tokens.
const OTHERS: [&str; 45] = [
    "cache",
    "cached",
    "candidate",
    "completion",
    "composite",
    "cursor",
    "dedup",
    "dict",
    "entity",
    "event",
    "feature",
    "flag",
    "foreign",
    "group",
    "hash",
    "idempotency",
    "index",
    "input",
    "issue",
    "label",
    "lock",
    "lookup",
    "map",
    "max",
    "message",
    "metric",
    "min",
    "natural",
    "num",
    "object",
    "order",
    "output",
    "page",
    "partition",
    "primary",
    "prompt",
    "pub",
    "public",
    "range",
    "row",
    "sort",
    "thinking",
    "total",
    "translation",
    "unique",
];

/// The most words of a name that are checked, from its end.
const MOST: usize = 12;

/// Returns the kind of a secret's name, given the word before it, if any.
pub(super) fn named(before: &[u8], name: &[u8]) -> Option<Named> {
    if name.len() > 80 || !may_tell(name) {
        return None;
    }
    let (mut words, mut count) = ([&b""[..]; MOST], 0);
    let of_name = Words(name);
    for word in of_name.take(MOST) {
        words[count] = word;
        count += 1;
    }
    let words = &words[..count];
    let last = words.first()?;
    let is = |word: &[u8], one: &str| word.eq_ignore_ascii_case(one.as_bytes());
    let among =
        |word: &[u8], list: &[&str]| list.iter().any(|one| is(word, one) || is_plural(word, one));
    if among(last, &PLACES)
        || words.iter().take(3).any(|word| among(word, &OTHERS))
        || among(before, &OTHERS)
    {
        return None;
    }
    // `PASS: test_login` reports a test.
    let is_password = |word: &&[u8]| among(word, &PASSWORDS) && !(count == 1 && *word == b"PASS");
    let is_key = |word: &&[u8]| {
        among(word, &KEYS) && !(count == 1 && is(word, "key") && !tells_of_key(before))
    };
    let is_joined = |word: &&[u8], password: bool| {
        JOINED.iter().any(|end| {
            let word = word
                .strip_suffix(b"s")
                .or(word.strip_suffix(b"S"))
                .unwrap_or(word);
            let tail = word.len().checked_sub(end.len()).map(|at| &word[at..]);
            end.starts_with("pass") == password && tail.is_some_and(|tail| is(tail, end))
        })
    };
    let is_pair = || {
        words.windows(2).any(|pair| {
            PAIRS
                .iter()
                .any(|two| is(pair[1], two[0]) && is(pair[0], two[1]))
        })
    };
    if is(last, "cookie") {
        Some(Named::Cookie)
    } else if words
        .iter()
        .any(|word| is_password(word) || is_joined(word, true))
    {
        Some(Named::Password)
    } else if words
        .iter()
        .any(|word| is_key(word) || is_joined(word, false))
        || is_pair()
    {
        Some(Named::Key)
    } else {
        None
    }
}

/// A cheap filter: the letters alone rule out most names.
fn may_tell(name: &[u8]) -> bool {
    (0..name.len()).any(|at| {
        let begins = |part: &str| {
            let found = name[at..].get(..part.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(part.as_bytes()))
        };
        match name[at].to_ascii_lowercase() {
            b'a' => begins("auth") || begins("amz"),
            b'c' => begins("credential") || begins("cookie"),
            b'j' => begins("jwt"),
            b'k' => begins("key"),
            b'p' => begins("pass") || begins("pswd") || begins("pwd") || begins("pat"),
            b's' => begins("secret") || begins("sig"),
            b't' => begins("token"),
            _ => false,
        }
    })
}

/// Accepts `Secret access key`, but not `key` alone.
fn tells_of_key(before: &[u8]) -> bool {
    const WORDS: [&str; 12] = [
        "access",
        "account",
        "api",
        "auth",
        "client",
        "encryption",
        "master",
        "private",
        "secret",
        "service",
        "shared",
        "signing",
    ];
    WORDS
        .iter()
        .any(|word| before.eq_ignore_ascii_case(word.as_bytes()))
}

fn is_plural(word: &[u8], one: &str) -> bool {
    let (Some((last, word)), one) = (word.split_last(), one.as_bytes()) else {
        return false;
    };
    last.eq_ignore_ascii_case(&b's') && word.eq_ignore_ascii_case(one)
}

/// The words of a name, from its end, without digits after them.
struct Words<'t>(&'t [u8]);

impl<'t> Iterator for Words<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        let end = self.0.iter().rposition(u8::is_ascii_alphabetic)? + 1;
        let name = &self.0[..end];
        let begins = |at: &usize| {
            let (before, first) = (name[at - 1], name[*at]);
            let is_hump = first.is_ascii_uppercase()
                && (before.is_ascii_lowercase()
                    || name.get(at + 1).is_some_and(u8::is_ascii_lowercase));
            !before.is_ascii_alphabetic() || is_hump
        };
        let start = (1..end).rev().find(begins).unwrap_or(0);
        self.0 = &self.0[..start];
        Some(&name[start..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_words() {
        for (name, words) in [
            ("API_KEYS", "KEYS API"),
            ("awsSecretKey2", "Key Secret aws"),
            ("X-Auth-Token", "Token Auth X"),
            ("HTTPToken", "Token HTTP"),
            ("_1_", ""),
            ("2FA", "FA"),
        ] {
            let told: Vec<&str> = Words(name.as_bytes())
                .map(|word| str::from_utf8(word).expect("it was"))
                .collect();
            assert_eq!(told.join(" "), words, "{name}");
        }
    }
}
