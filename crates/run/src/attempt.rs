//! One run of one held task: worktree, prompt, agent program, artifacts, verification.

use std::time::Duration;

use super::activity::Following;
use super::answer_check::{self, Live};
use super::artifacts::{Artifacts, ToolCalls};
use super::children;
use super::discoveries::Discoveries;
use super::error::Error;
use super::heartbeat::Heartbeat;
use super::import_sandbox::{Taken, take_over};
use super::inbox::Inbox;
use super::launch::Launch;
use super::mail::Mailbox;
use super::outside_changes;
use super::plan;
use super::prompt_context::Attendance;
use super::record::{Metadata, Record, run_name, run_of};
use super::relay::Relay;
use super::report;
use super::result::{AgentAnswer, RunResult};
use super::review;
use super::rules;
use super::self_reported::reported;
use super::spending::{Meter, spending};
use super::trust::Trust;
use super::verify::verify;
use super::watch::{self, Watch};
use super::workspace::Workspace;
use super::worktree::{self, Worktree};
use crate::runner::job::Opening;
use crate::runner::{
    AgentEvent, EndReason, Job, Next, Outcome, Prodding, Session, SessionEnd, Signal,
};
use tavern_core::cap::{CapScope, CapShare, CapUse};
use tavern_core::event::Kind;
use tavern_core::monitor::{Reaction, Symptom};
use tavern_core::rule::{Breach, Consequence, in_words, names};
use tavern_git::{CommitId, GitError};
use tavern_store::config::Does;
use tavern_store::{Claimed, Entry, walk_log};
use tavern_sys::clock;
use tavern_sys::failpoint;

/// The reason if a run's folder was removed; the agent is not at fault.
const CLEANED: &str = "the folder of its run was removed while it ran, as `git clean -fdx` does: use `git clean -fdx -e .tavern`";

/// Runs the agent for `held`, and verifies its work. The caller reports the result and keeps the heartbeat.
pub fn run(workspace: &Workspace, held: &Claimed, heartbeat: &Heartbeat) -> RunResult {
    let answer = match agent(workspace, held, heartbeat) {
        Ok(answer) => answer,
        Err(error) => return broken_off(workspace, &error),
    };
    verify(workspace, held, answer).unwrap_or_else(|error| {
        let result = match &error {
            // The agent left the worktree in a state that can't be verified.
            Error::Git(
                mess @ (GitError::NotAWorktree { .. }
                | GitError::Conflicted { .. }
                | GitError::Mixed { .. }
                | GitError::Unfinished { .. }),
            ) => {
                let hint =
                    matches!(mess, GitError::Mixed { .. }).then(|| format!("; {}", mess.hint()));
                RunResult::failed(format!("{mess}{}", hint.unwrap_or_default()))
            }
            error => broken_off(workspace, error),
        };
        write_down(workspace, held, &result);
        result
    })
}

/// Returns the result for a failure outside of the agent's work.
fn broken_off(workspace: &Workspace, error: &Error) -> RunResult {
    let outcome = if workspace.interrupt.is_raised() {
        Outcome::Killed
    } else {
        Outcome::NotReady
    };
    RunResult::failed_as(outcome, error.in_words())
}

/// Errors are ignored: the report of the result meets them again.
fn write_down(workspace: &Workspace, held: &Claimed, result: &RunResult) {
    if let Some(mut record) = Record::open(workspace, &run_name(&held.task.id, held.lease.token)) {
        drop(record.broke_off(result));
    }
}

/// Runs the agent program for `held` and leaves its artifacts. The answer is not verified yet.
pub fn agent(
    workspace: &Workspace,
    held: &Claimed,
    heartbeat: &Heartbeat,
) -> Result<AgentAnswer, Error> {
    let held = &children::unifying(workspace, held)?;
    if let Some(cap) =
        spending(workspace).and_then(|all| all.reached(&held.task.id, &held.queue.id))
    {
        // Other runs have used it up since the item was claimed.
        return Ok(RunResult::failed_as(Outcome::Capped, cap.to_string()).into());
    }
    let launch = match launch(workspace, held) {
        Err(Error::NothingToReview(why)) => return Ok(RunResult::failed(why).into()),
        launch => launch?,
    };
    let record = launch.record()?;
    // Written before the run becomes visible.
    Following::begin(
        record.artifacts(),
        &workspace.config.rules,
        &held.task,
        &launch,
    );
    launch.announce()?;
    carry_out(workspace, held, launch, record, heartbeat)
        .inspect_err(|error| write_down(workspace, held, &broken_off(workspace, error)))
}

