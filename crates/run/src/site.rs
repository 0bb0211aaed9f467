//! The place where work is done: a board, its configuration, its repository.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::accounts::Accounts;
use super::background::Background;
use super::enclosure;
use super::error::Error;
use super::tracked::refuse_tracked;
use crate::runner::{Claude, CommandRunner, Runner, Shell};
use tavern_core::eligible::{Lack, NotReady};
use tavern_core::event::Kind;
use tavern_core::near::nearest;
use tavern_core::rule::BoardRules;
use tavern_core::task::{Expected, Task, TaskId};
use tavern_git::{CommitId, Follow, GitError, Head, LastWord, Repository};
use tavern_store::config::{Config, Does, Integration, Role, RunnerKind};
use tavern_store::{Board, Claimed, Entry, Queue, Seek};
use tavern_sys::clock::{self, Deadline};
use tavern_sys::interrupt::Interrupt;
use tavern_sys::process::quoted;
use tavern_sys::secrets::learn;

/// How the branches of items begin.
pub const ITEM_BRANCHES: &str = "tavern/";

/// Where work is kept whose worktree goes, below the ID of its item.
pub const SALVAGED: &str = "refs/tavern/salvage/";

/// How long a set-up that failed is not tried again by the same process, as every wake-up would.
const SET_UP_AGAIN: Duration = Duration::from_secs(600);

/// Everything that a run needs to know of where it is.
pub struct Site {
    pub board: Board,
    pub config: Config,
    /// What config.yaml said when it was read.
    pub settings: String,
    /// Task files that were named: the board may not know them yet.
    pub named: Vec<Queue>,
    /// Texts that are looked at in the place of what stands in these files.
    pub texts: HashMap<PathBuf, String>,
    repository: OnceLock<Repository>,
    /// Merges that could not be set up here, by this process.
    pub(super) stuck: StuckMerges,
    /// Completed items whose work was found where the next begins, by this process.
    pub(super) found: Mutex<HashSet<TaskId>>,
    /// What the checks of accounts have told this process.
    pub(super) accounts: Accounts,
    pub interrupt: Interrupt,
    /// `--runner`: overrides what items, queues and roles say.
    pub runner: Option<String>,
    /// `--model`: likewise.
    pub model: Option<String>,
    /// What a person types for what an item lacks, of such an ID and queue: which programs there are is known above.
    pub todo: Todo,
    /// Tells people, from when there is somebody to tell.
    pub(super) teller: OnceLock<Background<Site>>,
}

/// See [`Site::todo`].
pub type Todo = fn(&Lack, Option<&TaskId>, Option<&str>) -> Option<String>;

impl Site {
    /// With its repository, which must not have brought what is Tavern's own.
    pub fn open(board: Board, interrupt: Interrupt) -> Result<Site, Error> {
        let site = Site::unopened(board, interrupt)?;
        refuse_tracked(&site.board, site.repository()?)?;
        Ok(site)
    }

    /// With a repository that is opened where it is first needed, for a program that may not need it.
    pub fn unopened(board: Board, interrupt: Interrupt) -> Result<Site, Error> {
        let (config, settings) = Config::load_with_text(board.dir())?;
        learn(
            config
                .runners
                .values()
                .flat_map(|runner| runner.env.clone()),
        );
        Ok(Site::new(board, config, settings, interrupt))
    }

