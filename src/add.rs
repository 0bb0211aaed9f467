//! `tavern-add`: add an item to a queue.

use serde::Serialize;
use serde_yaml::{Mapping, Value};

use tavern_core::budget::Budget;
use tavern_core::children::Bounds;
use tavern_core::document::{Document, STAYS_TITLE, meaning_of_mark, parse};
use tavern_core::eligible::{DEFAULT_ROLE, Lack};
use tavern_core::markup::{line_end, without_margin};
use tavern_core::metadata::{Key, KeyUse, Meaning};
use tavern_core::new_item::{NewItem, render, written_ids};
use tavern_core::problem::{Problem, Severity};
use tavern_core::task::{Consent, OnFailure, Status, TaskId};
use tavern_run::made_here;
use tavern_store::config::{Children, Config, Period};
use tavern_store::{Birth, Board, Done, Error, NamedItem, Note, Queue};
use tavern_sys::secrets::redact;

use super::flags::{DryRun, NewItemFlags};
use super::shared::{held_here, read_stdin};
use super::{CliError, Context, Exit, ItemName, OwnRun, Verb, hints, needs};

/// The keys that an agent may set on items that it adds, besides those that a planner may set.
const HANDED_OUT: [Key; 4] = [Key::Parent, Key::OnFailure, Key::Runner, Key::Model];

/// Add an item to a queue, and print its ID
///
/// The arguments are the title, written as in a queue: `AUTH-7: Add a login (priority: 1)` has an ID and a key. Without
/// arguments the item is read from standard input: its first line is the title, the rest is the description; or it is
/// written as in a queue, with its box.
#[derive(Default, clap::Args)]
pub struct Args {
    /// The title of the item
    #[arg(value_name = "TITLE")]
    pub title: Vec<String>,

    /// The queue, by name or path [default: its parent's, else main]
    #[arg(long, value_name = "QUEUE")]
    pub queue: Option<String>,

    /// Make the queue if it is not there
    #[arg(long, requires = "queue")]
    pub create: bool,

    #[command(flatten)]
    pub item: NewItemFlags,

    /// The role of the agents that may take it
    #[arg(long)]
    pub role: Option<String>,

    /// A command that must exit with 0 before it counts as done; may be given several times
    #[arg(long, value_name = "COMMAND")]
    pub done_when: Vec<String>,

    /// The due time: `2026-11-22 10:00`, or a day
    #[arg(long, value_name = "TIME")]
    pub due: Option<String>,

    /// A requirement: a program, a file, an account, or a variable such as '$TOKEN'; may be given several times
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub needs: Vec<String>,

    /// Paths that the item is expected to change; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub touches: Vec<String>,

    /// The runner that works on it: an entry of `runners` in config.yaml
    #[arg(long)]
    pub runner: Option<String>,

    /// The model, as the agent program names it
    #[arg(long)]
    pub model: Option<String>,

    /// A step that needs a person's permission: start or merge; may be given several times
    #[arg(long, value_name = "WHEN", value_delimiter = ',', value_parser = consent_named)]
    pub approve: Vec<Consent>,

    /// A required reviewer: a role, `person` or `none`; may be given several times
    #[arg(long, value_name = "ROLE", value_delimiter = ',')]
    pub review: Vec<String>,

    /// The maximum number of attempts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_attempts: Option<u32>,

    /// The maximum wait for an answer, a release or its children, such as 2d; 0 for no limit
    #[arg(long, value_name = "TIME")]
    pub max_wait: Option<Period>,

    /// The budget of one run: `usd=2,minutes=30`; also tokens, turns and memory_mb
    #[arg(long, value_name = "WHAT=N,…", value_delimiter = ',', value_parser = amount_of)]
    pub budget: Vec<(String, Value)>,

