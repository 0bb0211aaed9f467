//! Rebuilds the files of a run's folder from its other files, the log and git, and reports files that can't be rebuilt.

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;

use super::artifacts::{Artifacts, MERGED, METADATA, PATCH, RESULT, ToolCalls, VERIFY};
use super::error::Error;
use super::launch::form_of;
use super::metadata::Metadata;
use super::record::{patch, run_of, runs_of};
use super::workspace::Workspace;
use crate::runner::thread::read_thread;
use crate::runner::{MOST_ANSWER, OUTPUT_LOG, PROMPT, THREAD_LOG};
use tavern_git::CommitId;
use tavern_sys::process::excerpt::excerpt;

/// The result of rebuilding a run's folder. Intact files are not listed.
#[derive(Debug, Default, Serialize)]
pub struct Rebuilt {
    /// Files that were missing, empty or torn, and are restored.
    pub made: BTreeSet<String>,
    /// Files that are missing or empty, and can't be rebuilt.
    pub lost: BTreeSet<String>,
    /// The run is still active, and its files were left alone.
    pub runs: bool,
}

/// Writes the files that are missing, empty or torn, and no others. Returns an empty result for a run that is gone.
pub fn rebuild(workspace: &Workspace, run: &str) -> Result<Rebuilt, Error> {
    let mut rebuilt = Rebuilt::default();
    let Some(metadata) = run_of(&workspace.board, run) else {
        return Ok(rebuilt);
    };
    let lease = workspace.board.lease(&metadata.task)?;
    if lease.is_some_and(|lease| lease.token == metadata.token) {
        rebuilt.runs = true;
        return Ok(rebuilt);
    }
    let artifacts = Artifacts::create(&workspace.board, run)?;
    let mut mend = |name: &str, text: &str| {
        if artifacts.mend(name, text)? {
            rebuilt.made.insert(name.to_owned());
        }
        Ok::<_, Error>(())
    };
    let said = reread(workspace, &artifacts, &metadata, &mut mend)?;
    mend(RESULT, &excerpt(&said, MOST_ANSWER))?;
    let (base, tip) = ends(workspace, &metadata)?;
    let patch = base
        .zip(tip.as_ref())
        .map(|(base, tip)| patch(workspace, &base, tip));
    if let Some(Some(patch)) = &patch {
        mend(PATCH, patch)?;
    }
    if metadata.damaged && !is_whole(&artifacts) {
        let known = Metadata {
            commit: tip.map(|tip| tip.as_str().to_owned()),
            // The log's record of its end is complete.
            damaged: metadata.outcome.is_none(),
            ..metadata.clone()
        };
        artifacts.write_durable(METADATA, &known.file_text())?;
        rebuilt.made.insert(METADATA.to_owned());
    }
    rebuilt.lost = lost(&artifacts, &metadata);
    if matches!(patch, Some(None)) && is_missing(&artifacts, PATCH) {
        rebuilt.lost.insert(PATCH.to_owned());
    }
    Ok(rebuilt)
}

fn is_missing(artifacts: &Artifacts, name: &str) -> bool {
    artifacts.read(name).trim_matches('\0').is_empty()
}

/// Returns the files that are missing or empty, existed once, and can't be rebuilt.
fn lost(artifacts: &Artifacts, run: &Metadata) -> BTreeSet<String> {
    let is_missing = |name: &str| is_missing(artifacts, name);
    let are_missing = |names: [&str; 2]| names.into_iter().all(is_missing);
    let has_turns = run.turns > 0 || run.tool_calls > 0;
    let is_silent = || !has_turns && is_missing(RESULT);
    let log = if has_turns { THREAD_LOG } else { OUTPUT_LOG };
    let all = [
        (PROMPT, is_missing(PROMPT)),
        (log, are_missing([THREAD_LOG, OUTPUT_LOG]) && !is_silent()),
        (
            VERIFY,
            run.verified.is_some() && are_missing([VERIFY, MERGED]),
        ),
    ];
    let lost = all.into_iter().filter(|(_, is_lost)| *is_lost);
    lost.map(|(name, _)| name.to_owned()).collect()
}

/// Returns the agent's last message from its log, and restores the files of its tool calls on the way.
fn reread(
    workspace: &Workspace,
    artifacts: &Artifacts,
    run: &Metadata,
    mend: &mut dyn FnMut(&str, &str) -> Result<(), Error>,
) -> Result<String, Error> {
    let role = workspace.config.roles.get(&run.role);
    let form = role.and_then(|role| form_of(role.does));
    let (mut calls, mut written) = (ToolCalls::default(), Ok(()));
    let thread = artifacts.path(THREAD_LOG);
    let reading = read_thread(&thread, form, &mut |event| {
        if let (Some((file, text)), Ok(())) = (calls.note(event), &written) {
            written = mend(&file, &text);
        }
    });
    written?;
    match reading {
        Ok(reading) => return Ok(reading.result().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(tavern_store::Error::io("read", &thread)(error).into()),
    }
    Ok(artifacts.read(OUTPUT_LOG).trim_end_matches('\n').to_owned())
}

/// Returns the commits at which the run's work began and ended. The end of an item's last run is the tip of its branch.
fn ends(
    workspace: &Workspace,
    run: &Metadata,
) -> Result<(Option<CommitId>, Option<CommitId>), Error> {
    let base = run.base.as_ref().and_then(|base| base.parse().ok());
    let tip = match (&run.commit, &run.branch) {
        (Some(commit), _) => commit.parse().ok(),
        (None, Some(branch)) if run.damaged => {
            let all = runs_of(&workspace.board, &run.task)?;
            let is_last = all.last().is_some_and(|last| last.token == run.token);
            let tip = workspace.repository()?.branch_tip(branch)?;
            tip.filter(|_| is_last)
        }
        (None, _) => None,
    };
    Ok((base, tip))
}

fn is_whole(artifacts: &Artifacts) -> bool {
    serde_json::from_str::<Metadata>(&artifacts.read(METADATA)).is_ok()
}
