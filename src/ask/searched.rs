//! Search results, and how they are printed.

use serde::Serialize;

use super::passage::{Passage, PassageKind, Passages};
use super::passage_index::{FoundPassage, PassageIndex};
use crate::{CliError, Context, Exit, format};
use tavern_store::Board;
use tavern_sys::clock;

#[derive(Serialize)]
struct AnswerSource<'a> {
    #[serde(flatten)]
    passage: &'a Passage,
    excerpt: &'a str,
}

/// The sources of an answer.
pub(super) struct Searched {
    pub found: Vec<FoundPassage>,
    /// The number of passages that were searched, and that were left out.
    searched: usize,
    left_out: usize,
}

impl Searched {
    /// Searches `board` for the words of `question`; keeps `most` sources.
    ///
    /// # Errors
    /// The board can't be read.
    pub fn of(
        context: &Context,
        board: &Board,
        question: &str,
        most: u16,
    ) -> Result<Searched, CliError> {
        let passages = Passages::gather(context, board)?;
        let (searched, left_out) = (passages.all.len(), passages.left_out);
        let failed = |error: rusqlite::Error| {
            CliError::new(Exit::Failed, format!("the search has failed: {error}"))
        };
        let index = PassageIndex::of(passages.all);
        let found = index
            .and_then(|index| index.find(question, usize::from(most)))
            .map_err(failed)?;
        Ok(Searched {
            found,
            searched,
            left_out,
        })
    }

    /// Prints the sources, if any.
    pub fn print(&self, context: &Context) -> Result<Exit, CliError> {
        for hit in &self.found {
            let record = AnswerSource {
                passage: &hit.passage,
                excerpt: &hit.excerpt,
            };
            context
                .out
                .row(&record, &columns(&hit.passage), &hit.passage.title, "")?;
            context.out.text(told(hit))?;
        }
        if self.left_out > 0 {
            let left_out = format::count(self.left_out, "text");
            context.out.note(format!(
                "{left_out} of runs and items were not searched: there is too much"
            ));
        }
        if !self.found.is_empty() {
            return Ok(Exit::Done);
        }
        let searched = format::count(self.searched, "text");
        let hint = "to have it researched: tavern plan \"…\"";
        context
            .out
            .note(format!("nothing found ({searched} searched); {hint}"));
        Ok(Exit::NothingToDo)
    }
}

/// Returns the columns: source, time, author.
pub(super) fn columns(passage: &Passage) -> String {
    let kind = match passage.source {
        PassageKind::Item => "item",
        PassageKind::Run => "run",
        PassageKind::Learning => "learning",
        PassageKind::Event => "event",
    };
    let parts = [
        Some(kind.to_owned()),
        Some(passage.name.clone()),
        passage.at.map(clock::brief),
        Some(passage.state.clone()),
        passage
            .by
            .as_deref()
            .map(|by| format::one_line(by).into_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ") + " "
}

/// Returns the excerpt, and the command that shows all.
fn told(hit: &FoundPassage) -> String {
    let excerpt = Some(&hit.excerpt).filter(|excerpt| !excerpt.is_empty());
    let excerpt = excerpt.map(|excerpt| format!("    {}\n", format::one_line(excerpt)));
    format!("{}    {}", excerpt.unwrap_or_default(), hit.passage.todo)
}
