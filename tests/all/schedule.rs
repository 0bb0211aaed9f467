//! `tavern-schedule`: each time is queued once, whoever looks, whenever, and whatever happens to them.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Signal;
use tavern_sys::failpoint::LIST;

use crate::support::{QUEUE, Ran, Running, Scratch, has, wait_until};

const SCHEDULES: &str = ".tavern/schedules.yaml";
const DAILY: &str =
    "backup:\n  cron: \"0 6 * * *\"\n  zone: Europe/Berlin\n  title: Check the backup\n";

/// Before the first time of [`DAILY`], and just after it.
const BEFORE: &str = "2026-11-25T04:00:00Z";
const FIRST: &str = "2026-11-25T05:00:10Z";

/// A board whose schedules have been seen at that moment.
fn board(schedules: &str, seen: &str) -> Scratch {
    let scratch = Scratch::initialized();
    scratch.write(SCHEDULES, schedules);
    at(&scratch, seen).ends(3);
    scratch
}

fn at(scratch: &Scratch, now: &str) -> Ran {
    scratch.at(now, "tavern-schedule", &[])
}

/// What items of the queue say of the times that they are for, in their order.
fn times(scratch: &Scratch) -> Vec<String> {
    let queue = scratch.queue();
    let signs = queue
        .lines()
        .filter_map(|line| line.split_once("queued_for: "));
    signs
        .map(|(_, sign)| sign.trim_end_matches(')').to_owned())
        .collect()
}

/// All items are done.
fn tick(scratch: &Scratch) {
    let queue = scratch.queue().replace("- [ ]", "- [x]");
    scratch.write(QUEUE, queue);
    scratch.settle();
}

#[test]
fn eight_at_once_queue_each_time_once() {
    let all = format!("{DAILY}  missed: all\nhourly:\n  every: hour\n  title: Look\n");
    let scratch = board(&all, BEFORE);
    let now = "2026-11-27T05:00:10Z";
    let start = |_| {
        scratch
            .program("tavern-schedule")
            .variable("TAVERN_TEST_NOW", now)
            .start()
    };
    let ends: Vec<Ran> = (0..8)
        .map(start)
        .collect::<Vec<_>>()
        .into_iter()
        .map(Running::end)
        .collect();
    assert!(
        ends.iter()
            .all(|ran| [Some(0), Some(3)].contains(&ran.code)),
        "{}",
        ends[0]
    );
    let found = times(&scratch);
    let days: Vec<String> = (25..28)
        .map(|day| format!("backup@2026-11-{day}T06:00+01:00"))
        .collect();
    assert_eq!(
        found
            .iter()
            .filter(|time| time.starts_with("backup"))
            .collect::<Vec<_>>(),
        days.iter().collect::<Vec<_>>()
    );
    assert_eq!(
        found
            .iter()
            .filter(|time| time.starts_with("hourly"))
            .count(),
        1,
        "{found:?}"
    );
    let told: usize = ends.iter().map(|ran| ran.stdout.lines().count()).sum();
    assert_eq!(told, 4, "each is told of by who queued it");
    at(&scratch, now)
        .ends(3)
        .says("next: hourly at 2026-11-27 06:00 +00:00");
}

#[test]
fn killed_anywhere_it_queues_the_time_once() {
    let every: Vec<String> = LIST
        .iter()
        .map(|(name, _)| format!("{name}=sleep:0"))
        .collect();
    let fail = |scratch: &Scratch, fault: &str| {
        let run = scratch
            .program("tavern-schedule")
            .variable("TAVERN_TEST_NOW", FIRST);
        run.variable("TAVERN_FAILPOINT", fault).run()
    };
    let ran = fail(&board(DAILY, BEFORE), &every.join(";"));
    let places: BTreeSet<&str> = ran
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("failpoint: "))
        .collect();
    assert!(
        places.contains("log.torn") && places.contains("submit.leased"),
        "{ran}"
    );
    for place in places {
        for action in ["kill", "error"] {
            let scratch = board(DAILY, BEFORE);
            let failed = fail(&scratch, &format!("{place}={action}"));
            assert_eq!(failed.code.is_none(), action == "kill", "{place}\n{failed}");
            for _ in 0..2 {
                at(&scratch, FIRST);
            }
            scratch.settle();
            assert_eq!(
                times(&scratch),
                ["backup@2026-11-25T06:00+01:00"],
                "{place}={action}\n{failed}"
            );
            scratch.run("tavern-check", &[]).says_not("error");
        }
    }
}

