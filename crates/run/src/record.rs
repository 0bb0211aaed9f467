//! Writing and reading of `metadata.json`.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use super::artifacts::{Artifacts, METADATA, PATCH, RESULT};
use super::environment;
use super::record_recovery;
use super::result::{AgentAnswer, RunResult};
use super::workspace::{Workspace, runner_named};
use crate::runner::{Denial, Job, LOGS, MOST_ANSWER, Outcome, PROMPT, RULES, SessionEnd, Usage};
use tavern_core::cap::Spent;
use tavern_core::eligible::DEFAULT_ROLE;
use tavern_core::lease::Token;
use tavern_core::rule::Breach;
use tavern_core::task::{Task, TaskId, Timestamp};
use tavern_git::CommitId;
use tavern_store::config::Does;
use tavern_store::{Board, Error, TEMP_PREFIX, walk_log};
use tavern_sys::clock;
use tavern_sys::files;
use tavern_sys::process::excerpt::excerpt;

pub use super::metadata::{Metadata, run_name};

/// The recorded reason of a run without an observed end.
pub(super) const DEAD_SUPERVISOR: &str = "its supervisor died";

/// The most denials kept of a run, and the most bytes of each.
const MOST_DENIALS: usize = 100;
const MOST_OF_DENIAL: usize = 4 << 10;

/// The most runs searched for the newest ones of some kind: a board may have many thousands.
const MOST_LOOKED_AT: usize = 2_000;

/// Keeps the prompt and the rules that the agent is given.
fn keep_delivered(artifacts: &Artifacts, job: &Job) -> Result<(), Error> {
    artifacts.write(PROMPT, &job.prompt)?;
    if job.rules.is_empty() {
        Ok(())
    } else {
        artifacts.write(RULES, &job.rules)
    }
}

/// The only writer of a run's `metadata.json`. The file is replaced as a whole after each event.
pub struct Record<'a> {
    workspace: &'a Workspace,
    artifacts: Artifacts,
    metadata: Metadata,
}

