//! `tavern-ask`: what the board knows of something; what is work is queued.

use serde::Serialize;

use super::flags::{DryRun, NewItemFlags};
use super::shared::words_for_agent;
use super::{CliError, Context, Exit, OwnRun, Verb, human, plan};
use crate::clock;

mod intent;
mod passage;
mod passage_index;

use intent::Intent;
use passage::{Passage, PassageKind, Passages};
use passage_index::{FoundPassage, PassageIndex};

/// Ask what was done and said before: in items, runs, learnings and the log
///
/// The words of the question are looked for, in English also in other forms of theirs. What tells most of them is printed first,
/// with what to type to see all of it. What is no question is work: it is queued for a planner, as `tavern plan` does.
#[derive(clap::Args)]
pub struct Args {
    /// What you want to know, or to have done; `-`, or nothing, reads it from standard input
    #[arg(value_name = "QUESTION")]
    pub words: Vec<String>,

    /// How many sources are shown
    #[arg(long, short = 'N', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub most: u16,

    /// Take it as a question, or as work, however it sounds
    #[arg(long = "as", value_name = "KIND")]
    pub intent: Option<Intent>,

    /// The queue for what is work
    #[arg(long, value_name = "QUEUE", default_value = "main")]
    pub queue: String,

    #[command(flatten)]
    pub plan: DryRun,
}

#[derive(Serialize)]
struct AnswerSource<'a> {
    #[serde(flatten)]
    passage: &'a Passage,
    excerpt: &'a str,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-ask";
    const CHANGES_QUEUES: bool = true;

    /// An agent may look up what is known.
    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        if self.intent == Some(Intent::Question) { Ok(()) } else { Err(run.refused()) }
    }

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let example = "tavern ask \"did we check the backup?\"";
        let text = words_for_agent(&self.words, ["question", "what to ask"], "ask less at once", example)?;
        match self.intent.unwrap_or_else(|| Intent::of(&text)) {
            Intent::Question => answer(context, &text, usize::from(self.most)),
            Intent::Work => {
                let exit = plan::Args {
                    request: vec![text],
                    queue: self.queue,
                    item: NewItemFlags::default(),
                    no_model: false,
                    note: false,
                    role: None,
                    plan: self.plan,
                }
                .run(context)?;
                if self.intent.is_none() {
                    context.out.note("it was taken for work; to ask what is known instead: tavern ask --as question …");
                }
                Ok(exit)
            }
        }
    }
}

fn answer(context: &Context, question: &str, most: usize) -> Result<Exit, CliError> {
    let passages = Passages::gather(&context.board()?)?;
    let (searched, left_out) = (passages.all.len(), passages.left_out);
    let failed = |error: rusqlite::Error| CliError::new(Exit::Failed, format!("the search has failed: {error}"));
    let hits = PassageIndex::of(passages.all).and_then(|index| index.find(question, most)).map_err(failed)?;
    for hit in &hits {
        let record = AnswerSource { passage: &hit.passage, excerpt: &hit.excerpt };
        context.out.row(&record, &columns(&hit.passage), &hit.passage.title, "")?;
        context.out.text(told(hit))?;
    }
    if left_out > 0 {
        context
            .out
            .note(format!("{} of runs and items were not searched: there is too much", human::count(left_out, "text")));
    }
    if !hits.is_empty() {
        return Ok(Exit::Done);
    }
    let looked = human::count(searched, "text");
    context.out.note(format!(
        "nothing that the board knows has such words ({looked} searched); to have it found out: tavern plan \"…\""
    ));
    Ok(Exit::NothingToDo)
}

/// Where it is from, when it was said and by whom.
fn columns(passage: &Passage) -> String {
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
        passage.by.as_deref().map(|by| human::one_line(by).into_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ") + " "
}

/// The words that were found, and what to type.
fn told(hit: &FoundPassage) -> String {
    let excerpt = Some(&hit.excerpt).filter(|excerpt| !excerpt.is_empty());
    let excerpt = excerpt.map(|excerpt| format!("    {}\n", human::one_line(excerpt)));
    format!("{}    {}", excerpt.unwrap_or_default(), hit.passage.todo)
}
