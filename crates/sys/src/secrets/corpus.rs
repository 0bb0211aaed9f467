//! Real formats of secrets, and look-alikes: each secret is found whole, and no look-alike.
//!
//! The texts are in `corpus/`. Their random parts are made here, so that no scanner takes one for a real token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::*;

/// Each row is tried with so many random parts.
const ROUNDS: u64 = 8;

const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGITS: &str = "0123456789";

/// splitmix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn letters(&mut self, alphabet: &str, count: usize) -> String {
        let at = |dice: &mut Dice| usize::try_from(dice.next() >> 33).expect("it is short");
        let letter = |_| char::from(alphabet.as_bytes()[at(self) % alphabet.len()]);
        (0..count).map(letter).collect()
    }

    /// Returns the text for `{kind}`.
    fn part(&mut self, kind: &str) -> String {
        let base64 = |text: String| STANDARD_NO_PAD.encode(text);
        match kind {
            "basic" => base64(format!("joe:{}", self.part("p14"))),
            "jwt" => {
                let payload = format!(r#"{{"sub":"{}"}}"#, self.part("A20"));
                let head = base64(r#"{"alg":"HS256","typ":"JWT"}"#.to_owned());
                format!("{head}.{}.{}", base64(payload), self.part("w43"))
            }
            "gcp" => format!(
                r"-----BEGIN PRIVATE KEY-----\n{}\n{}\n-----END PRIVATE KEY-----",
                self.part("b64"),
                self.part("b64")
            ),
            _ => {
                let alphabet = match &kind[..1] {
                    "A" => format!("{LETTERS}{DIGITS}"),
                    "w" => format!("{LETTERS}{DIGITS}_-"),
                    "b" => format!("{LETTERS}{DIGITS}+/"),
                    "h" => format!("{DIGITS}abcdef"),
                    "U" => format!("{}{DIGITS}", &LETTERS[..26]),
                    "l" => LETTERS[26..].to_owned(),
                    // One of each kind at least, and the digits apart.
                    "p" => {
                        let count: usize = kind[1..].parse().expect("a number");
                        let all = format!("{LETTERS}{DIGITS}");
                        let kinds = [&all, DIGITS, &LETTERS[..26], &LETTERS[26..]];
                        let kind = |at: usize| kinds[if at < 8 { at % 4 } else { 0 }];
                        return (0..count).map(|at| self.letters(kind(at), 1)).collect();
                    }
                    "d" => DIGITS.to_owned(),
                    _ => panic!("no kind: {kind}"),
                };
                self.letters(&alphabet, kind[1..].parse().expect("a number"))
            }
        }
    }

    /// `row` with its random parts, which are returned too.
    fn filled(&mut self, row: &str) -> (String, Vec<String>) {
        let (mut text, mut parts, mut rest) = (String::new(), Vec::new(), row);
        while let Some((before, (kind, after))) = rest
            .split_once('{')
            .and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            let is_kind = ["basic", "jwt", "gcp"].contains(&kind)
                || kind.len() > 1
                    && "AwbhUldp".contains(&kind[..1])
                    && kind[1..].bytes().all(|byte| byte.is_ascii_digit());
            text.push_str(before);
            if is_kind {
                parts.push(self.part(kind));
                text.push_str(&parts[parts.len() - 1]);
                rest = after;
            } else {
                text.push('{');
                rest = &rest[before.len() + 1..];
            }
        }
        (text + rest, parts)
    }
}

fn rows(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines()
        .filter(|row| !row.is_empty() && !row.starts_with("# "))
}

/// `\n` and `\r` of a row that is no JSON.
fn broken(row: &str) -> String {
    if ["{\"", "{\\", "{'"]
        .iter()
        .any(|start| row.starts_with(start))
    {
        return row.to_owned();
    }
    row.replace(r"\\n", "\u{1}")
        .replace(r"\n", "\n")
        .replace(r"\r", "\r")
        .replace('\u{1}', r"\n")
}

fn read(values: &BTreeMap<String, String>, text: &str) -> String {
    let secrets = Arc::new(Secrets::new(values));
    let (redacted, _) = secrets.without(text.as_bytes(), 0, More::Never);
    let redacted = String::from_utf8(redacted).expect("it was text");
    let (again, _) = secrets.without(redacted.as_bytes(), 0, More::Never);
    assert_eq!(
        String::from_utf8_lossy(&again),
        redacted,
        "twice is as once"
    );
    for size in [1, 7, 64] {
        let mut stream = Redacting {
            secrets: Arc::clone(&secrets),
            held: Vec::new(),
            given: 0,
            has_found: false,
        };
        let mut case: Vec<u8> = text
            .as_bytes()
            .chunks(size)
            .flat_map(|part| stream.push(part))
            .collect();
        case.extend(stream.finish());
        assert_eq!(
            String::from_utf8_lossy(&case),
            redacted,
            "in parts of {size}: {text}"
        );
    }
    redacted
}

