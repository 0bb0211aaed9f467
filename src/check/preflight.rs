//! Whether agents could start here, and leftovers of dead processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tavern_core::cap::Measure;
use tavern_core::document::{Item, parse};
use tavern_core::eligible::NotReady;
use tavern_core::event::Kind;
use tavern_core::problem::{Problem, Severity, listed};
use tavern_core::task::{Budget, Status, TaskId};
use tavern_git::{Repository, is_branch_name};
use tavern_run::environment::needs_of_command;
use tavern_run::prompt::{self, Template};
use tavern_run::reap::{Action, ExpiredLeases, Scope, plan};
use tavern_run::unmerged_work::{Unmerged, missing_work};
use tavern_run::{
    Error, Preflight, Trust, Workspace, preflight, refuse_tracked, runner_named, sandbox,
};
use tavern_store::config::{Config, Role, RunnerKind};
use tavern_store::{ATTRIBUTES, Board, ItemIndex, KnowledgeFile, Switch, is_queue, walk_log};
use tavern_sys::files;
use tavern_sys::interrupt::Interrupt;
use tavern_sys::process::file_in_use::is_being_written;
use tavern_sys::process::quoted;

use super::fault::{COUNTED, Fault, Faults, KEPT, not_kept, not_passed, shown};
use super::git_files;
use crate::init::merging::DRIVER;
use crate::{hints, needs};

/// The number of log lines that are read to find the last merge.
const MOST_LINES: usize = 1_000;

/// Checks everything but the text of queues. Without a readable configuration, only checks that need none.
/// Returns successful checks worth a line.
pub(super) fn check(
    board: &Board,
    config: Option<&Config>,
    faults: &mut Faults<'_>,
) -> Vec<String> {
    obstacles(board, faults);
    templates(board, faults);
    leases(board, faults);
    set_aside(board, faults);
    stays(board, faults);
    lost(board, faults);
    being_written(board, faults);
    archives(board, faults);
    switches(board, faults);
    no_messages(board, faults);
    knowledge(board, faults);
    let Some(config) = config else {
        return Vec::new();
    };
    settings(board, config, faults);
    let workspace = Workspace::unopened(board.clone(), Interrupt::new());
    match workspace.and_then(|workspace| workspace.repository().map(drop).map(|()| workspace)) {
        Ok(workspace) => {
            let tracked = workspace
                .repository()
                .and_then(|repository| refuse_tracked(board, repository));
            tracked.unwrap_or_else(|error| from_error("tracked", board.dir(), &error, faults));
            let found = programs(&workspace, faults);
            repository(&workspace, faults);
            git_files::check(board, faults);
            copies(&workspace, faults);
            beside(&workspace, faults);
            leftovers(&workspace, faults);
            found
        }
        Err(error) => {
            from_error("no-repository", board.root(), &error, faults);
            Vec::new()
        }
    }
}

