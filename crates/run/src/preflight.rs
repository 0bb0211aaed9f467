//! Checks whether work can begin here and now, before anything is claimed. A missing prerequisite costs no attempt
//! then.
//!
//! Looks at files and at the disk and starts no program, with two exceptions: [`begin`] asks the agent program for its
//! version, and accounts that items need are checked before a look begins. A look may happen under the board's lock. An
//! unknown state counts as ready, since a false alarm would block work.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{StatVfs, statvfs};

use super::environment;
use super::error::Error;
use super::prompt_context;
use super::sandbox;
use super::spending::spending;
use super::tracked_files::refuse_tracked;
use super::trust::Trust;
use super::unmerged_work::missing_work;
use super::workspace::{Obeyed, Workspace, runner_named, runner_that_obeys};
use crate::runner::{Access, Ready};
use tavern_core::cap::Spending;
use tavern_core::document::{Document, Item};
use tavern_core::eligible::{DEFAULT_ROLE, Lack, NotReady, Untrusted, place_of};
use tavern_core::event::Purpose;
use tavern_core::suggestion::nearest;
use tavern_core::task::{Task, TaskId};
use tavern_store::config::{Account, Config, Role};
use tavern_store::{Content, ItemIndex, Quota};
use tavern_sys::clock;
use tavern_sys::process::{CommandSpec, find_program, first_program, run_command};

/// One look. Its findings are cached, so it must not be kept for long.
pub struct Preflight<'a> {
    config: &'a Config,
    /// The board's root: its disk is checked, and programs below it may be made by the work itself.
    root: Option<&'a Path>,
    /// `--runner`: overrides the runner of items and queues.
    runner: Option<&'a str>,
    /// Whether the runner is named later: nothing is started, and no config.yaml names one.
    is_runner_open: bool,
    /// Closed runners.
    closed: Vec<(String, Quota)>,
    /// The workspace and the items' commits, to look up the work that an item depends on.
    workspace: Option<(&'a Workspace, ItemIndex<'a>)>,
    programs: RefCell<HashMap<String, bool>>,
    places: RefCell<HashMap<String, Result<(), NotReady>>>,
    /// Whether the repository's settings for the program of a runner are trusted, if it obeys them.
    obeyed: RefCell<HashMap<String, Result<(), Untrusted>>>,
    /// `None` without a workspace: nothing is started then.
    trust: Option<Trust<'a>>,
    /// `None` if nothing is capped.
    spending: Option<Spending>,
}