/// Whether `case` is `marked` with something else for each part within «», and for nothing else.
fn is_without(marked: &str, case: &str) -> bool {
    let mut rest = case;
    marked.split('«').enumerate().all(|(at, part)| {
        let kept = part.split_once('»').map_or(part, |(_, kept)| kept);
        if at > 0 {
            let after = rest
                .strip_prefix("[redacted ")
                .and_then(|rest| rest.split_once(']'));
            let Some((_, after)) = after else {
                return false;
            };
            rest = after;
        }
        let is_kept = rest.starts_with(kept);
        rest = rest.get(kept.len()..).unwrap_or_default();
        is_kept
    }) && rest.is_empty()
}

fn unmarked(marked: &str) -> String {
    marked.replace(['«', '»'], "")
}

/// Returns the rows that fail `is_right` in a round, with the result for the first.
fn wrong(
    file: &'static str,
    is_right: impl Fn(&mut Dice, &str) -> Result<(), String>,
) -> (usize, Vec<String>) {
    let mut all = 0;
    let mut wrong = Vec::new();
    for (number, row) in rows(file).enumerate() {
        all += 1;
        let try_once = |round| is_right(&mut Dice(round << 16 | number as u64), row);
        wrong.extend((0..ROUNDS).find_map(|round| try_once(round).err()));
    }
    (all, wrong)
}

fn of_text(dice: &mut Dice, row: &str) -> Result<(), String> {
    let (marked, _) = dice.filled(&broken(row));
    let text = unmarked(&marked);
    let case = read(&BTreeMap::new(), &text);
    if !is_without(&marked, &case) {
        return Err(format!("{marked}\n  {case}"));
    }
    // A line of JSON that has it stays one, and it is found there too.
    let line = serde_json::json!({ "a": text }).to_string();
    let case = read(&BTreeMap::new(), &line);
    let value: serde_json::Value =
        serde_json::from_str(&case).map_err(|error| format!("{line}\n  {case}: {error}"))?;
    if is_without(&marked, value["a"].as_str().unwrap_or_default()) {
        Ok(())
    } else {
        Err(format!("{marked}\n  in JSON: {case}"))
    }
}

fn of_variable(dice: &mut Dice, row: &str) -> Result<(), String> {
    let fields: Vec<&str> = row.splitn(3, " ~ ").collect();
    let (value, parts) = dice.filled(&broken(fields[1]));
    let marked = parts.iter().enumerate().fold(
        broken(fields[2]).replace("$0", &value),
        |text, (at, part)| text.replace(&format!("${}", at + 1), part),
    );
    let known = keys(fields[0], &value)
        .into_iter()
        .map(|(name, value)| (value, name));
    let case = read(&known.collect(), &unmarked(&marked));
    if is_without(&marked, &case) {
        Ok(())
    } else {
        Err(format!("{}={value}: {marked}\n  {case}", fields[0]))
    }
}

fn of_harmless(dice: &mut Dice, row: &str) -> Result<(), String> {
    let (text, _) = dice.filled(&broken(row));
    let line = serde_json::json!({ "a": text }).to_string();
    let variable = text.split_once('=').map(|(name, value)| keys(name, value));
    let has_name = |name: &str| !name.is_empty() && name.bytes().all(is_word);
    let is_named = text.split_once('=').is_some_and(|(name, _)| has_name(name));
    if is_named && variable.is_some_and(|found| !found.is_empty()) {
        return Err(format!("{text}\n  as a variable"));
    }
    for text in [text, line] {
        let case = read(&BTreeMap::new(), &text);
        if case != text {
            return Err(format!("{text}\n  {case}"));
        }
    }
    Ok(())
}

#[test]
fn each_secret_is_found_and_nothing_else_is() {
    let (texts, missed) = wrong(include_str!("corpus/secrets.txt"), of_text);
    let (variables, missed_values) = wrong(include_str!("corpus/variables.txt"), of_variable);
    let (harmless, touched) = wrong(include_str!("corpus/harmless.txt"), of_harmless);
    assert!(texts >= 200 && variables >= 25 && harmless >= 200);
    let (all, lost) = (texts + variables, missed.len() + missed_values.len());
    let list = [missed, missed_values, touched.clone()].concat().join("\n");
    assert!(
        list.is_empty(),
        "{list}\nrecall {}/{all}, precision {}/{}: {}/{harmless} harmless texts were changed",
        all - lost,
        all - lost,
        all - lost + touched.len(),
        touched.len(),
    );
}