/// Reports missing templates, limits that are not enforced, and gaps of the set-up.
fn settings(board: &Board, config: &Config, faults: &mut Faults<'_>) {
    let config_file = board.path(tavern_store::config::FILE);
    let is_known = || {
        board
            .lost_files()
            .iter()
            .any(|lost| lost.queue.path == config_file)
    };
    // The board that a drain of a plain file creates has no queues of its own.
    if board.is_volatile()
        && files(&board.path("queues"))
            .iter()
            .any(|path| is_queue(path))
        && !is_known()
    {
        let message =
            "this file is gone, so all settings have their defaults: reviews, limits, runners"
                .to_owned();
        let hint = format!(
            "restore it: git checkout -- {}; or write a new one: tavern init",
            shown(&config_file, faults.here)
        );
        faults.warning("no-config", &config_file, message, hint);
    }
    let branches = [Some(&config.integration.branch), config.base.as_ref()];
    for name in branches.into_iter().flatten() {
        if !is_branch_name(name) {
            let message = format!("`{name}` can't be the name of a branch");
            let hint = "write one such as `tavern/integration`".to_owned();
            faults.error("bad-branch", &config_file, message, hint);
        }
    }
    for name in needs_of_command(config, &config.worktree.setup) {
        let (message, hint) = not_passed(&name, "`worktree.setup`");
        faults.warning("not-passed", &config_file, message, hint);
    }
    let unseen: Vec<String> = config
        .rules
        .iter()
        .filter(|(_, rule)| rule.is_of_calls())
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    let silent = config.roles.values().map(|role| &role.runner);
    let silent = silent.filter(|name| {
        config
            .runners
            .get(*name)
            .is_some_and(|runner| !matches!(runner.kind, RunnerKind::Claude | RunnerKind::Acp))
    });
    for name in silent
        .filter(|_| !unseen.is_empty())
        .collect::<BTreeSet<_>>()
    {
        let message = format!(
            "the runner `{name}` does not report its commands: {} can't be enforced",
            unseen.join(", ")
        );
        let hint = "`commands` and `outside` need kind claude or acp; `sandbox: true` keeps others in their worktree";
        faults.warning("unkept-rule", &config_file, message, hint.to_owned());
    }
    let (usd, tokens) = (
        config.budget.has(Measure::Usd),
        config.budget.has(Measure::Tokens),
    );
    // The amounts don't matter: the question is whether they would be enforced.
    let capped = Budget {
        usd: usd.then_some(0.0),
        tokens: tokens.then_some(0),
        ..Budget::default()
    };
    for (name, role) in &config.roles {
        let kept = runner_named(config, &role.runner, role).map(|runner| runner.keeps());
        let kept = kept.unwrap_or_default();
        for measure in kept.lacks(&capped) {
            let message = format!(
                "role `{name}`: the runner `{}` does not report its usage, so `budget` in `{measure}` does not \
                count its runs",
                role.runner
            );
            faults.warning("unkept-limit", &config_file, message, COUNTED.to_owned());
        }
        let path = board.path("templates").join(&role.template);
        if !path.exists() && Template::built_in(&role.template).is_none() {
            let message = format!(
                "the template `{}` of role `{name}` is not there",
                role.template
            );
            let known: Vec<&str> = Template::names().collect();
            let hint = format!(
                "write {}, or use a built-in one: {}",
                shown(&path, faults.here),
                known.join(", ")
            );
            faults.error("no-template", &config_file, message, hint);
        }
        let unkept = kept.lacks(&role.budget);
        if !unkept.is_empty() {
            let message = format!("role `{name}`: {}", not_kept(&role.runner, &unkept));
            faults.warning("unkept-limit", &config_file, message, KEPT.to_owned());
        }
    }
}

/// Reports learnings that are not in prompts.
fn knowledge(board: &Board, faults: &mut Faults<'_>) {
    for KnowledgeFile {
        path,
        text,
        learning,
        ..
    } in board.knowledge()
    {
        let fault = |problem: &Problem| Fault::at(&shown(&path, faults.here), &text, problem);
        let fault = learning.as_ref().err().map(fault);
        faults.found.extend(fault);
    }
}

fn from_error(code: &'static str, path: &Path, error: &Error, faults: &mut Faults<'_>) {
    let cause = std::error::Error::source(error)
        .map(|cause| format!(": {cause}"))
        .unwrap_or_default();
    faults.error(code, path, format!("{error}{cause}"), hints::run(error));
}

/// Reports obstacles to reading and writing Tavern's own files.
fn obstacles(board: &Board, faults: &mut Faults<'_>) {
    for (path, why) in board.obstacles() {
        faults.error(
            "in-the-way",
            &path,
            format!("Tavern can't use this: {why}"),
            tavern_store::not_written(&path, why.kind()),
        );
    }
}

