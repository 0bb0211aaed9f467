//! A planner's run. Its prompt describes the queues, the roles that work items, and files that may be specifications.
//! The planner's plan is written to disk before it is applied, and it is applied whole or not at all.

use std::path::Path;

use super::artifacts::{Artifacts, PLAN, PROBLEMS};
use super::error::Error;
use super::result::{AgentAnswer, RunResult};
use super::trust::Trust;
use super::workspace::Workspace;
use super::worktree::Worktree;
use crate::prompt::{Planning, QueueState, Refutation};
use crate::runner::answer::final_block;
use crate::runner::signal::without_signal;
use tavern_core::document::{Document, Item};
use tavern_core::eligible::DEFAULT_ROLE;
use tavern_core::plan::{Plan, Planned, Rules, read};
use tavern_core::problem::{Position, Problem, render};
use tavern_core::task::{MAX_ID, Status, Task, TaskId};
use tavern_store::Claimed;
use tavern_store::config::{Does, PlanLane, Role};
use tavern_sys::secrets::redact;

/// The most specification files that a prompt lists.
const MOST_SPECS: usize = 60;

/// Folders, beside the root, that may hold specifications.
const SPEC_FOLDERS: [&str; 6] = ["spec", "specs", "doc", "docs", "design", "rfcs"];

/// Returns the checklist that an answer ends with, or why there is none.
fn checklist(message: &str, nonce: Option<&str>) -> Result<String, String> {
    final_block(without_signal(message), &["markdown", "md"], nonce)
}

/// Returns why a planner's plan can't be applied, while its session is open. `message` is the agent's last one.
pub fn refutation(
    workspace: &Workspace,
    held: &Claimed,
    message: &str,
    nonce: Option<&str>,
) -> Option<Refutation> {
    let text = match checklist(message, nonce) {
        Ok(text) => text,
        Err(why) => {
            return Some(Refutation {
                reason: format!("it gave no plan: {why}"),
                output: String::new(),
            });
        }
    };
    let problems = taken(workspace, held, &text).err()?;
    Some(Refutation {
        reason: reason(&text, &problems),
        output: problem_list(&text, &problems),
    })
}

/// Returns the result of a planner's run that claims to be done: its plan, if it can be applied. `message` is the
/// agent's last one.
pub fn judge(
    workspace: &Workspace,
    held: &Claimed,
    artifacts: &Artifacts,
    message: &str,
    nonce: Option<&str>,
) -> Result<AgentAnswer, Error> {
    match checklist(message, nonce) {
        Ok(plan) => artifacts.write_durable(PLAN, &plan)?,
        Err(why) => return Ok(RunResult::failed(format!("it gave no plan: {why}")).into()),
    }
    let (result, problems) = look(workspace, held, artifacts);
    if !problems.is_empty() {
        artifacts.write(PROBLEMS, &problems)?;
    }
    Ok(result.into())
}

/// Checks the plan in the run's folder against the current board. Returns the result and the rendered problems.
pub fn look(workspace: &Workspace, held: &Claimed, artifacts: &Artifacts) -> (RunResult, String) {
    let text = artifacts.read(PLAN);
    if text.trim().is_empty() {
        let why = format!(
            "it gave no plan: there is none in {}",
            artifacts.path(PLAN).display()
        );
        return (RunResult::failed(why), String::new());
    }
    if held.task.id.as_str().len() + ".9999".len() > MAX_ID {
        let why = "its ID is too long as a prefix of new IDs: give it a shorter one";
        return (RunResult::failed(why), String::new());
    }
    let may_plan = |role: &Role| {
        !role.sandbox
            || workspace
                .config
                .roles
                .values()
                .any(|it| it.sandbox && it.does == Does::Work)
    };
    if !workspace
        .config
        .roles
        .get(&held.lease.role)
        .is_some_and(may_plan)
    {
        let why = "it plans in a sandbox, and no role with `sandbox: true` works on items";
        return (RunResult::failed(why), String::new());
    }
    match taken(workspace, held, &text) {
        Ok(plan) => {
            let reason = match plan.items.len() {
                0 => plan.words.clone(),
                1 => "planned 1 item".to_owned(),
                number => format!("planned {number} items"),
            };
            (RunResult::Planned { plan, reason }, String::new())
        }
        Err(problems) => (
            RunResult::failed(reason(&text, &problems)),
            problem_list(&text, &problems),
        ),
    }
}

/// Returns the result of an answerer's run that claims to be done: its answer, and no items. `message` is the agent's
/// last one.
pub fn answered(message: &str) -> RunResult {
    let Some(first) = first_line(message) else {
        return RunResult::failed("it gave no answer");
    };
    let plan = Plan {
        words: first.clone(),
        ..Plan::default()
    };
    RunResult::Planned {
        plan,
        reason: first,
    }
}

