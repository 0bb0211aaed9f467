//! Makes anew of a run's folder what can be made from the rest of it, the log and git, and says what can't.

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;

use super::artifacts::{Artifacts, MERGED, METADATA, PATCH, RESULT, ToolCalls, VERIFY};
use super::error::Error;
use super::launch::form_of;
use super::metadata::Metadata;
use super::record::{patch, run_of, runs_of};
use super::site::Site;
use crate::runner::thread::read_thread;
use crate::runner::{MOST_ANSWER, OUTPUT_LOG, PROMPT, THREAD_LOG};
use tavern_git::CommitId;
use tavern_sys::process::excerpt::excerpt;

/// What became of a run's folder. Of what was whole nothing is said.
#[derive(Debug, Default, Serialize)]
pub struct Rebuilt {
    /// Files that were missing, empty or torn, and are whole again.
    pub made: BTreeSet<String>,
    /// Files that are missing or empty, and are made from nothing else.
    pub lost: BTreeSet<String>,
    /// It still runs: its files are its program's, and nothing was done.
    pub runs: bool,
}

/// Writes what is missing, empty or torn; nothing that is whole. Of a run that has gone meanwhile there is nothing to say.
pub fn rebuild(site: &Site, run: &str) -> Result<Rebuilt, Error> {
    let mut rebuilt = Rebuilt::default();
    let Some(metadata) = run_of(&site.board, run) else {
        return Ok(rebuilt);
    };
    let lease = site.board.lease(&metadata.task)?;
    if lease.is_some_and(|lease| lease.token == metadata.token) {
        rebuilt.runs = true;
        return Ok(rebuilt);
    }
    let artifacts = Artifacts::create(&site.board, run)?;
    let mut mend = |name: &str, text: &str| {
        if artifacts.mend(name, text)? {
            rebuilt.made.insert(name.to_owned());
        }
        Ok::<_, Error>(())
    };
    let said = reread(site, &artifacts, &metadata, &mut mend)?;
    mend(RESULT, &excerpt(&said, MOST_ANSWER))?;
    let (base, tip) = ends(site, &metadata)?;
    let patch = base
        .zip(tip.as_ref())
        .map(|(base, tip)| patch(site, &base, tip));
    if let Some(Some(patch)) = &patch {
        mend(PATCH, patch)?;
    }
    if metadata.damaged && !is_whole(&artifacts) {
        let known = Metadata {
            commit: tip.map(|tip| tip.as_str().to_owned()),
            // All that the log tells of its end is known.
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

/// What is missing or empty, was there once, and is made from nothing else.
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

/// What its agent said last, by its log. On the way the calls of tools are taken from that.
fn reread(
    site: &Site,
    artifacts: &Artifacts,
    run: &Metadata,
    mend: &mut dyn FnMut(&str, &str) -> Result<(), Error>,
) -> Result<String, Error> {
    let role = site.config.roles.get(&run.role);
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

/// Where its work began and where it ended. What the last run of an item came to is what the item's branch has.
fn ends(site: &Site, run: &Metadata) -> Result<(Option<CommitId>, Option<CommitId>), Error> {
    let base = run.base.as_ref().and_then(|base| base.parse().ok());
    let tip = match (&run.commit, &run.branch) {
        (Some(commit), _) => commit.parse().ok(),
        (None, Some(branch)) if run.damaged => {
            let all = runs_of(&site.board, &run.task)?;
            let is_last = all.last().is_some_and(|last| last.token == run.token);
            let tip = site.repository()?.branch_tip(branch)?;
            tip.filter(|_| is_last)
        }
        (None, _) => None,
    };
    Ok((base, tip))
}

fn is_whole(artifacts: &Artifacts) -> bool {
    serde_json::from_str::<Metadata>(&artifacts.read(METADATA)).is_ok()
}
