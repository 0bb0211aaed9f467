//! The demand for each role's agents, for a drain's pool.

use crate::{format, hints};
use tavern_core::eligible::Lack;
use tavern_core::lease::Life;
use tavern_core::task::Timestamp;
use tavern_run::agent_pool::Demand;
use tavern_run::{Preflight, Workspace};
use tavern_store::{AgentState, Queue, life};
use tavern_sys::clock;

use super::roster::Post;

/// Returns when the first item can be taken, if all available items wait only for a time and none is held.
pub fn first_time(workspace: &Workspace, queues: &[Queue], crew: &[Post]) -> Option<Timestamp> {
    let look = Preflight::of(workspace);
    if workspace
        .board
        .leases()
        .map_or(true, |leases| !leases.is_empty())
    {
        return None;
    }
    let mut first = None;
    for post in crew {
        let seek = workspace.seek("", &post.role, Some(queues.to_vec())).ok()?;
        let (open, nothing) =
            workspace
                .board
                .open_for(&seek, clock::now(), &look.of_role(&post.role));
        if open > 0 {
            return None;
        }
        first = [first, nothing.wake_at].into_iter().flatten().min();
    }
    first
}

/// Returns the demand for each post, and the roles that items wait for but no agent has, with hints.
pub fn look(
    workspace: &Workspace,
    queues: &[Queue],
    crew: &[Post],
) -> (Vec<Demand>, Vec<(String, String)>) {
    let leases = workspace.board.leases().unwrap_or_default();
    let (agents, look) = (workspace.board.agents(), Preflight::of(workspace));
    let mut demands = Vec::new();
    let mut unstaffed = Vec::new();
    for post in crew {
        // A new agent of that role has not worked on any item.
        let Ok(seek) = workspace.seek("", &post.role, Some(queues.to_vec())) else {
            demands.push(Demand::default());
            continue;
        };
        let (open, nothing) =
            workspace
                .board
                .open_for(&seek, clock::now(), &look.of_role(&post.role));
        // One agent has to wait for the end of a back-off.
        let free = open + usize::from(nothing.wake_at.is_some());
        let held = leases
            .iter()
            .filter(|lease| lease.role == post.role)
            .count();
        let idle = agents
            .iter()
            .filter(|agent| agent.role == post.role && agent.state == AgentState::Waiting);
        let idle = idle
            .filter_map(|agent| agent.holder.process.as_ref().map(|process| process.pid))
            .collect();
        demands.push(Demand {
            items: held + free,
            free,
            idle,
        });
        for (role, items) in nothing.elsewhere {
            let is_there = agents
                .iter()
                .any(|agent| agent.role == role && life(&agent.holder) != Life::Gone);
            if !is_there && !crew.iter().any(|post| post.role == role) {
                let waits = if items == 1 { "waits" } else { "wait" };
                let runner = workspace
                    .config
                    .roles
                    .get(&role)
                    .map(|role| role.runner.clone())
                    .unwrap_or_default();
                let is_judge = workspace.config.known_roles().reviewing.contains(&role);
                let why = if is_judge && workspace.config.runs_scripts(&runner) {
                    let lack = Lack::NoJudge {
                        runner: runner.clone(),
                        role: role.clone(),
                    };
                    let hint = hints::lack(&lack, None, None).unwrap_or_default();
                    format!("but its runner `{runner}` can't judge work; {hint}")
                } else {
                    let hint = hints::agent(&role, queues.iter().map(|queue| queue.id.as_str()));
                    format!("and no agent works as one: {hint}")
                };
                let line = format!(
                    "{} {waits} for a {role}, {why}",
                    format::count(items, "item")
                );
                unstaffed.push((role, line));
            }
        }
    }
    (demands, unstaffed)
}