impl<'a> Record<'a> {
    /// Begins the record of a new run for `job`.
    pub fn begin(
        workspace: &'a Workspace,
        metadata: Metadata,
        job: &Job,
    ) -> Result<Record<'a>, Error> {
        // An earlier run of the same claim was killed: its usage must stay known.
        close_run(workspace, &metadata.run)?;
        let artifacts = Artifacts::create(&workspace.board, &metadata.run)?;
        let record = Record {
            workspace,
            artifacts,
            metadata,
        };
        // Saved first: a run with a prompt and without metadata counts as damaged.
        record.save()?;
        keep_delivered(&record.artifacts, job)?;
        Ok(record)
    }

    /// Opens the record of an earlier run, perhaps of another process; `None` if nothing is known of it.
    pub fn open(workspace: &'a Workspace, run: &str) -> Option<Record<'a>> {
        let metadata = run_of(&workspace.board, run)?;
        Some(Record {
            workspace,
            artifacts: Artifacts::open(&workspace.board, run),
            metadata,
        })
    }

    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    /// Returns true if the metadata file still exists.
    pub fn is_kept(&self) -> bool {
        self.artifacts.path(METADATA).exists()
    }

    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Records that the run starts over in a new session, with a full prompt that contains these learnings.
    pub fn begins_anew(&mut self, job: &Job, knowledge: &[String]) -> Result<(), Error> {
        keep_delivered(&self.artifacts, job)?;
        self.metadata.knowledge = knowledge.to_vec();
        self.metadata.session = Some(job.session.clone());
        self.save()
    }

    /// Records a learning that the agent received while it ran. A failed write is made up for when the program ends.
    pub fn knows(&mut self, learning: String) {
        self.metadata.knowledge.push(learning);
        if self.is_kept() {
            drop(self.save());
        }
    }

    /// Records the session and the model that the program reports, since a later run continues with both. A failed
    /// write is made up for when the program ends.
    pub fn is_in(&mut self, session: String, model: Option<String>) {
        let known = (self.metadata.session.take(), self.metadata.model.take());
        self.metadata.session = Some(session)
            .filter(|id| !id.is_empty())
            .or(known.0.clone());
        self.metadata.model = model.or(known.1.clone());
        if known != (self.metadata.session.clone(), self.metadata.model.clone()) {
            drop(self.save());
        }
    }

    /// Records that the program has ended and left `commit`.
    pub fn program_ended(
        &mut self,
        ended: &SessionEnd,
        commit: Option<&CommitId>,
    ) -> Result<(), Error> {
        let said = if ended.result.trim().is_empty() {
            &ended.reason
        } else {
            &ended.result
        };
        self.metadata.summary = summary(said);
        self.comes_to(ended.outcome, ended.reason.clone());
        let metadata = &mut self.metadata;
        metadata.ended = Some(clock::now());
        metadata.session.clone_from(&ended.session);
        metadata.resets_at = ended.resets_at;
        metadata.usage = ended.usage.clone();
        metadata.turns = ended.turns;
        metadata.tool_calls = ended.tool_calls;
        metadata.denials = denials(&ended.denials);
        metadata.refused.clone_from(&ended.refused);
        self.artifacts
            .write(RESULT, &excerpt(&ended.result, MOST_ANSWER))?;
        self.artifacts.redact_logs()?;
        self.left(commit);
        write_spent(self.workspace, self.metadata.spent(clock::now()))?;
        self.save()
    }

    /// Sets outcome and reason. The agent's last message only sums up its work; a failure's reason replaces it.
    fn comes_to(&mut self, outcome: Outcome, reason: String) {
        if outcome != Outcome::Success {
            self.metadata.summary = summary(&reason);
        }
        (self.metadata.outcome, self.metadata.reason) = (Some(outcome), Some(reason));
    }

    /// Records its usage so far, which other runs count towards shared caps. A failed write is made up for at the end
    /// of the run.
    pub fn uses(&mut self, usage: Usage) {
        self.metadata.usage = usage;
        // A file that was removed meanwhile is reported, not recreated here.
        if self.is_kept() {
            drop(self.save());
        }
    }

    /// Records acts that are no part of its work and break a rule.
    pub fn strayed(&mut self, acts: Vec<Breach>) -> Result<(), Error> {
        self.metadata.acts = acts;
        self.save()
    }

    /// Records the agent's answer, not verified yet, and the breaches that a person is asked about.
    pub fn answered(&mut self, answer: &AgentAnswer, breaches: Vec<Breach>) -> Result<(), Error> {
        self.metadata.breaches = breaches;
        self.comes_to(answer.outcome(), answer.reason());
        self.metadata.silent = matches!(
            answer,
            AgentAnswer::Done {
                is_silent: true,
                ..
            }
        );
        self.metadata.question = answer
            .result()
            .and_then(RunResult::question)
            .map(str::to_owned);
        self.save()
    }

    /// Records the result of the verification, whether `done_when` passed if it was run, and the commit that was
    /// checked.
    pub fn verified(
        &mut self,
        result: &RunResult,
        proof: Option<bool>,
        commit: Option<&CommitId>,
    ) -> Result<(), Error> {
        self.comes_to(result.outcome(), result.reason());
        self.metadata.verified = proof;
        self.left(commit);
        self.save()
    }

    /// Records that a person's chat with its agent is over.
    pub fn talked(&mut self, exit: &str, commit: Option<&CommitId>) -> Result<(), Error> {
        self.metadata.reason = Some("chat".to_owned());
        self.left(commit);
        self.close(Outcome::Success, format!("chat: {exit}"), clock::now())
    }

    /// Records the end of a run that could not do so itself. A run that has ended stays as it is.
    pub fn died(&mut self, outcome: Outcome, why: &str) -> Result<(), Error> {
        if self.metadata.ended.is_some() {
            return Ok(());
        }
        self.metadata.reason = Some(why.to_owned());
        let seen = self.last_seen();
        self.artifacts.redact_logs()?;
        let calls = fs::read_dir(self.artifacts.path("tool_calls"))
            .into_iter()
            .flatten()
            .count();
        self.metadata.tool_calls = u32::try_from(calls).unwrap_or(u32::MAX);
        self.close(outcome, summary(why), seen)
    }

    /// Returns when it is known to have run last: a dead run may be found days later.
    fn last_seen(&self) -> Timestamp {
        let lease = self
            .workspace
            .board
            .lease(&self.metadata.task)
            .ok()
            .flatten();
        let beat = lease
            .filter(|lease| lease.token == self.metadata.token)
            .map(|lease| lease.heartbeat_at);
        let last = self
            .artifacts
            .last_written(LOGS.into_iter().chain([METADATA]));
        last.into_iter()
            .chain(beat)
            .max()
            .map_or_else(clock::now, |last| last.min(clock::now()))
    }

    /// Records the result of a run that could not go on to its end.
    pub fn broke_off(&mut self, result: &RunResult) -> Result<(), Error> {
        if self.metadata.ended.is_none() {
            return self.died(result.outcome(), &result.reason());
        }
        self.comes_to(result.outcome(), result.reason());
        self.save()
    }

    fn close(&mut self, outcome: Outcome, summary: String, seen: Timestamp) -> Result<(), Error> {
        self.metadata.outcome = Some(outcome);
        self.metadata.summary = summary;
        let recorded = recorded(self.workspace, &self.metadata);
        // The last reported usage may be more than the program's own record has.
        if recorded.total() >= self.metadata.usage.total() {
            let usd = self.metadata.usage.usd.max(recorded.usd);
            self.metadata.usage = Usage { usd, ..recorded };
        }
        write_spent(self.workspace, self.metadata.spent(seen))?;
        self.metadata.ended = Some(clock::now());
        self.metadata.damaged = false;
        self.save()
    }

    /// Records the branch's tip, and its patch if the tip has changed.
    fn left(&mut self, commit: Option<&CommitId>) {
        let Some(commit) =
            commit.filter(|commit| self.metadata.commit.as_deref() != Some(commit.as_str()))
        else {
            return;
        };
        // The patch can be rebuilt, so a failed write is harmless.
        if let Some(Ok(base)) = self.metadata.base.as_ref().map(|base| base.parse())
            && let Some(patch) = patch(self.workspace, &base, commit)
        {
            drop(self.artifacts.write(PATCH, &patch));
        }
        self.metadata.commit = Some(commit.as_str().to_owned());
    }

    fn save(&self) -> Result<(), Error> {
        self.artifacts.write(METADATA, &self.metadata.file_text())
    }
}