/// Tries each of the board's own templates with samples. Untrusted ones are only parsed.
fn templates(board: &Board, faults: &mut Faults<'_>) {
    let paths = files(&board.path("templates"));
    if paths.is_empty() {
        return;
    }
    let workspace = Workspace::unopened(board.clone(), Interrupt::new());
    let is_trusted = workspace.is_ok_and(|workspace| Trust::of(&workspace).settings().is_ok());
    let check = if is_trusted {
        prompt::check
    } else {
        prompt::check_written
    };
    for path in paths {
        let name = shown(&path, faults.here);
        let text = match files::read_text(&path) {
            Ok(text) => text,
            Err(error) => {
                let hint =
                    "save the file as UTF-8, or delete it, and the built-in one is used".to_owned();
                faults.error(
                    "unreadable-template",
                    &path,
                    format!("it can't be read: {error}"),
                    hint,
                );
                continue;
            }
        };
        let template = Template::new(name, text);
        let Err(error) = check(&template) else {
            continue;
        };
        let (code, hint) = ("broken-template", error.hint());
        match error.span {
            None => faults.error(code, &path, error.message, hint),
            Some(span) => {
                let problem = Problem::error(code, span, error.message, hint);
                faults
                    .found
                    .push(Fault::at(&template.name, &template.text, &problem));
            }
        }
    }
}

/// Reports unreadable lease files: their items can't be released.
fn leases(board: &Board, faults: &mut Faults<'_>) {
    for path in files(&board.private("leases")) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // Temporary files are part of the clean-up plan.
        let Some(stem) = name
            .strip_suffix(".yaml")
            .filter(|_| !name.starts_with(tavern_store::TEMP_PREFIX))
        else {
            continue;
        };
        let (why, hint) = match stem.parse::<TaskId>() {
            Ok(task) => match board.lease(&task) {
                Err(tavern_store::Error::Damaged { why, .. }) => {
                    (why, "restore it from the log: tavern reap".to_owned())
                }
                // A file that this user may not read is reported as an obstacle.
                Ok(_) | Err(_) => continue,
            },
            Err(error) => (
                error.to_string(),
                format!("remove it: rm {}", quoted(&path)),
            ),
        };
        faults.error("broken-lease", &path, format!("not a lease: {why}"), hint);
    }
}

/// The code of a save that a person has to decide on.
pub(super) const SET_ASIDE: &str = "set-aside";

/// Reports saves that were set aside.
fn set_aside(board: &Board, faults: &mut Faults<'_>) {
    // Includes saves that the next process to take the lock will set aside.
    let settled = board.clone().settled();
    for aside in settled.as_ref().unwrap_or(board).set_aside() {
        let message = format!(
            "a text that lacks most of queue {}, or its end, was saved, and set aside: the queue is unchanged",
            aside.queue.id
        );
        faults.warning(SET_ASIDE, &aside.path, message, hints::of_aside(&aside));
    }
}

/// Reports items that a save lacks, and that stay.
fn stays(board: &Board, faults: &mut Faults<'_>) {
    let settled = board.clone().settled();
    let board = settled.as_ref().unwrap_or(board);
    for (queue, names) in board.stays().unwrap_or_default() {
        let path = board
            .queue_by_id(&queue)
            .map_or_else(|_| board.path("queues"), |queue| queue.path);
        faults.warning(
            "stays",
            &path,
            needs::stays(&queue, &names),
            hints::OF_STAYS.to_owned(),
        );
    }
}

/// Reports unreadable archives, to which nothing is archived. Reports also archives with open items, which no
/// agent takes.
fn archives(board: &Board, faults: &mut Faults<'_>) {
    let paths = files(&board.path("queues/archive")).into_iter();
    for path in paths.filter(|path| is_queue(path)) {
        let text = match files::read_text(&path) {
            Ok(text) => text,
            Err(error) => {
                let move_away = hints::move_away(shown(&path, faults.here));
                let hint = format!(
                    "restore it from the log: {move_away}; tavern check --fix; or save the file as UTF-8"
                );
                faults.error(
                    "unreadable-archive",
                    &path,
                    format!("it can't be read: {error}"),
                    hint,
                );
                continue;
            }
        };
        let (document, _) = parse(&text);
        let is_open = |item: &&Item<'_>| item.within.is_none() && !item.status.is_ended();
        let open: Vec<String> = document
            .items()
            .iter()
            .filter(is_open)
            .map(|item| document.called(item))
            .collect();
        if !open.is_empty() {
            let message = format!(
                "open items are in an archive, and agents do not take them there: {}",
                listed(&open)
            );
            faults.warning(
                "open-in-archive",
                &path,
                message,
                "move their lines to a queue".to_owned(),
            );
        }
    }
}

