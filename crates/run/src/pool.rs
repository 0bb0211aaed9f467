//! Many agents at once, each a process of its own, working queues until nothing is left that they could do.
//!
//! Each role has a seat with so many places. How many agents run follows what there is to do, between a least and a most.
//! What dies is started again after a back-off; what dies at once five times in a row is given up. Knows nothing of boards:
//! what there is to do, and who is idle, is told to it.

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

/// How a pool's agents are started.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    pub program: PathBuf,
    pub folder: PathBuf,
    pub seats: Vec<Seat>,
    /// So many run from the beginning, in the order of the seats.
    pub least: usize,
    /// Never more at once.
    pub most: usize,
    /// From then on its agents are asked to end.
    pub until: Option<Instant>,
    /// Returns whether this line of an agent's output says that it has something to do.
    pub is_work: fn(&str) -> bool,
}

/// The places for agents of one kind.
#[derive(Clone, Debug)]
pub struct Seat {
    pub args: Vec<OsString>,
    /// How many at once.
    pub most: usize,
}

/// What there is for the agents of one seat.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// Items in their hands, and items that they could take.
    pub items: usize,
    /// Those of the items that nobody has taken.
    pub free: usize,
    /// The processes of those that have nothing to do.
    pub idle: Vec<u32>,
}

/// What comes out of a pool while it works.
#[derive(Debug)]
pub enum News {
    /// A line of an agent's standard output.
    Line(String),
    /// A line of an agent's standard error.
    Complaint(String),
    /// An agent died and is started again after the pause.
    Died { exit: ProgramExit, pause: Duration },
    /// Agents of a seat end at once again and again; none is started there any more.
    GivenUp { exit: ProgramExit },
}

/// An agent that lives shorter than this did not work.
const AT_ONCE: Duration = Duration::from_secs(5);
/// Deaths at once in a row before the pool gives up.
const MOST_DEATHS: u32 = 5;
/// How long agents may take to end politely before they are asked again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the pool until each of its agents has ended by itself and there is nothing more for any of them. False if a seat
/// was given up. `bell` is rung when `demand` (of each seat) may be another.
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
    // The readers end with the agents' pipes; what they still have to say is heard.
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
    /// One that died is started again in its seat at this time.
    again: Vec<(usize, Instant)>,
    /// Of each seat, how it goes there.
    places: Vec<Place>,
    /// Whether the agents were asked to hurry when they were last asked to end, and when that was.
    asked: Option<(bool, Instant)>,
}

#[derive(Default)]
struct Place {
    /// In a row: those that died at once, or ended at once without having had anything to do.
    deaths: u32,
    is_given_up: bool,
    /// None is started before, since the last one found nothing to do.
    rests_until: Option<Instant>,
}

struct AgentProcess {
    seat: usize,
    child: RunningProgram,
    started: Instant,
    has_worked: Arc<AtomicBool>,
    /// It was asked to make room for another.
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

    /// Starts what died and has waited, and whom there is something to do for; where there is no room, an idle agent of
    /// another seat makes some.
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

    /// Asks an idle agent to end for which there is nothing to do.
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

    /// Asks the agents to end as the pool was asked.
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

    /// Looks after those that have ended.
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
                // What only it could have done stays undone, and is listed at the end.
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
