//! The Claude runner: command line and environment to start the Claude CLI for unattended work.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};

use tavern_core::eligible::{NotReady, place_of};
use tavern_sys::interrupt::Interrupt;
use tavern_sys::process::{CommandSpec, Spec, run_command};

use super::claude_link::ClaudeLink;
use super::job::{Job, Opening};
use super::programs::CLAUDE_OBEYS;
use super::transcript::{Transcript, config_folder};
use super::{
    Access, Kept, ProgramHome, ProgramState, Ready, Runner, Session, Usage, conversation, found,
    variable_of,
};

/// Starts the Claude CLI in its live mode: JSON lines in both directions, so that it can receive messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claude {
    /// A name on PATH, or a path.
    pub program: PathBuf,
    /// `--permission-mode`. No mode asks a person here: a call that isn't allowed is denied, and listed in the outcome.
    pub permission_mode: String,
    /// `--effort`; `None`: the CLI's default.
    pub effort: Option<String>,
    /// `--fallback-model`: used while its model is overloaded.
    pub fallback_model: Option<String>,
    /// `--allowedTools`: rules such as `Bash` or `Bash(git *)`. Unattended, only these tools are offered (`--tools`),
    /// unless there are none or all are allowed.
    pub allowed_tools: Vec<String>,
    /// `--disallowedTools`: tools that are not offered, and rules that override all others.
    pub denied_tools: Vec<String>,
    /// Whether it obeys the settings, hooks, servers and memory files of the repository. A reviewer of the repository
    /// must not be influenced by it.
    pub obeys_repository: bool,
    /// Other arguments, before the options above.
    pub extra_args: Vec<String>,
}

/// Makes it read the user's settings only, and start no server that a file of the repository names.
const OBEYS_USER: [&str; 3] = ["--setting-sources", "user", "--strict-mcp-config"];

/// Set for unattended work, unless the user has set them.
const SETTINGS: [(&str, &str); 4] = [
    // No telemetry, error reports or updates: the installed version is started.
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    // How often the CLI retries a failed call before the run ends as overloaded or at its usage limit. Waiting is left
    // to Tavern.
    ("CLAUDE_CODE_MAX_RETRIES", "4"),
    // How long one call may take to begin its answer.
    ("API_TIMEOUT_MS", "300000"),
];

/// Each of them signs the CLI in: a key, a token, or a cloud account.
const KEYS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

/// Variables that it reads: its provider's and its own settings, with keys. Of `CLAUDE_*` only those that a user sets.
/// An outer Claude session sets others for its children, and an agent must not pass for one.
const VARIABLES: [&str; 20] = [
    "ANTHROPIC_*",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "CLAUDE_CODE_BUBBLEWRAP",
    "CLAUDE_CODE_CLIENT_*",
    "CLAUDE_CODE_DISABLE_*",
    "CLAUDE_CODE_MAX_*",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_SKIP_*",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_USE_*",
    "DISABLE_*",
    "API_TIMEOUT_MS",
    "BASH_DEFAULT_TIMEOUT_MS",
    "BASH_MAX_OUTPUT_LENGTH",
    "BASH_MAX_TIMEOUT_MS",
    "IS_SANDBOX",
    "MAX_THINKING_TOKENS",
    "MCP_TIMEOUT",
    "MCP_TOOL_TIMEOUT",
];

/// Further variables that it reads if the first one is set, for models of another provider.
const CLOUDS: [(&str, &[&str]); 3] = [
    ("CLAUDE_CODE_USE_BEDROCK", &["AWS_*"]),
    (
        "CLAUDE_CODE_USE_VERTEX",
        &["CLOUD_ML_REGION", "CLOUDSDK_*", "GOOGLE_*", "VERTEX_*"],
    ),
    ("CLAUDE_CODE_USE_FOUNDRY", &["AZURE_*"]),
];

const SIGN_IN: &str = "sign in once (claude, then /login), or set ANTHROPIC_API_KEY";

/// Files that the CLI keeps beside its settings, and recreates.
const PASSING: [&str; 15] = [
    "projects",
    "todos",
    "tasks",
    "plans",
    "shell-snapshots",
    "session-env",
    "sessions",
    "file-history",
    "paste-cache",
    "statsig",
    "telemetry",
    "debug",
    "cache",
    "backups",
    "ide",
];