/// Reports queues and archives with a lost file, if Tavern has the text.
fn lost(board: &Board, faults: &mut Faults<'_>) {
    for lost in board.lost_queues().unwrap_or_default() {
        let state = if lost.is_gone {
            "removed with open items"
        } else {
            "emptied"
        };
        let message = format!("this queue was {state}: Tavern has its text");
        let hint = hints::of_lost(board, &lost);
        // The next process to take the lock restores an emptied queue.
        let severity = if lost.is_gone {
            Severity::Error
        } else {
            Severity::Warning
        };
        let file = shown(&lost.queue.path, faults.here);
        faults.found.push(Fault::whole(
            severity,
            "lost-queue",
            &file,
            message,
            Some(hint),
        ));
    }
    for lost in board.lost_files() {
        let message = format!("{} was {}: Tavern has its text", lost.queue.id, lost.how());
        faults.warning(
            "lost-file",
            &lost.queue.path,
            message,
            hints::of_lost(board, &lost),
        );
    }
    for lost in board.lost_archives().unwrap_or_default() {
        let how = if lost.is_gone {
            "removed"
        } else {
            "emptied or cut off"
        };
        let message = format!("this archive was {how}: the log has its items");
        faults.warning(
            "lost-archive",
            &lost.queue.path,
            message,
            "put it back: tavern check --fix".to_owned(),
        );
    }
}

/// Reports queues that a program has open for writing: their saves count after it closes them.
fn being_written(board: &Board, faults: &mut Faults<'_>) {
    let queues = board.queues().unwrap_or_default().into_iter();
    for queue in queues.filter(|queue| is_being_written(&[&queue.path])) {
        let message =
            "a program has this file open for writing: its changes count once it closes the file"
                .to_owned();
        faults.warning(
            "open-queue",
            &queue.path,
            message,
            format!("find the program: fuser -v {}", quoted(&queue.path)),
        );
    }
}

/// Reports files in inboxes that are not messages; the first of each folder is named.
fn no_messages(board: &Board, faults: &mut Faults<'_>) {
    let mut found = board.no_messages();
    let all = found.len();
    found.dedup_by(|path, before| path.parent() == before.parent());
    let more = if all > found.len() {
        format!(" ({all} such files in all)")
    } else {
        String::new()
    };
    for path in found {
        let message = format!("not a pending message: no agent receives it{more}");
        let task = quoted(path.parent().and_then(Path::file_name).unwrap_or_default());
        let hint = format!(
            "to send it: tavern tell {task} - < {0}; then remove it: rm {0}",
            quoted(&path)
        );
        faults.warning("no-message", &path, message, hint);
    }
}

fn switches(board: &Board, faults: &mut Faults<'_>) {
    let (file, words, reason) = match board.switch() {
        Switch::On => return,
        Switch::Paused(reason) => ("PAUSE", "nothing new starts", reason),
        Switch::Stopped(reason) => ("STOP", "every loop ends", reason),
    };
    let path = board.path(file);
    let reason = if reason.is_empty() {
        String::new()
    } else {
        format!(": {reason}")
    };
    let (message, hint) = (
        format!("while this file is here, {words}{reason}"),
        "tavern resume".to_owned(),
    );
    faults.warning("switched-off", &path, message, hint);
}

