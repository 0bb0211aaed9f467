//! Places where a test can make a program fail. In release builds only the names exist.
//!
//! `TAVERN_FAILPOINT` holds `NAME=ACTION`, several separated by `;`. ACTION is `kill` (SIGKILL to the own process, like
//! a power cut), `error` (the place returns an I/O error), `sleep:MILLISECONDS` or `hold:PATH`. The last creates the
//! file `PATH.held`, then waits until `PATH` exists, so two programs meet at a chosen place without a race.
//! `@N` behind the action means the Nth time only. Each hit is reported on standard error, so that a test knows the
//! place was reached.
#![cfg_attr(
    debug_assertions,
    expect(
        clippy::disallowed_methods,
        reason = "failing on purpose needs a pause and a marker file; debug builds only"
    )
)]

use std::io;

/// Every name, with the state in which it is hit. A test checks this list against the calls of [`hit`].
pub const LIST: &[(&str, &str)] = &[
    (
        "queue.open",
        "a queue is open and it is known when it was written, nothing is read",
    ),
    ("replace.staged", "a temp file beside the target, empty"),
    (
        "replace.written",
        "a temp file with the new bytes, not synced",
    ),
    ("replace.synced", "a temp file with the new bytes, synced"),
    (
        "replace.renamed",
        "the file is the new one, its folder not synced",
    ),
    ("log.open", "the log is open, nothing appended"),
    ("log.torn", "half a line appended"),
    (
        "log.appended",
        "the event is committed, the files don't show it",
    ),
    (
        "archive.written",
        "items are in the archive, and in their queue still",
    ),
    (
        "submit.replaced",
        "the event is committed, the queue shows it, the lease doesn't",
    ),
    (
        "submit.leased",
        "queue and lease show the event, `applied` doesn't",
    ),
    (
        "run.ready",
        "the worktree, the prompt and the lease stand, the agent program has not started",
    ),
    (
        "run.ended",
        "the agent program has ended, nothing is concluded from it",
    ),
    (
        "cell.taken",
        "the work in an agent's cell is taken over, the cell is still there",
    ),
    (
        "worktree.kept",
        "the work in a worktree is kept, the worktree is still there",
    ),
    (
        "notices.sent",
        "people are notified, but that is not recorded",
    ),
    (
        "integrate.advanced",
        "the integration branch has moved, the item is still approved",
    ),
];

/// Performs the action that `TAVERN_FAILPOINT` sets for `name`; usually none.
#[cfg(debug_assertions)]
pub fn hit(name: &'static str) -> io::Result<()> {
    debug::hit(name)
}

/// Nothing: release builds have no failpoints.
#[cfg(not(debug_assertions))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "it must cost nothing")]
#[expect(clippy::unnecessary_wraps, reason = "the debug build's signature")]
pub fn hit(_name: &'static str) -> io::Result<()> {
    Ok(())
}

#[cfg(debug_assertions)]
mod debug {
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::{Mutex, OnceLock, PoisonError};
    use std::time::Duration;

    use crate::clock::Deadline;

    use super::LIST;

    #[derive(Clone, Debug, PartialEq)]
    enum Action {
        Kill,
        Error,
        Sleep(Duration),
        Hold(PathBuf),
    }

    #[derive(Debug, PartialEq)]
    pub(super) struct Plan {
        name: String,
        action: Action,
        /// 1 is the first hit; `None` means each.
        nth: Option<u32>,
        hits: u32,
    }

    pub(super) fn hit(name: &'static str) -> io::Result<()> {
        static PLANS: OnceLock<Mutex<Vec<Plan>>> = OnceLock::new();
        debug_assert!(
            LIST.iter().any(|(listed, _)| *listed == name),
            "`{name}` is not in failpoint::LIST"
        );
        let plans = PLANS.get_or_init(|| {
            Mutex::new(parse(
                &std::env::var("TAVERN_FAILPOINT").unwrap_or_default(),
            ))
        });
        let action = due(
            &mut plans.lock().unwrap_or_else(PoisonError::into_inner),
            name,
        );
        action.map_or(Ok(()), |action| act(name, &action))
    }

    fn due(plans: &mut [Plan], name: &str) -> Option<Action> {
        let mut found = None;
        for plan in plans.iter_mut().filter(|plan| plan.name == name) {
            plan.hits += 1;
            if plan.nth.is_none_or(|nth| nth == plan.hits) {
                found = Some(plan.action.clone());
            }
        }
        found
    }

    #[expect(
        clippy::print_stderr,
        reason = "tells a test that the place was reached"
    )]
    fn act(name: &str, action: &Action) -> io::Result<()> {
        eprintln!("failpoint: {name}");
        match action {
            Action::Error => Err(io::Error::other(format!("failpoint `{name}`"))),
            Action::Sleep(time) => {
                std::thread::sleep(*time);
                Ok(())
            }
            Action::Hold(path) => hold(path),
            Action::Kill => {
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::KILL)?;
                // The signal may take a moment to arrive; nothing more may happen in it.
                loop {
                    std::thread::park();
                }
            }
        }
    }

    fn hold(path: &Path) -> io::Result<()> {
        let mut marker = path.as_os_str().to_owned();
        marker.push(".held");
        std::fs::write(&marker, "")?;
        let deadline = Deadline::after(Duration::from_secs(60));
        while !path.exists() {
            if deadline.has_passed() {
                return Err(io::Error::other("the failpoint was not released for 60 s"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    pub(super) fn parse(text: &str) -> Vec<Plan> {
        text.split(';')
            .filter(|part| !part.is_empty())
            .map(parse_one)
            .collect()
    }

    fn parse_one(part: &str) -> Plan {
        let (name, rest) = part
            .split_once('=')
            .expect("TAVERN_FAILPOINT is NAME=ACTION[@N]");
        let (action, nth) = match rest.rsplit_once('@') {
            Some((action, nth)) => (
                action,
                Some(nth.parse().expect("`@N` behind the action is a number")),
            ),
            None => (rest, None),
        };
        let (verb, value) = action.split_once(':').unwrap_or((action, ""));
        let action = match verb {
            "kill" => Action::Kill,
            "error" => Action::Error,
            "sleep" => Action::Sleep(Duration::from_millis(
                value.parse().expect("`sleep:` takes milliseconds"),
            )),
            "hold" => Action::Hold(PathBuf::from(value)),
            _ => panic!("`{verb}` is not one of kill, error, sleep, hold"),
        };
        Plan {
            name: name.to_owned(),
            action,
            nth,
            hits: 0,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn plans_are_due_at_their_hit() {
            let mut plans = parse("a=error@2;b=sleep:5;c=hold:/x@1");
            assert_eq!(due(&mut plans, "a"), None);
            assert_eq!(due(&mut plans, "a"), Some(Action::Error));
            assert_eq!(due(&mut plans, "a"), None);
            assert_eq!(
                due(&mut plans, "b"),
                Some(Action::Sleep(Duration::from_millis(5)))
            );
            assert_eq!(
                due(&mut plans, "b"),
                Some(Action::Sleep(Duration::from_millis(5)))
            );
            assert_eq!(
                due(&mut plans, "c"),
                Some(Action::Hold(PathBuf::from("/x")))
            );
            assert_eq!(due(&mut plans, "d"), None);
        }
    }
}
