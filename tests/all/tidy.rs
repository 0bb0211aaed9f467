//! The house rules that no lint holds: code, documents and tables say the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tavern::{Exit, PROGRAMS};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust file under `folder`, if there is one, as paths from the root.
pub fn rust_files(folder: &str) -> Vec<PathBuf> {
    if !root().join(folder).exists() {
        return Vec::new();
    }
    let entries = walkdir::WalkDir::new(root().join(folder)).sort_by_file_name();
    let files = entries
        .into_iter()
        .map(|entry| entry.expect("the tree can be read").into_path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files
        .map(|path| path.strip_prefix(root()).expect("it is below").to_owned())
        .collect()
}

/// The lines of `text` that are no comments, up to the tests at its end.
pub fn code(text: &str) -> impl Iterator<Item = &str> {
    let is_tests = |at: &usize| {
        let after = text[*at..].lines().skip(2).find(|line| {
            !["#[", "    ", ")]"]
                .iter()
                .any(|start| line.starts_with(start))
        });
        after.is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    let end = text
        .match_indices("\n#[cfg(test)]\n")
        .map(|(at, _)| at)
        .find(is_tests)
        .unwrap_or(text.len());
    text[..end]
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
}

/// The cells of each row of the first table in `text` whose heading begins with `first`.
fn table(text: &str, first: &str) -> Vec<Vec<String>> {
    let heading = format!("| {first} |");
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with(&heading))
        .skip(2);
    // A bar inside a cell is written `\|`.
    let cells = |row: &str| -> Vec<String> {
        let row = row.replace("\\|", "\u{0}");
        row.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().replace('\u{0}', "|"))
            .collect()
    };
    rows.take_while(|line| line.starts_with('|'))
        .map(cells)
        .collect()
}

/// The sources of the program and of every crate, as paths from the root.
pub fn sources() -> Vec<PathBuf> {
    let mut files = rust_files("src");
    files.extend(rust_files("crates"));
    files
}

pub fn assert_none(faults: &[String], rule: &str) {
    assert!(faults.is_empty(), "{rule}:\n  {}\n", faults.join("\n  "));
}

#[test]
fn every_file_says_what_it_is() {
    let mut faults = Vec::new();
    for path in sources()
        .into_iter()
        .chain(rust_files("tests"))
        .chain(rust_files("benches"))
        .chain(rust_files("fuzz/fuzz_targets"))
    {
        if !read(&path).starts_with("//! ") {
            faults.push(path.display().to_string());
        }
    }
    assert_none(
        &faults,
        "files that don't open with `//!`: what it is, and what it does not know",
    );
}

#[test]
fn files_are_named_for_what_they_are() {
    let vague = [
        "util", "utils", "helper", "helpers", "manager", "common", "misc",
    ];
    let is_vague = |path: &PathBuf| {
        path.file_stem()
            .is_some_and(|stem| vague.iter().any(|name| stem == *name))
    };
    let faults: Vec<String> = sources()
        .iter()
        .filter(|path| is_vague(path))
        .map(|path| path.display().to_string())
        .collect();
    assert_none(&faults, "files whose name says nothing");
}

