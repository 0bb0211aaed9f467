//! Collects the content of the page from the queues, the log and the runs. Its size is bounded.

use std::collections::{HashMap, HashSet};

use indicatif::ProgressBar;

use super::chronicle::{
    Chronicle, ItemStory, Move, OpenNeed, PartForm, RunPart, RunShare, RunStory,
};
use crate::sanitize::{Ends, Extract, Legible};
use crate::{CliError, Context, hints, needs};
use tavern_core::eligible::{DEFAULT_ROLE, Lack};
use tavern_core::event::Kind;
use tavern_core::need::NeedKind;
use tavern_core::task::{Status, Task, TaskId, Timestamp};
use tavern_run::artifacts::{MERGED, PROBLEMS, VERIFY};
use tavern_run::readiness::{Unready, unready};
use tavern_run::record::{Metadata, runs, spent_by_ended};
use tavern_run::runner::{OUTPUT_LOG, Outcome, PROMPT};
use tavern_store::{Archived, Board, Queue, walk_log};
use tavern_sys::clock;

/// Maximum numbers of items and runs on the page; all are counted.
const MOST_ITEMS: usize = 1_500;
const MOST_RUNS: usize = 1_500;

/// Maximum number of moves of an item on the page, the newest.
const MOST_MOVES: usize = 40;

/// Bytes of the page for the texts of all runs: a minimum for each, and the rest in favour of newer ones.
const ROOM_OF_RUNS: usize = 1_300_000;
const LEAST_ROOM: usize = 500;
const MOST_ROOM: usize = 64 << 10;

/// Bytes of the page for the texts of all items.
const ROOM_OF_ITEMS: usize = 300_000;

/// Bytes of markup for each line of a patch.
const MARKS_OF_LINE: usize = "<ins></ins>".len();

/// The part of the past that the page covers.
pub(super) struct PageScope<'a> {
    pub queues: &'a [Queue],
    /// Whether all queues are covered, removed ones too.
    pub is_all: bool,
    pub since: Option<Timestamp>,
}

impl PageScope<'_> {
    fn has(&self, queue: &str) -> bool {
        self.is_all || self.queues.iter().any(|meant| meant.id == queue)
    }

    /// Returns whether the run is of a covered queue, and did not end before `since`.
    fn has_run(&self, run: &Metadata) -> bool {
        self.has(&run.queue)
            && self
                .since
                .is_none_or(|since| run.ended.is_none_or(|ended| ended >= since))
    }
}

/// Collects the content for `board`; `progress` makes a progress bar for a number of runs.
pub(super) fn gather(
    context: &Context,
    board: &Board,
    scope: &PageScope<'_>,
    progress: impl FnOnce(usize) -> ProgressBar,
) -> Result<Chronicle, CliError> {
    let now = clock::now();
    let mut all = runs(board)?;
    let kept: HashSet<String> = all.iter().map(|run| run.run.clone()).collect();
    all.retain(|run| scope.has_run(run));
    let mut shares: Vec<RunShare> = all.iter().map(|run| share(run, now)).collect();
    let is_recent = |started: Timestamp| scope.since.is_none_or(|since| started >= since);
    let gone = spent_by_ended(board)
        .into_iter()
        .filter(|gone| !kept.contains(&gone.run));
    let gone = gone.filter(|gone| scope.has(&gone.queue) && is_recent(gone.started));
    shares.extend(gone.map(|gone| RunShare {
        agent: Legible::line(&gone.agent),
        role: Legible::line("unknown"),
        models: vec![(Legible::line("unknown"), gone.usd, gone.tokens)],
        day: clock::day_of(gone.started),
        usd: gone.usd,
        tokens: gone.tokens,
        seconds: gone.seconds.unsigned_abs(),
    }));
    let runs_left_out = all.len().saturating_sub(MOST_RUNS);
    all.drain(..runs_left_out);
    let (mut items, mut ids) = items(context, board, scope);
    let items_left_out = leave_out(&mut items, &mut ids, &all);
    add_gone(board, &mut items, &mut ids, &all);
    add_moves(board, scope, &mut items, &ids)?;
    link(&mut items, &ids);
    let mut stories = Vec::with_capacity(all.len());
    let progress = progress(all.len());
    for (run, room) in all.iter().zip(rooms(all.len())) {
        progress.inc(1);
        let Some(item) = ids.get(&run.task).copied() else {
            continue;
        };
        items[item].story.runs.push(stories.len());
        stories.push(story(board, run, item, room, now));
    }
    Ok(Chronicle {
        board: Legible::line(
            &board
                .root()
                .file_name()
                .unwrap_or_default()
                .to_string_lossy(),
        ),
        made: now,
        since: scope.since,
        queues: scope
            .queues
            .iter()
            .map(|queue| Legible::line(&queue.id))
            .collect(),
        items: items.into_iter().map(|item| item.story).collect(),
        items_left_out,
        runs: stories,
        runs_left_out,
        shares,
    })
}

