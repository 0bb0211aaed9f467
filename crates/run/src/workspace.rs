//! The place where work is done: a board, its configuration, its repository.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::accounts::Accounts;
use super::background::Background;
use super::bubblewrap;
use super::error::Error;
use super::tracked_files::refuse_tracked;
use crate::runner::tool_rules::ToolRules;
use crate::runner::{Acp, Claude, CommandRunner, Runner, Shell};
use tavern_core::eligible::{Lack, NotReady};
use tavern_core::event::Kind;
use tavern_core::rule::BoardRules;
use tavern_core::suggestion::nearest;
use tavern_core::task::{Expected, Task, TaskId};
use tavern_git::{CommitId, Follow, GitError, Head, LastWord, Repository};
use tavern_store::config::{Config, Does, Integration, Role, RunnerKind};
use tavern_store::{Board, ClaimRequest, Claimed, Entry, Queue};
use tavern_sys::clock::{self, Deadline};
use tavern_sys::interrupt::Interrupt;
use tavern_sys::process::quoted;
use tavern_sys::secrets::learn;

/// The prefix of items' branches.
pub const ITEM_BRANCHES: &str = "tavern/";

/// The prefix of refs that keep the work of removed worktrees, followed by the item's ID.
pub const SALVAGED: &str = "refs/tavern/salvage/";

/// How long the same process does not retry a failed set-up; each wake-up would otherwise.
const SET_UP_AGAIN: Duration = Duration::from_secs(600);

/// The environment of runs: board, settings, repository and options.
pub struct Workspace {
    pub board: Board,
    pub config: Config,
    /// The text of config.yaml when it was read.
    pub settings: String,
    /// Task files named on the command line: the board may not know them yet.
    pub named: Vec<Queue>,
    /// Texts to use in place of the content of these files.
    pub texts: HashMap<PathBuf, String>,
    repository: OnceLock<Repository>,
    /// Merges that this process could not set up.
    pub(super) stuck: StuckMerges,
    /// Completed items; this process has found their work at the base of new work.
    pub(super) found: Mutex<HashSet<TaskId>>,
    /// Results of this process's account checks.
    pub(super) accounts: Accounts,
    pub interrupt: Interrupt,
    /// `--runner`: overrides the runner of items, queues and roles.
    pub runner: Option<String>,
    /// `--model`: overrides the model likewise.
    pub model: Option<String>,
    /// Returns the command that resolves a lack of an item, given its ID and queue: the programs are known to the
    /// layers above.
    pub todo: Todo,
    /// Sends notices to people, once there is a receiver.
    pub(super) teller: OnceLock<Background<Workspace>>,
}

/// See [`Workspace::todo`].
pub type Todo = fn(&Lack, Option<&TaskId>, Option<&str>) -> Option<String>;

impl Workspace {
    /// Opens the board with its repository. Refuses a repository that tracks Tavern's own files.
    pub fn open(board: Board, interrupt: Interrupt) -> Result<Workspace, Error> {
        let workspace = Workspace::unopened(board, interrupt)?;
        refuse_tracked(&workspace.board, workspace.repository()?)?;
        Ok(workspace)
    }

    /// Opens the board; the repository is opened on first use, since the program may not need it.
    pub fn unopened(board: Board, interrupt: Interrupt) -> Result<Workspace, Error> {
        let (config, settings) = Config::load_with_text(board.dir())?;
        learn(
            config
                .runners
                .values()
                .flat_map(|runner| runner.env.clone()),
        );
        Ok(Workspace::new(board, config, settings, interrupt))
    }

    fn new(board: Board, config: Config, settings: String, interrupt: Interrupt) -> Workspace {
        Workspace {
            board,
            config,
            settings,
            named: Vec::new(),
            texts: HashMap::new(),
            repository: OnceLock::new(),
            stuck: StuckMerges::default(),
            found: Mutex::default(),
            accounts: Accounts::default(),
            interrupt,
            runner: None,
            model: None,
            todo: |_, _, _| None,
            teller: OnceLock::new(),
        }
    }

    /// Returns a copy for another thread, which `interrupt` ends.
    pub(super) fn apart(&self, interrupt: Interrupt) -> Workspace {
        let (named, runner, model, todo) = (
            self.named.clone(),
            self.runner.clone(),
            self.model.clone(),
            self.todo,
        );
        let apart = Workspace::new(
            self.board.clone(),
            self.config.clone(),
            self.settings.clone(),
            interrupt,
        );
        Workspace {
            named,
            runner,
            model,
            todo,
            ..apart
        }
    }

