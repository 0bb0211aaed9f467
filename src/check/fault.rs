//! One problem, as it is printed.

use std::path::Path;

use serde::Serialize;

use crate::format;
use tavern_core::problem::{Position, Problem, Severity, one_line, render};

/// The hint for a limit that a runner does not enforce.
pub(super) const KEPT: &str =
    "set `minutes` or `memory_mb`, which every runner enforces, or use a runner of kind claude";

/// The hint for a cap that does not count a runner's runs.
pub(super) const COUNTED: &str =
    "cap `minutes` besides, for which all runs count, or use a runner of kind claude";

/// Returns the message that `runner` does not enforce some limits of a budget.
pub(super) fn not_kept(runner: &str, limits: &[&str]) -> String {
    let names: Vec<String> = limits.iter().map(|limit| format!("`{limit}`")).collect();
    format!(
        "the runner `{runner}` does not enforce the limit on {}",
        names.join(", ")
    )
}

/// Returns message and hint for a variable `name` that is not passed to `receiver`.
pub(super) fn not_passed(name: &str, receiver: &str) -> (String, String) {
    let message = format!("${name} is set here, but not passed on to {receiver}");
    (
        message,
        format!("to pass it on: `pass: [{name}]` in .tavern/config.yaml"),
    )
}

/// One problem.
#[derive(Serialize)]
pub(crate) struct Fault {
    /// Relative to the current folder, if below it.
    pub(super) file: String,
    /// Counted from 1; `None` if it concerns the whole file.
    pub(crate) line: Option<usize>,
    /// In characters, counted from 1.
    column: Option<usize>,
    pub(super) severity: Severity,
    /// A stable name for programs.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// As printed for people.
    #[serde(skip)]
    pub(super) text: String,
}

impl Fault {
    /// Returns a problem at one place of a text.
    pub(super) fn at(file: &str, text: &str, problem: &Problem) -> Fault {
        let place = Position::of(text, problem.span.start);
        Fault {
            file: file.to_owned(),
            line: Some(place.line),
            column: Some(place.column),
            severity: problem.severity,
            code: problem.code,
            message: problem.message.clone(),
            hint: (!problem.hint.is_empty()).then(|| problem.hint.clone()),
            text: render(file, text, problem).trim_end().to_owned(),
        }
    }

    /// Returns place, message and hint in one line.
    pub(crate) fn sentence(&self) -> String {
        let place = [self.line, self.column]
            .into_iter()
            .flatten()
            .map(|number| format!(":{number}"));
        let hint = self.hint.iter().map(|hint| format!("; {hint}"));
        one_line(&format!(
            "{}{}: {}{}",
            self.file,
            place.collect::<String>(),
            self.message,
            hint.collect::<String>()
        ))
    }

    /// Returns a problem of a whole file or folder.
    pub(super) fn whole(
        severity: Severity,
        code: &'static str,
        file: &str,
        message: String,
        hint: Option<String>,
    ) -> Fault {
        let mut text = format!("{file}: {}: {}", severity.as_str(), one_line(&message));
        if let Some(hint) = &hint {
            text.push_str(&format!("\n  = hint: {hint}"));
        }
        Fault {
            file: file.to_owned(),
            line: None,
            column: None,
            severity,
            code,
            message,
            hint,
            text,
        }
    }
}

/// The problems found so far.
pub(super) struct Faults<'a> {
    /// The folder that paths are shown relative to.
    pub(super) here: &'a Path,
    pub(super) found: Vec<Fault>,
}

impl Faults<'_> {
    /// Adds an error about a whole file or folder.
    pub(super) fn error(
        &mut self,
        code: &'static str,
        path: &Path,
        message: String,
        hint: impl Into<Option<String>>,
    ) {
        self.found.push(Fault::whole(
            Severity::Error,
            code,
            &shown(path, self.here),
            message,
            hint.into(),
        ));
    }

    /// Adds a warning about a whole file or folder.
    pub(super) fn warning(
        &mut self,
        code: &'static str,
        path: &Path,
        message: String,
        hint: impl Into<Option<String>>,
    ) {
        self.found.push(Fault::whole(
            Severity::Warning,
            code,
            &shown(path, self.here),
            message,
            hint.into(),
        ));
    }
}

/// Returns a path as people would type it.
pub(crate) fn shown(path: &Path, here: &Path) -> String {
    let shown = path.strip_prefix(here).unwrap_or(path);
    if shown.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        format::printable(&shown.display().to_string()).into_owned()
    }
}