/// Plans the launch for `held`, in its prepared worktree.
pub fn launch<'a>(workspace: &'a Workspace, held: &'a Claimed) -> Result<Launch<'a>, Error> {
    // A dry run shows the item even if it is untrusted.
    if workspace.board.is_dry() {
        Trust::of(workspace).settings().map_err(Error::from)?;
    } else {
        Trust::of(workspace).item_of(&held.queue, &held.task)?;
        if held.lease.work.is_none() {
            Artifacts::clear(&workspace.board, &run_name(&held.task.id, held.lease.token))?;
        }
    }
    Launch::plan(
        workspace,
        held,
        place(workspace, held)?,
        Attendance::Followed,
    )
}

/// Runs the agent program from its start to its answer.
fn carry_out(
    workspace: &Workspace,
    held: &Claimed,
    mut launch: Launch<'_>,
    mut record: Record<'_>,
    heartbeat: &Heartbeat,
) -> Result<AgentAnswer, Error> {
    failpoint::hit("run.ready").map_err(Error::io("continue in", record.artifacts().dir()))?;
    let outside = outside_changes::look(workspace, launch.role, record.artifacts());
    let mut meter = Meter::begin(workspace, record.metadata());
    let is_script = workspace.config.runs_scripts(&record.metadata().runner);
    let (mut ended, mut proven) = if is_script && rules::are_allowed(workspace, record.metadata()) {
        // A script may not be safe to repeat.
        let why = "a person allowed the violation, so its script is not run again".to_owned();
        note(workspace, held, why.clone());
        (SessionEnd::done(why), None)
    } else {
        follow(
            workspace,
            held,
            &launch,
            launch.start()?,
            &mut record,
            &mut meter,
            heartbeat,
        )
    };
    if is_unknown(&launch.job, &ended) {
        // The agent is not at fault, so this is the same attempt.
        launch.begin_anew()?;
        record.begins_anew(&launch.job, &launch.metadata.knowledge)?;
        note(
            workspace,
            held,
            "its session no longer exists, so it starts a new one".to_owned(),
        );
        (ended, proven) = follow(
            workspace,
            held,
            &launch,
            launch.start()?,
            &mut record,
            &mut meter,
            heartbeat,
        );
    }
    record.uses(ended.usage.clone());
    // If a cap is reached, which of its own limits came first means nothing.
    let is_limited = matches!(
        ended.outcome,
        Outcome::Budget | Outcome::Timeout | Outcome::Capped
    );
    let reached = measure(workspace, held, &mut meter, &record).filter(|_| is_limited);
    if let Some(cap) = reached {
        (ended.outcome, ended.reason) = (Outcome::Capped, cap.to_string());
    }
    failpoint::hit("run.ended").map_err(Error::io("continue in", record.artifacts().dir()))?;
    ended.reason += &launch.lack(&ended);
    if ended.signal == Signal::None && is_script {
        // A script reports success by its exit status.
        ended.signal = Signal::Done;
    }
    let is_lost = heartbeat.finds_lost();
    let Taken { broken, pushed } = match take_over(workspace, &held.task.id, record.metadata()) {
        // The new holder of the task imports it.
        Err(_) if is_lost => Taken::default(),
        taken => taken?,
    };
    let cleaned = (!record.is_kept()).then_some(CLEANED);
    cleaned
        .iter()
        .for_each(|why| note(workspace, held, (*why).to_owned()));
    // Record the usage first, even if the run left no work.
    let worktree = &launch.worktree;
    let tip = worktree
        .branch
        .as_ref()
        .and_then(|_| workspace.tip_of(&worktree.path).ok());
    record.program_ended(&ended, worktree.view.as_ref().or(tip.as_ref()))?;
    measure(workspace, held, &mut meter, &record);
    let work = worktree
        .branch
        .as_ref()
        .map(|branch| (branch.name.as_str(), &branch.base));
    let mut strayed = outside
        .and_then(|outside| outside_changes::changes(workspace, &outside, work).ok())
        .unwrap_or_default();
    strayed.extend(pushed);
    strayed
        .iter()
        .for_each(|change| tell(workspace, held, Kind::Strayed, change.to_string()));
    // A removed run folder does not excuse an end by a provider or a limit.
    let is_broken =
        matches!(ended.outcome, Outcome::Failed | Outcome::Crashed) || !worktree.path.exists();
    let was_cleaned = cleaned.filter(|_| is_broken);
    let answer = if is_lost {
        // The new holder of the task works in its worktree.
        let taken = || RunResult::failed_as(Outcome::Killed, "it was taken from its agent");
        reported(workspace, held)?
            .map_or_else(taken, |reported| reported.result)
            .into()
    } else if let Some(why) = was_cleaned {
        RunResult::failed_as(Outcome::NotReady, why).into()
    } else if let Some(why) = broken {
        RunResult::failed(why).into()
    } else {
        match tidied(workspace, held, &launch, &record, &ended)? {
            AgentAnswer::Done {
                reason, is_silent, ..
            } => AgentAnswer::Done {
                reason,
                is_silent,
                proven,
            },
            answer => answer,
        }
    };
    record.strayed(outside_changes::broken(&workspace.config.rules, &strayed))?;
    let (answer, asks_about) = held_to_rules(workspace, held, record.metadata(), answer);
    record.answered(&answer, asks_about)?;
    Ok(answer)
}