    /// Add it as a child of this item, which waits for it; without an ID, of the item in TAVERN_TASK
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true)]
    pub parent: Option<Option<ItemName>>,

    /// The action once this child's attempts are used up: retry (all of them once more, then escalate), escalate (the parent
    /// waits for a person) or go_on (the parent is notified)
    #[arg(long, value_name = "ACTION", value_parser = on_failure_named)]
    pub on_failure: Option<OnFailure>,

    #[command(flatten)]
    pub plan: DryRun,

    /// Keys that no flag sets.
    #[arg(skip)]
    pub more: Vec<(Key, Value)>,
}

#[derive(Serialize)]
struct Record<'a> {
    /// `None` in a dry run that would generate a fresh ID.
    task: Option<&'a TaskId>,
    queue: &'a str,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-add";
    const EXAMPLES: &'static [&'static str] = &[
        "tavern add \"Log out (priority: 1)\" --done-when \"cargo test\"",
        "tavern add \"Write the manual\" --after T-1 --queue docs --create",
    ];
    const HAS_VARIABLES: bool = true;
    const FOR_AGENTS: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        let (flag, words) = self.parent(context, &board)?;
        let typed = self.typed(&words)?;
        let parent = flag.clone().or_else(|| typed.parent.clone());
        if let Some(item) = self.needs.iter().find_map(|need| {
            let id = need.parse::<TaskId>().ok()?;
            board.task(&id).is_ok().then_some(id)
        }) {
            let hint = format!("to have it completed first: --after {item}");
            return Err(CliError::usage(
                format!("--needs {item}: this is an item"),
                hint,
            ));
        }
        let own = context.own_run();
        // An agent may only add children of the item that it holds, to an existing queue.
        let is_own = |run: &OwnRun| {
            !self.create
                && parent.is_some()
                && run.held.as_ref().map(|(task, _)| task) == parent.as_ref()
        };
        if let Some(run) = own.as_ref().filter(|run| !is_own(run)) {
            return Err(run.refused());
        }
        let queue = match (&self.queue, &parent) {
            (Some(name), _) if self.create => context.queue_or_new(&board, name)?,
            (Some(name), _) => context.queue(&board, name)?,
            (None, Some(parent)) => live_queue(&board, parent)?,
            (None, None) => context.queue(&board, "main")?,
        };
        if let (Some(flag), Some(title)) = (&self.item.id, &typed.id)
            && flag != title
        {
            let message = format!("two IDs for one item: --id {flag}, and `{title}:` in the title");
            return Err(CliError::usage(message, "leave one of them out"));
        }
        let id = typed.id.or_else(|| self.item.id.clone());
        let after: Vec<TaskId> = self
            .item
            .after
            .iter()
            .map(|name| context.id_of(&board, name))
            .collect::<Result<_, _>>()?;
        let fields = self.fields(&after, flag.as_ref());
        let new = NewItem {
            id,
            title: typed.title,
            fields,
            yaml_fields: self.yaml_fields(),
            description: typed.description,
        };
        let said_twice = (typed.has_keys && !new.fields.is_empty())
            || (typed.has_block && !new.yaml_fields.is_empty());
        if said_twice {
            let hint = "use flags or keys in the item, not both";
            return Err(CliError::usage(
                "both the item and the flags set keys",
                hint,
            ));
        }
        let block = render(&new);
        let (document, problems) = parse(&block);
        readable(&block, problems)?;
        if let Some((item, mark)) = document
            .items()
            .iter()
            .find_map(|item| Some((item, document.left_out(item)?)))
        {
            let (means, title) = (meaning_of_mark(mark), document.title(item));
            let message = format!("agents skip an item that is {means}: `{title}`");
            return Err(CliError::usage(
                message,
                format!("leave out the `{mark}` around its title"),
            ));
        }
        keeps_commands(&document)?;
        self.may_be_said(&document, own.as_ref())?;
        own.as_ref().map_or(Ok(()), |run| {
            stays_in_sandbox(&board, &queue, &document, run)
        })?;
        let birth = parent
            .map(|parent| birth(&board, parent, own.as_ref()))
            .transpose()?;
        // A fresh ID differs between runs.
        let is_fresh = new.id.is_none() && birth.is_none();
        let is_draft = self.item.draft || typed.is_draft;
        let status = if is_draft {
            Status::Draft
        } else {
            Status::Pending
        };
        let note = Note {
            agent: own.as_ref().and_then(|run| run.agent.clone()),
            run: own.map(|run| run.run),
        };
        // A task file outside the board becomes one of its queues.
        board.remember(&queue)?;
        let done = match birth {
            None => board.add(&queue, new, status, &note)?,
            Some(birth) => board.add_child(&queue, new, &birth, status, &note)?,
        };
        let id = Some(&done.task.id).filter(|_| !(context.is_dry && is_fresh));
        made_here(&board, [&done.task]);
        if !is_draft {
            warn(context, &board, &done, id);
        }
        let shown = match (done.entry.change.after(), id) {
            (Some(item), Some(_)) if context.is_dry => item.trim_end().to_owned(),
            (Some(item), None) => item
                .trim_end()
                .replacen(&format!("{}: ", done.task.id), "", 1),
            _ => done.task.id.to_string(),
        };
        let mut variables = vec![("TAVERN_QUEUE", queue.id.as_str())];
        variables.splice(0..0, id.map(|id| ("TAVERN_TASK", id.as_str())));
        context.out.record_with_variables(
            &Record {
                task: id,
                queue: &queue.id,
            },
            shown,
            &variables,
        )?;
        Ok(Exit::Done)
    }
}

