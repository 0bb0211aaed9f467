//! Problems of queues and task files, each by itself and between them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::needs::NO_QUEUE;
use crate::{CliError, hints};
use tavern_core::document::{Document, parse};
use tavern_core::eligible::{DEFAULT_ROLE, Lack, for_roles};
use tavern_core::problem::{Problem, Severity};
use tavern_core::suggestion::nearest;
use tavern_core::task::{PERSON, Status, TaskId};
use tavern_run::environment::{needs_of_command, needs_of_script};
use tavern_run::readiness::Readiness;
use tavern_run::runner::Runner;
use tavern_run::{Preflight, Workspace, runner_named};
use tavern_store::config::{Config, Does, RunnerKind};
use tavern_store::{Board, Error, fault_of_name, has_too_many, is_queue};
use tavern_sys::files;
use tavern_sys::interrupt::Interrupt;
use tavern_sys::process::quoted;

use super::fault::{Fault, Faults, KEPT, not_kept, not_passed, shown};
use super::mentions::mentioned;

/// A readable text, with its name for messages.
pub(super) struct Page {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// Whether it is checked itself; otherwise it is read only for references from the others.
    pub(super) is_wanted: bool,
}

/// Reads `files`, or all queues of the board if none are named. The board's other queues are read too, to
/// check references between items.
pub(super) fn gather(
    board: Option<&Board>,
    files: &[String],
    faults: &mut Faults<'_>,
) -> Result<Vec<Page>, CliError> {
    let (here, mut wanted) = (faults.here, Vec::new());
    for name in files {
        let path = match board.map(|board| board.queue(name, here)) {
            Some(Ok(queue)) => queue.path,
            _ => fs::canonicalize(here.join(name)).map_err(|_| Error::NoQueue(name.clone()))?,
        };
        if !wanted.contains(&path) {
            wanted.push(path);
        }
    }
    let strangers = board.map(Board::strangers).transpose()?.unwrap_or_default();
    let all = board.map(paths).transpose()?.unwrap_or_default();
    let others: Vec<PathBuf> = all
        .into_iter()
        .filter(|path| !wanted.contains(path))
        .filter(|path| strangers.iter().all(|queue| queue.path != *path))
        .collect();
    let is_all = files.is_empty();
    for queue in strangers.iter().filter(|_| is_all) {
        let message = format!("this {NO_QUEUE}");
        faults.warning("no-queue", &queue.path, message, hints::of_stranger(queue));
    }
    if let Some(board) = board.filter(|_| is_all) {
        let queues = board.queues()?.into_iter();
        for queue in queues.filter(|queue| board.is_state_file_edited(queue)) {
            let message = "Tavern ignores edits of this file, and rewrites it".to_owned();
            let hint = "type `tavern release`, `tavern tell` or `tavern report`, or edit the queue";
            let path = board.state_file(&queue);
            faults.warning("state-file", &path, message, hint.to_owned());
        }
    }
    let mut pages: Vec<Page> = Vec::new();
    // Pages are keyed by their real path, which is resolved once.
    let mut known: HashMap<PathBuf, usize> = HashMap::new();
    for (path, is_wanted) in wanted
        .into_iter()
        .map(|path| (path, true))
        .chain(others.into_iter().map(|path| (path, is_all)))
    {
        let real = fs::canonicalize(&path).ok();
        if let Some(at) = real.as_ref().and_then(|real| known.get(real)) {
            let page = &pages[*at];
            if is_wanted {
                let message = format!(
                    "this is the same file as {}: Tavern reads it once, under that name",
                    page.name
                );
                let link = if path.is_symlink() { &path } else { &page.path };
                faults.warning(
                    "same-file",
                    &path,
                    message,
                    format!("remove the link: rm {}", quoted(link)),
                );
            }
            continue;
        }
        match read(&path, board, here) {
            Ok(page) => {
                known.extend(real.map(|real| (real, pages.len())));
                pages.push(Page { is_wanted, ..page });
            }
            Err(fault) if is_wanted => faults.found.push(fault),
            Err(_) => {}
        }
    }
    Ok(pages)
}