/// Returns the first non-blank line of an answer.
pub fn first_line(message: &str) -> Option<String> {
    let mut lines = without_signal(message).lines().map(str::trim);
    lines.find(|line| !line.is_empty()).map(str::to_owned)
}

/// Returns why the last message is no answer, while the session is open.
pub fn unanswered(message: &str) -> Option<Refutation> {
    let is_empty = without_signal(message).trim().is_empty();
    is_empty.then(|| Refutation {
        reason: "it gave no answer".to_owned(),
        output: String::new(),
    })
}

fn problem_list(text: &str, problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| render(PLAN, text, problem))
        .collect()
}

/// Summarizes the problems in one line: the first one, and how many more there are.
fn reason(text: &str, problems: &[Problem]) -> String {
    let Some(first) = problems.first() else {
        return String::new();
    };
    let line = Position::of(text, first.span.start).line;
    let more = match problems.len() - 1 {
        0 => String::new(),
        1 => "; and 1 problem more".to_owned(),
        more => format!("; and {more} problems more"),
    };
    format!(
        "its plan was rejected: line {line}: {} ({}){more}",
        first.message, first.hint
    )
}

/// Parses and checks `text` as a plan.
fn taken(workspace: &Workspace, held: &Claimed, text: &str) -> Result<Plan, Vec<Problem>> {
    // Items planned in a sandbox are worked in one.
    let is_boxed = workspace
        .config
        .roles
        .get(&held.lease.role)
        .is_some_and(|role| role.sandbox);
    let may_do = |role: &Role| role.does == Does::Work && (role.sandbox || !is_boxed);
    let roles = workspace
        .config
        .roles
        .iter()
        .filter(|(_, role)| may_do(role));
    let roles: Vec<String> = roles.map(|(name, _)| name.clone()).collect();
    let front = workspace
        .board
        .read(&held.queue)
        .ok()
        .and_then(|text| text.content.parse().0.front().role.clone());
    let usual = front
        .into_iter()
        .chain([DEFAULT_ROLE.to_owned()])
        .find(|name| !is_boxed || roles.contains(name));
    let role = usual
        .or_else(|| roles.first().cloned())
        .unwrap_or_else(|| DEFAULT_ROLE.to_owned());
    let rules = Rules {
        roles: &roles,
        role: &role,
        most: workspace.config.plan.most as usize,
        may_be_empty: held.task.trigger.is_some(),
        status_of: &|id: &TaskId| {
            workspace
                .board
                .task(id)
                .ok()
                .map(|found| found.task.status())
        },
    };
    let plan = read(text, &rules)?;
    match holds_secret(&plan) {
        None => Ok(plan),
        Some((name, line)) => Err(vec![Problem::error(
            "secret",
            text.find(&line).map_or(0..0, |at| at..at + line.len()),
            format!("a command holds a secret, {name}, which would be committed"),
            "name its variable there ($NAME)",
        )]),
    }
}

/// Returns the name of the first secret in the plan's commands, and its line redacted. An answer is stored with its
/// secrets redacted, which would change the command.
fn holds_secret(plan: &Plan) -> Option<(String, String)> {
    let mut commands = plan.items.iter().flat_map(Planned::commands);
    commands.find_map(|command| {
        let redacted = redact(&command);
        let mut lines = redacted.lines().map(str::trim);
        let (line, rest) = lines.find_map(|line| Some((line, line.split_once("[redacted ")?.1)))?;
        let name = rest.split(']').next().unwrap_or_default();
        Some((name.to_owned(), line.to_owned()))
    })
}

/// Returns the lane in which the planned items start.
pub fn lane(workspace: &Workspace, task: &Task) -> Status {
    task.lane.unwrap_or(match workspace.config.plan.lane {
        PlanLane::Pending => Status::Pending,
        PlanLane::Draft => Status::Draft,
    })
}

/// Returns the additions of a planning item's prompt to its request.
pub fn planning(workspace: &Workspace, held: &Claimed, worktree: &Worktree) -> Planning {
    let roles = workspace
        .config
        .roles
        .iter()
        .filter(|(_, role)| role.does == Does::Work);
    // An unreadable queue must not block planning.
    let queues = workspace.board.queues().unwrap_or_default().into_iter();
    let texts = queues.filter_map(|queue| workspace.board.read(&queue).ok());
    let trust = Trust::of(workspace);
    Planning {
        trigger: held.task.trigger.clone(),
        lane: lane(workspace, &held.task).as_str().to_owned(),
        most: workspace.config.plan.most,
        roles: roles.map(|(name, role)| described(name, role)).collect(),
        queues: texts
            .map(|text| {
                state(
                    &text.queue.id,
                    &text.content.parse().0,
                    &held.task.id,
                    &trust,
                )
            })
            .collect(),
        specs: specs(&worktree.path),
    }
}

