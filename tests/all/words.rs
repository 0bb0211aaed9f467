//! What comments and pages say: short sentences, names that stand once, and nothing named that is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::tidy::{assert_none, code, read, rust_files};

/// Words of a sentence.
const MOST_WORDS: usize = 40;

/// Names that more than one type may have: a verb's flags and its line of JSON, and the error of a room, which is called
/// so in all of Rust (`io::Error`) and read with its room: `store::Error`, `run::Error`.
const OF_EACH: [&str; 3] = ["Args", "Record", "Error"];

#[test]
fn sentences_are_short() {
    let mut faults = Vec::new();
    let files = ["src", "tests", "benches", "fuzz/fuzz_targets"]
        .into_iter()
        .flat_map(rust_files);
    for path in files.chain(pages()) {
        let text = read(&path);
        let text = if path.extension().is_some_and(|extension| extension == "rs") {
            doc_comments(&text)
        } else {
            text
        };
        for sentence in sentences(&text) {
            let words = sentence.split_whitespace().count();
            if words > MOST_WORDS {
                faults.push(format!("{}: {words} words: {sentence}", path.display()));
            }
        }
    }
    assert_none(&faults, "sentences that should be two");
}

#[test]
fn sentences_are_told_apart() {
    let text = "# A heading\nOne sentence, over\ntwo lines. Another: e.g. this; `a. B` is code!\n\n- an entry\n- the next\n\n    let code = 1;\n```\ncode\n```\n| a | table |\nThe last";
    let expected = [
        "One sentence, over two lines.",
        "Another: e.g. this; `a. B` is code!",
        "- an entry",
        "- the next",
        "The last",
    ];
    assert_eq!(sentences(text), expected);
}