/// An item with unresolved references.
struct Draft {
    story: ItemStory,
    text: String,
    after: Vec<TaskId>,
    parent: Option<TaskId>,
}

type Places = HashMap<TaskId, usize>;

/// Returns the items of the queues.
fn items(context: &Context, board: &Board, scope: &PageScope<'_>) -> (Vec<Draft>, Places) {
    let (mut drafts, mut ids) = (Vec::new(), Places::new());
    // Without readable settings the lacks are unknown.
    let workspace = context
        .light_site(board.clone())
        .ok()
        .map(|workspace| workspace.naming(scope.queues));
    let lacking = workspace
        .map(|workspace| unready(&workspace, scope.queues, None))
        .unwrap_or_default();
    let mut lacking: HashMap<(String, usize), Unready> = lacking
        .into_iter()
        .map(|one| ((one.queue.clone(), one.line), one))
        .collect();
    for queue in scope.queues.iter().filter(|queue| queue.path.is_file()) {
        let text = match board.read(queue) {
            Ok(text) => text,
            Err(error) => {
                context.out.note(format!("left out: {error}"));
                continue;
            }
        };
        let (document, _) = text.content.parse();
        for item in document.items() {
            let is_step = item.within.is_some() && item.id.is_none();
            if item.aside || is_step {
                continue;
            }
            let name = item.id.as_ref().map_or_else(
                || format!("{}:{}", queue.id, item.line),
                ToString::to_string,
            );
            let lacks = lacking
                .remove(&(queue.id.clone(), item.line))
                .map(|one| one.lacks)
                .unwrap_or_default();
            let draft = Draft::of(
                document.task_of(item),
                &name,
                &queue.id,
                &lacks,
                item.id.as_ref(),
            );
            if let Some(id) = &item.id {
                ids.entry(id.clone()).or_insert(drafts.len());
            }
            drafts.push(draft);
        }
    }
    let room = ROOM_OF_ITEMS / drafts.len().max(1);
    for draft in &mut drafts {
        draft.story.text = Extract::within(&Ends::of(&draft.text), room.clamp(150, 4_000), 0);
    }
    (drafts, ids)
}

impl Draft {
    fn of(task: Task, name: &str, queue: &str, lacks: &[Lack], id: Option<&TaskId>) -> Draft {
        let status = task.status();
        let stuck = lacks.iter().find(|lack| lack.is_stuck());
        let waits_for = stuck
            .or(lacks.first())
            .map(hints::lacking)
            .unwrap_or_default();
        let reason = task.reason().unwrap_or_default();
        let need = needs::of(lacks, task.reason(), id, queue).map(|need| {
            let (rank, word) = word_of(need.need);
            OpenNeed {
                rank,
                word,
                why: Legible::line(&need.why),
                todo: Legible::line(&need.todo),
            }
        });
        let other = || {
            // Dependencies are shown by themselves.
            let is_meant = |lack: &&Lack| lack.is_stuck() && !matches!(lack, Lack::Dependencies(_));
            let lack = lacks.iter().find(is_meant)?;
            let todo = hints::lack(lack, id, Some(queue)).unwrap_or_default();
            Some(OpenNeed {
                rank: STUCK.0,
                word: STUCK.1,
                why: Legible::line(&hints::lacking(lack)),
                todo: Legible::line(&todo),
            })
        };
        let story = ItemStory {
            name: Legible::line(name),
            title: Legible::line(&task.title),
            queue: Legible::line(queue),
            status: Some(status),
            priority: task.priority,
            role: Legible::line(task.role.as_deref().unwrap_or(DEFAULT_ROLE)),
            text: Extract::default(),
            after: task
                .after
                .iter()
                .map(|id| Legible::line(id.as_str()))
                .collect(),
            after_items: Vec::new(),
            parent: None,
            reason: Legible::line(reason),
            waits_for: Legible::line(if status.is_ended() { "" } else { &waits_for }),
            need: need.or_else(other),
            moves: Vec::new(),
            runs: Vec::new(),
        };
        Draft {
            story,
            text: task.description,
            after: task.after,
            parent: task.parent,
        }
    }
}