impl<'a> Preflight<'a> {
    pub fn of(workspace: &'a Workspace) -> Preflight<'a> {
        let (runner, closed) = (
            workspace.runner.as_deref(),
            workspace.board.quotas(clock::now()),
        );
        let spending = spending(workspace);
        Preflight {
            runner,
            is_runner_open: false,
            closed,
            spending,
            ..Preflight::of_parts(&workspace.config, Some(workspace))
        }
    }

    /// The same for what only shows items: without a config.yaml `drain --runner` names the agent program.
    pub fn to_show(workspace: &'a Workspace) -> Preflight<'a> {
        Preflight {
            is_runner_open: workspace.board.is_volatile(),
            ..Preflight::of(workspace)
        }
    }

    /// For task files that may belong to no board; closed runners are ignored.
    pub fn of_parts(config: &'a Config, workspace: Option<&'a Workspace>) -> Preflight<'a> {
        let (programs, places, obeyed) = Default::default();
        let root = workspace.map(|workspace| workspace.board.root());
        let trust = workspace.map(Trust::of);
        workspace.into_iter().for_each(look_at_accounts);
        let is_runner_open = workspace.is_none_or(|workspace| workspace.board.is_volatile());
        let workspace = workspace.map(|workspace| (workspace, ItemIndex::of(&workspace.board)));
        Preflight {
            config,
            root,
            runner: None,
            is_runner_open,
            closed: Vec::new(),
            workspace,
            programs,
            places,
            obeyed,
            trust,
            spending: None,
        }
    }

    /// Checks the needs of every run of `role`, independent of the item.
    pub fn surroundings(&self, role: &str) -> Result<(), NotReady> {
        let look = || {
            self.disk()?;
            self.set_up()?;
            self.repository()?;
            let Some(settings) = self.config.roles.get(role) else {
                return Ok(());
            };
            sandbox::check(settings)?;
            self.runner(self.runner.unwrap_or(&settings.runner), settings)
                .map(drop)
        };
        self.places
            .borrow_mut()
            .entry(role.to_owned())
            .or_insert_with(look)
            .clone()
    }

    /// Checks that there is disk space for worktrees and logs.
    pub fn disk(&self) -> Result<(), NotReady> {
        let least = self.config.free_disk;
        // A file system that reports no figures does not count as full.
        let Some((root, disk)) = self.root.and_then(|root| Some((root, statvfs(root).ok()?)))
        else {
            return Ok(());
        };
        let place = root.display();
        if let Some(resource) = used_up(&disk) {
            return Err(NotReady::new(
                format!("no {resource} left on the disk of {place}"),
                "make room",
            ));
        }
        if disk.f_bavail.saturating_mul(disk.f_frsize) < least.bytes() {
            let message = format!("less than {least} are free on the disk of {place}");
            return Err(NotReady::new(
                message,
                "make room, or set `free_disk` in .tavern/config.yaml",
            ));
        }
        Ok(())
    }

    /// Checks the branch that work begins at. A pull may have brought files that only Tavern may write.
    fn repository(&self) -> Result<(), NotReady> {
        let Some((workspace, _)) = &self.workspace else {
            return Ok(());
        };
        refuse_tracked(&workspace.board, workspace.repository()?)?;
        workspace.known_base().map_err(NotReady::from)
    }

    /// Checks the program that `worktree.setup` begins with.
    pub fn set_up(&self) -> Result<(), NotReady> {
        let command = &self.config.worktree.setup;
        self.missing(command).map_or(Ok(()), |program| {
            let place = place_of(&program);
            let message =
                format!("`{program}`, which `worktree.setup` begins with, is not {place}");
            Err(NotReady::new(
                message,
                format!("install {program}, or fix `worktree.setup` in .tavern/config.yaml"),
            ))
        })
    }

    /// Checks the agent program of the runner `name`.
    pub fn runner(&self, name: &str, role: &Role) -> Result<Ready, NotReady> {
        let runner = runner_named(self.config, name, role)?;
        runner.check(&environment::of_agents(
            self.config,
            name,
            runner.as_ref(),
            Vec::new(),
        ))
    }

    /// Returns the lack that keeps agents from doing `purpose` with an item of `queue`, by config.yaml and this
    /// machine. The board's rules (dependencies, permission, roles) are not checked. `role` is the reviewer's role;
    /// `None`: all of them.
    pub fn ready(
        &self,
        queue: &str,
        document: &Document<'_>,
        item: &Item<'_>,
        purpose: Purpose,
        role: Option<&str>,
    ) -> Result<(), Lack> {
        self.begun_here(document, item, purpose)?;
        self.uncapped(queue, item.id.as_ref())?;
        match purpose {
            Purpose::Work => self.work(document, item),
            Purpose::Review => self.review(&document.task_of(item), role),
            Purpose::Chat => Ok(()),
        }
    }

    /// Checks the caps of the item, and of all runs that count with it. An item without ID has had no run.
    pub fn uncapped(&self, queue: &str, item: Option<&TaskId>) -> Result<(), Lack> {
        let nobody = TaskId::nobody();
        let reached = self
            .spending
            .as_ref()
            .and_then(|all| all.reached(item.unwrap_or(&nobody), queue));
        reached.map_or(Ok(()), |cap| Err(cap.into()))
    }

    /// Checks all that work by hand needs too, without an agent program: trust, the work it builds on, and programs.
    pub fn of_anybody(
        &self,
        document: &Document<'_>,
        item: &Item<'_>,
        purpose: Purpose,
    ) -> Result<(), Lack> {
        self.begun_here(document, item, purpose)?;
        if purpose == Purpose::Work {
            self.has_programs(&document.task_of(item))
        } else {
            Ok(())
        }
    }

    /// Checks that the item is trusted, and that the work that it builds on is here.
    fn begun_here(
        &self,
        document: &Document<'_>,
        item: &Item<'_>,
        purpose: Purpose,
    ) -> Result<(), Lack> {
        self.trusted(document, item)?;
        if purpose == Purpose::Work && !(item.after.is_empty() && item.after_names.is_empty()) {
            let mut task = document.task_of(item);
            let named = document.named_by(item).unwrap_or_default().into_iter();
            task.after
                .extend(named.filter_map(|at| document.item(at).id.clone()));
            self.work_is_here(&task)?;
        }
        Ok(())
    }

    /// Checks that the work that the task depends on is on the integration branch here.
    fn work_is_here(&self, task: &Task) -> Result<(), Lack> {
        let workspace = self.workspace.as_ref().filter(|_| task.worktree);
        let missing = workspace.and_then(|(workspace, index)| {
            task.after
                .iter()
                .find_map(|id| missing_work(workspace, id, index))
        });
        missing.map_or(Ok(()), |missing| Err(Lack::NotReady(missing)))
    }

    /// Checks that the needs of `task` are met: the work that it depends on, and programs.
    pub fn has_needs(&self, task: &Task) -> Result<(), Lack> {
        self.work_is_here(task)?;
        self.has_programs(task)
    }

    /// Checks that the settings and the item's text are trusted.
    fn trusted(&self, document: &Document<'_>, item: &Item<'_>) -> Result<(), Lack> {
        let is_trusted = |trust: &Trust<'_>| {
            trust
                .front(document)
                .and_then(|()| trust.item(&document.task_of(item)))
        };
        self.trust
            .as_ref()
            .map_or(Ok(()), is_trusted)
            .map_err(Lack::NotTrusted)
    }