#[test]
fn what_is_public_is_documented() {
    let kinds = [
        "struct",
        "enum",
        "trait",
        "fn",
        "const",
        "static",
        "type",
        "unsafe fn",
        "const fn",
    ];
    let mut faults = Vec::new();
    for path in sources() {
        let text = read(&path);
        let mut documented = false;
        for (number, line) in text.lines().enumerate() {
            let public = line.strip_prefix("pub ");
            if public.is_some_and(|rest| {
                kinds
                    .iter()
                    .any(|kind| rest.starts_with(&format!("{kind} ")))
            }) && !documented
            {
                faults.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
            // Attributes may stand between the comment and the item.
            let is_between =
                line.starts_with("#[") || line.starts_with("    ") || line.starts_with(")]");
            documented = line.starts_with("///") || (documented && is_between);
        }
    }
    assert_none(&faults, "public items without a doc comment");
}

#[test]
fn no_test_is_ignored_or_forgotten() {
    let mut faults = Vec::new();
    for path in sources().into_iter().chain(rust_files("tests")) {
        // Spelt in two parts, or this line would be one.
        if code(&read(&path)).any(|line| line.trim_start().starts_with(concat!("#[", "ignore"))) {
            faults.push(format!("{}: an ignored test", path.display()));
        }
    }
    let main = read("tests/all/main.rs");
    for path in rust_files("tests/all") {
        let place = path.strip_prefix("tests/all").expect("it is below");
        let module = place
            .components()
            .next()
            .expect("it has a name")
            .as_os_str()
            .to_string_lossy();
        let module = module.trim_end_matches(".rs");
        if module != "main" && !main.contains(&format!("mod {module};")) {
            faults.push(format!(
                "{}: no `mod {module};` in tests/all/main.rs",
                path.display()
            ));
        }
    }
    assert_none(&faults, "tests that nobody runs");
}

#[test]
fn every_program_is_in_every_table() {
    let wanted: Vec<Vec<String>> = PROGRAMS
        .iter()
        .map(|program| vec![format!("`tavern {}`", program.verb()), program.job()])
        .collect();
    let as_written: String = wanted
        .iter()
        .map(|row| format!("| {} | {} |\n", row[0], row[1].replace('|', "\\|")))
        .collect();
    let rows = table(&read("specs/commands.md"), "program");
    assert!(
        rows == wanted,
        "the table of programs in specs/commands.md should be\n{as_written}"
    );
    for program in PROGRAMS {
        program.command().debug_assert();
        let job = program.job();
        assert!(
            !job.is_empty() && !job.ends_with('.'),
            "{}: its one job in a line: `{job}`",
            program.name
        );
    }
}

#[test]
fn only_the_program_names_verbs() {
    let names: Vec<String> = PROGRAMS
        .iter()
        .flat_map(|program| {
            [
                format!("tavern {}", program.verb()),
                program.name.to_owned(),
            ]
        })
        .collect();
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
    // Blanks and hyphens stand in no name of the code: it is in a string.
    let is_named = |line: &str, name: &str| {
        line.match_indices(name)
            .any(|(at, _)| ends(&line[at + name.len()..]))
    };
    let mut faults = Vec::new();
    let above = ["src"];
    for path in sources()
        .into_iter()
        .filter(|path| !above.iter().any(|room| path.starts_with(room)))
    {
        let text = read(&path);
        let lines = code(&text).filter(|line| names.iter().any(|name| is_named(line, name)));
        faults.extend(lines.map(|line| format!("{}: {}", path.display(), line.trim())));
    }
    assert_none(
        &faults,
        "programs that are named below `src`; what to type next stands in src/hints.rs",
    );
}

#[test]
fn every_flag_has_help_and_variables_are_ours() {
    let mut faults = Vec::new();
    for program in PROGRAMS {
        for argument in program.command().get_arguments() {
            let name = argument.get_id();
            if argument.get_help().is_none() {
                faults.push(format!("{}: {name} has no help", program.name));
            }
            let variable = argument
                .get_env()
                .map(|variable| variable.to_string_lossy().into_owned());
            if variable.is_some_and(|variable| !variable.starts_with("TAVERN_")) {
                faults.push(format!(
                    "{}: the variable of {name} is not ours",
                    program.name
                ));
            }
        }
    }
    assert_none(&faults, "flags");
}

#[test]
fn exit_codes_are_those_of_the_spec() {
    let rows = table(&read("specs/exit-codes.md"), "code");
    let written: Vec<String> = rows.into_iter().map(|row| row[0].clone()).collect();
    let coded: Vec<String> = Exit::ALL
        .iter()
        .map(|exit| exit.code().to_string())
        .collect();
    assert_eq!(written, coded);
}

#[test]
fn outcomes_are_those_of_the_spec() {
    let rows = table(&read("specs/runners.md"), "outcome");
    let names: Vec<String> = rows
        .iter()
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect();
    let known: BTreeSet<&str> = tavern_run::runner::Outcome::NAMES
        .map(|(_, name)| name)
        .into();
    assert_eq!(
        names.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        known
    );
    let policies =
        serde_json::to_value(tavern_store::config::Outcomes::default()).expect("it is plain data");
    for row in rows {
        let name = row[0].trim_matches('`');
        let Some(policy) = policies.get(name) else {
            assert!(
                ["success", "waiting"].contains(&name),
                "{name} has no policy"
            );
            continue;
        };
        let answer = |key: &str| if policy[key] == true { "yes" } else { "no" };
        let text = |key: &str, usual: &str| policy[key].as_str().unwrap_or(usual).to_owned();
        let waits = if policy["retry"] == true {
            [text("backoff", "30s"), text("max_backoff", "")]
        } else {
            Default::default()
        };
        assert_eq!(
            row[2..],
            [answer("attempt"), answer("retry"), &waits[0], &waits[1]],
            "{name}"
        );
    }
}

#[test]
fn failpoints_are_listed_and_used() {
    let mut used = BTreeSet::new();
    for path in sources() {
        let text = read(&path);
        for line in code(&text) {
            for call in line.split("hit(\"").skip(1) {
                used.insert(call.split('"').next().unwrap_or_default().to_owned());
            }
        }
    }
    let listed: BTreeSet<String> = tavern_sys::failpoint::LIST
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(used, listed, "calls of `hit`, and failpoint::LIST");
    assert_eq!(
        listed.len(),
        tavern_sys::failpoint::LIST.len(),
        "each is listed once"
    );
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut faults = Vec::new();
    let pages = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ]
    .map(PathBuf::from);
    let specs = fs::read_dir(root().join("specs")).expect("there are specs");
    let specs =
        specs.map(|entry| Path::new("specs").join(entry.expect("it can be read").file_name()));
    for page in pages.into_iter().chain(specs) {
        let text = read(&page);
        for link in text.split("](").skip(1) {
            let link = link.split([')', '#']).next().unwrap_or_default();
            let is_ours = !link.is_empty() && !link.contains(':');
            if is_ours
                && !root()
                    .join(page.parent().expect("it is in a folder"))
                    .join(link)
                    .exists()
            {
                faults.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert_none(&faults, "links that lead nowhere");
}