impl Args {
    /// Returns the item from the arguments or standard input.
    fn typed(&self, words: &[&str]) -> Result<Typed, CliError> {
        let mut typed = if words.is_empty() {
            Typed::read(read_stdin("the item")?.trim_matches(['\n', '\r', '\u{feff}']))?
        } else {
            Typed::read(
                &words
                    .join(" ")
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" "),
            )?
        };
        if let Some(more) = &self.item.description {
            let gap = if typed.description.is_empty() {
                ""
            } else {
                "\n\n"
            };
            typed.description.push_str(&format!("{gap}{more}"));
        }
        Ok(typed)
    }

    /// Returns the parent that the flag names, and the words of the title. In `--parent T-1 "Do it"` the
    /// first word is the parent's ID, not a part of the title.
    fn parent(
        &self,
        context: &Context,
        board: &Board,
    ) -> Result<(Option<TaskId>, Vec<&str>), CliError> {
        let mut words: Vec<&str> = self.title.iter().map(String::as_str).collect();
        let parent = match &self.parent {
            None => None,
            Some(Some(name)) => Some(context.id_of(board, name)?),
            Some(None) => {
                let given = words.iter().position(|word| word.parse::<TaskId>().is_ok());
                let own = || std::env::var("TAVERN_TASK").unwrap_or_default();
                let id = given.map_or_else(own, |place| words.remove(place).to_owned());
                let missing = CliError::new(
                    Exit::Usage,
                    "--parent needs an ID: TAVERN_TASK is not set to one",
                );
                Some(
                    id.parse()
                        .map_err(|_| missing.with_hint("pass it: --parent=T-k3f9".to_owned()))?,
                )
            }
        };
        Ok((parent, words))
    }

    /// Refuses keys that an agent may not set: as for a planner, reviewers and budget are not its choice.
    fn may_be_said(&self, document: &Document<'_>, own: Option<&OwnRun>) -> Result<(), CliError> {
        if own.is_none() && std::env::var_os("TAVERN_TOKEN").is_none_or(|token| token.is_empty()) {
            return Ok(());
        }
        if let Some(part) = document
            .items()
            .iter()
            .find(|item| item.within.is_some() && item.is_more_than_words())
        {
            let message = format!(
                "a step of an item can't have an ID, keys or a tick: `{}`",
                document.title(part)
            );
            return Err(CliError::refused(message, "add it by a call of its own"));
        }
        let is_own = |key: Key| {
            let is_set = self.more.iter().any(|(name, _)| *name == key);
            is_set || key.is_for(KeyUse::Planned) || HANDED_OUT.contains(&key)
        };
        let keys = document
            .items()
            .iter()
            .flat_map(|item| document.entries(item));
        let mut odd = keys.filter_map(|entry| match entry.meaning {
            Meaning::Known(key, _) | Meaning::Absent(key) if !is_own(key) => Some(key),
            _ => None,
        });
        odd.next().map_or(Ok(()), |key| {
            let hint = "leave it out; if you are a person: env -u TAVERN_TOKEN tavern add \"…\"";
            Err(CliError::refused(
                format!("an agent can't set `{}`", key.as_str()),
                hint,
            ))
        })
    }

    fn fields(&self, after: &[TaskId], parent: Option<&TaskId>) -> Vec<(Key, Value)> {
        let mut fields: Vec<(Key, Value)> = Vec::new();
        fields.extend(
            self.item
                .priority
                .map(|priority| (Key::Priority, Value::from(priority))),
        );
        fields.extend(written_ids(after).map(|after| (Key::After, after)));
        fields.extend(self.due.as_deref().map(|due| (Key::Due, Value::from(due))));
        fields.extend((!self.needs.is_empty()).then(|| (Key::Needs, self.needs.clone().into())));
        fields.extend(
            self.role
                .as_deref()
                .map(|role| (Key::Role, Value::from(role))),
        );
        fields.extend(
            (!self.item.tags.is_empty()).then(|| (Key::Tags, self.item.tags.clone().into())),
        );
        fields.extend(
            self.runner
                .as_deref()
                .map(|runner| (Key::Runner, Value::from(runner))),
        );
        fields.extend(
            self.model
                .as_deref()
                .map(|model| (Key::Model, Value::from(model))),
        );
        let approve: Vec<&str> = self.approve.iter().map(|when| when.as_str()).collect();
        fields.extend((!approve.is_empty()).then(|| (Key::Approve, approve.into())));
        fields.extend((!self.review.is_empty()).then(|| (Key::Review, self.review.clone().into())));
        fields.extend(
            self.max_attempts
                .map(|most| (Key::MaxAttempts, Value::from(most))),
        );
        fields.extend(
            self.max_wait
                .map(|most| (Key::MaxWait, Value::from(most.to_string()))),
        );
        let budget: Mapping = self
            .budget
            .iter()
            .map(|(what, most)| (what.as_str().into(), most.clone()))
            .collect();
        fields.extend((!budget.is_empty()).then_some((Key::Budget, Value::Mapping(budget))));
        fields.extend(parent.map(|parent| (Key::Parent, Value::from(parent.as_str()))));
        fields.extend(
            self.on_failure
                .map(|then| (Key::OnFailure, Value::from(then.as_str()))),
        );
        fields.extend(self.more.iter().cloned());
        fields
    }

    fn yaml_fields(&self) -> Vec<(Key, Value)> {
        let lists = [
            (Key::DoneWhen, &self.done_when),
            (Key::Touches, &self.touches),
        ];
        lists
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(key, list)| (key, list.clone().into()))
            .collect()
    }
}

