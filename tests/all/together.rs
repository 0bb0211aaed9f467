//! Claimers that wait for the lock are served together: each request is answered once or not at all, whoever dies.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tavern::board::event::Kind;
use tavern::store::Entry;

use crate::dice::{Dice, number};
use crate::state::State;
use crate::support::{Held, Ran, Run, Running, Scratch, wait_until};

fn board(items: usize, lanes: bool) -> Scratch {
    let items: String = (0..items).map(|number| format!("- [ ] T-{number}: item {number}\n")).collect();
    let (head, tail) = if lanes { ("## Pending\n\n", "\n## In Progress\n\n## Completed\n") } else { ("", "") };
    let scratch = Scratch::shell(&format!("{head}{items}{tail}"), "");
    scratch.run("tavern-add", &["--id", "T-99last", "--priority", "9", "The last"]).succeeds();
    scratch
}

fn claimer(scratch: &Scratch, arguments: &[&str]) -> Run {
    scratch.program("tavern-claim").args(&["--agent", "Frodo", "--format", "json"]).args(arguments)
}

fn requests(scratch: &Scratch) -> usize {
    fs::read_dir(scratch.work().join(".tavern/slots/claims")).map_or(0, Iterator::count)
}

/// Somebody who has the lock until they are let go on.
fn hold(scratch: &Scratch) -> Held {
    scratch.holding("log.open", "tavern-add", &["One more"])
}

/// Starts each once the one before it waits.
fn all_waiting(scratch: &Scratch, runs: Vec<Run>) -> Vec<Running> {
    let start = |(number, run): (usize, Run)| {
        let running = run.start();
        wait_until("it waits", || requests(scratch) > number);
        running
    };
    runs.into_iter().enumerate().map(start).collect()
}

/// The task and the token, if it got one.
fn taken(ran: &Ran) -> Option<(String, u64)> {
    let claimed: serde_json::Value = serde_json::from_str(&ran.stdout).ok()?;
    assert_eq!(claimed["status"], "in_progress", "{ran}");
    Some((claimed["id"].as_str()?.to_owned(), claimed["lease"]["token"].as_u64()?))
}

fn claims(state: &State) -> Vec<&Entry> {
    state.log.iter().filter(|entry| entry.kind == Kind::Claimed).collect()
}

/// No item was given out twice, no request was answered twice, and who was told of an item holds it.
fn is_sound(scratch: &Scratch, told: &[(String, u64)]) -> usize {
    let state = State::of(scratch);
    state.agrees();
    let claims = claims(&state);
    let tasks: BTreeSet<_> = claims.iter().map(|entry| &entry.task).collect();
    assert_eq!(tasks.len(), claims.len(), "each item once: {claims:#?}");
    let answers: Vec<&String> = claims.iter().filter_map(|entry| entry.request.as_ref()).collect();
    assert_eq!(answers.iter().collect::<BTreeSet<_>>().len(), answers.len(), "each request once: {claims:#?}");
    let held: Vec<(&String, &u64)> = state.leases.iter().collect();
    assert_eq!(held.len(), claims.len(), "{claims:#?}");
    for (task, token) in told {
        assert!(held.contains(&(task, token)), "{task} is held by {token}: {held:?}");
    }
    let tasks: BTreeSet<&String> = told.iter().map(|(task, _)| task).collect();
    assert_eq!(tasks.len(), told.len(), "nobody was told of another's item: {told:?}");
    claims.len()
}

