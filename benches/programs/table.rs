//! A Markdown table on standard output.

use std::fmt;
use std::time::Duration;

/// Rows under one heading.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(heading: &[&str]) -> Table {
        let heading = heading.iter().map(|cell| (*cell).to_owned()).collect();
        Table {
            rows: vec![heading],
        }
    }

    pub fn row(&mut self, cells: &[String]) {
        self.rows.push(cells.to_vec());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, row) in self.rows.iter().enumerate() {
            writeln!(f, "| {} |", row.join(" | "))?;
            if number == 0 {
                writeln!(f, "|{}", "---|".repeat(row.len()))?;
            }
        }
        Ok(())
    }
}

/// In milliseconds, three digits of them.
pub fn ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 10.0 {
        format!("{ms:.2}")
    } else {
        format!("{ms:.0}")
    }
}

/// How often `small` fits into `large`.
pub fn ratio(large: Duration, small: Duration) -> String {
    format!(
        "{:.2} ×",
        large.as_secs_f64() / small.as_secs_f64().max(1e-9)
    )
}