/// Prints notes on lacks that keep the new item from being worked on.
fn warn(context: &Context, board: &Board, added: &Done, id: Option<&TaskId>) {
    let is_no_surprise =
        |lack: &Lack| matches!(lack, Lack::Status(_) | Lack::Permission) || !lack.is_stuck();
    let name = id.map_or("the item", TaskId::as_str);
    let lacks = needs::lacks(
        context,
        board,
        &NamedItem::Id(added.task.id.clone()),
        &added.queue,
    );
    for lack in lacks.iter().filter(|lack| !is_no_surprise(lack)) {
        context.out.note(format!(
            "{name} can't be taken: {}",
            hints::sentence(lack, id, Some(&added.queue.id))
        ));
    }
}

/// An item as typed.
struct Typed {
    id: Option<TaskId>,
    parent: Option<TaskId>,
    /// Includes its keys.
    title: String,
    /// Includes its `yaml task` block.
    description: String,
    has_keys: bool,
    has_block: bool,
    is_draft: bool,
}

impl Typed {
    /// Parses a title with the lines indented under it, or an item with its box.
    fn read(text: &str) -> Result<Typed, CliError> {
        let is_item = parse(text)
            .0
            .items()
            .first()
            .is_some_and(|item| item.span.start == 0);
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let whole = if is_item {
            text.to_owned()
        } else {
            format!("- [ ] {}\n", first.trim())
        };
        let (document, _) = parse(&whole);
        let mut items = document.items().iter().filter(|item| item.within.is_none());
        let Some(item) = items.next().filter(|item| !document.title(item).is_empty()) else {
            return Err(CliError::usage("an item needs a title", "tavern add \"…\""));
        };
        if items.next().is_some() {
            let hint = "add them one by one, or write them into the queue's file, which you may edit at any time";
            return Err(CliError::usage("one item at a time", hint));
        }
        let open = "a new item is open: write an empty box, `[ ]`";
        if item.checked || !parse(text).0.own.is_empty() {
            return Err(CliError::usage(
                "the item is ticked, or in a custom state",
                open,
            ));
        }
        if !matches!(item.status, Status::Draft | Status::Pending) {
            let message = format!("a new item is pending or draft, not {}", item.status);
            return Err(CliError::usage(
                message,
                "leave its `status` out, or add it with --draft",
            ));
        }
        let is_draft = item.status == Status::Draft;
        let first_end = line_end(&whole, item.head.end, item.span.end);
        let title = match item.id_span() {
            Some(id) => whole[id.end..first_end].trim_start_matches(':').trim(),
            None => whole[item.head.start..first_end].trim(),
        };
        if let Some(odd) = title.chars().find(|c| c.is_control()) {
            let message = format!("a title can't hold the control character {odd:?}");
            return Err(CliError::usage(message, "leave it out"));
        }
        let own = &whole[first_end..item.span.end];
        let description = if is_item {
            without_margin(&own.replace("\r\n", "\n"))
        } else {
            rest.to_owned()
        };
        let description = description.trim_matches(['\n', '\r']).to_owned();
        let (has_keys, has_block) = (item.metadata.is_some(), item.block.is_some());
        let (id, parent) = (item.id.clone(), item.parent.clone());
        Ok(Typed {
            id,
            parent,
            title: title.to_owned(),
            description,
            has_keys,
            has_block,
            is_draft,
        })
    }
}