    /// Returns `Preflight::ready` for agents of `role`, in the form that a claim takes.
    pub fn of_role<'r>(
        &'r self,
        role: &'r str,
    ) -> impl Fn(&str, &Document<'_>, &Item<'_>, Purpose) -> Result<(), Lack> + 'r {
        move |queue, document, item, purpose| self.ready(queue, document, item, purpose, Some(role))
    }

    /// Checks the repository's settings for the agent program, which nothing keeps it from obeying.
    fn obeys_trusted(&self, runner: &str, role: &Role) -> Result<(), Lack> {
        let (Some(trust), Some(root)) = (&self.trust, self.root) else {
            return Ok(());
        };
        let mut known = self.obeyed.borrow_mut();
        let look = || {
            let apart = runner_that_obeys(self.config, runner, role, Obeyed::UserAlone).ok();
            let led = apart.filter(|apart| apart.is_led_by_repository());
            led.map_or(Ok(()), |led| trust.program(root, led.obeyed_files()))
        };
        let found = known.entry(runner.to_owned()).or_insert_with(look);
        found.clone().map_err(Lack::NotTrusted)
    }

    fn work(&self, document: &Document<'_>, item: &Item<'_>) -> Result<(), Lack> {
        let (front, block) = (document.front(), document.block(item));
        let role = item
            .role
            .as_deref()
            .or(front.role.as_deref())
            .unwrap_or(DEFAULT_ROLE);
        let Some(settings) = self.config.roles.get(role) else {
            return Ok(());
        };
        // Most items have no such key, and a queue may have ten thousand.
        let has_keys = item.metadata.is_some() || item.block.is_some();
        let says = front.runner.is_some()
            || has_keys
                && ["done_when", "needs", "runner"]
                    .iter()
                    .any(|key| block.contains(key));
        let task = says.then(|| document.task_of(item));
        let named = task.as_ref().and_then(|task| task.runner.as_deref());
        let runner = self.runner.or(named).unwrap_or(&settings.runner);
        if !self.config.runners.contains_key(runner) {
            return Err(Lack::NoRunner(runner.to_owned()));
        }
        if self.config.runs_scripts(runner) && item.shell.is_none() && !self.is_runner_open {
            return Err(Lack::NoScript {
                runner: runner.to_owned(),
                role: role.to_owned(),
                indent: item.script_indent(block),
            });
        }
        self.obeys_trusted(runner, settings)?;
        self.is_open(runner)?;
        task.map_or(Ok(()), |task| self.item(&task))
    }

    /// Checks further needs of `task`: the runner that it names, and its programs.
    pub fn item(&self, task: &Task) -> Result<(), Lack> {
        let role = self
            .config
            .roles
            .get(task.role.as_deref().unwrap_or(DEFAULT_ROLE));
        if let (None, Some(role), Some(name)) = (self.runner, role, &task.runner)
            && *name != role.runner
        {
            self.runner(name, role).map_err(Lack::NotReady)?;
        }
        self.has_programs(task)
    }

    /// Checks the task's `needs`, and the programs that its `done_when` commands begin with.
    fn has_programs(&self, task: &Task) -> Result<(), Lack> {
        for name in &task.needs {
            let found = match name.strip_prefix('$') {
                Some(variable) => self.variable(variable, task),
                None => self.named(name),
            };
            found.map_err(Lack::NotReady)?;
        }
        for command in &task.done_when {
            if let Some(program) = self.missing(command) {
                return Err(Lack::Program {
                    program,
                    command: command.clone(),
                });
            }
        }
        Ok(())
    }

    fn review(&self, task: &Task, role: Option<&str>) -> Result<(), Lack> {
        let open = task.open_reviews(&task.reviewers(&self.config.review));
        let roles = role.map_or(open, |role| vec![role.to_owned()]);
        for role in roles {
            let Some(settings) = self.config.roles.get(&role) else {
                continue;
            };
            let runner = self.runner.unwrap_or(&settings.runner);
            if self.config.runs_scripts(runner) {
                return Err(Lack::NoJudge {
                    runner: runner.to_owned(),
                    role,
                });
            }
            self.is_open(runner)?;
        }
        Ok(())
    }

    fn is_open(&self, runner: &str) -> Result<(), Lack> {
        let Some((_, quota)) = self.closed.iter().find(|(closed, _)| closed == runner) else {
            return Ok(());
        };
        let (until, needs_person) = (quota.closed_until, quota.needs_person);
        Err(Lack::Closed {
            runner: runner.to_owned(),
            until,
            needs_person,
        })
    }

    /// Checks that a variable that `task` needs is set for its agent. Never shows its value.
    fn variable(&self, name: &str, task: &Task) -> Result<(), NotReady> {
        let Some(role) = self
            .config
            .roles
            .get(task.role.as_deref().unwrap_or(DEFAULT_ROLE))
        else {
            return Ok(());
        };
        let runner = self
            .runner
            .or(task.runner.as_deref())
            .unwrap_or(&role.runner);
        let program = runner_named(self.config, runner, role)?;
        let mut env =
            environment::of_agents(self.config, runner, program.as_ref(), Vec::new()).into_iter();
        if env.any(|(passed, value)| passed == name && !value.is_empty()) {
            return Ok(());
        }
        let is_set = std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_passed =
            environment::pass_of_agents(self.config, runner, program.as_ref()).lets(name);
        let set = format!("set it, and start this again: export {name}=…");
        let pass = format!("name it in .tavern/config.yaml: `pass: [{name}]`");
        let (how, hint) = match (is_set, is_passed) {
            (true, _) => ("not passed on", pass),
            (false, true) => ("not set", set),
            (false, false) => ("neither set nor passed on", format!("{pass}; then {set}")),
        };
        Err(NotReady::new(
            format!("it needs `${name}`, which is {how}"),
            hint,
        ))
    }

    /// Checks that an account, program or file that an item needs is there.
    fn named(&self, name: &str) -> Result<(), NotReady> {
        if self.config.accounts.contains_key(name) {
            return self
                .workspace
                .as_ref()
                .map_or(Ok(()), |(workspace, _)| workspace.accounts.found(name));
        }
        if let Some(near) = nearest(name, self.config.accounts.keys().map(String::as_str))
            .filter(|_| !is_there(name))
        {
            let message = format!("it needs `{name}`, which is neither an account nor on PATH");
            return Err(NotReady::new(message, format!("did you mean `{near}`?")));
        }
        let (is_here, hint) = if name.contains('/') {
            (
                self.root.is_none_or(|root| root.join(name).exists()),
                "make it",
            )
        } else {
            (
                is_there(name),
                "install it; a file is written with a `/`, such as ./.env",
            )
        };
        let lack = || {
            NotReady::new(
                format!("it needs `{name}`, which is not {}", place_of(name)),
                hint,
            )
        };
        is_here.then_some(()).ok_or_else(lack)
    }

    /// Returns the program that `command` begins with, if it is known and missing.
    fn missing(&self, command: &str) -> Option<String> {
        let program = first_program(command)?;
        // The work itself may make it.
        if self
            .root
            .is_some_and(|root| Path::new(program).starts_with(root))
        {
            return None;
        }
        let is_there = *self
            .programs
            .borrow_mut()
            .entry(program.to_owned())
            .or_insert_with_key(|program| is_there(program));
        (!is_there).then(|| program.to_owned())
    }
}

