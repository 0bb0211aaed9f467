//! Which file of a crate uses which, read from its paths (`use` and inline): imports between files form no circle.
//!
//! A name that a file re-exports counts for the file that defines it, so a `mod.rs` that only declares is never used.
//! Reads text, not types: a method is not seen, nor what stands in the tests at the end of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::tidy::{assert_none, code, read, rust_files};

#[test]
fn files_form_no_circle() {
    let mut faults = Vec::new();
    let crates = ["core", "git", "run", "store", "sys"].map(|room| format!("crates/{room}/src"));
    let packages = crates.iter().map(|folder| (folder.as_str(), "lib.rs"));
    let programs = [
        ("src", "lib.rs"),
        ("benches/programs", "main.rs"),
        ("tests/all", "main.rs"),
    ];
    for (folder, root) in packages.chain(programs) {
        let sources = Sources::read(folder, &Path::new(folder).join(root));
        assert!(
            sources.uses().values().any(|used| !used.is_empty()),
            "{folder}: imports are found"
        );
        for circle in sources.circles() {
            let files: Vec<String> = circle
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            faults.push(files.join(", "));
        }
    }
    assert_none(&faults, "files that use each other");
}

/// A module by its path from the crate: empty for the crate itself.
type Module = Vec<String>;

/// The files of one crate.
struct Sources {
    files: BTreeMap<Module, Source>,
}

struct Source {
    path: PathBuf,
    /// Modules that the file declares with `mod name;`.
    children: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths in the code itself: `name::other`, `crate::name`.
    paths: BTreeSet<Module>,
    /// Every word of the code itself.
    words: BTreeSet<String>,
}

/// One name that a `use` brings in.
struct Import {
    name: String,
    path: Module,
    is_public: bool,
}

impl Sources {
    fn read(folder: &str, root: &Path) -> Sources {
        let files = rust_files(folder)
            .into_iter()
            .filter(|path| !path.starts_with("src/bin"));
        let file = |path: PathBuf| {
            let module = if path == root {
                Vec::new()
            } else {
                module_of(path.strip_prefix(folder).expect("it is below"))
            };
            let text: Vec<String> = code(&read(&path)).map(without_comment).collect();
            (module, Source::parse(path, &text.join("\n")))
        };
        Sources {
            files: files.map(file).collect(),
        }
    }

    /// The modules that each file uses.
    fn uses(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let uses = |(module, source): (&'_ Module, &Source)| {
            let needed =
                |import: &&Import| !import.is_public || source.words.contains(&import.name);
            let imported = source
                .imports
                .iter()
                .filter(needed)
                .map(|import| &import.path);
            let used = imported
                .chain(&source.paths)
                .filter_map(|path| self.defining(module, path, 0));
            used.filter(|used| used != module).collect()
        };
        self.files
            .iter()
            .map(|(module, source)| (module, uses((module, source))))
            .collect()
    }

    /// The module whose file defines what `path` names in `module`; none for another crate's.
    fn defining(&self, module: &Module, path: &[String], depth: usize) -> Option<Module> {
        let source = self.files.get(module)?;
        // A name may be imported under itself: `use super::name`.
        let (first, rest) = path.split_first().filter(|_| depth < 10)?;
        match first.as_str() {
            "crate" => self.inside(&Vec::new(), rest, depth),
            "self" => self.inside(module, rest, depth),
            "super" => self.inside(
                &module[..module.len().checked_sub(1)?].to_vec(),
                rest,
                depth,
            ),
            name if source.children.contains(name) => self.inside(module, path, depth),
            name => {
                let import = source.imports.iter().find(|import| import.name == *name)?;
                let whole: Module = import.path.iter().chain(rest).cloned().collect();
                self.defining(module, &whole, depth + 1)
            }
        }
    }

    /// As [`Sources::defining`], of a path that begins with a name of `module`'s own.
    fn inside(&self, module: &Module, path: &[String], depth: usize) -> Option<Module> {
        let source = self.files.get(module)?;
        let Some((first, rest)) = path.split_first() else {
            return Some(module.clone());
        };
        if first == "super" {
            return self.inside(
                &module[..module.len().checked_sub(1)?].to_vec(),
                rest,
                depth,
            );
        }
        let child: Module = module.iter().chain([first]).cloned().collect();
        if self.files.contains_key(&child) {
            return self.inside(&child, rest, depth);
        }
        if source.imports.iter().any(|import| import.name == *first) {
            return self.defining(module, path, depth + 1);
        }
        Some(module.clone())
    }

    /// The files of each circle.
    fn circles(&self) -> Vec<Vec<&Path>> {
        let uses = self.uses();
        let reached: BTreeMap<&Module, BTreeSet<&Module>> = self
            .files
            .keys()
            .map(|module| (module, reach(module, &uses)))
            .collect();
        let mut circles = Vec::new();
        let mut seen = BTreeSet::new();
        for (module, reaches) in &reached {
            if reaches.contains(module) && !seen.contains(module) {
                let circle: Vec<&Module> = reaches
                    .iter()
                    .copied()
                    .filter(|other| reached[other].contains(module))
                    .collect();
                seen.extend(circle.iter().copied());
                circles.push(
                    circle
                        .iter()
                        .map(|module| self.files[*module].path.as_path())
                        .collect(),
                );
            }
        }
        circles
    }
}

