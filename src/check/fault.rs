//! One thing that is wrong, as it is printed.

use std::path::Path;

use serde::Serialize;

use crate::human;
use tavern_core::problem::{Position, Problem, Severity, one_line, render};

/// What to do about a limit that a runner does not keep.
pub(super) const KEPT: &str =
    "set `minutes` or `memory_mb`, which every runner enforces, or use a runner of kind claude";

/// What to do about a cap that a runner's runs don't count for.
pub(super) const COUNTED: &str =
    "cap `minutes` besides, for which all runs count, or use a runner of kind claude";

/// That `runner` does not keep some of a budget's limits.
pub(super) fn not_kept(runner: &str, limits: &[&str]) -> String {
    let names: Vec<String> = limits.iter().map(|limit| format!("`{limit}`")).collect();
    format!(
        "the runner `{runner}` does not enforce the limit on {}",
        names.join(", ")
    )
}

/// That the variable `name` does not get to `what`, and what to do about it.
pub(super) fn not_passed(name: &str, what: &str) -> (String, String) {
    let message = format!("${name} is set here, and not passed on to {what}");
    (
        message,
        format!("if it is to be: `pass: [{name}]` in .tavern/config.yaml"),
    )
}

/// One thing that is wrong.
#[derive(Serialize)]
pub(crate) struct Fault {
    /// From the folder that the program was started in, if it is below.
    pub(super) file: String,
    /// Counted from 1, if it is about one place.
    pub(crate) line: Option<usize>,
    /// In characters, counted from 1.
    column: Option<usize>,
    pub(super) severity: Severity,
    /// A stable name for programs.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// As people read it.
    #[serde(skip)]
    pub(super) text: String,
}

impl Fault {
    /// At one place of a text.
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

    /// In one line: where, what, and what to do about it.
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

    /// About a file, or a folder, as a whole.
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

/// What was found to be wrong so far.
pub(super) struct Faults<'a> {
    /// Paths are shown from there.
    pub(super) here: &'a Path,
    pub(super) found: Vec<Fault>,
}

impl Faults<'_> {
    /// About a file, or a folder, as a whole.
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

    /// About a file, or a folder, as a whole.
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

/// A path as people would type it.
pub(crate) fn shown(path: &Path, here: &Path) -> String {
    let shown = path.strip_prefix(here).unwrap_or(path);
    if shown.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        human::printable(&shown.display().to_string()).into_owned()
    }
}