    fn new(board: Board, config: Config, settings: String, interrupt: Interrupt) -> Site {
        Site {
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

    /// The same place for another thread, which `interrupt` ends.
    pub(super) fn apart(&self, interrupt: Interrupt) -> Site {
        let (named, runner, model, todo) = (
            self.named.clone(),
            self.runner.clone(),
            self.model.clone(),
            self.todo,
        );
        let apart = Site::new(
            self.board.clone(),
            self.config.clone(),
            self.settings.clone(),
            interrupt,
        );
        Site {
            named,
            runner,
            model,
            todo,
            ..apart
        }
    }

    /// The same, in the place of `other`. People are told on from there: nobody waits for what is being sent.
    #[must_use]
    pub fn instead_of(mut self, other: &mut Site) -> Site {
        if let Some(mut teller) = other.teller.take() {
            teller.go_on_with(self.apart(teller.interrupt()));
            self.teller = OnceLock::from(teller);
        }
        self
    }

    /// The same, which has been given these queues by name.
    pub fn naming(self, named: &[Queue]) -> Site {
        Site {
            named: named.to_vec(),
            ..self
        }
    }

    /// The same, in which these texts stand in their files.
    pub fn reading(self, texts: HashMap<PathBuf, String>) -> Site {
        Site { texts, ..self }
    }

    pub fn repository(&self) -> Result<&Repository, Error> {
        if let Some(repository) = self.repository.get() {
            return Ok(repository);
        }
        let mut repository = Repository::discover(self.board.root())?;
        self.integration().clone_into(&mut repository.mainline);
        repository.filter_sandbox = enclosure::of_filters(&self.config, &self.board, &repository);
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

    /// The runner of a task: the command line's, the item's, the queue's, the role's. Whoever only looks at a task has
    /// the role's: the item says who does it.
    pub fn runner_of(&self, task: &Task, role: &Role) -> String {
        let own = || task.runner.clone().filter(|_| role.does == Does::Work);
        self.runner
            .clone()
            .or_else(own)
            .unwrap_or_else(|| role.runner.clone())
    }

    /// Likewise its model; `None`: the program's own choice.
    pub fn model_of(&self, task: &Task, role: &Role) -> Option<String> {
        let own = || task.model.clone().filter(|_| role.does == Does::Work);
        self.model
            .clone()
            .or_else(own)
            .or_else(|| role.model.clone())
    }

    /// Returns whether the holder's role does that.
    pub fn does(&self, held: &Claimed, what: Does) -> bool {
        self.config
            .roles
            .get(&held.lease.role)
            .is_some_and(|role| role.does == what)
    }

    /// The result that its item is to have, as that says, its queue or its holder's role.
    pub fn expected(&self, held: &Claimed) -> Option<Expected> {
        self.config.expected(&held.task, &held.lease.role)
    }

    /// What an agent of that role and name takes from `queues`.
    pub fn seek(&self, agent: &str, role: &str, queues: &[Queue]) -> Result<Seek, Error> {
        self.role(role)?;
        Ok(Seek {
            agent: agent.to_owned(),
            role: role.to_owned(),
            roles: self.config.known_roles(),
            is_chat: false,
            queues: queues.to_vec(),
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

    /// Paths (from the repository's root) that a task's branch may not change: the board, and the queue's own file, with
    /// the one that it is a link to.
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

    /// The commit that the base branch is at: `base` of config.yaml, else HEAD's. Where HEAD is on no branch, or on an
    /// item's, a person only looks at something: then the integration branch has no other base than itself.
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

    /// There is a base, no branch is in the way of Tavern's, and how the integration branch is related to it is not left out of a shallow clone.
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

    /// The remote that other clones push the integration branch to.
    pub fn remote(&self) -> Result<Option<String>, Error> {
        let head = match self.repository()?.head()? {
            Head::Branch { name, .. } | Head::Unborn { name } => Some(name),
            Head::Detached { .. } => None,
        };
        Ok(self
            .repository()?
            .remote(self.config.base.as_deref().or(head.as_deref())))
    }

    /// The commit that the integration branch is at, or begins at: its remote-tracking branch, where other clones' work is.
    /// `None`: it begins at its base.
    pub fn integration_tip(&self) -> Result<Option<CommitId>, Error> {
        let (repository, branch) = (self.repository()?, self.integration());
        let Some(tip) = repository.branch_tip(branch)? else {
            let tracking = self.tracking(branch)?;
            return Ok(tracking.map_or(Ok(None), |tracking| repository.commit_of(&tracking))?);
        };
        Ok(Some(tip))
    }

    /// What to do where the integration branch is checked out in `folder`: moving it would leave the files there behind.
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

    /// Why nothing is merged into the integration branch at `tip`: neither Tavern nor a person has put it there, as far as can be
    /// told. A person's are commits of the base, of the remote branch, and those that were made in their own checkout.
    fn foreign(&self, tip: &CommitId) -> Result<Option<(CommitId, Lack)>, Error> {
        let (repository, branch) = (self.repository()?, self.integration());
        let tips = repository.remembered_tips(branch)?;
        // Where nothing is known, as in a new clone, the branch is as it is found.
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

    /// Where the base was before somebody put it to `tip` without a word, and why it is not followed there. A person has accepted no
    /// such tip, nor does its remote have it. Of a branch that git has never kept a log of nothing can be told.
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
        // It may be a tag, or have moved on since.
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

    /// From now on it is known that there was a word for the base at `tip`, though git's log be removed.
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

    /// The remote's branch of this name, as somebody has fetched or pushed it.
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

    /// What stands here for the remote's branch of this name.
    fn tracking(&self, branch: &str) -> Result<Option<String>, Error> {
        Ok(self
            .remote()?
            .map(|remote| format!("refs/remotes/{remote}/{branch}")))
    }

    /// The integration branch, or its base, is where neither Tavern nor a person has put it.
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
        // Where there is nothing of its own it begins anew by itself.
        dropped
            .filter(|dropped| {
                self.repository()
                    .is_ok_and(|it| !it.is_ancestor(&tip, dropped).unwrap_or(true))
            })
            .map(|dropped| self.lack_of_rewritten(base.as_deref(), &commit, &dropped))
            .transpose()
    }

    /// The newest commit of the base that `holder` has and the base, which is at `commit`, has no more: it was reset, amended or rebased.
    /// `None` if a person has accepted it there.
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

    /// Where the base was and is no more, if `work` has that commit, and `tip` of the integration branch has it not.
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
            // It may be gone by now, or only not be followed yet.
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

    /// Puts the integration branch, which is at `tip` and has nothing of its own, to its base. False if that can't be now.
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

    /// A person says that the integration branch, or a base that is not followed, is right where it is, at `revision`: which, and that
    /// commit. `None` if it is elsewhere.
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
                let cause = Some(format!("`{branch}` was accepted as it is"));
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

    /// Brings the integration branch up to its base, making it if it is not there. What stands in the way, such as a conflict, is
    /// returned beside it: it stops integration, not work. Work begins at the last tip that is known, not at one of somebody
    /// else. In a dry run the branch stays, and what would have to be merged is not.
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
            // Somebody else moved it meanwhile, or has it checked out: it is used as it is.
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

    /// The commit that a worktree's HEAD is at.
    pub fn tip_of(&self, worktree: &Path) -> Result<CommitId, Error> {
        let head = self.repository()?.head_of(worktree)?;
        head.commit().ok_or(Error::NoCommits)
    }

    /// Where the integration worktree is, in which merges are verified.
    pub fn scratch(&self) -> PathBuf {
        self.board.path("worktrees/integration")
    }
}

/// So many of the places where the base was are looked at.
const MOST_TIPS: usize = 64;

/// The newest of `tips` that `holder` has, if `other` has it not.
fn newest_held(
    repository: &Repository,
    tips: &[CommitId],
    other: &CommitId,
    holder: &CommitId,
) -> Result<Option<CommitId>, Error> {
    for tip in tips.iter().rev().take(MOST_TIPS) {
        // It may be gone by now.
        if repository.commit_of(tip.as_str())?.is_some() && repository.is_ancestor(tip, holder)? {
            return Ok((!repository.is_ancestor(tip, other)?).then(|| tip.clone()));
        }
    }
    Ok(None)
}

/// What Claude is to deny by the rules of the board, before it is done. What has signs that its rules are made of is seen when it is done.
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

/// The runner called `name`, as agents of `role` use it.
pub fn runner_named(config: &Config, name: &str, role: &Role) -> Result<Box<dyn Runner>, Error> {
    // Who judges a commit is not led by it.
    let obeys_repository = role.does != Does::Review;
    let Some(entry) = config.runners.get(name) else {
        let preset = CommandRunner::preset(name).ok_or_else(|| Error::NoRunner(name.to_owned()))?;
        return Ok(Box::new(CommandRunner {
            obeys_repository,
            ..preset
        }));
    };
    Ok(match entry.kind {
        RunnerKind::Shell => Box::new(Shell),
        RunnerKind::Command => {
            let command = CommandRunner::new(name, entry.command.iter().cloned());
            Box::new(CommandRunner {
                obeys_repository,
                ..command
            })
        }
        RunnerKind::Claude => Box::new(Claude {
            program: PathBuf::from(entry.program.as_deref().unwrap_or("claude")),
            permission_mode: role.permission_mode.clone(),
            effort: role.effort.map(|effort| effort.to_string()),
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

/// Merges whose worktree could not be set up, as this process remembers them: of each item the one that was tried last.
#[derive(Default)]
pub struct StuckMerges(Mutex<HashMap<TaskId, StuckMerge>>);

struct StuckMerge {
    work: CommitId,
    tip: CommitId,
    until: Deadline,
    why: String,
}

impl StuckMerges {
    /// Why the item's merge can't be set up, if that was tried not long ago with the same work and branch.
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
