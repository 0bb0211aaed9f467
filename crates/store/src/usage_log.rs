//! `spent.jsonl` beside the log: the usage of each ended run, so that caps hold after runs are removed.

use std::collections::HashMap;
use std::io::Write;

use super::board::Board;
use super::error::Error;
use tavern_core::cap::Spent;
use tavern_sys::files;

const FILE: &str = "spent.jsonl";

impl Board {
    /// Appends the usage of runs; it is on disk on return. Of several lines of a run, the last counts.
    pub fn write_spent(&self, spent: &[Spent]) -> Result<(), Error> {
        let path = self.private(FILE);
        // The leading newline ends a line torn by a full disk.
        let line = |spent| {
            format!(
                "\n{}\n",
                serde_json::to_string(spent).expect("it is plain data")
            )
        };
        let lines: String = spent.iter().map(line).collect();
        let write = || {
            let mut file = files::open_to_append(&path)?;
            file.write_all(lines.as_bytes())?;
            file.sync_data()
        };
        write().map_err(Error::io("write", &path))
    }

    /// Returns true if any usage was recorded.
    pub fn has_spent(&self) -> bool {
        self.private(FILE).exists()
    }

    /// Returns the usage of ended runs, each once; `None` if nothing was ever recorded. Unreadable lines are skipped.
    pub fn spent(&self) -> Option<Vec<Spent>> {
        let text = files::read(self.private(FILE)).ok()?;
        let lines = text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Spent>(line).ok());
        let by_run: HashMap<_, Spent> = lines
            .map(|spent| ((spent.run.clone(), spent.started), spent))
            .collect();
        Some(by_run.into_values().collect())
    }
}