#[test]
fn what_one_change_has_no_room_for_is_queued_by_the_next_ones() {
    let hourly = "look:\n  every: hour\n  zone: UTC\n  missed: all\n  title: Look\n";
    let (seen, woken) = ("2026-11-25T00:30:00Z", "2026-11-27T12:30:00Z");
    let hours =
        (1..=60).map(|hour| format!("look@2026-11-{}T{:02}:00+00:00", 25 + hour / 24, hour % 24));
    let hours: Vec<String> = hours.collect();
    for (fault, left) in [
        ("", 60),
        ("log.torn=kill@2", 50),
        ("log.appended=kill@2", 60),
        ("submit.leased=kill", 50),
    ] {
        let scratch = board(hourly, seen);
        scratch
            .at(woken, "tavern-schedule", &["--dry-run"])
            .ends(0)
            .says("due 2026-11-27 12:00 +00:00: Look");
        let run = scratch
            .program("tavern-schedule")
            .variable("TAVERN_TEST_NOW", woken);
        let ran = run.variable("TAVERN_FAILPOINT", fault).run();
        assert_eq!(ran.code, fault.is_empty().then_some(0), "{ran}");
        scratch.settle();
        assert_eq!(times(&scratch), hours[..left], "{fault}");
        // Another time has come meanwhile, and the items of earlier ones are open.
        at(&scratch, "2026-11-27T13:30:00Z").says("skipped 2026-11-27 13:00 +00:00: T-");
        assert_eq!(times(&scratch), hours, "{fault}");
        at(&scratch, "2026-11-27T13:30:00Z").ends(3);
    }
}

#[test]
fn after_three_days_of_sleep_it_does_as_the_schedule_says() {
    let days = |days: &[u32]| {
        days.iter()
            .map(|day| format!("backup@2026-11-{day}T06:00+01:00"))
            .collect::<Vec<_>>()
    };
    for (more, woken, queued, says) in [
        (
            "",
            "2026-11-27T09:00:00Z",
            vec![27],
            ", and 2 earlier times were missed",
        ),
        (
            "  missed: once\n",
            "2026-11-27T09:00:00Z",
            vec![27],
            ", and 2 earlier times were missed",
        ),
        (
            "  missed: all\n",
            "2026-11-27T09:00:00Z",
            vec![25, 26, 27],
            "due 2026-11-25 06:00 +01:00\n",
        ),
        (
            "  missed: skip\n",
            "2026-11-27T09:00:00Z",
            vec![],
            "queued nothing for 2026-11-27 06:00 +01:00: it was missed",
        ),
        (
            "  missed: skip\n",
            "2026-11-27T05:59:00Z",
            vec![27],
            ", and 2 earlier times were missed",
        ),
        ("  paused: true\n", "2026-11-27T09:00:00Z", vec![], ""),
    ] {
        let scratch = board(&format!("{DAILY}{more}"), BEFORE);
        at(&scratch, woken).ends(if queued.is_empty() { 3 } else { 0 });
        assert_eq!(times(&scratch), days(&queued), "{more}");
        scratch.run("tavern-log", &[]).ends(0).says(says);
        at(&scratch, woken).ends(3);
        assert_eq!(times(&scratch), days(&queued), "{more}: once");
    }
}

#[test]
fn where_clocks_are_changed_each_day_is_queued_once() {
    for (zone, begins, expected) in [
        (
            "Europe/Berlin",
            "2026-03-28T22:00:00Z",
            "a@2026-03-29T03:00+02:00",
        ),
        (
            "Europe/Berlin",
            "2026-10-24T22:00:00Z",
            "a@2026-10-25T02:30+02:00",
        ),
        (
            "America/New_York",
            "2026-03-08T05:00:00Z",
            "a@2026-03-08T03:00-04:00",
        ),
        (
            "America/New_York",
            "2026-11-01T05:10:00Z",
            "a@2026-11-01T02:30-05:00",
        ),
    ] {
        let schedule = format!(
            "a:\n  cron: \"30 2 * * *\"\n  zone: {zone}\n  title: A\n  while_open: queue\n"
        );
        let scratch = board(&schedule, begins);
        let begins: chrono::DateTime<chrono::Utc> = begins.parse().expect("a time");
        for look in 1..16 {
            let now = begins + chrono::TimeDelta::minutes(30 * look);
            let ended = at(&scratch, &now.to_rfc3339()).code;
            assert!([Some(0), Some(3)].contains(&ended), "{zone} {now}");
        }
        assert_eq!(times(&scratch), [expected], "{zone}");
    }
    // An hour that comes twice is one on a clock, and two for what is due every half hour.
    let scratch = board(
        "a:\n  cron: \"15 1 * * *\"\n  zone: America/New_York\n  title: A\n",
        "2026-11-01T05:10:00Z",
    );
    at(&scratch, "2026-11-01T05:16:00Z").ends(0);
    tick(&scratch);
    at(&scratch, "2026-11-01T06:16:00Z").ends(3);
}

