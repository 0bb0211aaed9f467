//! Hints on the command to type next, for each typed reason of a failure. All hints are here.
//!
//! The rooms below state reasons and name no program.

use std::path::Path;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{ItemName, format};
use tavern_core::cap::{CapScope, Measure};
use tavern_core::decide::Refusal;
use tavern_core::eligible::{DEFAULT_ROLE, Doubt, Lack, OWN_DEPENDENCY};
use tavern_core::event::Kind;
use tavern_core::lease::Life;
use tavern_core::problem::Problem;
use tavern_core::task::{BadId, Status, TaskId};
use tavern_run::runner::EndReason;

use tavern_store::config::{ConfigError, SCHEDULES};
use tavern_store::{
    AgentFile, Board, Error, Lost, Obstacle, Queue, SetAside, Settled, SettledAs, life, not_written,
};
use tavern_sys::clock;
use tavern_sys::process::quoted;

/// Returns the hint after a refusal.
pub(super) fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::WrongStatus { task, status, event } => match (status, event) {
            (Status::Dead, _) => format!("tavern retry {task}"),
            (Status::Completed, Kind::Approved | Kind::Rejected) => {
                format!("look at it: tavern diff {task}; to redo it: tavern reopen {task}")
            }
            (Status::Completed | Status::Cancelled, _) => format!("tavern reopen {task}"),
            (Status::Waiting, Kind::Approved | Kind::Rejected) => {
                format!("answer its question: tavern answer {task} \"…\"; without one, bring it back into review: tavern release {task}")
            }
            (Status::Waiting, _) => {
                format!("to answer its question: tavern answer {task} \"…\"; for details: tavern status {task}")
            }
            (_, Kind::Approved | Kind::Rejected) => {
                format!("it is not in review; for details: tavern status {task}")
            }
            (Status::Draft, _) => {
                format!("it is a draft; let agents work on it: tavern release {task}")
            }
            _ => format!("for details: tavern status {task}"),
        },
        Refusal::Held { task, .. } | Refusal::StillLive { task, .. } => {
            format!("wait for it, or see its holder: tavern status {task}")
        }
        Refusal::StaleToken { task, .. } | Refusal::NoLease { task, .. } => {
            format!("for its kept work: tavern status {task}; for its history: tavern log {task}")
        }
        Refusal::SecondApproval { task, .. } => {
            format!(
                "you have approved it: merge it, tavern merge {task}; if it needs another approval: tavern claim {task} --role reviewer"
            )
        }
        Refusal::OwnWork { task, .. } => {
            format!(
                "have another agent review it: tavern claim {task} --role reviewer; if you are another person: TAVERN_AGENT=YOUR-NAME tavern approve {task}"
            )
        }
        Refusal::OtherCommit { task, .. } => format!("review that one: tavern status {task}"),
        Refusal::NoStep { task, .. } => {
            format!("the boxes under its title count from 1, ticked ones too; see them: tavern status {task}")
        }
        Refusal::Unasked { task } => format!("for details: tavern status {task}"),
        Refusal::EndedParent { task, status } => {
            let back = if *status == Status::Dead { "retry" } else { "reopen" };
            format!("add it without --parent, or bring `{task}` back first: tavern {back} {task}")
        }
        Refusal::TooDeep { .. } => {
            "do it within the item, or name a parent further up; the limit is `children: {depth: …}` in config.yaml"
                .to_owned()
        }
        Refusal::TooMany { .. } => {
            "do it within the item, or give one child more work; the limit is `children: {most: …}` in config.yaml"
                .to_owned()
        }
        Refusal::TooManyToday { .. } => {
            "do it within the item, or have a person add it; the limit is `children: {day: …}` in config.yaml"
                .to_owned()
        }
        Refusal::WaitsForChild { task } => format!("leave `{task}` out of `after`"),
    }
}

