//! What there is for each role's agents to do, as a drain's pool asks for it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use crate::board::lease::Life;
use crate::cli::{CliError, human};
use crate::clock;
use crate::pool::Demand;
use crate::process::Bell;
use crate::run::{Preflight, Site};
use crate::store::{AgentState, Queue, Watch, life};

use super::crew::Post;

/// Looks at the board for a pool.
pub struct Demands<'a> {
    site: &'a Site,
    queues: &'a [Queue],
    crew: &'a [Post],
    /// Roles that were told of.
    told: RefCell<BTreeSet<String>>,
}

/// Items that wait for a role that nobody works as.
pub struct Unstaffed {
    role: String,
    items: usize,
}

impl fmt::Display for Unstaffed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (items, role) = (human::count(self.items, "item"), &self.role);
        let waits = if self.items == 1 { "waits" } else { "wait" };
        write!(
            f,
            "{items} {waits} for a {role}, and nobody works as one: tavern agent --role {role}, or --agents …,{role}=1"
        )
    }
}

impl<'a> Demands<'a> {
    pub fn new(site: &'a Site, queues: &'a [Queue], crew: &'a [Post]) -> Demands<'a> {
        Demands { site, queues, crew, told: RefCell::new(BTreeSet::new()) }
    }

    /// Rings `bell` whenever the board changes, as long as this process lives.
    pub fn ring_at_changes(&self, bell: &Bell) -> Result<(), CliError> {
        let watch = Watch::new(&self.site.board, self.queues)?;
        let bell = bell.clone();
        std::thread::spawn(move || {
            loop {
                watch.wait(std::time::Duration::from_secs(3600));
                bell.ring();
            }
        });
        Ok(())
    }

    /// What there is for each post; and the roles that items wait for and nobody works as, each told once.
    pub fn look(&self) -> (Vec<Demand>, Vec<Unstaffed>) {
        let leases = self.site.board.leases().unwrap_or_default();
        let (agents, look) = (self.site.board.agents(), Preflight::of(self.site));
        let mut demands = Vec::new();
        let mut unstaffed = Vec::new();
        for post in self.crew {
            // A new agent of that role: one that has a hand in no item yet.
            let Ok(seek) = self.site.seek("", &post.role, self.queues) else {
                demands.push(Demand::default());
                continue;
            };
            let (open, nothing) = self.site.board.open_for(&seek, clock::now(), &look.of_role(&post.role));
            // Somebody has to wait for the end of a back-off.
            let free = open + usize::from(nothing.wake_at.is_some());
            let held = leases.iter().filter(|lease| lease.role == post.role).count();
            let idle = agents.iter().filter(|agent| agent.role == post.role && agent.state == AgentState::Waiting);
            let idle = idle.filter_map(|agent| agent.holder.process.as_ref().map(|process| process.pid)).collect();
            demands.push(Demand { items: held + free, free, idle });
            for (role, items) in nothing.elsewhere {
                let is_there = agents.iter().any(|agent| agent.role == role && life(&agent.holder) != Life::Gone);
                let is_staffed = is_there || self.crew.iter().any(|post| post.role == role);
                if !is_staffed && self.told.borrow_mut().insert(role.clone()) {
                    unstaffed.push(Unstaffed { role, items });
                }
            }
        }
        (demands, unstaffed)
    }
}
