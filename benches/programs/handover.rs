//! From one item's report to its claim by an agent that waits for it.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::tavern::Board;
use crate::timed::timed;
use crate::tool::Tool;

const ROUNDS: usize = 20;

/// On a board of `size` items of which all but one are held: how long from the start of the program that gives it back
/// to the end of the one that has been waiting for it.
pub fn waits(folder: &Path, size: usize) -> Vec<Duration> {
    let board = Board::new(folder, size);
    let mut taken = None;
    for _ in 0..size {
        taken = board.taken(&timed(&mut board.claim()).1).or(taken);
    }
    let mut taken = taken.expect("there is something to take");
    let mut waits = Vec::new();
    for _ in 0..ROUNDS {
        let waiting = board
            .waiting_claim()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it is there");
        // Until it has found nothing and waits.
        thread::sleep(Duration::from_millis(100));
        let started = Instant::now();
        let mut report = board
            .failed(&taken)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it is there");
        let output = waiting.wait_with_output().expect("it is our child");
        waits.push(started.elapsed());
        report.wait().expect("it is our child");
        taken = board
            .taken(&String::from_utf8_lossy(&output.stdout))
            .expect("it waited for this item");
    }
    waits
}