/// Returns the hint after an error of the store.
pub(super) fn store(error: &Error) -> Option<String> {
    Some(match error {
        Error::NoRepository(_) => "create one with `git init` and a first commit, or cd into one".into(),
        Error::Bare(_) => "clone it, and run Tavern in the clone".into(),
        Error::NoWorktree(git_dir) => {
            let git_dir = quoted(git_dir);
            format!(
                "tell git once: git --git-dir={git_dir} config core.worktree FOLDER; or pass the board: --dir FOLDER"
            )
        }
        Error::OlderBoard(_) => "end its programs, then bring it up to date: tavern init".into(),
        Error::NoBoard(_) => "create one with `tavern init`, or work a plain file with `tavern drain TODO.md`".into(),
        Error::Io { source, path, .. } => return not_written(path, source.kind()),
        Error::Busy(_) => "try again; to see its holder: fuser .git/tavern/lock".into(),
        Error::NoQueue(name) if !name.contains(['/', '.']) => format!("to create it: tavern add --queue {} --create \"…\"", quoted(name)),
        Error::NoQueue(_) => "list the queues with `tavern queue`, or give a path such as TODO.md; if it was removed: tavern check --fix".into(),
        Error::Folder(name) => format!("name a file in it, such as {}/TODO.md", name.trim_end_matches('/')),
        Error::NotText { path, .. } => {
            format!("save the file as UTF-8; to see the place: tavern check {}", quoted(path))
        }
        Error::TooMany(_) => {
            "move some to another file in .tavern/queues/, or archive ended items: `archive:` in config.yaml".into()
        }
        Error::NoTask(task) => {
            format!("list the items: tavern list; for the history of a removed one: tavern log {task}")
        }
        Error::NoItemAt { nearest: Some((line, title)), .. } => {
            format!("one starts at line {line}: {}", format::title(title))
        }
        Error::NoItemAt { queue, .. } | Error::Changed { queue, .. } => {
            format!("list the items: tavern list {}", quoted(queue))
        }
        Error::Quarantined { .. } | Error::Damaged { .. } => "see where and why with `tavern check`".into(),
        Error::NoLane(_) => "name one in its front matter, such as `lanes: {Offen: pending}`".into(),
        Error::Taken(_) => "choose another ID, or leave it out to have one generated".into(),
        Error::Archived { task, status: Status::Dead } => format!("bring it back: tavern retry {task}"),
        Error::Archived { task, .. } => format!("bring it back: tavern reopen {task}"),
        Error::ArchivedPart { task, whole } => {
            format!("bring all of it back: tavern reopen {whole}, then {task}")
        }
        Error::SecondAgent(_) => "choose another --agent, or leave it out to get a free one".into(),
        Error::BadId(_) => BadId::HINT.into(),
        Error::Refused(reason) => refusal(reason),
        Error::NotUndone(reason) => obstacle(reason),
    })
}

/// Returns the hint after an event that can't be undone.
fn obstacle(obstacle: &Obstacle) -> String {
    let log = |name: &str| {
        let rest = "list the other changes that can be undone: tavern undo --list";
        format!(
            "see its history, and change the queue's file by hand: tavern log {name} --diff; {rest}"
        )
    };
    match obstacle {
        Obstacle::Nothing => "see the history: tavern log".to_owned(),
        Obstacle::NoEvent(_) | Obstacle::NoChange { .. } => {
            "list the changes that can be undone: tavern undo --list".to_owned()
        }
        Obstacle::Already { by, .. } => format!("to redo it: tavern undo --event {by}"),
        Obstacle::Held(task) => format!("take it from its holder: tavern release {task} --force"),
        Obstacle::InHands { name, now, .. } => match now {
            Some(Status::Dead) => format!("tavern retry {name}"),
            Some(Status::Completed | Status::Cancelled) => {
                format!("tavern reopen {name}")
            }
            Some(Status::Waiting) => format!("tavern release {name}"),
            Some(Status::Approved | Status::InReview) => {
                format!("tavern cancel {name}, then tavern reopen {name}")
            }
            Some(_) => format!("to hold it again: tavern claim {name}"),
            None => {
                format!("its text is in the log; put it back as pending: tavern log {name} --diff")
            }
        },
        Obstacle::Since { name, .. } | Obstacle::Gone { name, .. } | Obstacle::Odd { name, .. } => {
            log(name)
        }
        Obstacle::Merged { task, .. } => {
            format!("to redo it: tavern reopen {task}")
        }
        Obstacle::Back { name, .. } => format!("see it: tavern status {name}"),
        Obstacle::Lanes { queue, .. } => {
            format!(
                "change the headings, or `lanes` in the front matter, back by hand: tavern edit {queue}"
            )
        }
        Obstacle::Stays { seq, items, .. } => {
            let remove = match items.parse::<TaskId>() {
                Ok(task) => format!("to remove it: tavern cancel {task}"),
                Err(_) => "to remove it, delete its line again".to_owned(),
            };
            format!("{remove}; to undo the change before: tavern undo --event {seq}")
        }
        Obstacle::Twice { .. } => "change the queue's file by hand".to_owned(),
    }
}

