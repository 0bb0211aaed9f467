//! The agent programs that Tavern knows: the files and variables they use, and their reports. Their command lines are in the defaults
//! of the configuration.

use super::plain::FailureReport;

/// The habits of a program that speaks the Agent Client Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcpHabits {
    /// The mode to work in; `None`: the one that sessions begin in, which asks before it changes something.
    pub mode: Option<&'static str>,
    /// Ways to sign in, each with the variable that it needs.
    pub sign_in: &'static [(&'static str, &'static str)],
    /// The usage in the answer to a prompt.
    pub counts: Counting,
    /// Whether it reports tokens, and money.
    pub tells_tokens: bool,
    pub tells_usd: bool,
}

/// The part of a session that a usage report covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    #[default]
    Turn,
    /// All turns so far.
    Session,
}

/// A program.
#[derive(Debug)]
pub struct Program {
    pub names: &'static [&'static str],
    /// Its report of a failure, as a plain command; it may exit with 0 then.
    pub reports: Option<FailureReport>,
    /// How to install it; empty: its manual says.
    pub install: &'static str,
    /// The words that begin a chat in a terminal.
    pub chat: &'static str,
    pub habits: AcpHabits,
    /// Set unless the user has set them.
    pub env: &'static [(&'static str, &'static str)],
    /// Folders of its own state, below HOME; and the part it writes in those that also hold settings.
    pub folders: &'static [(&'static str, Written)],
    /// As [`super::Runner::variables`].
    pub variables: &'static [&'static str],
    /// Files and folders of the repository that it obeys, as [`super::Runner::obeyed_files`].
    pub obeyed: &'static [&'static str],
    /// The variable that keeps it from reading files of the repository on its own; `None`: nothing does.
    pub alone: Option<(&'static str, &'static str)>,
}

/// The part of a program's folder that it writes.
#[derive(Debug)]
pub enum Written {
    All,
    /// These names; the second list holds patterns of names that it recreates, which are hidden.
    Only(&'static [&'static str], &'static [&'static str]),
}

const NO_HABITS: AcpHabits = AcpHabits {
    mode: None,
    sign_in: &[],
    counts: Counting::Turn,
    tells_tokens: false,
    tells_usd: false,
};