/// Returns when the program of a run last wrote output. The supervisor renews the lease even if it writes none.
pub fn last_output(board: &Board, run: &str) -> Option<Timestamp> {
    Artifacts::open(board, run).last_written(LOGS.into_iter())
}

/// Records the usage of a run; the first time also the usage of the runs before.
fn write_spent(workspace: &Workspace, spent: Spent) -> Result<(), Error> {
    let mut all = if workspace.board.has_spent() {
        Vec::new()
    } else {
        spent_before(&workspace.board)
    };
    all.push(spent);
    workspace.board.write_spent(&all)
}

/// Returns the usage of the runs that have ended.
pub fn spent_by_ended(board: &Board) -> Vec<Spent> {
    board.spent().unwrap_or_else(|| spent_before(board))
}

/// Collects the same from the metadata of the runs.
fn spent_before(board: &Board) -> Vec<Spent> {
    let runs = runs(board).unwrap_or_default();
    runs.into_iter()
        .filter_map(|run| Some(run.spent(run.ended?)))
        .collect()
}

/// Returns the metadata of one run; of a damaged one as far as other traces show it.
pub fn run_of(board: &Board, run: &str) -> Option<Metadata> {
    // A file of the board may name a run outside the runs folder, and metadata may carry another name than its folder.
    if Path::new(run).file_name() != Some(OsStr::new(run)) {
        return None;
    }
    let metadata = serde_json::from_str(&Artifacts::open(board, run).read(METADATA)).ok();
    Some(Metadata {
        run: run.to_owned(),
        ..metadata.or_else(|| record_recovery::known(board, run))?
    })
}

