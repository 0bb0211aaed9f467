//! What is torn or lost of runs' files hides no run, and is made anew from what is left.

use std::fs;

use serde_json::Value;

use crate::support::{CONFIG, QUEUE, Scratch, has, wait_until};

/// A stream of the Claude CLI with two calls of tools.
const STREAM: &str = include_str!("../fixtures/claude/sample-success.jsonl");
const SPENT: f64 = 0.044_175;

/// T-1 is merged, T-2 has died with a commit of its own; both have said what `STREAM` says.
fn worked(config: &str) -> Scratch {
    let item = |id: &str, then: &str| {
        let change = "echo $TAVERN_TASK >$TAVERN_TASK.txt; git add .; git commit -qm Work";
        format!("- [ ] {id}: Write {id}\n  ```sh\n  {change}{then}\n  ```\n")
    };
    let items = item("T-1", "") + &item("T-2", "; exit 1");
    let scratch = Scratch::shell(&items, &format!("max_attempts: 1\n{config}"));
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .succeeds();
    for id in ["T-1", "T-2"] {
        scratch.write(file(&scratch, id, "thread.jsonl"), STREAM);
    }
    scratch
}

/// The newest run of the item.
fn run_of(scratch: &Scratch, id: &str) -> Value {
    let runs = scratch.records("tavern-runs", &["list", id]);
    runs.last().expect("it had one").clone()
}

fn file(scratch: &Scratch, id: &str, name: &str) -> String {
    let run = run_of(scratch, id);
    let run = run["run"].as_str().expect("it has a name");
    format!(".tavern/runs/{run}/{name}")
}

/// What a crash leaves of a file, told by name.
fn damage(scratch: &Scratch, path: &str, how: &str) {
    let text = scratch.read(path);
    let half = &text[..text.len() / 2];
    match how {
        "torn" => drop(scratch.write(path, half)),
        "zeros" => drop(scratch.write(path, format!("{half}{}", "\0".repeat(half.len())))),
        "empty" => drop(scratch.write(path, "")),
        _ => fs::remove_file(scratch.work().join(path)).expect("it is there"),
    }
}

#[test]
fn a_run_whose_record_is_damaged_is_seen_all_the_same() {
    let scratch = worked("");
    // What the runs have used stands in their streams alone.
    fs::remove_file(scratch.work().join(".git/tavern/spent.jsonl")).expect("it is there");
    let records = ["T-1", "T-2"].map(|id| file(&scratch, id, "metadata.json"));
    let before = records.each_ref().map(|path| scratch.read(path));
    for how in ["torn", "zeros", "empty", "gone"] {
        for path in &records {
            damage(&scratch, path, how);
        }
        let known = run_of(&scratch, "T-1");
        let was: Value = before[0].parse().expect("it is JSON");
        let same = [
            "run", "task", "title", "queue", "agent", "role", "attempt", "token", "branch", "base",
            "worktree",
        ];
        for key in same {
            assert_eq!(known[key], was[key], "{how}: {key}");
        }
        assert_eq!(known["damaged"], true, "{how}");
        assert!(known["ended"].is_string(), "{how}: {known:#}");
        has(
            &scratch.run("tavern-runs", &[]).succeeds(),
            &[" damaged ", "Frodo coder"],
        );
        has(
            &scratch.run("tavern-runs", &["show", "T-1"]).succeeds(),
            &["Write T-1", "damaged", "tavern runs rebuild"],
        );
        let found = scratch.run("tavern-runs", &["grep", "--task", "T-1", "Write T-1"]);
        has(&found.succeeds(), &["prompt.md"]);
        let spent =
            &scratch.json("tavern-status", &["--stats"])["spent_by"]["role"]["coder"]["usd"];
        let spent = spent.as_f64().expect("it is a number");
        assert!((spent - 2.0 * SPENT).abs() < 1e-6, "{how}: {spent}");
        for (path, text) in records.iter().zip(&before) {
            scratch.write(path, text);
        }
    }

    // It counts for caps, and goes as any other does: what is merged, and not what is nowhere else.
    for path in &records {
        damage(&scratch, path, "torn");
    }
    scratch.write(CONFIG, "runs: {keep: 1d}\nbudget: {board: {usd: 0.05}}\n");
    let told = scratch.at("+172800", "tavern-reap", &["--dry-run"]);
    let told = told.succeeds();
    assert!(
        told.contains("remove the files of run T-1@") && !told.contains("run T-2@"),
        "{told}"
    );
    scratch.write(
        QUEUE,
        scratch.queue() + "- [ ] T-3: More\n  ```sh\n  true\n  ```\n",
    );
    scratch
        .run("tavern-drain", &[])
        .ends(7)
        .says("the board's budget are used");
}

