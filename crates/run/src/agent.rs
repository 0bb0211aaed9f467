//! The supervisor loop of one agent: claim, run, report, integrate, repeat.
//!
//! The agent program receives its work and knows nothing of claiming. Each wait ends with a change of the board, the
//! end of a back-off or limit, or an interrupt. An idle agent wakes only for its heartbeat.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;

use crate::commands::commands;
use crate::commit::{Occasion, commit_queues};
use crate::integrate::{Integrated, approved, integrate};
use crate::notices::tell_people;
use crate::planner_wake::wake;
use crate::preflight::{Preflight, Templates};
use crate::readiness::{stuck, unready};
use crate::reap::{self, Action, ExpiredLeases, Scope};
use crate::report;
use crate::self_reported::{OwnReport, reported};
use crate::spending::spending;
use crate::wait_expiry::expiries;
use crate::worktree::clear_ended;
use crate::{Error, Heartbeat, RunResult, Workspace, attempt, run_name, show_agent};
use tavern_core::cap::CapScope;
use tavern_core::document::{Document, Item};
use tavern_core::eligible::Lack;
use tavern_core::event::{Event, Purpose};
use tavern_core::front::EmptyBehavior;
use tavern_core::lease::{Lease, Life};
use tavern_core::task::{Status, TaskId, Timestamp};
use tavern_store::{
    self, AgentFile, ClaimRequest, Claimed, Done, NamedItem, Note, Nothing, Queue, Slot, Switch,
    life,
};
use tavern_sys::clock;
use tavern_sys::interrupt::InterruptCause;
use tavern_sys::process::Bell;

pub use records::AgentRecord;

mod records;

/// How often an idle agent renews its heartbeat, checks for dead agents and looks for unnoticed changes.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Seconds until missing tools are checked again.
const LOOK_AGAIN: i64 = 30;

/// Longer than any wait; a channel needs some number.
const FOR_EVER: Duration = Duration::from_secs(365 * 86_400);

/// The least time between two upkeeps at the end of all work. Their cost grows with the board.
const BETWEEN_UPKEEPS: Duration = Duration::from_secs(3_600);

/// The key of a wait among the obstacles; no item has this name.
const WAIT: &str = "";

/// One agent.
pub struct Agent<'a> {
    pub workspace: &'a Workspace,
    pub name: String,
    pub role: String,
    /// The queues from which it takes items; `None`: all of the board's, including new ones.
    pub queues: Option<Vec<Queue>>,
    /// The only item that it takes; `None`: any.
    pub item: Option<TaskId>,
    pub on_empty: EmptyBehavior,
    /// End after this many runs; `None`: no bound.
    pub most_runs: Option<u32>,
    /// Describes a lack of an item, with the command to type.
    pub advise: fn(&Lack, Option<&TaskId>, Option<&str>) -> String,
    /// Receives events for display.
    pub tell: &'a dyn Fn(&AgentRecord),
    /// Reserves the name.
    pub slot: Slot,
}

/// Why the loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// No item is left for an agent of this role.
    Empty,
    /// `most_runs` was reached; or it is a dry run, which looks once.
    Enough,
    Interrupted,
    /// The cap over all its runs is used up, in words.
    Capped(String),
    /// A `STOP` file, with its text.
    Stopped(String),
}

/// The agent's next step.
enum Doing {
    Work(Box<Claimed>, Slot),
    Wait(Wait),
    End(End),
}

/// The agent's memory between two looks at the board.
#[derive(Default)]
struct Memory {
    looks: ExpiredLeases,
    templates: Templates,
    /// Approved items that this agent worked; it merges them even if they were moved to another queue.
    worked: Vec<TaskId>,
    /// Approved items that only a person can merge.
    blocked: Vec<TaskId>,
    /// All approved items were checked since the last run.
    is_integrated: bool,
    runs: u32,
    /// Obstacles already reported, by name, so that each is reported only once.
    met: HashMap<String, AgentRecord>,
}

