//! Losses when Obsidian's Kanban saves a board: it rewrites each card from its parsed form.
//!
//! Its source, as of 2.0.51 (mgmeyers/obsidian-kanban, `src/parsers/formats/list.ts` and
//! `src/parsers/helpers/parser.ts`).

use std::ops::Range;

use super::Item;
use crate::markup;
use crate::problem::Problem;

/// Required indent under a card in columns. The plugin removes four blanks or a tab from each line that
/// begins with them, and puts as many before every line.
const COLUMNS: usize = 4;

/// Returns the problem of a card outside of the first list under a heading.
pub(super) fn dropped(at: Range<usize>) -> Problem {
    Problem::warning(
        "lost-on-save",
        at,
        "Obsidian's Kanban drops this card when it saves: it keeps the first list under each heading",
        "move it into that list, with the same bullet",
    )
}

/// Returns warnings for task blocks, scripts and parts with less indent than the plugin's. It moves them
/// further in, where they lose their meaning.
pub(super) fn moved(text: &str, items: &[Item<'_>]) -> Vec<Problem> {
    let of_item = |item: &Item<'_>| {
        let block = item
            .block
            .as_ref()
            .map(|block| (block.column, block.fences.start, "task block"));
        let shell = item
            .shell
            .as_ref()
            .map(|shell| (shell.column, shell.content.start, "script"));
        let part = item.within.map(|_| (item.column, item.span.start, "part"));
        [block, shell, part]
            .into_iter()
            .flatten()
            .find(|(column, ..)| *column < COLUMNS)
    };
    let told = |(_, at, part): (usize, usize, &str)| {
        Problem::warning(
            "lost-on-save",
            markup::trimmed(text, at..markup::line_end(text, at, text.len())),
            format!(
                "Obsidian's Kanban indents this {part} further when it saves, so it is not read as one"
            ),
            format!("indent the lines under the card by {COLUMNS} blanks, or by a tab"),
        )
    };
    items.iter().filter_map(of_item).map(told).collect()
}
