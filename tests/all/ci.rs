//! A drain on a build machine: its report, its log, what GitHub Actions is told, and the workflows in `examples/`.

use std::fs;
use std::path::{Path, PathBuf};

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;

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
    (
        "testsuites",
        "",
        &["name", "tests", "failures", "errors"],
        &["time", "skipped"],
    ),
    (
        "testsuite",
        "testsuites",
        &["name", "tests", "failures", "errors"],
        &["time", "skipped"],
    ),
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
        self.attributes
            .iter()
            .find(|(name, _)| name == key)
            .map_or("", |(_, value)| value)
    }

    /// Of an opening tag in `parent`, of the shape that readers know.
    fn read(tag: &BytesStart<'_>, parent: &str) -> Element {
        let name = text_of(tag.name().as_ref());
        let shape = ELEMENTS
            .iter()
            .find(|shape| shape.0 == name)
            .unwrap_or_else(|| panic!("<{name}> is not known"));
        assert_eq!(parent, shape.1, "the parent of <{name}>");
        let attributes = tag.attributes().map(|attribute| {
            let attribute = attribute.expect("it is well-formed");
            (
                text_of(attribute.key.as_ref()),
                unescaped(&text_of(&attribute.value)),
            )
        });
        let attributes: Vec<(String, String)> = attributes.collect();
        let has = |key: &&str| attributes.iter().any(|(name, _)| name == key);
        assert!(shape.2.iter().all(has), "{attributes:?} of <{name}>");
        assert_eq!(
            attributes.len(),
            shape.2.len() + shape.3.iter().filter(|key| has(key)).count(),
            "{attributes:?}"
        );
        Element {
            name,
            attributes,
            text: String::new(),
        }
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is UTF-8")
}

fn unescaped(text: &str) -> String {
    unescape(text)
        .expect("its entities are XML's own")
        .into_owned()
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
        match reader
            .read_event()
            .unwrap_or_else(|error| panic!("{error} in\n{xml}"))
        {
            Event::Start(tag) => {
                found.push(Element::read(&tag, &parent));
                open.push(text_of(tag.name().as_ref()));
            }
            Event::Empty(tag) => found.push(Element::read(&tag, &parent)),
            Event::End(_) => drop(open.pop()),
            Event::Text(text) => add(&mut found, &text_of(&text)),
            Event::GeneralRef(name) => {
                add(&mut found, &unescaped(&format!("&{};", text_of(&name))));
            }
            Event::Decl(_) => {}
            Event::Eof => return found,
            other => panic!("{other:?} in\n{xml}"),
        }
    }
}