/// Returns where the CLI keeps the sessions of a worktree, below its own folder. Longer names get a checksum, so for
/// these it is the folder of all sessions.
fn sessions_of(worktree: &Path) -> String {
    let name: String = worktree
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    if name.len() > 200 {
        "projects".to_owned()
    } else {
        format!("projects/{name}")
    }
}

impl Runner for Claude {
    fn check(&self, env: &[(String, String)]) -> Result<Ready, NotReady> {
        let found = found(self.program.as_os_str(), env).ok_or_else(|| {
            let program = self.program.display().to_string();
            NotReady::new(
                format!("`{program}` is not {}", place_of(&program)),
                "install it (npm install -g @anthropic-ai/claude-code), or choose another runner: --runner shell",
            )
        })?;
        if self.permission_mode == "plan" {
            return Err(NotReady::new(
                "with `permission_mode: plan` the Claude CLI changes nothing until a person has agreed",
                "set `permission_mode: acceptEdits` for the role in .tavern/config.yaml",
            ));
        }
        let is_guarded = ["IS_SANDBOX", "CLAUDE_CODE_BUBBLEWRAP"]
            .iter()
            .all(|name| variable_of(env, name).is_none());
        if self.permission_mode == "bypassPermissions"
            && rustix::process::geteuid().is_root()
            && is_guarded
        {
            return Err(NotReady::new(
                "the Claude CLI refuses `permission_mode: bypassPermissions` for root",
                "set `permission_mode: acceptEdits`, run as another user, or, in a container only, set IS_SANDBOX=1",
            ));
        }
        Ok(Ready {
            program: found.display().to_string(),
            version: String::new(),
        })
    }

    fn try_out(&self, env: &[(String, String)]) -> Result<Ready, NotReady> {
        /// Exceeded on a hanging file system, or if the program is another one.
        const PATIENCE: Duration = Duration::from_secs(20);
        let ready = self.check(env)?;
        let not_ready = |how: &str| {
            let message = format!("`{} --version` {how}", ready.program);
            NotReady::new(
                message,
                "run it by hand; then fix it or install it again (claude doctor)",
            )
        };
        let command = CommandSpec {
            timeout: PATIENCE,
            keep: 400,
            env: env
                .iter()
                .cloned()
                .chain([("PROGRAM".to_owned(), ready.program.clone())])
                .collect(),
            inherits: false,
            ..CommandSpec::new("exec \"$PROGRAM\" --version", "/")
        };
        let result = run_command(&command, &Interrupt::new())
            .map_err(|error| not_ready(&format!("failed: {error}")))?;
        let line = result.output.lines().next().unwrap_or_default();
        if !result.is_success() {
            return Err(not_ready(
                format!("{}: {line}", result.end).trim_end_matches(": "),
            ));
        }
        Ok(Ready {
            version: line
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned(),
            ..ready
        })
    }