/// Checks the agent programs of the roles, and the needs of every run. Returns successful checks.
fn programs(workspace: &Workspace, faults: &mut Faults<'_>) -> Vec<String> {
    let (mut found, config_file) = (Vec::new(), workspace.board.path(tavern_store::config::FILE));
    if let Err(untrusted) = Trust::of(workspace).settings() {
        faults.warning(
            "not-trusted",
            &config_file,
            untrusted.to_string(),
            hints::trust(None),
        );
        return found;
    }
    // Roles that start the same program in the same way are checked once.
    let mut alike: BTreeMap<(&str, &str, bool), (&Role, Vec<String>)> = BTreeMap::new();
    for (name, role) in &workspace.config.roles {
        if let Err(error) = sandbox::try_out(workspace, role).map_err(NotReady::from) {
            faults.error(
                "no-sandbox",
                &config_file,
                format!("role `{name}`: {error}"),
                error.hint,
            );
        }
        let way = (
            role.runner.as_str(),
            role.permission_mode.as_str(),
            role.sandbox,
        );
        alike
            .entry(way)
            .or_insert((role, Vec::new()))
            .1
            .push(format!("`{name}`"));
    }
    for (role, names) in alike.into_values() {
        let roles = format!(
            "{} {}",
            if names.len() == 1 { "role" } else { "roles" },
            names.join(", ")
        );
        match preflight::try_out(workspace, &role.runner, role) {
            Ok(tried) => {
                if let Some(by) = &tried.account {
                    found.push(format!(
                        "{}: runner {}, account from {by}",
                        roles.replace('`', ""),
                        tried.runner
                    ));
                }
                if let Some((doubt, hint)) = tried.doubt {
                    faults.warning("sign-in-unknown", &config_file, doubt, hint.to_owned());
                }
            }
            Err(error) => {
                let message = format!("{roles} can't work with runner `{}`: {error}", role.runner);
                faults.error("runner-not-ready", &config_file, message, error.hint);
            }
        }
    }
    let look = Preflight::of(workspace);
    for (code, missing) in [("no-room", look.disk()), ("no-set-up", look.set_up())] {
        if let Err(error) = missing {
            faults.error(code, &config_file, error.message, error.hint);
        }
    }
    found
}

/// Reports queues edited in a linked worktree, which are not queues of the board.
fn copies(workspace: &Workspace, faults: &mut Faults<'_>) {
    let (board, Ok(repository)) = (&workspace.board, workspace.repository()) else {
        return;
    };
    let is_linked = |folder: &&Path| repository.is_worktree(folder).unwrap_or(false);
    let Some(worktree) = faults.here.ancestors().find(is_linked) else {
        return;
    };
    let Ok(queues) = board
        .path("queues")
        .strip_prefix(board.root())
        .map(Path::to_owned)
    else {
        return;
    };
    for path in repository
        .changes(worktree)
        .map(|changes| changes.modified)
        .unwrap_or_default()
    {
        if path.parent() == Some(&queues) {
            let message =
                "this copy was edited, but no program reads it: it is not the board's".to_owned();
            let hint = format!("put the lines into {}", board.root().join(&path).display());
            faults.warning("edited-copy", &worktree.join(&path), message, hint);
        }
    }
}

fn repository(workspace: &Workspace, faults: &mut Faults<'_>) {
    let repository = workspace.repository().ok();
    // git settings are per clone: a fresh clone names the merge driver in its attributes, but has no setting
    // for it.
    let path = workspace.board.path(ATTRIBUTES);
    let is_named = files::read_text(&path).is_ok_and(|text| text.contains("merge=tavern"));
    let driver = repository
        .filter(|_| is_named)
        .map(|repository| repository.setting(DRIVER));
    if let Some(Ok(None)) = driver {
        let message = format!("this clone has no `{DRIVER}`, so git merges queues line by line");
        faults.warning(
            "no-merge-driver",
            &path,
            message,
            "set it up: tavern init".to_owned(),
        );
    }
    if let Err(error) = workspace.known_base() {
        let config_file = workspace.board.path(tavern_store::config::FILE);
        let path = if let Error::NoBase { .. } = error {
            &config_file
        } else {
            workspace.board.root()
        };
        from_error("no-base", path, &error, faults);
    }
    if let Ok(Some(lack)) = workspace.foreign_tip() {
        let hint = hints::lack(&lack, None, None).unwrap_or_default();
        faults.error(
            "foreign-tip",
            workspace.board.root(),
            lack.to_string(),
            hint,
        );
    }
    if let Some(Ok(replaced @ 1..)) = repository.map(Repository::count_replaced) {
        let message =
            format!("git shows other objects in the place of {replaced} of yours (refs/replace/)");
        let hint = "Tavern merges those that the IDs name; see them: git replace, git --no-replace-objects show ID";
        faults.warning(
            "replaced-objects",
            workspace.board.root(),
            message,
            hint.to_owned(),
        );
    }
    let branch = workspace.integration();
    if let Some(Ok(Some(path))) = repository.map(|repository| repository.checked_out_at(branch)) {
        let message = format!(
            "the integration branch `{branch}` is checked out here: nothing can be merged into it"
        );
        faults.warning(
            "integration-checked-out",
            &path,
            message,
            workspace.way_out(&path),
        );
    }
    // A branch that was deleted or moved back lacks at least the last merge.
    let (mut last, mut lines) = (None, 0);
    let looked = walk_log(&workspace.board, None, &mut |entry| {
        last = entry.task.filter(|_| entry.kind == Kind::Integrated);
        lines += 1;
        last.is_none() && lines < MOST_LINES
    });
    let missing = looked
        .ok()
        .and(last)
        .and_then(|task| missing_work(workspace, &task, &ItemIndex::of(&workspace.board)));
    if let Some(missing) = missing {
        faults.warning(
            "work-not-merged",
            workspace.board.root(),
            missing.message,
            missing.hint,
        );
    }
}