/// Returns the board's queue files, and other files in their folder that are meant as queues.
fn paths(board: &Board) -> Result<Vec<PathBuf>, CliError> {
    let queues: Vec<PathBuf> = board
        .queues()?
        .into_iter()
        .map(|queue| queue.path)
        .collect();
    let entries = fs::read_dir(board.path("queues")).into_iter().flatten();
    let is_page = |path: &PathBuf| {
        is_queue(path) || (fault_of_name(path).is_some() && path.extension() == Some("md".as_ref()))
    };
    let found = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(is_page);
    let mut odd: Vec<PathBuf> = found.filter(|path| !queues.contains(path)).collect();
    odd.sort();
    Ok(queues.into_iter().chain(odd).collect())
}

/// The maximal number of problems shown of one file.
const MOST_PROBLEMS: usize = 500;

#[expect(clippy::result_large_err, reason = "made once a queue, and printed")]
fn read(path: &Path, board: Option<&Board>, here: &Path) -> Result<Page, Fault> {
    let name = shown(path, here);
    let is_known = board.is_some_and(|board| board.has_seen(path));
    // Tavern restores a known queue where the file is missing.
    let put_back = if is_known { "; tavern check --fix" } else { "" };
    let move_away = format!("{}{put_back}", hints::move_away(&name));
    let whole = |message: String, hint: &str| {
        Fault::whole(
            Severity::Error,
            "unreadable-queue",
            &name,
            message,
            Some(hint.to_owned()),
        )
    };
    if let Some(fault) = fault_of_name(path) {
        return Err(whole(
            format!("its name {fault}: Tavern ignores it"),
            "give it another name",
        ));
    }
    if path.exists() && !path.is_file() {
        let kind = if path.is_dir() {
            "a folder, not a file"
        } else {
            "not a text file"
        };
        return Err(whole(
            format!("this is {kind}"),
            &format!("move it away: {move_away}"),
        ));
    }
    let led = board.map_or_else(
        || fs::canonicalize(path),
        |board| files::led(path, board.root()),
    );
    let bytes = led.and_then(files::read).map_err(|error| {
        whole(
            format!("it can't be read: {error}"),
            &format!("look at it: ls -l {}", quoted(path)),
        )
    })?;
    match String::from_utf8(bytes) {
        Ok(text) if has_too_many(&text) => {
            let error = Error::TooMany(path.to_owned());
            Err(whole(
                error.to_string(),
                &hints::store(&error).unwrap_or_default(),
            ))
        }
        Ok(text) => Ok(Page {
            name,
            path: path.to_owned(),
            text,
            is_wanted: true,
        }),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes());
            let encoding = files::encoding(error.as_bytes());
            let (kind, from) = if encoding.starts_with("UTF-16") {
                ("text", "UTF-16")
            } else {
                ("byte", "LATIN1")
            };
            let message = format!("this {kind} is {encoding}: the whole file is skipped");
            let as_it_was = if is_known {
                format!("restore it: {move_away}; or ")
            } else {
                String::new()
            };
            let hint = format!(
                "{as_it_was}save the file as UTF-8: iconv -f {from} -t UTF-8 {}",
                quoted(&name)
            );
            // Invalid bytes are shown as `�`, which takes up three bytes.
            Err(Fault::at(
                &name,
                &text,
                &Problem::error("not-utf8", at..at + 3, message, hint),
            ))
        }
    }
}

