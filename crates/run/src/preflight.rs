//! Could work begin here and now? Asked before anything is claimed, so that no attempt is spent on what a look would have
//! told.
//!
//! Looks at files and at the disk; nothing is started, but by [`begin`], which asks the agent program for its version, and for accounts that
//! items need, before a look begins. A look may be one under the board's lock.
//! It doubts: what can't be told is no hindrance, since a false alarm would keep work from being done at all.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{StatVfs, statvfs};

use super::brief;
use super::error::Error;
use super::sandbox;
use super::site::{Site, runner_named};
use super::spending::spending;
use super::surroundings;
use super::tracked::refuse_tracked;
use super::trust::Trust;
use super::unmerged::missing_work;
use crate::runner::{Access, CommandRunner, Ready};
use tavern_core::cap::Spending;
use tavern_core::document::{Document, Item};
use tavern_core::eligible::{DEFAULT_ROLE, Lack, NotReady, place_of};
use tavern_core::event::Purpose;
use tavern_core::near::nearest;
use tavern_core::task::{Task, TaskId};
use tavern_store::config::{Account, Config, Role};
use tavern_store::{Content, ItemIndex, Quota};
use tavern_sys::clock;
use tavern_sys::process::{CommandSpec, find_program, first_program, run_command};

/// One look: what was found once is not looked for again, so it is not kept for long.
pub struct Preflight<'a> {
    config: &'a Config,
    /// Where the board is: its disk, and the paths that work itself may make.
    root: Option<&'a Path>,
    /// `--runner`: overrides what items and queues say.
    runner: Option<&'a str>,
    /// Runners that are closed.
    closed: Vec<(String, Quota)>,
    /// Where the work of other items is looked for, and their commits.
    site: Option<(&'a Site, ItemIndex<'a>)>,
    programs: RefCell<HashMap<String, bool>>,
    places: RefCell<HashMap<String, Result<(), NotReady>>>,
    /// Without a site nothing is started.
    trust: Option<Trust<'a>>,
    /// Where something is capped.
    spending: Option<Spending>,
}

impl<'a> Preflight<'a> {
    pub fn of(site: &'a Site) -> Preflight<'a> {
        let (runner, closed) = (site.runner.as_deref(), site.board.quotas(clock::now()));
        let spending = spending(site);
        Preflight {
            runner,
            closed,
            spending,
            ..Preflight::of_parts(&site.config, Some(site))
        }
    }

    /// For task files that may belong to no board, whatever is closed.
    pub fn of_parts(config: &'a Config, site: Option<&'a Site>) -> Preflight<'a> {
        let (programs, places) = (RefCell::default(), RefCell::default());
        let root = site.map(|site| site.board.root());
        let trust = site.map(Trust::of);
        site.into_iter().for_each(look_at_accounts);
        let site = site.map(|site| (site, ItemIndex::of(&site.board)));
        Preflight {
            config,
            root,
            runner: None,
            closed: Vec::new(),
            site,
            programs,
            places,
            trust,
            spending: None,
        }
    }

    /// What every run of `role` needs, whatever the item.
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