    /// Checks that variables and files exist, and looks for names of keys in the CLI's own settings. Keys themselves
    /// are not used.
    fn access(&self, env: &[(String, String)]) -> Access {
        let is_set = |name: &&str| variable_of(env, name).is_some_and(|value| !value.is_empty());
        if let Some(name) = KEYS.into_iter().find(|name| is_set(name)) {
            return Access::Found(name.to_owned());
        }
        let Some(folder) = config_folder(|name| variable_of(env, name)) else {
            let looked = "no key is set, and there is no HOME".to_owned();
            return Access::Unknown {
                looked,
                hint: SIGN_IN,
            };
        };
        let credentials = folder.join(".credentials.json");
        if credentials.exists() {
            return Access::Found(credentials.display().to_string());
        }
        // The file is beside the folder in HOME, but inside a folder that the user has named.
        let mut settings = vec![folder.join("settings.json"), folder.join(".claude.json")];
        settings.extend(folder.parent().map(|home| home.join(".claude.json")));
        let leads_to_key = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            KEYS.iter()
                .chain(&["apiKeyHelper", "primaryApiKey"])
                .any(|name| text.contains(&format!("\"{name}\"")))
        };
        match settings.into_iter().find(leads_to_key) {
            Some(path) => Access::Found(path.display().to_string()),
            None => {
                let looked = format!(
                    "no key is set, and there are no credentials in {}",
                    folder.display()
                );
                Access::Unknown {
                    looked,
                    hint: SIGN_IN,
                }
            }
        }
    }

    fn variables(&self) -> Vec<&'static str> {
        let clouds = CLOUDS
            .iter()
            .filter(|(flag, _)| std::env::var_os(flag).is_some());
        VARIABLES
            .into_iter()
            .chain(clouds.flat_map(|(_, names)| names.iter().copied()))
            .collect()
    }

    fn state(&self, env: &[(String, String)], worktree: &Path) -> ProgramState {
        let variable = |name: &str| variable_of(env, name);
        let home = variable("HOME").map(PathBuf::from);
        let cache = home
            .as_ref()
            .map(|home| home.join(".cache/claude-cli-nodejs"));
        let folder = config_folder(variable);
        let files = home
            .into_iter()
            .chain(folder.clone())
            .map(|folder| folder.join(".claude.json"))
            .collect();
        let kept = vec![sessions_of(worktree), ".credentials.json".to_owned()];
        let homes = folder.map(|folder| ProgramHome {
            folder,
            kept,
            passing: PASSING.to_vec(),
        });
        ProgramState {
            folders: cache.into_iter().collect(),
            homes: homes.into_iter().collect(),
            files,
        }
    }

    fn hears(&self) -> bool {
        true
    }

    fn keeps(&self) -> Kept {
        Kept {
            usd: true,
            tokens: true,
            turns: true,
        }
    }

    fn keeps_words_apart(&self) -> bool {
        true
    }

    /// The CLI keeps them apart from text that may be compacted, and forgets them with each process.
    fn is_told_rules(&self) -> bool {
        true
    }

    fn may_run(&self, words: &[&str]) -> bool {
        let is_of_it = |rule: &String| is_of(rule, &words.join(" "));
        let is_allowed =
            self.permission_mode == "bypassPermissions" || self.allowed_tools.iter().any(is_of_it);
        is_allowed && !self.denied_tools.iter().any(is_of_it)
    }

    fn answer_tool(&self) -> Option<&'static str> {
        Some("StructuredOutput")
    }

    fn knows_session(&self, job: &Job) -> bool {
        Transcript::of(job).is_there()
    }

    fn recorded(&self, session: &str, env: &[(String, String)], since: DateTime<Utc>) -> Usage {
        Transcript::at(|name| variable_of(env, name), session, since).usage()
    }

    fn obeyed_files(&self) -> &'static [&'static str] {
        &CLAUDE_OBEYS
    }

    fn is_led_by_repository(&self) -> bool {
        self.obeys_repository
    }

    fn spec(&self, job: &Job) -> Result<Spec, NotReady> {
        Ok(self.with_args(job, self.args(job)))
    }

    fn attended(&self, job: &Job) -> Result<Spec, NotReady> {
        Ok(self.with_args(job, self.attended_args(job)))
    }

    fn start(&self, job: &Job) -> Result<Session, NotReady> {
        Ok(conversation::start(
            self.spec(job)?,
            job,
            Box::new(ClaudeLink::of(job)),
        )?)
    }
}

impl Claude {
    fn with_args(&self, job: &Job, args: Vec<OsString>) -> Spec {
        let mut spec: Spec = job.spec(&self.program);
        spec.args = args;
        for (name, value) in SETTINGS {
            if job.variable(name).is_none() {
                spec.env.push((name.into(), value.into()));
            }
        }
        spec
    }

    /// As a person types it: the same session, tools and model, with the prompt as first message.
    fn attended_args(&self, job: &Job) -> Vec<OsString> {
        let mut args: Vec<OsString> = self.extra_args.iter().map(OsString::from).collect();
        args.extend(self.common_args(job));
        args.push(job.prompt.clone().into());
        args
    }