#[test]
fn nothing_is_queued_while_the_item_of_an_earlier_time_is_open() {
    let scratch = board(DAILY, BEFORE);
    at(&scratch, FIRST)
        .ends(0)
        .says("for backup, due 2026-11-25 06:00 +01:00: Check the backup");
    at(&scratch, "2026-11-26T05:01:00Z")
        .ends(3)
        .says("of an earlier time is open");
    scratch
        .run("tavern-log", &[])
        .ends(0)
        .says("schedule backup queued nothing for 2026-11-26 06:00 +01:00: T-");
    tick(&scratch);
    at(&scratch, "2026-11-26T05:02:00Z").ends(3);
    at(&scratch, "2026-11-27T05:02:00Z").ends(0);
    scratch.write(SCHEDULES, format!("{DAILY}  while_open: queue\n"));
    at(&scratch, "2026-11-28T05:02:00Z").ends(0);
    assert_eq!(times(&scratch).len(), 3);
    let json = scratch.records("tavern-schedule", &["--list"]);
    assert_eq!(
        (&json[0]["schedule"], &json[0]["queue"]),
        (&"backup".into(), &"main".into()),
        "{json:?}"
    );
    assert!(
        json[0]["last"]
            .as_str()
            .is_some_and(|id| scratch.queue().contains(id)),
        "{json:?}"
    );
}

#[test]
fn what_was_taken_away_is_not_queued_again() {
    let scratch = board(DAILY, BEFORE);
    at(&scratch, FIRST).ends(0);
    // Who takes it out has seen what came after it.
    scratch
        .run(
            "tavern-add",
            &["--id", "T-9", "Another one of which more is said than of what the schedule has queued for that day and hour"],
        )
        .ends(0);
    let queue = scratch.queue();
    let without: String = queue
        .lines()
        .filter(|line| !line.contains("queued_for"))
        .map(|l| format!("{l}\n"))
        .collect();
    scratch.write(QUEUE, without);
    at(&scratch, "2026-11-25T05:01:00Z").ends(3);
    // What it has kept beside the log may be lost.
    fs::remove_file(scratch.work().join(".git/tavern/schedules.json")).expect("it is there");
    at(&scratch, "2026-11-25T05:02:00Z").ends(3);
    at(&scratch, "2026-11-26T05:00:00Z").ends(0);
    scratch.run("tavern-undo", &[]).ends(0);
    at(&scratch, "2026-11-26T05:01:00Z").ends(3);
    // Nor after a clock was set back, or where the schedule is written otherwise meanwhile.
    at(&scratch, "2026-11-20T05:00:00Z").ends(3);
    scratch.change(SCHEDULES, "0 6", "0 5,6");
    at(&scratch, "2026-11-26T05:00:30Z").ends(3);
    assert_eq!(times(&scratch), Vec::<String>::new());
}

#[test]
fn a_schedule_that_is_changed_counts_from_then_on() {
    let scratch = board(DAILY, BEFORE);
    // The words of what is due are those of now; its times are not.
    scratch.change(SCHEDULES, "Check", "Try");
    at(&scratch, FIRST).ends(0).says("Try the backup");
    tick(&scratch);
    scratch.change(SCHEDULES, "0 6", "0 7");
    at(&scratch, "2026-11-26T09:00:00Z")
        .ends(3)
        .says("its times count from 2026-11-26 10:00 +01:00 on");
    at(&scratch, "2026-11-27T06:00:00Z").ends(0);
    tick(&scratch);
    // Another name is another schedule; one that is gone, or paused, has missed nothing when it comes back.
    scratch.change(SCHEDULES, "backup:", "save:");
    at(&scratch, "2026-11-28T09:00:00Z")
        .ends(3)
        .says("backup: removed or paused")
        .says("save: its times count");
    scratch.write(SCHEDULES, "# none\n");
    at(&scratch, "2026-11-29T09:00:00Z").ends(3);
    scratch.write(SCHEDULES, DAILY);
    at(&scratch, "2026-11-30T09:00:00Z").ends(3);
    assert_eq!(times(&scratch).len(), 2);
}

