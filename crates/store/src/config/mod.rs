//! `.tavern/config.yaml`: the board's settings, read over the defaults. Knows no flags and no environment.
//!
//! `templates/config.yaml` is the file that `tavern-init` writes. `specs/config.md` shows every setting; a test checks
//! it against [`Config::default`].

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_yaml::{Mapping, Value};

use tavern_core::cap::{Caps, is_amount};
use tavern_core::eligible::Roles;
use tavern_core::front::EmptyBehavior;

use tavern_core::planner_wake::WakeCause;
use tavern_core::rule::BoardRules;
use tavern_core::suggestion::nearest;
use tavern_core::task::{Expected, PERSON, Task};
use tavern_core::watch_rules::WatchRules;
use tavern_core::yaml::{self, YamlError};
use tavern_sys::clock;
use tavern_sys::files;

pub use channel::Channel;
pub use flaw::Flaw;
use flaw::Reading;
pub use outcome::{OutcomePolicy, Outcomes};
pub use pass::Pass;
pub use role::{Does, Effort, Network, Role};
pub use runner::{RunnerConfig, RunnerKind};
pub use schedules::{SCHEDULES, Schedules};
pub use size::Size;
pub use tavern_core::period::Period;

mod channel;
mod flaw;
mod outcome;
mod pass;
mod role;
mod runner;
mod schedules;
mod size;

/// The initial file: commented blocks, each of which may be uncommented.
pub const TEMPLATE: &str = include_str!("../../../../templates/config.yaml");

/// Returns the template filled in with the runner and the base branch.
pub fn written(runner: &str, base: Option<&str>) -> String {
    let mut text = TEMPLATE.to_owned();
    if let Some(base) = base {
        let base = serde_yaml::to_string(base).expect("a string is plain data");
        text = text.replace("\n#base: main\n", &format!("\nbase: {base}"));
    }
    if runner != Role::default().runner {
        let (from, to) = ("\n#roles:\n#  coder:\n", "\nroles:\n  coder:\n");
        let (from_runner, to_runner) = (
            "\n#    runner: shell\n",
            format!("\n    runner: {runner}\n"),
        );
        text = text
            .replacen(from, to, 1)
            .replacen(from_runner, &to_runner, 1);
    }
    text
}

/// Name of the file in `.tavern/`.
pub const FILE: &str = "config.yaml";

/// The newest version of the file that this program understands.
const VERSION: u32 = 1;

/// An editor's save may take this long: a file emptied longer ago is really empty.
const SAVE: Duration = Duration::from_secs(1);
/// The longest pause between two writes of one save.
const REST: Duration = Duration::from_millis(20);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// All settings of a board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The version of the file's format.
    pub version: u32,
    /// The branch that integration follows; `None`: the branch of HEAD.
    pub base: Option<String>,
    pub integration: Integration,
    /// How long a lease lasts without a heartbeat.
    pub lease: Period,
    /// The most agents on the board at once.
    pub limit: u32,
    /// The free disk space below which nothing is claimed; 0: not checked.
    pub free_disk: Size,
    /// Handling of changes that an agent left uncommitted when it reports done.
    pub dirty: Dirty,
    /// Time between asking a process to end and killing it.
    pub grace: Period,
    pub worktree: WorktreeConfig,
    pub verify: Verify,
    /// Attempts of an item before it goes to the dead letter lane; a queue or an item may override it.
    pub max_attempts: u32,
    /// Returns of an item, which use no attempt, before a person is asked.
    pub max_returns: u32,
    /// How long an item waits for a person or its children before it is dead; 0: forever. A queue or an item may
    /// override it.
    pub max_wait: Period,
    /// Reviewers of items and queues that name none: roles, or `person`.
    pub review: Vec<String>,
    /// Rejections of an item's work before it is given up.
    pub rounds: u32,
    /// Limits of each run, and of many runs together.
    pub budget: Caps,
    pub children: Children,
    pub plan: PlanConfig,
    pub ask: AskConfig,
    /// Thresholds at which `tavern-watch` reports trouble in a run.
    pub watch: WatchRules,
    /// Rules that forbid agents' actions, by name.
    pub rules: BoardRules,
    /// Channels that notify people, by name.
    pub notify: BTreeMap<String, Channel>,
    pub archive: Archive,
    pub runs: Runs,
    /// An agent's behavior when its queues are empty; a queue may override it.
    pub empty_behavior: EmptyBehavior,
    /// Environment variables passed to commands and agents, besides those that every program gets.
    pub pass: Pass,
    /// Accounts that items may need, by name.
    pub accounts: BTreeMap<String, Account>,
    pub roles: BTreeMap<String, Role>,
    pub runners: BTreeMap<String, RunnerConfig>,
    pub outcomes: Outcomes,
    /// The agents' names, taken in this order.
    pub names: Vec<String>,
}