/// Reports kept work of items that are gone, or were completed without it, as by another clone.
fn beside(workspace: &Workspace, faults: &mut Faults<'_>) {
    let Ok(repository) = workspace.repository() else {
        return;
    };
    let kept = Unmerged::of(repository, workspace.integration());
    for task in kept.tasks() {
        let state = match workspace.board.task(&task) {
            Ok(found) if found.task.status() == Status::Completed => {
                "was completed without the work that is kept at"
            }
            Err(tavern_store::Error::NoTask(_)) => "is in no queue, and its work is kept at",
            _ => continue,
        };
        for place in kept.beside(&workspace.board, &task) {
            let message = format!("{task} {state} {place}");
            let delete = if place.starts_with("refs/") {
                "update-ref -d"
            } else {
                "branch -D"
            };
            let hint = format!("look: git show {place}; delete it: git {delete} {place}");
            faults.warning("work-kept", workspace.board.root(), message, hint);
        }
    }
}

/// Reports the plan of `tavern reap --dry-run`.
fn leftovers(workspace: &Workspace, faults: &mut Faults<'_>) {
    let actions = match plan(
        workspace,
        Scope::All,
        &mut ExpiredLeases::load(&workspace.board),
    ) {
        Ok(actions) => actions,
        Err(error) => return from_error("no-plan", workspace.board.dir(), &error, faults),
    };
    for action in actions {
        let board = &workspace.board;
        let path = match &action {
            Action::EndRun { run } => board.run_dir(run),
            Action::GiveBack {
                task,
                token: Some(_),
                ..
            }
            | Action::PutBackLease { task, .. }
            | Action::DropLease { task, .. } => {
                board.private("leases").join(format!("{task}.yaml"))
            }
            Action::GiveBack { .. } | Action::EndBackOff { .. } | Action::Expire { .. } => {
                board.dir().to_owned()
            }
            // Routine maintenance, not a leftover.
            Action::Archive { .. }
            | Action::DeleteBranch { .. }
            | Action::RemoveRun { .. }
            | Action::RemoveCell { .. } => continue,
            Action::RemoveWorktree { path, .. }
            | Action::RemoveTemp { path }
            | Action::RemoveLock { path } => path.clone(),
            Action::RemoveAgent { name } => board.path("agents").join(format!("{name}.yaml")),
        };
        let message = match &action {
            // A worktree may also remain after manual claims and reports.
            Action::PutBackLease { .. }
            | Action::EndBackOff { .. }
            | Action::Expire { .. }
            | Action::RemoveWorktree { .. } => {
                format!("to do: {action}")
            }
            _ => format!("left by a process that died; to do: {action}"),
        };
        faults.warning(
            "leftover",
            &path,
            message,
            "clean up: tavern reap".to_owned(),
        );
    }
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}