/// Describes the next step for approved work, as a suffix of a sentence.
pub(super) fn approved(board: &Board, task: &TaskId) -> String {
    let is_alive = |agent: &AgentFile| life(&agent.holder) != Life::Gone;
    let agent = if board.agents().iter().any(is_alive) {
        "the first agent that is free"
    } else {
        "the next agent"
    };
    format!(": {agent} merges it, or now: tavern merge {task}")
}

/// Returns the command that moves the file at `path` away.
pub(super) fn move_away(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    format!(
        "mv {} {}",
        quoted(path),
        quoted(format!("{}.was", path.display()))
    )
}

/// Returns the hint after settings that can't be read.
pub(super) fn config(error: &ConfigError) -> Option<String> {
    let path = match error {
        ConfigError::Read { path, .. } => path,
        ConfigError::Flawed(flaw) => &flaw.path,
    };
    error.hint().or_else(|| {
        let away = move_away(path);
        Some(if path.ends_with(SCHEDULES) {
            format!("correct it, or move it away: {away}")
        } else {
            format!("correct it, or begin with a fresh one: {away}; tavern init")
        })
    })
}

/// Returns the hint after an error around a run.
pub(super) fn run(error: &tavern_run::Error) -> Option<String> {
    match error {
        tavern_run::Error::Store(error) => store(error),
        tavern_run::Error::NotTrusted(untrusted) if untrusted.doubt == Doubt::Since => {
            let again = untrusted
                .what
                .iter()
                .map(|name| format!("tavern release {} --force", quoted(name)));
            let again = again.collect::<Vec<_>>().join("; ");
            Some(format!("to restart with the new text: {again}"))
        }
        tavern_run::Error::NotTrusted(_) => Some(trust(None)),
        error => error.hint(),
    }
}