/// Runs the checks of accounts that a queue mentions, if their last result is old. Does nothing if the settings are not
/// trusted.
fn look_at_accounts(workspace: &Workspace) {
    let due = |name: &&String| workspace.accounts.is_due(name);
    let due: Vec<&String> = workspace.config.accounts.keys().filter(due).collect();
    if due.is_empty() || Trust::of(workspace).settings().is_err() {
        return;
    }
    let queues = workspace
        .board
        .queues()
        .unwrap_or_default()
        .into_iter()
        .chain(workspace.named.iter().cloned());
    let texts: Vec<Content> = queues
        .filter_map(|queue| Some(workspace.board.read(&queue).ok()?.content))
        .collect();
    for name in due
        .into_iter()
        .filter(|name| texts.iter().any(|text| text.contains(name.as_str())))
    {
        let Account { check, hint } = &workspace.config.accounts[name];
        let spec = CommandSpec {
            env: environment::of_commands(workspace, []),
            inherits: false,
            timeout: ACCOUNT_LIMIT,
            ..CommandSpec::new(check, workspace.board.root())
        };
        // An unknown state counts as ready.
        let Ok(result) = run_command(&spec, &workspace.interrupt) else {
            continue;
        };
        let lack = || {
            let message = format!("it needs account `{name}`: `{check}` {}", result.end);
            NotReady::new(
                message,
                hint.clone().unwrap_or_else(|| format!("see why: {check}")),
            )
        };
        workspace
            .accounts
            .keep(name, result.is_success().then_some(()).ok_or_else(lack));
    }
}