/// Returns an error for text that would be read back differently than meant.
fn readable(block: &str, problems: Vec<Problem>) -> Result<(), CliError> {
    // In an existing list this would stay title text; in a typed item it is a typo.
    let is_slip = |problem: &Problem| match problem.code {
        "unknown-key" => Key::is_mistyped(&block[problem.span.clone()]),
        code => code == "wrong-type",
    };
    let is_error = |problem: &Problem| problem.severity == Severity::Error || is_slip(problem);
    problems
        .into_iter()
        .find(is_error)
        .map_or(Ok(()), |problem| {
            let line = block[..problem.span.start].matches('\n').count();
            let line = block.lines().nth(line).unwrap_or_default().trim();
            // The item is not in a file yet.
            let hint = problem.hint.trim_end_matches(STAYS_TITLE);
            Err(CliError::usage(
                format!("{}: `{line}`", problem.message),
                hint,
            ))
        })
}

/// Refuses commands that contain a secret: the queue is committed, and redaction would change the command.
fn keeps_commands(document: &Document<'_>) -> Result<(), CliError> {
    let nameless = || "T-0".parse::<TaskId>().expect("it is one");
    let commands = document.items().iter().flat_map(|item| {
        let task = document.task(item, item.id.clone().unwrap_or_else(nameless));
        task.done_when.into_iter().chain(document.shell(item))
    });
    for command in commands {
        let told = redact(&command);
        let Some((_, rest)) = told.split_once("[redacted ").filter(|_| told != command) else {
            continue;
        };
        let name = rest.split(']').next().unwrap_or_default();
        let line = command.lines().next().unwrap_or_default();
        return Err(CliError::usage(
            format!(
                "a command holds a secret, {name}, which would be committed: `{}`",
                redact(line)
            ),
            "name its variable there ($NAME), and let that through: `pass: [NAME]` in config.yaml",
        ));
    }
    Ok(())
}

