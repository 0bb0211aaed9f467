//! `tavern-learn`: adds and looks up learnings.

use serde::Serialize;

use tavern_core::learning::{LIFETIME, Learning, LearningKind};
use tavern_core::period::Period;
use tavern_core::task::Timestamp;
use tavern_core::touches::is_below_root;
use tavern_run::{Source, Trust, Workspace, make_known};
use tavern_store::{KnowledgeFile, MOST_OF_RUN};
use tavern_sys::clock;

use super::format::{self, Painted};
use super::shared::{held_here, person, words_for_agent};
use super::{CliError, Context, Exit, OwnRun, Verb};

/// Record a learning for later work; list, show and search learnings
///
/// Each learning is a file, `.tavern/knowledge/ID.md`, which you may edit and commit. The prompts of later runs have those that
/// share a tag with the item, a path with its `touches`, or a parent. Running agents receive it at once if their runner takes
/// messages.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<LearnCommand>,

    #[command(flatten)]
    pub new: NewLearning,

    /// Print the changes without making them
    #[arg(long, short = 'n', global = true)]
    pub dry_run: bool,
}

/// A new learning.
#[derive(clap::Args)]
pub struct NewLearning {
    /// The finding; `-`, or nothing, reads it from standard input
    #[arg(value_name = "TEXT")]
    pub text: Vec<String>,

    /// A tag: items with it receive the learning (repeatable)
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', value_parser = word)]
    pub tags: Vec<String>,

    /// A path or glob: items that touch it receive the learning (repeatable)
    #[arg(long, value_name = "PATH", value_parser = path_below)]
    pub scope: Vec<String>,

    /// learning, decision, fact, preference or error_resolution
    #[arg(long, value_name = "KIND", default_value = "learning", value_parser = kind_named)]
    pub kind: LearningKind,

    /// The lifetime, such as 90d; or never
    #[arg(long, value_name = "DURATION", default_value_t = LIFETIME, value_parser = lifetime)]
    pub expires: Period,
}

/// Actions on learnings.
#[derive(clap::Subcommand)]
pub enum LearnCommand {
    /// List the learnings that agents receive, oldest first
    List {
        /// Only with this tag
        #[arg(long, value_name = "TAG")]
        tag: Option<String>,
        /// Include expired and superseded ones
        #[arg(long)]
        all: bool,
    },
    /// Show one
    Show {
        /// The learning
        #[arg(value_name = "LEARNING")]
        id: String,
    },
    /// Expire it: agents no longer receive it
    Expire {
        /// The learning
        #[arg(value_name = "LEARNING")]
        id: String,
    },
    /// Put another in its place, with its tags and scope
    Supersede {
        /// The learning
        #[arg(value_name = "LEARNING")]
        id: String,
        /// The new text; `-`, or nothing, reads it from standard input
        #[arg(value_name = "TEXT")]
        text: Vec<String>,
    },
    /// Search all of them for words, which it must have in any order
    Search {
        /// The words
        #[arg(value_name = "WORD", required = true)]
        words: Vec<String>,
    },
}

