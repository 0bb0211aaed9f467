//! Words of a queue that no commit has, such as those which a commit of an old save lacks.

use std::collections::HashSet;
use std::ops::Range;

use super::redo::said;
use tavern_core::document::{Document, parse};
use tavern_core::front;
use tavern_core::text::{Edit, apply};

/// `ours` without the titles and lines that stand in none of `commits`, the newest first: what it would be if nobody had typed
/// them. Its items are the same.
pub(super) fn without_uncommitted(ours: &str, commits: &[Document<'_>]) -> String {
    let mine = parse(ours).0;
    let is_said: HashSet<&str> = commits
        .iter()
        .flat_map(|commit| said(commit.text()))
        .collect();
    let mut edits = Vec::new();
    // What is no line of words.
    let mut fixed: Vec<Range<usize>> = mine
        .lanes()
        .iter()
        .map(|lane| lane.heading.clone())
        .collect();
    fixed.push(0..front::read(ours, &mut Vec::new()).1);
    for item in mine.items() {
        fixed.push(item.head.clone());
        fixed.extend(item.block.as_ref().map(|block| block.fences.clone()));
        let titles = commits
            .iter()
            .filter_map(|commit| Some(commit.title(commit.find(item.id.as_ref()?)?)));
        let titles: Vec<&str> = titles.collect();
        if let Some(title) = titles
            .first()
            .filter(|_| !titles.contains(&mine.title(item)))
        {
            edits.push(Edit::replace(item.title.clone(), *title));
        }
    }
    let mut start = 0;
    for line in ours.split_inclusive('\n') {
        let span = start..start + line.len();
        start = span.end;
        let is_typed = said(line).any(|line| !is_said.contains(line));
        if is_typed
            && fixed
                .iter()
                .all(|fixed| fixed.end <= span.start || span.end <= fixed.start)
        {
            edits.push(Edit::delete(span));
        }
    }
    apply(ours, &edits)
}
