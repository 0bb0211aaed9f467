//! Whole programs side by side in one run: Tavern's, a bare floor, and what a shell user would take instead. Prints the
//! ratios of the README as Markdown tables, and judges nothing.
//!
//! `cargo bench --bench programs`; with numbers behind `--` only boards of these sizes (`-- 100 1000`), and with
//! `--claimers=8,32` so many at once; with `--all` the slow
//! tools too, which takes half an hour. Works in a folder of its own under `target/`, on that disk. Knows Tavern's programs from outside only.
#![expect(
    clippy::disallowed_methods,
    reason = "a measurement reads the clock, starts programs and writes its own files"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the tables are what this program is for"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::crowd::Crowd;
use crate::table::{Table, ms, ratio};
use crate::timed::{ROUNDS, median, timed};
use crate::tool::Tool;
use crate::tools::tools;

mod crowd;
mod floor;
mod handover;
mod peer;
mod table;
mod tavern;
mod timed;
mod tool;
mod tools;

fn main() -> ExitCode {
    // The floor is a program: this one, started anew.
    if std::env::args().nth(1).as_deref() == Some(floor::NAME) {
        return floor::main();
    }
    let given: Vec<usize> = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let sizes = if given.is_empty() {
        vec![100, 1_000, 10_000]
    } else {
        given
    };
    let scratch = tempfile::Builder::new()
        .prefix("programs-")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("a folder under target/ can be made");
    let with_peers = std::env::args().any(|argument| argument == "--all");
    for missing in tools::missing(with_peers) {
        eprintln!("programs: not there, so not measured: {missing}");
    }
    let tools = |name: String, size: usize| tools(&scratch.path().join(name), size, with_peers);
    let boards: Vec<(usize, Vec<Times>)> = sizes
        .iter()
        .map(|size| (*size, measured(&tools(size.to_string(), *size))))
        .collect();
    operations(&boards);
    // Where there are few items they would soon be given out.
    for size in sizes.iter().copied().filter(|size| *size >= 1_000) {
        crowds(
            &|claimers| tools(format!("crowds-{size}-{claimers}"), size),
            size,
            &claimers(),
        );
    }
    singles(scratch.path(), sizes[sizes.len() - 1]);
    ExitCode::SUCCESS
}

/// How many claim at once, from the fewest to the most.
fn claimers() -> Vec<usize> {
    let given = std::env::args()
        .find_map(|argument| argument.strip_prefix("--claimers=").map(str::to_owned));
    let given = given.unwrap_or_else(|| "1,2,8,32".to_owned());
    given
        .split(',')
        .map(|number| {
            number
                .parse()
                .expect("--claimers takes numbers with commas between them")
        })
        .collect()
}

/// The medians of one tool.
struct Times {
    name: &'static str,
    add: Duration,
    claim: Duration,
    done: Duration,
}

/// All tools in turn, round after round, so that whatever else the machine does meets all of them alike.
fn measured(tools: &[Box<dyn Tool>]) -> Vec<Times> {
    let mut samples: Vec<[Vec<Duration>; 3]> = tools.iter().map(|_| Default::default()).collect();
    for round in 0..=ROUNDS {
        let lasting = tools
            .iter()
            .zip(&mut samples)
            .filter(|(tool, _)| round <= tool.bounds().rounds);
        for (tool, [adds, claims, dones]) in lasting {
            let (add, _) = timed(&mut tool.add("One more thing to be done"));
            let (claim, said) = timed(&mut tool.claim());
            let taken = tool
                .taken(&said)
                .unwrap_or_else(|| panic!("{} takes nothing", tool.name()));
            let (done, _) = timed(&mut tool.done(&taken));
            // The first round warms the caches.
            if round > 0 {
                adds.push(add);
                claims.push(claim);
                dones.push(done);
            }
        }
    }
    let names = tools.iter().map(|tool| tool.name());
    names
        .zip(samples)
        .map(|(name, [adds, claims, dones])| Times {
            name,
            add: median(adds),
            claim: median(claims),
            done: median(dones),
        })
        .collect()
}

fn operations(boards: &[(usize, Vec<Times>)]) {
    let mut table = Table::new(&[
        "items", "tool", "add ms", "claim ms", "done ms", "add", "claim", "done",
    ]);
    for (size, times) in boards {
        let floor = &times[0];
        for time in times {
            let over = |part: fn(&Times) -> Duration| ratio(part(time), floor.claim);
            table.row(&[
                size.to_string(),
                time.name.to_owned(),
                ms(time.add),
                ms(time.claim),
                ms(time.done),
                over(|time| time.add),
                over(|time| time.claim),
                over(|time| time.done),
            ]);
        }
    }
    println!(
        "\nWhole processes, medians of {ROUNDS} (of fewer for the slow ones); the last three columns as multiples of the floor:\n\n{table}"
    );
    if let [(least, first), .., (most, last)] = boards {
        let mut table = Table::new(&["tool", "claim", "add", "done"]);
        for (small, large) in first.iter().zip(last) {
            table.row(&[
                small.name.to_owned(),
                ratio(large.claim, small.claim),
                ratio(large.add, small.add),
                ratio(large.done, small.done),
            ]);
        }
        println!("\nGrowth from {least} to {most} items:\n\n{table}");
    }
}

fn crowds(tools: &dyn Fn(usize) -> Vec<Box<dyn Tool>>, size: usize, claimers: &[usize]) {
    let mut table = Table::new(&[
        "tool",
        "claimers",
        "claims",
        "claims/s",
        "median ms",
        "p99 ms",
        "claimed twice",
        "lost",
    ]);
    for claimers in claimers.iter().copied() {
        for tool in tools(claimers).iter().skip(1) {
            if claimers > tool.bounds().claimers || size > tool.bounds().crowd {
                continue;
            }
            let crowd = Crowd::of(tool.as_ref(), claimers);
            table.row(&[
                tool.name().to_owned(),
                claimers.to_string(),
                crowd.claims.to_string(),
                format!("{:.0}", crowd.rate()),
                ms(crowd.median),
                ms(crowd.p99),
                crowd.doubles.to_string(),
                crowd.lost.to_string(),
            ]);
        }
    }
    println!("\nClaims of {size} items by many at once:\n\n{table}");
}

/// What is measured of Tavern alone.
fn singles(folder: &Path, size: usize) {
    let mut table = Table::new(&["what", "median", "p99"]);
    let board = tavern::Board::new(&folder.join("list"), size);
    let lists = (0..ROUNDS).map(|_| timed(&mut board.list()).0).collect();
    table.row(&[
        format!("list {size} items"),
        format!("{} ms", ms(median(lists))),
        String::new(),
    ]);
    for (size, what) in [(1, "a single item"), (1_000, "the last of 1,000 items")] {
        let waits = handover::waits(&folder.join(format!("handover-{size}")), size);
        let p99 = timed::p99(waits.clone());
        let what = format!(
            "from the report of {what} (start of that program) to its claim by a waiting agent"
        );
        table.row(&[
            what,
            format!("{} ms", ms(median(waits))),
            format!("{} ms", ms(p99)),
        ]);
    }
    for program in ["tavern-claim", "tavern-report"] {
        let path = tavern::program(program);
        let starts = (0..4 * ROUNDS)
            .map(|_| timed(std::process::Command::new(&path).arg("--version")).0)
            .collect();
        let what = format!(
            "start {program} to --version ({} KiB)",
            size_of_file(&path) / 1024
        );
        table.row(&[what, format!("{} ms", ms(median(starts))), String::new()]);
    }
    println!("\nTavern alone:\n\n{table}");
}

fn size_of_file(path: &PathBuf) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