static PROGRAMS: [Program; 7] = [
    Program {
        names: &["codex", "codex-acp"],
        reports: None,
        install: "npm install -g @zed-industries/codex-acp @openai/codex",
        chat: "codex",
        habits: AcpHabits {
            // In the other modes it has a sandbox of its own, in which nothing can be committed in a linked worktree,
            // and which can't be made in Tavern's.
            mode: Some("full-access"),
            sign_in: &[
                ("codex-api-key", "CODEX_API_KEY"),
                ("openai-api-key", "OPENAI_API_KEY"),
            ],
            ..NO_HABITS
        },
        env: &[],
        folders: &[(
            ".codex",
            Written::Only(
                &["sessions", "log", "auth.json", "history.jsonl"],
                &[
                    "*.sqlite*",
                    "installation_id",
                    ".tmp",
                    "tmp",
                    "shell_snapshots",
                    "thread-writer-locks",
                ],
            ),
        )],
        variables: &["CODEX_*", "OPENAI_*"],
        obeyed: &[".codex"],
        alone: None,
    },
    Program {
        names: &["gemini"],
        reports: None,
        install: "npm install -g @google/gemini-cli",
        chat: "gemini",
        habits: AcpHabits {
            sign_in: &[
                ("gemini-api-key", "GEMINI_API_KEY"),
                ("vertex-ai", "GOOGLE_API_KEY"),
                ("vertex-ai", "GOOGLE_CLOUD_PROJECT"),
            ],
            tells_tokens: true,
            ..NO_HABITS
        },
        env: &[],
        folders: &[(
            ".gemini",
            Written::Only(
                &["tmp", "history", "oauth_creds.json", "google_accounts.json"],
                &["projects.json*", "installation_id"],
            ),
        )],
        variables: &["GEMINI_*", "GOOGLE_*"],
        obeyed: &[".gemini"],
        alone: None,
    },
    Program {
        names: &["qwen"],
        reports: Some(FailureReport {
            begins: "[API Error: ",
            answered: None,
        }),
        install: "npm install -g @qwen-code/qwen-code",
        chat: "qwen",
        habits: AcpHabits {
            sign_in: &[("openai", "OPENAI_API_KEY")],
            tells_tokens: true,
            ..NO_HABITS
        },
        env: &[],
        folders: &[(
            ".qwen",
            Written::Only(
                &["projects", "tmp", "oauth_creds.json"],
                &["debug", "installation_id", "output-language.md", "skills"],
            ),
        )],
        variables: &["OPENAI_*", "QWEN_*", "DASHSCOPE_*"],
        obeyed: &[".qwen"],
        alone: None,
    },
    Program {
        names: &["copilot"],
        reports: None,
        install: "npm install -g @github/copilot",
        chat: "copilot",
        habits: AcpHabits {
            counts: Counting::Session,
            tells_tokens: true,
            ..NO_HABITS
        },
        env: &[],
        folders: &[(".copilot", Written::All)],
        variables: &["COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"],
        obeyed: &[],
        alone: None,
    },
    Program {
        names: &["goose"],
        reports: None,
        install: "",
        chat: "goose session",
        habits: NO_HABITS,
        env: &[("GOOSE_MODE", "approve")],
        folders: &[
            (".config/goose", Written::Only(&[], &[])),
            (".local/share/goose", Written::All),
            (".local/state/goose", Written::All),
        ],
        variables: &["GOOSE_*", "ANTHROPIC_*", "OPENAI_*"],
        obeyed: &[],
        alone: None,
    },
    Program {
        names: &["aider"],
        reports: Some(FailureReport {
            begins: "litellm.",
            answered: Some("Tokens: "),
        }),
        install: "pip install aider-chat",
        chat: "aider",
        habits: NO_HABITS,
        env: &[],
        folders: &[(".aider", Written::All)],
        variables: &[
            "AIDER_*",
            "ANTHROPIC_*",
            "DEEPSEEK_*",
            "GEMINI_*",
            "OLLAMA_*",
            "OPENAI_*",
            "OPENROUTER_*",
        ],
        obeyed: &[".aider.conf.yml"],
        alone: None,
    },
    Program {
        names: &["opencode"],
        reports: None,
        install: "npm install -g opencode-ai",
        chat: "opencode",
        habits: AcpHabits {
            tells_tokens: true,
            tells_usd: true,
            ..NO_HABITS
        },
        env: &[(
            // It asks for nothing by itself.
            "OPENCODE_PERMISSION",
            r#"{"bash":"ask","edit":"ask","webfetch":"ask","websearch":"ask","external_directory":"ask"}"#,
        )],
        folders: &[
            (".config/opencode", Written::Only(&[], &[])),
            (
                ".local/share/opencode",
                Written::Only(
                    &["storage", "log", "snapshot", "auth.json"],
                    &["*.db*", "repos"],
                ),
            ),
            (".local/state/opencode", Written::All),
            (
                ".cache/opencode",
                Written::Only(&[], &["bin", "*.json", "version"]),
            ),
        ],
        variables: &[
            "OPENCODE_*",
            "ANTHROPIC_*",
            "DEEPSEEK_*",
            "GEMINI_*",
            "OLLAMA_*",
            "OPENAI_*",
            "OPENROUTER_*",
        ],
        obeyed: &["opencode.json", "opencode.jsonc", ".opencode"],
        alone: Some(("OPENCODE_DISABLE_PROJECT_CONFIG", "true")),
    },
];

/// Claude's settings, hooks, agents and skills in a repository, and the servers to start.
pub const CLAUDE_OBEYS: [&str; 2] = [".claude", ".mcp.json"];

/// Returns all files and folders of a repository that a program obeys, as [`super::Runner::obeyed_files`].
pub fn obeyed_by_any() -> Vec<&'static str> {
    let others = PROGRAMS.iter().flat_map(|program| program.obeyed);
    CLAUDE_OBEYS.iter().chain(others).copied().collect()
}

impl Program {
    /// Returns the program called `name`.
    pub fn named(name: &str) -> Option<&'static Program> {
        PROGRAMS
            .iter()
            .find(|program| program.names.contains(&name))
    }
}
