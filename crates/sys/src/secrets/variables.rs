//! The secrets in an environment variable.

use super::names::{Named, named};
use super::shape::{is_password, is_password_in_address, is_random, stands_for_value};

/// Returns the secrets in the variable `name`, each with that name: the unquoted value if the variable is named like a
/// key, each key of a list, each line, and the password in a URL.
pub(super) fn keys(name: &str, value: &str) -> Vec<(String, String)> {
    let is_own = ["PWD", "OLDPWD"].contains(&name) || name.starts_with("TAVERN_");
    // `KEY` alone counts here.
    let kind = named(b"private", name.as_bytes()).filter(|_| !is_own);
    let value = value.trim();
    let value = ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(value);
    let is_long = kind == Some(Named::Password) && value.split(' ').nth(3).is_some();
    let is_phrase = value.len() >= 8
        && (is_long || value.contains(' ') && value.contains(|c: char| c.is_ascii_digit()))
        && !stands_for_value(value.as_bytes());
    let mut found: Vec<&str> = Vec::new();
    // Placeholders in text begin like this, but a password may too.
    let rest = value.trim_start_matches(['{', '[', '(', '*']);
    if kind.is_some() && (is_phrase || is_password(rest.as_bytes())) {
        found.push(value);
        let parts = value.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        // In JSON, text that looks like a key is found anyway.
        let parts = parts.filter(|part| part.len() < value.len() && is_random(part.as_bytes()));
        found.extend(parts.filter(|_| !value.starts_with('{')));
    }
    let password = password_in_address(value);
    let spelt = password
        .map(decoded)
        .filter(|spelt| Some(spelt.as_str()) != password);
    found.extend(password);
    let all = found.into_iter().map(str::to_owned);
    all.chain(spelt)
        .map(|value| (name.to_owned(), value))
        .collect()
}

fn password_in_address(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let (user, _) = rest.split('/').next()?.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    is_password_in_address(password.as_bytes()).then_some(password)
}

/// Decodes percent signs.
fn decoded(value: &str) -> String {
    let mut parts = value.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[2..]);
            }
            None => bytes.extend([b"%", part.as_bytes()].concat()),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| value.to_owned())
}
