//! `tavern-agent --chat`: a person talks with the agent of an item, at the terminal.

use std::io::{self, IsTerminal};

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use tavern_core::eligible::DEFAULT_ROLE;
use tavern_core::event::{Blame, Event, Retry};
use tavern_core::task::{Status, Task, TaskId};
use tavern_run::chat::{Talked, launch, talk};
use tavern_run::{Heartbeat, Preflight, Trust, Workspace, run_name, sandbox, show_agent};
use tavern_store::{ClaimRequest, Claimed, NamedItem, Note};
use tavern_sys::interrupt::Interrupt;

use super::agent::args::Args;
use super::agent::name::take_name;
use super::format::Painted;
use super::{CliError, Context, Exit, ItemName, hints, needs, signals};

#[derive(Serialize)]
struct Record<'a> {
    task: &'a TaskId,
    status: Status,
    run: &'a str,
    /// How the program ended.
    exit: &'a str,
    worktree: String,
}

pub(super) fn run(args: &Args, context: &Context, name: &ItemName) -> Result<Exit, CliError> {
    let has_terminal = io::stdin().is_terminal();
    if !has_terminal && !context.is_dry {
        let message = "--chat needs a terminal, and standard input is not one";
        let hint = format!(
            "to send a message instead: tavern tell {name} \"…\"; to run an agent: tavern agent --once"
        );
        return Err(CliError::usage(message, hint));
    }
    let mut workspace = context.quick_site(context.board()?)?;
    args.program.choose(&mut workspace);
    let task = &context.id_of(&workspace.board, name)?;
    let found = workspace.board.task(task)?;
    // The item's own role, unless the user named another.
    let role_name = found
        .task
        .role
        .filter(|_| args.role == DEFAULT_ROLE)
        .unwrap_or_else(|| args.role.clone());
    let role = workspace.role(&role_name)?.clone();
    Trust::of(&workspace).item_of(&found.queue, &workspace.board.task(task)?.task)?;
    let look = Preflight::of(&workspace);
    look.disk().and_then(|()| look.set_up())?;
    sandbox::try_out(&workspace, &role)?;
    let queues = context.queues(&workspace.board, &args.queues)?;
    let (name, slot) = take_name(&workspace, args.name.as_deref(), &role_name, &queues)?;
    let seek = ClaimRequest {
        is_chat: true,
        item: Some(NamedItem::Id(task.clone())),
        ..workspace.seek(&name, &role_name, Some(queues))?
    };
    let missing = || tavern_store::Error::NoTask(task.clone());
    look.runner(
        &workspace.runner_of(&workspace.board.task(task)?.task, &role),
        &role,
    )?;
    // Ctrl-C is for the program that has the terminal; closing the terminal ends both.
    signals::forward(&[SIGINT, SIGQUIT], &Interrupt::new())?;
    signals::forward(&[SIGTERM, SIGHUP], &workspace.interrupt)?;
    let held = workspace
        .board
        .claim(&seek, &|_, _, _, _| Ok(()))?
        .map_err(|_| missing())?;
    if context.is_dry {
        let line = launch(&workspace, &held)?.command_line()?;
        context
            .out
            .record(&line, Painted::whole(&line.to_string()))?;
        return Ok(Exit::Done);
    }
    let doing = format!("talks with a person: {}", held.task.title);
    let heartbeat = Heartbeat::start(&workspace.board, &held.lease)?;
    let talked = talk(
        &workspace,
        &held,
        &heartbeat,
        |run| {
            let prompt = workspace.board.run_dir(&run.run).join("prompt.md");
            context.out.note(format!(
                "{name} holds {task} while you talk, with runner {}; its prompt: {}",
                run.runner,
                prompt.display()
            ));
        },
        // The agent file is only a display; the lease has the same facts.
        || {
            drop(show_agent(
                &workspace.board,
                &name,
                &role_name,
                Some(&held),
                doing.clone(),
            ));
        },
    );
    drop(heartbeat);
    workspace.board.remove_agent(&name);
    let after = hand_back(&workspace, &held)?;
    drop(slot);
    let Talked {
        run,
        worktree,
        exit,
        is_lost,
    } = talked?;
    let record = Record {
        task,
        status: after.status(),
        run: &run,
        exit: &exit,
        worktree: worktree.display().to_string(),
    };
    let how = if is_lost {
        "now held by another agent"
    } else {
        "unchanged"
    };
    context.out.record(
        &record,
        format!(
            "{task} is {}, {how}; your work is in {}",
            after.status(),
            record.worktree
        ),
    )?;
    let queue = &held.queue;
    let mut lacks = needs::lacks(
        context,
        &workspace.board,
        &NamedItem::Id(task.clone()),
        queue,
    )
    .into_iter();
    let lacking = lacks.find_map(|lack| hints::lack(&lack, Some(task), Some(&queue.id)));
    let ready = || (after.status() == Status::Pending).then(|| "tavern agent --once".to_owned());
    lacking
        .or_else(ready)
        .iter()
        .for_each(|next| context.out.note(format!("to go on: {next}")));
    Ok(workspace.interrupt.cause().map_or(Exit::Done, Exit::from))
}

/// Returns the item as before the chat. Events during the chat, under this claim's token or by others, are
/// kept.
fn hand_back(workspace: &Workspace, held: &Claimed) -> Result<Task, CliError> {
    let retry = Retry {
        blame: Blame::Nobody,
        not_before: None,
        most: workspace.config.max_returns,
    };
    let event = Event::Return {
        token: held.lease.token,
        retry,
        reason: "a person has talked with it".to_owned(),
    };
    let note = Note {
        agent: Some(held.lease.agent.clone()),
        run: Some(run_name(&held.task.id, held.lease.token)),
    };
    match workspace.board.submit(&held.task.id, &event, &note) {
        Ok(done) => Ok(done.task),
        Err(tavern_store::Error::Refused(_)) => Ok(workspace.board.task(&held.task.id)?.task),
        Err(error) => Err(error.into()),
    }
}
