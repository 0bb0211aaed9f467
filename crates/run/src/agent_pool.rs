//! Many agents at once, each a process of its own, working queues until nothing is left for them.
//!
//! Each role has a seat with a number of places. The number of running agents follows the demand, between a least and a
//! most. A dead agent is restarted after a back-off; five immediate deaths in a row make the pool give up that seat.
//! Knows nothing of boards: the caller reports the demand and the idle agents.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use tavern_sys::clock;
use tavern_sys::interrupt::{Interrupt, InterruptCause};
use tavern_sys::process::{Bell, ProgramExit, RunningProgram, Spec, start};

/// How the agents of a pool are started.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    pub program: PathBuf,
    pub folder: PathBuf,
    pub seats: Vec<Seat>,
    /// The number of agents started at the beginning, in the order of the seats.
    pub least: usize,
    /// The most agents at once.
    pub most: usize,
    /// When the agents are asked to end.
    pub until: Option<Instant>,
    /// Returns true if this line of an agent's output shows that it has work.
    pub is_work: fn(&str) -> bool,
}

/// The places for agents of one kind.
#[derive(Clone, Debug)]
pub struct Seat {
    pub args: Vec<OsString>,
    /// The most agents of this seat at once.
    pub most: usize,
}

/// The demand for agents of one seat.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// Items that these agents hold or could take.
    pub items: usize,
    /// The items among them that no agent has taken.
    pub free: usize,
    /// Process IDs of the idle agents.
    pub idle: Vec<u32>,
}

/// A report of a running pool.
#[derive(Debug)]
pub enum News {
    /// A line of an agent's standard output.
    Line(String),
    /// A line of an agent's standard error.
    Complaint(String),
    /// An agent died and is started again after the pause.
    Died { exit: ProgramExit, pause: Duration },
    /// Agents of a seat keep exiting at once; no more are started there.
    GivenUp { exit: ProgramExit },
}

/// An agent that lives shorter than this has died at once.
const AT_ONCE: Duration = Duration::from_secs(5);
/// Immediate deaths in a row before the pool gives up a seat.
const MOST_DEATHS: u32 = 5;
/// How long agents may take to end before they are asked again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the pool until all agents have ended and no seat has demand. Returns false if a seat was given up. `bell` rings
/// when `demand` (one entry per seat) may have changed.
pub fn run(
    config: &PoolConfig,
    interrupt: &Interrupt,
    bell: &Bell,
    demand: &mut dyn FnMut() -> Vec<Demand>,
    tell: &mut dyn FnMut(News),
) -> io::Result<bool> {
    let (sender, news) = channel();
    let _subscription = bell.ring_at(interrupt);
    let mut pool = Pool {
        config,
        sender,
        bell,
        agents: Vec::new(),
        again: Vec::new(),
        places: Vec::new(),
        asked: None,
    };
    pool.places.resize_with(config.seats.len(), Place::default);
    for seat in 0..config.seats.len() {
        while pool.count(seat) < config.seats[seat].most && pool.agents.len() < config.least.max(1)
        {
            pool.start(seat)?;
        }
    }
    loop {
        if !interrupt.is_raised() {
            pool.follow(demand)?;
        }
        if pool.agents.is_empty() && pool.next_start().is_none() {
            break;
        }
        bell.wait(pool.next_look());
        if config.until.is_some_and(|until| clock::instant() >= until) && !interrupt.is_raised() {
            interrupt.raise(InterruptCause::Stopped);
        }
        news.try_iter().for_each(&mut *tell);
        pool.pass_on(interrupt);
        pool.bury(tell);
    }
    let is_well = pool.places.iter().all(|place| !place.is_given_up);
    drop(pool);
    // The readers end with the agents' pipes; their remaining lines are still reported.
    while let Ok(line) = news.recv_timeout(Duration::from_secs(2)) {
        tell(line);
    }
    Ok(is_well)
}

struct Pool<'p> {
    config: &'p PoolConfig,
    sender: Sender<News>,
    bell: &'p Bell,
    agents: Vec<AgentProcess>,
    /// The seats of dead agents, and when each is restarted.
    again: Vec<(usize, Instant)>,
    /// The state of each seat.
    places: Vec<Place>,
    /// Whether the last request to end was urgent, and when it was sent.
    asked: Option<(bool, Instant)>,
}

#[derive(Default)]
struct Place {
    /// Immediate deaths or exits without work, in a row.
    deaths: u32,
    is_given_up: bool,
    /// No agent is started before this time, since the last one found no work.
    rests_until: Option<Instant>,
}

struct AgentProcess {
    seat: usize,
    child: RunningProgram,
    started: Instant,
    has_worked: Arc<AtomicBool>,
    /// Whether it was asked to make room for another agent.
    is_leaving: bool,
}

