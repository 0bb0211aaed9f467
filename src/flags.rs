//! Flags shared by several programs, and their parsers.

use tavern_core::cap::{Cap, OwnCap, is_amount};
use tavern_core::lease::{Lease, Token};
use tavern_core::metadata;
use tavern_core::task::{BadId, TaskId, Timestamp};
use tavern_run::Workspace;
use tavern_store::config::is_agent_name;
use tavern_store::{Board, Claimed, Found};

use super::{CliError, Context, ItemName};

/// Whether changes are only printed.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct DryRun {
    /// Print the changes without making them
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

/// Flags that name a held item.
#[derive(Clone, Debug, clap::Args)]
pub struct HeldItemFlags {
    /// The item
    #[arg(value_name = "ID", env = "TAVERN_TASK", hide_env_values = true)]
    pub task: ItemName,

    /// The token of the claim
    #[arg(long, env = "TAVERN_TOKEN", hide_env_values = true)]
    pub token: Option<Token>,
}

impl HeldItemFlags {
    pub(super) fn item(&self, context: &Context, board: &Board) -> Result<HeldItem, CliError> {
        Ok(HeldItem {
            task: context.id_of(board, &self.task)?,
            token: self.token,
        })
    }
}

/// An item and the token of its claim.
#[derive(Clone, Debug)]
pub struct HeldItem {
    pub task: TaskId,
    pub token: Option<Token>,
}

impl HeldItem {
    /// Returns the token, or an error that asks for one.
    pub(super) fn token(&self) -> Result<Token, CliError> {
        let hint =
            "take an item first: claim=$(tavern claim --format env) && eval \"export $claim\"";
        self.token
            .ok_or_else(|| CliError::usage("pass the token of the claim: --token N", hint))
    }

    /// Extends the lease and returns it; refused if the token is no longer valid.
    pub(super) fn renew(&self, board: &Board) -> Result<Lease, CliError> {
        Ok(board.renew(&self.task, self.token()?)?)
    }

    /// Returns the claimed item, with its lease extended.
    pub(super) fn claimed(&self, board: &Board) -> Result<Claimed, CliError> {
        let lease = self.renew(board)?;
        // Only the log has the state from before the claim.
        let Found {
            mut task,
            script,
            queue,
            ..
        } = board.task(&self.task)?;
        // The terms of the claim apply, as they do for a holder with the item in memory.
        if let Some(terms) = &lease.terms {
            task.done_when.clone_from(&terms.done_when);
        }
        Ok(Claimed::held(queue, task, lease, script))
    }
}

/// Which agent program works, where it is not the role's.
#[derive(Clone, Debug, clap::Args)]
pub struct AgentProgram {
    /// The agent program: an entry of `runners` in config.yaml, such as claude or shell
    #[arg(long, env = "TAVERN_RUNNER", hide_env_values = true)]
    pub runner: Option<String>,

    /// The model, as the agent program names it
    #[arg(long, env = "TAVERN_MODEL", hide_env_values = true)]
    pub model: Option<String>,
}

impl AgentProgram {
    pub(super) fn choose(&self, workspace: &mut Workspace) {
        workspace.runner.clone_from(&self.runner);
        workspace.model.clone_from(&self.model);
    }
}

/// Caps on the shared usage of a program's runs.
#[derive(Clone, Debug, clap::Args)]
pub struct OwnCaps {
    /// End when its runs have used this many US dollars together
    #[arg(long, value_name = "N", value_parser = amount)]
    pub max_usd: Option<f64>,

    /// End when its runs have used this many minutes together; parallel runs add up
    #[arg(long, value_name = "N", value_parser = amount)]
    pub max_minutes: Option<f64>,
}

impl OwnCaps {
    /// Returns the caps from `since` on, for the runs of `agent` or, without one, of the whole board.
    pub(super) fn own(&self, since: Timestamp, agent: Option<String>) -> Option<OwnCap> {
        let cap = Cap {
            usd: self.max_usd,
            minutes: self.max_minutes,
            tokens: None,
        };
        (cap != Cap::default()).then_some(OwnCap { since, agent, cap })
    }
}

/// Keys of a new item.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct NewItemFlags {
    /// Its ID [default: a generated one]
    #[arg(long, value_name = "ID", value_parser = task_id)]
    pub id: Option<TaskId>,

    /// The priority; 0 is the most urgent
    #[arg(long, short = 'p', value_name = "0-9", value_parser = priority)]
    pub priority: Option<u8>,

    /// An item that must be completed first; may be given several times
    #[arg(
        long,
        visible_alias = "depends-on",
        value_name = "ID",
        value_delimiter = ','
    )]
    pub after: Vec<ItemName>,

    /// A tag; may be given several times
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',')]
    pub tags: Vec<String>,

    /// The description, for the agent
    #[arg(long, short = 'm', value_name = "TEXT", allow_hyphen_values = true)]
    pub description: Option<String>,

    /// Add it as a draft: no agent takes it before `tavern release ID`
    #[arg(long)]
    pub draft: bool,
}

/// Parses a typed ID.
pub(super) fn task_id(text: &str) -> Result<TaskId, String> {
    text.parse().map_err(|_: BadId| BadId::HINT.to_owned())
}

/// Parses a typed name of an agent or a person.
pub(super) fn agent_name(text: &str) -> Result<String, String> {
    let bad = || "use letters, digits, `-` and `_`, beginning with a letter, 40 at most".to_owned();
    Some(text.to_owned())
        .filter(|name| is_agent_name(name))
        .ok_or_else(bad)
}

fn amount(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|amount| is_amount(*amount))
        .ok_or_else(|| "a number that is not negative".into())
}

/// Parses a typed priority.
pub(super) fn priority(text: &str) -> Result<u8, String> {
    let priority = metadata::priority(text).and_then(|priority| u8::try_from(priority).ok());
    priority.ok_or_else(|| {
        "a priority is a number from 0, most urgent, to 9, or critical, high, medium, low".into()
    })
}