#[test]
fn those_who_wait_are_served_in_one_step() {
    for lanes in [true, false] {
        let scratch = board(9, lanes);
        let holder = hold(&scratch);
        let mut runs: Vec<Run> = (0..4).map(|_| claimer(&scratch, &[])).collect();
        runs.push(claimer(&scratch, &["--task", "T-7"]));
        runs.push(claimer(&scratch, &["--role", "planner"]));
        runs.push(claimer(&scratch, &[]));
        runs.push(claimer(&scratch, &[]));
        let mut waiting = all_waiting(&scratch, runs);
        // Nothing is claimed for the dead, however they died.
        waiting.pop().expect("there are some").kill();
        let interrupted = waiting.pop().expect("there are some");
        interrupted.signal(rustix::process::Signal::INT);
        interrupted.end();
        holder.goes_on();
        let ran: Vec<Ran> = waiting.into_iter().map(Running::end).collect();
        assert_eq!(ran[5].code, Some(3), "{}", ran[5]);
        let told: Vec<(String, u64)> = ran.iter().filter_map(taken).collect();
        assert_eq!(told.len(), 5, "{told:?}");
        assert!(told[4].0 == "T-7", "what it asked for: {told:?}");
        assert_eq!(is_sound(&scratch, &told), 5);
        let state = State::of(&scratch);
        let claims = claims(&state);
        // All but that of whoever got the lock first, one behind the other.
        assert_eq!(claims.iter().filter(|entry| entry.request.is_some()).count(), 4, "{claims:#?}");
        assert!(claims.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq), "{claims:#?}");
        assert_eq!(requests(&scratch), 0);
    }
}

#[test]
fn whoever_serves_others_may_be_killed_anywhere() {
    // With how many of them are told of an item: half a step may be in the log.
    for (place, told_of) in [
        ("replace.synced", 0),
        ("log.torn", 1),
        ("log.appended", 3),
        ("replace.renamed", 0),
        ("submit.replaced", 3),
        ("submit.leased", 3),
    ] {
        let scratch = board(9, true);
        let holder = hold(&scratch);
        let plan = format!("{place}=kill");
        let run = |_| claimer(&scratch, &[]).variable("TAVERN_FAILPOINT", &plan);
        let waiting = all_waiting(&scratch, (0..4).map(run).collect());
        holder.goes_on();
        let ran: Vec<Ran> = waiting.into_iter().map(Running::end).collect();
        let told: Vec<(String, u64)> = ran.iter().filter_map(taken).collect();
        let killed = ran.iter().filter(|ran| ran.code.is_none()).count();
        assert!(killed + told.len() == 4 && told.len() >= told_of, "{place}: {ran:?}");
        scratch.run("tavern-add", &["The next program"]).succeeds();
        assert!(is_sound(&scratch, &told) <= told.len() + killed, "{place}");
    }
}

#[test]
fn claimers_that_are_killed_at_random_are_served_once_or_not_at_all() {
    const CLAIMERS: usize = 8;
    let items = usize::try_from(number("TAVERN_TEST_ROUNDS", 80)).expect("a small number");
    let seed = number("TAVERN_TEST_SEED", 0x746f_6765);
    let scratch = board(items, true);
    let killed = AtomicUsize::new(0);
    let told: Vec<(String, u64)> = thread::scope(|scope| {
        let work = |claimer_number: usize| {
            let (scratch, killed) = (&scratch, &killed);
            move || {
                let mut dice = Dice(seed + 1000 * claimer_number as u64);
                let mut told = Vec::new();
                loop {
                    let mut running = claimer(scratch, &[]).start();
                    let looks = 1 + dice.below(300);
                    // It is somewhere else each time.
                    if dice.below(3) == 0 && (0..looks).all(|_| !running.has_ended()) {
                        running.kill();
                        killed.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let ran = running.end();
                    match taken(&ran) {
                        Some(item) => told.push(item),
                        None => {
                            assert_eq!(ran.code, Some(3), "{ran}");
                            return told;
                        }
                    }
                }
            }
        };
        let threads: Vec<_> = (0..CLAIMERS).map(|number| scope.spawn(work(number))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a claimer's thread ends")).collect()
    });
    let claims = is_sound(&scratch, &told);
    assert_eq!(claims, items + 1, "all were given out");
    assert!(claims <= told.len() + killed.into_inner(), "for each claim somebody was told or killed");
    let state = State::of(&scratch);
    assert!(state.log.iter().any(|entry| entry.request.is_some()), "some were served by others");
}
