//! Standard output: data, one record after the other, in the form that was asked for.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{BufWriter, Write};

use serde::Serialize;

use crate::process::quoted;

use super::error::CliError;

/// The form of what a program prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people: one line a record
    #[default]
    Text,
    /// One JSON object a line
    Json,
    /// `NAME=value` pairs for a shell's `eval`
    Env,
}

/// Where records go. Nothing is seen before [`Output::flush`] or the program's end.
pub struct Output {
    format: Format,
    speaks: bool,
    sink: RefCell<BufWriter<Box<dyn Write>>>,
}

/// What a pipe takes at once.
const ROOM: usize = 64 * 1024;

/// Whether standard error is told what goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    Told,
    /// `--quiet`
    Left,
}

impl Output {
    pub(super) fn stdout(format: Format, notes: Notes) -> Output {
        Output::into(format, notes, Box::new(anstream::stdout()))
    }

    fn into(format: Format, notes: Notes, sink: Box<dyn Write>) -> Output {
        Output { format, speaks: notes == Notes::Told, sink: RefCell::new(BufWriter::with_capacity(ROOM, sink)) }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// One record: `text` for people, the whole of `record` as JSON.
    pub fn record(&self, record: &impl Serialize, text: impl Display) -> Result<(), CliError> {
        match self.format {
            Format::Text => self.line(text),
            Format::Json => {
                let json = serde_json::to_string(record)?;
                self.line(json)
            }
            Format::Env => Err(no_variables()),
        }
    }

    /// As [`Output::record`], for the few programs that a shell takes variables from.
    pub fn record_with_variables(
        &self,
        record: &impl Serialize,
        text: impl Display,
        variables: &[(&str, impl AsRef<str>)],
    ) -> Result<(), CliError> {
        if self.format != Format::Env {
            return self.record(record, text);
        }
        let pairs: Vec<String> =
            variables.iter().map(|(name, value)| format!("{name}={}", quoted(value.as_ref()))).collect();
        self.line(pairs.join(" "))
    }

    /// A line that is for people only (a heading, a total): not there in JSON.
    pub fn text(&self, text: impl Display) -> Result<(), CliError> {
        if self.format == Format::Text { self.line(text) } else { Ok(()) }
    }

    /// Tells people, on standard error, what goes on; silent under `--quiet`.
    pub fn note(&self, text: impl Display) {
        if self.speaks {
            // Both streams often lead to the same terminal: what was said first is read first.
            let _ = self.sink.borrow_mut().flush();
            // A closed standard error is no reason to stop.
            let _ = writeln!(anstream::stderr().lock(), "{text}");
        }
    }

    /// Is standard error told what goes on?
    pub fn is_told(&self) -> bool {
        self.speaks
    }

    /// Shows what has been printed so far: before a wait.
    pub fn flush(&self) -> Result<(), CliError> {
        self.sink.borrow_mut().flush().map_err(|error| CliError::output(&error))
    }

    fn line(&self, text: impl Display) -> Result<(), CliError> {
        writeln!(self.sink.borrow_mut(), "{text}").map_err(|error| CliError::output(&error))
    }
}

/// What is said where a program that has none is asked for them.
pub(super) fn no_variables() -> CliError {
    CliError::usage("this program has no variables to print", "use `--format text` or `--format json`")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::rc::Rc;

    use super::*;
    use crate::cli::Exit;

    #[derive(Clone, Default)]
    struct Page(Rc<RefCell<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Serialize)]
    struct Item {
        id: &'static str,
    }

    fn printed(format: Format) -> Result<String, CliError> {
        let page = Page::default();
        let out = Output::into(format, Notes::Told, Box::new(page.clone()));
        out.text("ITEMS")?;
        out.record_with_variables(&Item { id: "T-1" }, "the item", &[("ID", "T-1"), ("TITLE", "it's a b")])?;
        out.flush()?;
        let bytes = page.0.borrow().clone();
        Ok(String::from_utf8(bytes).expect("it is text"))
    }

    #[test]
    fn a_record_has_three_forms() {
        assert_eq!(printed(Format::Text).as_deref(), Ok("ITEMS\nthe item\n"));
        assert_eq!(printed(Format::Json).as_deref(), Ok("{\"id\":\"T-1\"}\n"));
        assert_eq!(printed(Format::Env).as_deref(), Ok("ID=T-1 TITLE='it'\\''s a b'\n"));
    }

    #[test]
    fn a_program_without_variables_says_so() {
        let out = Output::into(Format::Env, Notes::Left, Box::new(io::sink()));
        let error = out.record(&Item { id: "T-1" }, "").expect_err("it has none");
        assert_eq!(error.exit, Exit::Usage);
    }
}