#[test]
fn no_parameter_is_boolean() {
    let mut faults = Vec::new();
    for path in rust_files("src") {
        let text: Vec<String> = code(&read(&path))
            .map(|line| line.trim().to_owned())
            .collect();
        for signature in text.join(" ").split(" fn ").skip(1) {
            let parameters = signature
                .split(" -> ")
                .next()
                .and_then(|head| head.split([';', '{']).next());
            let name = signature.split('(').next().unwrap_or_default();
            // One has its signature from serde.
            let is_ours = !name.starts_with("visit_bool");
            if is_ours && parameters.is_some_and(|parameters| parameters.contains(": bool")) {
                faults.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert_none(
        &faults,
        "functions with a boolean parameter: make it an enum, or two functions",
    );
}

#[test]
fn a_type_has_a_name_of_its_own() {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in rust_files("src") {
        for line in code(&read(&path)) {
            if let Some(name) = type_defined(line) {
                files
                    .entry(name.to_owned())
                    .or_default()
                    .push(path.display().to_string());
            }
        }
    }
    assert!(files.len() > 100, "types are found");
    let twice = files
        .into_iter()
        .filter(|(name, files)| files.len() > 1 && !OF_EACH.contains(&name.as_str()));
    let faults: Vec<String> = twice
        .map(|(name, files)| format!("`{name}`: {}", files.join(", ")))
        .collect();
    assert_none(&faults, "names that more than one type has");
}

/// The name of the type that `line` defines at the top of its file.
fn type_defined(line: &str) -> Option<&str> {
    let item = line
        .strip_prefix("pub(crate) ")
        .or(line.strip_prefix("pub(super) "))
        .unwrap_or(line);
    let item = item.strip_prefix("pub ").unwrap_or(item);
    let name = ["struct ", "enum ", "trait ", "type "]
        .iter()
        .find_map(|kind| item.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

#[test]
fn what_pages_name_is_there() {
    let sources: BTreeSet<String> = ["src", "tests", "benches"]
        .into_iter()
        .flat_map(rust_files)
        .map(|path| read(&path))
        .collect();
    let words: BTreeSet<&str> = sources
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .collect();
    let files: Vec<PathBuf> = ["src", "tests", "benches", "fuzz"]
        .into_iter()
        .flat_map(rust_files)
        .collect();
    let mut faults = Vec::new();
    for page in pages() {
        let text = read(&page);
        // Every second piece stands between backquotes.
        for name in text.split('`').skip(1).step_by(2) {
            let is_known = if name.ends_with(".rs") && !name.contains("VERB") {
                files.iter().any(|path| path.ends_with(name))
            } else if name.contains("::") || name.contains('_') {
                let parts = name.split("::").map(|part| part.trim_end_matches("()"));
                let is_name = |part: &str| part.chars().all(|c| c.is_alphanumeric() || c == '_');
                parts
                    .filter(|part| is_name(part))
                    .all(|part| part == "crate" || words.contains(part))
            } else {
                true
            };
            if !is_known {
                faults.push(format!("{}: `{name}`", page.display()));
            }
        }
    }
    assert_none(&faults, "names that nothing in the code has");
}

#[test]
fn nothing_refers_to_a_page_that_is_not_here() {
    let mut faults = Vec::new();
    let files = ["src", "tests", "benches", "fuzz/fuzz_targets"]
        .into_iter()
        .flat_map(rust_files);
    for path in files.chain(pages()) {
        for (number, line) in read(&path).lines().enumerate() {
            // Between brackets, one letter and up to two digits.
            let marks = line
                .split('(')
                .skip(1)
                .filter_map(|rest| rest.split_once(')'));
            let is_mark = |mark: &str| {
                let digits = mark
                    .strip_prefix(|c: char| c.is_ascii_uppercase())
                    .unwrap_or_default();
                !digits.is_empty() && digits.len() < 3 && digits.chars().all(|c| c.is_ascii_digit())
            };
            if line.contains('\u{a7}') || marks.map(|(mark, _)| mark).any(is_mark) {
                faults.push(format!(
                    "{}:{}: {}",
                    path.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert_none(
        &faults,
        "references to sections and rows of pages that are not in the repository",
    );
}

/// The pages for people, as paths from the root.
fn pages() -> Vec<PathBuf> {
    let folders = ["specs", "tests/commands"]
        .map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    let files = folders
        .into_iter()
        .flat_map(|folder| walkdir::WalkDir::new(folder).sort_by_file_name());
    let files = files
        .map(|entry| entry.expect("the folder can be read").into_path())
        .filter(|path| path.extension() == Some("md".as_ref()));
    let files = files.map(|path| {
        path.strip_prefix(env!("CARGO_MANIFEST_DIR"))
            .expect("it is below")
            .to_owned()
    });
    let own = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
    ]
    .map(PathBuf::from);
    own.into_iter().chain(files).collect()
}

/// The text of the doc comments of a file, an empty line between any two.
fn doc_comments(text: &str) -> String {
    let line = |line: &str| -> String {
        let line = line.trim_start();
        let doc = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        doc.map(|doc| doc.strip_prefix(' ').unwrap_or(doc))
            .unwrap_or_default()
            .to_owned()
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The sentences of Markdown: no headings, tables or code.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut paragraph = String::new();
    let mut is_code = false;
    for line in text.lines().chain([""]) {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```");
        is_code ^= is_fence;
        let is_prose = !is_code
            && !is_fence
            && !trimmed.starts_with(['|', '#', '<'])
            && !line.starts_with("    ");
        let is_entry = ["- ", "* "].iter().any(|mark| trimmed.starts_with(mark))
            || trimmed
                .split_once(". ")
                .is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        // A long line of an entry goes on beneath it, indented.
        let is_continued = !paragraph.is_empty() && line.starts_with(' ') && !is_code && !is_fence;
        if trimmed.is_empty() || is_entry || !(is_prose || is_continued) {
            split_sentences(&std::mem::take(&mut paragraph), &mut sentences);
        }
        if !trimmed.is_empty() && (is_prose || is_continued) {
            paragraph.push_str(trimmed);
            paragraph.push(' ');
        }
    }
    sentences
}

/// A sentence ends with a mark before a space and a capital letter, or with the paragraph.
fn split_sentences(paragraph: &str, sentences: &mut Vec<String>) {
    let mut start = 0;
    let mut is_code = false;
    for (place, c) in paragraph.char_indices() {
        is_code ^= c == '`';
        let rest = &paragraph[place + c.len_utf8()..];
        let next = rest
            .trim_start()
            .trim_start_matches(['*', '_', '`', '"', '[', '('])
            .chars()
            .next();
        let ends = ['.', '!', '?'].contains(&c) && rest.starts_with(' ');
        if ends && !is_code && next.is_none_or(char::is_uppercase) {
            sentences.push(paragraph[start..=place].trim().to_owned());
            start = place + 1;
        }
    }
    let last = paragraph[start..].trim();
    if !last.is_empty() {
        sentences.push(last.to_owned());
    }
}
