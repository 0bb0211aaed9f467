//! Standard output: data, one record after another, in the requested format.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use anstream::AutoStream;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use serde::Serialize;

use tavern_sys::process::argument;

use super::error::CliError;
use super::format::{self, Painted};
use super::shared::{Format, Shared};

/// Destination of records, buffered until [`Output::flush`] or the program's end.
pub struct Output {
    format: Format,
    speaks: bool,
    /// Columns of the terminal on standard output, if any.
    width: Option<usize>,
    sink: RefCell<BufWriter<AutoStream<Stdout>>>,
}

/// Capacity of a pipe, in bytes.
pub(super) const ROOM: usize = 64 * 1024;

/// Returns the columns of the terminal on standard error, if any.
fn width_of_notes() -> Option<usize> {
    format::columns_of(io::stderr())
}

impl Output {
    pub(super) fn stdout(shared: &Shared) -> Output {
        let sink = RefCell::new(BufWriter::with_capacity(ROOM, anstream::stdout()));
        Output {
            format: shared.format(),
            speaks: !shared.quiet,
            width: format::columns_of(io::stdout()),
            sink,
        }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Prints one record: `text` folded to the terminal's width, or all of `record` as JSON.
    pub fn record(
        &self,
        record: &impl Serialize,
        text: impl Into<Painted>,
    ) -> Result<(), CliError> {
        match self.format {
            Format::Text => self.line(text),
            Format::Json => {
                let json = serde_json::to_string(record)?;
                self.print(&format::json_for_terminal(&json))
            }
            Format::Env => Err(no_variables()),
        }
    }

    /// Prints a row of a table: `columns` unchanged, `title` cut to the terminal's width, and `mark` in parentheses.
    /// The mark is shown whole, on a line of its own if needed.
    pub fn row(
        &self,
        record: &impl Serialize,
        columns: &str,
        title: &str,
        mark: &str,
    ) -> Result<(), CliError> {
        self.record(record, self.fitted(columns, title, mark))
    }

    /// Prints a line of a list, cut to the terminal's width.
    pub fn line_of_list(&self, record: &impl Serialize, line: &str) -> Result<(), CliError> {
        self.record(
            record,
            self.width.map_or_else(
                || line.into(),
                |width| format::cut(line, width.saturating_sub(1)),
            ),
        )
    }

    /// Returns a row as [`Output::row`] prints it, to be printed with others.
    pub fn fitted(&self, columns: &str, title: &str, mark: &str) -> String {
        format::row(self.width, columns, title, mark)
    }

    /// Like [`Output::record`], for the few programs that print variables for a shell.
    pub fn record_with_variables(
        &self,
        record: &impl Serialize,
        text: impl Into<Painted>,
        variables: &[(&str, impl AsRef<str>)],
    ) -> Result<(), CliError> {
        if self.format != Format::Env {
            return self.record(record, text);
        }
        let pairs: Vec<String> = variables
            .iter()
            .map(|(name, value)| format!("{name}={}", argument(value.as_ref())))
            .collect();
        self.print(&pairs.join(" "))
    }

    /// Prints a URL of this program with its key. It is not redacted, since the user needs it.
    pub fn address(&self, record: &impl Serialize, address: &str) -> Result<(), CliError> {
        match self.format {
            Format::Text => self.print(address),
            Format::Json => self.print(&serde_json::to_string(record)?),
            Format::Env => Err(no_variables()),
        }
    }

    /// Prints a line in text format only, such as a heading or a total.
    pub fn text(&self, text: impl Into<Painted>) -> Result<(), CliError> {
        if self.format == Format::Text {
            self.line(text)
        } else {
            Ok(())
        }
    }

    /// Prints a record in JSON only; its text form is printed elsewhere.
    pub fn json(&self, record: &impl Serialize) -> Result<(), CliError> {
        if self.format == Format::Json {
            self.record(record, "")
        } else {
            Ok(())
        }
    }

    /// Prints a note for people on standard error, unless `--quiet`.
    pub fn note(&self, text: impl Into<Painted>) {
        if self.speaks {
            // Both streams often lead to the same terminal; flushing keeps the order.
            let _ = self.sink.borrow_mut().flush();
            // A closed standard error is no reason to stop.
            let _ = writeln!(
                anstream::stderr().lock(),
                "{}",
                text.into().within(width_of_notes())
            );
        }
    }

    /// Cuts `line` to the width of the terminal on standard error, if there is one.
    pub fn shortened<'l>(&self, line: &'l str) -> Cow<'l, str> {
        width_of_notes().map_or(Cow::Borrowed(line), |width| {
            format::cut(line, width.saturating_sub(2))
        })
    }

    /// Returns a progress bar on standard error, such as "reading runs", which vanishes when dropped. It is hidden
    /// under `--quiet` or without a terminal.
    pub fn progress(&self, total: usize, what: &'static str) -> ProgressBar {
        let is_seen = self.speaks && io::stderr().is_terminal();
        let target = if is_seen {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template("reading {msg}: {pos}/{len} {wide_bar}")
            .expect("the template is right");
        let bar = ProgressBar::with_draw_target(Some(total as u64), target)
            .with_style(style)
            .with_message(what);
        bar.with_finish(ProgressFinish::AndClear)
    }

    /// Returns whether notes are printed on standard error.
    pub fn is_told(&self) -> bool {
        self.speaks
    }

    /// Flushes the output printed so far, such as before a wait.
    pub fn flush(&self) -> Result<(), CliError> {
        let flushed = self.sink.borrow_mut().flush();
        flushed.map_err(|error| self.unwritten(&error))
    }

    fn line(&self, text: impl Into<Painted>) -> Result<(), CliError> {
        self.print(&text.into().within(self.width))
    }

    fn print(&self, line: &str) -> Result<(), CliError> {
        let written = writeln!(self.sink.borrow_mut(), "{line}");
        written.map_err(|error| self.unwritten(&error))
    }

    /// Returns the error with the unwritten output, which reports changes that have happened.
    fn unwritten(&self, error: &io::Error) -> CliError {
        let failed = CliError::output(error);
        if failed.message.is_empty() {
            return failed;
        }
        let left = String::from_utf8_lossy(self.sink.borrow().buffer())
            .trim_end()
            .replace('\n', "; ");
        let message = format!(
            "{}; the output would have been: {}",
            failed.message,
            format::words(&left)
        );
        CliError { message, ..failed }
    }
}

/// Returns the error for `--format env` with a program that has no variables.
pub(super) fn no_variables() -> CliError {
    CliError::usage(
        "this program has no variables to print",
        "use `--format text` or `--format json`",
    )
}