/// Returns the hint for an item that can't be worked on here and now; `None` if no action is needed. `queue`
/// is its queue, if commands can name it: a file outside the board has no name.
pub(super) fn lack(lack: &Lack, task: Option<&TaskId>, queue: Option<&str>) -> Option<String> {
    let edit = match (task, queue) {
        (Some(id), _) => format!(": tavern edit {id}"),
        (None, Some("main")) => ": tavern edit".to_owned(),
        (None, Some(queue)) => format!(": tavern edit {}", quoted(queue)),
        (None, None) => String::new(),
    };
    // No command can name a line without an ID.
    let of_item = |hint: &dyn Fn(&TaskId) -> String| {
        task.map_or_else(
            || "give it an ID in its file first, such as T-7".to_owned(),
            hint,
        )
    };
    Some(match lack {
        Lack::Problem {
            hint: Some(hint), ..
        } => format!("{hint}{edit}"),
        Lack::Problem { hint: None, .. } => {
            format!("see where and why: tavern check{}", file_of(queue))
        }
        Lack::Status(Status::Approved) => "merge it: tavern merge".to_owned(),
        Lack::Status(Status::Draft) => {
            of_item(&|id| format!("let agents work on it: tavern release {id}"))
        }
        Lack::Status(Status::Dead) => of_item(&|id| format!("bring it back: tavern retry {id}")),
        Lack::Status(Status::Completed | Status::Cancelled) => match task {
            Some(id) => format!("to redo it: tavern reopen {id}"),
            None => again(&edit),
        },
        Lack::Held(_) | Lack::Status(Status::InProgress | Status::Reviewing) => {
            of_item(&|id| format!("take it from its holder: tavern release {id} --force"))
        }
        Lack::Status(_) => of_item(&|id| format!("for details: tavern status {id}")),
        Lack::Aside => "to have agents take it, move it to the Pending lane".to_owned(),
        Lack::LeftOut(mark) => {
            format!("to have agents take it, remove the `{mark}` from its title{edit}")
        }
        Lack::OwnDependency { .. } => format!("{OWN_DEPENDENCY}{edit}"),
        Lack::Answer(_) => of_item(&|id| format!("tavern answer {id} \"…\"")),
        Lack::Release(_) => of_item(&|id| format!("tavern release {id}")),
        Lack::Role(role) | Lack::Reviewer(role) => match task {
            Some(id) => format!("tavern claim {id} --role {role}"),
            None => format!("tavern claim --role {role}"),
        },
        Lack::Permission => of_item(&|id| format!("tavern approve {id}")),
        Lack::Unapproved(_) => of_item(&|id| format!("tavern diff {id}, then tavern approve {id}")),
        Lack::Approval => of_item(&|id| {
            format!("tavern diff {id}, then tavern approve {id}, or tavern reject {id} \"…\"")
        }),
        Lack::Touches { task, .. } => format!("for its progress: tavern status {task}"),
        Lack::FailedChild(child) => {
            format!("tavern retry {child}, or tavern cancel {child} to go on without it")
        }
        Lack::Dependencies(open) => {
            // A dependency without an ID can't be named.
            return open
                .iter()
                .filter(|(needed, _)| needed.parse::<TaskId>().is_ok())
                .find_map(|(needed, status)| {
                    Some(match status {
                        None => format!("add `{needed}`, or fix its `after`{edit}"),
                        Some(Status::Draft) => format!("tavern release {needed}"),
                        Some(Status::Dead) => format!("tavern retry {needed}"),
                        Some(Status::Cancelled) => format!("tavern reopen {needed}"),
                        Some(Status::Waiting) => format!("tavern status {needed}"),
                        _ => return None,
                    })
                });
        }
        Lack::Closed {
            runner,
            needs_person,
            ..
        } => {
            let mend = if *needs_person {
                "sign in or fix its key, then open it"
            } else {
                "to open it now"
            };
            format!("{mend}: rm .tavern/quota/{}.yaml", quoted(runner))
        }
        Lack::BackOff(_) => return Some(format!("to try it now: tavern release {}", task?)),
        Lack::Children(_) => of_item(&|id| format!("to go on without them: tavern release {id}")),
        Lack::NoRole(_) => {
            format!("add it under `roles:` in .tavern/config.yaml, or name another{edit}")
        }
        Lack::OnlyReviews(_) => format!("name a role that works, or none{edit}"),
        Lack::NoRunner(_) => {
            format!("add it under `runners:` in .tavern/config.yaml, or name another{edit}")
        }
        // These may also describe many items at once.
        Lack::NoReviewer(_) | Lack::NoJudge { .. } => {
            let Some(id) = task else {
                return Some(match lack {
                    Lack::NoJudge { role, .. } => format!(
                        "use another: tavern agent --role {role} --runner claude; or judge it yourself: tavern approve ID"
                    ),
                    _ => "name a role with `does: review` under `roles:`".to_owned(),
                });
            };
            let judge =
                format!("review it yourself: tavern approve {id}, or tavern reject {id} \"…\"");
            match lack {
                Lack::NoReviewer(_) => format!("{judge}; or add a role with `does: review`"),
                _ => format!("name another under `roles:`, or {judge}"),
            }
        }
        Lack::NoScript { role, .. } => {
            let role = if role == DEFAULT_ROLE {
                String::new()
            } else {
                format!(" --role {role}")
            };
            match queue {
                Some("main") => {
                    format!("indent one under it, or: tavern agent{role} --runner claude")
                }
                Some(queue) => {
                    format!(
                        "indent one under it, or: tavern drain {}{role} --runner claude",
                        quoted(queue)
                    )
                }
                None => "indent one under it".to_owned(),
            }
        }
        Lack::Program { program, command } => {
            format!(
                "install {program}; if the item is to bring it: `command -v {program} && {command}`"
            )
        }
        Lack::Rewritten {
            base,
            branch,
            dropped,
            ..
        } => format!(
            "leave them out: git rebase --autostash --rebase-merges --onto {0} {dropped} {1} && git switch {0}; or keep them: tavern merge --accept {0}",
            quoted(base),
            quoted(branch)
        ),
        Lack::ForeignTip { branch, tip, known } => format!(
            "look (git log {known}..{tip}), and accept it: tavern merge --accept {tip}; or put it back: git update-ref -m back {} {known}",
            quoted(format!("refs/heads/{branch}"))
        ),
        Lack::Capped { scope, measure, .. } => cap(*scope, *measure),
        Lack::NotReady(not_ready) => return not_ready.hint.clone(),
        Lack::NotTrusted(_) => trust(queue),
    })
}

