//! Many agents at once, each a process of its own, working queues until nothing is left that they could do.
//!
//! What dies is started again after a back-off; what dies at once five times in a row is given up.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::clock;
use crate::interrupt::{Interrupt, Urgency};
use crate::process::start::Output;
use crate::process::{Bell, Child, Exit, Spec, start};

/// How a pool's agents are started.
#[derive(Clone, Debug)]
pub struct Plan {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub folder: PathBuf,
    /// How many at once.
    pub agents: usize,
}

/// What comes out of a pool while it works.
#[derive(Debug)]
pub enum News {
    /// A line of an agent's standard output.
    Line(String),
    /// A line of an agent's standard error.
    Complaint(String),
    /// An agent died and is started again after the pause.
    Died { exit: Exit, pause: Duration },
    /// Agents die at once again and again; none is started any more.
    GivenUp { exit: Exit },
}

/// An agent that lives shorter than this did not work.
const AT_ONCE: Duration = Duration::from_secs(5);
/// Deaths at once in a row before the pool gives up.
const MOST_DEATHS: u32 = 5;
/// How long agents may take to end politely before they are asked again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the pool until each of its agents has ended by itself with exit 0, or was given up. False if any was.
pub fn run(plan: &Plan, interrupt: &Interrupt, tell: &mut dyn FnMut(News)) -> io::Result<bool> {
    let (sender, news) = channel();
    let bell = Bell::new();
    interrupt.subscribe({
        let bell = bell.clone();
        move |_| bell.ring()
    });
    let mut agents: Vec<Agent> = Vec::new();
    for _ in 0..plan.agents {
        agents.push(Agent::start(plan, &sender, &bell)?);
    }
    let mut deaths = 0;
    let mut is_well = true;
    let mut pauses: Vec<Instant> = Vec::new();
    let mut asked: Option<(Urgency, Instant)> = None;
    while !agents.is_empty() || !pauses.is_empty() {
        bell.wait(next_look(&pauses, asked));
        drain(&news, tell);
        if let Some(urgency) = interrupt.urgency() {
            pauses.clear();
            let is_new = asked.is_none_or(|(earlier, at)| earlier < urgency || at.elapsed() > PATIENCE);
            if is_new {
                asked = Some((urgency, clock::instant()));
                for agent in &agents {
                    agent.child.signal(Signal::TERM);
                }
            }
        }
        for place in (0..agents.len()).rev() {
            let Some(exit) = agents[place].child.exit() else { continue };
            let mut agent = agents.swap_remove(place);
            agent.child.sweep();
            if exit == Exit::Code(0) || asked.is_some() {
                continue;
            }
            deaths = if agent.started.elapsed() < AT_ONCE { deaths + 1 } else { 1 };
            if deaths >= MOST_DEATHS {
                is_well = false;
                pauses.clear();
                tell(News::GivenUp { exit });
                continue;
            }
            let pause = Duration::from_millis(100 << deaths);
            tell(News::Died { exit, pause });
            pauses.push(clock::instant() + pause);
        }
        let due = clock::instant();
        let ready = pauses.iter().filter(|at| **at <= due).count();
        pauses.retain(|at| *at > due);
        for _ in 0..ready {
            agents.push(Agent::start(plan, &sender, &bell)?);
        }
    }
    drop(sender);
    // The readers end with the agents' pipes; what they still have to say is heard.
    while let Ok(line) = news.recv_timeout(Duration::from_secs(2)) {
        tell(line);
    }
    Ok(is_well)
}

struct Agent {
    child: Child,
    started: Instant,
}

impl Agent {
    fn start(plan: &Plan, sender: &Sender<News>, bell: &Bell) -> io::Result<Agent> {
        let (out, out_writer) = io::pipe()?;
        let (err, err_writer) = io::pipe()?;
        let mut spec = Spec::new(&plan.program, &plan.folder).args(&plan.args);
        spec.stdout = Output::Pipe(out_writer);
        spec.stderr = Output::Pipe(err_writer);
        let child = start(spec)?;
        child.wake(bell);
        relay(out, News::Line, sender, bell);
        relay(err, News::Complaint, sender, bell);
        Ok(Agent { child, started: clock::instant() })
    }
}

fn relay(pipe: io::PipeReader, kind: fn(String) -> News, sender: &Sender<News>, bell: &Bell) {
    let (sender, bell) = (sender.clone(), bell.clone());
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(kind(line)).is_err() {
                return;
            }
            bell.ring();
        }
    });
}

fn drain(news: &Receiver<News>, tell: &mut dyn FnMut(News)) {
    loop {
        match news.recv_timeout(Duration::ZERO) {
            Ok(one) => tell(one),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn next_look(pauses: &[Instant], asked: Option<(Urgency, Instant)>) -> Duration {
    let now = clock::instant();
    let pause = pauses.iter().map(|at| at.saturating_duration_since(now)).min();
    let again = asked.map(|(_, at)| PATIENCE.saturating_sub(at.elapsed()));
    pause.into_iter().chain(again).min().unwrap_or(Duration::from_secs(3600))
}
