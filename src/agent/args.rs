//! The flags of `tavern agent`.

use crate::ItemName;
use crate::flags::{AgentProgram, DryRun, OwnCaps, agent_name};
use tavern_core::eligible::DEFAULT_ROLE;
use tavern_core::task::Timestamp;

/// Work items one after the other: claim, run the agent program, verify, merge
///
/// Runs until it is interrupted; with --until-empty until no item is left for its role. Several may run side by side, each
/// under a name of its own.
#[derive(clap::Args)]
pub struct Args {
    /// The role of the agent: it takes items for this role
    #[arg(long, default_value = DEFAULT_ROLE, env = "TAVERN_ROLE", hide_env_values = true)]
    pub role: String,

    /// Its name [default: the first free one of `names` in config.yaml]
    #[arg(long = "agent", alias = "name", value_name = "NAME", value_parser = agent_name)]
    pub name: Option<String>,

    /// Take from this queue, by name or path; may be given several times, the first queue first [default: the role's `queues`, else all of the board's by their `priority`]
    #[arg(long = "queue", value_name = "QUEUE")]
    pub queues: Vec<String>,

    #[command(flatten)]
    pub program: AgentProgram,

    /// End when nothing is left to do
    #[arg(long)]
    pub until_empty: bool,

    /// End after one item
    #[arg(long)]
    pub once: bool,

    /// Talk with the agent of this item in this terminal; the item keeps its status
    #[arg(long, value_name = "ID", conflicts_with_all = ["until_empty", "once"])]
    pub chat: Option<ItemName>,

    #[command(flatten)]
    pub caps: OwnCaps,

    /// When the drain began that has these limits together with others
    #[arg(long, value_name = "TIME", hide = true, requires = "drain")]
    pub since: Option<Timestamp>,

    /// It ends with the first item that has used up its attempts, as its drain does
    #[arg(long, hide = true, requires = "drain")]
    pub fail_fast: bool,

    /// It is one of a drain with this pid, and ends with it
    #[arg(long, value_name = "PID", hide = true)]
    pub drain: Option<u32>,

    #[command(flatten)]
    pub plan: DryRun,
}
