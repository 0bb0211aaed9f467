//! One run of one held task: worktree, prompt, agent program, artifacts, verification.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::artifacts::Artifacts;
use super::base::follow_base;
use super::brief::Brief;
use super::children;
use super::error::Error;
use super::heartbeat::Heartbeat;
use super::inbox::{Inbox, record};
use super::plan;
use super::processes::mark_of;
use super::record::close_run;
use super::record::keep_patch;
use super::record::{Metadata, run_name, runs_of, summary};
use super::result::Finished;
use super::result::Judged;
use super::review;
use super::runners;
use super::sandbox;
use super::site::Site;
use super::tool_calls::ToolCalls;
use super::verify;
use super::worktree::{self, Strayed, Worktree};
use crate::board::event::{Event, Kind};
use crate::board::lease::Work;
use crate::clock;
use crate::config::{Does, Role};
use crate::failpoint;
use crate::git::GitError;
use crate::process::start::{Environment, UNATTENDED};
use crate::process::{Bell, Spec};
use crate::runner::job::Opening;
use crate::runner::{
    AgentEvent, EndReason, Ended, Job, Limits, Next, Outcome, Prodding, Prods, Runner, Session, Signal, StartError,
};
use crate::store::{Claimed, Entry, Note};

/// Runs the agent for `held`, and verifies what it came to. Reporting it is the caller's.
pub fn run(site: &Site, held: &Claimed) -> Result<Finished, Error> {
    let _heart = Heartbeat::start(&site.board, &held.lease, &Bell::new());
    let finished = agent(site, held)?;
    let (run, runner) = (finished.run.clone(), finished.runner.clone());
    match verify::verified(site, held, finished) {
        Err(Error::Git(mess)) if is_mess(&mess) => {
            let judged = Judged::said(Outcome::Failed, &mess.to_string());
            let artifacts = Artifacts::open(&site.board, &run);
            let mut metadata = artifacts.metadata()?;
            metadata.outcome = Some(judged.outcome);
            metadata.reason = Some(judged.reason.clone());
            artifacts.write_metadata(&metadata)?;
            Ok(Finished { run, runner, judged, is_refuted: false })
        }
        result => result,
    }
}

/// Its agent has left the worktree so that nothing can be verified.
fn is_mess(error: &GitError) -> bool {
    matches!(error, GitError::NotAWorktree { .. } | GitError::Conflicted { .. } | GitError::Unfinished { .. })
}

/// Runs the agent program for `held` and leaves its artifacts. What it came to is not verified yet.
pub fn agent(site: &Site, held: &Claimed) -> Result<Finished, Error> {
    let bell = Bell::new();
    let heart = Heartbeat::start(&site.board, &held.lease, &bell);
    let role = site.role(&held.lease.role)?;
    let held = &children::unifying(site, held)?;
    let worktree = match place(site, held, role)? {
        Ok(worktree) => worktree,
        Err(why) => return Ok(said(held, Judged::said(Outcome::Failed, &why))),
    };
    let ready = ready(site, held, role, &worktree)?;
    let result = carry_out(site, held, role, &worktree, ready, &heart);
    if let Err(error) = &result {
        close_run(site, &run_name(&held.task.id, held.lease.token), &error.to_string())?;
    }
    result
}

/// From the start of the agent program to what it came to.
fn carry_out(
    site: &Site,
    held: &Claimed,
    role: &Role,
    worktree: &Worktree,
    (artifacts, mut metadata, mut job, brief): Ready<'_>,
    heart: &Heartbeat,
) -> Result<Finished, Error> {
    failpoint::hit("run.ready").map_err(|source| io_error(&artifacts, source))?;
    let runner = runners::runner(&site.config, &metadata.runner, role)?;
    let session = runner.start(&job)?;
    brief.is_given(held);
    let mut ended = follow(site, held, session, &artifacts, heart);
    if is_unknown(&job, &ended) {
        begin_anew(site, held, role, &brief, &artifacts, &mut metadata, &mut job)?;
        ended = follow(site, held, runner.start(&job)?, &artifacts, heart);
    }
    failpoint::hit("run.ended").map_err(|source| io_error(&artifacts, source))?;
    // First of all what it has used up, whatever it has left.
    close(site, worktree, &artifacts, &mut metadata, &ended)?;
    let judged = if heart.finds_lost() {
        // Whoever holds the task works in its worktree.
        Judged::said(Outcome::Killed, "somebody else holds the task now")
    } else {
        tidied(site, held, role, worktree, &artifacts, &ended)?
    };
    metadata.outcome = Some(judged.outcome);
    metadata.reason = Some(judged.reason.clone());
    metadata.question.clone_from(&judged.question);
    artifacts.write_metadata(&metadata)?;
    Ok(Finished { run: metadata.run, runner: Some(metadata.runner), judged, is_refuted: false })
}

