//! The launch of a held task, planned before anything is written. A dry run prints it, a run starts it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::artifacts::Artifacts;
use super::bubblewrap::Terminal;
use super::environment;
use super::error::Error;
use super::import_sandbox::take_over;
use super::mail::MAILBOX;
use super::prompt_context::{Attendance, PromptContext};
use super::record::{Metadata, Record, run_name};
use super::sandbox::{self, Boxed};
use super::sandbox_dir::Cell;
use super::spending::{spending, within_caps};
use super::trust::Trust;
use super::workspace::{Obeyed, Workspace, runner_named, runner_that_obeys};
use super::worktree::Worktree;
use crate::runner::job::Opening;
use crate::runner::tool_rules::ToolRules;
use crate::runner::{
    Form, Job, LOG_MIB, Limits, Outcome, ProgramState, Runner, Session, SessionEnd, Usage,
};
use tavern_core::eligible::NotReady;
use tavern_core::event::Event;
use tavern_core::lease::Work;
use tavern_core::rule::BoardRules;
use tavern_core::task::Task;
use tavern_git::reflog_action;
use tavern_store::config::{Does, Role};
use tavern_store::{Claimed, Note, this_process};
use tavern_sys::clock;
use tavern_sys::process::start::UNATTENDED;
use tavern_sys::process::{Attended, Bell, Spec, argument, attend, quoted};
use tavern_sys::secrets::redact;

/// A run that may begin.
pub struct Launch<'a> {
    workspace: &'a Workspace,
    held: &'a Claimed,
    pub role: &'a Role,
    pub worktree: Worktree,
    pub metadata: Metadata,
    pub job: Job,
    brief: PromptContext<'a>,
    /// The number of letters in its prompt.
    letters: usize,
    runner: Box<dyn Runner>,
    attendance: Attendance,
    /// Its cell and, in a sandbox, the files that its program writes.
    cell: Option<(Cell, Option<ProgramState>)>,
}

/// A launch in words.
#[derive(Clone, Debug, Serialize)]
pub struct CommandLine {
    pub run: String,
    pub runner: String,
    pub worktree: PathBuf,
    /// Program and arguments.
    pub command: Vec<String>,
    pub prompt: String,
}

/// In shell syntax.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cd {} &&", quoted(&self.worktree))?;
        self.command
            .iter()
            .try_for_each(|word| write!(f, " {}", argument(word)))
    }
}

/// The longest name of a session, in characters: its item's ID and title.
const LONGEST_NAME: usize = 100;

/// The placeholder for a new session in a command line that is only shown, because its ID is random.
const NEW_SESSION: &str = "NEW-SESSION";

/// The same for the run's nonce.
const NEW_NONCE: &str = "NEW-NONCE";