/// The check that a user is signed in to an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// A shell command that exits with 0 if signed in.
    pub check: String,
    /// The command that signs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Where verified and approved work is merged to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Integration {
    pub branch: String,
}

/// Handling of changes that an agent left uncommitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dirty {
    /// They are committed for it.
    #[default]
    Commit,
    /// The report is refused.
    Refuse,
}

/// Setup and removal of worktrees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorktreeConfig {
    /// A shell command run in each new worktree; empty: none.
    pub setup: String,
    /// Globs of untracked files copied from the main work tree.
    pub copy: Vec<String>,
    /// Time limit of `setup`; 0: none.
    pub timeout: Period,
    /// Whether worktrees stay after the item's end.
    pub keep: bool,
}

/// When ended items move from the board's queues to their archives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Archive {
    /// Age since completion; 0: age does not matter.
    pub after: Period,
    /// Number of the latest ended items that stay in each queue; 0: the number does not matter.
    pub keep: u32,
    /// Whether dead items are archived too.
    pub dead: bool,
}

/// How long files of merged runs are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Runs {
    /// Age since the run's end; 0: age does not matter.
    pub keep: Period,
    /// Total size, keeping the youngest; 0: size does not matter.
    pub size: Size,
}

/// How far items may be broken up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Children {
    /// Levels below an item that a person added.
    pub depth: u32,
    /// Children of one item.
    pub most: u32,
    /// Children that runs may add in a day, of all items together.
    pub day: u32,
}

/// Handling of a planner's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlanConfig {
    /// The status of the planned items: pending, or draft until a person releases them.
    pub lane: PlanLane,
    /// The most items of one plan.
    pub most: u32,
    /// Events that wake an idle planner.
    pub wake: Vec<WakeCause>,
}

/// Settings of the agents that answer the questions of `tavern-ask`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AskConfig {
    /// The role that answers questions; `None`: only the search answers.
    pub role: Option<String>,
}

/// The status in which planned items begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanLane {
    #[default]
    Pending,
    Draft,
}

/// How `done_when` commands run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Verify {
    /// Time limit of each command; 0: none.
    pub timeout: Period,
    /// How much output of each command is kept.
    pub output: Size,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            version: VERSION,
            base: None,
            integration: Integration::default(),
            lease: Period::minutes(2),
            limit: 10,
            free_disk: Size::mib(512),
            dirty: Dirty::Commit,
            grace: Period::seconds(10),
            worktree: WorktreeConfig::default(),
            verify: Verify::default(),
            max_attempts: 3,
            max_returns: 20,
            max_wait: Period::seconds(0),
            review: Vec::new(),
            rounds: 5,
            budget: Caps::default(),
            children: Children::default(),
            plan: PlanConfig::default(),
            ask: AskConfig::default(),
            watch: WatchRules::default(),
            rules: BoardRules::new(),
            notify: BTreeMap::new(),
            archive: Archive::default(),
            runs: Runs::default(),
            empty_behavior: EmptyBehavior::Idle,
            pass: Pass::default(),
            accounts: BTreeMap::new(),
            roles: Role::built_in(),
            runners: RunnerConfig::built_in(),
            outcomes: Outcomes::default(),
            names: NAMES.split_whitespace().map(str::to_owned).collect(),
        }
    }
}