/// Puts in order where it worked, and judges.
fn tidied(
    site: &Site,
    held: &Claimed,
    role: &Role,
    worktree: &Worktree,
    artifacts: &Artifacts,
    ended: &Ended,
) -> Result<Judged, Error> {
    match worktree::bring_home(site, worktree)? {
        Some(Strayed::Home(branch)) => note(site, held, format!("its work was on `{branch}`, and was brought home")),
        Some(Strayed::Away(branch)) => {
            note(site, held, format!("violation: it left its worktree on `{branch}`, apart from its own branch"));
        }
        None => {}
    }
    let judged = match role.does {
        Does::Work => judge(ended),
        Does::Plan => plan::judge(site, held, artifacts, ended)?,
        Does::Review => review::judge(site, &worktree.path, worktree.view.as_ref(), artifacts, ended)?,
    };
    if role.does != Does::Work {
        worktree::remove_view(site, &held.task, held.lease.token, worktree.view.as_ref())?;
    }
    Ok(judged)
}

/// Where the run works, or why there is nothing to work on.
fn place(site: &Site, held: &Claimed, role: &Role) -> Result<Result<Worktree, String>, Error> {
    let (task, lease) = (&held.task, &held.lease);
    let commit = match role.does {
        Does::Work => return worktree::prepare(site, task, lease).map(Ok),
        Does::Plan => Ok(Some(follow_base(site)?.0)),
        Does::Review => review::commit(site, task)?,
    };
    Ok(match commit {
        Ok(commit) => Ok(worktree::view(site, task, lease, commit.as_ref())?),
        Err(why) => Err(why),
    })
}

/// What [`agent`] would start.
#[derive(Clone, Debug, Serialize)]
pub struct Foreseen {
    pub run: String,
    pub runner: String,
    pub worktree: PathBuf,
    /// Program and arguments.
    pub command: Vec<String>,
    pub prompt: String,
}

/// Where the name of a new session stands in a command line that is not run: it is drawn when the session begins.
const NEW_SESSION: &str = "NEW-SESSION";

/// What [`agent`] would start for `held`, without making or starting anything.
pub fn foresee(site: &Site, held: &Claimed) -> Result<Foreseen, Error> {
    let role = site.role(&held.lease.role)?;
    let worktree = match role.does {
        Does::Work => worktree::foresee(site, &held.task)?,
        // Its template names the commit.
        Does::Review | Does::Plan => Worktree { path: site.board.view(&held.task.id), branch: None, view: None },
    };
    let (metadata, job, _) = plan(site, held, role, &worktree)?;
    foreseen_as(site, role, &metadata, job, |runner, job| runner.spec(job))
}

/// What `spec` makes of a run that is only planned.
pub(super) fn foreseen_as(
    site: &Site,
    role: &Role,
    metadata: &Metadata,
    mut job: Job,
    spec: impl FnOnce(&dyn Runner, &Job) -> Result<Spec, StartError>,
) -> Result<Foreseen, Error> {
    if job.opening == Opening::New {
        NEW_SESSION.clone_into(&mut job.session);
    }
    let spec = spec(runners::runner(&site.config, &metadata.runner, role)?.as_ref(), &job)?;
    let words = std::iter::once(spec.program.as_os_str()).chain(spec.args.iter().map(AsRef::as_ref));
    let command = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let (run, runner) = (metadata.run.clone(), metadata.runner.clone());
    Ok(Foreseen { run, runner, worktree: metadata.worktree.clone(), command, prompt: job.prompt })
}

