//! JUnit XML of a drain's items: an item is a test case, its queue a test suite.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::summary::{EndedItem, Left, Summary};
use crate::CliError;
use crate::format::Painted;
use crate::output_file::{self, WrittenKind};
use tavern_core::task::Status;

/// Parses the file name. Standard output is used for the drain's own lines.
pub(super) fn file(name: &str) -> Result<PathBuf, String> {
    if name == "-" {
        Err("name a file, such as junit.xml".to_owned())
    } else {
        Ok(name.into())
    }
}

/// Writes it to `path`.
pub(super) fn write(path: &Path, summary: &Summary) -> Result<(), CliError> {
    let xml = report(summary)
        .to_string()
        .expect("it is written to memory");
    output_file::write(
        path,
        &xml,
        WrittenKind {
            begins: "<?xml",
            flag: "--junit junit.xml",
        },
    )
}

fn report(summary: &Summary) -> Report {
    let mut suites: BTreeMap<&str, TestSuite> = BTreeMap::new();
    let ended = summary.earlier.iter().chain(&summary.ended);
    let ended = ended.map(|ended| (ended.queue.as_str(), case_of_ended(ended)));
    for (queue, case) in ended.chain(
        summary
            .left
            .iter()
            .map(|left| (left.queue.as_str(), case_of_left(left))),
    ) {
        suites
            .entry(queue)
            .or_insert_with(|| TestSuite::new(queue))
            .add_test_case(case);
    }
    let mut report = Report::new("tavern drain");
    report
        .set_time(Duration::from_secs(summary.seconds))
        .add_test_suites(suites.into_values());
    report
}

fn case_of_ended(ended: &EndedItem) -> TestCase {
    let status = match ended.status {
        Status::Cancelled => TestCaseStatus::skipped(),
        _ => TestCaseStatus::success(),
    };
    case(
        &ended.queue,
        ended.task.as_str(),
        &ended.title,
        ended.seconds,
        status,
    )
}

fn case_of_left(left: &Left) -> TestCase {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status
        .set_type(left.status.as_str())
        .set_message(text(left.why()));
    let details: Vec<String> = left.details().collect();
    status.set_description(text(
        &[left.output.as_str(), &details.join("\n")].join("\n"),
    ));
    case(&left.queue, &left.name, &left.title, left.seconds, status)
}

fn case(queue: &str, name: &str, title: &str, seconds: u64, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(text(&format!("{name}: {title}")), status);
    case.set_classname(queue)
        .set_time(Duration::from_secs(seconds));
    case
}

/// Sanitizes text as for a terminal.
fn text(text: &str) -> String {
    Painted::from(text.trim()).as_str().to_owned()
}
