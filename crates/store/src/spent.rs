//! `spent.jsonl` beside the log: what each run that has ended has used, so that caps hold when runs are removed.

use std::collections::HashMap;
use std::io::Write;

use super::error::Error;
use super::find::Board;
use tavern_core::cap::Spent;
use tavern_sys::files;

const FILE: &str = "spent.jsonl";

impl Board {
    /// Writes down what runs have used, on disk when it returns. Of several lines of a run the last counts.
    pub fn write_spent(&self, spent: &[Spent]) -> Result<(), Error> {
        let path = self.private(FILE);
        // What a full disk has torn before ends with it.
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

    /// Something was written down.
    pub fn has_spent(&self) -> bool {
        self.private(FILE).exists()
    }

    /// What the runs that have ended have used, each once; `None` where nothing was ever written down. A line that can't
    /// be read tells nothing.
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