/// Returns true if the metadata in this folder says that the run has ended.
pub fn is_over(folder: &Path) -> bool {
    let text = files::read(folder.join(METADATA)).unwrap_or_default();
    serde_json::from_slice(&text).is_ok_and(|run: Metadata| run.ended.is_some())
}

/// Records the end of a run after its supervisor died.
pub fn close_run(workspace: &Workspace, run: &str) -> Result<(), Error> {
    Record::open(workspace, run).map_or(Ok(()), |mut record| {
        record.died(Outcome::Killed, DEAD_SUPERVISOR)
    })
}

/// Returns the usage of a run without supervisor, from its program's own record.
fn recorded(workspace: &Workspace, run: &Metadata) -> Usage {
    let (Some(session), Ok(role)) = (&run.session, workspace.role(&run.role)) else {
        return Usage::default();
    };
    let Ok(program) = runner_named(&workspace.config, &run.runner, role) else {
        return Usage::default();
    };
    let env = environment::of_agents(&workspace.config, &run.runner, program.as_ref(), Vec::new());
    program.recorded(session, &env, run.started)
}

/// Returns the role in which the item was worked, even if the item names another now. Work without a run has the
/// item's.
pub fn role_of_work(workspace: &Workspace, task: &Task) -> Result<String, Error> {
    let does = |run: &Metadata| {
        workspace
            .config
            .roles
            .get(&run.role)
            .is_none_or(|role| role.does == Does::Work)
    };
    let last = runs_of(&workspace.board, &task.id)?
        .into_iter()
        .rfind(does)
        .map(|run| run.role);
    Ok(last
        .or_else(|| task.role.clone())
        .unwrap_or_else(|| DEFAULT_ROLE.to_owned()))
}

/// Returns the metadata of all runs, oldest first. Skips folders that are not runs'.
pub fn runs(board: &Board) -> Result<Vec<Metadata>, Error> {
    Ok(read_runs(board, run_names(board)?))
}

/// Returns the newest wanted runs, at most `most`, oldest first. Only the newest runs of the board are searched.
pub fn newest_runs(
    board: &Board,
    most: usize,
    is_wanted: &dyn Fn(&Metadata) -> bool,
) -> Result<Vec<Metadata>, Error> {
    let token = |name: &String| {
        name.rsplit_once('@')
            .and_then(|(_, token)| token.parse::<Token>().ok())
    };
    let mut names: Vec<String> = run_names(board)?
        .filter(|name| token(name).is_some())
        .collect();
    names.sort_by_cached_key(|name| std::cmp::Reverse(token(name)));
    let newest = names
        .iter()
        .take(MOST_LOOKED_AT)
        .filter_map(|name| run_of(board, name));
    let mut runs: Vec<Metadata> = newest.filter(is_wanted).take(most).collect();
    runs.reverse();
    Ok(runs)
}

/// Returns the runs of one task, oldest first.
pub fn runs_of(board: &Board, task: &TaskId) -> Result<Vec<Metadata>, Error> {
    let prefix = format!("{task}@");
    Ok(read_runs(
        board,
        run_names(board)?.filter(|name| name.starts_with(&prefix)),
    ))
}