/// Judges done work that breaks a rule, or changes outside of its worktree by any run of the item. Logs breaches
/// that no look has reported. Also returns the breaches that a person is asked about.
fn held_to_rules(
    workspace: &Workspace,
    held: &Claimed,
    run: &Metadata,
    answer: AgentAnswer,
) -> (AgentAnswer, Vec<Breach>) {
    let is_done = matches!(answer, AgentAnswer::Done { .. });
    let mut breaches = run.acts.clone();
    if is_done && run.branch.is_some() {
        breaches.extend(rules::broken(workspace, run).unwrap_or_default());
    }
    let found: Vec<&Breach> = breaches
        .iter()
        .filter(|breach| !watch::was_reported(workspace, run, breach))
        .collect();
    for of_rule in found.chunk_by(|one, next| one.rule == next.rule) {
        let deed = match of_rule[0].consequence {
            Consequence::Log | Consequence::Warn => Reaction::Noted,
            Consequence::Notify => Reaction::Notified,
            Consequence::Pause => Reaction::Paused,
            Consequence::Reap => Reaction::Ended,
        };
        diagnosed(
            workspace,
            held,
            Symptom::Violation,
            deed,
            &in_words(of_rule),
        );
    }
    if is_done {
        breaches.extend(rules::earlier_acts(workspace, run).unwrap_or_default());
    }
    let answer = rules::judged(answer, &breaches);
    let question = answer
        .result()
        .and_then(RunResult::question)
        .filter(|_| is_done);
    let is_asked = |breach: &&Breach| question.is_some_and(|question| names(question, breach));
    let asks_about = breaches.iter().filter(is_asked).cloned().collect();
    (answer, asks_about)
}

/// Tidies the worktree, and keeps the plan or verdict of the answer.
fn tidied(
    workspace: &Workspace,
    held: &Claimed,
    launch: &Launch<'_>,
    record: &Record<'_>,
    ended: &SessionEnd,
) -> Result<AgentAnswer, Error> {
    let (worktree, does) = (&launch.worktree, launch.role.does);
    if let Some(strayed) = worktree::bring_home(workspace, worktree)? {
        note(workspace, held, strayed);
    }
    let artifacts = record.artifacts();
    let answer = match (does, AgentAnswer::of(ended, &launch.metadata.runner)) {
        (Does::Plan, AgentAnswer::Done { .. }) => plan::judge(
            workspace,
            held,
            artifacts,
            &ended.answer,
            launch.job.nonce.as_deref(),
        )?,
        (Does::Answer, AgentAnswer::Done { .. }) => plan::answered(&ended.result).into(),
        (Does::Review, AgentAnswer::Done { .. }) => review::judge(
            workspace,
            &worktree.path,
            worktree.view.as_ref(),
            artifacts,
            &ended.answer,
            launch.job.nonce.as_deref(),
        )?,
        (_, answer) => answer,
    };
    if does != Does::Work {
        worktree::remove_view(
            workspace,
            &held.task,
            held.lease.token,
            worktree.view.as_ref(),
        )?;
    }
    Ok(answer)
}

/// Prepares the run's worktree.
fn place(workspace: &Workspace, held: &Claimed) -> Result<Worktree, Error> {
    let commit = match workspace.role(&held.lease.role)?.does {
        Does::Review => review::commit(workspace, &held.task)?,
        Does::Plan | Does::Answer => Some(workspace.follow_base()?.0),
        Does::Work => return worktree::prepare(workspace, held),
    };
    worktree::view(workspace, held, commit.as_ref())
}

