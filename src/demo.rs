//! `tavern demo`: takes three items from queue to merge, in a temporary repository.
//!
//! Nothing is staged: it runs the commands that a user would type, and shows their output.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use tavern_sys::process::{
    CommandEnd, CommandSpec, ProgramExit, find_program, quoted, run_command,
};

use super::{CliError, Context, Exit, Format, Verb};

/// Show a board at work: three items, two agents, a temporary repository
///
/// No model, no key and no network: the items are worked by the shell runner. Nothing is left behind.
#[derive(clap::Args)]
pub struct Args {
    /// Keep the repository
    #[arg(long)]
    pub keep: bool,
}

const README: &str = "# A project\n\nSoon with a greeting, and something to drink.\n";

/// The commands, with a heading where a new section begins.
const STEPS: [(&str, &str); 11] = [
    ("", "git init --quiet --initial-branch=main"),
    ("", "git add README.md"),
    ("", "git commit --quiet --message=Begin"),
    (
        "A board in a repository, with three items. One waits for another:",
        "tavern init --demo --runner shell",
    ),
    (
        "",
        "sed -n '/^## Pending/,/^## In/p' .tavern/queues/main.md",
    ),
    (
        "Two agents. Each item gets a worktree and a branch; work that passes its `done_when` is merged:",
        "tavern drain --agents 2",
    ),
    ("The event log:", "tavern log"),
    (
        "The integration branch, and its content:",
        "git log --graph --oneline tavern/integration",
    ),
    ("", "git ls-tree --name-only tavern/integration"),
    ("", "git show tavern/integration:mug.txt"),
    (
        "Your own checkout is unchanged, apart from the board:",
        "git status --short --branch",
    ),
];

impl Verb for Args {
    const NAME: &'static str = "tavern-demo";
    const EXAMPLES: &'static [&'static str] = &["tavern demo"];
    const FOR_AGENTS: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        if find_program("git".as_ref()).is_none() {
            let hint = "install git, or put it on the PATH".to_owned();
            return Err(CliError::new(Exit::Failed, "`git` is not on the PATH").with_hint(hint));
        }
        context.interrupt()?;
        let folder = tempfile::Builder::new()
            .prefix("tavern-demo-")
            .tempdir()
            .map_err(|error| failed(&error))?;
        let spec = surroundings(&folder).map_err(|error| failed(&error))?;
        let place = spec.cwd.display().to_string();
        let played = play(context, spec);
        if self.keep {
            let kept = folder.keep();
            context.out.text(format!(
                "\nLook around: cd {place}\nRemove it: rm -rf {}",
                quoted(kept)
            ))?;
        } else if let Err(error) = folder.close() {
            let hint = format!("remove it by hand: rm -rf {place}");
            return Err(CliError::from(error).with_hint(hint));
        }
        let exit = played?;
        if exit == Exit::Done && !self.keep {
            context
                .out
                .text("\nNow in a repository of yours: tavern init. (`tavern demo --keep` leaves this one there.)")?;
        }
        Ok(exit)
    }
}

fn failed(error: &io::Error) -> CliError {
    CliError::from_error(Exit::Failed, error).with_hint(
        "see whether there is room in the folder for temporary files; TMPDIR names another"
            .to_owned(),
    )
}

/// Creates a folder for the repository, and an environment that is the same on all machines. The user's git
/// configuration, hooks and signing keys are not used, nor the board of an agent that runs the demo.
fn surroundings(folder: &TempDir) -> io::Result<CommandSpec> {
    let folder = folder.path().canonicalize()?;
    let (home, project) = (folder.join("home"), folder.join("project"));
    fs::create_dir(&home)?;
    fs::create_dir(&project)?;
    let own = std::env::current_exe()?.parent().map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path))).unwrap_or(path);
    let mut spec = CommandSpec::new("", project);
    let variables = [
        ("HOME", home.to_string_lossy()),
        ("PATH", path.to_string_lossy()),
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_PAGER", "cat".into()),
        ("GIT_AUTHOR_NAME", "Rosie".into()),
        ("GIT_AUTHOR_EMAIL", "rosie@example.org".into()),
        ("GIT_COMMITTER_NAME", "Rosie".into()),
        ("GIT_COMMITTER_EMAIL", "rosie@example.org".into()),
    ];
    spec.env = variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into_owned()))
        .collect();
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    spec.env_remove = names.filter(|name| name.starts_with("TAVERN_")).collect();
    // An interrupted drain first returns its items.
    spec.grace = Duration::from_secs(60);
    Ok(spec)
}

fn play(context: &Context, mut spec: CommandSpec) -> Result<Exit, CliError> {
    let out = &context.out;
    tavern_store::replace(&spec.cwd.join("README.md"), README.as_bytes())?;
    for (heading, command) in STEPS {
        if !heading.is_empty() {
            out.text(format!("\n# {heading}"))?;
        }
        out.text(format!("$ {command}"))?;
        out.flush()?;
        command.clone_into(&mut spec.command);
        let ran = run_command(&spec, context.interrupt()?)?;
        if out.format() == Format::Json {
            let exit = if let CommandEnd::Exited(ProgramExit::Code(code)) = ran.end {
                Some(code)
            } else {
                None
            };
            out.record(
                &json!({"command": command, "exit": exit, "output": ran.output}),
                "",
            )?;
        } else if !ran.output.is_empty() {
            out.text(ran.output.trim_end_matches('\n'))?;
        }
        if let Some(interrupted) = context.interrupted() {
            return Ok(interrupted);
        }
        if !ran.is_success() {
            return Ok(Exit::Failed);
        }
    }
    Ok(Exit::Done)
}