/// How long the check of an account may take.
const ACCOUNT_LIMIT: Duration = Duration::from_secs(30);

/// Returns the exhausted resource of a disk, if nothing can be written. Some file systems report no inode count.
fn used_up(disk: &StatVfs) -> Option<&'static str> {
    match disk {
        StatVfs {
            f_blocks: 1..,
            f_bavail: 0,
            ..
        } => Some("space is"),
        StatVfs {
            f_files: 1..,
            f_favail: 0,
            ..
        } => Some("inodes are"),
        _ => None,
    }
}

/// Returns true if the program may exist. A relative folder in PATH might contain it elsewhere.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let depends = || std::env::split_paths(&path).any(|folder| folder.is_relative());
    find_program(OsStr::new(program)).is_some() || (!program.contains('/') && depends())
}

/// The result of starting an agent program for its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Name and version of the runner.
    pub runner: String,
    /// How it will sign in: a variable or a file, never the key itself.
    pub account: Option<String>,
    /// A doubt that may end the first run, with a hint for the user.
    pub doubt: Option<(String, &'static str)>,
}

impl Tried {
    /// Formats the doubt in one line.
    pub fn doubt_line(&self) -> Option<String> {
        self.doubt
            .as_ref()
            .map(|(doubt, hint)| format!("{doubt}; {hint}"))
    }
}

