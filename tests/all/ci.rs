//! A drain on a build machine: its report, its log, what GitHub Actions is told, and the workflows in `examples/`.

use std::fs;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};

use crate::support::{Scratch, has};
use crate::terminal::Terminal;

/// One item of each kind: done, failed with words that mean something elsewhere, refuted, in the way of another, asking.
const LIST: &str = "\
- [ ] T-1: Write <a> & \"b\"
  ```sh
  echo Hello > greeting.txt
  ```
- [ ] T-2: Count | the `words`, all: of them (max_attempts: 1)
  ```sh
  seq 100 130; echo '::error::forged'; printf '\\033[31mred ]]> <b> ```\\n'; exit 3
  ```
- [ ] T-3: Check (max_attempts: 1, done_when: [\"echo looked; false\"])
  ```sh
  echo a > a.txt
  ```
- [ ] T-4: Wait (after: T-3)
  ```sh
  true
  ```
- [ ] T-5: Ask
  ```sh
  tavern report --waiting 'which, one?'
  ```
- [ ] T-6: Never mind (status: cancelled)
";

fn listed() -> Scratch {
    let scratch = Scratch::repository();
    scratch.write("TODO.md", LIST);
    scratch.commit(&["TODO.md"], "Plan");
    scratch
}

/// Elements of JUnit XML as Jenkins, GitLab and others read it: their parent, the attributes that they must have, and may have.
const ELEMENTS: [(&str, &str, &[&str], &[&str]); 5] = [
    ("testsuites", "", &["name", "tests", "failures", "errors"], &["time", "skipped"]),
    ("testsuite", "testsuites", &["name", "tests", "failures", "errors"], &["time", "skipped"]),
    ("testcase", "testsuite", &["name", "classname", "time"], &[]),
    ("failure", "testcase", &["message", "type"], &[]),
    ("skipped", "testcase", &[], &["message"]),
];

struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
}

impl Element {
    /// An attribute; empty if it is not there.
    fn value(&self, key: &str) -> &str {
        self.attributes.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }

    /// Of an opening tag in `parent`, of the shape that readers know.
    fn read(tag: &BytesStart<'_>, parent: &str) -> Element {
        let name = text_of(tag.name().as_ref());
        let shape = ELEMENTS.iter().find(|shape| shape.0 == name).unwrap_or_else(|| panic!("<{name}> is not known"));
        assert_eq!(parent, shape.1, "the parent of <{name}>");
        let attributes = tag.attributes().map(|attribute| {
            let attribute = attribute.expect("it is well-formed");
            (text_of(attribute.key.as_ref()), unescaped(&text_of(&attribute.value)))
        });
        let attributes: Vec<(String, String)> = attributes.collect();
        let has = |key: &&str| attributes.iter().any(|(name, _)| name == key);
        assert!(shape.2.iter().all(has), "{attributes:?} of <{name}>");
        assert_eq!(attributes.len(), shape.2.len() + shape.3.iter().filter(|key| has(key)).count(), "{attributes:?}");
        Element { name, attributes, text: String::new() }
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is UTF-8")
}

fn unescaped(text: &str) -> String {
    unescape(text).expect("its entities are XML's own").into_owned()
}

/// The elements of a report in their order.
fn elements(xml: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(xml);
    let (mut open, mut found): (Vec<String>, Vec<Element>) = (Vec::new(), Vec::new());
    let add = |found: &mut Vec<Element>, text: &str| {
        if let Some(last) = found.last_mut() {
            last.text.push_str(text);
        }
    };
    loop {
        let parent = open.last().cloned().unwrap_or_default();
        match reader.read_event().unwrap_or_else(|error| panic!("{error} in\n{xml}")) {
            Event::Start(tag) => {
                found.push(Element::read(&tag, &parent));
                open.push(text_of(tag.name().as_ref()));
            }
            Event::Empty(tag) => found.push(Element::read(&tag, &parent)),
            Event::End(_) => drop(open.pop()),
            Event::Text(text) => add(&mut found, &text_of(&text)),
            Event::GeneralRef(name) => add(&mut found, &unescaped(&format!("&{};", text_of(&name)))),
            Event::Decl(_) => {}
            Event::Eof => return found,
            other => panic!("{other:?} in\n{xml}"),
        }
    }
}

#[test]
fn a_drain_reports_each_item_as_junit_xml() {
    let scratch = listed();
    scratch.write("junit.xml", "of an earlier drain");
    scratch.run("tavern-drain", &["TODO.md", "--junit", "junit.xml", "--dry-run"]).ends(0);
    assert_eq!(scratch.read("junit.xml"), "of an earlier drain", "a dry run writes nothing");
    scratch.run("tavern-drain", &["TODO.md", "--agents", "1", "--junit", "junit.xml"]).ends(1);
    let found = elements(&scratch.read("junit.xml"));
    for (place, name) in [(0, "tavern drain"), (1, "TODO.md")] {
        let counts = ["name", "tests", "failures", "errors", "skipped"].map(|key| found[place].value(key));
        assert_eq!(counts, [name, "6", "4", "0", "1"]);
    }
    let cases: Vec<&str> = found.iter().filter(|one| one.name == "testcase").map(|one| one.value("name")).collect();
    assert_eq!(
        cases,
        [
            "T-1: Write <a> & \"b\"",
            "T-6: Never mind",
            "T-2: Count | the `words`, all: of them",
            "T-3: Check",
            "T-4: Wait",
            "T-5: Ask"
        ]
    );
    let failures: Vec<&Element> = found.iter().filter(|one| one.name == "failure").collect();
    let told: Vec<[&str; 2]> = failures.iter().map(|one| ["type", "message"].map(|key| one.value(key))).collect();
    assert_eq!(
        told,
        [
            ["dead", "exited with code 3: ·[31mred ]]> <b> ```"],
            ["dead", "`echo looked; false` exited with code 1"],
            ["pending", "it waits for T-3 (dead); tavern release T-3 --revive"],
            ["waiting", "it asks: which, one?"],
        ]
    );
    let [output, checked, _, asked] = failures.as_slice() else { panic!("{told:?}") };
    assert!(output.text.starts_with("113\n114\n"), "the last 20 lines: {}", output.text);
    has(&output.text, &["130\n::error::forged\n·[31mred ]]> <b> ```\nsee .tavern/runs/T-2@"]);
    has(
        &checked.text,
        &["$ echo looked; false\nexited with code 1 in ", "looked\nsee ", "its work: git show tavern/T-3"],
    );
    has(&asked.text, &["to do: tavern tell T-5 \"…\"\nsee .tavern/runs/T-5@"]);
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_anything_is_begun() {
    let scratch = listed();
    let ran = scratch.run("tavern-drain", &["TODO.md", "--junit", "nowhere/junit.xml"]).ends(1);
    ran.says("error: can't write `nowhere/junit.xml`\n")
        .says("hint: name a file in a folder that is there: --junit junit.xml\n");
    assert_eq!(scratch.read("TODO.md"), LIST);
    // Who refuses has no result either.
    scratch.run("tavern-drain", &["NOPE.md", "--junit", "junit.xml"]).ends(2);
    assert!(!scratch.work().join("junit.xml").exists());
}