    /// Returns this workspace in place of `other`. Its notices go on from there: nothing waits for notices being sent.
    #[must_use]
    pub fn instead_of(mut self, other: &mut Workspace) -> Workspace {
        if let Some(mut teller) = other.teller.take() {
            teller.go_on_with(self.apart(teller.interrupt()));
            self.teller = OnceLock::from(teller);
        }
        self
    }

    /// Returns the workspace with these queues named.
    pub fn naming(self, named: &[Queue]) -> Workspace {
        Workspace {
            named: named.to_vec(),
            ..self
        }
    }

    /// Returns the workspace with these texts in place of the files' content.
    pub fn reading(self, texts: HashMap<PathBuf, String>) -> Workspace {
        Workspace { texts, ..self }
    }

    pub fn repository(&self) -> Result<&Repository, Error> {
        if let Some(repository) = self.repository.get() {
            return Ok(repository);
        }
        let mut repository = Repository::discover(self.board.root())?;
        self.integration().clone_into(&mut repository.mainline);
        repository.filter_sandbox = bubblewrap::of_filters(&self.config, &self.board, &repository);
        Ok(self.repository.get_or_init(|| repository))
    }

    pub fn role(&self, name: &str) -> Result<&Role, Error> {
        self.config.roles.get(name).ok_or_else(|| {
            let known = self.config.roles.keys().cloned().collect();
            Error::NoRole {
                name: name.to_owned(),
                known,
            }
        })
    }

    /// Returns the runner of a task: the command line's, the item's, the queue's, the role's. A role that does no work
    /// on a task uses its own: the item names the runner of its work.
    pub fn runner_of(&self, task: &Task, role: &Role) -> String {
        let own = || task.runner.clone().filter(|_| role.does == Does::Work);
        self.runner
            .clone()
            .or_else(own)
            .unwrap_or_else(|| role.runner.clone())
    }

    /// Returns the model of a task likewise; `None`: the program's default.
    pub fn model_of(&self, task: &Task, role: &Role) -> Option<String> {
        let own = || task.model.clone().filter(|_| role.does == Does::Work);
        self.model
            .clone()
            .or_else(own)
            .or_else(|| role.model.clone())
    }

    /// Returns true if the holder's role does `what`.
    pub fn does(&self, held: &Claimed, what: Does) -> bool {
        self.config
            .roles
            .get(&held.lease.role)
            .is_some_and(|role| role.does == what)
    }

    /// Returns the result that the item must have, by its own text, its queue or its holder's role.
    pub fn expected(&self, held: &Claimed) -> Option<Expected> {
        self.config.expected(&held.task, &held.lease.role)
    }

    /// Returns the claim request of an agent with that role and name for `queues`; `None`: all of the board's.
    pub fn seek(
        &self,
        agent: &str,
        role: &str,
        queues: Option<Vec<Queue>>,
    ) -> Result<ClaimRequest, Error> {
        self.role(role)?;
        Ok(ClaimRequest {
            agent: agent.to_owned(),
            role: role.to_owned(),
            roles: self.config.known_roles(),
            is_chat: false,
            queues,
            item: None,
            seconds: u32::try_from(self.config.lease.duration().as_secs()).unwrap_or(u32::MAX),
            holder: tavern_store::this_process(),
            is_for_program: true,
            runner: self.runner.clone(),
        })
    }

    pub fn branch_of(&self, task: &Task) -> String {
        format!("{ITEM_BRANCHES}{}", task.id)
    }

    pub fn integration(&self) -> &str {
        &self.config.integration.branch
    }

    /// Returns the paths, from the repository's root, that a task's branch may not change: the board, and the queue's
    /// own file, with its link target.
    pub fn protected(&self, queue: &Queue) -> Vec<String> {
        let files = queue.files();
        let own = files
            .iter()
            .filter_map(|path| path.strip_prefix(self.board.root()).ok());
        let own = own
            .map(|path| path.to_string_lossy().into_owned())
            .filter(|path| !path.starts_with(".tavern/"));
        std::iter::once(".tavern/".to_owned()).chain(own).collect()
    }