    fn args(&self, job: &Job) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["--print".into()];
        args.extend(self.extra_args.iter().map(OsString::from));
        // Reports when the model receives each message, and streams replies in parts, as signs of life.
        let live = "--input-format stream-json --output-format stream-json --verbose --replay-user-messages \
                    --include-partial-messages --permission-prompt-tool stdio";
        args.extend(live.split(' ').map(OsString::from));
        let limits = [
            (
                "--max-turns",
                job.limits.turns.map(|turns| turns.to_string()),
            ),
            (
                "--max-budget-usd",
                job.limits.usd.map(|usd| usd.to_string()),
            ),
        ];
        for (option, most) in limits {
            args.extend(
                most.into_iter()
                    .flat_map(|most| [option.into(), most.into()]),
            );
        }
        if let Some(form) = job.form {
            args.extend(["--json-schema".into(), form.schema().to_string().into()]);
        }
        let offered = self.offered_tools().join(",");
        if !offered.is_empty() {
            args.extend(["--tools".into(), offered.into()]);
        }
        args.extend(tools_option("--disallowedTools", &self.denied_tools));
        args.extend(self.common_args(job));
        args
    }

    /// Returns the CLI's own tools to offer; empty: all of them. A tool that needs permission could not be used, and
    /// its description would go with each call.
    fn offered_tools(&self) -> Vec<&str> {
        /// The tools to follow background tasks.
        const OF_BACKGROUND: [&str; 2] = ["TaskOutput", "TaskStop"];
        let names = self
            .allowed_tools
            .iter()
            .map(|rule| rule.split('(').next().unwrap_or_default().trim());
        let mut offered: Vec<&str> = names.filter(|name| !name.starts_with("mcp__")).collect();
        if self.permission_mode == "bypassPermissions" || offered.is_empty() {
            return Vec::new();
        }
        offered.extend(OF_BACKGROUND);
        let mut seen = HashSet::new();
        offered.retain(|name| seen.insert(*name));
        offered
    }

    fn common_args(&self, job: &Job) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        args.extend(tools_option("--allowedTools", &self.allowed_tools));
        if !self.obeys_repository {
            args.extend(OBEYS_USER.map(OsString::from));
        }
        let named = [
            ("--model", &job.model),
            ("--effort", &self.effort),
            ("--fallback-model", &self.fallback_model),
            (
                "--name",
                &Some(job.name.clone()).filter(|name| !name.is_empty()),
            ),
        ];
        for (option, value) in named {
            args.extend(value.iter().flat_map(|value| [option.into(), value.into()]));
        }
        args.extend(["--permission-mode".into(), (&self.permission_mode).into()]);
        if !job.rules.is_empty() {
            args.extend(["--append-system-prompt".into(), (&job.rules).into()]);
        }
        let opening = if job.opening == Opening::Resumed {
            "--resume"
        } else {
            "--session-id"
        };
        args.extend([opening.into(), (&job.session).into()]);
        args
    }
}

/// Returns the arguments of an option that takes any number of values, so an option must follow.
fn tools_option<'t>(option: &'t str, tools: &'t [String]) -> impl Iterator<Item = OsString> + 't {
    let option = (!tools.is_empty()).then(|| OsString::from(option));
    option.into_iter().chain(tools.iter().map(OsString::from))
}

