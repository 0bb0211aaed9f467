//! Spellings of a value: as in JSON, URLs and base64.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::text::is_word;

/// Returns a value as it is, and as in JSON, URLs and base64.
pub(super) fn spellings(value: &str) -> BTreeSet<String> {
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

/// Some programs keep slashes, some use lower-case digits, and forms encode a blank as a plus.
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

/// Three bytes become four letters: the bytes before the value determine its letters, and the outermost ones are
/// shared.
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
