//! What other programs are told: that each record is as the schema says, by another reader of it; that the event stream goes on from a
//! number; and the numbers of Prometheus, read as its text format says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::json_schema::validate;
use crate::support::{QUEUE, Running, Scratch, has, wait_until};

/// The kinds that the printed schema describes, and the schema, made to let nothing pass that it does not name.
fn schema() -> (BTreeSet<String>, Value) {
    let printed = Scratch::empty().run("tavern-status", &["--schema"]).ends(0);
    let mut schema: Value = serde_json::from_str(&printed.stdout).expect("JSON");
    let records = schema["oneOf"].as_array_mut().expect("a list of records");
    let kinds = records.iter().map(|record| {
        record["properties"]["kind"]["const"]
            .as_str()
            .expect("a kind")
            .to_owned()
    });
    let kinds = kinds.collect();
    records
        .iter_mut()
        .for_each(|record| record["unevaluatedProperties"] = json!(false));
    (kinds, schema)
}

#[test]
fn the_page_has_every_kind_of_the_schema() {
    let (kinds, schema) = schema();
    has(
        &schema.to_string(),
        &["tavern status --format json, version 1"],
    );
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/specs/export.md"))
        .expect("it is there");
    for kind in kinds {
        assert!(
            page.contains(&format!("| `{kind}` |")),
            "specs/export.md lacks `{kind}`"
        );
    }
}

/// A board of which there is everything to tell, and an agent at work on T-5; that of T-6 has died.
fn full_board() -> (Scratch, Running) {
    let queue = "- [ ] T-1: Ask\n  - [x] look\n  - [ ] write\n  ```sh\n  tavern report --waiting 'which?'\n  ```\n\
                 - [ ] T-2: Write (due: 2026-01-01, tags: [a], review: person)\n  ```sh\n  echo 1 > one.txt\n  ```\n\
                 - [ ] T-3: Stray\n  ```sh\n  git -C ../../.. config core.pager less; echo 2 > two.txt\n  ```\n\
                 - [ ] T-4: Fail (max_attempts: 1)\n  ```sh\n  exit 3\n  ```\n\
                 - [ ] T-5: Work on\n  ```sh\n  touch ../held; while [ ! -e ../go ]; do sleep 0.02; done\n  ```\n\
                 - [ ] T-6: Orphan (watch: {stuck: 1h})\n  ```sh\n  touch ../begun; sleep 600\n  ```\n\
                 - [ ] T-7: Later (after: T-6)\n- [ ] T-7: Twice\n- [x] No ID\n";
    let scratch = Scratch::shell(
        queue,
        "roles: {coder: {runner: shell}}\nbudget: {day: {minutes: 600}}\ngrace: 1s\nnotify: {broken: {command: exit 1}}\n",
    );
    for _ in 0..4 {
        scratch.run("tavern-agent", &["--once", "--name", "Frodo"]);
    }
    let marks = scratch.work().join(".tavern/worktrees");
    let start = |name| {
        scratch
            .program("tavern-agent")
            .args(&["--once", "--name", name])
            .start()
    };
    let agent = start("Merry");
    wait_until("T-5 is at work", || marks.join("held").exists());
    let orphan = start("Gone");
    wait_until("T-6 is at work", || marks.join("begun").exists());
    orphan.kill();
    (scratch, agent)
}

fn end(scratch: &Scratch, agent: Running) {
    scratch.write(".tavern/worktrees/go", "");
    // It stands still while the board is paused.
    std::fs::remove_file(scratch.work().join(".tavern/PAUSE")).expect("it is there");
    agent.end();
    scratch.run("tavern-reap", &[]);
}

/// Each line is as the schema says, and each kind is seen.
#[test]
fn all_that_is_printed_is_as_the_schema_says() {
    let (kinds, schema) = schema();
    let validated = |record: &Value| validate(&schema, &schema, record);
    let (scratch, agent) = full_board();
    scratch.run("tavern-notify", &[]);
    scratch.write(
        ".tavern/quota/other.yaml",
        "closed_until: 2099-01-01T00:00:00Z\nreason: spent\n",
    );
    scratch.write(".tavern/PAUSE", "lunch\n");
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for line in [
        "tavern-status",
        "tavern-watch --once",
        "tavern-status",
        "tavern-status --items",
        "tavern-status --status completed",
        "tavern-status --stats",
        "tavern-status --health",
        "tavern-status --since yesterday",
        "tavern-status --at 2020-01-01T10:00",
        "tavern-status T-1 T-2 T-3 T-4 T-5 T-6",
        "tavern-status main:1",
        "tavern-status main:ODD",
        "a queue that can't be read",
        "tavern-status",
    ] {
        if line.starts_with("a queue") {
            scratch.write(".tavern/queues/broken.md", b"- [ ] T-9: \xff\xfe\n");
            continue;
        }
        let odd = scratch
            .queue()
            .lines()
            .position(|line| line.contains("No ID"))
            .map(|at| (at + 1).to_string());
        let ran = scratch
            .line(&line.replace("ODD", &odd.unwrap_or_default()))
            .args(&["--format", "json"])
            .run();
        for record in ran
            .records()
            .into_iter()
            .filter(|_| line.starts_with("tavern-status"))
        {
            if let Err(error) = validated(&record) {
                panic!("{line}: {record}\n{error}");
            }
            *seen
                .entry(record["kind"].as_str().expect("a kind").to_owned())
                .or_default() += 1;
        }
    }
    let unseen: Vec<&String> = kinds
        .iter()
        .filter(|kind| !seen.contains_key(*kind))
        .collect();
    assert!(
        unseen.is_empty(),
        "no record of {unseen:?} was seen, but of {seen:?}"
    );
    let is_right = |record: Value| validated(&record).is_ok();
    let board = json!({"kind": "board", "version": 1, "board": "/x", "seq": 1, "time": "2026-11-28T20:00:00Z"});
    assert!(is_right(board.clone()));
    let without = |key: &str| {
        let mut record = board.clone();
        record.as_object_mut().expect("an object").remove(key);
        record
    };
    assert!(
        !is_right(without("seq")) && !is_right(without("kind")),
        "what lacks a key is not right"
    );
    assert!(
        !is_right(json!({"kind": "problem", "problem": "x", "more": 1})),
        "nor is what has one more"
    );
    end(&scratch, agent);
}