    /// Returns the name and commit of the base branch: `base` of config.yaml, else HEAD. If HEAD is detached or on an
    /// item's branch, a person is only looking at something: then the integration branch is its own base.
    pub fn base(&self) -> Result<(Option<String>, CommitId), Error> {
        if let Some(name) = &self.config.base {
            let repository = self.repository()?;
            let found = repository
                .branch_tip(name)?
                .map_or_else(|| repository.commit_of(name), |tip| Ok(Some(tip)))?;
            let missing = || {
                let branches = repository.branches("").unwrap_or_default();
                let near = nearest(name, branches.iter().map(String::as_str)).map(str::to_owned);
                if branches.is_empty() {
                    Error::NoCommits
                } else {
                    Error::NoBase {
                        name: name.clone(),
                        near,
                    }
                }
            };
            return Ok((Some(name.clone()), found.ok_or_else(missing)?));
        }
        let is_items = |name: &str| {
            name.strip_prefix(ITEM_BRANCHES)
                .is_some_and(|id| id.parse::<TaskId>().is_ok())
        };
        let commit = match self.repository()?.head()? {
            Head::Branch { name, commit } if !is_items(&name) => return Ok((Some(name), commit)),
            Head::Branch { commit, .. } | Head::Detached { commit } => commit,
            Head::Unborn { .. } => return Err(Error::NoCommits),
        };
        let own = self.integration_tip()?;
        Ok(own.map_or((None, commit), |tip| {
            (Some(self.integration().to_owned()), tip)
        }))
    }

    /// Checks that there is a base and that no branch blocks the names of Tavern's branches. A shallow clone must have
    /// the history between base and integration branch.
    pub fn known_base(&self) -> Result<(), Error> {
        let (_, base) = self.base()?;
        self.repository()?.refuse_in_the_way(self.integration())?;
        if !self.integration().starts_with(ITEM_BRANCHES) {
            let any = format!("{ITEM_BRANCHES}ID");
            self.repository()?.refuse_in_the_way(&any)?;
        }
        let tip = self.integration_tip()?;
        tip.map_or(Ok(()), |tip| {
            Ok(self.repository()?.refuse_cut(&tip, &base)?)
        })
    }

    /// Returns the remote to which other clones push the integration branch.
    pub fn remote(&self) -> Result<Option<String>, Error> {
        let head = match self.repository()?.head()? {
            Head::Branch { name, .. } | Head::Unborn { name } => Some(name),
            Head::Detached { .. } => None,
        };
        Ok(self
            .repository()?
            .remote(self.config.base.as_deref().or(head.as_deref())))
    }

    /// Returns the commit of the integration branch. A branch that does not exist yet begins at its remote-tracking
    /// branch, which has other clones' work; `None`: it begins at its base.
    pub fn integration_tip(&self) -> Result<Option<CommitId>, Error> {
        let (repository, branch) = (self.repository()?, self.integration());
        let Some(tip) = repository.branch_tip(branch)? else {
            let tracking = self.tracking(branch)?;
            return Ok(tracking.map_or(Ok(None), |tracking| repository.commit_of(&tracking))?);
        };
        Ok(Some(tip))
    }

    /// Returns the remedy if the integration branch is checked out in `folder`: moving it would leave the files there
    /// behind.
    pub fn way_out(&self, folder: &Path) -> String {
        let (branch, own) = (self.integration(), Integration::default().branch);
        if branch != own
            && self
                .base()
                .is_ok_and(|(base, _)| base.as_deref() == Some(branch))
        {
            return format!(
                "merge into a branch of its own, in .tavern/config.yaml `integration: {{branch: {own}}}`"
            );
        }
        format!("git -C {} switch --detach", quoted(folder))
    }