/// Returns true if the program does not know the session to resume, and has done nothing.
fn is_unknown(job: &Job, ended: &SessionEnd) -> bool {
    let did_nothing = ended.tool_calls == 0 && ended.usage.total() == 0;
    job.opening == Opening::Resumed
        && ended.outcome == Outcome::Crashed
        && ended.session.is_none()
        && did_nothing
}

/// Returns the recorded answer of this lease's run; `None` if no run has ended.
pub fn last(workspace: &Workspace, held: &Claimed) -> Option<AgentAnswer> {
    let run = run_of(&workspace.board, &run_name(&held.task.id, held.lease.token))?;
    let reason = run.reason.unwrap_or_default();
    Some(match run.outcome? {
        Outcome::Success => match review::taken(&Artifacts::open(&workspace.board, &run.run)) {
            Some(verdict) => AgentAnswer::Verdict(verdict),
            None => AgentAnswer::Done {
                reason,
                is_silent: run.silent,
                proven: None,
            },
        },
        Outcome::Waiting => RunResult::Asks(run.question.unwrap_or(reason)).into(),
        outcome => RunResult::of(outcome, &run.runner, &reason, run.resets_at).into(),
    })
}

/// Follows the agent until its end: writes artifacts, passes messages, checks its answers, and ends it on request.
/// Also returns the commit at which its answer was proven.
fn follow(
    workspace: &Workspace,
    held: &Claimed,
    launch: &Launch<'_>,
    mut session: Session,
    record: &mut Record<'_>,
    meter: &mut Meter<'_>,
    heartbeat: &Heartbeat,
) -> (SessionEnd, Option<CommitId>) {
    let (brief, mut proven) = (launch.brief(), None);
    let bell = session.bell();
    let _subscription = bell.ring_at(&workspace.interrupt);
    let _loss = heartbeat.ring_when_lost(&bell);
    let mut inbox = Inbox::open(
        &workspace.board,
        &held.task.id,
        &held.queue.path,
        launch.delivered_until(),
        &bell,
    );
    let (artifacts, run) = (record.artifacts().clone(), record.metadata().clone());
    let mut closed = None;
    let mut following = Following::begin(&artifacts, &workspace.config.rules, &held.task, launch);
    let mut relay = Relay::begin(workspace, &held.task, &run, brief);
    let (mut discoveries, mut watch) = (
        Discoveries::begin(workspace, held, launch),
        Watch::begin(workspace, launch.role, &held.task),
    );
    let (mut calls, mut mailbox) = (ToolCalls::default(), Mailbox::open(workspace, &run, &bell));
    loop {
        let has_answered = mailbox.as_mut().is_some_and(Mailbox::answer);
        if inbox.is_saved() {
            heartbeat.look_at_saves();
        }
        let has_news = inbox.has_news();
        if has_news {
            heartbeat.look();
            relay.look();
        }
        if workspace.interrupt.is_raised() || heartbeat.is_lost() {
            session.end(EndReason::Stop);
        }
        if workspace.interrupt.is_hurried() {
            session.hurry();
        }
        if has_news {
            inbox.pass_on(brief, &mut session);
        }
        relay.pass_on(brief, &mut session);
        if meter.patience().is_zero() && measure(workspace, held, meter, record).is_some() {
            session.end_unless_done(EndReason::Cap);
        }
        following.write();
        if watch.look(workspace, &held.lease) {
            heartbeat.finds_lost();
            continue;
        }
        let patience = [
            meter.patience(),
            following.patience(),
            watch.patience(),
            relay.patience(),
            inbox.patience(),
        ];
        let patience = patience
            .into_iter()
            .fold(Duration::from_secs(30), Duration::min);
        let patience = if has_answered {
            Duration::ZERO
        } else {
            patience
        };
        let event = match session.next(patience) {
            Next::Event(event) => event,
            Next::Quiet => continue,
            Next::Over => {
                following.end();
                mailbox.into_iter().for_each(Mailbox::close);
                return (session.finish(), proven);
            }
        };
        if let Some((file, text)) = calls.note(&event) {
            drop(artifacts.write(&file, &text));
        }
        discoveries.note(&event);
        if following.note(&event) {
            following.end();
            watch.hurry();
        }
        if let Some(usage) = event.usage() {
            record.uses(usage.clone());
            if measure(workspace, held, meter, record).is_some() {
                session.end_unless_done(EndReason::Cap);
            }
        }
        match event {
            AgentEvent::Started { session, model } => record.is_in(session, model),
            AgentEvent::Delivered { text } => {
                if let Some(learning) = relay.read(&text) {
                    record.knows(learning);
                }
                if let Some(message) = inbox.read(&text) {
                    workspace
                        .board
                        .mark_delivered(&run_name(&held.task.id, held.lease.token), &message);
                }
            }
            // Only once: a person may have opened it since.
            AgentEvent::RateLimit { windows, .. } if closed.is_none() => {
                closed = report::close_window(workspace, &run.runner, &windows);
                let told = closed.iter().map(|quota| quota.message_for(&run.runner));
                told.for_each(|told| note(workspace, held, told));
            }
            AgentEvent::Answered { text } => {
                proven = match session
                    .aside(|| answer_check::prove(workspace, held, launch, &artifacts, &text))
                {
                    Live::Refuted(text) if session.refute(&text) => None,
                    Live::Refuted(_) => {
                        session.accept();
                        None
                    }
                    Live::Accepted { proven } => {
                        session.accept();
                        proven
                    }
                };
            }
            AgentEvent::Prodded { why, number, most } => {
                let why = match why {
                    Prodding::Undecided => "it ended its turn without DONE or WAITING",
                    Prodding::Silent => "no sign of life for too long",
                    Prodding::Refuted => "it is not done",
                };
                note(
                    workspace,
                    held,
                    format!("prompted again, {number} of {most}: {why}"),
                );
            }
            _ => {}
        }
    }
}

