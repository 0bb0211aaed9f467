//! How long a program takes, from its start until it has been waited for, and what of many such times is told.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Times that each operation of each tool is measured at each size.
pub const ROUNDS: usize = 25;

/// Runs it to its end; what it printed comes back beside the time. A program that fails ends the measurement.
pub fn timed(command: &mut Command) -> (Duration, String) {
    let started = Instant::now();
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("the program is there");
    let time = started.elapsed();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?} ended with {}: {said}{error}",
        output.status
    );
    (time, said)
}

pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

pub fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times
        .get((times.len() * 99 / 100).min(times.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}
