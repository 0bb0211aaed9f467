//! Actions of keys: each runs another of Tavern's programs, with that program's own rules, and shows its
//! output.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::run_program::sibling;
use tavern_sys::process::{Bell, ProgramExit, Ran, Spec, run_beside};

use super::style::{Tone, line};

/// The time limit for programs other than editors.
const LIMIT: Duration = Duration::from_secs(600);

/// Programs that were started and may still run.
pub struct Deeds {
    running: Vec<JoinHandle<()>>,
    tell: Sender<DoneDeed>,
    told: Receiver<DoneDeed>,
    bell: Bell,
}

/// The result of one that has ended.
pub struct DoneDeed {
    pub notice: (String, Tone),
    /// The prompt, if it succeeded.
    pub done: Option<String>,
}

impl Deeds {
    /// `bell` rings when one has ended.
    pub fn new(bell: &Bell) -> Deeds {
        let (tell, told) = channel();
        Deeds {
            running: Vec::new(),
            tell,
            told,
            bell: bell.clone(),
        }
    }

    /// Starts a program for the prompt `asked` without waiting; returns a message to show meanwhile.
    pub fn begin(
        &mut self,
        words: &[String],
        asked: String,
        board: &Path,
        folder: &Path,
    ) -> (String, Tone) {
        let spec = program(words, board, folder);
        let (tell, bell) = (self.tell.clone(), self.bell.clone());
        let started = thread::Builder::new().spawn(move || {
            let notice = done(spec);
            let done = (notice.1 != Tone::Bad).then_some(asked);
            // The receiver may be gone.
            let _ = tell.send(DoneDeed { notice, done });
            bell.ring();
        });
        match started {
            Ok(running) => self.running.push(running),
            Err(error) => return (error.to_string(), Tone::Bad),
        }
        (format!("tavern {} …", line(&words.join(" "))), Tone::Faint)
    }

    /// Returns those that have ended since the last call.
    pub fn ended(&mut self) -> Vec<DoneDeed> {
        self.running.retain(|running| !running.is_finished());
        self.told.try_iter().collect()
    }

    /// Waits for those that run.
    pub fn finish(self) {
        self.running
            .into_iter()
            .for_each(|running| _ = running.join());
    }
}

/// Returns the program for `tavern WORDS` on this board.
pub fn program(words: &[String], board: &Path, folder: &Path) -> io::Result<Spec> {
    let (program, first) = sibling(&words[0])?;
    let shared: [OsString; 4] = [
        "--dir".into(),
        board.into(),
        "--format".into(),
        "text".into(),
    ];
    let words = words[1..].iter().map(OsString::from);
    Ok(Spec::new(program, folder)
        .args(first)
        .args(shared)
        .args(words))
}

/// Runs it to its end, and returns its output in one line.
pub fn done(spec: io::Result<Spec>) -> (String, Tone) {
    match spec.and_then(|spec| run_beside(spec, LIMIT)) {
        Ok(Some(ran)) => notice(&ran),
        Ok(None) => ("timed out".to_owned(), Tone::Bad),
        Err(error) => (line(&error.to_string()), Tone::Bad),
    }
}

/// Returns its output in one line.
fn notice(ran: &Ran) -> (String, Tone) {
    let is_done = ran.exit == ProgramExit::Code(0);
    let (first, second) = if is_done {
        (&ran.stdout, &ran.stderr)
    } else {
        (&ran.stderr, &ran.stdout)
    };
    let text = [first, second].map(|text| String::from_utf8_lossy(text).trim().to_owned());
    let words: Vec<&str> = text.iter().flat_map(|text| text.lines()).collect();
    let words = words.join(" · ");
    let words = line(words.strip_prefix("error: ").unwrap_or(&words));
    (
        if words.is_empty() {
            "done".to_owned()
        } else {
            words
        },
        if is_done { Tone::Works } else { Tone::Bad },
    )
}