/// Checks the wanted pages.
pub(super) fn look(
    pages: &[Page],
    board: Option<&Board>,
    config: Option<&Config>,
    faults: &mut Faults<'_>,
) {
    let (documents, mut problems): (Vec<Document<'_>>, Vec<Vec<Problem>>) =
        pages.iter().map(|page| parse(&page.text)).unzip();
    let states = board.and_then(|board| board.states().ok());
    let documents: Vec<Document<'_>> = documents
        .into_iter()
        .map(|document| document.with_states(states.clone().unwrap_or_default()))
        .collect();
    let together: Vec<(&str, &Document<'_>)> = pages
        .iter()
        .zip(&documents)
        .map(|(page, document)| (page.name.as_str(), document))
        .collect();
    // Looking up each one singly would list all the others each time.
    let queues: HashMap<PathBuf, String> = board
        .and_then(|board| board.queues().ok())
        .into_iter()
        .flatten()
        .map(|queue| (queue.path, queue.id))
        .collect();
    let queue = |page: &Page| {
        let own = || {
            let name = page.path.to_string_lossy();
            Some(board?.queue(&name, Path::new("/")).ok()?.id)
        };
        queues.get(&page.path).cloned().or_else(own)
    };
    // In a dry run, fixes are only in memory.
    let texts = pages
        .iter()
        .map(|page| (page.path.clone(), page.text.clone()))
        .collect();
    let workspace =
        board.and_then(|board| Workspace::unopened(board.clone(), Interrupt::new()).ok());
    let workspace = workspace.map(|workspace| workspace.reading(texts));
    let here = config.map(|config| {
        (
            config.known_roles(),
            Preflight::of_parts(config, workspace.as_ref()),
        )
    });
    let ids: Vec<String> = pages
        .iter()
        .map(|page| queue(page).unwrap_or_else(|| page.name.clone()))
        .collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut readiness = Readiness::of(&together, &ids, board, here);
    for (place, mut problem) in std::mem::take(&mut readiness.findings.problems) {
        hints::add_command(&mut problem, documents[place].text());
        problems[place].push(problem);
    }
    for (number, ((page, document), mut problems)) in
        pages.iter().zip(&documents).zip(problems).enumerate()
    {
        if !page.is_wanted {
            continue;
        }
        if let Some(board) = board {
            // Task files are fixed only if they are named.
            let file = Some(&page.name).filter(|_| !page.path.starts_with(board.path("queues")));
            let doubles = problems
                .iter_mut()
                .filter(|problem| problem.code == "duplicate-id");
            doubles.for_each(|problem| problem.hint = hints::duplicate(file.map(String::as_str)));
            let typed = document
                .items()
                .iter()
                .filter(|item| document.is_typed_as_held(item));
            problems.extend(typed.map(|item| {
                let message = format!("no agent holds this, but its text makes it {}", item.status);
                let hint = match &item.id {
                    Some(id) => {
                        format!("agents skip it; make it pending: tavern release {id} --force")
                    }
                    None => {
                        "agents skip it; to have agents take it, move it under Pending".to_owned()
                    }
                };
                Problem::warning("typed-as-held", item.head.clone(), message, hint)
            }));
        }
        if let Some(config) = config {
            let queue = board.and(Some(ids[number]));
            let hint = |lack: &Lack| hint(lack, config, queue);
            problems.extend(unmet(
                document,
                config,
                &|item| readiness.lacks(number, item, None),
                &hint,
            ));
        }
        problems.extend(
            workspace
                .as_ref()
                .map_or_else(Vec::new, |workspace| missing_specs(document, workspace)),
        );
        // The place of each is counted from the top.
        problems.sort_by_key(|problem| Reverse(problem.severity));
        let left_out = problems.split_off(problems.len().min(MOST_PROBLEMS)).len();
        problems.sort_by_key(|problem| problem.span.start);
        faults.found.extend(
            problems
                .iter()
                .map(|problem| Fault::at(&page.name, &page.text, problem)),
        );
        if left_out > 0 {
            let message = format!(
                "{left_out} more problems are not shown: the limit is {MOST_PROBLEMS} per file"
            );
            let hint = Some("fix these first".to_owned());
            faults.found.push(Fault::whole(
                Severity::Warning,
                "more-problems",
                &page.name,
                message,
                hint,
            ));
        }
    }
}

/// Returns the lacks of items with this config.yaml on this machine, and references to unknown roles and
/// runners. Each problem is reported once a document, at the first item, since one line of the front matter
/// may apply to all.
fn unmet(
    document: &Document<'_>,
    config: &Config,
    lacks: &dyn Fn(usize) -> Vec<Lack>,
    hint: &dyn Fn(&Lack) -> String,
) -> Vec<Problem> {
    let reviews = |name: &str| {
        config
            .roles
            .get(name)
            .is_some_and(|role| role.does == Does::Review)
    };
    let (nobody, roles) = (TaskId::nobody(), config.known_roles());
    // With the number of other items that have it.
    let mut problems: Vec<(Problem, usize)> = Vec::new();
    let mut tell = |problem: Problem| {
        let told = (problem.code, &problem.message, &problem.hint);
        match problems
            .iter_mut()
            .find(|(other, _)| (other.code, &other.message, &other.hint) == told)
        {
            Some((_, more)) => *more += 1,
            None => problems.push((problem, 0)),
        }
    };
    let items = document.items().iter().enumerate();
    for (number, item) in items.filter(|(_, item)| is_ahead(item.status) && !item.quarantined) {
        // The steps of an item are part of it.
        if item.within.is_some() && item.id.is_none() {
            continue;
        }
        let read = for_roles(document, item, &roles);
        if let (Some(role), None) = (&item.role, &read.role) {
            let message =
                format!("no role is called `{role}`, so this parenthesis is part of the title");
            let hint = format!(
                "to have agents of a role take it, name one: {}",
                roles.working.join(", ")
            );
            let span = item.metadata.clone().unwrap_or_else(|| item.head.clone());
            tell(Problem::warning("unknown-role", span, message, hint));
        }
        let task = document.task(&read, nobody.clone());
        for name in task
            .reviewers(&[])
            .into_iter()
            .filter(|name| name != PERSON && !reviews(name))
        {
            let known: Vec<&str> = config
                .roles
                .keys()
                .map(String::as_str)
                .filter(|name| reviews(name))
                .collect();
            let hint = format!(
                "one of: {}, {PERSON}, a number of reviewers, none",
                known.join(", ")
            );
            let message = format!("no role `{name}` reviews this");
            tell(Problem::warning(
                "unknown-reviewer",
                item.head.clone(),
                message,
                hint,
            ));
        }
        for name in task.reviewers(&config.review) {
            let Some(role) = config
                .roles
                .get(&name)
                .filter(|role| role.does == Does::Review)
            else {
                continue;
            };
            let is_led = |runner: Box<dyn Runner>| runner.is_led_by_repository();
            if !config.runs_scripts(&role.runner)
                && runner_named(config, &role.runner, role).is_ok_and(is_led)
            {
                let message = format!(
                    "this item's commit can influence its reviewer: role `{name}`, runner `{}`",
                    role.runner
                );
                let hint = format!(
                    "let a runner of kind claude review, or opencode; or a person: `review: [{PERSON}]`"
                );
                tell(Problem::warning(
                    "led-reviewer",
                    item.head.clone(),
                    message,
                    hint,
                ));
            }
        }
        // A missing reviewer was reported above.
        let is_told = |lack: &Lack| matches!(lack, Lack::NoReviewer(_));
        for lack in lacks(number)
            .into_iter()
            .filter(|lack| lack.is_of_here() && !is_told(lack))
        {
            let (code, make): (_, fn(_, _, String, _) -> Problem) = match &lack {
                Lack::NoRole(_) | Lack::OnlyReviews(_) => ("unknown-role", Problem::warning),
                Lack::NoRunner(_) => ("unknown-runner", Problem::error),
                Lack::NoScript { .. } => ("no-script", Problem::warning),
                _ => ("not-ready", Problem::warning),
            };
            let message = if lack.is_of_settings() {
                format!("no agent can take this: {lack}")
            } else {
                format!("this is skipped: {lack}")
            };
            tell(make(code, item.head.clone(), message, hint(&lack)));
        }
        let Some(settings) = config
            .roles
            .get(task.role.as_deref().unwrap_or(DEFAULT_ROLE))
        else {
            continue;
        };
        let runner = task.runner.as_deref().unwrap_or(&settings.runner);
        let kind = config
            .runners
            .get(runner)
            .map_or(RunnerKind::Command, |entry| entry.kind);
        let kept = runner_named(config, runner, settings)
            .map(|runner| runner.keeps())
            .unwrap_or_default();
        let mut limits = kept.lacks(&task.budget);
        if runner != settings.runner {
            // With a runner of its own, this is the only report of the role's limits.
            limits.extend(kept.lacks(&settings.budget));
            limits.sort_unstable();
            limits.dedup();
        }
        if !limits.is_empty() {
            let message = format!("of this, {}", not_kept(runner, &limits));
            tell(Problem::warning(
                "unkept-limit",
                item.head.clone(),
                message,
                KEPT,
            ));
        }
        if let Some(second) = item.second_script().filter(|_| kind == RunnerKind::Shell) {
            let message = "only the first script of this is run";
            tell(Problem::warning(
                "second-script",
                second,
                message,
                "put all commands into one block",
            ));
        }
        let script = document.shell(item).filter(|_| kind == RunnerKind::Shell);
        let of_script =
            script.map_or_else(Vec::new, |script| needs_of_script(config, runner, &script));
        let of_commands = task
            .done_when
            .iter()
            .flat_map(|command| needs_of_command(config, command));
        for (name, place) in of_script
            .into_iter()
            .map(|name| (name, "script"))
            .chain(of_commands.map(|name| (name, "commands")))
        {
            let (message, hint) = not_passed(&name, &format!("the {place} of this"));
            tell(Problem::warning(
                "not-passed",
                item.head.clone(),
                message,
                hint,
            ));
        }
    }
    for (problem, more) in problems.iter_mut().filter(|(_, more)| *more > 0) {
        problem.message = problem
            .message
            .replacen("this", &format!("this and {more} more"), 1);
    }
    problems.into_iter().map(|(problem, _)| problem).collect()
}

/// Returns the likely name that was mistyped, or a hint.
fn hint(lack: &Lack, config: &Config, queue: Option<&str>) -> String {
    let meant = match lack {
        Lack::NoRole(role) => guess(role, config.roles.keys()),
        Lack::NoRunner(runner) => guess(runner, config.runners.keys()),
        _ => None,
    };
    meant
        .or_else(|| hints::lack(lack, None, queue))
        .unwrap_or_default()
}

/// Reports files that items refer to, and that are neither in the work tree nor merged.
fn missing_specs(document: &Document<'_>, workspace: &Workspace) -> Vec<Problem> {
    let (mut problems, board) = (Vec::new(), &workspace.board);
    let object = |path: &str| {
        workspace
            .repository()
            .ok()?
            .has_file(workspace.integration(), Path::new(path))
            .ok()
    };
    let is_merged = |path: &str| object(path).unwrap_or(true);
    for item in document
        .items()
        .iter()
        .filter(|item| is_ahead(item.status) && !item.quarantined)
    {
        for span in mentioned(document.block(item)) {
            let path = &document.block(item)[span.clone()];
            // A path counts as the repository's only if its folder exists there.
            let folder = path.split('/').next().unwrap_or_default();
            let is_ours = board.root().join(folder).is_dir();
            if is_ours && !board.root().join(path).exists() && !is_merged(path) {
                let message = format!("`{path}` does not exist, but this item refers to it");
                let hint = "correct the path, or write and commit the file";
                let place = item.span.start + span.start..item.span.start + span.end;
                problems.push(Problem::warning("no-such-file", place, message, hint));
            }
        }
    }
    problems
}

/// Returns true if it may be claimed some day without a person.
fn is_ahead(status: Status) -> bool {
    matches!(
        status,
        Status::Pending
            | Status::InProgress
            | Status::InReview
            | Status::Reviewing
            | Status::Waiting
    )
}

fn guess<'a>(word: &str, known: impl Iterator<Item = &'a String>) -> Option<String> {
    nearest(word, known.map(String::as_str)).map(|guess| format!("did you mean `{guess}`?"))
}