/// Returns the cap that is reached, by the run's record so far, and logs the shares of caps that were passed.
fn measure(
    workspace: &Workspace,
    held: &Claimed,
    meter: &mut Meter<'_>,
    record: &Record<'_>,
) -> Option<CapUse> {
    let (passed, reached) = meter.look(record.metadata());
    let run = record.metadata();
    for (percent, cap) in passed {
        let share = cap.passed(percent);
        let (symptom, deed) = if percent < 100 {
            (Symptom::Spending, Reaction::Noted)
        } else {
            (Symptom::Spent, Reaction::Ended)
        };
        let entry = Entry {
            share: Some(share),
            ..found(symptom, deed, &format!("{percent} %: {cap}"))
        };
        // Two runs may pass it at once.
        drop(
            workspace
                .board
                .note_unless(of_run(held, entry), || another_told(workspace, run, share)),
        );
    }
    reached
}

/// Returns true if the log already tells, during this run, that the same share of the same cap was passed.
fn another_told(workspace: &Workspace, run: &Metadata, share: CapShare) -> bool {
    let mut is_told = false;
    let walked = walk_log(&workspace.board, None, &mut |entry| {
        let is_of_cap = || match share.scope {
            CapScope::Item => entry.task.as_ref() == Some(&run.task),
            CapScope::Queue => {
                let other = entry
                    .run
                    .as_deref()
                    .and_then(|other| run_of(&workspace.board, other));
                other.is_some_and(|other| other.queue == run.queue)
            }
            CapScope::Day | CapScope::Drain | CapScope::Board => true,
            CapScope::Agent => false,
        };
        is_told = entry.share == Some(share) && is_of_cap();
        !is_told && entry.time >= run.started
    });
    walked.is_ok() && is_told
}

/// Logs a diagnosis that the run's own supervisor made.
fn diagnosed(workspace: &Workspace, held: &Claimed, symptom: Symptom, deed: Reaction, what: &str) {
    log(workspace, held, found(symptom, deed, what));
}

fn found(symptom: Symptom, deed: Reaction, what: &str) -> Entry {
    let (cause, symptom, deed) = (
        Some(format!("{symptom}: {what}")),
        Some(symptom),
        Some(deed),
    );
    Entry {
        cause,
        symptom,
        deed,
        ..Entry::new(Kind::Diagnosed, clock::now())
    }
}

fn note(workspace: &Workspace, held: &Claimed, text: String) {
    tell(workspace, held, Kind::Noted, text);
}

fn tell(workspace: &Workspace, held: &Claimed, kind: Kind, text: String) {
    log(
        workspace,
        held,
        Entry {
            cause: Some(text),
            ..Entry::new(kind, clock::now())
        },
    );
}

/// Logs an entry about the run. Errors are ignored: the next event meets them again.
fn log(workspace: &Workspace, held: &Claimed, entry: Entry) {
    drop(workspace.board.note(of_run(held, entry)));
}

fn of_run(held: &Claimed, entry: Entry) -> Entry {
    Entry {
        task: Some(held.task.id.clone()),
        agent: Some(held.lease.agent.clone()),
        run: Some(run_name(&held.task.id, held.lease.token)),
        ..entry
    }
}