/// Returns the token of the task's newest run; 0 if it has had none. Reads the log, since a board may have thousands of
/// runs.
pub fn last_token(board: &Board, task: &TaskId) -> Result<Token, Error> {
    let mut token = None;
    walk_log(board, Some(task), &mut |entry| {
        token = entry.token;
        token.is_none()
    })?;
    match token {
        Some(token) => Ok(token),
        None => Ok(runs_of(board, task)?.last().map_or(0, |run| run.token)),
    }
}

/// The names of all runs by task, for callers that need the runs of many tasks.
pub struct RunNames(HashMap<String, Vec<String>>);

impl RunNames {
    /// Lists them without reading their files.
    pub fn list(board: &Board) -> Result<RunNames, Error> {
        let mut names: HashMap<String, Vec<String>> = HashMap::new();
        for name in run_names(board)? {
            if let Some((task, _)) = name.rsplit_once('@') {
                names.entry(task.to_owned()).or_default().push(name);
            }
        }
        Ok(RunNames(names))
    }

    /// Returns the runs of one task, oldest first.
    pub fn runs_of(&self, board: &Board, task: &TaskId) -> Vec<Metadata> {
        read_runs(board, self.0.get(task.as_str()).into_iter().flatten())
    }
}

fn run_names(board: &Board) -> Result<impl Iterator<Item = String>, Error> {
    let folder = board.path("runs");
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        entries => Some(entries.map_err(Error::io("list", &folder))?),
    };
    let names = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| !name.starts_with(TEMP_PREFIX)))
}

fn read_runs(board: &Board, names: impl Iterator<Item = impl AsRef<str>>) -> Vec<Metadata> {
    let mut runs: Vec<Metadata> = names
        .filter_map(|name| run_of(board, name.as_ref()))
        .collect();
    runs.sort_by_key(|run| run.token);
    runs
}

/// Returns the first non-blank line of `text`, cut to 150 characters.
fn summary(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("");
    match line.char_indices().nth(150) {
        Some(_) => line.chars().take(149).chain(['…']).collect(),
        None => line.to_owned(),
    }
}

/// The most bytes of `diff.patch`.
const PATCH_LIMIT: usize = 4 << 20;

/// Returns the text of `diff.patch`; `None` if git fails.
pub(super) fn patch(workspace: &Workspace, base: &CommitId, tip: &CommitId) -> Option<String> {
    let repository = workspace.repository().ok()?;
    // The diff starts at the fork, so that it does not revert merges made since the branch began.
    let fork = repository.fork(base, tip).ok().flatten();
    let patch = repository.diff(fork.as_ref().unwrap_or(base), tip, PATCH_LIMIT);
    patch.ok().map(|patch| patch.text)
}

/// Formats the denied calls, one per line.
fn denials(all: &[Denial]) -> Vec<String> {
    let line =
        |denial: &Denial| excerpt(&format!("{} {}", denial.tool, denial.input), MOST_OF_DENIAL);
    let left_out = all.len().saturating_sub(MOST_DENIALS);
    let more = (left_out > 0).then(|| format!("{left_out} more are in its log"));
    all.iter()
        .take(MOST_DENIALS)
        .map(line)
        .chain(more)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_beyond_number_and_size_are_told() {
        let denial = |input: &str| Denial {
            tool: "Bash".to_owned(),
            input: input.into(),
        };
        assert_eq!(denials(&[denial("ls")]), ["Bash \"ls\""]);
        let told = denials(&vec![denial(&"x".repeat(1 << 20)); 103]);
        assert_eq!(
            (told.len(), told[100].as_str()),
            (101, "3 more are in its log")
        );
        assert!(
            told[0].len() < 5000 && told[0].contains(" bytes left out …]"),
            "{}",
            told[0].len()
        );
    }

    #[test]
    fn summaries_are_one_line_of_at_most_150_characters() {
        assert_eq!(summary("\n\n  Did it.\nMore.\n"), "Did it.");
        assert_eq!(summary(""), "");
        assert_eq!(summary(&"ä".repeat(400)).chars().count(), 150);
    }
}