/// Names of Tolkien's characters, short and easy to type.
const NAMES: &str = "Frodo Sam Merry Pippin Bilbo Rosie Gandalf Aragorn Legolas Gimli \
    Boromir Faramir Eowyn Eomer Theoden Arwen Elrond Galadriel Celeborn Haldir \
    Treebeard Bombadil Goldberry Radagast Beorn Thorin Balin Dwalin Fili Kili \
    Bofur Bombur Dori Nori Ori Oin Gloin Bard Elanor Hamfast";

impl Default for Integration {
    fn default() -> Integration {
        Integration {
            branch: "tavern/integration".to_owned(),
        }
    }
}

impl Default for WorktreeConfig {
    fn default() -> WorktreeConfig {
        WorktreeConfig {
            setup: String::new(),
            copy: Vec::new(),
            timeout: Period::minutes(10),
            keep: false,
        }
    }
}

impl Default for Runs {
    fn default() -> Runs {
        Runs {
            keep: Period::minutes(30 * 24 * 60),
            size: Size::mib(1024),
        }
    }
}

impl Default for Archive {
    fn default() -> Archive {
        Archive {
            after: Period::minutes(30 * 24 * 60),
            keep: 200,
            dead: false,
        }
    }
}

impl Default for PlanConfig {
    fn default() -> PlanConfig {
        PlanConfig {
            lane: PlanLane::Pending,
            most: 30,
            wake: Vec::new(),
        }
    }
}

impl Default for Children {
    fn default() -> Children {
        Children {
            depth: 3,
            most: 20,
            day: 100,
        }
    }
}

impl Default for Verify {
    fn default() -> Verify {
        Verify {
            timeout: Period::minutes(10),
            output: Size::kib(64),
        }
    }
}

/// Why the configuration could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("can't read `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Flawed(Box<Flaw>),
}

impl ConfigError {
    /// Returns a hint at the next command.
    pub fn hint(&self) -> Option<String> {
        match self {
            ConfigError::Read { path, source }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                Some(format!("check its permissions: ls -l {}", path.display()))
            }
            ConfigError::Read { .. } => None,
            ConfigError::Flawed(flaw) => flaw.hint.clone(),
        }
    }
}

impl Config {
    /// Loads the configuration of the board in `dir`; the defaults if there is no file.
    pub fn load(dir: &Path) -> Result<Config, ConfigError> {
        Ok(Config::load_with_text(dir)?.0)
    }

