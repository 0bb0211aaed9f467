//! `tavern-schedule`: queue scheduled items that are due.

use std::time::Duration;

use serde::Serialize;

use tavern_core::schedule::Schedule;
use tavern_core::task::{TaskId, Timestamp};
use tavern_core::timetable::Zone;
use tavern_run::Workspace;
use tavern_run::schedule::queue_due;
use tavern_store::config::{ConfigError, Flaw, SCHEDULES, Schedules};
use tavern_store::{KnownMark, ScheduleDeed, ScheduleMarks, ScheduleOutcome};
use tavern_sys::clock;

use super::flags::DryRun;
use super::{CliError, Context, Exit, OwnRun, Verb, format};

/// Number of times listed for each schedule.
const SHOWN: usize = 3;

/// Maximum wait: meanwhile the file may change, and clocks may be set.
const BETWEEN_LOOKS: Duration = Duration::from_secs(30);

/// Queue the items that are due by .tavern/schedules.yaml
///
/// Each time of a schedule is queued once, however many processes do this at once. `missed` in the schedule controls how missed
/// times are handled. Run it every minute by cron or a timer, or leave it running with --watch; `tavern watch` does the same.
/// Exits with 3 if nothing is due, with 5 if a schedule can't be read or queued: the others are still queued.
#[derive(clap::Args)]
pub struct Args {
    /// Show each schedule: its next times, and the item that it queued last
    #[arg(long, conflicts_with_all = ["wait", "watch", "dry_run"])]
    pub list: bool,

    /// Wait until something is due, queue it, and end
    #[arg(long, conflicts_with_all = ["watch", "dry_run"])]
    pub wait: bool,

    /// Go on until it is interrupted
    #[arg(long, conflicts_with = "dry_run")]
    pub watch: bool,

    #[command(flatten)]
    pub plan: DryRun,
}

/// A due time, and whether it was queued.
#[derive(Serialize)]
struct Record<'a> {
    schedule: &'a str,
    due: Timestamp,
    /// `None` if nothing was queued, and in a dry run.
    task: Option<&'a TaskId>,
    queue: Option<&'a str>,
    /// Reason why it was not queued.
    why: Option<&'a str>,
}

/// A schedule in a list.
#[derive(Serialize)]
struct ListRecord<'a> {
    schedule: &'a str,
    /// The expression and its time zone.
    when: String,
    queue: &'a str,
    title: &'a str,
    paused: bool,
    next: Vec<Timestamp>,
    /// The item that was queued last, and when.
    last: Option<&'a TaskId>,
    queued: Option<Timestamp>,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-schedule";
    const EXAMPLES: &'static [&'static str] = &["tavern schedule --list"];

    fn within(&self, run: &OwnRun) -> Result<(), CliError> {
        if self.list {
            Ok(())
        } else {
            Err(run.refused())
        }
    }

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        if self.list {
            return list(
                context,
                &Schedules::load(board.dir())?,
                &board.schedule_marks()?,
            );
        }
        if self.wait || self.watch {
            let interrupt = context.interrupt()?;
            let mut told = String::new();
            loop {
                let looked = context
                    .light_site(board.clone())
                    .and_then(|workspace| look(context, &workspace));
                let look = match looked {
                    // Errors such as a busy board or a half-written file are temporary.
                    Err(error) if self.watch => {
                        if told != error.message {
                            context
                                .out
                                .note(format!("nothing is queued for now: {}", error.message));
                            told = error.message;
                        }
                        if interrupt.wait(BETWEEN_LOOKS) {
                            return Ok(context.interrupted().unwrap_or(Exit::Done));
                        }
                        continue;
                    }
                    look => look?,
                };
                told.clear();
                context.out.flush()?;
                if self.wait && (look.has_queued || look.next.is_none()) {
                    return Ok(look.exit);
                }
                let until = look
                    .next
                    .map(|next| (next - clock::now()).to_std().unwrap_or_default());
                if interrupt.wait(until.map_or(BETWEEN_LOOKS, |until| {
                    until.clamp(Duration::from_millis(50), BETWEEN_LOOKS)
                })) {
                    return Ok(context.interrupted().unwrap_or(Exit::Done));
                }
            }
        }
        let workspace = context.light_site(board)?;
        let look = look(context, &workspace)?;
        if let Some((name, next)) = look.first {
            let left = format::age((next.0 - clock::now()).to_std().unwrap_or_default());
            context.out.note(format!(
                "next: {name} at {} (in {left})",
                next.1.shown(next.0)
            ));
        }
        Ok(look.exit)
    }
}

/// Result of one look.
struct LookUpshot {
    has_queued: bool,
    exit: Exit,
    next: Option<Timestamp>,
    /// The schedule that is due next.
    first: Option<(String, (Timestamp, Zone))>,
}

