//! Texts of a clone that are twice as long: reading them costs twice as much, and not the square.

use std::path::Path;

use crate::dice::is_in_slice;
use crate::support::{QUEUE, Scratch};

/// Makes the files of a repository, of so many lines together.
type Text = fn(usize) -> Vec<(String, String)>;

fn list(lines: impl Iterator<Item = String>) -> Vec<(String, String)> {
    vec![(".tavern/queues/main.md".to_owned(), lines.collect())]
}

const CASES: [(&str, Text); 10] = [
    ("near misses of names", |count| {
        let line =
            |n| format!("- [ ] the item {n:04} of the list (after: teh itam {n:04} of list)\n");
        list((0..count).map(line))
    }),
    ("phrases that name nothing", |count| {
        list(
            (0..count).map(|n| format!("- [ ] item{n} (after: the great launch{n} of it) today\n")),
        )
    }),
    ("signs of blockers", |count| {
        list((0..count).map(|n| format!("- [ ] one {n} 🆔 a{n} ⛔ b{n}\n")))
    }),
    ("lines of what is waited for", |count| {
        let line = |n| {
            format!("- [ ] A-{n}: One\n  Dependencies: A-{n}, item {n} and x\n  Depends on A-1\n")
        };
        list((1..count).map(line))
    }),
    ("what comes before another", |count| {
        list((1..count).map(|n| format!("- [ ] A-{n}: One [before the A-1]\n  Blocks: A-1\n")))
    }),
    ("words among names", |count| {
        let names = (0..20 * count)
            .map(|n| format!("w{} ", n % 9))
            .collect::<String>();
        let items = (0..count).map(|n| format!("- [ ] w1 w2 w3 w4 w5 {n}\n"));
        list(std::iter::once(format!("- [ ] One\n  After: {names}\n")).chain(items))
    }),
    ("front matter and items", |count| {
        let front = format!("---\nid: main\ngoal: {}\n---\n", "x".repeat(count * 100));
        list(std::iter::once(front).chain((0..count).map(|n| format!("- [ ] T-{n}: One\n"))))
    }),
    ("roles of front matter and items", |count| {
        let front = format!("---\nid: main\nrole: {}\n---\n", "x".repeat(count * 100));
        list(std::iter::once(front).chain((0..count).map(|n| format!("- [ ] T-{n}: One\n"))))
    }),
    ("queues", |count| {
        let text = |n| format!("---\nid: q{n}\n---\n- [ ] Q{n}-1: One\n");
        let queues = 0..count / 10;
        queues
            .map(|n| (format!(".tavern/queues/q{n}.md"), text(n)))
            .collect()
    }),
    ("items of one title", |count| {
        list((0..count).map(|n| format!("## H{n}\n\n- [ ] Same\n")))
    }),
];

/// Seconds of user time that the program takes.
fn cost(scratch: &Scratch, verb: &str) -> f64 {
    let line = format!("ulimit -t 100; tavern {verb} >\"$HOME/told\" 2>&1; times");
    let told = scratch
        .command(Path::new("bash"))
        .args(&["-c", &line])
        .run()
        .succeeds();
    let children = told.lines().last().expect("a line");
    let user = children.split(' ').next().expect("a time");
    let (minutes, seconds) = user.split_once('m').expect("minutes");
    let seconds = seconds.trim_end_matches('s').replace(',', ".");
    minutes.parse::<f64>().expect("a number") * 60.0 + seconds.parse::<f64>().expect("a number")
}

#[test]
fn what_is_twice_as_long_takes_twice_as_long() {
    // Seconds by which a measurement may be off.
    const FLOOR: f64 = 0.2;
    const COUNT: usize = 750;
    let is_tried = |(nth, _): &(usize, _)| is_in_slice(*nth, 3);
    for (_, (name, text)) in CASES.into_iter().enumerate().filter(is_tried) {
        let [one, two] = [COUNT, 2 * COUNT].map(|count| {
            let scratch = Scratch::initialized();
            std::fs::remove_file(scratch.work().join(".tavern/queues/main.md"))
                .expect("it is there");
            for (path, text) in text(count) {
                scratch.write(path, text);
            }
            scratch
        });
        for verb in ["check", "status", "claim --dry-run"] {
            // A busy machine is slow at one time, and at the other it is not.
            let is_linear = || {
                let (one, two) = (cost(&one, verb), cost(&two, verb));
                (two <= FLOOR + 2.6 * one).then_some(()).ok_or((one, two))
            };
            let tried = is_linear()
                .or_else(|_| is_linear())
                .or_else(|_| is_linear());
            if let Err((one, two)) = tried {
                panic!("{name}, {verb}: {one} s, then {two} s");
            }
        }
    }
}

/// A list of so many items with states, as somebody saves it: with another title, or without IDs.
#[test]
fn a_save_of_a_list_that_is_twice_as_long_takes_twice_as_long() {
    let board = |count: usize, save: &dyn Fn(String) -> String| {
        let items: String = (0..count)
            .map(|n| format!("- [ ] T-{n}: Write part {n}\n"))
            .collect();
        let states = (0..count).map(|n| format!("T-{n}: {{status: pending, attempt: 1}}\n"));
        let scratch = Scratch::initialized();
        scratch.write(".tavern/queues/main.state.yaml", states.collect::<String>());
        scratch.write(QUEUE, format!("## Pending\n\n{items}"));
        scratch.settle();
        scratch.write(QUEUE, save(scratch.queue()));
        let took = cost(&scratch, "reap");
        scratch.stands("T-7", "pending", 1);
        took
    };
    let retitled = |text: String| text.replace("Write part 7\n", "Write the seventh part\n");
    let nameless = |text: String| {
        let bare = |line: &str| match line.split_once(": ") {
            Some((_, title)) => format!("- [ ] {title}\n"),
            None => format!("{line}\n"),
        };
        text.lines().map(bare).collect()
    };
    let saves: [(usize, &dyn Fn(String) -> String); 2] = [(2000, &retitled), (500, &nameless)];
    for (count, save) in saves {
        let took = [count, 2 * count].map(|count| board(count, save));
        assert!(took[1] <= 0.2 + 2.6 * took[0], "{count}: {took:?}");
    }
}