impl Agent<'_> {
    /// Works until there is a reason to end. An error is one that a retry would meet again. In a dry run, reports its
    /// steps up to the first item, or why it would wait.
    pub fn work(&self) -> Result<End, Error> {
        tell_people(self.workspace);
        let result = self.run_loop();
        self.commit(Occasion::End);
        tell_people(self.workspace);
        self.workspace.board.remove_agent(&self.name);
        result
    }

    fn run_loop(&self) -> Result<End, Error> {
        let (mut memory, bell) = (Memory::default(), Bell::new());
        let _subscription = bell.ring_at(&self.workspace.interrupt);
        self.workspace.board.make_folders()?;
        loop {
            let _watch = self
                .workspace
                .board
                .ring_at_changes(&self.queues()?, &bell)?;
            let wait = loop {
                match self.next(&mut memory)? {
                    Doing::End(end) => return Ok(end),
                    Doing::Wait(wait) => break wait,
                    Doing::Work(held, _slot) => {
                        memory.met.remove(WAIT);
                        self.tell_claimed(&held)?;
                        if self.workspace.board.is_dry() {
                            return Ok(End::Enough);
                        }
                        if self.handle(&held)? == Some(Status::Approved) {
                            memory.worked.push(held.task.id.clone());
                        }
                        self.integrate_approved(&mut memory)?;
                        memory.is_integrated = true;
                        memory.runs += 1;
                    }
                }
            };
            let is_dry = self.workspace.board.is_dry();
            // Show the wait before it is reported: a listener may want to use this agent's slot.
            if !is_dry {
                self.show(None, wait.why.to_string())?;
            }
            self.tell_obstacle(&mut memory, WAIT.to_owned(), wait.why.clone());
            if is_dry {
                return Ok(End::Enough);
            }
            self.sleep(&bell, &wait);
        }
    }

    /// Reaps, merges approved items, and looks for an item to work on.
    fn next(&self, memory: &mut Memory) -> Result<Doing, Error> {
        let Workspace {
            board,
            interrupt,
            config,
            ..
        } = self.workspace;
        loop {
            match board.switch() {
                Switch::Stopped(reason) => return Ok(Doing::End(End::Stopped(reason))),
                _ if interrupt.is_raised() => return Ok(Doing::End(End::Interrupted)),
                Switch::Paused(reason) => {
                    return Ok(Wait::until(None, format!("paused: {reason}")));
                }
                Switch::On => {}
            }
            self.clear(&mut memory.looks)?;
            if !std::mem::take(&mut memory.is_integrated) {
                self.integrate_approved(memory)?;
            }
            // Both may take a while, and a person may have interrupted meanwhile.
            if interrupt.is_raised() || board.switch() != Switch::On {
                continue;
            }
            if self.most_runs.is_some_and(|most| memory.runs >= most) {
                return Ok(Doing::End(End::Enough));
            }
            if let Some(used) = spending(self.workspace).and_then(|all| all.reached_own()) {
                return Ok(Doing::End(End::Capped(used.to_string())));
            }
            let Some(slot) = board.run_slot(config.limit)? else {
                return Ok(Wait::until(
                    Some(soon(1)),
                    format!("{} agents run already", config.limit),
                ));
            };
            let check = ReadinessCheck::new(self, &memory.templates);
            let claimed = board.claim(&self.seek()?, &|queue, document, item, purpose| {
                check.at(queue, document, item, purpose)
            })?;
            let (skipped, hindrance) = (check.skipped.take(), check.hindrance.take());
            let has_skipped = !skipped.is_empty();
            for (name, told) in skipped {
                self.tell_obstacle(memory, name, told);
            }
            let nothing = match claimed {
                Ok(held) => return Ok(Doing::Work(Box::new(held), slot)),
                Err(nothing) => nothing,
            };
            // A merge of newly approved items unblocks their dependents.
            if self
                .approved(memory)
                .iter()
                .any(|task| !memory.blocked.contains(task))
            {
                continue;
            }
            // Missing tools may be installed without any change of the board.
            let again = soon(LOOK_AGAIN);
            if let Some(why) = hindrance {
                return Ok(Doing::Wait(Wait {
                    why: AgentRecord::Hindered { why },
                    until: Some(again),
                    is_asleep: false,
                }));
            }
            if self.wake()? {
                continue;
            }
            let is_over = || nothing.is_over(|| self.others_have_work());
            if self.on_empty == EmptyBehavior::Terminate && is_over() {
                self.clear_all();
                return Ok(Doing::End(End::Empty));
            }
            let is_idle = !has_skipped && nothing == Nothing::default();
            let is_asleep = self.on_empty == EmptyBehavior::Hibernate && is_idle;
            // Another agent that has work may end without taking it, and the board then does not change.
            let is_for_others = self.on_empty == EmptyBehavior::Terminate && nothing.under_way == 0;
            let now = clock::now();
            let expiries = expiries(self.workspace)?
                .into_iter()
                .map(|expiry| expiry.at)
                .filter(|at| *at > now);
            let until = nothing
                .look_again()
                .into_iter()
                .chain((has_skipped || is_for_others).then_some(again));
            let until = until.chain(expiries).min();
            let may_be_held = nothing.wake_at.is_none() && nothing.under_way > 0;
            let why = match if may_be_held {
                self.held_by_hand()?
            } else {
                None
            } {
                Some(lease) => {
                    let ends = Some(lease.expires_at());
                    let advice = (self.advise)(
                        &Lack::Held(lease.agent),
                        Some(&lease.task),
                        Some(&lease.queue),
                    );
                    AgentRecord::Waiting {
                        why: format!("waiting: {}: {advice}", lease.task),
                        until: ends,
                    }
                }
                None => AgentRecord::Waiting {
                    why: self.describe(&nothing)?,
                    until: nothing.wake_at,
                },
            };
            return Ok(Doing::Wait(Wait {
                why,
                until,
                is_asleep,
            }));
        }
    }

    /// Reports the obstacle for `name`, unless it was reported already.
    fn tell_obstacle(&self, memory: &mut Memory, name: String, told: AgentRecord) {
        if memory.met.get(&name) != Some(&told) {
            (self.tell)(&told);
            memory.met.insert(name, told);
        }
    }

    /// Waits until the board changes, `wait` is over, or the next heartbeat is due.
    fn sleep(&self, bell: &Bell, wait: &Wait) {
        tell_people(self.workspace);
        if wait.is_asleep {
            while !bell.wait(FOR_EVER) {}
            return;
        }
        let left = |until: Timestamp| (until - clock::now()).to_std().unwrap_or_default();
        self.commit(Occasion::Transition);
        let nap = wait.until.map_or(HEARTBEAT, left).min(HEARTBEAT);
        // Record times are in whole seconds, so waking within one would find nothing changed.
        bell.wait(nap.max(Duration::from_millis(100)));
    }

    fn tell_claimed(&self, held: &Claimed) -> Result<(), Error> {
        let Claimed {
            task,
            script,
            lease,
            unknown,
            ..
        } = held;
        let is_dry = self.workspace.board.is_dry();
        let role = self.workspace.role(&self.role)?;
        let commands = if is_dry {
            commands(self.workspace, task, script.as_deref(), role)
        } else {
            Vec::new()
        };
        (self.tell)(&AgentRecord::Claimed {
            task: unknown.id_at.is_none().then(|| task.id.clone()),
            title: task.title.clone(),
            attempt: lease.attempt,
            runner: self.workspace.runner_of(task, role),
            commands,
        });
        Ok(())
    }

    /// Runs and reports one held task, and returns its resulting status, as far as this agent reported it.
    fn handle(&self, held: &Claimed) -> Result<Option<Status>, Error> {
        self.show(Some(held), held.task.title.clone())?;
        let heartbeat = Heartbeat::start(&self.workspace.board, &held.lease)?;
        let result = attempt::run(self.workspace, held, &heartbeat);
        let reported = self.report(held, &result);
        self.commit(Occasion::Transition);
        tell_people(self.workspace);
        reported
    }

    /// Commits the queues. A failure is reported but does not stop the work.
    fn commit(&self, occasion: Occasion) {
        if let Some(why) = commit_queues(self.workspace, occasion) {
            (self.tell)(&AgentRecord::Uncommitted { why });
        }
    }

    /// Submits the result of a run.
    fn report(&self, held: &Claimed, result: &RunResult) -> Result<Option<Status>, Error> {
        let closed = report::close_runner(self.workspace, result);
        if let Ok(Some((runner, quota))) = &closed {
            (self.tell)(&AgentRecord::Closed {
                hint: quota.needs_person.then(|| {
                    format!("sign in or fix its key, then open it: rm .tavern/quota/{runner}.yaml")
                }),
                runner: runner.clone(),
                until: quota.closed_until,
                reason: quota.reason.clone(),
            });
        }
        let event = report::event(self.workspace, held, result);
        let run = run_name(&held.task.id, held.lease.token);
        let note = Note {
            agent: Some(self.name.clone()),
            run: Some(run.clone()),
        };
        let ended = match self.submit(&held.task.id, &event, &note) {
            Ok(done) => {
                let (task, status) = (held.task.id.clone(), done.task.status());
                (self.tell)(&match result {
                    RunResult::Planned { reason, .. } => AgentRecord::Planned {
                        task,
                        run,
                        reason: done.entry.cause.unwrap_or_else(|| reason.clone()),
                    },
                    result => {
                        let again_at = done.task.state.not_before().filter(|at| *at > clock::now());
                        AgentRecord::of(result, task, run, status, again_at)
                    }
                });
                if done.task.status().is_ended() {
                    clear_ended(self.workspace, &done.task)?;
                }
                Some(done.task.status())
            }
            // Another agent took the task over: our work stays on its branch, and the log has the refusal.
            Err(tavern_store::Error::Refused(refusal)) => {
                let task = held.task.id.clone();
                // The agent program may have reported it before its run ended.
                let own = reported(self.workspace, held)?;
                let status = own.as_ref().map(|own| own.status);
                (self.tell)(&match own {
                    Some(OwnReport { result, status }) => {
                        AgentRecord::of(&result, task, run, status, None)
                    }
                    None => AgentRecord::Blocked {
                        task,
                        why: refusal.to_string(),
                    },
                });
                status
            }
            // The item was saved with an error meanwhile, and is left until the error is fixed.
            Err(error @ tavern_store::Error::Quarantined { .. }) => {
                (self.tell)(&AgentRecord::Blocked {
                    task: held.task.id.clone(),
                    why: error.to_string(),
                });
                None
            }
            Err(error) => return Err(error.into()),
        };
        closed.map(|_| ended)
    }

    /// Retries while the board is busy, so that a finished run is not lost.
    fn submit(
        &self,
        task: &TaskId,
        event: &Event,
        note: &Note,
    ) -> Result<Done, tavern_store::Error> {
        loop {
            match self.workspace.board.submit(task, event, note) {
                Err(tavern_store::Error::Busy(_)) if !self.workspace.interrupt.is_raised() => {}
                other => return other,
            }
        }
    }

    /// Returns the approved items of the agent's queues, and those it worked.
    fn approved(&self, memory: &mut Memory) -> Vec<TaskId> {
        let is_approved = |id: &TaskId| {
            self.workspace
                .board
                .task(id)
                .is_ok_and(|it| it.task.status() == Status::Approved && !it.quarantined)
        };
        memory.worked.retain(is_approved);
        let mut approved = self
            .queues()
            .map_or_else(|_| Vec::new(), |queues| approved(self.workspace, &queues));
        let strayed: Vec<TaskId> = memory
            .worked
            .iter()
            .filter(|id| !approved.contains(id))
            .cloned()
            .collect();
        approved.extend(strayed);
        approved
    }

    /// Integrates approved items, one process at a time.
    fn integrate_approved(&self, memory: &mut Memory) -> Result<(), Error> {
        memory.blocked.clear();
        if self.approved(memory).is_empty() {
            return Ok(());
        }
        let Some(_slot) = self.workspace.board.merge_slot(&self.workspace.interrupt)? else {
            return Ok(());
        };
        // The last holder of the slot may have looked before our item was approved, so look once more.
        for task in self.approved(memory) {
            if self.workspace.interrupt.is_raised() {
                return Ok(());
            }
            match integrate(self.workspace, &task)? {
                Integrated::Merged(commit) => {
                    (self.tell)(&AgentRecord::Integrated {
                        task,
                        commit: commit.map(|commit| commit.short().to_owned()),
                    });
                }
                Integrated::Untried => {
                    memory.blocked.push(task.clone());
                    (self.tell)(&AgentRecord::WouldMerge { task });
                }
                Integrated::SentBack(reason) => {
                    (self.tell)(&AgentRecord::SentBack { task, reason });
                }
                Integrated::Blocked(why) => self.tell_blocked(memory, task, why),
                Integrated::Lacks(lack) => {
                    let why = (self.advise)(&lack, Some(&task), None);
                    self.tell_blocked(memory, task, why);
                }
            }
            self.commit(Occasion::Transition);
        }
        Ok(())
    }

    fn tell_blocked(&self, memory: &mut Memory, task: TaskId, why: String) {
        memory.blocked.push(task.clone());
        self.tell_obstacle(memory, task.to_string(), AgentRecord::Blocked { task, why });
    }

    /// Queues a planning item if this is a planner and one is needed. Returns false if there is no new need.
    fn wake(&self) -> Result<bool, Error> {
        let note = Note {
            agent: Some(self.name.clone()),
            run: None,
        };
        let Some(need) = wake(self.workspace, &self.queues()?, &self.role, &note)? else {
            return Ok(false);
        };
        (self.tell)(&AgentRecord::Woken {
            task: need.id,
            trigger: need.trigger,
        });
        self.commit(Occasion::Transition);
        Ok(true)
    }

    /// Releases items of dead agents.
    fn clear(&self, looks: &mut ExpiredLeases) -> Result<(), Error> {
        // Another reaper's releases will wake us.
        let is_cleared = reap::clear(self.workspace, looks, &mut |action| {
            self.tell_cleared(action);
        })?;
        if is_cleared {
            self.commit(Occasion::Transition);
        }
        Ok(())
    }

    fn tell_cleared(&self, action: &Action) {
        (self.tell)(&AgentRecord::Cleared {
            what: action.to_string(),
        });
    }

    /// At the end of all work, removes leftovers of killed agents, and now and then does the upkeep. Failures are
    /// ignored: `tavern-reap` reports them.
    fn clear_all(&self) {
        let Ok(Some(slot)) = self.workspace.board.try_reap_slot() else {
            return;
        };
        let mut looks = ExpiredLeases::load(&self.workspace.board);
        let upkeep = self
            .workspace
            .board
            .try_upkeep_slot(BETWEEN_UPKEEPS, clock::now())
            .unwrap_or_default();
        let scope = if upkeep.is_some() {
            Scope::All
        } else {
            Scope::Dead
        };
        for action in reap::plan(self.workspace, scope, &mut looks).unwrap_or_default() {
            if reap::execute(self.workspace, &action, &slot).unwrap_or_default() {
                self.tell_cleared(&action);
            }
        }
    }

    fn seek(&self) -> Result<ClaimRequest, Error> {
        let item = self.item.clone().map(NamedItem::Id);
        Ok(ClaimRequest {
            item,
            ..self
                .workspace
                .seek(&self.name, &self.role, self.queues.clone())?
        })
    }

    fn queues(&self) -> Result<Vec<Queue>, Error> {
        self.queues
            .clone()
            .map_or_else(|| Ok(self.workspace.board.queues_by_priority()?), Ok)
    }

    /// Returns true if another live agent may take an item, now or later.
    fn others_have_work(&self) -> bool {
        let (now, look) = (clock::now(), Preflight::of(self.workspace));
        let may_take = |agent: &AgentFile| {
            let seek = self
                .workspace
                .seek(&agent.name, &agent.role, self.queues.clone());
            seek.is_ok_and(|seek| {
                self.workspace
                    .board
                    .has_work_for(&seek, now, &look.of_role(&agent.role))
            })
        };
        let others = self
            .workspace
            .board
            .agents()
            .into_iter()
            .filter(|agent| agent.name != self.name);
        others
            .filter(|agent| life(&agent.holder) != Life::Gone)
            .any(|agent| may_take(&agent))
    }

    /// Returns a lease that a person holds. It ends when the holder releases it, or expires.
    fn held_by_hand(&self) -> Result<Option<Lease>, Error> {
        let (queues, agents) = (self.queues()?, self.workspace.board.agents());
        let is_by_hand = |lease: &Lease| {
            let is_ours = queues.iter().any(|queue| queue.id == lease.queue);
            is_ours && !agents.iter().any(|agent| agent.name == lease.agent)
        };
        Ok(self.workspace.board.leases()?.into_iter().find(is_by_hand))
    }

    /// Describes what it waits for: of the items that need a person, the first.
    fn describe(&self, nothing: &Nothing) -> Result<String, Error> {
        let unready = unready(
            self.workspace,
            &self.queues()?,
            Some(&self.seek()?.seeker()),
        );
        if let Some(until) = nothing.wake_at {
            let ends = |lack: &&Lack| match lack {
                Lack::BackOff(at) => *at == until,
                Lack::Closed { until: at, .. } => *at == until,
                _ => false,
            };
            let mut next = unready
                .iter()
                .filter_map(|one| Some((one, one.lacks.iter().find(ends)?)));
            return Ok(next.next().map_or_else(
                || format!("waiting until {} for the next item", clock::shown(until)),
                |(one, lack)| {
                    let advice = (self.advise)(lack, one.task.as_ref(), Some(&one.queue));
                    format!("waiting: {}: {advice}", one.name())
                },
            ));
        }
        let (stuck, later) = stuck(unready);
        Ok(match (later + nothing.under_way, stuck.as_slice()) {
            (0, []) if !nothing.elsewhere.is_empty() => {
                let items = |(role, items): (&String, &usize)| match items {
                    1 => format!("1 is for a {role}"),
                    items => format!("{items} are for a {role}"),
                };
                let roles: Vec<String> = nothing.elsewhere.iter().map(items).collect();
                format!("waiting for items; {}", roles.join(", "))
            }
            (0, []) => "waiting for items".to_owned(),
            (0, [first, more @ ..]) => {
                let items = if more.is_empty() {
                    "1 item needs".to_owned()
                } else {
                    format!("{} items need", stuck.len())
                };
                format!(
                    "waiting: {items} a person; {}: {}",
                    first.name(),
                    (self.advise)(first.foremost(), first.task.as_ref(), Some(&first.queue))
                )
            }
            (1, _) => "idle: other agents hold the last item, or it depends on theirs".to_owned(),
            (others, _) => format!(
                "idle: other agents hold the remaining {others} items, or they depend on theirs"
            ),
        })
    }

    fn show(&self, held: Option<&Claimed>, doing: String) -> Result<(), Error> {
        Ok(show_agent(
            &self.workspace.board,
            &self.name,
            &self.role,
            held,
            doing,
        )?)
    }
}

