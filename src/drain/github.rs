//! GitHub Actions output of a drain: an annotation at each item that is left, and a job summary.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::summary::{Left, Summary};
use crate::Context;
use crate::format::{self, Painted};
use tavern_sys::files;

/// While it lives, the runner ignores commands in the log, which contains agents' output.
pub(super) struct Github<'a> {
    context: &'a Context,
    token: String,
}

impl<'a> Github<'a> {
    /// Returns `None` outside of a GitHub job.
    pub(super) fn begin(context: &'a Context) -> Option<Github<'a>> {
        std::env::var_os("GITHUB_ACTIONS").filter(|is| is == "true" && !context.is_dry)?;
        let token = Uuid::new_v4().to_string();
        context.out.note(format!("::stop-commands::{token}"));
        Some(Github { context, token })
    }

    /// Enables commands again, and annotates each item that is left.
    pub(super) fn end(self, summary: &Summary) {
        let context = self.context;
        drop(self);
        let workspace = std::env::var_os("GITHUB_WORKSPACE")
            .map(PathBuf::from)
            .unwrap_or_default();
        summary
            .left
            .iter()
            .for_each(|left| context.out.note(annotation(left, &workspace)));
    }
}

impl Drop for Github<'_> {
    fn drop(&mut self) {
        self.context.out.note(format!("::{}::", self.token));
    }
}

fn annotation(left: &Left, workspace: &Path) -> String {
    let kind = if left.need.is_some() {
        "warning"
    } else {
        "error"
    };
    let file = left
        .path
        .strip_prefix(workspace)
        .unwrap_or(&left.path)
        .to_string_lossy();
    let title = format!(
        "{} {}: {}",
        left.name,
        left.status,
        format::title(&left.listed())
    );
    let lines: Vec<String> = [left.why().to_owned()]
        .into_iter()
        .chain(left.details())
        .collect();
    let [file, title] = [&*file, &title].map(|value| escaped(value, &['%', '\r', '\n', ':', ',']));
    let text = escaped(&lines.join("\n"), &['%', '\r', '\n']);
    format!(
        "::{kind} file={file},line={},title={title}::{text}",
        left.line
    )
}

/// Escapes text for a workflow command.
fn escaped(text: &str, special: &[char]) -> String {
    text.chars()
        .map(|c| {
            if special.contains(&c) {
                format!("%{:02X}", u32::from(c))
            } else {
                c.to_string()
            }
        })
        .collect()
}

/// Appends the drain to the job summary, if there is one. A write error is only noted.
pub(super) fn summarise_job(context: &Context, summary: &Summary) {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return;
    };
    let path = fs::canonicalize(&path).unwrap_or(path.into());
    let write =
        || -> io::Result<()> { files::open_to_append(&path)?.write_all(page(summary).as_bytes()) };
    if let Err(error) = write() {
        context
            .out
            .note(format!("the summary of the job is not written: {error}"));
    }
}

fn page(summary: &Summary) -> String {
    let mut page = format!("### tavern drain: {}\n\n", summary.totals());
    if !summary.left.is_empty() {
        page.push_str("| item | status | why |\n|---|---|---|\n");
    }
    for left in &summary.left {
        let item = format!("{} {}", left.place(), left.listed());
        let why: Vec<String> = [left.why().to_owned()]
            .into_iter()
            .chain(left.details())
            .collect();
        let [item, why] = [item, why.join("; ")].map(|words| markdown(&words));
        page.push_str(&format!(
            "| {item} | {} | {why} |\n",
            markdown(left.status.as_str())
        ));
    }
    for left in summary.left.iter().filter(|left| !left.output.is_empty()) {
        let (name, output) = (markdown(&left.name), Painted::from(&left.output));
        let ticks = "`".repeat(longest_ticks(output.as_str()).max(2) + 1);
        let output = output.as_str();
        page.push_str(&format!(
            "\n<details><summary>{name}</summary>\n\n{ticks}text\n{output}\n{ticks}\n\n</details>\n"
        ));
    }
    page + "\n"
}

/// Escapes untrusted text for Markdown.
fn markdown(words: &str) -> String {
    let words = format::words(words);
    let shown = |c: char| {
        if c.is_ascii_punctuation() {
            format!("\\{c}")
        } else {
            c.to_string()
        }
    };
    words.chars().map(shown).collect()
}

/// Returns the length of the longest run of backquotes.
fn longest_ticks(text: &str) -> usize {
    text.split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default()
}
