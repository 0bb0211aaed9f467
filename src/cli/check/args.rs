//! The flags of `tavern check`.

/// Say what is wrong with a board and its configuration, where, and what to type
///
/// Looks at config.yaml, all queues, templates and leases, at what died and was not cleared up, and whether the agents
/// could start; of files that are named, at these alone. Exits with 5 if there are errors, with 0 if there are only
/// warnings. Changes nothing, unless told to with --fix.
#[derive(clap::Args)]
pub struct Args {
    /// Only these queues or task files, by name or path
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,

    /// Mend what needs no person: IDs that stand twice get fresh ones, lost queues are put back. Shows what it does
    #[arg(long)]
    pub fix: bool,

    /// Print what --fix would do, and what it would leave
    #[arg(long, short = 'n', requires = "fix")]
    pub dry_run: bool,
}