#[test]
fn what_can_be_made_from_the_rest_is_made_anew_and_what_is_whole_stays() {
    let scratch = worked("");
    let rebuild = |code: i32| scratch.run("tavern-runs", &["rebuild", "T-1"]).ends(code);
    let path = |name: &str| file(&scratch, "T-1", name);
    let calls = ["tool_calls/001_Bash.txt", "tool_calls/002_Bash.txt"];
    let run = run_of(&scratch, "T-1")["run"]
        .as_str()
        .expect("a name")
        .to_owned();
    // The script said nothing, and the stream was not there yet.
    rebuild(0).says(&format!(
        "{run}: rebuilt: result.txt, {}, {}\n",
        calls[0], calls[1]
    ));
    rebuild(0).says("nothing to rebuild");

    let names = [calls[0], calls[1], "diff.patch", "result.txt"];
    let whole = names.map(|name| scratch.read(path(name)));
    has(&whole[0], &["Bash {", "--- ok"]);
    has(&whole[2], &["+T-1"]);
    for how in ["torn", "zeros", "empty", "gone"] {
        for name in names {
            damage(&scratch, &path(name), how);
        }
        rebuild(0).says(&format!(
            "{run}: rebuilt: diff.patch, result.txt, {}, {}\n",
            calls[0], calls[1]
        ));
        assert_eq!(names.map(|name| scratch.read(path(name))), whole, "{how}");
    }

    // What another hand or version wrote is no damage.
    scratch.write(path(calls[0]), "my own words");
    let was: Value = scratch
        .read(path("metadata.json"))
        .parse()
        .expect("it is JSON");
    damage(&scratch, &path("metadata.json"), "torn");
    rebuild(0).says(&format!("{run}: rebuilt: metadata.json\n"));
    let is: Value = scratch
        .read(path("metadata.json"))
        .parse()
        .expect("it is JSON");
    for key in ["commit", "base", "branch", "agent", "title"] {
        assert_eq!(is[key], was[key], "{key}");
    }
    assert_eq!(
        (&is["outcome"], &is["damaged"]),
        (&was["outcome"], &Value::Null)
    );
    assert_eq!(scratch.read(path(calls[0])), "my own words");
    rebuild(0).says("nothing to rebuild");

    // Of what is made from nothing else it says so, of all runs at once too.
    damage(&scratch, &path("prompt.md"), "gone");
    let all = scratch.run("tavern-runs", &["rebuild"]).ends(1);
    has(
        &all.stdout,
        &[&format!("{run}: can't be rebuilt: prompt.md\n"), "T-2@"],
    );
    damage(&scratch, &path("thread.jsonl"), "empty");
    rebuild(1).says("can't be rebuilt: prompt.md, thread.jsonl\n");
    scratch
        .run("tavern-runs", &["rebuild", "T-9"])
        .ends(2)
        .says("no run `T-9`");
}

#[test]
fn a_run_that_died_with_its_record_is_ended_by_the_reaper() {
    let scratch = Scratch::pending("- [ ] T-1: Sleep\n  ```sh\n  echo begun; sleep 600\n  ```\n");
    let agent = scratch
        .program("tavern-agent")
        .args(&["--once", "--name", "Frodo"])
        .start();
    wait_until("it works", || {
        let runs = scratch.records("tavern-runs", &[]);
        runs.first().is_some_and(|run| {
            let run = run["run"].as_str().unwrap_or_default();
            fs::read_to_string(
                scratch
                    .work()
                    .join(format!(".tavern/runs/{run}/output.log")),
            )
            .is_ok_and(|said| said == "begun\n")
        })
    });
    let path = file(&scratch, "T-1", "metadata.json");
    damage(&scratch, &path, "empty");
    let run = run_of(&scratch, "T-1");
    assert_eq!(
        (&run["damaged"], &run["ended"]),
        (&Value::Bool(true), &Value::Null)
    );
    scratch
        .run("tavern-runs", &["rebuild"])
        .ends(0)
        .says("still runs");
    agent.kill();
    scratch.run("tavern-reap", &[]).succeeds();
    scratch.has_no_process();
    let run = run_of(&scratch, "T-1");
    assert_eq!(run["outcome"], "killed", "{run:#}");
    scratch.stands("T-1", "pending", 0);
}

#[test]
fn what_only_checks_have_written_is_no_run() {
    let scratch = Scratch::board("- [ ] T-1: Look (done_when: [true])\n");
    scratch.write(".tavern/runs/T-1@1/verify.txt", "$ true\n");
    assert_eq!(scratch.records("tavern-runs", &[]).len(), 0);
}