/// Ranks after all needs for a person.
const STUCK: (usize, &str) = (9, "stuck");

fn word_of(need: NeedKind) -> (usize, &'static str) {
    match need {
        NeedKind::Answer => (0, "asks"),
        NeedKind::Permission => (1, "asks to begin"),
        NeedKind::Approval => (2, "asks to be merged"),
        NeedKind::Release => (3, "waits to be released"),
        NeedKind::Child => (4, "has a failed part"),
        NeedKind::Dead => (5, "dead"),
        NeedKind::Merge => (6, "approved, not merged"),
        NeedKind::Blocked => (7, "blocked"),
        NeedKind::Problem => (8, "has a problem"),
    }
}

/// Removes surplus items, first ended ones without a run. Returns their number.
fn leave_out(drafts: &mut Vec<Draft>, ids: &mut Places, all: &[Metadata]) -> usize {
    let surplus = drafts.len().saturating_sub(MOST_ITEMS);
    if surplus == 0 {
        return 0;
    }
    let worked: HashSet<usize> = all
        .iter()
        .filter_map(|run| ids.get(&run.task).copied())
        .collect();
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    order.sort_by_key(|place| {
        (
            !worked.contains(place),
            drafts[*place].story.status.is_some_and(Status::is_ended),
        )
    });
    let kept: HashSet<usize> = order.into_iter().take(MOST_ITEMS).collect();
    let mut places = HashMap::new();
    let mut number = 0;
    let mut place = 0;
    drafts.retain(|_| {
        let is_kept = kept.contains(&number);
        if is_kept {
            places.insert(number, place);
            place += 1;
        }
        number += 1;
        is_kept
    });
    *ids = ids
        .drain()
        .filter_map(|(id, was)| Some((id, *places.get(&was)?)))
        .collect();
    surplus
}

/// Adds items of runs that are no longer in a queue.
fn add_gone(board: &Board, drafts: &mut Vec<Draft>, ids: &mut Places, all: &[Metadata]) {
    let archived = Archived::of(board);
    // The newest run knows the last title of its item.
    for run in all.iter().rev() {
        if ids.contains_key(&run.task) {
            continue;
        }
        let mut task = Task::new(run.task.clone(), &run.title);
        task.role = Some(run.role.clone());
        let mut draft = Draft::of(task, run.task.as_str(), &run.queue, &[], Some(&run.task));
        draft.story.status = archived.status_of(&run.task);
        ids.insert(run.task.clone(), drafts.len());
        drafts.push(draft);
    }
}

/// Adds the status changes of the items.
fn add_moves(
    board: &Board,
    scope: &PageScope<'_>,
    drafts: &mut [Draft],
    ids: &Places,
) -> Result<(), CliError> {
    walk_log(board, None, &mut |entry| {
        if scope.since.is_some_and(|since| entry.time < since) {
            return false;
        }
        let place = entry.task.as_ref().and_then(|task| ids.get(task));
        if let (Some(place), Some(to)) = (place, entry.to()) {
            let moves = &mut drafts[*place].story.moves;
            if moves.len() < MOST_MOVES {
                moves.push(Move {
                    at: entry.time,
                    to,
                    who: Legible::line(entry.actor().unwrap_or_default()),
                    why: Legible::line(entry.cause.as_deref().unwrap_or_default()),
                    is_retry: matches!(entry.kind, Kind::Failed | Kind::SentBack)
                        && to == Status::Pending,
                });
            }
        }
        true
    })?;
    drafts
        .iter_mut()
        .for_each(|draft| draft.story.moves.reverse());
    Ok(())
}

/// Resolves the references between items.
fn link(drafts: &mut [Draft], ids: &Places) {
    for draft in drafts {
        draft.story.after_items = draft
            .after
            .iter()
            .filter_map(|id| ids.get(id).copied())
            .collect();
        draft.story.parent = draft.parent.as_ref().and_then(|id| ids.get(id).copied());
    }
}