impl<'a> Launch<'a> {
    /// Plans the run of `held` in `worktree`. Writes nothing.
    pub fn plan(
        workspace: &'a Workspace,
        held: &'a Claimed,
        worktree: Worktree,
        attendance: Attendance,
    ) -> Result<Launch<'a>, Error> {
        let (task, lease) = (&held.task, &held.lease);
        let role = workspace.role(&lease.role)?;
        let run = run_name(&task.id, lease.token);
        let artifacts = Artifacts::open(&workspace.board, &run);
        let branch = worktree.branch.as_ref();
        let mut metadata = Metadata {
            title: task.title.clone(),
            queue: held.queue.id.clone(),
            agent: lease.agent.clone(),
            role: lease.role.clone(),
            attempt: lease.attempt,
            runner: workspace.runner_of(task, role),
            model: workspace.model_of(task, role),
            worktree: worktree.path.clone(),
            branch: branch.map(|branch| branch.name.clone()),
            base: branch.map(|branch| branch.base.as_str().to_owned()),
            ..Metadata::new(task.id.clone(), lease.token, clock::now())
        };
        let uses = spending(workspace)
            .map(|all| all.uses(&task.id, &held.queue.id))
            .unwrap_or_default();
        let runner = trusted_runner(workspace, role, &metadata.runner, &worktree.path)?;
        let env = environment(
            workspace,
            held,
            &worktree,
            &metadata.runner,
            runner.as_ref(),
        );
        let form = form_of(role.does);
        // A person at the terminal reads plain text.
        let tool = runner
            .answer_tool()
            .filter(|_| form.is_some() && attendance == Attendance::Followed);
        let brief = PromptContext::gather(workspace, held, &worktree, runner.as_ref(), tool)?;
        let mut job = Job {
            task: task.id.to_string(),
            run: run.clone(),
            name: redact(&format!("{}: {}", task.id, task.title))
                .chars()
                .take(LONGEST_NAME)
                .collect(),
            run_dir: artifacts.dir().to_owned(),
            worktree: worktree.path.clone(),
            prompt: String::new(),
            rules: String::new(),
            session: uuid::Uuid::new_v4().to_string(),
            opening: Opening::New,
            before: Usage::default(),
            model: metadata.model.clone(),
            wrapper: Vec::new(),
            env,
            limits: within_caps(&limits(task, role), &uses),
            grace: workspace.config.grace.duration(),
            prods: brief.prods(role)?,
            permits: brief.permits(),
            forbids: forbids(workspace, role),
            is_proven_live: attendance == Attendance::Followed,
            form: form.filter(|_| tool.is_some()),
            nonce: None,
            script: held.script.clone(),
        };
        if let Some(nonce) = brief.nonce() {
            job.env.push(("TAVERN_NONCE".to_owned(), nonce.to_owned()));
            job.nonce = Some(nonce.to_owned());
        }
        if workspace.config.runs_scripts(&metadata.runner) {
            job.env.push((
                "TAVERN_AROUND".to_owned(),
                redact(&brief.around()).into_owned(),
            ));
        }
        let mut cell = None;
        if role.sandbox {
            let (own, state) = (
                Cell::of(workspace, &run),
                runner.state(&job.env, &worktree.path),
            );
            let place = Boxed {
                terminal: if attendance == Attendance::Attended {
                    Terminal::Given
                } else {
                    Terminal::None
                },
                worktree: &worktree.path,
                run_dir: artifacts.dir(),
                cell: &own,
                state: &state,
            };
            job.env.push((
                MAILBOX.to_owned(),
                own.mail().to_string_lossy().into_owned(),
            ));
            job.wrapper = sandbox::of_agent(
                workspace,
                role,
                runner.check(&job.env)?.program.into(),
                &place,
            )?;
            cell = Some((own, Some(state)));
        } else if !workspace.config.runs_scripts(&metadata.runner) {
            job.env.push(reflog_action(&run));
        }
        if !role.sandbox && (worktree.branch.is_some() || worktree.view.is_some()) {
            cell = Some((Cell::of(workspace, &run), None));
        }
        if let Some((session, model)) = brief.session(held, &metadata.runner) {
            let fresh = std::mem::replace(&mut job.session, session);
            if runner.knows_session(&job) {
                job.opening = Opening::Resumed;
                job.before = brief.spent_in(&job.session);
                // The program's default may be another variant, which misses the cache.
                job.model = job.model.or(model);
            } else {
                job.session = fresh;
            }
        }
        if attendance == Attendance::Attended {
            job.env
                .retain(|(name, value)| !UNATTENDED.contains(&(name, value)));
        }
        metadata.session = Some(job.session.clone());
        let mut launch = Launch {
            workspace,
            held,
            role,
            worktree,
            metadata,
            job,
            brief,
            letters: 0,
            runner,
            attendance,
            cell,
        };
        launch.tell()?;
        Ok(launch)
    }

    /// Sets the program's prompt and rules.
    fn tell(&mut self) -> Result<(), Error> {
        let is_resumed = self.job.opening == Opening::Resumed;
        let prompt = if is_resumed {
            self.brief.resumed(self.role)?
        } else {
            self.brief.first(self.role)?
        };
        self.metadata.knowledge = self.brief.carried(&prompt.text);
        self.letters = prompt.letters;
        let [prompt, rules] = [prompt.text, self.brief.rules(self.role, self.attendance)?]
            .map(|text| redact(&text).into_owned());
        (self.job.prompt, self.job.rules) =
            if rules.trim().is_empty() || self.runner.is_told_rules() {
                (prompt, rules)
            } else {
                (format!("{prompt}\n{rules}"), String::new())
            };
        Ok(())
    }

    /// Writes the files that must exist before the program starts.
    pub fn record(&self) -> Result<Record<'a>, Error> {
        let record = Record::begin(self.workspace, self.metadata.clone(), &self.job)?;
        if let Some((cell, state)) = &self.cell {
            // An earlier run of the same claim was killed: import its work first.
            take_over(self.workspace, &self.held.task.id, &self.metadata)?;
            let worktree = &self.metadata.worktree;
            match state {
                Some(state) => cell.make(self.workspace, worktree, state)?,
                None => cell.make_open(self.workspace, worktree)?,
            }
        }
        Ok(record)
    }

    /// Puts the run's work on the board, which makes the run visible.
    pub fn announce(&self) -> Result<(), Error> {
        let work = Work {
            run: self.metadata.run.clone(),
            worktree: self.metadata.worktree.clone(),
            branch: self.metadata.branch.clone(),
            base: self.metadata.base.clone(),
            session: self.metadata.session.clone(),
            supervisor: this_process().process,
        };
        let start = Event::Start {
            token: self.held.lease.token,
            work,
        };
        self.workspace
            .board
            .submit(&self.held.task.id, &start, &Note::default())?;
        Ok(())
    }

    /// Returns true if its program reports its actions, and receives messages while it runs.
    pub fn hears(&self) -> bool {
        self.runner.hears()
    }

    /// Returns the last event that its prompt covers; later messages to its item are not in it.
    pub fn delivered_until(&self) -> u64 {
        self.brief.delivered_until(self.letters)
    }

    /// Returns its agent's context.
    pub fn brief(&self) -> &PromptContext<'a> {
        &self.brief
    }

    /// Starts the program with its prompt.
    pub fn start(&self) -> Result<Session, NotReady> {
        let session = self.runner.start(&self.job)?;
        self.brief.is_given(self.held, self.letters);
        Ok(session)
    }

    /// The same at a person's terminal, which the program has after `begins`; `bell` rings when it has ended.
    pub fn attend(&self, bell: &Bell, begins: impl FnOnce()) -> Result<Attended, NotReady> {
        let spec = self.spec()?;
        begins();
        let program = attend(&spec, bell)?;
        self.brief.is_given(self.held, self.letters);
        Ok(program)
    }

    /// Returns a possible cause of the program's failure, to append to its reason: variables that it names but does
    /// not receive.
    pub fn lack(&self, ended: &SessionEnd) -> String {
        if !matches!(ended.outcome, Outcome::Failed | Outcome::Crashed) {
            return String::new();
        }
        let texts = [
            self.job.script.as_deref().unwrap_or_default(),
            &ended.result,
        ];
        environment::lack_of_agents(
            &self.workspace.config,
            &self.metadata.runner,
            self.runner.as_ref(),
            &texts,
        )
    }

    /// Begins a new session with the whole prompt, because the one to resume is unknown.
    pub fn begin_anew(&mut self) -> Result<(), Error> {
        self.job.opening = Opening::New;
        self.job.session = uuid::Uuid::new_v4().to_string();
        self.job.model.clone_from(&self.metadata.model);
        self.tell()
    }

    fn spec(&self) -> Result<Spec, NotReady> {
        match self.attendance {
            Attendance::Followed => self.runner.spec(&self.job),
            Attendance::Attended => self.runner.attended(&self.job),
        }
    }

    /// Returns the launch in words.
    pub fn command_line(mut self) -> Result<CommandLine, Error> {
        if self.job.opening == Opening::New {
            NEW_SESSION.clone_into(&mut self.job.session);
        }
        if let Some(nonce) = self.brief.nonce() {
            self.job.prompt = self.job.prompt.replace(nonce, NEW_NONCE);
        }
        let spec = self.spec()?;
        let words =
            std::iter::once(spec.program.as_os_str()).chain(spec.args.iter().map(AsRef::as_ref));
        let command = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let Metadata {
            run,
            runner,
            worktree,
            ..
        } = self.metadata;
        Ok(CommandLine {
            run,
            runner,
            worktree,
            command,
            prompt: self.job.prompt,
        })
    }
}