#[test]
fn a_file_that_is_gone_or_empty_for_a_moment_ends_nothing() {
    for is_there in [false, true] {
        let scratch = board(DAILY, BEFORE);
        if is_there {
            scratch.write(SCHEDULES, "");
        } else {
            fs::remove_file(scratch.work().join(SCHEDULES)).expect("it is there");
        }
        at(&scratch, "2026-11-25T04:30:00Z")
            .ends(3)
            .says("no schedules in")
            .says_not("no longer");
        at(&scratch, FIRST).ends(3);
        scratch.write(SCHEDULES, DAILY);
        at(&scratch, "2026-11-25T05:01:00Z")
            .ends(0)
            .says("for backup, due 2026-11-25 06:00 +01:00");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_keeps_no_other_from_being_queued() {
    for (flawed, place, fault, hint) in [
        (
            "a:\n  cron: \"0 6 * *\"\n  title: A\n",
            "5:3",
            "invalid cron expression `0 6 * *`",
            "write five fields",
        ),
        (
            "a:\n  cron: \"0 6 31 2 *\"\n  title: A\n",
            "5:3",
            "`0 6 31 2 *` never matches a date",
            "",
        ),
        (
            "a:\n  cron: * * * * *\n  title: A\n",
            "",
            "",
            "an expression in quotes",
        ),
        (
            "a:\n  every: fortnight\n  title: A\n",
            "5:3",
            "invalid time `fortnight`",
            "weekday at 06:00",
        ),
        (
            "a:\n  every: hour\n  title: A\n  zone: Europe/Berln\n",
            "7:3",
            "no time zone `Europe/Berln`",
            "Europe/Berlin",
        ),
        (
            "a:\n  every: hour\n  titel: A\n",
            "6:3",
            "unknown key `titel` in `a`",
            "did you mean `title`?",
        ),
        ("a:\n  every: hour\n", "4:1", "`a` has no title", "title: …"),
        (
            "a:\n  title: A\n",
            "4:1",
            "`a` has no time",
            "every: day at 06:00",
        ),
        (
            "a:\n  every: hour\n  cron: \"@daily\"\n  title: A\n",
            "5:3",
            "`cron` and `every` are both set",
            "",
        ),
        (
            "a:\n  every: hour\n  title: A\n  priority: urgent\n",
            "7:3",
            "`priority`",
            "critical",
        ),
        (
            "a:\n  every: hour\n  title: A\n  missed: always\n",
            "7:3",
            "unknown value `always`",
            "once, all, skip",
        ),
        (
            "a:\n  every: hour\n  title: A\n  paused: 3\n",
            "7:3",
            "`paused`: `3` where true or false is expected",
            "",
        ),
        (
            "a:\n  every: hour\n  title: \"A (priority: 1)\"\n",
            "6:3",
            "`title` has keys of an item in it",
            "beside `title`",
        ),
        (
            "a:\n  every: hour\n  title: \"A\\e[2J\"\n",
            "6:3",
            "`title` would be read differently in a queue",
            "",
        ),
        (
            "a:\n  every: hour\n  title: A\n  status: completed\n",
            "7:3",
            "unknown key `status`",
            "one of: cron, every",
        ),
        (
            "good:\n  every: hour\n  title: A\n",
            "4:1",
            "duplicate schedule `good`",
            "",
        ),
        (
            "a b:\n  every: hour\n  title: A\n",
            "4:1",
            "`a b` is not a valid schedule name",
            "",
        ),
        ("[a]\n", "4:1", "is not a valid schedule name", ""),
        ("a: 3\n", "4:1", "`a` is empty", ""),
        (
            "a:\n  every: hour\n  title: A\n  queue: nowhere\n",
            "",
            "nowhere, which does not exist",
            "tavern add --queue nowhere --create",
        ),
    ] {
        let good = "good:\n  every: hour\n  title: Good\n";
        let scratch = Scratch::initialized();
        scratch.write(
            SCHEDULES,
            format!("{good}{flawed}{}", DAILY.replace("backup", "last")),
        );
        at(&scratch, BEFORE);
        at(&scratch, "2026-11-25T05:00:10Z")
            .ends(5)
            .says("Good")
            .says("Check the");
        let told = scratch.run("tavern-check", &[]).ends(5);
        let place = if place.is_empty() {
            String::new()
        } else {
            format!("{SCHEDULES}:{place}: error: ")
        };
        has(&told.stdout, &[SCHEDULES, &place, fault, hint]);
    }
}

#[test]
fn a_thousand_schedules_are_few_and_a_million_bytes_are_too_many() {
    let named = |number: usize| {
        let hour = if number < 120 { "0 6" } else { "0 18" };
        DAILY
            .replace("backup:", &format!("s{number}:"))
            .replace("0 6", hour)
    };
    let scratch = board(&(0..1000).map(named).collect::<String>(), BEFORE);
    at(&scratch, FIRST).ends(0);
    let expected: Vec<String> = (0..120)
        .map(|number| format!("s{number}@2026-11-25T06:00+01:00"))
        .collect();
    assert_eq!(times(&scratch), expected);
    at(&scratch, FIRST).ends(3);
    assert_eq!(scratch.records("tavern-schedule", &["--list"]).len(), 1000);
    let never = |number: usize| {
        DAILY
            .replace("backup:", &format!("s{number}:"))
            .replace("0 6 * *", "0 6 31 2")
    };
    for much in [
        (0..2001).map(named).collect::<String>(),
        format!("a:\n  title: {}\n", "x".repeat(2_000_000)),
        format!(
            "s0: {}\n{}",
            "[".repeat(60_000),
            (1..1000).map(named).collect::<String>()
        ),
        (0..1000).map(never).collect::<String>(),
        format!("<<<<<<< HEAD\n{DAILY}=======\n>>>>>>> other\n"),
    ] {
        scratch.write(SCHEDULES, much);
        at(&scratch, FIRST).ends(5);
    }
    // What could not be read has not ended by that.
    let marks = || {
        scratch
            .read(".git/tavern/schedules.json")
            .matches("Europe/Berlin")
            .count()
    };
    assert_eq!(marks(), 1000);
}

#[test]
fn what_a_clone_brings_queues_nothing_until_it_is_trusted() {
    let first = board(DAILY, BEFORE);
    first.commit(&[".tavern"], "Schedules");
    first.git(&["clone", "--quiet", "--bare", ".", "../hub.git"]);
    let clone = Scratch::empty();
    clone.git(&[
        "clone",
        "--quiet",
        &first.folder().join("hub.git").display().to_string(),
        ".",
    ]);
    let queue = clone.queue();
    at(&clone, BEFORE)
        .ends(4)
        .says("schedules.yaml")
        .says("tavern trust");
    clone
        .at("2026-11-28T09:00:00Z", "tavern-schedule", &[])
        .ends(4);
    assert_eq!(clone.queue(), queue);
    clone
        .run("tavern-schedule", &["--list"])
        .ends(0)
        .says("Check the backup");
    // Nor does a person make it theirs by an edit.
    clone.change(SCHEDULES, "0 6", "0 7");
    at(&clone, BEFORE).ends(4);
    clone
        .run("tavern-trust", &[])
        .ends(4)
        .says("Check the backup");
    clone.run("tavern-trust", &["--yes"]).ends(0);
    at(&clone, BEFORE).ends(3);
    at(&clone, "2026-11-25T06:00:10Z").ends(0);
    clone
        .run("tavern-trust", &[])
        .ends(0)
        .says("no untrusted changes");
    // What is pulled into it asks anew.
    first.change(SCHEDULES, "Check the backup", "rm -rf it");
    first.commit(&[SCHEDULES], "Worse");
    first.git(&["push", "--quiet", "../hub.git", "HEAD"]);
    clone.git(&["checkout", "--quiet", "--", SCHEDULES]);
    clone.git(&["pull", "--quiet", "--ff-only"]);
    at(&clone, "2026-11-26T06:00:10Z").ends(4);
    assert_eq!(times(&clone).len(), 1);
    // What was typed here never asks.
    at(&first, FIRST).ends(0);
}

#[test]
fn what_another_clone_has_queued_is_not_queued_again() {
    let first = board(DAILY, BEFORE);
    first.commit(&[".tavern"], "Schedules");
    first.git(&["clone", "--quiet", "--bare", ".", "../hub.git"]);
    let second = Scratch::empty();
    second.git(&[
        "clone",
        "--quiet",
        &first.folder().join("hub.git").display().to_string(),
        ".",
    ]);
    second.run("tavern-trust", &["--yes"]).ends(0);
    at(&second, BEFORE).ends(3);
    at(&first, FIRST).ends(0);
    tick(&first);
    first.commit(&[QUEUE], "Queue");
    first.git(&["push", "--quiet", "../hub.git", "HEAD"]);
    second.git(&["pull", "--quiet", "--ff-only"]);
    at(&second, FIRST).ends(3).says("it is there already");
    assert_eq!(times(&second).len(), 1);
}

#[test]
fn what_a_clone_brings_silences_no_schedule() {
    let first = board(DAILY, BEFORE);
    first.commit(&[".tavern"], "Schedules");
    first.git(&["clone", "--quiet", "--bare", ".", "../hub.git"]);
    let clone = Scratch::empty();
    clone.git(&[
        "clone",
        "--quiet",
        &first.folder().join("hub.git").display().to_string(),
        ".",
    ]);
    clone.run("tavern-trust", &["--yes"]).ends(0);
    at(&clone, BEFORE).ends(3);
    let signed =
        |line: &str, day: &str| format!("- {line} (queued_for: backup@{day}T06:00+01:00)\n");
    let brought = [
        signed("[ ] T-90: In time", "2099-01-01"),
        signed("[ ] T-91: Open", "2026-11-25"),
        signed("[x] T-92: Done", "2026-11-25"),
    ];
    first.write(QUEUE, format!("{}\n{}", first.queue(), brought.concat()));
    first.commit(&[QUEUE], "More");
    first.git(&["push", "--quiet", "../hub.git", "HEAD"]);
    clone.git(&["pull", "--quiet", "--ff-only"]);
    let queued = at(&clone, FIRST)
        .ends(0)
        .says("for backup, due 2026-11-25 06:00 +01:00: Check the backup");
    let own = queued
        .stdout
        .split_whitespace()
        .next()
        .expect("its ID")
        .to_owned();
    // What was queued here stays known, whatever a person makes of it.
    clone.change(
        QUEUE,
        &format!("{own}: Check the backup"),
        &format!("{own}: Look at it"),
    );
    at(&clone, "2026-11-26T05:01:00Z")
        .ends(3)
        .says(&format!("{own} of an earlier time is open"));
    clone.change(QUEUE, &format!("[ ] {own}"), &format!("[x] {own}"));
    at(&clone, "2026-11-27T05:01:00Z")
        .ends(0)
        .says("for backup, due 2026-11-27 06:00 +01:00");
    // What people have trusted holds it up, but for a time that is still to come.
    clone.run("tavern-trust", &["--yes"]).ends(0);
    let tick = |own: &str, other: &str| {
        let queue = clone.queue();
        let ticked = queue.lines().map(|line| {
            let is_meant = line.contains(own) && !line.contains(other);
            if is_meant {
                line.replace("- [ ]", "- [x]") + "\n"
            } else {
                format!("{line}\n")
            }
        });
        clone.write(QUEUE, ticked.collect::<String>());
        clone.settle();
    };
    tick("Check the backup", "In time");
    at(&clone, "2026-11-28T05:01:00Z")
        .ends(3)
        .says("T-91 of an earlier time is open");
    tick("T-91:", "T-90:");
    at(&clone, "2026-11-29T05:01:00Z")
        .ends(0)
        .says("for backup, due 2026-11-29 06:00 +01:00");
}

#[test]
fn who_waits_is_told_when_it_is_time() {
    // A second before a minute begins, on a clock that goes on.
    let shift = |later: i64| format!("+{}", later + 59 - chrono::Utc::now().timestamp() % 60);
    let scratch = Scratch::initialized();
    scratch.write(
        SCHEDULES,
        "a:\n  cron: \"* * * * *\"\n  title: A\n  while_open: queue\n",
    );
    let wait = |how: &str, later| {
        scratch
            .program("tavern-schedule")
            .args(&[how])
            .variable("TAVERN_TEST_NOW", shift(later))
    };
    wait("--wait", 0).run().ends(0).says("for a, due");
    let watching = wait("--watch", 60).start();
    wait_until("another minute is queued", || times(&scratch).len() > 1);
    watching.signal(Signal::INT);
    watching.end().ends(130);
    scratch.write(SCHEDULES, "");
    scratch.run("tavern-schedule", &["--wait"]).ends(3);
}

#[test]
fn the_watch_queues_what_is_due_and_a_dry_run_nothing() {
    let scratch = board(DAILY, BEFORE);
    let queue = scratch.queue();
    scratch
        .at(FIRST, "tavern-schedule", &["--dry-run"])
        .ends(0)
        .says("an item for backup, due 2026-11-25 06:00");
    assert_eq!(scratch.queue(), queue);
    scratch
        .at(FIRST, "tavern-watch", &["--once"])
        .ends(0)
        .says("for backup, due 2026-11-25 06:00 +01:00");
    at(&scratch, FIRST).ends(3);
    assert_eq!(times(&scratch).len(), 1);
}

#[test]
fn what_a_schedule_has_run_stays_as_it_was_typed() {
    let script = "~~~sh\n    curl -u rosie:zq81ks03mfh2 x\n    ~~~";
    let schedules = format!(
        "{DAILY}  done_when: test zq81ks03mfh2\n  text: |\n    With zq81ks03mfh2.\n\n    {script}\n"
    );
    let scratch = board(&schedules, BEFORE);
    let schedule = scratch
        .program("tavern-schedule")
        .variable("TAVERN_TEST_NOW", FIRST);
    schedule
        .variable("MY_API_KEY", "zq81ks03mfh2")
        .run()
        .ends(0);
    has(
        &scratch.queue(),
        &[
            "With [redacted MY_API_KEY].",
            "curl -u rosie:zq81ks03mfh2 x\n",
            "test zq81ks03mfh2",
        ],
    );
}

/// Nobody may look for a draft that they did not write themselves.
#[test]
fn a_draft_that_a_schedule_queued_waits_for_a_person() {
    let scratch = board(&format!("{DAILY}  draft: true\n"), BEFORE);
    scratch.write(
        ".tavern/config.yaml",
        "notify: {list: {file: notices.txt}}\n",
    );
    scratch.run("tavern-notify", &[]);
    at(&scratch, FIRST).ends(0);
    let queue = scratch.queue();
    let line = queue
        .lines()
        .find(|line| line.contains("Check the backup"))
        .expect("it was queued");
    let id = line["- [ ] ".len()..]
        .split(':')
        .next()
        .expect("it has an ID");
    let todo = format!("tavern release {id}");
    let why = "a schedule queued it as a draft, for backup@2026-11-25T06:00+01:00";
    for flags in [&[][..], &["--since", "2026-11-25"]] {
        let told = scratch.run("tavern-status", flags).succeeds();
        has(&told, &["waits for you:", id, why, &todo]);
    }
    scratch.run("tavern-notify", &[]);
    has(&scratch.read("notices.txt"), &[why, &todo]);
    scratch.run("tavern-release", &[id]).succeeds();
    scratch
        .run("tavern-status", &[])
        .ends(0)
        .says_not("waits for you");
    // One's own draft waits for nothing but oneself.
    scratch
        .run("tavern-add", &["Mine (priority: 1)", "--draft"])
        .succeeds();
    scratch
        .run("tavern-status", &[])
        .ends(0)
        .says_not("waits for you");
}

#[test]
fn a_file_that_is_no_text_is_an_error_of_the_board() {
    let scratch = Scratch::initialized();
    let path = scratch.work().join(SCHEDULES);
    let away = "mv ";
    let check = |what: &str| {
        let ran = at(&scratch, FIRST).ends(5).says(away);
        assert!(!ran.stderr.contains("tavern init"), "{what}: {ran}");
        scratch
            .run("tavern-check", &[])
            .ends(5)
            .says("schedules.yaml");
    };
    scratch.write(SCHEDULES, b"caf\xe9:\n  every: hour\n  title: x\n");
    check("no UTF-8");
    fs::remove_file(&path).expect("it is ours");
    std::os::unix::fs::symlink("config.yaml", &path).expect("the folder is ours");
    check("a link");
    fs::remove_file(&path).expect("it is ours");
    fs::create_dir(&path).expect("the folder is ours");
    check("a folder");
}
