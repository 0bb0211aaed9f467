//! The page to look at: what it tells, and what it makes of words that a browser would obey.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{QUEUE, Ran, Scratch, has};

/// Elements without an end.
const VOID: [&str; 2] = ["meta", "br"];

/// An element with its attributes.
#[derive(Debug)]
struct Tag {
    name: String,
    attributes: BTreeMap<String, String>,
}

/// The elements of a page and its words. A reader that takes nothing amiss: each mark is a whole tag, is closed in its order, and has each
/// attribute once, between double quotes.
fn read(html: &str) -> (Vec<Tag>, String) {
    let (mut tags, mut words, mut open): (Vec<Tag>, String, Vec<String>) =
        (Vec::new(), String::new(), Vec::new());
    let mut rest = html
        .strip_prefix("<!DOCTYPE html>")
        .expect("it says what it is");
    while let Some(start) = rest.find('<') {
        assert!(
            !rest[..start].contains('>'),
            "a stray mark in {}",
            &rest[..start]
        );
        words.push_str(&unescaped(&rest[..start]));
        let end = start + rest[start..].find('>').expect("a tag has an end");
        let inner = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = inner.strip_prefix('/') {
            assert_eq!(
                open.pop().as_deref(),
                Some(name),
                "what is closed is what was opened last"
            );
            continue;
        }
        let (inner, is_closed) = inner
            .strip_suffix('/')
            .map_or((inner, false), |inner| (inner, true));
        let (name, mut left) = inner.split_once([' ', '\n']).unwrap_or((inner, ""));
        assert!(
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()),
            "`{name}` is no name"
        );
        let mut attributes = BTreeMap::new();
        while !left.trim().is_empty() {
            left = left.trim_start();
            let (key, value) = match left.split_once("=\"") {
                Some((key, more)) if !key.contains(' ') => {
                    let (value, more) = more.split_once('"').expect("a value has an end");
                    left = more;
                    (key, unescaped(value))
                }
                _ => {
                    let (key, more) = left.split_once(' ').unwrap_or((left, ""));
                    left = more;
                    (key, String::new())
                }
            };
            assert!(
                key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
                "`{key}` is no attribute"
            );
            assert!(
                attributes.insert(key.to_owned(), value).is_none(),
                "{name} has {key} twice"
            );
        }
        if name == "style" {
            let (style, more) = rest.split_once("</style>").expect("it has an end");
            assert!(!style.contains('<'));
            rest = more;
        } else if !is_closed && !VOID.contains(&name) {
            open.push(name.to_owned());
        }
        tags.push(Tag {
            name: name.to_owned(),
            attributes,
        });
    }
    assert_eq!(open, [""; 0], "all is closed");
    (tags, words + rest)
}

fn unescaped(text: &str) -> String {
    let text = ["&#60;", "&#62;", "&#34;", "&#39;", "&#8239;"]
        .iter()
        .zip(["<", ">", "\"", "'", "\u{202f}"])
        .fold(text.to_owned(), |text, (spelt, meant)| {
            text.replace(spelt, meant)
        });
    let plain = text.replace("&#38;", "");
    assert!(!plain.contains('&'), "an odd entity in {text}");
    text.replace("&#38;", "&")
}

/// Nothing in it can run, be loaded, or send anything.
#[track_caller]
fn is_harmless(html: &str) -> (Vec<Tag>, String) {
    let (tags, words) = read(html);
    let known = [
        "a",
        "b",
        "bdi",
        "body",
        "caption",
        "code",
        "dd",
        "defs",
        "del",
        "desc",
        "details",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "footer",
        "g",
        "h1",
        "h2",
        "h3",
        "h4",
        "head",
        "header",
        "html",
        "i",
        "ins",
        "li",
        "line",
        "main",
        "marker",
        "meta",
        "nav",
        "ol",
        "p",
        "path",
        "pre",
        "rect",
        "section",
        "span",
        "style",
        "summary",
        "svg",
        "table",
        "tbody",
        "td",
        "text",
        "th",
        "thead",
        "time",
        "title",
        "tr",
        "ul",
    ];
    for tag in &tags {
        assert!(known.contains(&tag.name.as_str()), "<{}>", tag.name);
        for (key, value) in &tag.attributes {
            assert!(
                !key.starts_with("on") && key != "style" && key != "src",
                "{tag:?}"
            );
            assert!(key != "href" || value.starts_with('#'), "{tag:?}");
        }
    }
    let policy = tags.iter().find(|tag| {
        tag.attributes
            .get("http-equiv")
            .is_some_and(|name| name == "Content-Security-Policy")
    });
    let policy = &policy.expect("it has a policy").attributes["content"];
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    let obeyed = |c: &char| {
        c.is_control() && !['\n', '\t'].contains(c)
            || "\u{202e}\u{2066}\u{200b}\u{feff}".contains(*c)
    };
    assert_eq!(html.chars().find(obeyed), None);
    let mut ids: Vec<&String> = tags
        .iter()
        .filter_map(|tag| tag.attributes.get("id"))
        .collect();
    let links = tags.iter().filter_map(|tag| tag.attributes.get("href"));
    for link in links {
        assert!(
            ids.iter().any(|id| link[1..] == **id),
            "nothing is at {link}"
        );
    }
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "each place has a name of its own");
    (tags, words)
}

