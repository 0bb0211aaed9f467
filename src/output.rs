//! Standard output: data, one record after the other, in the form that was asked for.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use anstream::AutoStream;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use serde::Serialize;

use tavern_sys::process::argument;

use super::error::CliError;
use super::human::{self, Painted};
use super::shared::{Format, Shared};

/// Where records go. Nothing is seen before [`Output::flush`] or the program's end.
pub struct Output {
    format: Format,
    speaks: bool,
    /// Columns of standard output and of standard error.
    width: Option<usize>,
    width_of_notes: Option<usize>,
    sink: RefCell<BufWriter<AutoStream<Stdout>>>,
}

/// What a pipe takes at once.
pub(super) const ROOM: usize = 64 * 1024;

impl Output {
    pub(super) fn stdout(shared: &Shared) -> Output {
        let sink = RefCell::new(BufWriter::with_capacity(ROOM, anstream::stdout()));
        let (width, width_of_notes) = (
            human::columns_of(io::stdout()),
            human::columns_of(io::stderr()),
        );
        Output {
            format: shared.format,
            speaks: !shared.quiet,
            width,
            width_of_notes,
            sink,
        }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// One record: `text` for people, folded where the terminal is narrower, the whole of `record` as JSON.
    pub fn record(
        &self,
        record: &impl Serialize,
        text: impl Into<Painted>,
    ) -> Result<(), CliError> {
        match self.format {
            Format::Text => self.line(text),
            Format::Json => {
                let json = serde_json::to_string(record)?;
                self.print(&human::json_for_terminal(&json))
            }
            Format::Env => Err(no_variables()),
        }
    }

    /// A row of a table: `columns` as they are, a title that is cut where the line would be longer than the terminal is
    /// wide, and in parentheses a mark. That is shown whole, on a line of its own if need be.
    pub fn row(
        &self,
        record: &impl Serialize,
        columns: &str,
        title: &str,
        mark: &str,
    ) -> Result<(), CliError> {
        self.record(record, self.fitted(columns, title, mark))
    }

    /// A line of a list, of which no more is shown than a line of the terminal takes.
    pub fn line_of_list(&self, record: &impl Serialize, line: &str) -> Result<(), CliError> {
        self.record(
            record,
            self.width.map_or_else(
                || line.into(),
                |width| human::cut(line, width.saturating_sub(1)),
            ),
        )
    }

    /// A row as [`Output::row`] prints it, to be printed with others.
    pub fn fitted(&self, columns: &str, title: &str, mark: &str) -> String {
        human::row(self.width, columns, title, mark)
    }

    /// As [`Output::record`], for the few programs that a shell takes variables from.
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

    /// Prints an address of this program's own, with the key to it: it is made to be seen here, so nothing of it is taken out.
    pub fn address(&self, record: &impl Serialize, address: &str) -> Result<(), CliError> {
        match self.format {
            Format::Text => self.print(address),
            Format::Json => self.print(&serde_json::to_string(record)?),
            Format::Env => Err(no_variables()),
        }
    }

    /// A line that is for people only (a heading, a total): not there in JSON.
    pub fn text(&self, text: impl Into<Painted>) -> Result<(), CliError> {
        if self.format == Format::Text {
            self.line(text)
        } else {
            Ok(())
        }
    }

    /// A record that people are told of otherwise.
    pub fn json(&self, record: &impl Serialize) -> Result<(), CliError> {
        if self.format == Format::Json {
            self.record(record, "")
        } else {
            Ok(())
        }
    }

    /// Tells people, on standard error, what goes on; silent under `--quiet`.
    pub fn note(&self, text: impl Into<Painted>) {
        if self.speaks {
            // Both streams often lead to the same terminal: what was said first is read first.
            let _ = self.sink.borrow_mut().flush();
            // A closed standard error is no reason to stop.
            let _ = writeln!(
                anstream::stderr().lock(),
                "{}",
                text.into().within(self.width_of_notes)
            );
        }
    }

    /// No more of a line of notes than the terminal takes that looks on; all of it where none does.
    pub fn shortened<'l>(&self, line: &'l str) -> Cow<'l, str> {
        self.width_of_notes.map_or(Cow::Borrowed(line), |width| {
            human::cut(line, width.saturating_sub(2))
        })
    }

    /// A line on a terminal that tells how much of `total` is read, such as "runs"; it vanishes when dropped. Hidden where nobody looks
    /// on.
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

    /// Shows what has been printed so far: before a wait.
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

    /// Says what was left unsaid: it tells what has happened, and who runs the program again should know.
    fn unwritten(&self, error: &io::Error) -> CliError {
        let failed = CliError::output(error);
        if failed.message.is_empty() {
            return failed;
        }
        let left = String::from_utf8_lossy(self.sink.borrow().buffer())
            .trim_end()
            .replace('\n', "; ");
        let message = format!(
            "{}, which was to say: {}",
            failed.message,
            human::words(&left)
        );
        CliError { message, ..failed }
    }
}

/// What is said where a program that has none is asked for them.
pub(super) fn no_variables() -> CliError {
    CliError::usage(
        "this program has no variables to print",
        "use `--format text` or `--format json`",
    )
}
