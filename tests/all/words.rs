//! What signatures and pages say: no boolean parameters, and nothing named that is not there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::tidy::{assert_none, code, read, rust_files, sources};

#[test]
fn no_parameter_is_boolean() {
    let mut faults = Vec::new();
    for path in sources() {
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
fn what_pages_name_is_there() {
    let sources: BTreeSet<String> = ["src", "crates", "tests", "benches"]
        .into_iter()
        .flat_map(rust_files)
        .map(|path| read(&path))
        .collect();
    let words: BTreeSet<&str> = sources
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .collect();
    let files: Vec<PathBuf> = ["src", "crates", "tests", "benches", "fuzz"]
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
    let files = ["src", "crates", "tests", "benches", "fuzz/fuzz_targets"]
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

/// In 1,000 words of each kind of text, how many of these may stand: those for people without a name, and those that begin a clause in the place
/// of a subject. The figures may only fall.
const MOST_OF_1000: [(&str, [f64; 2]); 3] = [
    ("pages", [0.1, 0.5]),
    ("messages", [0.05, 0.6]),
    ("comments", [0.05, 0.3]),
];

const VAGUE: [&[&str]; 2] = [
    &["nobody", "somebody", "anybody", "whoever", "told", "said"],
    &["what", "who", "whose", "whatever"],
];

#[test]
fn words_are_plain() {
    let joined = |paths: &mut dyn Iterator<Item = PathBuf>| {
        paths.map(|path| read(&path) + "\n").collect::<String>()
    };
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let (mut messages, mut comments) = (String::new(), String::new());
    for text in sources().iter().map(read) {
        comments.extend(
            text.lines()
                .filter(is_comment)
                .flat_map(|line| [line, "\n"]),
        );
        let literals = code(&text)
            .filter(|line| !is_comment(line))
            .flat_map(|line| line.split('"').skip(1).step_by(2));
        let sentences = literals.filter(|literal| literal.contains(' '));
        messages.extend(sentences.flat_map(|literal| [literal, "\n"]));
    }
    let texts = [joined(&mut pages().into_iter()), messages, comments];
    let mut faults = Vec::new();
    for ((kind, most), text) in MOST_OF_1000.iter().zip(&texts) {
        let words: Vec<String> = text
            .split(|c: char| !c.is_alphabetic() && c != '\'')
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        for (vague, most) in VAGUE.iter().zip(most) {
            let count = words.iter().filter(|word| vague.contains(&word.as_str()));
            let share = 1000.0 * count.count() as f64 / words.len() as f64;
            if share > *most {
                faults.push(format!(
                    "{kind}: {share:.2} of 1,000 are one of {vague:?}, and {most} may be"
                ));
            }
        }
    }
    assert_none(&faults, "name the subject, and put it first");
}
