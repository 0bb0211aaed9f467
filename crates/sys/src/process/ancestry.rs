//! The processes above this one. Knows nothing of who asks, nor of what they run.

use tavern_core::lease::Process;

use super::identity::identify_entry;
use super::table::{ProcessEntry, environ, marks_in, named};

/// This process and those above it, at one moment. Each is read once: nearly every program of an agent's asks for them.
///
/// A program may change its environment and that of what it starts; what it was started with itself stays.
pub struct Ancestry {
    /// This process first.
    line: Vec<Ancestor>,
}

struct Ancestor {
    entry: ProcessEntry,
    /// Its program's.
    name: Vec<u8>,
    environ: Vec<u8>,
}

impl Ancestry {
    /// As it is now, and as far as it can be seen.
    pub fn look() -> Ancestry {
        let mut line: Vec<Ancestor> = Vec::new();
        let mut next = std::process::id();
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

    /// The values of [`Mark::RUN`](super::Mark::RUN) of them all.
    pub fn marks(&self) -> Vec<String> {
        marks_in(self.line.iter().map(|ancestor| ancestor.environ.as_slice()))
    }

    /// Those above this process whose program's name begins with `name`.
    pub fn programs(&self, name: &str) -> Vec<Process> {
        self.above()
            .filter(|ancestor| ancestor.name.starts_with(name.as_bytes()))
            .filter_map(|ancestor| identify_entry(&ancestor.entry))
            .collect()
    }

    /// The variables that the processes above this one were started with, as far as they are text and can be read.
    pub fn variables(&self) -> Vec<(String, String)> {
        let variables = self
            .above()
            .flat_map(|ancestor| ancestor.environ.split(|byte| *byte == 0));
        variables
            .filter_map(|text| std::str::from_utf8(text).ok()?.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    fn above(&self) -> impl Iterator<Item = &Ancestor> {
        self.line.iter().skip(1)
    }
}
