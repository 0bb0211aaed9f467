//! A template: a built-in one, or text from the caller.

use std::io::{self, Write};
use std::ops::Range;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, UndefinedBehavior, Value};
use serde::Serialize;

use super::marks::{neutral_of, tags_in};

/// The built-in templates by their names, embedded at build time.
const BUILT_IN: [(&str, &str); 18] = [
    ("coder.md", include_str!("../../../../templates/coder.md")),
    (
        "reviewer.md",
        include_str!("../../../../templates/reviewer.md"),
    ),
    (
        "planner.md",
        include_str!("../../../../templates/planner.md"),
    ),
    (
        "answerer.md",
        include_str!("../../../../templates/answerer.md"),
    ),
    ("drone.md", include_str!("../../../../templates/drone.md")),
    (
        "rules-work.md",
        include_str!("../../../../templates/rules-work.md"),
    ),
    (
        "rules-review.md",
        include_str!("../../../../templates/rules-review.md"),
    ),
    (
        "rules-plan.md",
        include_str!("../../../../templates/rules-plan.md"),
    ),
    (
        "rules-answer.md",
        include_str!("../../../../templates/rules-answer.md"),
    ),
    (
        "prod-answer.md",
        include_str!("../../../../templates/prod-answer.md"),
    ),
    (
        "prod-review.md",
        include_str!("../../../../templates/prod-review.md"),
    ),
    (
        "prod-plan.md",
        include_str!("../../../../templates/prod-plan.md"),
    ),
    ("resume.md", include_str!("../../../../templates/resume.md")),
    (
        "message.md",
        include_str!("../../../../templates/message.md"),
    ),
    ("relay.md", include_str!("../../../../templates/relay.md")),
    (
        "prod-undecided.md",
        include_str!("../../../../templates/prod-undecided.md"),
    ),
    (
        "prod-refuted.md",
        include_str!("../../../../templates/prod-refuted.md"),
    ),
    (
        "prod-silent.md",
        include_str!("../../../../templates/prod-silent.md"),
    ),
];

/// The most steps of a template; the built-in ones take some thousand.
const FUEL: u64 = 500_000;
/// The most bytes of a template.
const MOST_TEXT: usize = 256 << 10;
/// The most bytes that a template writes, before values are cut for the prompt's limits.
const MOST_OUTPUT: usize = 16 << 20;

/// A writer with a size limit.
struct Filled {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Write for Filled {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_full |= self.bytes.len() + bytes.len() > MOST_OUTPUT;
        if self.is_full {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A prompt's text with places for values, in Jinja's syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// For messages: a file name or a path.
    pub name: String,
    pub text: String,
    /// The texts of other templates of the same session: values can't forge their marks either.
    pub beside: String,
}

/// Why a template gives no prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", self.place())]
pub struct TemplateError {
    pub name: String,
    /// The place in the template; `None` if it is about the whole.
    pub span: Option<Range<usize>>,
    /// Counted from 1; 0 if it is about the whole.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// Lower case, without a final period.
    pub message: String,
}

impl TemplateError {
    /// Returns an error about the whole template `name`.
    pub fn whole(name: impl Into<String>, message: impl Into<String>) -> TemplateError {
        TemplateError {
            name: name.into(),
            span: None,
            line: 0,
            column: 0,
            message: message.into(),
        }
    }

    /// Returns `NAME:LINE:COLUMN`, as far as known.
    fn place(&self) -> String {
        match self.line {
            0 => self.name.clone(),
            line => format!("{}:{line}:{}", self.name, self.column),
        }
    }

    /// Returns the next step for the user.
    pub fn hint(&self) -> String {
        format!(
            "edit `{}`; or delete it, and the built-in one is used",
            self.name
        )
    }
}

impl Template {
    /// Returns a template with this text, and no others beside it.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Template {
        Template {
            name: name.into(),
            text: text.into(),
            beside: String::new(),
        }
    }

    /// Returns the built-in one called `name`, such as `coder.md`.
    pub fn built_in(name: &str) -> Option<Template> {
        let (name, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Some(Template::new(*name, *text))
    }

    /// Returns the names of the built-in ones.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Renders the text with `values`. A name that they don't have is an error.
    pub(super) fn render(&self, values: &impl Serialize) -> Result<String, TemplateError> {
        let environment = self.environment()?;
        let template = environment
            .template_from_named_str(&self.name, &self.text)
            .map_err(|error| self.error(&error))?;
        let mut output = Filled {
            bytes: Vec::new(),
            is_full: false,
        };
        let rendered = template
            .render_captured_to(Value::from(Serde(values)), &mut output)
            .map(drop);
        if output.is_full {
            let message = format!("it writes more than {MOST_OUTPUT} bytes");
            return Err(TemplateError::whole(&self.name, message));
        }
        rendered.map_err(|error| self.error(&error))?;
        Ok(String::from_utf8_lossy(&output.bytes).into_owned())
    }

    /// Checks the syntax without rendering.
    pub(super) fn parse(&self) -> Result<(), TemplateError> {
        let environment = self.environment()?;
        let parsed = environment.template_from_named_str(&self.name, &self.text);
        parsed.map(drop).map_err(|error| self.error(&error))
    }

    fn environment(&self) -> Result<Environment<'_>, TemplateError> {
        let tags = self.tags();
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_syntax(syntax());
        // Without it, an error has no place within its line.
        environment.set_debug(true);
        environment.set_fuel(Some(FUEL));
        environment.set_formatter(move |output, _, value| {
            match value.kind() {
                ValueKind::None => {}
                _ => output.write_str(&neutral_of(&value.to_string(), &tags))?,
            }
            Ok(())
        });
        if self.text.len() > MOST_TEXT {
            let message = format!(
                "it has {} bytes; at most {MOST_TEXT} are allowed",
                self.text.len()
            );
            return Err(TemplateError::whole(&self.name, message));
        }
        Ok(environment)
    }

    /// Returns the tags of this template, of those beside it, and of all built-in ones.
    fn tags(&self) -> Vec<String> {
        let built_in = BUILT_IN.iter().map(|(_, text)| *text);
        built_in
            .chain([self.text.as_str(), &self.beside])
            .flat_map(tags_in)
            .collect()
    }

    fn error(&self, error: &minijinja::Error) -> TemplateError {
        let kind = error.kind().to_string();
        let message = match error.detail() {
            Some(detail) => format!("{kind}: {detail}"),
            None => kind,
        };
        let Some(span) = self.span(error) else {
            return TemplateError::whole(self.name.clone(), message);
        };
        let before = &self.text[..span.start];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let (line, column) = (
            before.matches('\n').count() + 1,
            self.text[start..span.start].chars().count() + 1,
        );
        TemplateError {
            name: self.name.clone(),
            span: Some(span),
            line,
            column,
            message,
        }
    }

    /// Returns the place of the error: the expression, else the whole line.
    fn span(&self, error: &minijinja::Error) -> Option<Range<usize>> {
        if let Some(span) = error
            .range()
            .filter(|span| self.text.get(span.clone()).is_some())
        {
            return Some(span);
        }
        let before = error.line()?.checked_sub(1)?;
        let mut starts =
            std::iter::once(0).chain(self.text.match_indices('\n').map(|(index, _)| index + 1));
        let start = starts.nth(before)?;
        let line = self.text[start..].lines().next().unwrap_or_default();
        let from = start + line.len() - line.trim_start().len();
        Some(from..(start + line.trim_end().len()).max(from))
    }
}

/// A tag alone on its line leaves no empty line.
fn syntax() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true);
    builder.build().expect("the delimiters are the usual ones")
}
