//! The flags that every program has.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ColorChoice, Command};
use rustix::process::getuid;

use tavern_core::lease::Token;
use tavern_core::task::TaskId;
use tavern_run::prompt::PromptLimits;
use tavern_store::config::is_agent_name;

use super::CliError;

/// A program's output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One line per record, for people
    #[default]
    Text,
    /// One JSON object per line
    Json,
    /// `NAME=value` pairs for a shell's `eval`
    Env,
}

/// Where the board is, and how to speak. A program's own help takes the place of this comment.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Common options")]
pub struct Shared {
    /// The board: a `.tavern` folder, or the folder that contains it [default: the board of the current repository]
    #[arg(
        long,
        global = true,
        value_name = "FOLDER",
        env = "TAVERN_DIR",
        hide_env_values = true,
        display_order = 900
    )]
    pub dir: Option<PathBuf>,

    /// The format of standard output
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value_t,
        env = "TAVERN_FORMAT",
        hide_env_values = true,
        display_order = 901
    )]
    pub format: Format,

    /// Print JSON, as `--format json` does
    #[arg(long, global = true, display_order = 902)]
    pub json: bool,

    /// On standard error, print errors only
    #[arg(
        long,
        short,
        global = true,
        env = "TAVERN_QUIET",
        hide_env_values = true,
        value_parser = FalseyValueParser::new(),
        display_order = 903
    )]
    pub quiet: bool,

    /// When to use colours; `auto`: on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        env = "TAVERN_COLOR",
        hide_env_values = true,
        display_order = 904
    )]
    pub color: ColorChoice,

    /// Also run untrusted changes from git, as in CI
    #[arg(
        long,
        global = true,
        env = "TAVERN_TRUST",
        hide_env_values = true,
        value_parser = FalseyValueParser::new(),
        display_order = 905
    )]
    pub trust: bool,
}

impl Shared {
    /// Returns the format to print in.
    pub(super) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Returns a command with these flags alone.
    pub(super) fn command_of_its_own() -> Command {
        Shared::augment_args(Command::new("tavern"))
    }
}

/// Returns the name of the agent or user that runs this program.
pub(super) fn person() -> String {
    known_person()
        .or_else(name_of_user)
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Returns the user's name in the system, for when the environment has none.
fn name_of_user() -> Option<String> {
    let id = getuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let mut users = users
        .lines()
        .map(|user| user.split(':').collect::<Vec<_>>());
    let user = users.find(|user| user.get(2) == Some(&id.as_str()))?;
    user.first()
        .filter(|name| is_agent_name(name))
        .map(ToString::to_string)
}

/// Returns the name of the agent or user from the environment, if there is one.
pub(super) fn known_person() -> Option<String> {
    let named = |name: &str| std::env::var(name).ok().filter(|name| is_agent_name(name));
    ["TAVERN_AGENT", "USER", "LOGNAME"]
        .into_iter()
        .find_map(named)
}

/// Reads all of standard input; `content` names its content in errors.
pub(super) fn read_stdin(content: &str) -> Result<String, CliError> {
    io::read_to_string(io::stdin()).map_err(|error| {
        let message = format!("can't read {content} from standard input: {error}");
        CliError::usage(message, "give it as UTF-8 text, or as an argument")
    })
}

/// Returns the typed words for an agent, called `thing`. `-`, or no words without a terminal, reads `content` from
/// standard input.
///
/// # Errors
/// The text is empty, or too long for one message; then `shorter` names an alternative. `example` is a command to type.
pub(super) fn words_for_agent(
    typed: &[String],
    [thing, content]: [&str; 2],
    shorter: &str,
    example: &str,
) -> Result<String, CliError> {
    let text = if !typed.is_empty() && typed != ["-"] {
        typed.join(" ")
    } else if typed.is_empty() && io::stdin().is_terminal() {
        String::new()
    } else {
        read_stdin(content)?
    };
    let (text, most) = (text.trim(), PromptLimits::default().note);
    if text.len() > most {
        let message = format!(
            "the {thing} has {} bytes, and the limit is {most}",
            text.len()
        );
        return Err(CliError::usage(message, shorter));
    }
    if text.is_empty() {
        let hint = format!("pass it as an argument: {example}");
        return Err(CliError::usage(format!("the {thing} is empty"), hint));
    }
    Ok(text.to_owned())
}

/// Hint for an agent that needs a person.
pub(super) const ASK: &str = "to ask a person, end your answer with WAITING and the question";

/// Returns the item that this shell holds, and its token, from environment variables.
pub(super) fn held_here() -> Option<(TaskId, Token)> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    Some((
        variable("TAVERN_TASK").parse().ok()?,
        variable("TAVERN_TOKEN").parse().ok()?,
    ))
}

/// Refuses an action that only a person may do, for `why`, if a `token` is given. An agent that was started by hand has
/// one. `command` is the command for a person.
pub(super) fn without_token(
    token: Option<Token>,
    why: String,
    command: &str,
) -> Result<(), CliError> {
    let hint = || format!("if you are a person: env -u TAVERN_TOKEN {command}");
    token.map_or(Ok(()), |_| Err(CliError::refused(why, hint())))
}
