//! The board of any past moment, rebuilt from the log.

use serde_json::Value;

use crate::support::{OWNED, QUEUE, Ran, Scratch};

/// Runs a program at a minute after ten.
fn at(scratch: &Scratch, minute: u32, program: &str, arguments: &[&str]) -> Ran {
    let now = format!("2026-11-22T10:{minute:02}:00Z");
    scratch.at(now, program, arguments)
}

fn status(scratch: &Scratch, arguments: &[&str]) -> Ran {
    at(scratch, 59, "tavern-status", arguments)
}

/// Each item as the board of that minute has it.
fn items(scratch: &Scratch, minute: u32) -> Vec<String> {
    let then = format!("10:{minute:02}");
    let told = status(scratch, &["--items", "--at", &then, "--format", "json"])
        .ends(0)
        .records();
    let items = told.iter().filter(|record| record["kind"] == "item");
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut items: Vec<String> = items
        .map(|item| {
            format!(
                "{} {} {}",
                text(&item["task"]),
                text(&item["status"]),
                text(&item["title"])
            )
        })
        .collect();
    items.sort();
    items
}

fn life() -> Scratch {
    let scratch = Scratch::repository();
    at(&scratch, 0, "tavern-init", &["--runner", "shell"]).succeeds();
    scratch.write(
        QUEUE,
        OWNED.replace("- [ ] four", "  - [ ] T-4: a part\n- [ ] five"),
    );
    at(&scratch, 1, "tavern-reap", &[]).succeeds();
    at(&scratch, 5, "tavern-add", &["later", "--id", "T-9"]).succeeds();
    at(
        &scratch,
        10,
        "tavern-release",
        &["T-1", "--cancel", "-m", "no"],
    )
    .succeeds();
    at(
        &scratch,
        20,
        "tavern-claim",
        &["--task", "T-2", "--agent", "Frodo"],
    )
    .succeeds();
    at(
        &scratch,
        25,
        "tavern-release",
        &["T-2", "--force", "-m", "lunch"],
    )
    .succeeds();
    let text = scratch.queue();
    scratch.write(
        QUEUE,
        text.replace("- [ ] five\n", "- [ ] five and a half\n")
            .replace("T-3: three", "T-3: third"),
    );
    at(&scratch, 30, "tavern-reap", &[]).succeeds();
    let text = scratch.queue();
    scratch.write(
        QUEUE,
        text.replace("- [ ] T-3: third\n  - [ ] T-4: a part\n", ""),
    );
    at(&scratch, 35, "tavern-reap", &[]).succeeds();
    at(
        &scratch,
        40,
        "tavern-undo",
        &["--event", &cancelling(&scratch)],
    )
    .succeeds();
    scratch
}

fn cancelling(scratch: &Scratch) -> String {
    let log = crate::state::State::of(scratch).log;
    let entry = log
        .iter()
        .find(|entry| entry.kind == tavern_core::event::Kind::Cancelled)
        .expect("it was");
    entry.seq.to_string()
}

#[test]
fn the_board_of_any_moment_is_shown_again() {
    let scratch = life();
    let [one, cancelled, two] = ["T-1 pending one", "T-1 cancelled one", "T-2 pending two"];
    let [three, part] = ["T-3 pending three", "T-4 pending a part"];
    let (five, later) = ("- pending five", "T-9 pending later");
    assert_eq!(items(&scratch, 5), [five, one, two, three, part, later]);
    assert_eq!(
        items(&scratch, 10),
        [five, cancelled, two, three, part, later]
    );
    assert_eq!(
        items(&scratch, 20),
        [five, cancelled, "T-2 in_progress two", three, part, later]
    );
    assert_eq!(
        items(&scratch, 26),
        [five, cancelled, two, three, part, later]
    );
    let half = "- pending five and a half";
    assert_eq!(
        items(&scratch, 30),
        [half, cancelled, two, "T-3 pending third", part, later]
    );
    assert_eq!(items(&scratch, 35), [half, cancelled, two, later]);
    assert_eq!(items(&scratch, 40), [half, one, two, later]);
    assert_eq!(items(&scratch, 59), [half, one, two, later]);
    // Looking changes nothing.
    assert!(!scratch.queue().contains("T-3"));
}

#[test]
fn one_item_is_shown_as_it_was() {
    let scratch = life();
    let told = status(&scratch, &["T-2", "--at", "2026-11-22T10:20"]).succeeds();
    assert!(
        told.contains("status      in progress\n")
            && told.contains("held by     Frodo (coder), attempt 1\n"),
        "{told}"
    );
    let told = status(&scratch, &["T-2", "--at", "34m ago"]).succeeds();
    assert!(
        told.contains("status      pending\n") && !told.contains("held by"),
        "{told}"
    );
    assert!(
        told.starts_with("as of 2026-11-22 10:25:00 +00:00\n")
            && told.contains("reason      lunch\n"),
        "{told}"
    );
    status(&scratch, &["T-3", "--at", "10:30", "--format", "json"])
        .ends(0)
        .says(r#""title":"third""#);
    status(&scratch, &["T-3", "--at", "10:36"]).ends(2);
}

#[test]
fn what_the_log_does_not_know_is_said() {
    let scratch = life();
    let ran = status(&scratch, &["--items", "--at", "2026-11-21"]);
    assert!(
        ran.stderr
            .contains("the log begins at 2026-11-22 10:05:00 +00:00"),
        "{ran}"
    );
    assert!(!ran.stdout.contains("T-9"), "{ran}");
    assert!(ran.succeeds().contains("T-1"));
    status(&scratch, &["--at", "2026-11-23"]).ends(2);
}

#[test]
fn times_are_shown_and_typed_as_clocks_here_show_them() {
    let scratch = life();
    let east = |program: &str, arguments: &[&str]| {
        let run = scratch
            .program(program)
            .args(arguments)
            .variable("TZ", "UTC-5:30");
        run.variable("TAVERN_TEST_NOW", "2026-11-22T10:59:00Z")
            .run()
            .succeeds()
    };
    let log = east("tavern-log", &[]);
    assert!(
        log.starts_with("2026-11-22 15:35:00 +05:30 ")
            && log.contains("\n2026-11-22 15:55:00 +05:30 "),
        "{log}"
    );
    for time in ["2026-11-22T15:50", "15:50", "2026-11-22 15:50:00 +05:30"] {
        let told = east("tavern-status", &["T-2", "--at", time]);
        assert!(
            told.starts_with("as of 2026-11-22 15:50:00 +05:30\n") && told.contains("in progress"),
            "{told}"
        );
    }
}