/// Returns true if the rule, such as `Bash` or `Bash(git:*)`, covers commands that begin with `words`.
fn is_of(rule: &str, words: &str) -> bool {
    let pattern = rule
        .strip_prefix("Bash(")
        .and_then(|rest| rest.strip_suffix("*)"));
    rule == "Bash"
        || pattern.is_some_and(|begins| words.starts_with(begins.trim_end_matches([':', ' '])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn claude(program: &str) -> Claude {
        Claude {
            program: program.into(),
            permission_mode: "acceptEdits".to_owned(),
            effort: None,
            fallback_model: None,
            allowed_tools: vec!["Bash".to_owned(), "Edit".to_owned()],
            denied_tools: vec!["CronCreate".to_owned()],
            obeys_repository: true,
            extra_args: Vec::new(),
        }
    }

    #[test]
    fn a_person_and_unattended_work_have_the_same_session_tools_and_model() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut job = Job::in_folder(folder.path());
        job.session = "U".to_owned();
        let mut claude = claude("claude");
        let line = |args: Vec<OsString>| {
            args.join(OsStr::new(" "))
                .into_string()
                .expect("it is text")
        };
        let live = "--print --input-format stream-json --output-format stream-json --verbose --replay-user-messages \
                    --include-partial-messages --permission-prompt-tool stdio";
        let denied = "--tools Bash,Edit,TaskOutput,TaskStop --disallowedTools CronCreate";
        let new = "--allowedTools Bash Edit --permission-mode acceptEdits --session-id U";
        assert_eq!(line(claude.args(&job)), format!("{live} {denied} {new}"));
        assert_eq!(line(claude.attended_args(&job)), format!("{new} do it\n"));
        job.opening = Opening::Resumed;
        job.model = Some("sonnet".to_owned());
        job.limits.turns = Some(3);
        job.limits.usd = Some(0.5);
        let resumed =
            "--allowedTools Bash Edit --model sonnet --permission-mode acceptEdits --resume U";
        assert_eq!(
            line(claude.args(&job)),
            format!("{live} --max-turns 3 --max-budget-usd 0.5 {denied} {resumed}")
        );
        assert_eq!(
            line(claude.attended_args(&job)),
            format!("{resumed} do it\n")
        );
        claude.effort = Some("high".to_owned());
        claude.fallback_model = Some("haiku".to_owned());
        job.name = "T-1: Do it".to_owned();
        let named = "--model sonnet --effort high --fallback-model haiku --name T-1: Do it --permission-mode";
        assert!(
            line(claude.args(&job)).contains(named),
            "{}",
            line(claude.args(&job))
        );
        claude.obeys_repository = false;
        assert!(
            line(claude.args(&job))
                .contains("Edit --setting-sources user --strict-mcp-config --model")
        );
    }

    #[test]
    fn its_agent_may_run_what_the_rules_for_its_shell_say() {
        for (allowed, denied, mode, expected) in [
            (&["Bash"][..], &["Bash(rm:*)"][..], "acceptEdits", true),
            (&["Read", "Bash(git:*)"], &[], "acceptEdits", true),
            (&["Bash(git log *)"], &[], "acceptEdits", true),
            (&["Bash(*)"], &[], "acceptEdits", true),
            (
                &["Read", "Bash(rm *)", "Bash(git add:*)", "Bash(git log)"],
                &[],
                "acceptEdits",
                false,
            ),
            (&[], &[], "acceptEdits", false),
            (&[], &[], "bypassPermissions", true),
            (&["Bash"], &["Bash(git:*)"], "bypassPermissions", false),
        ] {
            let [allowed_tools, denied_tools] =
                [allowed, denied].map(|rules| rules.iter().map(|&rule| rule.to_owned()).collect());
            let claude = Claude {
                allowed_tools,
                denied_tools,
                permission_mode: mode.to_owned(),
                ..claude("claude")
            };
            assert_eq!(
                claude.may_run(&["git", "log", "-p"]),
                expected,
                "{allowed:?} {denied:?} {mode}"
            );
        }
    }

    #[test]
    fn a_missing_program_is_named_with_a_way_out() {
        let error = claude("no-such-program-here")
            .check(&[])
            .expect_err("it is not there");
        assert!(error.message.contains("no-such-program-here"), "{error:?}");
        assert!(
            error
                .hint
                .as_deref()
                .unwrap_or_default()
                .contains("--runner shell"),
            "{error:?}"
        );
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "tests make and break files on purpose"
    )]
    fn an_account_is_found_by_where_it_is_kept_and_its_absence_is_no_proof() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let home = folder.path().display().to_string();
        let claude = claude("claude");
        // Variables of the tests' own environment must not matter.
        let mut env: Vec<(String, String)> = KEYS
            .iter()
            .map(|name| ((*name).to_owned(), String::new()))
            .collect();
        env.extend([
            ("HOME".to_owned(), home),
            ("CLAUDE_CONFIG_DIR".to_owned(), String::new()),
        ]);
        assert!(
            matches!(claude.access(&env), Access::Unknown { .. }),
            "{:?}",
            claude.access(&env)
        );
        fs::create_dir(folder.path().join(".claude")).expect("the folder is ours");
        for (name, text) in [
            (".claude.json", r#"{"primaryApiKey": "k"}"#),
            (
                ".claude/settings.json",
                r#"{"apiKeyHelper": "pass claude"}"#,
            ),
            (".claude/.credentials.json", "{}"),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("the folder is ours");
            assert_eq!(
                claude.access(&env),
                Access::Found(path.display().to_string())
            );
            fs::remove_file(&path).expect("it is there");
        }
        env.push(("ANTHROPIC_API_KEY".to_owned(), "sk-secret".to_owned()));
        assert_eq!(
            claude.access(&env),
            Access::Found("ANTHROPIC_API_KEY".to_owned())
        );
    }
}
