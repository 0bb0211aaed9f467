//! The help of a verb: one screen, with the common options in one line and examples at the end.

use clap::{Arg, ArgAction, Command};

use super::shared::Shared;

/// Details stand above the usage, as wide as the terminal.
const LAYOUT: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

const COMMON: &str = "Common options: --dir FOLDER, --format FORMAT, --json, --quiet, --color WHEN, --trust; see `tavern help`";

/// Returns `command`, a verb's, with its help laid out.
pub(super) fn laid_out(command: Command, examples: &[&str]) -> Command {
    let lines = examples.iter().map(|line| format!("\n  {line}"));
    let command = command.after_help(format!(
        "{COMMON}\n\nExamples:{}",
        lines.collect::<String>()
    ));
    let ids = common_ids();
    let command = of_one_screen(command);
    command.mut_args(|arg| {
        let is_common = ids.iter().any(|id| arg.get_id() == id.as_str());
        if is_common { arg.hide(true) } else { arg }
    })
}

fn common_ids() -> Vec<String> {
    let common = Shared::command_of_its_own();
    common
        .get_arguments()
        .map(|arg| arg.get_id().to_string())
        .collect()
}

fn of_one_screen(command: Command) -> Command {
    let about = command.get_about().map(ToString::to_string);
    let long = command.get_long_about().map(ToString::to_string);
    let details = about
        .zip(long)
        .and_then(|(about, long)| Some(long.strip_prefix(&about)?.trim().to_owned()));
    let command = match details.filter(|details| !details.is_empty()) {
        Some(details) => command.before_help(details),
        None => command,
    };
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::HelpShort)
        .help("Print help");
    command
        .help_template(LAYOUT)
        .disable_help_flag(true)
        .arg(help)
        .mut_subcommands(of_one_screen)
}