#[test]
fn a_drain_reports_each_item_as_junit_xml() {
    let scratch = listed();
    scratch.write("junit.xml", "<?xml of an earlier drain");
    scratch
        .run(
            "tavern-drain",
            &["TODO.md", "--junit", "junit.xml", "--dry-run"],
        )
        .ends(0);
    assert_eq!(
        scratch.read("junit.xml"),
        "<?xml of an earlier drain",
        "a dry run writes nothing"
    );
    scratch
        .run(
            "tavern-drain",
            &["TODO.md", "--agents", "1", "--junit", "junit.xml"],
        )
        .ends(1);
    let found = elements(&scratch.read("junit.xml"));
    for (place, name) in [(0, "tavern drain"), (1, "TODO.md")] {
        let counts =
            ["name", "tests", "failures", "errors", "skipped"].map(|key| found[place].value(key));
        assert_eq!(counts, [name, "6", "4", "0", "1"]);
    }
    let cases: Vec<&str> = found
        .iter()
        .filter(|one| one.name == "testcase")
        .map(|one| one.value("name"))
        .collect();
    assert_eq!(
        cases,
        [
            "T-6: Never mind",
            "T-1: Write <a> & \"b\"",
            "T-2: Count | the `words`, all: of them",
            "T-3: Check",
            "T-4: Wait",
            "T-5: Ask"
        ]
    );
    let failures: Vec<&Element> = found.iter().filter(|one| one.name == "failure").collect();
    let told: Vec<[&str; 2]> = failures
        .iter()
        .map(|one| ["type", "message"].map(|key| one.value(key)))
        .collect();
    assert_eq!(
        told,
        [
            ["dead", "exited with code 3: red ]]> <b> ```"],
            ["dead", "`echo looked; false` exited with code 1"],
            ["pending", "it waits for T-3 (dead); tavern retry T-3"],
            ["waiting", "it asks: which, one?"],
        ]
    );
    let [output, checked, _, asked] = failures.as_slice() else {
        panic!("{told:?}")
    };
    assert!(
        output.text.starts_with("113\n114\n"),
        "the last 20 lines: {}",
        output.text
    );
    has(
        &output.text,
        &["130\n::error::forged\nred ]]> <b> ```\nsee .tavern/runs/T-2@"],
    );
    has(
        &checked.text,
        &[
            "$ echo looked; false\nexited with code 1 in ",
            "looked\nsee ",
            "its work: tavern diff T-3",
        ],
    );
    has(
        &asked.text,
        &["to do: tavern answer T-5 \"…\"\nsee .tavern/runs/T-5@"],
    );
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_anything_is_begun() {
    let scratch = listed();
    let ran = scratch
        .run("tavern-drain", &["TODO.md", "--junit", "nowhere/junit.xml"])
        .ends(1);
    ran.says("error: can't write `nowhere/junit.xml`\n")
        .says("hint: name a file in an existing folder: --junit junit.xml\n");
    assert_eq!(scratch.read("TODO.md"), LIST);
    // Who refuses has no result either.
    scratch
        .run("tavern-drain", &["NOPE.md", "--junit", "junit.xml"])
        .ends(2);
    assert!(!scratch.work().join("junit.xml").exists());
}

#[test]
fn the_end_of_what_failed_is_in_a_log_and_not_on_a_terminal() {
    let scratch = listed();
    let ran = scratch
        .run("tavern-drain", &["TODO.md", "--agents", "1"])
        .ends(1);
    has(
        &ran.stderr,
        &["T-2 failed, now dead: exited with code 3: red ]]> <b> ```\n  | 113\n  | 114\n"],
    );
    has(
        &ran.stderr,
        &[
            "  | red ]]> <b> ```\n",
            "exited with code 1\n  | $ echo looked; false\n",
            "  | looked\n",
        ],
    );
    assert!(!ran.stderr.contains("  | 112\n"), "{ran}");
    let scratch = listed();
    let ran = Terminal::start(&scratch, "tavern-drain TODO.md --agents 1")
        .end()
        .ends(1);
    ran.says("T-2 failed, now dead").says_not("  | ");
}

#[test]
fn github_is_told_of_each_item_that_is_left_and_obeys_no_agent() {
    let scratch = listed();
    let summary = scratch.write("../home/summary.md", "before\n");
    let drain = |flags: &[&str]| {
        let drain = scratch
            .program("tavern-drain")
            .args(&["TODO.md", "--agents", "1"])
            .args(flags);
        let drain = drain
            .variable("GITHUB_ACTIONS", "true")
            .variable("GITHUB_WORKSPACE", scratch.work());
        drain.variable("GITHUB_STEP_SUMMARY", &summary).run()
    };
    drain(&["--dry-run"]).ends(0).says_not("stop-commands");
    let ran = drain(&[]).ends(1);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let token = lines[0]
        .strip_prefix("::stop-commands::")
        .expect("the log is not obeyed");
    let (log, marks) = ran
        .stderr
        .split_once(&format!("\n::{token}::\n"))
        .expect("it is obeyed again");
    has(log, &["::error::forged", "T-1 merged as"]);
    let marks: Vec<String> = marks
        .lines()
        .map(|line| line.split("%0A").next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        marks,
        [
            "::error file=TODO.md,line=5,title=T-2 dead%3A Count | the `words`%2C all%3A of them::exited with code 3: \
             red ]]> <b> ```",
            "::error file=TODO.md,line=9,title=T-3 dead%3A Check::`echo looked; false` exited with code 1",
            "::error file=TODO.md,line=13,title=T-4 pending%3A Wait::it waits for T-3 (dead); tavern retry T-3",
            "::warning file=TODO.md,line=17,title=T-5 waiting%3A Ask::it asks: which, one?",
        ]
    );
    let page = fs::read_to_string(&summary).expect("it was there");
    has(
        &page,
        &[
            "before\n### tavern drain: 1 of 5 completed, 2 failed, 2 left in ",
            "\n\n| item | status | why |\n|---|---|---|\n| TODO\\.md\\: T\\-2 Count \\| the \\`words\\`\\, all\\: of them | dead | ",
            "\n\n<details><summary>T\\-2</summary>\n\n````text\n113\n",
            "\nred ]]> <b> ```\n````\n\n</details>\n",
            "\n```text\n$ echo looked; false\n",
        ],
    );
    let quiet = drain(&["--quiet", "--format", "json"]).ends(1);
    assert_eq!((quiet.records().len(), quiet.stderr.as_str()), (1, ""));
    // A summary that can't be written is no failure.
    let ran = scratch
        .program("tavern-drain")
        .args(&["TODO.md"])
        .variable("GITHUB_STEP_SUMMARY", scratch.work());
    ran.run()
        .ends(1)
        .says("the summary of the job is not written: ");
}

/// What is released under a name of today is run with a key and a token tomorrow.
#[test]
fn the_workflows_run_programs_of_pinned_versions_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in fs::read_dir(&folder).expect("it is there") {
        let path = entry.expect("it is readable").path();
        let text = fs::read_to_string(&path).expect("it is text");
        let mut pins = 0;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let behind = |mark: &str| line.split_once(mark)?.1.split_whitespace().next();
            let is_commit =
                |pin: &str| pin.len() == 40 && pin.bytes().all(|b| b.is_ascii_hexdigit());
            let is_version = |pin: &str| {
                let digits = pin.split(['.', '-']).take(3);
                digits.clone().count() == 3
                    && digits.flat_map(str::bytes).all(|b| b.is_ascii_digit())
            };
            let pin_of =
                |words: &str, mark: char| words.rsplit_once(mark).map(|(_, pin)| pin.to_owned());
            let checks = [
                behind("uses: ").map(|it| pin_of(it, '@').is_some_and(|pin| is_commit(&pin))),
                behind("image: ").map(|it| pin_of(it, ':').is_some_and(|pin| is_version(&pin))),
                behind("--global ").map(|it| pin_of(it, '@').is_some_and(|pin| is_version(&pin))),
                behind("cargo install ").map(|_| behind("--rev ").is_some()),
            ];
            for is_pinned in checks.into_iter().flatten() {
                assert!(is_pinned, "{}: {line}", path.display());
                pins += 1;
            }
        }
        assert!(pins >= 3, "{}", path.display());
    }
}