/// The program does not know the session that it was to go on with, and has done nothing.
fn is_unknown(job: &Job, ended: &Ended) -> bool {
    let did_nothing = ended.tool_calls == 0 && ended.usage.total() == 0;
    job.opening == Opening::Resumed && ended.outcome == Outcome::Crashed && ended.session.is_none() && did_nothing
}

/// Makes `job` begin a session of its own, with the whole prompt. That is no fault of the agent's, so it is the same
/// attempt.
fn begin_anew(
    site: &Site,
    held: &Claimed,
    role: &Role,
    brief: &Brief<'_>,
    artifacts: &Artifacts,
    metadata: &mut Metadata,
    job: &mut Job,
) -> Result<(), Error> {
    job.opening = Opening::New;
    job.session = uuid::Uuid::new_v4().to_string();
    job.prompt = brief.first(role)?;
    artifacts.write("prompt.md", &job.prompt)?;
    metadata.session = Some(job.session.clone());
    artifacts.write_metadata(metadata)?;
    note(site, held, "its session is not known any more, so it begins a new one".to_owned());
    Ok(())
}

/// The run that the holder of this lease made, as its artifacts tell it; `None` if there is none that ended.
pub fn last(site: &Site, held: &Claimed) -> Result<Option<Finished>, Error> {
    let runs = runs_of(&site.board, &held.task.id)?;
    let run = runs.into_iter().rfind(|run| run.token == held.lease.token);
    let Some((run, outcome)) = run.and_then(|run| Some((run.clone(), run.outcome?))) else { return Ok(None) };
    let judged = Judged {
        question: run.question.clone(),
        resets_at: run.resets_at,
        verdict: review::taken(&Artifacts::open(&site.board, &run.run)),
        ..Judged::said(outcome, run.reason.as_deref().unwrap_or_default())
    };
    Ok(Some(Finished { run: run.run, runner: Some(run.runner), judged, is_refuted: false }))
}

/// A result that its holder states, without a run of ours.
pub fn said(held: &Claimed, judged: Judged) -> Finished {
    Finished { run: run_name(&held.task.id, held.lease.token), runner: None, judged, is_refuted: false }
}

fn io_error(artifacts: &Artifacts, source: std::io::Error) -> Error {
    Error::Io { action: "go on in", path: artifacts.dir().to_owned(), source }
}

/// A run that may begin.
pub(super) type Ready<'a> = (Artifacts, Metadata, Job, Brief<'a>);

/// Everything that must be on disk before the agent program starts.
pub(super) fn ready<'a>(site: &'a Site, held: &Claimed, role: &Role, worktree: &Worktree) -> Result<Ready<'a>, Error> {
    let (metadata, job, brief) = plan(site, held, role, worktree)?;
    let artifacts = Artifacts::create(&site.board, &metadata.run)?;
    artifacts.write("prompt.md", &job.prompt)?;
    artifacts.write_metadata(&metadata)?;
    let work = Work {
        run: metadata.run.clone(),
        worktree: worktree.path.clone(),
        branch: metadata.branch.clone(),
        base: metadata.base.clone(),
        session: metadata.session.clone(),
    };
    let start = Event::Start { token: held.lease.token, work };
    site.board.submit(&held.task.id, &start, &Note::default(), clock::now())?;
    Ok((artifacts, metadata, job, brief))
}