    /// Returns why nothing is merged into the integration branch at `tip`: neither Tavern nor a person is known to have
    /// moved it there. A person's commits are those of the base, of the remote branch, and those made in their own
    /// checkout.
    fn foreign(&self, tip: &CommitId) -> Result<Option<(CommitId, Lack)>, Error> {
        let (repository, branch) = (self.repository()?, self.integration());
        let tips = repository.remembered_tips(branch)?;
        // Without a known tip, as in a new clone, the branch is accepted as found.
        let Some(known) = tips.last().filter(|_| !tips.contains(tip)) else {
            return Ok(None);
        };
        let (base, commit) = self.base()?;
        let is_own = base.as_deref() != Some(branch)
            && self.foreign_base(base.as_deref(), &commit)?.is_none();
        let base = is_own.then_some(commit);
        let fetched = self.fetched(branch)?;
        for own in base.iter().chain(&fetched) {
            if repository.is_ancestor(tip, own)? {
                return Ok(None);
            }
            repository.refuse_cut(tip, own)?;
        }
        if repository.was_made_in_checkout(tip)? {
            return Ok(None);
        }
        let [told, had] = [tip, known].map(|commit| commit.short().to_owned());
        Ok(Some((
            known.clone(),
            Lack::ForeignTip {
                branch: branch.to_owned(),
                tip: told,
                known: had,
            },
        )))
    }

    /// Returns the last known commit of the base, and why its `tip` is not followed: git's log has no entry for it, no
    /// person has accepted it, and the remote does not have it. A branch without any known tip is followed.
    fn foreign_base(
        &self,
        base: Option<&str>,
        tip: &CommitId,
    ) -> Result<Option<(CommitId, Lack)>, Error> {
        let repository = self.repository()?;
        let Some(branch) = base.filter(|base| *base != self.integration()) else {
            return Ok(None);
        };
        let tips = repository.remembered_tips(branch)?;
        if tips.contains(tip) {
            return Ok(None);
        }
        let known = match repository.last_word(&format!("refs/heads/{branch}"), tip)? {
            LastWord::Here => return Ok(None),
            LastWord::Elsewhere(known) => Some(known),
            LastWord::Nowhere => tips.last().cloned(),
        };
        // The base may be a tag, or have moved on since.
        let is_there = repository.branch_tip(branch)?.as_ref() == Some(tip);
        let Some(known) = known.filter(|_| is_there) else {
            return Ok(None);
        };
        if self
            .fetched(branch)?
            .map_or(Ok(false), |fetched| repository.is_ancestor(tip, &fetched))?
        {
            return Ok(None);
        }
        let [told, had] = [tip, &known].map(|commit| commit.short().to_owned());
        Ok(Some((
            known,
            Lack::ForeignTip {
                branch: branch.to_owned(),
                tip: told,
                known: had,
            },
        )))
    }

    /// Remembers that git's log has an entry for the base at `tip`, in case that log is removed.
    fn remember_base(&self, base: Option<&str>, tip: &CommitId) -> Result<(), Error> {
        let repository = self.repository()?;
        let Some(branch) = base.filter(|base| *base != self.integration()) else {
            return Ok(());
        };
        if !repository.remembered_tips(branch)?.contains(tip)
            && repository.last_word(&format!("refs/heads/{branch}"), tip)? == LastWord::Here
        {
            repository.remember_tip(branch, tip)?;
        }
        Ok(())
    }

    /// Returns the remote's branch of this name, as last fetched or pushed.
    fn fetched(&self, branch: &str) -> Result<Option<CommitId>, Error> {
        let (repository, Some(reference)) = (self.repository()?, self.tracking(branch)?) else {
            return Ok(None);
        };
        let Some(tip) = repository.commit_of(&reference)? else {
            return Ok(None);
        };
        let is_told = match repository.last_word(&reference, &tip)? {
            LastWord::Here => true,
            LastWord::Elsewhere(_) => false,
            LastWord::Nowhere => !repository.keeps_logs(),
        };
        Ok(Some(tip).filter(|_| is_told))
    }

    /// Returns the remote-tracking ref of this branch name.
    fn tracking(&self, branch: &str) -> Result<Option<String>, Error> {
        Ok(self
            .remote()?
            .map(|remote| format!("refs/remotes/{remote}/{branch}")))
    }

    /// Returns a lack if the integration branch or its base is where neither Tavern nor a person has put it.
    pub fn foreign_tip(&self) -> Result<Option<Lack>, Error> {
        let (base, commit) = self.base()?;
        if let Some((_, lack)) = self.foreign_base(base.as_deref(), &commit)? {
            return Ok(Some(lack));
        }
        let Some(tip) = self.integration_tip()? else {
            return Ok(None);
        };
        if let Some((_, lack)) = self.foreign(&tip)? {
            return Ok(Some(lack));
        }
        let dropped = self.rewritten(base.as_deref(), &commit, &tip)?;
        // An integration branch without commits of its own is reset to its base automatically.
        dropped
            .filter(|dropped| {
                self.repository()
                    .is_ok_and(|it| !it.is_ancestor(&tip, dropped).unwrap_or(true))
            })
            .map(|dropped| self.lack_of_rewritten(base.as_deref(), &commit, &dropped))
            .transpose()
    }