    /// Like `Config::load`, but also returns the file's text; empty if there is no file.
    pub fn load_with_text(dir: &Path) -> Result<(Config, String), ConfigError> {
        let path = dir.join(FILE);
        match read_saved(&path) {
            Ok(text) => Ok((Config::parse(&text, &path)?, text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok((Config::default(), String::new()))
            }
            Err(source) => Err(ConfigError::Read { path, source }),
        }
    }

    /// Returns true if the runner executes the item's own script, which a person wrote.
    pub fn runs_scripts(&self, runner: &str) -> bool {
        self.runners
            .get(runner)
            .is_some_and(|entry| entry.kind == RunnerKind::Shell)
    }

    /// Returns the result that the task should have, as set by it, its queue, or its role.
    pub fn expected(&self, task: &Task, role: &str) -> Option<Expected> {
        task.result
            .or_else(|| self.roles.get(role).and_then(|role| role.result))
    }

    /// Returns the roles, grouped by their agents' tasks.
    pub fn known_roles(&self) -> Roles {
        let named = |reviews: bool| {
            let roles = self
                .roles
                .iter()
                .filter(|(_, role)| (role.does == Does::Review) == reviews);
            roles.map(|(name, _)| name.clone()).collect()
        };
        Roles {
            working: named(false),
            reviewing: named(true),
            approving: self.review.clone(),
        }
    }

    /// Parses the settings in `text` over the defaults: mappings merge key by key, other values replace. `path` is used
    /// only in messages.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        let flawed = |flaw: Flaw| ConfigError::Flawed(Box::new(flaw));
        let from_yaml = |error: YamlError| flawed(Flaw::from_yaml(path.to_owned(), text, &error));
        let is_empty = text
            .lines()
            .all(|line| line.trim_start().is_empty() || line.trim_start().starts_with('#'));
        if is_empty {
            return Ok(Config::default());
        }
        let settings =
            LazyCell::new(|| serde_yaml::to_value(Config::default()).unwrap_or_default());
        let is_setting = |key: &str| settings.get(key).is_some();
        let orphan = |reading| Flaw::of_orphan(path, text, reading, is_setting).map(flawed);
        if let Some(orphan) = orphan(Reading::Untried) {
            return Err(orphan);
        }
        let set = yaml::read::<Value>(text);
        let has_null = set.as_ref().is_ok_and(has_null);
        let config = set.and_then(|set| {
            let defaults = serde_yaml::to_value(Config::default())?;
            let merged = merged(defaults, with_kinds(with_coders_runner(set)));
            Ok(serde_yaml::from_value::<Config>(merged)?)
        });
        // The text itself is parsed again: errors in a merged value have no place, and merging turns a null into the
        // default.
        if config.is_err() || has_null {
            if config.is_err()
                && let Some(orphan) = orphan(Reading::Failed)
            {
                return Err(orphan);
            }
            yaml::read::<Option<Config>>(text).map_err(from_yaml)?;
        }
        let mut config = config.map_err(from_yaml)?;
        match config.fault() {
            None => {
                for role in config.roles.values_mut() {
                    role.budget = role.budget.or(&config.budget.run);
                }
                Ok(config)
            }
            Some((keys, message, hint)) => Err(flawed(Flaw::at(
                path.to_owned(),
                text,
                locate(text, &keys),
                message,
                Some(hint),
            ))),
        }
    }