#[derive(Serialize)]
struct Record<'a> {
    /// `None` in a dry run that would generate a fresh ID.
    id: Option<&'a str>,
    state: &'static str,
    #[serde(flatten)]
    learning: &'a Learning,
    text: &'a str,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-learn";
    const EXAMPLES: &'static [&'static str] =
        &["tavern learn \"The API needs a trailing slash\" --tag api"];

    /// An agent may add learnings in its run, and look up learnings.
    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        let is_allowed = match self.command {
            None => run.agent.is_some(),
            Some(
                LearnCommand::List { .. } | LearnCommand::Show { .. } | LearnCommand::Search { .. },
            ) => true,
            Some(LearnCommand::Expire { .. } | LearnCommand::Supersede { .. }) => false,
        };
        if is_allowed {
            Ok(())
        } else {
            Err(run.refused())
        }
    }

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let NewLearning {
            text, tags, scope, ..
        } = &self.new;
        if self.command.is_some() && [text, tags, scope].iter().any(|given| !given.is_empty()) {
            let hint = "put the arguments of a subcommand after it; to read the text from standard input: tavern learn -";
            return Err(CliError::usage(
                "a text and a subcommand can't be combined",
                hint,
            ));
        }
        let own = context.own_run();
        let workspace = context.light_site(context.board()?)?;
        let known = Lookup::of(&workspace, own.as_ref());
        match self.command {
            None => {
                let (text, source) = (said(&self.new.text)?, source(&workspace, own));
                let NewLearning {
                    tags,
                    scope,
                    kind,
                    expires,
                    ..
                } = self.new;
                let learning = source.learning(kind, tags, scope, &text, expires);
                add(context, &workspace, &learning)?;
                if learning.tags.is_empty() && learning.scope.is_empty() && learning.task.is_none()
                {
                    context.out.note("no item receives it: pass a `--tag` of items, or a `--scope` that they touch");
                }
            }
            Some(LearnCommand::List { tag, all }) => {
                let wanted = |learning: &Learning| {
                    tag.as_ref().is_none_or(|tag| learning.tags.contains(tag))
                };
                let found = known.list(context, |file, learning| {
                    wanted(learning) && (all || known.is_told(file, learning))
                })?;
                if found == 0 {
                    context
                        .out
                        .note("no learnings; add one: tavern learn \"…\" --tag TAG");
                }
            }
            Some(LearnCommand::Show { id }) => {
                let (file, learning) = known.find(&id)?;
                let record = known.record(file, learning);
                context
                    .out
                    .record(&record, Painted::whole(file.text.trim_end()))?;
            }
            Some(LearnCommand::Expire { id }) => {
                let (file, learning) = known.find(&id)?;
                let expires = Some(known.now);
                workspace.board.expire(file, known.now)?;
                let learning = Learning {
                    expires,
                    ..learning.clone()
                };
                let record = known.record(file, &learning);
                context.out.record(&record, format!("{id} is expired"))?;
            }
            Some(LearnCommand::Supersede { id, text }) => {
                let (file, old) = known.find(&id)?;
                if let Some(by) = &old.superseded_by {
                    let hint = format!("supersede that one: tavern learn supersede {by}");
                    return Err(CliError::refused(
                        format!("`{id}` is superseded by {by}"),
                        hint,
                    ));
                }
                let (text, source) = (said(&text)?, source(&workspace, own));
                let lifetime = old.expires.map_or(Period::default(), |_| LIFETIME);
                let learning = source.learning(
                    old.kind,
                    old.tags.clone(),
                    old.scope.clone(),
                    &text,
                    lifetime,
                );
                // If killed in between, prompts have both.
                let by = add(context, &workspace, &learning)?;
                workspace.board.supersede(file, &by)?;
            }
            Some(LearnCommand::Search { words }) => {
                let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
                let found = known.list(context, |_, learning| {
                    let said = [
                        &learning.text,
                        &learning.tags.join(" "),
                        &learning.scope.join(" "),
                    ]
                    .map(|text| text.to_lowercase());
                    words
                        .iter()
                        .all(|word| said.iter().any(|text| text.contains(word)))
                })?;
                if found == 0 {
                    context
                        .out
                        .note("no learning has these words; list them: tavern learn list --all");
                    return Ok(Exit::NothingToDo);
                }
            }
        }
        Ok(Exit::Done)
    }
}

/// The learnings that the caller may see.
struct Lookup<'s> {
    files: Vec<KnowledgeFile>,
    trust: Trust<'s>,
    now: Timestamp,
}

impl<'s> Lookup<'s> {
    /// An agent sees only trusted learnings.
    fn of(workspace: &'s Workspace, own: Option<&OwnRun>) -> Lookup<'s> {
        let trust = Trust::of(workspace);
        let mut files = workspace.board.knowledge();
        if own.is_some() {
            let is_trusted = |file: &KnowledgeFile| {
                file.learning
                    .as_ref()
                    .is_ok_and(|learning| trust.learning(&file.id, learning).is_ok())
            };
            files.retain(is_trusted);
        }
        Lookup {
            files,
            trust,
            now: clock::now(),
        }
    }

    fn find(&self, id: &str) -> Result<(&KnowledgeFile, &Learning), CliError> {
        let file = self
            .files
            .iter()
            .find(|file| file.id == id)
            .ok_or_else(|| {
                CliError::usage(
                    format!("no learning `{id}`"),
                    "list them: tavern learn list --all",
                )
            })?;
        let learning = file.learning.as_ref().map_err(|problem| {
            CliError::refused(
                format!("`{id}` can't be read: {}", problem.message),
                "see where: tavern check",
            )
        })?;
        Ok((file, learning))
    }

    fn record<'a>(&self, file: &'a KnowledgeFile, learning: &'a Learning) -> Record<'a> {
        Record {
            id: Some(&file.id),
            state: self.state(file, learning),
            learning,
            text: &learning.text,
        }
    }

    fn state(&self, file: &KnowledgeFile, learning: &Learning) -> &'static str {
        match learning {
            Learning {
                superseded_by: Some(_),
                ..
            } => "superseded",
            _ if !learning.is_valid(self.now) => "expired",
            _ if self.trust.learning(&file.id, learning).is_err() => "untrusted",
            _ => "valid",
        }
    }