    /// Returns the newest commit that `holder` has and the base, now at `commit`, has lost by a reset, amend or rebase.
    /// `None` if a person has accepted the base there.
    fn rewritten(
        &self,
        base: Option<&str>,
        commit: &CommitId,
        holder: &CommitId,
    ) -> Result<Option<CommitId>, Error> {
        let repository = self.repository()?;
        let Some(branch) = base.filter(|base| *base != self.integration()) else {
            return Ok(None);
        };
        let tips = repository.remembered_tips(branch)?;
        if tips.contains(commit) {
            return Ok(None);
        }
        newest_held(repository, &tips, commit, holder)
    }

    /// Returns a commit that the base has dropped and that `work` has, but `tip` of the integration branch has not.
    pub(super) fn dropped_from(
        &self,
        tip: &CommitId,
        work: &CommitId,
    ) -> Result<Option<CommitId>, Error> {
        let repository = self.repository()?;
        let (base, commit) = self.base()?;
        let Some(branch) = base.filter(|base| base != self.integration()) else {
            return Ok(None);
        };
        let tips = repository.remembered_tips(&branch)?;
        for known in tips.iter().rev().take(MOST_TIPS) {
            // The commit may be gone by now, or the base may not have been followed yet.
            let is_known = repository.commit_of(known.as_str())?.is_some();
            if is_known
                && !repository.is_ancestor(known, tip)?
                && !repository.is_ancestor(known, &commit)?
                && repository.is_ancestor(known, work)?
            {
                return Ok(Some(known.clone()));
            }
        }
        Ok(None)
    }

    fn lack_of_rewritten(
        &self,
        base: Option<&str>,
        commit: &CommitId,
        dropped: &CommitId,
    ) -> Result<Lack, Error> {
        let (base, own) = (base.unwrap_or("HEAD"), self.integration());
        let repository = self.repository()?;
        let gone = match repository.fork(commit, dropped)? {
            Some(fork) => repository.commits_between(&fork, dropped)?,
            None => Vec::new(),
        };
        Ok(Lack::Rewritten {
            base: base.to_owned(),
            branch: own.to_owned(),
            dropped: dropped.short().to_owned(),
            count: gone.len(),
            subject: gone
                .last()
                .map_or_else(String::new, |last| last.subject.clone()),
        })
    }