/// What is run, and what is known of it before. Writes nothing.
pub(super) fn plan<'a>(
    site: &'a Site,
    held: &Claimed,
    role: &Role,
    worktree: &Worktree,
) -> Result<(Metadata, Job, Brief<'a>), Error> {
    let (task, lease) = (&held.task, &held.lease);
    let run = run_name(&task.id, lease.token);
    let mut earlier = runs_of(&site.board, &task.id)?;
    // What others did in another role is not this one's past, nor what another reviewer saw.
    earlier.retain(|run| run.role == lease.role && (role.does != Does::Review || run.agent == lease.agent));
    let artifacts = Artifacts::open(&site.board, &run);
    let runner = site.runner_of(task, role);
    let branch = worktree.branch.as_ref();
    let mut metadata = Metadata {
        run: run.clone(),
        task: task.id.clone(),
        title: task.title.clone(),
        queue: held.queue.id.clone(),
        agent: lease.agent.clone(),
        role: lease.role.clone(),
        attempt: lease.attempt,
        token: lease.token,
        runner,
        model: site.model_of(task, role),
        session: None,
        worktree: worktree.path.clone(),
        branch: branch.map(|branch| branch.name.clone()),
        base: branch.map(|branch| branch.base.as_str().to_owned()),
        started: clock::now(),
        ended: None,
        outcome: None,
        reason: None,
        commit: None,
        verified: None,
        question: None,
        resets_at: None,
        usage: crate::runner::Usage::default(),
        turns: 0,
        tool_calls: 0,
        denials: Vec::new(),
        summary: String::new(),
    };
    let brief = Brief::gather(site, held, worktree, &earlier);
    let mut job = Job {
        task: task.id.to_string(),
        run: run.clone(),
        mark: mark_of(site, &run),
        run_dir: artifacts.dir().to_owned(),
        worktree: worktree.path.clone(),
        prompt: String::new(),
        prompt_file: artifacts.path("prompt.md"),
        session: uuid::Uuid::new_v4().to_string(),
        opening: Opening::New,
        model: metadata.model.clone(),
        environment: Environment::Own,
        wrapper: Vec::new(),
        env: environment(site, held, worktree, &metadata.runner),
        limits: limits(task, role),
        grace: site.config.grace.duration(),
        prods: Prods { most: role.prods, undecided: brief.undecided(role)?, silent: brief.silent()? },
        script: held.script.clone(),
    };
    let runner = runners::runner(&site.config, &metadata.runner, role)?;
    job.wrapper = sandbox::of_agent(site, role, &worktree.path, artifacts.dir(), runner.as_ref(), &job.env)?;
    let last = earlier.last().filter(|last| last.runner == metadata.runner && !brief.begins_anew(held, last));
    if let Some(session) = last.and_then(|last| last.session.clone()) {
        let fresh = std::mem::replace(&mut job.session, session);
        if runner.knows_session(&job) {
            job.opening = Opening::Resumed;
        } else {
            job.session = fresh;
        }
    }
    job.prompt = if job.opening == Opening::Resumed { brief.resumed(role)? } else { brief.first(role)? };
    metadata.session = Some(job.session.clone());
    Ok((metadata, job, brief))
}

