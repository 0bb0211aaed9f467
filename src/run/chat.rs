//! A person talks with the agent of a held task: in its worktree, with its prompt and in its session. Nothing is judged,
//! and nothing is taken away; handing the task back is the caller's.

use std::path::PathBuf;
use std::time::Duration;

use super::attempt::{self, Foreseen, plan, ready};
use super::error::Error;
use super::heartbeat::Heartbeat;
use super::processes::end_processes;
use super::record::Metadata;
use super::record::close_run;
use super::record::recorded;
use super::runners;
use super::site::Site;
use super::worktree;
use crate::clock;
use crate::process::start::UNATTENDED;
use crate::process::{Bell, attend};
use crate::runner::{Job, Outcome};
use crate::store::Claimed;

/// So often `show` is called while the program runs.
const SHOWN: Duration = Duration::from_secs(30);

/// A talk that is over.
#[derive(Clone, Debug)]
pub struct Talked {
    pub run: String,
    pub worktree: PathBuf,
    /// How its program ended.
    pub exit: String,
    /// Somebody else holds the task by now.
    pub is_lost: bool,
}

/// Gives the terminal to the runner's program until it ends, or is ended with all that it started because the interrupt is
/// raised or the lease is lost. `begun` is told before it begins; `show` is called now and then.
///
/// # Errors
/// The worktree can't be made, or the program not be started.
pub fn talk(site: &Site, held: &Claimed, begun: impl FnOnce(&Metadata), show: impl Fn()) -> Result<Talked, Error> {
    let bell = Bell::new();
    let heart = Heartbeat::start(&site.board, &held.lease, &bell);
    let _subscription = site.interrupt.subscribe_for_now({
        let bell = bell.clone();
        move |_| bell.ring()
    });
    let role = site.role(&held.lease.role)?;
    let worktree = worktree::prepare(site, &held.task, &held.lease)?;
    let (artifacts, mut metadata, job, brief) = ready(site, held, role, &worktree)?;
    let spec = runners::runner(&site.config, &metadata.runner, role)?.attended(&attended(job));
    let began = spec.and_then(|spec| {
        begun(&metadata);
        Ok(attend(&spec, &bell)?)
    });
    let program = match began {
        Ok(program) => program,
        Err(error) => {
            close_run(site, &metadata.run, &error.to_string())?;
            return Err(error.into());
        }
    };
    brief.is_given(held);
    let exit = loop {
        if let Some(exit) = program.ended() {
            break exit;
        }
        if site.interrupt.is_raised() || heart.is_lost() {
            end_processes(site, &metadata.run)?;
        }
        show();
        bell.wait(SHOWN);
    };
    // What it has left running.
    end_processes(site, &metadata.run)?;
    metadata.ended = Some(clock::now());
    metadata.outcome = Some(Outcome::Success);
    metadata.reason = Some("chat".to_owned());
    metadata.summary = format!("chat: {exit}");
    metadata.usage = recorded(site, &metadata);
    metadata.commit = worktree.branch.and_then(|_| site.tip_of(&worktree.path).ok()).map(|tip| tip.as_str().to_owned());
    artifacts.write_metadata(&metadata)?;
    Ok(Talked { run: metadata.run, worktree: worktree.path, exit, is_lost: heart.is_lost() })
}

/// What [`talk`] would start for `held`, without making or starting anything.
///
/// # Errors
/// What it lacks for it.
pub fn foresee(site: &Site, held: &Claimed) -> Result<Foreseen, Error> {
    let role = site.role(&held.lease.role)?;
    let (metadata, job, _) = plan(site, held, role, &worktree::foresee(site, &held.task)?)?;
    attempt::foreseen_as(site, role, &metadata, attended(job), |runner, job| runner.attended(job))
}

fn attended(mut job: Job) -> Job {
    job.env.retain(|(name, value)| !UNATTENDED.contains(&(name, value)));
    job
}