fn page(scratch: &Scratch, more: &[&str]) -> String {
    scratch
        .run("tavern-report-html", &[&["--output", "-"], more].concat())
        .succeeds()
}

fn report(scratch: &Scratch, more: &[&str]) -> Ran {
    scratch.run("tavern-report-html", more)
}

const LIST: &str = "\
## Pending

- [ ] T-1: Write a greeting
  Mind the gap.
  ```sh
  echo Hello > greeting.txt; echo said so
  ```
- [ ] T-2: Count (max_attempts: 2)
  ```sh
  seq 100 130; exit 3
  ```
- [ ] T-3: Check (max_attempts: 1, done_when: [\"echo looked; false\"])
  ```sh
  echo a > a.txt
  ```
- [ ] T-4: Wait (after: [T-1, T-3])
  ```sh
  true
  ```
- [ ] T-5: Ask (role: coder)
  ```sh
  tavern report --waiting 'which, one?'
  ```
- [ ] Without an ID (status: draft)
";

const CONFIG: &str = "base: main\nroles: {coder: {runner: shell}}\noutcomes: {failed: {backoff: 0s}, empty: {backoff: 0s}}\n";

#[test]
fn the_page_tells_each_item_s_story() {
    let scratch = Scratch::shell(LIST, CONFIG);
    scratch
        .run("tavern-drain", &["--agents", "1", "--quiet"])
        .ends(1);
    let ran = report(&scratch, &[])
        .ends(0)
        .says("wrote tavern-report.html: 6 items, 5 runs, ");
    ran.says(&format!(
        "open it in a browser: file://{}/tavern-report.html\n",
        scratch.work().display()
    ));
    let html = scratch.read("tavern-report.html");
    let (tags, words) = is_harmless(&html);
    // What needs a person, with what to type.
    has(
        &words,
        &[
            "asks T-5 Ask",
            "which, one?",
            "tavern answer T-5 \"…\"",
            "dead T-2 Count",
            "tavern retry T-2",
        ],
    );
    has(
        &words,
        &[
            "need you",
            "1 of 5 went well",
            "Runs by agent",
            "How each item stood",
            "Nothing in this page runs",
        ],
    );
    // The stories: what was asked, said, changed and checked.
    has(
        &words,
        &[
            "Mind the gap.",
            "said so",
            "+++ b/greeting.txt",
            "+Hello",
            "exited with code 3",
            "$ echo looked; false",
            "130",
        ],
    );
    has(
        &words,
        &[
            "it waits for T-3 (dead)",
            "main:",
            "Without an ID",
            "By agent",
            "By role",
            "By model",
            "By day",
        ],
    );
    let count = |name: &str, class: &str| {
        let is_meant = |tag: &&Tag| {
            tag.name == name && tag.attributes.get("class").is_some_and(|own| own == class)
        };
        tags.iter().filter(is_meant).count()
    };
    assert_eq!(
        (count("path", "edge after"), count("details", "story")),
        (2, 6),
        "lines of the graph, and stories"
    );
    // Of one queue, and of what happened since.
    scratch.write(
        ".tavern/queues/other.md",
        "---\nid: other\n---\n- [ ] O-1: Elsewhere\n",
    );
    has(
        &is_harmless(&page(&scratch, &[])).1,
        &["Elsewhere", "Write a greeting"],
    );
    let other = is_harmless(&page(&scratch, &["other"])).1;
    assert!(
        other.contains("Elsewhere") && !other.contains("Write a greeting"),
        "{other}"
    );
    let later = scratch
        .program("tavern-report-html")
        .args(&["-o", "-", "--since", "1h ago"]);
    let later = is_harmless(&later.variable("TAVERN_TEST_NOW", "+86400").run().succeeds()).1;
    assert!(
        later.contains("Write a greeting") && !later.contains("T-1@"),
        "{later}"
    );
}

#[test]
fn a_board_without_items_has_a_page_too() {
    let scratch = Scratch::board("");
    has(
        &is_harmless(&page(&scratch, &[])).1,
        &[
            "Nothing waits for a person.",
            "There are no items.",
            "Nothing has happened yet.",
        ],
    );
}

#[test]
fn what_cannot_be_written_is_told() {
    let scratch = Scratch::shell("- [ ] T-1: One\n  ```sh\n  true\n  ```\n", "");
    report(&scratch, &["-o", "none/page.html"])
        .ends(1)
        .says("error: can't write `none/page.html`\n")
        .says("hint: name a file in an existing folder: -o report.html\n");
    report(&scratch, &["page.html"])
        .ends(2)
        .says("hint: name the file by a flag: tavern report-html -o page.html\n");
    report(&scratch, &["nope"]).ends(2).says("nope");
    report(&scratch, &["--since", "soon"]).ends(2);
    assert!(!scratch.work().join("tavern-report.html").exists());
    // What a person has written is not written over.
    for own in [QUEUE, ".git/config"] {
        let before = scratch.read(own);
        report(&scratch, &["-o", own])
            .ends(2)
            .says(&format!("`{own}` exists, and is another kind of file"));
        for flag in ["--html", "--junit"] {
            scratch
                .run("tavern-drain", &[flag, own])
                .ends(2)
                .says("name another file: ");
        }
        assert_eq!(scratch.read(own), before, "{own}");
    }
    for _ in 0..2 {
        report(&scratch, &["-o", "page.html"]).ends(0);
        scratch.run("tavern-drain", &["--junit", "junit.xml"]);
    }
    assert!(scratch.read("junit.xml").starts_with("<?xml"));
}

/// Ends what it stands in, in every way, and begins something that would run.
const HOSTILE: [&str; 8] = [
    "</title></style></pre></details><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "<!--<svg/onload=alert(1)>",
    "javascript:alert(1) &lt;b&gt; &#60;i&#62;",
    "{{ 7 * 7 }}{% include \"x\" %}",
    "\u{202e}gpj.exe\u{2066}\u{200b}\u{feff}",
    "]]><foreignObject><iframe srcdoc='x'>",
];

#[test]
fn hostile_words_are_shown_and_do_nothing() {
    let all = HOSTILE.join(" ");
    let items: String = HOSTILE
        .iter()
        .enumerate()
        .map(|(number, words)| {
            let script = format!("cat <<'END'\n  {words}\n  \u{1b}[31m\u{1b}]0;x\u{7}\n  END\n  cat <<'END' > 'f{number}.txt'\n  {words}\n  END");
            format!("- [ ] T-{number}1: {words}\n  {words}\n  ```sh\n  {script}\n  ```\n")
        })
        .collect();
    let scratch = Scratch::shell(
        &format!(
            "## Pending\n\n{items}- [ ] T-99: Ask\n  ```sh\n  tavern report --waiting \"$(cat ~/words)\"\n  ```\n"
        ),
        CONFIG,
    );
    scratch.write("../home/words", &all);
    scratch.run("tavern-drain", &["--agents", "1", "--quiet"]);
    let run = scratch.json("tavern-runs", &["list", "--last", "1"])["run"]
        .as_str()
        .expect("it has a name")
        .to_owned();
    let mut metadata: serde_json::Value =
        serde_json::from_str(&scratch.read(format!(".tavern/runs/{run}/metadata.json")))
            .expect("it is JSON");
    for key in [
        "agent", "role", "model", "runner", "reason", "commit", "summary", "title",
    ] {
        metadata[key] = all.clone().into();
    }
    scratch.write(
        format!(".tavern/runs/{run}/metadata.json"),
        metadata.to_string(),
    );
    for file in ["prompt.md", "result.txt", "diff.patch", "verify.txt"] {
        scratch.write(
            format!(".tavern/runs/{run}/{file}"),
            format!("{all}\n+{all}\n-{all}\n@@ {all}\n"),
        );
    }
    let (_, words) = is_harmless(&page(&scratch, &[]));
    has(
        &words,
        &[
            "<script>alert(1)</script>",
            "onerror=alert(1)",
            "{{ 7 * 7 }}",
            "&lt;b&gt;",
            "·gpj.exe··",
        ],
    );
}

#[test]
fn a_page_is_bounded_however_much_there_is() {
    let scratch = Scratch::shell(
        "## Pending\n\n- [ ] T-1: One\n  ```sh\n  echo 1 > one\n  ```\n",
        CONFIG,
    );
    scratch
        .run("tavern-drain", &["--agents", "1", "--quiet"])
        .ends(0);
    let run = scratch.json("tavern-runs", &["list"])["run"]
        .as_str()
        .expect("it has a name")
        .to_owned();
    let line = "<&\u{1b}[31m".repeat(10 << 17);
    assert!(line.len() > 9_000_000);
    for file in ["prompt.md", "result.txt", "diff.patch"] {
        scratch.write(format!(".tavern/runs/{run}/{file}"), &line);
    }
    let title = "<".repeat(1 << 15);
    scratch.write(
        QUEUE,
        format!("- [ ] T-2: {title}\n  {title}\n- [ ] {title}\n"),
    );
    let html = page(&scratch, &[]);
    assert!(html.len() < 300_000, "{}", html.len());
    has(
        &is_harmless(&html).1,
        &[
            "bytes left out",
            &format!("All of it: tavern runs cat {run} diff.patch"),
        ],
    );

    // Many runs share the room.
    let folder = scratch.work().join(".tavern/runs");
    let metadata = scratch.read(format!(".tavern/runs/{run}/metadata.json"));
    for number in 100..1_100 {
        let name = format!("T-{number}@{number}");
        let own = metadata
            .replace("T-1", &format!("T-{number}"))
            .replace("\"token\": 2", &format!("\"token\": {number}"));
        fs::create_dir(folder.join(&name)).expect("the folder is ours");
        fs::write(folder.join(&name).join("metadata.json"), own).expect("the folder is ours");
        for file in ["prompt.md", "result.txt", "diff.patch", "verify.txt"] {
            fs::write(folder.join(&name).join(file), "+<a> & so on\n".repeat(400))
                .expect("the folder is ours");
        }
    }
    let html = page(&scratch, &[]);
    assert!(
        html.len() < 5_000_000 && html.contains("T-1099@1099"),
        "{}",
        html.len()
    );
    is_harmless(&html);
}

#[test]
fn a_drain_writes_the_page_of_its_queues() {
    let scratch = Scratch::shell(LIST, CONFIG);
    scratch.write(
        "TODO.md",
        "- [ ] A-1: Of the file\n  ```sh\n  echo 1 > of-the-file\n  ```\n",
    );
    let line = "tavern-drain TODO.md --agents 1 --html page.html";
    scratch.line(&format!("{line} --dry-run")).run().ends(0);
    assert!(
        !scratch.work().join("page.html").exists(),
        "a dry run writes nothing"
    );
    scratch.line(line).run().ends(0);
    let words = is_harmless(&scratch.read("page.html")).1;
    has(
        &words,
        &["A-1", "Of the file", "1 of 1 went well", "completed"],
    );
    assert!(!words.contains("Write a greeting"), "{words}");
    let ran = scratch
        .line("tavern-drain TODO.md --html none/page.html")
        .run()
        .ends(1);
    ran.says("error: can't write `none/page.html`\n")
        .says("an existing folder: --html report.html\n");
    scratch
        .line("tavern-drain TODO.md --html -")
        .run()
        .ends(2)
        .says("name a file, such as report.html");
}

#[test]
fn where_there_is_no_board_no_page_is_written() {
    let scratch = Scratch::repository();
    scratch
        .run("tavern-report-html", &[])
        .ends(1)
        .says("no board in");
    assert!(!scratch.work().join("tavern-report.html").exists());
    scratch.write("TODO.md", "- [ ] One\n  ```sh\n  echo 1 >one.txt\n  ```\n");
    scratch.commit(&["TODO.md"], "Plan");
    scratch.run("tavern-drain", &["TODO.md"]).succeeds();
    scratch.run("tavern-report-html", &[]).succeeds();
}