fn share(run: &Metadata, now: Timestamp) -> RunShare {
    let usage = &run.usage;
    let mut models: Vec<(Legible, f64, u64)> = usage
        .models
        .iter()
        .map(|(model, used)| (Legible::line(model), used.usd, used.fresh()))
        .collect();
    if models.is_empty() {
        models.push((model(run), usage.usd, usage.fresh()));
    }
    RunShare {
        agent: Legible::line(&run.agent),
        role: Legible::line(&run.role),
        models,
        day: clock::day_of(run.started),
        usd: usage.usd,
        tokens: usage.fresh(),
        seconds: run.seconds(now).unsigned_abs(),
    }
}

fn model(run: &Metadata) -> Legible {
    Legible::line(run.model.as_deref().unwrap_or(&run.runner))
}

/// Returns the bytes for the texts of each of `count` runs, the newest last.
fn rooms(count: usize) -> Vec<usize> {
    let parts = || (1..=count).rev().map(|rank| 1.0 / (rank as f64 + 9.0));
    let all: f64 = parts().sum();
    #[expect(clippy::cast_sign_loss, reason = "it is a part of a whole")]
    let room =
        |part: f64| LEAST_ROOM + ((ROOM_OF_RUNS as f64 * part / all) as usize).min(MOST_ROOM);
    parts().map(room).collect()
}

fn story(board: &Board, run: &Metadata, item: usize, room: usize, now: Timestamp) -> RunStory {
    let is_well = run.outcome == Some(Outcome::Success);
    RunStory {
        name: Legible::line(&run.run),
        item,
        agent: Legible::line(&run.agent),
        role: Legible::line(&run.role),
        model: model(run),
        attempt: run.attempt,
        started: run.started,
        ended: run.ended,
        seconds: run.seconds(now).unsigned_abs(),
        outcome: run.outcome,
        reason: Legible::line(
            run.reason
                .as_ref()
                .filter(|_| !is_well)
                .unwrap_or(&run.summary),
        ),
        verified: run.verified,
        commit: Legible::line(
            &run.commit
                .as_deref()
                .unwrap_or_default()
                .chars()
                .take(10)
                .collect::<String>(),
        ),
        usd: run.usage.usd,
        tokens: run.usage.fresh(),
        turns: run.turns,
        parts: parts(board, run, room),
    }
}

/// Returns the texts of the run. Each has its share of `room`, and its unused rest goes to the next.
fn parts(board: &Board, run: &Metadata, room: usize) -> Vec<RunPart> {
    let dir = board.run_dir(&run.run);
    let rows: [(&str, &[&str], usize); 4] = [
        ("Verification", &[MERGED, VERIFY, PROBLEMS], 15),
        ("Result", &["result.txt", OUTPUT_LOG], 25),
        ("Changes", &["diff.patch"], 40),
        ("Prompt", &[PROMPT], 20),
    ];
    let (mut left, mut parts) = (0, Vec::new());
    for (name, files, percent) in rows {
        left += room * percent / 100;
        let mut found = files
            .iter()
            .map(|file| (*file, Ends::read(&dir.join(file))));
        let Some((file, ends)) = found.find(|(_, ends)| !ends.is_empty()) else {
            continue;
        };
        let is_patch = file == "diff.patch";
        let text = Extract::within(&ends, left, if is_patch { MARKS_OF_LINE } else { 0 });
        left = left.saturating_sub(text.weight);
        let form = if is_patch {
            PartForm::Patch
        } else {
            PartForm::Plain
        };
        let whole = Legible::line(&format!("tavern runs cat {} {file}", run.run));
        parts.push(RunPart {
            name,
            form,
            text,
            whole,
        });
    }
    // In order of time: asked, answered, changed, checked.
    let order = ["Prompt", "Result", "Changes", "Verification"];
    parts.sort_by_key(|part| order.iter().position(|name| *name == part.name));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_a_run_the_more_room_it_has_and_all_have_no_more_than_there_is() {
        for count in [0, 1, 7, 1_000, MOST_RUNS] {
            let rooms = rooms(count);
            assert!(
                rooms.is_sorted() && rooms.iter().all(|room| *room >= LEAST_ROOM),
                "{rooms:?}"
            );
            assert!(
                rooms.iter().sum::<usize>() <= ROOM_OF_RUNS + count * LEAST_ROOM,
                "{count}"
            );
        }
        assert_eq!(rooms(1), [LEAST_ROOM + MOST_ROOM]);
    }
}