/// A wait of the agent.
struct Wait {
    why: AgentRecord,
    until: Option<Timestamp>,
    /// Hibernates: only a change wakes it.
    is_asleep: bool,
}

impl Wait {
    fn until(until: Option<Timestamp>, why: String) -> Doing {
        Doing::Wait(Wait {
            why: AgentRecord::Waiting { why, until: None },
            until,
            is_asleep: false,
        })
    }
}

/// Checks whether an item can be started here and now.
struct ReadinessCheck<'a> {
    agent: &'a Agent<'a>,
    preflight: Preflight<'a>,
    templates: &'a Templates,
    /// By the items' names; reported after the board's lock is released.
    skipped: RefCell<Vec<(String, AgentRecord)>>,
    hindrance: RefCell<Option<String>>,
}

impl<'a> ReadinessCheck<'a> {
    fn new(agent: &'a Agent<'a>, templates: &'a Templates) -> ReadinessCheck<'a> {
        let (skipped, hindrance) = (RefCell::default(), RefCell::default());
        ReadinessCheck {
            agent,
            preflight: Preflight::of(agent.workspace),
            templates,
            skipped,
            hindrance,
        }
    }

    /// Checks that the item can be started now; the error names its lack.
    fn at(
        &self,
        queue: &str,
        document: &Document<'_>,
        item: &Item<'_>,
        purpose: Purpose,
    ) -> Result<(), Lack> {
        let (workspace, name, advise) = (self.agent.workspace, &self.agent.role, self.agent.advise);
        let place = self.preflight.surroundings(name).map_err(Error::from);
        if let Err(error) =
            place.and_then(|()| self.templates.check(workspace, workspace.role(name)?))
        {
            let lack = Lack::NotReady(error.into());
            *self.hindrance.borrow_mut() = Some(advise(&lack, None, None));
            return Err(lack);
        }
        self.preflight
            .ready(queue, document, item, purpose, Some(name))
            .inspect_err(|lack| {
                // A closed runner was already reported for all of its items.
                if lack.is_stuck() && !matches!(lack, Lack::Closed { .. }) {
                    let (task, title) = (item.id.clone(), document.title(item).to_owned());
                    let name = match lack {
                        // This cap affects several items: report it once.
                        Lack::Capped { scope, .. } if *scope != CapScope::Item => scope.to_string(),
                        _ => task
                            .as_ref()
                            .map_or_else(|| title.clone(), ToString::to_string),
                    };
                    if self
                        .skipped
                        .borrow()
                        .iter()
                        .any(|(other, _)| *other == name)
                    {
                        return;
                    }
                    let why = advise(lack, task.as_ref(), Some(queue));
                    self.skipped
                        .borrow_mut()
                        .push((name, AgentRecord::Skipped { task, title, why }));
                }
            })
    }
}

fn soon(seconds: i64) -> Timestamp {
    clock::now() + TimeDelta::seconds(seconds)
}

/// Raises `interrupt` when a `STOP` file appears, even during a run.
pub fn obey_stop(workspace: &Workspace) -> Result<(), Error> {
    let bell = Bell::new();
    workspace.board.make_folders()?;
    let watch = workspace.board.ring_at_changes(&[], &bell)?;
    let (board, interrupt) = (workspace.board.clone(), workspace.interrupt.clone());
    // The thread ends with the interrupt, or with the process.
    let obey = move || {
        let (_watch, _subscription) = (watch, bell.ring_at(&interrupt));
        while !interrupt.is_raised() {
            if let Switch::Stopped(_) = board.switch() {
                return interrupt.raise(InterruptCause::Stopped);
            }
            bell.wait(Duration::from_secs(3600));
        }
    };
    let started = std::thread::Builder::new().spawn(obey);
    started
        .map(drop)
        .map_err(Error::io("watch", workspace.board.dir()))
}