/// Queues scheduled items that are due, and reports them.
fn look(context: &Context, workspace: &Workspace) -> Result<LookUpshot, CliError> {
    let look = queue_due(workspace)?;
    look.schedules.flaws.iter().for_each(tell);
    look.outcomes
        .iter()
        .try_for_each(|outcome| outcome_told(context, &look.schedules, outcome))?;
    let has = |is: fn(&ScheduleDeed) -> bool| look.outcomes.iter().any(|outcome| is(&outcome.what));
    let has_queued = has(|what| matches!(what, ScheduleDeed::Queued { .. }));
    let is_faulty =
        !look.schedules.flaws.is_empty() || has(|what| matches!(what, ScheduleDeed::Failed(_)));
    if look.schedules.all.is_empty() && look.outcomes.is_empty() && !is_faulty {
        context
            .out
            .note(format!("no schedules in .tavern/{SCHEDULES}"));
    }
    let (marks, now) = (workspace.board.schedule_marks()?, clock::now());
    let next = |schedule: &Schedule| {
        let next = schedule.next(marks.of(&schedule.name).map(|known| &known.mark), now)?;
        Some((schedule.name.clone(), (next, schedule.zone())))
    };
    let first = look
        .schedules
        .all
        .iter()
        .filter_map(next)
        .min_by_key(|(_, (next, _))| *next);
    let exit = match (is_faulty, has_queued) {
        (true, _) => Exit::BoardHasErrors,
        (false, true) => Exit::Done,
        (false, false) => Exit::NothingToDo,
    };
    Ok(LookUpshot {
        has_queued,
        exit,
        next: first.as_ref().map(|(_, (next, _))| *next),
        first,
    })
}

fn tell(flaw: &Flaw) {
    CliError::from(ConfigError::Flawed(Box::new(flaw.clone()))).print();
}

/// Prints the result for one schedule.
pub(super) fn outcome_told(
    context: &Context,
    schedules: &Schedules,
    outcome: &ScheduleOutcome,
) -> Result<(), CliError> {
    let name = outcome.name.as_str();
    let zone = schedules
        .all
        .iter()
        .find(|schedule| schedule.name == name)
        .map(Schedule::zone)
        .unwrap_or_default();
    match &outcome.what {
        ScheduleDeed::Begun(from) => {
            context.out.note(format!(
                "{name}: its times count from {} on",
                zone.shown(*from)
            ));
        }
        ScheduleDeed::Ended => context.out.note(format!(
            "{name}: removed or paused; its times no longer count"
        )),
        ScheduleDeed::Queued { due, task, queue } => {
            let id = Some(&task.id).filter(|_| !context.is_dry);
            let record = Record {
                schedule: name,
                due: *due,
                task: id,
                queue: Some(&queue.id),
                why: None,
            };
            let shown = id.map_or_else(|| "an item".to_owned(), ToString::to_string);
            let title = format::title(&task.title);
            context.out.record(
                &record,
                format!("{shown} for {name}, due {}: {title}", zone.shown(*due)),
            )?;
        }
        ScheduleDeed::Left { due, why } => {
            let record = Record {
                schedule: name,
                due: *due,
                task: None,
                queue: None,
                why: Some(why),
            };
            context.out.json(&record)?;
            context
                .out
                .note(format!("{name}: skipped {}: {why}", zone.shown(*due)));
        }
        ScheduleDeed::Failed(why) => {
            context.out.note(format!(
                "{name} is due, and can't be queued: {}",
                format::words(why)
            ));
        }
    }
    Ok(())
}

fn list(context: &Context, schedules: &Schedules, marks: &ScheduleMarks) -> Result<Exit, CliError> {
    let now = clock::now();
    for schedule in &schedules.all {
        let known = marks.of(&schedule.name);
        let next = |last: &Timestamp| schedule.when.next_after(*last);
        let first = schedule.next(known.map(|known| &known.mark), now);
        let next: Vec<Timestamp> = std::iter::successors(first, next).take(SHOWN).collect();
        let last = known.and_then(|known: &KnownMark| known.last.as_ref());
        let (queue, title) = (schedule.queue.as_str(), schedule.item.title.as_str());
        let mut text = format!(
            "{}: {}, into {}: {}",
            schedule.name,
            schedule.when,
            format::words(queue),
            format::title(title)
        );
        let times: Vec<String> = next
            .iter()
            .map(|time| both(schedule.zone(), *time))
            .collect();
        text.push_str(&match times.as_slice() {
            [] if schedule.is_paused => "\n  paused".to_owned(),
            times => format!("\n  next: {}", times.join(", ")),
        });
        if let Some((task, at)) = last {
            text.push_str(&format!(
                "\n  last: {task}, queued {}",
                both(schedule.zone(), *at)
            ));
        }
        let (name, when) = (schedule.name.as_str(), schedule.when.to_string());
        let (last, queued) = (last.map(|(task, _)| task), last.map(|(_, at)| *at));
        let paused = schedule.is_paused;
        let record = ListRecord {
            schedule: name,
            when,
            queue,
            title,
            paused,
            next,
            last,
            queued,
        };
        context.out.record(&record, text)?;
    }
    schedules.flaws.iter().for_each(tell);
    Ok(
        match (schedules.flaws.is_empty(), schedules.all.is_empty()) {
            (false, _) => Exit::BoardHasErrors,
            (true, false) => Exit::Done,
            (true, true) => {
                context
                    .out
                    .note(format!("no schedules in .tavern/{SCHEDULES}"));
                Exit::NothingToDo
            }
        },
    )
}

/// Formats a time in the schedule's zone, and in the local zone if that differs.
fn both(zone: Zone, at: Timestamp) -> String {
    let (there, here) = (zone.shown(at), Zone::Local.shown(at));
    if there == here {
        there
    } else {
        format!("{there} ({} here)", Zone::Local.format(at, "%H:%M"))
    }
}