#[test]
fn the_end_of_what_failed_is_in_a_log_and_not_on_a_terminal() {
    let scratch = listed();
    let ran = scratch.run("tavern-drain", &["TODO.md", "--agents", "1"]).ends(1);
    has(&ran.stderr, &["T-2 failed, now dead: exited with code 3: ·[31mred ]]> <b> ```\n  | 113\n  | 114\n"]);
    has(&ran.stderr, &["  | ·[31mred ]]> <b> ```\n", "exited with code 1\n  | $ echo looked; false\n", "  | looked\n"]);
    assert!(!ran.stderr.contains("  | 112\n"), "{ran}");
    let scratch = listed();
    let ran = Terminal::start(&scratch, "tavern-drain TODO.md --agents 1").end().ends(1);
    ran.says("T-2 failed, now dead").says_not("  | ");
}

#[test]
fn github_is_told_of_each_item_that_is_left_and_obeys_no_agent() {
    let scratch = listed();
    let summary = scratch.write("../home/summary.md", "before\n");
    let drain = |flags: &[&str]| {
        let drain = scratch.program("tavern-drain").args(&["TODO.md", "--agents", "1"]).args(flags);
        let drain = drain.variable("GITHUB_ACTIONS", "true").variable("GITHUB_WORKSPACE", scratch.work());
        drain.variable("GITHUB_STEP_SUMMARY", &summary).run()
    };
    drain(&["--dry-run"]).ends(0).says_not("stop-commands");
    let ran = drain(&[]).ends(1);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let token = lines[0].strip_prefix("::stop-commands::").expect("the log is not obeyed");
    let (log, marks) = ran.stderr.split_once(&format!("\n::{token}::\n")).expect("it is obeyed again");
    has(log, &["::error::forged", "T-1 merged as"]);
    let marks: Vec<String> =
        marks.lines().map(|line| line.split("%0A").next().unwrap_or_default().to_owned()).collect();
    assert_eq!(
        marks,
        [
            "::error file=TODO.md,line=5,title=T-2 dead%3A Count | the `words`%2C all%3A of them::exited with code 3: \
             ·[31mred ]]> <b> ```",
            "::error file=TODO.md,line=9,title=T-3 dead%3A Check::`echo looked; false` exited with code 1",
            "::error file=TODO.md,line=13,title=T-4 pending%3A Wait::it waits for T-3 (dead); tavern release T-3 --revive",
            "::warning file=TODO.md,line=17,title=T-5 waiting%3A Ask::it asks: which, one?",
        ]
    );
    let page = fs::read_to_string(&summary).expect("it was there");
    has(
        &page,
        &[
            "before\n### tavern drain: 1 completed, 4 left in ",
            "\n\n| item | status | why |\n|---|---|---|\n| TODO\\.md\\: T\\-2 Count \\| the \\`words\\`\\, all\\: of them | dead | ",
            "\n\n<details><summary>T\\-2</summary>\n\n````text\n113\n",
            "\n·[31mred ]]> <b> ```\n````\n\n</details>\n",
            "\n```text\n$ echo looked; false\n",
        ],
    );
    let quiet = drain(&["--quiet", "--format", "json"]).ends(1);
    assert_eq!((quiet.records().len(), quiet.stderr.as_str()), (1, ""));
    // A summary that can't be written is no failure.
    let ran = scratch.program("tavern-drain").args(&["TODO.md"]).variable("GITHUB_STEP_SUMMARY", scratch.work());
    ran.run().ends(1).says("the summary of the job is not written: ");
}