    /// Returns true if it is in prompts, or will be once it is trusted.
    fn is_told(&self, file: &KnowledgeFile, learning: &Learning) -> bool {
        ["valid", "untrusted"].contains(&self.state(file, learning))
    }

    /// Lists the learnings that are `wanted`, and returns their number.
    fn list(
        &self,
        context: &Context,
        wanted: impl Fn(&KnowledgeFile, &Learning) -> bool,
    ) -> Result<usize, CliError> {
        let mut found = Vec::new();
        for file in &self.files {
            match &file.learning {
                Ok(learning) if wanted(file, learning) => {
                    found.push((
                        file,
                        learning,
                        format::one_line(&learning.tags.join(",")).into_owned(),
                    ));
                }
                Ok(_) => {}
                Err(problem) => {
                    let (id, why) = (format::one_line(&file.id), &problem.message);
                    context
                        .out
                        .note(format!("{id} is skipped: {why}; see where: tavern check"));
                }
            }
        }
        let widest = |width: fn(&(&KnowledgeFile, &Learning, String)) -> usize| {
            found.iter().map(width).max().unwrap_or(0)
        };
        let ids = widest(|(file, ..)| file.id.len());
        let (kinds, most_tags) = (
            widest(|(_, learning, _)| learning.kind.as_str().len()),
            widest(|(.., tags)| tags.chars().count()),
        );
        for (file, learning, tags) in &found {
            let record = self.record(file, learning);
            let mark = match (record.state, &learning.superseded_by) {
                ("valid", _) => String::new(),
                ("untrusted", _) => "not trusted, so no agent receives it: tavern trust".to_owned(),
                (_, Some(by)) => format!("superseded by {by}"),
                (state, None) => state.to_owned(),
            };
            let day = clock::day_of(learning.created);
            let columns = format!(
                "{:<ids$} {day} {:<kinds$} {tags:<most_tags$} ",
                file.id, learning.kind
            );
            let title = learning.text.lines().next().unwrap_or_default();
            context.out.row(&record, &columns, title, &mark)?;
        }
        Ok(found.len())
    }
}

fn source(workspace: &Workspace, own: Option<OwnRun>) -> Source {
    let task = own
        .as_ref()
        .map_or_else(held_here, |own| own.held.clone())
        .map(|(task, _)| task);
    let by = own
        .as_ref()
        .and_then(|own| own.agent.clone())
        .unwrap_or_else(person);
    Source::of(workspace, by, task, own.map(|own| own.run))
}

fn add(context: &Context, workspace: &Workspace, learning: &Learning) -> Result<String, CliError> {
    let Some(id) = make_known(workspace, learning)? else {
        let message = format!("this run has noted {MOST_OF_RUN} learnings, the limit of a run");
        return Err(CliError::refused(
            message,
            "name the rest at the end of your answer",
        ));
    };
    let named = Some(id.as_str()).filter(|_| !context.is_dry);
    let record = Record {
        id: named,
        state: "valid",
        learning,
        text: &learning.text,
    };
    context.out.record(
        &record,
        named.map_or_else(
            || Painted::whole(learning.render().trim_end()),
            Painted::from,
        ),
    )?;
    Ok(id)
}

/// Returns the text from the arguments or standard input.
fn said(words: &[String]) -> Result<String, CliError> {
    let shorter = "put it into a file of the project, and name that";
    words_for_agent(
        words,
        ["learning", "the learning"],
        shorter,
        "tavern learn \"…\" --tag TAG",
    )
}

fn word(text: &str) -> Result<String, String> {
    let is_word = !text.is_empty()
        && text.len() <= 256
        && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    if is_word {
        Ok(text.to_owned())
    } else {
        Err("one word without blanks".to_owned())
    }
}

fn path_below(text: &str) -> Result<String, String> {
    if is_below_root(text) {
        word(text)
    } else {
        Err("a path below the root of the repository".to_owned())
    }
}

fn kind_named(name: &str) -> Result<LearningKind, String> {
    name.parse().map_err(|()| {
        format!(
            "one of {}",
            LearningKind::ALL.map(LearningKind::as_str).join(", ")
        )
    })
}

fn lifetime(text: &str) -> Result<Period, String> {
    if text == "never" {
        return Ok(Period::default());
    }
    let lifetime = text.parse::<Period>().map_err(|error| error.to_string())?;
    if lifetime.is_zero() {
        Err("it must be greater than 0, such as 90d, or never".to_owned())
    } else {
        Ok(lifetime)
    }
}