/// The modules that can be reached from `start` in a step or more.
fn reach<'a>(
    start: &Module,
    uses: &'a BTreeMap<&Module, BTreeSet<Module>>,
) -> BTreeSet<&'a Module> {
    let mut reached: BTreeSet<&Module> = BTreeSet::new();
    let mut open: Vec<&Module> = uses[start].iter().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(uses[module].iter());
        }
    }
    reached
}

impl Source {
    fn parse(path: PathBuf, text: &str) -> Source {
        let mut source = Source {
            path,
            children: BTreeSet::new(),
            imports: Vec::new(),
            paths: BTreeSet::new(),
            words: BTreeSet::new(),
        };
        let mut body = String::new();
        let mut statement: Option<(bool, String)> = None;
        for line in text.lines() {
            let line = line.trim();
            let is_public = line.starts_with("pub");
            let item = line
                .strip_prefix("pub")
                .map_or(line, |rest| match rest.strip_prefix('(') {
                    Some(rest) => rest.split_once(')').map_or(rest, |(_, rest)| rest),
                    None => rest,
                });
            let item = item.trim_start();
            if statement.is_none() {
                if let Some(name) = item
                    .strip_prefix("mod ")
                    .and_then(|name| name.strip_suffix(';'))
                {
                    source.children.insert(name.to_owned());
                    continue;
                }
                if item.starts_with("use ") {
                    statement = Some((is_public, String::new()));
                }
            }
            let Some((_, written)) = &mut statement else {
                body.push_str(line);
                body.push('\n');
                continue;
            };
            written.push_str(if written.is_empty() {
                &item["use ".len()..]
            } else {
                line
            });
            if line.ends_with(';') {
                let (is_public, written) = statement.take().expect("it is there");
                expand(
                    "",
                    written.trim_end_matches(';'),
                    is_public,
                    &mut source.imports,
                );
            }
        }
        for path in body.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
            let names: Module = path.split("::").map(str::to_owned).collect();
            source.words.extend(names.iter().cloned());
            if names.len() > 1 {
                source.paths.insert(names);
            }
        }
        source
    }
}

/// The imports of a `use` tree beneath `prefix`, which ends with `::` or is empty.
fn expand(prefix: &str, tree: &str, is_public: bool, imports: &mut Vec<Import>) {
    let tree = tree.trim();
    if let Some((head, rest)) = tree.split_once('{') {
        let prefix = format!("{prefix}{head}");
        let inner = rest
            .strip_suffix('}')
            .expect("what rustfmt has written is balanced");
        let (mut depth, mut start) = (0, 0);
        for (place, c) in inner.char_indices().chain([(inner.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&prefix, &inner[start..place], is_public, imports);
                    start = place + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (written, alias) = tree
        .split_once(" as ")
        .map_or((tree, None), |(path, alias)| (path, Some(alias)));
    let written = format!("{prefix}{written}");
    let path: Module = written
        .trim_end_matches("::self")
        .split("::")
        .map(str::to_owned)
        .collect();
    let name = alias
        .unwrap_or(path.last().expect("split gives one at least"))
        .to_owned();
    if !tree.is_empty() && name != "*" {
        imports.push(Import {
            name,
            path,
            is_public,
        });
    }
}

/// `board/merge.rs` and `board/merge/mod.rs` are both `board::merge`.
fn module_of(path: &Path) -> Module {
    let mut names: Module = path
        .with_extension("")
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if names.last().is_some_and(|name| name == "mod") {
        names.pop();
    }
    names
}

/// A line up to a comment behind its code.
fn without_comment(line: &str) -> String {
    line.split(" // ").next().unwrap_or_default().to_owned()
}

#[test]
fn circles_are_found() {
    let parsed = |(module, text): &(&str, &str)| {
        let module: Module = module
            .split("::")
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        let path = PathBuf::from(module.join("/"));
        (module, Source::parse(path, text))
    };
    let circles = |files: &[(&str, &str)]| {
        let sources = Sources {
            files: files.iter().map(parsed).collect(),
        };
        format!("{:?}", sources.circles()).replace('"', "")
    };
    let root = ("", "mod room;");
    let declares = (
        "room",
        "mod a;\nmod b;\npub use a::One;\npub use b::{Two, Three as Four};",
    );
    // Through re-exports, with `super` and with `crate`, as imports and inline.
    let a = ("room::a", "use super::Two;\nstruct One;");
    let b = ("room::b", "struct Two;\nstruct Three;");
    assert_eq!(circles(&[root, declares, a, b]), "[]");
    let back = ("room::b", "struct Two(crate::room::One);");
    assert_eq!(circles(&[root, declares, a, back]), "[[room/a, room/b]]");
    let inline = ("room::b", "use crate::room;\nfn two() -> room::a::One {}");
    assert_eq!(circles(&[root, declares, a, inline]), "[[room/a, room/b]]");
    // What a module's file only hands on is not used by it; what it works with is.
    let defines = ("room", "mod a;\npub use a::One;\npub struct Rule;");
    let child = ("room::a", "use super::{\n    Rule,\n};\nstruct One;");
    assert_eq!(circles(&[root, defines, child]), "[]");
    let works = ("room", "mod a;\npub use a::One;\npub struct Rule(One);");
    assert_eq!(circles(&[root, works, child]), "[[room, room/a]]");
    // An alias, and a path of another crate.
    let alias = ("room::a", "use std::fmt;\nuse super::Four;\nstruct One;");
    assert_eq!(
        circles(&[root, declares, alias, back]),
        "[[room/a, room/b]]"
    );
}