/// A workflow of `examples/`, with a bare repository in the place of the service.
struct Service {
    scratch: Scratch,
    workflow: Value,
}

impl Service {
    fn of(example: &str) -> Service {
        let scratch = Scratch::repository();
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("examples")
            .join(example);
        let text = fs::read_to_string(&path).expect("it is there");
        let workflow = tavern_core::yaml::read(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        scratch.write(
            "TODO.md",
            "- [ ] T-1: Write\n  ```sh\n  echo Hello > greeting.txt\n  ```\n\
             - [ ] T-2: Count (max_attempts: 1)\n  ```sh\n  test -e mended.txt && echo 2 > count.txt\n  ```\n",
        );
        scratch.commit(&["TODO.md"], "Plan");
        scratch.git(&["clone", "--quiet", "--bare", ".", "../origin.git"]);
        scratch.git(&["remote", "add", "origin", "../origin.git"]);
        Service { scratch, workflow }
    }

    /// What a job begins with: a clone of its own.
    fn clone(&self, name: &str) -> PathBuf {
        let folder = self.scratch.folder().join(name);
        self.scratch.git(&[
            "clone",
            "--quiet",
            "../origin.git",
            &folder.display().to_string(),
        ]);
        folder
    }

    /// Runs lines as the service does, without anybody's name for git; gives the exit code.
    fn shell(&self, folder: &Path, lines: &str) -> i32 {
        let mut shell = self
            .scratch
            .command("bash".as_ref())
            .args(&["-e", "-c", lines])
            .within(folder);
        for name in [
            "GIT_AUTHOR_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_COMMITTER_NAME",
            "GIT_COMMITTER_EMAIL",
        ] {
            shell = shell.without(name);
        }
        let origin = self.scratch.folder().join("origin.git");
        let shell = shell
            .variable("GITHUB_REF_NAME", "main")
            .variable("CI_COMMIT_BRANCH", "main");
        let shell = shell
            .variable("RUNNER_TEMP", folder.with_extension("temp"))
            .variable("PUSH_URL", origin);
        let ran = shell.variable("TAVERN_TRUST", "1").run();
        ran.code.unwrap_or_else(|| panic!("{ran}"))
    }

    /// Runs a job of GitHub Actions but for what installs programs; the exit code of the step that fails.
    fn github(&self, job: &str, folder: &Path) -> i32 {
        let mut code = 0;
        for step in self.workflow["jobs"][job]["steps"]
            .as_array()
            .expect("it has steps")
        {
            let is_installing = step["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("Install "));
            if let Some(lines) = step["run"].as_str()
                && !is_installing
                && (code == 0 || step["if"] == "${{ !cancelled() }}")
            {
                code = code.max(self.shell(folder, lines));
            }
        }
        code
    }

    /// Runs the lines of a job of GitLab.
    fn gitlab(&self, job: &str, folder: &Path) -> i32 {
        let [script, after] = ["script", "after_script"].map(|key| {
            let lines = self.workflow[job][key].as_array().into_iter().flatten();
            lines
                .map(|line| line.as_str().expect("it is a line").to_owned())
                .collect::<Vec<_>>()
                .join("\n")
        });
        let code = self.shell(folder, &script);
        assert_eq!(self.shell(folder, &after), 0);
        code
    }

    /// Copies what a job keeps, which has to be there.
    fn keep(&self, from: &Path, paths: &[&str], to: &Path) {
        fs::create_dir_all(to).expect("the folder is ours");
        let to = to.display().to_string();
        let cp = self
            .scratch
            .command("cp".as_ref())
            .args(&["-r", "--parents"])
            .args(paths)
            .args(&[&to]);
        cp.within(from).run().succeeds();
    }

    /// A file of a branch as it was pushed.
    fn pushed(&self, branch: &str, path: &str) -> String {
        self.scratch.git(&[
            "--git-dir=../origin.git",
            "show",
            &format!("{branch}:{path}"),
        ])
    }

    /// Drains and pushes twice; between the two a person mends what was left, and meanwhile somebody pushes to the branch.
    fn works_the_list(&self, drain: impl Fn(&Path) -> i32, push: impl Fn(&Path, &Path) -> i32) {
        let (one, two) = (self.clone("drain-1"), self.clone("drain-2"));
        assert_eq!(drain(&one), 1, "an item is left");
        assert_eq!(push(&one, &self.clone("push-1")), 0);
        has(
            &self.pushed("main", "TODO.md"),
            &["- [x] T-1: Write\n", "- [ ] T-2: Count (max_attempts: 1)\n"],
        );
        assert_eq!(self.pushed("tavern/integration", "greeting.txt"), "Hello");
        let git = |arguments: &[&str]| self.scratch.git(arguments);
        assert_eq!(
            git(&["--git-dir=../origin.git", "ls-tree", "--name-only", "main"]),
            "README.md\nTODO.md"
        );
        git(&["pull", "--quiet", "origin", "main"]);
        self.scratch.write("mended.txt", "");
        self.scratch.commit(&["mended.txt"], "Mend");
        git(&["push", "--quiet", "origin", "main"]);
        fs::remove_dir_all(&two).expect("it is ours");
        let two = self.clone("drain-2");
        assert_eq!(drain(&two), 0, "what was merged before is there");
        self.scratch.write("README.md", "# Another title\n");
        self.scratch.commit(&["README.md"], "Rename");
        let last = self.clone("push-2");
        git(&["push", "--quiet", "origin", "main"]);
        assert_eq!(push(&two, &last), 0);
        has(
            &self.pushed("main", "TODO.md"),
            &["- [x] T-1: Write\n", "- [x] T-2: Count (max_attempts: 1)\n"],
        );
        assert_eq!(self.pushed("main", "README.md"), "# Another title");
        let merged = git(&[
            "--git-dir=../origin.git",
            "ls-tree",
            "--name-only",
            "tavern/integration",
        ]);
        assert_eq!(
            merged,
            "README.md\nTODO.md\ncount.txt\ngreeting.txt\nmended.txt"
        );
    }
}

#[test]
fn the_workflow_for_github_works_a_list_and_pushes_it() {
    let service = Service::of("github-actions.yml");
    let upload = service.workflow["jobs"]["drain"]["steps"]
        .as_array()
        .into_iter()
        .flatten();
    let upload = upload.filter(|step| {
        step["uses"]
            .as_str()
            .is_some_and(|uses| uses.starts_with("actions/upload-artifact"))
    });
    let kept: Vec<&str> = upload
        .flat_map(|step| step["with"]["path"].as_str().expect("a list").lines())
        .collect();
    assert_eq!(kept.len(), 4);
    service.works_the_list(
        |folder| service.github("drain", folder),
        |drained, folder| {
            service.keep(
                drained,
                &kept,
                &folder.with_extension("temp").join("drained"),
            );
            service.github("push", folder)
        },
    );
}

#[test]
fn the_pipeline_for_gitlab_works_a_list_and_pushes_it() {
    let service = Service::of("gitlab-ci.yml");
    let artifacts = &service.workflow["drain"]["artifacts"];
    let kept: Vec<&str> = artifacts["paths"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    assert!(kept.contains(&artifacts["reports"]["junit"].as_str().expect("a report")));
    let detached =
        |folder: &Path| assert_eq!(service.shell(folder, "git switch --quiet --detach"), 0);
    service.works_the_list(
        |folder| {
            detached(folder);
            service.gitlab("drain", folder)
        },
        |drained, folder| {
            detached(folder);
            service.keep(drained, &kept, folder);
            service.gitlab("push", folder)
        },
    );
}