    /// Resets the integration branch, which is at `tip` without commits of its own, to its base. Returns false if that
    /// is not possible now.
    fn begin_anew(&self, tip: &CommitId, base: &CommitId) -> Result<bool, Error> {
        let (repository, branch) = (self.repository()?, self.integration());
        if repository.branch_tip(branch)?.as_ref() != Some(tip) {
            return Ok(false);
        }
        repository.remember_tip(branch, base)?;
        let moved = repository.advance(
            &format!("refs/heads/{branch}"),
            tip,
            base,
            "tavern: its base was rewritten",
        );
        match moved {
            Ok(()) => Ok(true),
            Err(GitError::Moved { .. } | GitError::CheckedOut { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Accepts for a person that the integration branch, or a base that is not followed, is right at `revision`.
    /// Returns which branch and its commit; `None` if neither is there.
    pub fn accept_tip(
        &self,
        revision: &str,
        by: String,
    ) -> Result<Option<(String, CommitId)>, Error> {
        let (repository, (base, at)) = (self.repository()?, self.base()?);
        let Some(commit) = repository.commit_of(revision)? else {
            return Ok(None);
        };
        let is_rewritten = || {
            let tip = self.integration_tip()?;
            tip.map_or(Ok(false), |tip| {
                Ok::<_, Error>(self.rewritten(base.as_deref(), &at, &tip)?.is_some())
            })
        };
        let is_foreign = self.foreign_base(base.as_deref(), &at)?.is_some() || is_rewritten()?;
        for branch in [self.integration()]
            .into_iter()
            .chain(base.as_deref().filter(|_| is_foreign))
        {
            let is_integration = branch == self.integration();
            let tip = if is_integration {
                self.integration_tip()?
            } else {
                repository.branch_tip(branch)?
            };
            if tip.as_ref() != Some(&commit) {
                continue;
            }
            if !self.board.is_dry() {
                repository.remember_tip(branch, &commit)?;
                let cause = Some(format!("`{branch}` was accepted at its current commit"));
                let commit = Some(commit.as_str().to_owned());
                self.board.note(Entry {
                    agent: Some(by),
                    cause,
                    commit,
                    ..Entry::new(Kind::Noted, clock::now())
                })?;
            }
            return Ok(Some((branch.to_owned(), commit)));
        }
        Ok(None)
    }

    /// Brings the integration branch up to its base, creating it if needed. An obstacle such as a conflict is returned
    /// beside it: it stops integration, not work. Work begins at the last known tip, not at a foreign one. A dry run
    /// leaves the branch as it is, and merges nothing.
    pub fn follow_base(&self) -> Result<(CommitId, Option<Lack>), Error> {
        let (base, commit) = self.base()?;
        let branch = self.integration();
        let foreign_base = self.foreign_base(base.as_deref(), &commit)?;
        let begins_at = || {
            foreign_base
                .as_ref()
                .map_or(&commit, |(known, _)| known)
                .clone()
        };
        let start = self.integration_tip()?.unwrap_or_else(begins_at);
        if let Some((known, lack)) = self.foreign(&start)? {
            return Ok((known, Some(lack)));
        }
        if let Some((_, lack)) = foreign_base {
            return Ok((start, Some(lack)));
        }
        if let Some(dropped) = self.rewritten(base.as_deref(), &commit, &start)? {
            let has_own = !self.repository()?.is_ancestor(&start, &dropped)?;
            if has_own || self.board.is_dry() || !self.begin_anew(&start, &commit)? {
                let lack = self.lack_of_rewritten(base.as_deref(), &commit, &dropped)?;
                return Ok((start, Some(lack)));
            }
            self.remember_base(base.as_deref(), &commit)?;
            return Ok((commit, None));
        }
        if self.board.is_dry() {
            return Ok((self.repository()?.foresee_follow(start, commit)?, None));
        }
        self.remember_base(base.as_deref(), &commit)?;
        if !self.repository()?.remembered_tips(branch)?.contains(&start) {
            self.repository()?.remember_tip(branch, &start)?;
        }
        self.repository()?.start_branch(branch, &start)?;
        let conflict = match self.repository()?.follow(branch, &commit) {
            Ok(Follow::Conflict(paths)) => {
                let base = base.as_deref().unwrap_or("HEAD");
                let paths: Vec<String> = paths
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect();
                let message = format!("`{branch}` and `{base}` conflict in {}", paths.join(", "));
                let hint = format!(
                    "merge them by hand: git switch {} && git merge {}",
                    quoted(branch),
                    quoted(base)
                );
                Some(Lack::NotReady(NotReady::new(message, hint)))
            }
            Ok(_) => None,
            // The branch was moved meanwhile, or is checked out elsewhere: it is used as it is.
            Err(GitError::Moved { .. } | GitError::CheckedOut { .. } | GitError::Pruned { .. }) => {
                None
            }
            Err(error) => return Err(error.into()),
        };
        let tip = self
            .repository()?
            .branch_tip(branch)?
            .ok_or(Error::NoCommits)?;
        Ok((tip, conflict))
    }

    /// Returns the commit of a worktree's HEAD.
    pub fn tip_of(&self, worktree: &Path) -> Result<CommitId, Error> {
        let head = self.repository()?.head_of(worktree)?;
        head.commit().ok_or(Error::NoCommits)
    }

    /// Returns the path of the integration worktree, in which merges are verified.
    pub fn scratch(&self) -> PathBuf {
        self.board.path("worktrees/integration")
    }
}

/// The number of known base tips that are checked.
const MOST_TIPS: usize = 64;

/// Returns the newest of `tips` that `holder` has, unless `other` has it too.
fn newest_held(
    repository: &Repository,
    tips: &[CommitId],
    other: &CommitId,
    holder: &CommitId,
) -> Result<Option<CommitId>, Error> {
    for tip in tips.iter().rev().take(MOST_TIPS) {
        // The commit may be gone by now.
        if repository.commit_of(tip.as_str())?.is_some() && repository.is_ancestor(tip, holder)? {
            return Ok((!repository.is_ancestor(tip, other)?).then(|| tip.clone()));
        }
    }
    Ok(None)
}

/// Returns the calls that Claude denies by the board's rules before they are made. A pattern with characters of
/// Claude's own rule syntax is checked only after the call.
fn denied_by(rules: &BoardRules) -> impl Iterator<Item = String> {
    let is_plain = |words: &&str| !words.contains([',', '(', ')', ':']);
    rules
        .values()
        .filter(|rule| rule.consequence.forbids())
        .flat_map(move |rule| {
            let commands = rule
                .all_commands()
                .filter(is_plain)
                .map(|words| format!("Bash({}:*)", words.trim()));
            let paths = rule
                .paths
                .iter()
                .map(String::as_str)
                .filter(is_plain)
                .flat_map(|path| {
                    let path = path.trim_start_matches("./").trim_end_matches('/');
                    [format!("Edit({path})"), format!("Edit({path}/**)")]
                });
            commands.chain(paths).collect::<Vec<_>>()
        })
}

/// The settings, hooks, servers and memory files that an agent program obeys, where it can be kept from some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obeyed {
    /// The user's own, and those of the repository.
    Repository,
    UserAlone,
}

/// Returns the runner called `name`, as agents of `role` use it.
pub fn runner_named(config: &Config, name: &str, role: &Role) -> Result<Box<dyn Runner>, Error> {
    // A reviewer must not be influenced by the repository that it judges.
    let obeyed = if role.does == Does::Review {
        Obeyed::UserAlone
    } else {
        Obeyed::Repository
    };
    runner_that_obeys(config, name, role, obeyed)
}

/// Returns the runner called `name`, for agents of `role`.
pub fn runner_that_obeys(
    config: &Config,
    name: &str,
    role: &Role,
    obeyed: Obeyed,
) -> Result<Box<dyn Runner>, Error> {
    let obeys_repository = obeyed == Obeyed::Repository;
    let entry = config
        .runners
        .get(name)
        .ok_or_else(|| Error::NoRunner(name.to_owned()))?;
    let command = CommandRunner {
        obeys_repository,
        is_boxed: role.sandbox,
        ..CommandRunner::new(name, entry.command.iter().cloned())
    };
    Ok(match entry.kind {
        RunnerKind::Shell => Box::new(Shell),
        RunnerKind::Command => Box::new(command),
        RunnerKind::Acp => Box::new(Acp {
            command,
            mode: entry.mode.clone(),
            rules: ToolRules {
                allowed: role.allowed_tools.clone(),
                denied: role.denied_tools.clone(),
                allows_all: role.permission_mode == "bypassPermissions",
            },
        }),
        RunnerKind::Claude => Box::new(Claude {
            program: PathBuf::from(entry.program.as_deref().unwrap_or("claude")),
            permission_mode: role.permission_mode.clone(),
            effort: role.effort.map(|effort| effort.as_str().to_owned()),
            fallback_model: role.fallback_model.clone(),
            allowed_tools: role.allowed_tools.clone(),
            denied_tools: role
                .denied_tools
                .iter()
                .cloned()
                .chain(denied_by(&config.rules))
                .collect(),
            obeys_repository,
            extra_args: entry.args.clone(),
        }),
    })
}

/// Failed set-ups of a merge's worktree by this process: the last try of each item.
#[derive(Default)]
pub struct StuckMerges(Mutex<HashMap<TaskId, StuckMerge>>);

struct StuckMerge {
    work: CommitId,
    tip: CommitId,
    until: Deadline,
    why: String,
}

impl StuckMerges {
    /// Returns why the item's merge can't be set up, if that was tried recently with the same work and branch.
    pub fn why(&self, task: &TaskId, work: &CommitId, tip: &CommitId) -> Option<String> {
        let all = self.locked();
        let same = all
            .get(task)
            .filter(|stuck| stuck.work == *work && stuck.tip == *tip)?;
        (!same.until.has_passed()).then(|| same.why.clone())
    }

    pub fn remember(&self, task: &TaskId, work: &CommitId, tip: CommitId, why: &str) {
        let stuck = StuckMerge {
            work: work.clone(),
            tip,
            until: Deadline::after(SET_UP_AGAIN),
            why: why.to_owned(),
        };
        self.locked().insert(task.clone(), stuck);
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<TaskId, StuckMerge>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
