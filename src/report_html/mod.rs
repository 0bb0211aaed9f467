//! `tavern-report-html`: the history of items, as one HTML page.

use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use serde::Serialize;

use super::format::{self, Painted};
use super::output_file::{self, WrittenKind};
use super::past_time::moment;
use super::{CliError, Context, Exit, Verb};
use tavern_core::task::Timestamp;
use tavern_store::{Board, Queue};

use gather::{PageScope, gather};
use page::page;

mod chronicle;
mod gather;
mod graph;
mod page;
mod share_table;
mod time_scale;
mod timeline;

/// Write an HTML report: timeline, dependencies, spending, each item's history
///
/// The page is one file for any browser. It runs no script and loads nothing: it can be kept, sent, or published by CI. Long
/// texts are cut to their beginning and end, with the command that prints all of it.
#[derive(clap::Args)]
pub struct Args {
    /// Queues, by name or path [default: all queues of the board, and items that are in none any more]
    #[arg(value_name = "QUEUE")]
    pub queues: Vec<String>,

    /// The file that is written; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = FILE)]
    pub output: PathBuf,

    /// Only events since this local time: `2026-11-22T10:00`, `10:00`, `2h ago`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Timestamp>,
}

/// The beginning of a page.
const BEGINS: &str = "<!doctype html>";

/// The default file.
const FILE: &str = "tavern-report.html";

/// The written page.
#[derive(Serialize)]
struct Record<'a> {
    file: &'a Path,
    bytes: usize,
    items: usize,
    runs: usize,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-report-html";
    const EXAMPLES: &'static [&'static str] =
        &["tavern report-html --since yesterday -o page.html"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        if let Some(name) = self.queues.iter().find(|name| name.ends_with(".html")) {
            let hint = format!("name the file by a flag: tavern report-html -o {name}");
            return Err(CliError::usage(format!("`{name}` is not a queue"), hint));
        }
        let board = context.board_or_place(&self.queues)?;
        let queues = context.files(&board, &self.queues)?;
        if queues.is_empty() && board.last_seq()? == 0 {
            // Without a board, an empty page would look like a result.
            context.board()?;
        }
        let scope = PageScope {
            queues: &queues,
            is_all: self.queues.is_empty(),
            since: self.since,
        };
        let told = gather(context, &board, &scope, |runs| {
            context.out.progress(runs, "runs")
        })?;
        let (html, items, runs) = (page(&told), told.items.len(), told.runs.len());
        if self.output == Path::new("-") {
            context
                .out
                .record(&serde_json::json!({"html": html}), Painted::whole(&html))?;
            return Ok(Exit::Done);
        }
        output_file::write(
            &self.output,
            &html,
            WrittenKind {
                begins: BEGINS,
                flag: "-o report.html",
            },
        )?;
        let file = context.here().join(&self.output);
        let counts = format!(
            "{}, {}, {} bytes",
            format::count(items, "item"),
            format::count(runs, "run"),
            html.len()
        );
        let text = format!("wrote {}: {counts}", self.output.display());
        context.out.record(
            &Record {
                file: &file,
                bytes: html.len(),
                items,
                runs,
            },
            text,
        )?;
        context
            .out
            .note(format!("open it in a browser: {}", file_url(&file)));
        Ok(Exit::Done)
    }
}

/// Parses the file name of `--html`. Standard output has the drain's own lines.
pub(super) fn page_file(name: &str) -> Result<PathBuf, String> {
    if name == "-" {
        Err("name a file, such as report.html".to_owned())
    } else {
        Ok(name.into())
    }
}

/// Writes the page of these queues to `path`, for `--html`.
pub(super) fn write_page(
    context: &Context,
    board: &Board,
    queues: &[Queue],
    path: &Path,
) -> Result<(), CliError> {
    let told = gather(
        context,
        board,
        &PageScope {
            queues,
            is_all: false,
            since: None,
        },
        |_| ProgressBar::hidden(),
    )?;
    output_file::write(
        path,
        &page(&told),
        WrittenKind {
            begins: BEGINS,
            flag: "--html report.html",
        },
    )
}

/// Returns the path as a URL for a browser.
fn file_url(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let spelt = |byte: u8| {
        if is_plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    let path: String = path
        .as_os_str()
        .as_bytes()
        .iter()
        .copied()
        .map(spelt)
        .collect();
    format!("file://{path}")
}