    /// Room for worktrees and logs.
    pub fn disk(&self) -> Result<(), NotReady> {
        let least = self.config.free_disk;
        // A file system that doesn't tell is none that is full.
        let Some((root, disk)) = self.root.and_then(|root| Some((root, statvfs(root).ok()?)))
        else {
            return Ok(());
        };
        let place = root.display();
        if let Some(what) = used_up(&disk) {
            return Err(NotReady::new(
                format!("no {what} left on the disk of {place}"),
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

    /// The branch that work begins at; and a pull may have brought what is Tavern's own.
    fn repository(&self) -> Result<(), NotReady> {
        let Some((site, _)) = &self.site else {
            return Ok(());
        };
        refuse_tracked(&site.board, site.repository()?)?;
        site.known_base().map_err(NotReady::from)
    }

    /// The program that `worktree.setup` begins with.
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

    /// The agent program of the runner `name`.
    pub fn runner(&self, name: &str, role: &Role) -> Result<Ready, NotReady> {
        let runner = runner_named(self.config, name, role)?;
        runner.check(&surroundings::of_agents(
            self.config,
            name,
            runner.as_ref(),
            Vec::new(),
        ))
    }

    /// What keeps agents from doing `purpose` with the item of `queue`, as config.yaml and this machine are. What the board
    /// says (dependencies, permission, roles) is not looked at. `role` is that of the one who would review; `None`: of all.
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

    /// Its runs, and those that are counted with them, may use more. What has no ID has had no run.
    pub fn uncapped(&self, queue: &str, item: Option<&TaskId>) -> Result<(), Lack> {
        let nobody = TaskId::nobody();
        let reached = self
            .spending
            .as_ref()
            .and_then(|all| all.reached(item.unwrap_or(&nobody), queue));
        reached.map_or(Ok(()), |cap| Err(cap.into()))
    }

    /// What keeps even a person from it, who needs no agent program: nobody trusts it, or what it needs is not here.
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

    /// It is trusted, and the work that it builds on is here.
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

    /// What the task builds on is on the integration branch here.
    fn work_is_here(&self, task: &Task) -> Result<(), Lack> {
        let site = self.site.as_ref().filter(|_| task.worktree);
        let missing = site.and_then(|(site, index)| {
            task.after
                .iter()
                .find_map(|id| missing_work(site, id, index))
        });
        missing.map_or(Ok(()), |missing| Err(Lack::NotReady(missing)))
    }

    /// What `task` needs of whoever works on it is here: the work that it builds on, and programs.
    pub fn has_needs(&self, task: &Task) -> Result<(), Lack> {
        self.work_is_here(task)?;
        self.has_programs(task)
    }

    /// The settings, and what the item says, may be run here.
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

    /// The same for agents of `role`, as a claim asks it.
    pub fn of_role<'r>(
        &'r self,
        role: &'r str,
    ) -> impl Fn(&str, &Document<'_>, &Item<'_>, Purpose) -> Result<(), Lack> + 'r {
        move |queue, document, item, purpose| self.ready(queue, document, item, purpose, Some(role))
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
        // Most items say nothing that could be missing, and a queue may have ten thousand.
        let has_keys = item.metadata.is_some() || item.block.is_some();
        let says = front.runner.is_some()
            || has_keys
                && ["done_when", "needs", "runner"]
                    .iter()
                    .any(|key| block.contains(key));
        let task = says.then(|| document.task_of(item));
        let named = task.as_ref().and_then(|task| task.runner.as_deref());
        let runner = self.runner.or(named).unwrap_or(&settings.runner);
        if !self.config.runners.contains_key(runner) && CommandRunner::preset(runner).is_none() {
            return Err(Lack::NoRunner(runner.to_owned()));
        }
        if self.config.runs_scripts(runner) && item.shell.is_none() {
            return Err(Lack::NoScript {
                runner: runner.to_owned(),
                role: role.to_owned(),
                indent: item.script_indent(block),
            });
        }
        self.is_open(runner)?;
        task.map_or(Ok(()), |task| self.item(&task))
    }

    /// What `task` needs besides: the runner that it names, and its programs.
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

    /// What its `needs` says, and the programs that its `done_when` begins with.
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

    /// The variable that `task` says it needs, as its agent would get it. Its value is nobody's to see.
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
            surroundings::of_agents(self.config, runner, program.as_ref(), Vec::new()).into_iter();
        if env.any(|(passed, value)| passed == name && !value.is_empty()) {
            return Ok(());
        }
        let is_set = std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_passed =
            surroundings::pass_of_agents(self.config, runner, program.as_ref()).lets(name);
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

    /// The account, the program or the file that an item says it needs.
    fn named(&self, name: &str) -> Result<(), NotReady> {
        if self.config.accounts.contains_key(name) {
            return self
                .site
                .as_ref()
                .map_or(Ok(()), |(site, _)| site.accounts.found(name));
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

    /// The program that `command` begins with, if that is told for sure and it is not there.
    fn missing(&self, command: &str) -> Option<String> {
        let program = first_program(command)?;
        // Work may make it.
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

/// Runs the checks of the accounts that a queue speaks of, where what was found is old. Those of settings that nobody trusts are not run.
fn look_at_accounts(site: &Site) {
    let due = |name: &&String| site.accounts.is_due(name);
    let due: Vec<&String> = site.config.accounts.keys().filter(due).collect();
    if due.is_empty() || Trust::of(site).settings().is_err() {
        return;
    }
    let queues = site
        .board
        .queues()
        .unwrap_or_default()
        .into_iter()
        .chain(site.named.iter().cloned());
    let texts: Vec<Content> = queues
        .filter_map(|queue| Some(site.board.read(&queue).ok()?.content))
        .collect();
    for name in due
        .into_iter()
        .filter(|name| texts.iter().any(|text| text.contains(name.as_str())))
    {
        let Account { check, hint } = &site.config.accounts[name];
        let spec = CommandSpec {
            env: surroundings::of_commands(site, []),
            inherits: false,
            timeout: ACCOUNT_LIMIT,
            ..CommandSpec::new(check, site.board.root())
        };
        // What can't be told is no hindrance.
        let Ok(result) = run_command(&spec, &site.interrupt) else {
            continue;
        };
        let lack = || {
            let message = format!("it needs account `{name}`: `{check}` {}", result.end);
            NotReady::new(
                message,
                hint.clone().unwrap_or_else(|| format!("see why: {check}")),
            )
        };
        site.accounts
            .keep(name, result.is_success().then_some(()).ok_or_else(lack));
    }
}

/// How long the check of an account may take.
const ACCOUNT_LIMIT: Duration = Duration::from_secs(30);

/// What there is nothing of on a disk, so that nothing at all can be written. Some have no number of files.
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

/// A PATH with folders that depend on where one is might lead to it there.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let depends = || std::env::split_paths(&path).any(|folder| folder.is_relative());
    find_program(OsStr::new(program)).is_some() || (!program.contains('/') && depends())
}

/// What was found of an agent program by starting it for its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Name and version of the runner.
    pub runner: String,
    /// By what it will be let in, never the key itself.
    pub account: Option<String>,
    /// What is not known, and may end the first run, with what to type.
    pub doubt: Option<(String, &'static str)>,
}

impl Tried {
    /// The doubt in a line for people.
    pub fn doubt_line(&self) -> Option<String> {
        self.doubt
            .as_ref()
            .map(|(doubt, hint)| format!("{doubt}; {hint}"))
    }
}

/// The agent program of the runner `name`, started for its version, and its account.
pub fn try_out(site: &Site, name: &str, role: &Role) -> Result<Tried, NotReady> {
    Trust::of(site).settings().map_err(Error::from)?;
    let runner = runner_named(&site.config, name, role)?;
    let env = surroundings::of_agents(&site.config, name, runner.as_ref(), Vec::new());
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

/// The whole of it, once, before the first claim of an agent of `role`: templates are read, and the agent program is
/// started for its version.
pub fn begin(site: &Site, role: &str) -> Result<Tried, Error> {
    Trust::of(site).settings()?;
    let settings = site.role(role)?;
    let name = site.runner.as_deref().unwrap_or(&settings.runner);
    // A name that nobody knows is a mistake of whoever typed it.
    runner_named(&site.config, name, settings)?;
    Preflight::of(site).surroundings(role)?;
    brief::check(site, settings)?;
    sandbox::try_out(site, settings)?;
    Ok(try_out(site, name, settings)?)
}

/// The templates of a role as they were when they were right; they are read again only when one has been saved since.
#[derive(Debug, Default)]
pub struct Templates(RefCell<Option<Vec<Option<SystemTime>>>>);

impl Templates {
    pub fn check(&self, site: &Site, role: &Role) -> Result<(), Error> {
        let path = |name: &str| -> PathBuf { site.board.path("templates").join(name) };
        let stamp = |name: &str| path(name).metadata().and_then(|file| file.modified()).ok();
        let stamps: Vec<Option<SystemTime>> = brief::templates(role)
            .iter()
            .map(|name| stamp(name))
            .collect();
        if self.0.borrow().as_ref() != Some(&stamps) {
            brief::check(site, role)?;
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
        for (blocks, available, files, inodes, what) in [
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
                what,
                "{blocks} {available} {files} {inodes}"
            );
        }
    }
}
