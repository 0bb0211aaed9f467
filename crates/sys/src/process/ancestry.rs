//! The ancestors of this process. Knows nothing of the caller, nor of the programs.

use std::env;

use tavern_core::lease::Process;

use super::Mark;
use super::identity::identify_entry;
use super::table::{ProcessEntry, environ, marks_in, named};

/// The ancestors of this process at one moment. Each is read once: nearly every program of an agent asks for them.
///
/// A program may change its environment and that of its children, but not the one it was started with.
pub struct Ancestry {
    /// Its parent comes first.
    line: Vec<Ancestor>,
}

struct Ancestor {
    entry: ProcessEntry,
    /// The program's name.
    name: Vec<u8>,
    environ: Vec<u8>,
}

impl Ancestry {
    /// Reads the current ancestors, as far as visible.
    pub fn look() -> Ancestry {
        let mut line: Vec<Ancestor> = Vec::new();
        let mut next = rustix::process::getppid()
            .map_or(0, |parent| parent.as_raw_nonzero().get().unsigned_abs());
        while next != 0
            && line.iter().all(|known| known.entry.pid != next)
            && let Some((entry, name)) = named(next)
        {
            let environ = environ(next).unwrap_or_default();
            next = entry.parent;
            line.push(Ancestor {
                entry,
                name,
                environ,
            });
        }
        Ancestry { line }
    }

    /// Returns the values of [`Mark::RUN`] in all of them and in this process.
    pub fn marks(&self) -> Vec<String> {
        let own = env::var_os(Mark::RUN).map(|value| value.to_string_lossy().into_owned());
        let mut marks = marks_in(self.line.iter().map(|ancestor| ancestor.environ.as_slice()));
        marks.extend(own.filter(|own| !marks.contains(own)));
        marks
    }

    /// Returns the ancestors with a program name that begins with `name`.
    pub fn programs(&self, name: &str) -> Vec<Process> {
        self.line
            .iter()
            .filter(|ancestor| ancestor.name.starts_with(name.as_bytes()))
            .filter_map(|ancestor| identify_entry(&ancestor.entry))
            .collect()
    }

    /// Returns the variables that the ancestors were started with, if they are text and readable.
    pub fn variables(&self) -> Vec<(String, String)> {
        let variables = self
            .line
            .iter()
            .flat_map(|ancestor| ancestor.environ.split(|byte| *byte == 0));
        variables
            .filter_map(|text| std::str::from_utf8(text).ok()?.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}