/// Returns the hint for an ended item without an ID; `edit` is how to edit its queue.
pub(super) fn again(edit: &str) -> String {
    format!("to redo it, write `[ ]` there{edit}")
}

/// Returns the hint for a cap of many runs that is used up.
fn cap(scope: CapScope, measure: Measure) -> String {
    let flag = if measure == Measure::Usd {
        "--max-usd"
    } else {
        "--max-minutes"
    };
    match scope {
        CapScope::Drain | CapScope::Agent => {
            format!("to go on: start another {scope}, with more {flag} or without it")
        }
        _ => format!(
            "raise it: `budget: {{{scope}: {{{measure}: …}}}}` in .tavern/config.yaml, and start agents again"
        ),
    }
}

/// Returns the hint for untrusted changes from git; `queue` may be a task file.
pub(super) fn trust(queue: Option<&str>) -> String {
    format!(
        "see it, and allow it: tavern trust{}; for one run: --trust",
        file_of(queue)
    )
}

/// Returns the argument that names a task file; queues of the board are checked anyway.
fn file_of(queue: Option<&str>) -> String {
    queue
        .filter(|queue| queue.ends_with(".md"))
        .map_or_else(String::new, |file| format!(" {}", quoted(file)))
}

/// Explains why no agent of a drain works an item of `queue`, with a hint.
pub(super) fn unattended(lack: &Lack, task: Option<&TaskId>, queue: &str) -> String {
    let (Lack::Role(role) | Lack::Reviewer(role)) = lack else {
        return sentence(lack, task, Some(queue));
    };
    let judge = task.filter(|_| matches!(lack, Lack::Reviewer(_)));
    let judge = judge
        .map(|task| format!("; or approve it yourself: tavern approve {task}"))
        .unwrap_or_default();
    format!(
        "{lack}, and no agent here works as one: {}{judge}",
        agent(role, [queue])
    )
}

/// Returns the command that starts an agent of `role` for these queues.
pub(super) fn agent<'q>(role: &str, queues: impl IntoIterator<Item = &'q str>) -> String {
    let queues: Vec<&str> = queues.into_iter().collect();
    let is_usual = queues == ["main"];
    let flags = queues
        .iter()
        .filter(|_| !is_usual)
        .map(|queue| format!(" --queue {}", quoted(queue)));
    format!("tavern agent --role {role}{}", flags.collect::<String>())
}

/// Adds a hint to a usage error if an ID stands alone, as other programs accept it.
pub(super) fn usage(error: &mut clap::Error, command: &Command) {
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => ContextKind::InvalidArg,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else {
        return;
    };
    let has_last = command
        .get_arguments()
        .any(|argument| argument.get_long() == Some("last"));
    if error.kind() == ErrorKind::UnknownArgument && word.starts_with("-n") && has_last {
        let tip = ContextValue::StyledStrs(vec!["to limit their number: --last N".into()]);
        error.insert(ContextKind::Suggested, tip);
        return;
    }
    if word.parse::<ItemName>().is_err() {
        return;
    }
    let called = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            format!("to name an item: {called} list {word}, or {called} show {word}")
        }
        _ => return,
    };
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![tip.into()]),
    );
}

/// Returns the key of the budget that ended a run with this reason.
pub(super) fn limit(reason: &str) -> Option<&'static str> {
    let limits = [
        (EndReason::Wall, "minutes"),
        (EndReason::Usd, "usd"),
        (EndReason::Tokens, "tokens"),
        (EndReason::Memory, "memory_mb"),
    ];
    let is_it = |(why, _): &&(EndReason, &str)| reason.starts_with(why.describe());
    limits.iter().find(is_it).map(|(_, limit)| *limit)
}