/// Returns the form of the answer, for programs that support one.
pub(super) fn form_of(does: Does) -> Option<Form> {
    match does {
        Does::Work | Does::Answer => None,
        Does::Review => Some(Form::Verdict),
        Does::Plan => Some(Form::Plan),
    }
}

/// Returns the runner. Settings of the repository that are untrusted, or that another agent has changed, are not obeyed.
///
/// # Errors
/// Nothing keeps the program from obeying them.
fn trusted_runner(
    workspace: &Workspace,
    role: &Role,
    name: &str,
    worktree: &Path,
) -> Result<Box<dyn Runner>, Error> {
    let runner = runner_named(&workspace.config, name, role)?;
    if !runner.is_led_by_repository() {
        return Ok(runner);
    }
    let Err(untrusted) = Trust::of(workspace).program(worktree, runner.obeyed_files()) else {
        return Ok(runner);
    };
    let apart = runner_that_obeys(&workspace.config, name, role, Obeyed::UserAlone)?;
    if apart.is_led_by_repository() {
        return Err(untrusted.into());
    }
    Ok(apart)
}

/// Returns the environment of every agent's shell, in which `tavern-add "…" --parent` and the like just work.
fn environment(
    workspace: &Workspace,
    held: &Claimed,
    worktree: &Worktree,
    name: &str,
    runner: &dyn Runner,
) -> Vec<(String, String)> {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let mut env = vec![
        (
            "TAVERN_DIR".to_owned(),
            text(workspace.board.dir().to_owned()),
        ),
        ("TAVERN_AGENT".to_owned(), held.lease.agent.clone()),
        ("TAVERN_ROLE".to_owned(), held.lease.role.clone()),
        ("TAVERN_TASK".to_owned(), held.task.id.to_string()),
        ("TAVERN_TOKEN".to_owned(), held.lease.token.to_string()),
        (
            "TAVERN_INBOX".to_owned(),
            text(workspace.board.inbox(&held.task.id)),
        ),
        ("TAVERN_WORKTREE".to_owned(), text(worktree.path.clone())),
    ];
    env.extend(UNATTENDED.map(|(name, value)| (name.to_owned(), value.to_owned())));
    env.push(environment::ceiling(workspace));
    let own = std::env::current_exe()
        .ok()
        .and_then(|exe| exe.parent().map(ToOwned::to_owned));
    if let (Some(own), Some(path)) = (own, std::env::var_os("PATH")) {
        let paths = std::env::split_paths(&path).chain([own]);
        if let Ok(joined) = std::env::join_paths(paths) {
            env.push(("PATH".to_owned(), joined.to_string_lossy().into_owned()));
        }
    }
    environment::of_agents(&workspace.config, name, runner, env)
}

/// Returns the item's own limits, else the role's.
/// Returns the rules of the board and those that the role's denied tools are, which see through shells and options.
fn forbids(workspace: &Workspace, role: &Role) -> BoardRules {
    let denied = ToolRules {
        denied: role.denied_tools.clone(),
        ..ToolRules::default()
    };
    let mut rules = denied.denials();
    rules.extend(workspace.config.rules.clone());
    rules
}

fn limits(task: &Task, role: &Role) -> Limits {
    let budget = task.budget.or(&role.budget);
    let wall = |minutes: f64| Duration::from_secs_f64((minutes * 60.0).clamp(0.0, 1e9));
    Limits {
        usd: budget.usd,
        turns: budget.turns,
        tokens: budget.tokens,
        wall: budget.minutes.map(wall),
        idle: Some(role.idle.duration()).filter(|idle| !idle.is_zero()),
        memory_mib: budget.memory_mb,
        log_mib: Some(LOG_MIB),
    }
}