    /// Returns a fault that only the whole configuration shows: the path of keys, the message and a hint.
    fn fault(&self) -> Option<(Vec<&str>, String, String)> {
        if self.version != VERSION {
            let message = format!("unsupported version {} of this file", self.version);
            return Some((
                vec!["version"],
                message,
                format!("write `version: {VERSION}`, or use a newer Tavern"),
            ));
        }
        for (name, period) in [("lease", self.lease), ("grace", self.grace)] {
            if period.duration().as_secs() < 1 {
                return Some((
                    vec![name],
                    format!("`{name}` is less than a second"),
                    format!("try `{name}: 10s`"),
                ));
            }
        }
        for (name, number) in [
            ("limit", self.limit),
            ("max_attempts", self.max_attempts),
            ("rounds", self.rounds),
        ] {
            if number == 0 {
                let hint = "write at least 1; to stop all work, put a file `PAUSE` beside this one";
                return Some((
                    vec![name],
                    format!("`{name}: 0` would stop all work"),
                    hint.to_owned(),
                ));
            }
        }
        if let Some((scope, measure)) = self.budget.fault() {
            return Some((
                vec!["budget", scope, measure.as_str()],
                not_an_amount(measure.as_str()),
                AMOUNTS_ARE.to_owned(),
            ));
        }
        for (name, rule) in &self.rules {
            if rule.is_empty() {
                let hint = "set `paths`, `commands`, `lines` or `acts`".to_owned();
                return Some((
                    vec!["rules", name],
                    format!("the rule `{name}` forbids nothing"),
                    hint,
                ));
            }
        }
        if let Some((name, fault, hint)) = self
            .rules
            .iter()
            .find_map(|(name, rule)| rule.fault().map(|(fault, hint)| (name, fault, hint)))
        {
            return Some((
                vec!["rules", name],
                format!("the rule `{name}` has {fault}"),
                hint.to_owned(),
            ));
        }
        for (name, channel) in &self.notify {
            if let Some((fault, hint)) = channel.fault() {
                return Some((
                    vec!["notify", name],
                    format!("`{name}` {fault}"),
                    hint.to_owned(),
                ));
            }
        }
        if let Some(name) = self.pass.fault() {
            return Some((vec!["pass"], odd_name(name), NAMES_ARE.to_owned()));
        }
        for (name, runner) in &self.runners {
            if let Some(odd) = runner.pass.fault() {
                return Some((
                    vec!["runners", name, "pass"],
                    odd_name(odd),
                    NAMES_ARE.to_owned(),
                ));
            }
            if let Some((fault, hint)) = runner.fault() {
                return Some((
                    vec!["runners", name],
                    format!("runner `{name}` {fault}"),
                    hint.to_owned(),
                ));
            }
        }
        // A role that names no runner inherits the coder's, so the coder is checked first.
        for (name, role) in self
            .roles
            .get_key_value("coder")
            .into_iter()
            .chain(&self.roles)
        {
            if !self.runners.contains_key(&role.runner) {
                let known = self.runners.keys().map(String::as_str);
                let hint = nearest(&role.runner, known.clone()).map_or_else(
                    || {
                        format!(
                            "one of: {}; or add it under `runners`",
                            known.collect::<Vec<_>>().join(", ")
                        )
                    },
                    |guess| format!("did you mean `{guess}`?"),
                );
                return Some((
                    vec!["roles", name, "runner"],
                    format!("no runner `{}`", role.runner),
                    hint,
                ));
            }
            for (key, amount) in [("usd", role.budget.usd), ("minutes", role.budget.minutes)] {
                if !amount.is_none_or(is_amount) {
                    return Some((
                        vec!["roles", name, "budget", key],
                        not_an_amount(key),
                        AMOUNTS_ARE.to_owned(),
                    ));
                }
            }
            if role.network != Network::All && !role.sandbox {
                let message = "network isolation needs a sandbox".to_owned();
                return Some((
                    vec!["roles", name, "network"],
                    message,
                    "write `sandbox: true` beside it".to_owned(),
                ));
            }
        }
        for name in &self.review {
            let is_known = name == PERSON || name == "none" || name.parse::<u32>().is_ok();
            if !is_known
                && self
                    .roles
                    .get(name)
                    .is_none_or(|role| role.does != Does::Review)
            {
                let reviews = self
                    .roles
                    .iter()
                    .filter(|(_, role)| role.does == Does::Review);
                let roles: Vec<&str> = reviews.map(|(name, _)| name.as_str()).collect();
                let hint = format!(
                    "one of: {}, {PERSON}; or set `does: review` for that role",
                    roles.join(", ")
                );
                return Some((vec!["review"], format!("no role `{name}` reviews"), hint));
            }
        }
        if let Some(name) = &self.ask.role
            && self
                .roles
                .get(name)
                .is_none_or(|role| role.does != Does::Answer)
        {
            let hint =
                "the built-in role `answerer`; or set `does: answer` for that role".to_owned();
            return Some((
                vec!["ask", "role"],
                format!("no role `{name}` answers"),
                hint,
            ));
        }
        let mut seen = HashSet::new();
        for name in &self.names {
            if !is_agent_name(name) {
                let hint =
                    "letters, digits, `-` and `_`, beginning with a letter: it is a file name too";
                return Some((
                    vec!["names"],
                    format!("`{name}` can't be an agent's name"),
                    hint.to_owned(),
                ));
            }
            if !seen.insert(name.to_lowercase()) {
                return Some((
                    vec!["names"],
                    format!("duplicate name `{name}`"),
                    "remove one".to_owned(),
                ));
            }
        }
        None
    }
}

const NAMES_ARE: &str =
    "names of variables, such as [DATABASE_URL, \"AWS_*\"]: a `*` stands at the end";

const AMOUNTS_ARE: &str = "write a number from 0, such as 2.50, or remove the key for no limit";

fn not_an_amount(key: &str) -> String {
    format!("invalid amount for `{key}`")
}

fn odd_name(name: &str) -> String {
    format!("`{name}` in `pass` is not a variable name")
}