/// What every agent's shell finds, so that `tavern-add "…" --parent` and the like just work in it.
fn environment(site: &Site, held: &Claimed, worktree: &Worktree, runner: &str) -> Vec<(String, String)> {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let mut env = vec![
        ("TAVERN_DIR".to_owned(), text(site.board.dir().to_owned())),
        ("TAVERN_AGENT".to_owned(), held.lease.agent.clone()),
        ("TAVERN_ROLE".to_owned(), held.lease.role.clone()),
        ("TAVERN_TASK".to_owned(), held.task.id.to_string()),
        ("TAVERN_TOKEN".to_owned(), held.lease.token.to_string()),
        ("TAVERN_INBOX".to_owned(), text(site.board.inbox(&held.task.id))),
        ("TAVERN_WORKTREE".to_owned(), text(worktree.path.clone())),
    ];
    env.extend(UNATTENDED.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let own = std::env::current_exe().ok().and_then(|exe| exe.parent().map(ToOwned::to_owned));
    if let (Some(own), Some(path)) = (own, std::env::var_os("PATH")) {
        let paths = std::env::split_paths(&path).chain([own]);
        if let Ok(joined) = std::env::join_paths(paths) {
            env.push(("PATH".to_owned(), joined.to_string_lossy().into_owned()));
        }
    }
    env.extend(runners::environment(&site.config, runner));
    env
}

/// The item's own limits, else the role's.
fn limits(task: &crate::board::task::Task, role: &Role) -> Limits {
    let (own, general) = (&task.budget, &role.budget);
    let minutes = own.minutes.or(general.minutes);
    Limits {
        usd: own.usd.or(general.usd),
        turns: own.turns.or(general.turns),
        tokens: own.tokens.or(general.tokens),
        wall: minutes.map(|minutes| Duration::from_secs_f64((minutes * 60.0).clamp(0.0, 1e9))),
        idle: Some(role.idle.duration()).filter(|idle| !idle.is_zero()),
        memory_mib: own.memory_mb.or(general.memory_mb),
        log_mib: Some(512),
    }
}

/// Follows the agent until it is over: artifacts, messages, the end if one is asked for.
fn follow(
    site: &Site,
    held: &Claimed,
    mut session: Box<dyn Session>,
    artifacts: &Artifacts,
    heart: &Heartbeat,
) -> Ended {
    let bell = session.bell();
    let _subscription = site.interrupt.subscribe_for_now({
        let bell = bell.clone();
        move |_| bell.ring()
    });
    let mut inbox = Inbox::open(&site.board, &held.task.id, &bell);
    let mut calls = ToolCalls::of(artifacts);
    loop {
        if site.interrupt.is_raised() || heart.is_lost() {
            session.end(EndReason::Stop);
        }
        if site.interrupt.urgency() == Some(crate::interrupt::Urgency::AtOnce) {
            session.hurry();
        }
        inbox.pass_on(session.as_mut());
        match session.next(Duration::from_secs(30)) {
            Next::Event(AgentEvent::ToolCall { id, name, input, .. }) => calls.begin(id, &name, &input),
            Next::Event(AgentEvent::ToolResult { id, ok, text, .. }) => calls.end(&id, ok, &text),
            Next::Event(AgentEvent::Delivered { text }) if inbox.acknowledge(&text) => {
                record(&site.board, held, &text);
            }
            Next::Event(AgentEvent::Prodded { why, number, most }) => {
                let why = match why {
                    Prodding::Undecided => "it ended its turn without DONE or WAITING",
                    Prodding::Silent => "it gave no sign of life for too long",
                };
                note(site, held, format!("prodded on, {number} of {most}: {why}"));
            }
            Next::Event(_) | Next::Quiet => {}
            Next::Over => break,
        }
    }
    session.finish()
}

/// Says something of the run in the log. A board that can't be written now tells of it at the next event.
fn note(site: &Site, held: &Claimed, text: String) {
    let now = clock::now();
    let mut entry = Entry::new(Kind::Noted, now);
    entry.task = Some(held.task.id.clone());
    entry.agent = Some(held.lease.agent.clone());
    entry.run = Some(run_name(&held.task.id, held.lease.token));
    entry.cause = Some(text);
    drop(site.board.note(entry, now));
}

/// Writes down how the program ended, before anything is concluded from it.
fn close(
    site: &Site,
    worktree: &Worktree,
    artifacts: &Artifacts,
    metadata: &mut Metadata,
    ended: &Ended,
) -> Result<(), Error> {
    metadata.ended = Some(clock::now());
    metadata.outcome = Some(ended.outcome);
    metadata.reason = Some(ended.reason.clone());
    metadata.session.clone_from(&ended.session);
    metadata.resets_at = ended.resets_at;
    metadata.usage = ended.usage.clone();
    metadata.turns = ended.turns;
    metadata.tool_calls = ended.tool_calls;
    metadata.denials = ended.denials.iter().map(|denial| format!("{} {}", denial.tool, denial.input)).collect();
    metadata.summary = summary(if ended.result.trim().is_empty() { &ended.reason } else { &ended.result });
    if let (Some(branch), Ok(tip)) = (&worktree.branch, site.tip_of(&worktree.path)) {
        keep_patch(site, artifacts, &branch.base, &tip);
        metadata.commit = Some(tip.as_str().to_owned());
    }
    if let Some(view) = &worktree.view {
        metadata.commit = Some(view.as_str().to_owned());
    }
    artifacts.write("result.txt", &ended.result)?;
    Ok(artifacts.write_metadata(metadata)?)
}

/// From how the program ended to what the run came to, before verification: structure decides, not words; only a
/// successful end may ask a question.
fn judge(ended: &Ended) -> Judged {
    match (&ended.outcome, &ended.signal) {
        (Outcome::Success, Signal::Waiting(question)) => Judged::said(Outcome::Waiting, question),
        (outcome, _) => Judged { resets_at: ended.resets_at, ..Judged::said(*outcome, &ended.reason) },
    }
}