impl Pool<'_> {
    fn count(&self, seat: usize) -> usize {
        let seats = self
            .agents
            .iter()
            .map(|agent| agent.seat)
            .chain(self.again.iter().map(|(seat, _)| *seat));
        seats.filter(|taken| *taken == seat).count()
    }

    /// Restarts dead agents after their back-off, and starts agents where there is demand. A full pool asks an idle
    /// agent of another seat to end.
    fn follow(&mut self, demand: &mut dyn FnMut() -> Vec<Demand>) -> io::Result<()> {
        let now = clock::instant();
        let due: Vec<(usize, Instant)> = self.again.extract_if(.., |(_, at)| *at <= now).collect();
        due.into_iter().try_for_each(|(seat, _)| self.start(seat))?;
        let has_room = |pool: &Pool<'_>, seat: usize| {
            let place = &pool.places[seat];
            let is_resting = place.rests_until.is_some_and(|until| until > now);
            !place.is_given_up && !is_resting && pool.count(seat) < pool.config.seats[seat].most
        };
        if !(0..self.places.len()).any(|seat| has_room(self, seat)) {
            return Ok(());
        }
        let demand = demand();
        for (seat, wanted) in demand.iter().enumerate() {
            while has_room(self, seat) && wanted.free > 0 && self.count(seat) < wanted.items {
                if self.agents.len() + self.again.len() >= self.config.most {
                    self.make_room(&demand);
                    break;
                }
                self.start(seat)?;
            }
        }
        Ok(())
    }

    /// Asks an idle agent without demand to end.
    fn make_room(&mut self, demand: &[Demand]) {
        if self.agents.iter().any(|agent| agent.is_leaving) {
            return;
        }
        let is_idle = |agent: &&mut AgentProcess| {
            demand
                .get(agent.seat)
                .is_some_and(|demand| demand.free == 0 && demand.idle.contains(&agent.child.pid()))
        };
        if let Some(agent) = self.agents.iter_mut().find(is_idle) {
            agent.is_leaving = true;
            agent.child.signal(Signal::TERM);
        }
    }

    fn start(&mut self, seat: usize) -> io::Result<()> {
        let (out, out_writer) = io::pipe()?;
        let (err, err_writer) = io::pipe()?;
        let mut spec = Spec::new(&self.config.program, &self.config.folder)
            .args(&self.config.seats[seat].args);
        spec.stdout = out_writer.into();
        spec.stderr = err_writer.into();
        let child = start(spec)?;
        child.wake(self.bell);
        let has_worked = Arc::new(AtomicBool::new(false));
        let (is_work, worked) = (self.config.is_work, Arc::clone(&has_worked));
        let heard = move |line: String| {
            worked.fetch_or(is_work(&line), Ordering::Relaxed);
            News::Line(line)
        };
        relay(out, heard, &self.sender, self.bell)?;
        relay(err, News::Complaint, &self.sender, self.bell)?;
        self.agents.push(AgentProcess {
            seat,
            child,
            started: clock::instant(),
            has_worked,
            is_leaving: false,
        });
        Ok(())
    }

    /// Passes the pool's interrupt on to the agents.
    fn pass_on(&mut self, interrupt: &Interrupt) {
        if !interrupt.is_raised() {
            return;
        }
        let is_hurried = interrupt.is_hurried();
        self.again.clear();
        let is_new = self
            .asked
            .is_none_or(|(earlier, at)| (is_hurried && !earlier) || at.elapsed() > PATIENCE);
        if is_new {
            self.asked = Some((is_hurried, clock::instant()));
            self.agents
                .iter()
                .for_each(|agent| agent.child.signal(Signal::TERM));
        }
    }

    /// Handles agents that have exited.
    fn bury(&mut self, tell: &mut dyn FnMut(News)) {
        for place in (0..self.agents.len()).rev() {
            let Some(exit) = self.agents[place].child.exit() else {
                continue;
            };
            let mut agent = self.agents.swap_remove(place);
            agent.child.sweep();
            let is_asked = self.asked.is_some() || agent.is_leaving;
            let is_short = agent.started.elapsed() < AT_ONCE;
            let place = &mut self.places[agent.seat];
            if exit == ProgramExit::Code(0) || is_asked {
                let is_vain = is_short && !is_asked && !agent.has_worked.load(Ordering::Relaxed);
                place.deaths = if is_vain { place.deaths + 1 } else { 0 };
                place.rests_until = is_vain.then(|| clock::instant() + pause(place.deaths));
                // Items that only this seat could work stay open, and are listed at the end.
                if place.deaths > MOST_DEATHS {
                    place.rests_until = Some(clock::instant() + PATIENCE);
                }
                continue;
            }
            place.deaths = if is_short { place.deaths + 1 } else { 1 };
            if place.deaths >= MOST_DEATHS {
                place.is_given_up = true;
                self.again.retain(|(seat, _)| *seat != agent.seat);
                tell(News::GivenUp { exit });
                continue;
            }
            let pause = pause(place.deaths);
            tell(News::Died { exit, pause });
            self.again.push((agent.seat, clock::instant() + pause));
        }
    }

    /// When the next one is to be started.
    fn next_start(&self) -> Option<Instant> {
        self.again.iter().map(|(_, at)| *at).min()
    }

    fn next_look(&self) -> Duration {
        let now = clock::instant();
        let rests = self
            .places
            .iter()
            .filter_map(|place| place.rests_until)
            .filter(|until| *until > now);
        let ends = self.config.until.filter(|_| self.asked.is_none());
        let start = self
            .next_start()
            .into_iter()
            .chain(rests)
            .chain(ends)
            .map(|at| at.saturating_duration_since(now))
            .min();
        let again = self
            .asked
            .map(|(_, at)| PATIENCE.saturating_sub(at.elapsed()));
        start
            .into_iter()
            .chain(again)
            .min()
            .unwrap_or(Duration::from_secs(3600))
    }
}

fn pause(deaths: u32) -> Duration {
    Duration::from_millis(100 << deaths.min(10))
}

fn relay(
    pipe: io::PipeReader,
    kind: impl Fn(String) -> News + Send + 'static,
    sender: &Sender<News>,
    bell: &Bell,
) -> io::Result<()> {
    let (sender, bell) = (sender.clone(), bell.clone());
    let relay = move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(kind(line)).is_err() {
                return;
            }
            bell.ring();
        }
    };
    std::thread::Builder::new().spawn(relay).map(drop)
}