/// Returns true if `name` is valid for an agent. Names become file names and parts of trailers.
pub fn is_agent_name(name: &str) -> bool {
    name.len() <= 40
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Gives roles without a runner the coder's runner.
fn with_coders_runner(mut set: Value) -> Value {
    let Some(runner) = set
        .get("roles")
        .and_then(|roles| roles.get("coder")?.get("runner"))
        .cloned()
    else {
        return set;
    };
    let Some(roles) = set.get_mut("roles").and_then(Value::as_mapping_mut) else {
        return set;
    };
    let built_in = Role::built_in().into_keys().map(Value::from);
    let names: Vec<Value> = roles.keys().cloned().chain(built_in).collect();
    for name in names {
        let role = roles
            .entry(name)
            .or_insert_with(|| Value::Mapping(Mapping::new()));
        if role.is_null() {
            *role = Value::Mapping(Mapping::new());
        }
        if let Some(role) = role.as_mapping_mut() {
            role.entry("runner".into())
                .or_insert_with(|| runner.clone());
        }
    }
    set
}

/// Gives runners with a command line of their own, and no kind, the kind `command`, also under the name of a
/// built-in one.
fn with_kinds(mut set: Value) -> Value {
    let runners = set.get_mut("runners").and_then(Value::as_mapping_mut);
    for (_, runner) in runners.into_iter().flatten() {
        if let Some(runner) = runner.as_mapping_mut()
            && runner.contains_key("command")
        {
            runner.entry("kind".into()).or_insert("command".into());
        }
    }
    set
}

/// Reads a file that an editor may be saving in place: it is emptied, then written in pieces, and half of it would be
/// other settings. A fresh file is read again until it is at rest, or a second has passed.
#[expect(clippy::disallowed_methods, reason = "an editor is waited for")]
fn read_saved(path: &Path) -> io::Result<String> {
    let began = clock::instant();
    loop {
        let text = files::read_text(path)?;
        let age = path
            .metadata()
            .and_then(|file| file.modified())
            .ok()
            .and_then(clock::since);
        let rest = if text.is_empty() { SAVE } else { REST };
        if age.is_none_or(|age| age >= rest) || began.elapsed() >= SAVE {
            return Ok(text);
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Sequence(values) => values.iter().any(has_null),
        Value::Mapping(values) => values.values().any(has_null),
        _ => false,
    }
}

fn merged(under: Value, over: Value) -> Value {
    match (under, over) {
        (Value::Mapping(mut under), Value::Mapping(over)) => {
            for (key, value) in over {
                let value = match under.remove(&key) {
                    Some(old) => merged(old, value),
                    None => value,
                };
                under.insert(key, value);
            }
            Value::Mapping(under)
        }
        (under, Value::Null) => under,
        (_, over) => over,
    }
}

/// Returns the place of the last of `keys` that is found, each searched below and further in than the previous one.
/// Reads block style only; a mapping in braces is found by the key it belongs to.
fn locate(text: &str, keys: &[&str]) -> Option<usize> {
    let mut keys = keys.iter();
    let mut key = keys.next()?;
    let (mut found, mut least, mut start) = (None, 0, 0);
    for line in text.split_inclusive('\n') {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        let at = start + indent;
        start += line.len();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if indent < least {
            break;
        }
        let is_key = content
            .strip_prefix(*key)
            .is_some_and(|rest| rest.starts_with(':'));
        if is_key && (least > 0 || indent == 0) {
            found = Some(at);
            let Some(next) = keys.next() else { break };
            key = next;
            least = indent + 1;
        }
    }
    found
}

/// Returns the settings without blank and comment lines; `None` if these lines can't be removed safely, or nothing is
/// set, as in a template.
pub fn without_comments(text: &str) -> Option<String> {
    let says = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let rest = text
        .lines()
        .filter(says)
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    let settings = |text: &str| yaml::read::<Value>(text).ok().filter(Value::is_mapping);
    (settings(&rest)? == settings(text)?).then_some(rest)
}

#[cfg(test)]
mod tests;