/// Starts the agent program of the runner `name` for its version, and looks for its account.
pub fn try_out(workspace: &Workspace, name: &str, role: &Role) -> Result<Tried, NotReady> {
    Trust::of(workspace).settings().map_err(Error::from)?;
    let runner = runner_named(&workspace.config, name, role)?;
    let env = environment::of_agents(&workspace.config, name, runner.as_ref(), Vec::new());
    let ready = runner.try_out(&env)?;
    let (account, doubt) = match runner.access(&env) {
        Access::Unknown { looked, hint } => (
            None,
            Some((
                format!("can't tell whether {name} is signed in: {looked}"),
                hint,
            )),
        ),
        Access::Found(by) => (Some(by), None),
        Access::NotAsked => (None, None),
    };
    let version = if ready.version.is_empty() {
        String::new()
    } else {
        format!(" {}", ready.version)
    };
    Ok(Tried {
        runner: format!("{name}{version}"),
        account,
        doubt,
    })
}

/// Runs all checks once, before the first claim of an agent of `role`: reads the templates, and starts the agent
/// program for its version.
pub fn begin(workspace: &Workspace, role: &str) -> Result<Tried, Error> {
    Trust::of(workspace).settings()?;
    let settings = workspace.role(role)?;
    let name = workspace.runner.as_deref().unwrap_or(&settings.runner);
    // An unknown runner name is a typing error.
    runner_named(&workspace.config, name, settings)?;
    Preflight::of(workspace).surroundings(role)?;
    prompt_context::check(workspace, settings)?;
    sandbox::try_out(workspace, settings)?;
    Ok(try_out(workspace, name, settings)?)
}

/// When the templates of a role were last found valid. They are read again only after one has been saved.
#[derive(Debug, Default)]
pub struct Templates(RefCell<Option<Vec<Option<SystemTime>>>>);

impl Templates {
    pub fn check(&self, workspace: &Workspace, role: &Role) -> Result<(), Error> {
        let path = |name: &str| -> PathBuf { workspace.board.path("templates").join(name) };
        let stamp = |name: &str| path(name).metadata().and_then(|file| file.modified()).ok();
        let stamps: Vec<Option<SystemTime>> = prompt_context::templates(role)
            .iter()
            .map(|name| stamp(name))
            .collect();
        if self.0.borrow().as_ref() != Some(&stamps) {
            prompt_context::check(workspace, role)?;
            *self.0.borrow_mut() = Some(stamps);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_without_space_or_inodes() {
        let disk = statvfs("/").expect("it is there");
        for (blocks, available, files, inodes, resource) in [
            (9, 1, 9, 1, None),
            (9, 0, 9, 1, Some("space is")),
            (9, 1, 9, 0, Some("inodes are")),
            (9, 1, 0, 0, None),
            (0, 0, 0, 0, None),
        ] {
            let disk = StatVfs {
                f_blocks: blocks,
                f_bavail: available,
                f_files: files,
                f_favail: inodes,
                ..disk
            };
            assert_eq!(
                used_up(&disk),
                resource,
                "{blocks} {available} {files} {inodes}"
            );
        }
    }
}