fn described(name: &str, role: &Role) -> String {
    let model = role.model.as_ref().map(|model| format!("model {model}"));
    let minutes = role
        .budget
        .minutes
        .map(|minutes| format!("{minutes} minutes at most"));
    let tries = role
        .max_attempts
        .map(|most| format!("tried {most} times at most"));
    let settings: Vec<String> = [model, minutes, tries].into_iter().flatten().collect();
    if settings.is_empty() {
        name.to_owned()
    } else {
        format!("{name} ({})", settings.join(", "))
    }
}

/// Describes a queue for the prompt. An untrusted item is only counted.
fn state(name: &str, document: &Document<'_>, own: &TaskId, trust: &Trust<'_>) -> QueueState {
    let others = || {
        document
            .items()
            .iter()
            .filter(|item| item.within.is_none() && item.id.as_ref() != Some(own))
    };
    let count = |status: Status| others().filter(|item| item.status == status).count();
    let counts = Status::ALL
        .into_iter()
        .map(|status| (count(status), status))
        .filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, status)| format!("{count} {status}"))
        .collect();
    let is_open = |item: &Item<'_>| !matches!(item.status, Status::Completed | Status::Cancelled);
    let is_told = |item: &&Item<'_>| is_open(item) && trust.item(&document.task_of(item)).is_ok();
    QueueState {
        name: name.to_owned(),
        summary: if counts.is_empty() {
            "no items".to_owned()
        } else {
            counts.join(", ")
        },
        items: others()
            .filter(is_told)
            .map(|item| queue_line(document, item))
            .collect(),
    }
}

fn queue_line(document: &Document<'_>, item: &Item<'_>) -> String {
    let task = document.task_of(item);
    let name = item
        .id
        .as_ref()
        .map(|id| format!("{id} "))
        .unwrap_or_default();
    let status = task.status();
    // A person who trusts an item has seen its reason only if it is dead.
    let why = task
        .reason()
        .filter(|_| status == Status::Dead)
        .map(|why| format!(" [{why}]"));
    let Task {
        title,
        role,
        after,
        touches,
        ..
    } = task;
    let mut line = format!("{name}({status}");
    let role = role.filter(|role| role != DEFAULT_ROLE);
    line.extend(role.map(|role| format!(", role {role}")));
    let after: Vec<&str> = after.iter().map(TaskId::as_str).collect();
    line.extend((!after.is_empty()).then(|| format!(", after {}", after.join(" "))));
    line.extend((!touches.is_empty()).then(|| format!(", touches {}", touches.join(" "))));
    line.push_str(&format!("): {title}"));
    line.extend(why);
    line
}

/// Returns Markdown files of the root and of the folders for specifications.
fn specs(root: &Path) -> Vec<String> {
    let files = walkdir::WalkDir::new(root)
        .max_depth(4)
        .sort_by_file_name()
        .into_iter();
    let files = files.filter_entry(|entry| {
        let is_spec = |name: &str| {
            SPEC_FOLDERS
                .iter()
                .any(|folder| folder.eq_ignore_ascii_case(name))
        };
        entry.depth() != 1
            || entry.file_type().is_file()
            || entry.file_name().to_str().is_some_and(is_spec)
    });
    let paths = files
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file());
    let paths = paths.filter(|entry| {
        entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "md")
    });
    let names = paths.filter_map(|entry| {
        Some(
            entry
                .path()
                .strip_prefix(root)
                .ok()?
                .to_string_lossy()
                .into_owned(),
        )
    });
    names.take(MOST_SPECS).collect()
}

#[cfg(test)]
mod tests {
    use tavern_core::metadata::{Key, KeyUse};

    use super::*;
    use crate::prompt::Template;

    #[test]
    fn what_planners_are_shown_is_a_plan() {
        let template = Template::built_in("rules-plan.md").expect("it is built in");
        let (_, shown) = template
            .text
            .split_once("<example>\n")
            .expect("it shows one");
        let (shown, _) = shown.split_once("</example>").expect("it ends");
        let roles = [DEFAULT_ROLE.to_owned()];
        let rules = Rules {
            roles: &roles,
            role: DEFAULT_ROLE,
            most: 9,
            may_be_empty: false,
            status_of: &|_| None,
        };
        let plan = read(shown, &rules).unwrap_or_else(|problems| panic!("{problems:#?}"));
        assert_eq!(plan.items.len(), 2);
        for key in Key::all_for(KeyUse::Planned) {
            assert!(
                template.text.contains(key.as_str()),
                "it names {}",
                key.as_str()
            );
        }
    }
}