#[test]
fn a_look_names_the_event_from_which_the_stream_goes_on() {
    let scratch = Scratch::pending("- [ ] T-1: One\n");
    let board = scratch.records("tavern-status", &[]).remove(0);
    let folder = scratch.work().canonicalize().expect("it is there");
    assert_eq!(
        (&board["kind"], &board["board"]),
        (&json!("board"), &json!(folder))
    );
    let seq = board["seq"].as_u64().expect("a number");
    scratch.claim("T-1", &[]);
    scratch
        .run("tavern-release", &["T-1", "--force"])
        .succeeds();
    let told = scratch.records("tavern-log", &["--since-event", &seq.to_string()]);
    let told: Vec<_> = told
        .iter()
        .map(|event| (event["seq"].as_u64(), event["kind"].as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (Some(seq + 1), Some("claimed")),
            (Some(seq + 2), Some("withdrawn"))
        ]
    );
}

/// Reads the text format: name and labels of each number, and the types by name.
fn read_metrics(text: &str) -> (BTreeMap<String, f64>, BTreeMap<String, String>) {
    let (mut numbers, mut types) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(told) = line.strip_prefix("# TYPE ") {
            let (name, kind) = told.split_once(' ').expect("a name and a type");
            assert!(
                types.insert(name.to_owned(), kind.to_owned()).is_none(),
                "{name} has one type"
            );
        } else if !line.starts_with("# HELP ") {
            let (name, number) = line.rsplit_once(' ').expect("a name and a number");
            let family = name.split('{').next().expect("a name");
            assert!(
                types.contains_key(family),
                "{line}: its type stands before it"
            );
            let is_new = numbers
                .insert(name.to_owned(), number.parse().expect("a number"))
                .is_none();
            assert!(is_new, "{line}: it is told once");
        }
    }
    (numbers, types)
}

#[test]
fn the_numbers_of_a_board_are_told_as_prometheus_reads_them() {
    let (scratch, agent) = full_board();
    scratch.write(QUEUE, scratch.queue().replace("T-7: Twice", "T-8: Other"));
    let text = scratch.run("tavern-status", &["--metrics"]).succeeds();
    let (numbers, types) = read_metrics(&text);
    let folder = scratch.work().canonicalize().expect("it is there");
    let number = |name: &str, labels: &str| {
        let comma = if labels.is_empty() { "" } else { "," };
        let named = format!("{name}{{board=\"{}\"{comma}{labels}}}", folder.display());
        *numbers
            .get(&named)
            .unwrap_or_else(|| panic!("{named} is not in\n{text}"))
    };
    let told = [
        ("tavern_items", "queue=\"main\",status=\"pending\"", 2.0),
        ("tavern_items", "queue=\"main\",status=\"in_progress\"", 2.0),
        ("tavern_items", "queue=\"main\",status=\"dead\"", 1.0),
        ("tavern_items", "queue=\"main\",status=\"draft\"", 0.0),
        ("tavern_needs", "need=\"answer\"", 1.0),
        ("tavern_needs", "need=\"approval\"", 1.0),
        ("tavern_needs", "need=\"child\"", 0.0),
        ("tavern_agents", "role=\"coder\",state=\"gone\"", 1.0),
        ("tavern_agents", "role=\"coder\",state=\"working\"", 1.0),
        ("tavern_board_open", "", 1.0),
        ("tavern_claims_total", "", 6.0),
        ("tavern_completed_total", "", 1.0),
        ("tavern_dead_letters_total", "", 1.0),
        ("tavern_runs_total", "", 6.0),
    ];
    for (name, labels, expected) in told {
        assert!(
            (number(name, labels) - expected).abs() < f64::EPSILON,
            "{name} {labels}\n{text}"
        );
        let kind = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        assert_eq!(types[name], kind);
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/specs/export.md"))
        .expect("it is there");
    types.keys().for_each(|name| {
        assert!(
            page.contains(&format!("`{name}`")),
            "specs/export.md lacks {name}"
        );
    });
    scratch.write(".tavern/PAUSE", "lunch\n");
    // Done by hand, beside a queue that nobody can read.
    scratch.write(
        QUEUE,
        scratch
            .queue()
            .replace("- [ ] T-7: Later", "- [x] T-7: Later"),
    );
    scratch.settle();
    scratch.write(".tavern/queues/broken.md", b"- [ ] T-9: \xff\xfe\n");
    scratch
        .run("tavern-status", &["--stats"])
        .ends(0)
        .says("2 in all");
    let text = scratch.run("tavern-status", &["--metrics"]).succeeds();
    let read = |name: &str| {
        read_metrics(&text)
            .0
            .into_iter()
            .find(|(found, _)| found.starts_with(name))
            .map(|(_, number)| number)
    };
    assert_eq!(
        (
            read("tavern_queues_with_losses"),
            read("tavern_completed_total")
        ),
        (Some(1.0), Some(2.0))
    );
    assert!(read("tavern_board_open") == Some(0.0));
    end(&scratch, agent);
    let scratch = Scratch::empty();
    scratch.run("tavern-status", &["--metrics"]).ends(1);
    scratch
        .run("tavern-status", &["--metrics", "--items"])
        .ends(2);
}