/// Hints for verbs of other programs.
const VERBS: &[(&[&str], &str)] = &[
    (
        &["rename", "assign"],
        "change an item in your editor: tavern edit ID; its keys: tavern set ID role=reviewer",
    ),
    (
        &["hold"],
        "have an item wait until you allow it: tavern set ID approve=start; everything: tavern pause",
    ),
    (
        &["move", "mv"],
        "paste the item's lines into the other queue, then cut them here: tavern edit QUEUE",
    ),
    (
        &["blocked", "stuck"],
        "list waiting items with their reasons: tavern list; one item: tavern show ID",
    ),
    (
        &["config", "settings"],
        "edit .tavern/config.yaml, then: tavern check config.yaml",
    ),
    (
        &["clean", "cleanup", "gc", "prune"],
        "clean up after processes that died: tavern reap",
    ),
    (
        &["start", "run", "work"],
        "work the items: tavern agent; a whole list with several agents: tavern drain",
    ),
    (
        &["restore", "history"],
        "list a queue's earlier texts: tavern edit QUEUE --texts; restore one: tavern edit QUEUE --restore TEXT",
    ),
    (
        &["done", "finish", "complete"],
        "of an item that you hold: tavern report ID --token N --done",
    ),
    (
        &["kill"],
        "take an item from its holder: tavern release ID --force; everything: echo why > .tavern/STOP",
    ),
    (
        &["stop"],
        "start nothing new: tavern pause; end everything: echo why > .tavern/STOP",
    ),
];

/// Returns the hint for an unknown verb.
pub(super) fn for_verb(verb: &str) -> Option<&'static str> {
    VERBS
        .iter()
        .find(|(verbs, _)| verbs.contains(&verb))
        .map(|(_, hint)| *hint)
}

/// Describes how a conflict was settled, with a hint.
pub(super) fn settled(settled: &Settled) -> String {
    let hint = match (settled.as_what, &settled.conflict.item) {
        (SettledAs::Held, Some(item)) => {
            format!("; to take it from its holder: tavern release {item} --force")
        }
        (SettledAs::Both, _) => "; see where: tavern check".to_owned(),
        _ => String::new(),
    };
    format!("{settled}{hint}")
}

/// The hint for removed items that stay.
pub(super) const OF_STAYS: &str = "to give one up: tavern cancel ID";

/// Returns the hint for a save that was set aside.
pub(super) fn of_aside(aside: &SetAside) -> String {
    let file = quoted(&aside.path);
    format!("to keep it: tavern edit --accept {file}; to drop it: tavern edit --discard {file}")
}

/// Returns the hint for a known queue with a missing file.
pub(super) fn of_lost(board: &Board, lost: &Lost) -> String {
    format!(
        "put it back: tavern check --fix; or forget it: rm {}",
        quoted(board.seen_path(&lost.queue))
    )
}

/// Returns the hint for a file beside the queues that is no queue.
pub(super) fn of_stranger(queue: &Queue) -> String {
    let path = quoted(&queue.path);
    format!(
        "if it is a copy: rm {path}; if it is a queue, its front matter says so: `id: {}`",
        queue.id
    )
}

/// Returns the hint for a duplicate ID; `file` is named if given.
pub(super) fn duplicate(file: Option<&str>) -> String {
    let file = file
        .map(|file| format!(" {}", quoted(file)))
        .unwrap_or_default();
    format!("give all but one a fresh ID: tavern check --fix{file}")
}

/// Adds the command to the hint of `tavern check` about a dependency, which `text` names.
pub(super) fn add_command(problem: &mut Problem, text: &str) {
    let verb = match problem.code {
        "cancelled-dependency" => "reopen",
        "dead-dependency" => "retry",
        _ => return,
    };
    problem
        .hint
        .push_str(&format!(": tavern {verb} {}", &text[problem.span.clone()]));
}

/// Describes an item's lack for people, with local times.
pub(super) fn lacking(lack: &Lack) -> String {
    match lack {
        Lack::BackOff(until) => format!("it may be taken at {}", clock::shown(*until)),
        Lack::Closed { until, .. } => format!("{lack} until {}", clock::shown(*until)),
        lack => lack.to_string(),
    }
}

/// Describes an item's lack, with a hint.
pub(super) fn sentence(of: &Lack, task: Option<&TaskId>, queue: Option<&str>) -> String {
    let (lacking, hint) = (lacking(of), lack(of, task, queue));
    hint.map_or_else(|| lacking.clone(), |hint| format!("{lacking}; {hint}"))
}
