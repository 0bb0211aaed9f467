//! Many claimers at once, each starting one claim after the other, and whether every item went to exactly one of them.

use std::collections::HashSet;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::timed;
use crate::tool::Tool;

/// Claims that are made together, or as many as there is time for.
const CLAIMS: usize = 600;
const LONGEST: Duration = Duration::from_secs(4);

/// What came of it.
pub struct Crowd {
    pub claims: usize,
    pub median: Duration,
    pub p99: Duration,
    /// Items that two were given.
    pub doubles: usize,
    /// Items that somebody was given and that the tool does not show as held, and the reverse.
    pub lost: usize,
    time: Duration,
}

impl Crowd {
    pub fn of(tool: &dyn Tool, claimers: usize) -> Crowd {
        let started = Instant::now();
        let begun = AtomicUsize::new(0);
        let taken: Vec<(Duration, String)> = thread::scope(|scope| {
            let threads: Vec<_> = (0..claimers)
                .map(|_| scope.spawn(|| claims(tool, started, &begun)))
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("a claimer ends"))
                .collect()
        });
        let time = started.elapsed();
        let ids: Vec<&str> = taken
            .iter()
            .filter_map(|(_, taken)| taken.split_whitespace().next())
            .collect();
        let given: HashSet<&str> = ids.iter().copied().collect();
        let held = tool.held();
        let shown: HashSet<&str> = held.iter().map(String::as_str).collect();
        let times: Vec<Duration> = taken.iter().map(|(time, _)| *time).collect();
        Crowd {
            claims: ids.len(),
            median: timed::median(times.clone()),
            p99: timed::p99(times),
            doubles: ids.len() - given.len(),
            lost: given.symmetric_difference(&shown).count(),
            time,
        }
    }

    /// Claims a second, all claimers together.
    pub fn rate(&self) -> f64 {
        self.claims as f64 / self.time.as_secs_f64()
    }
}

fn claims(tool: &dyn Tool, started: Instant, begun: &AtomicUsize) -> Vec<(Duration, String)> {
    let mut taken = Vec::new();
    while begun.fetch_add(1, Ordering::Relaxed) < CLAIMS && started.elapsed() < LONGEST {
        let began = Instant::now();
        let output = tool
            .claim()
            .stdin(Stdio::null())
            .output()
            .expect("the program is there");
        let time = began.elapsed();
        taken.extend(
            tool.taken(&String::from_utf8_lossy(&output.stdout))
                .map(|taken| (time, taken)),
        );
    }
    taken
}