/// Refuses items that would run outside the sandbox of the agent that adds them. Its text or script would
/// else be run outside.
fn stays_in_sandbox(
    board: &Board,
    queue: &Queue,
    document: &Document<'_>,
    own: &OwnRun,
) -> Result<(), CliError> {
    let lease = own
        .held
        .as_ref()
        .map_or(Ok(None), |(task, _)| board.lease(task))?;
    let roles = Config::load(board.dir())?.roles;
    let is_boxed = |name: &str| roles.get(name).is_some_and(|role| role.sandbox);
    if !lease.is_some_and(|lease| is_boxed(&lease.role)) {
        return Ok(());
    }
    let general = || {
        board
            .read(queue)
            .ok()?
            .content
            .parse()
            .0
            .front()
            .role
            .clone()
    };
    let said = document
        .items()
        .iter()
        .find_map(|item| Some(item.role.as_deref()?.to_owned()))
        .or_else(general);
    let role = said.unwrap_or_else(|| DEFAULT_ROLE.to_owned());
    if is_boxed(&role) {
        return Ok(());
    }
    let message =
        format!("a sandboxed agent can't add items for a role without a sandbox, such as `{role}`");
    Err(CliError::refused(
        message,
        "name a role with `sandbox: true`: --role NAME",
    ))
}

/// Returns the queue of an item; for an archived item, the queue that it came from.
fn live_queue(board: &Board, task: &TaskId) -> Result<Queue, Error> {
    let queue = board.task(task)?.queue;
    match queue.id.strip_prefix("archive/") {
        Some(own) => board.queue_by_id(own),
        None => Ok(queue),
    }
}

fn birth(board: &Board, parent: TaskId, own: Option<&OwnRun>) -> Result<Birth, CliError> {
    let config = Config::load(board.dir())?;
    let Children { depth, most, day } = config.children;
    let bounds = Bounds { depth, most, day };
    // An agent that adds a child to the item it holds must still hold it.
    let held = own.map_or_else(held_here, |run| run.held.clone());
    let token = held
        .filter(|(task, _)| *task == parent)
        .map(|(_, token)| token);
    Ok(Birth {
        token,
        parent,
        bounds,
        review: config.review,
    })
}

/// Parses `usd=2`. The reader of items checks the name of the amount.
fn amount_of(text: &str) -> Result<(String, Value), String> {
    let (what, most) = text
        .split_once('=')
        .ok_or_else(|| "name it and its amount: `usd=2`".to_owned())?;
    let number = most
        .parse()
        .map(u64::into)
        .or_else(|_| most.parse().map(f64::into));
    let number: Value = number.map_err(|_| format!("`{most}` is not a number"))?;
    let pair = Value::Mapping([(what.into(), number.clone())].into_iter().collect());
    let read: Result<Budget, _> = serde_yaml::from_value(pair);
    read.map(|_| (what.to_owned(), number))
        .map_err(|error| error.to_string())
}

fn consent_named(name: &str) -> Result<Consent, String> {
    name.parse()
        .map_err(|()| format!("one of {}", Consent::ALL.map(Consent::as_str).join(", ")))
}

fn on_failure_named(name: &str) -> Result<OnFailure, String> {
    name.parse().map_err(|()| {
        format!(
            "one of {}",
            OnFailure::ALL.map(OnFailure::as_str).join(", ")
        )
    })
}
