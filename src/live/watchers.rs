//! The events that wake the view: keys, signals, changes of the board and of a run's logs. Each sets a flag
//! and rings one bell.

use std::io::{self, stdin};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;

use tavern_store::config;
use tavern_store::{Board, Error, Queue};
use tavern_sys::file_watch::{FileWatch, WatchOrLook};
use tavern_sys::process::Bell;

/// The signals that the view handles.
const SIGNALS: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT];

/// A flag that stays set until it is taken.
#[derive(Clone, Debug, Default)]
pub struct Noticed(Arc<AtomicBool>);

impl Noticed {
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Clears the flag, and returns its previous value.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

/// Forwards signals from now until the process ends.
pub fn signals(bell: &Bell) -> io::Result<Receiver<i32>> {
    let (send, receive) = channel();
    let (mut signals, bell) = (Signals::new(SIGNALS)?, bell.clone());
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                if send.send(signal).is_err() {
                    return;
                }
                bell.ring();
            }
        })?;
    Ok(receive)
}

/// Signals when standard input is readable, without reading it: another program may have the terminal.
pub struct KeyWatch {
    /// Lets the thread look again.
    go: Bell,
    is_readable: Noticed,
}

impl KeyWatch {
    pub fn begin(bell: &Bell) -> io::Result<KeyWatch> {
        let watch = KeyWatch {
            go: Bell::new(),
            is_readable: Noticed::default(),
        };
        let (go, is_readable, bell) = (watch.go.clone(), watch.is_readable.clone(), bell.clone());
        thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || {
                loop {
                    go.wait(Duration::MAX);
                    while let Err(Errno::INTR) =
                        poll(&mut [PollFd::new(&stdin(), PollFlags::IN)], None)
                    {
                    }
                    is_readable.set();
                    bell.ring();
                }
            })?;
        watch.go.ring();
        Ok(watch)
    }

    /// Returns the available input; `None` if the terminal is gone.
    pub fn read(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        if !self.is_readable.take() {
            return Some(bytes);
        }
        while is_readable_now() {
            let mut part = [0; 1024];
            match rustix::io::read(stdin(), &mut part) {
                Ok(length @ 1..) => bytes.extend_from_slice(&part[..length]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Ok(0) | Err(_) => return None,
            }
        }
        self.go.ring();
        Some(bytes)
    }
}

fn is_readable_now() -> bool {
    !input_now().is_empty()
}

/// Returns true if the terminal at standard input was closed.
pub fn is_terminal_gone() -> bool {
    input_now().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

/// Polls standard input without waiting.
fn input_now() -> PollFlags {
    let input = stdin();
    let mut asked = [PollFd::new(&input, PollFlags::IN)];
    match poll(&mut asked, Some(&Timespec::default())) {
        Ok(1..) => asked[0].revents(),
        _ => PollFlags::empty(),
    }
}

/// Marks changes of the board until it is dropped.
pub struct BoardWatch {
    pub has_changed: Noticed,
    changes: Bell,
    is_over: Noticed,
    _queues: WatchOrLook,
    _others: WatchOrLook,
}

impl BoardWatch {
    /// Watches these queues, agents, the log, the settings, and files that pause or close anything.
    pub fn begin(board: &Board, queues: &[Queue], bell: &Bell) -> Result<BoardWatch, Error> {
        let (has_changed, changes) = (Noticed::default(), Bell::new());
        let queues = board.ring_at_changes(queues, &changes)?;
        let (folder, settings) = (board.dir().to_owned(), board.path(config::FILE));
        // If the last queue is removed for a moment, the next one appears here.
        let others = [
            folder.clone(),
            board.path("queues"),
            board.path("agents"),
            board.private("events"),
        ]
        .into_iter();
        let ring = changes.clone();
        let others = WatchOrLook::new(others.filter(|path| path.exists()), move |path| {
            // A save may replace the file, so its folder is watched; other files in it don't count.
            if path.is_none_or(|path| path == settings || path.parent() != Some(&folder)) {
                ring.ring();
            }
        });
        let others = others.map_err(|(path, source)| Error::io("watch", &path)(source))?;
        let is_over = Noticed::default();
        let (mark, bell, rings, end) = (
            has_changed.clone(),
            bell.clone(),
            changes.clone(),
            is_over.clone(),
        );
        let pass_on = move || {
            loop {
                rings.wait(Duration::MAX);
                if end.take() {
                    return;
                }
                mark.set();
                bell.ring();
            }
        };
        let started = thread::Builder::new().spawn(pass_on);
        started.map_err(Error::io("watch", board.dir()))?;
        Ok(BoardWatch {
            has_changed,
            changes,
            is_over,
            _queues: queues,
            _others: others,
        })
    }
}

impl Drop for BoardWatch {
    fn drop(&mut self) {
        self.is_over.set();
        self.changes.ring();
    }
}

/// Marks changes in the folder of a run until it is dropped; `None` if it can't be watched.
pub fn run_watch(folder: PathBuf, has_changed: &Noticed, bell: &Bell) -> Option<FileWatch> {
    let (mark, bell) = (has_changed.clone(), bell.clone());
    let told = move |_: Option<&std::path::Path>| {
        mark.set();
        bell.ring();
    };
    FileWatch::new([folder], told).ok()
}
