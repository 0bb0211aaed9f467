//! What an agent is told: the task, its history and the rules, gathered for the prompts' templates.

use super::artifacts::Artifacts;
use super::children::results;
use super::error::Error;
use super::knowledge::known_of;
use super::plan;
use super::record::{DEAD_SUPERVISOR, Metadata, run_name, runs_of};
use super::report::most_attempts;
use super::site::Site;
use super::trust::Trust;
use super::verify::IF_RIGHT;
use super::worktree::{Branch, Worktree, conflict, named, salvage_ref};
use crate::prompt::{
    self, Answered, Assigned, AssignedTask, EarlierAttempt, Learned, Prompt, PromptLimits,
    Refutation, Remark, ReviewTask, Template, TemplateError, assigned,
};
use crate::runner::permission::is_yes;
use crate::runner::{Outcome, PROMPT, Prods, Runner};
use tavern_core::event::Kind;
use tavern_core::lease::Token;
use tavern_core::monitor::Deed;
use tavern_core::monitor::WATCHER;
use tavern_core::steps::boxes;
use tavern_core::task::{Status, Task, Timestamp};
use tavern_git::CommitId;
use tavern_store::config::{Does, Role};
use tavern_store::{Board, Claimed, Entry, Message, walk_log};
use tavern_sys::files;

/// The template for a session that goes on.
const RESUME: &str = "resume.md";
/// The template for a message to a session that runs.
const MESSAGE: &str = "message.md";
/// The template for what others find out meanwhile.
const RELAY: &str = "relay.md";
/// The template for an agent that was silent for too long.
const SILENT: &str = "prod-silent.md";
/// The template for an agent that says that it is done, and is not.
const REFUTED: &str = "prod-refuted.md";

/// How an agent ticks a step.
const TICK: [&str; 3] = ["tavern", "report", "--step"];

/// Who sees what the program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attendance {
    /// The supervisor, to the end.
    Followed,
    /// A person, at the terminal.
    Attended,
}

/// All that is known of a held task, for the prompts of one run.
pub struct Brief<'a> {
    site: &'a Site,
    values: Assigned,
    /// The texts of all templates by which its session may be told.
    templates: String,
    /// What was said in these its session knows.
    earlier: Vec<Metadata>,
    entries: Vec<Entry>,
    /// What was sent to it, and is told with the prompt.
    unread: Vec<Message>,
    /// The last event of the log that was looked at for that.
    seen: u64,
}

impl<'a> Brief<'a> {
    /// Gathers it, for an agent of `runner`. `answer_tool` is that with which the agent answers, if not in words.
    pub fn gather(
        site: &'a Site,
        held: &Claimed,
        worktree: &Worktree,
        runner: &dyn Runner,
        answer_tool: Option<&str>,
    ) -> Result<Brief<'a>, Error> {
        let (task, lease) = (&held.task, &held.lease);
        // A board may have thousands of runs.
        let is_first = worktree.is_new && !held.has_history;
        let mut earlier = if is_first {
            Vec::new()
        } else {
            runs_of(&site.board, &task.id)?
        };
        let review = review_task(site, held, &earlier);
        // What others did in another role is not this one's past, nor what another reviewer saw.
        let is_review = site.does(held, Does::Review);
        earlier.retain(|run| run.role == lease.role && (!is_review || run.agent == lease.agent));
        let branch = worktree.branch.as_ref();
        let (base, conflict) = branch
            .filter(|_| !is_first)
            .map_or(Ok((None, None)), |branch| stand(site, held, branch))?;
        let entries = if earlier.is_empty() && !held.has_history {
            Vec::new()
        } else {
            entries_of(site, held)
        };
        // Of a log that can't be read now the next run is told.
        let (unread, seen) = site.board.messages(&task.id, 0).unwrap_or_default();
        let values = Assigned {
            task: AssignedTask {
                id: task.id.to_string(),
                title: task.title.clone(),
                description: task.description.clone(),
                steps: if runner.may_run(&TICK) {
                    open_steps(&task.description)
                } else {
                    Vec::new()
                },
                around: around(site, held),
                done_when: task.done_when.clone(),
                touches: task.touches.clone(),
            },
            agent: held.lease.agent.clone(),
            role: held.lease.role.clone(),
            queue: held.queue.id.clone(),
            worktree: worktree.path.to_string_lossy().into_owned(),
            branch: branch.map(|branch| branch.name.clone()),
            base: branch.map(|branch| base.as_ref().unwrap_or(&branch.base).short().to_owned()),
            conflict,
            attempt: held.lease.attempt,
            earlier: attempts(site, held, &earlier, &entries),
            mode: task.mode().to_string(),
            integration: site.integration().to_owned(),
            result: site.expected(held).map(|result| result.to_string()),
            attended: false,
            answer_tool: answer_tool.map(str::to_owned),
            review,
            findings: findings(&entries, None),
            answers: answers(&entries, None),
            notes: notes(&entries, None, &[]),
            letters: letters(&unread),
            max_attempts: most_attempts(site, task, &held.lease.role),
            planning: site
                .does(held, Does::Plan)
                .then(|| plan::planning(site, held, worktree)),
            children: if task.status() == Status::InProgress {
                results(site, held.children(&site.board))
            } else {
                Vec::new()
            },
            knowledge: known_of(site, task),
            refutation: None,
            nonce: if runner.hears() {
                String::new()
            } else {
                uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
            },
        };
        let texts = |name: &&str| Ok(template(site, name)?.text);
        let templates = templates(site.role(&lease.role)?)
            .iter()
            .map(texts)
            .collect::<Result<_, Error>>()?;
        Ok(Brief {
            site,
            values,
            templates,
            earlier,
            entries,
            unread,
            seen,
        })
    }

    /// A task whose attempts were all given back to it since its run `last`, by a person from the dead letter lane or because
    /// it is a child to be retried, begins with a clear head. So does one of a gang. A look at it counts no attempts.
    fn begins_anew(&self, held: &Claimed, last: &Metadata) -> bool {
        let is_revived = |entry: &Entry| entry.kind == Kind::Revived && entry.seq > last.token;
        let has_failed =
            |entry: &Entry| entry.kind == Kind::Failed && entry.token == Some(last.token);
        let is_restarted =
            |entry: &Entry| entry.deed == Some(Deed::Restarted) && entry.token == Some(last.token);
        let is_counted_afresh = |entry: &Entry| {
            held.task.status() == Status::InProgress
                && has_failed(entry)
                && held.lease.attempt <= last.attempt
        };
        last.attempt > held.lease.attempt
            || self
                .entries
                .iter()
                .any(|entry| is_revived(entry) || is_restarted(entry) || is_counted_afresh(entry))
    }

    /// The session of the last run, by `runner`, if it goes on; and its model, where that is known.
    pub fn session(&self, held: &Claimed, runner: &str) -> Option<(String, Option<String>)> {
        let last = self
            .earlier
            .last()
            .filter(|last| last.runner == runner && !self.begins_anew(held, last))?;
        Some((last.session.clone()?, last.model.clone()))
    }

    /// What a person has allowed that an earlier run was refused.
    pub fn permits(&self) -> Vec<String> {
        let given = |run: &&Metadata| {
            exchanges(&self.entries)
                .into_iter()
                .any(|(question, answer)| {
                    question.token == Some(run.token)
                        && is_yes(answer.cause.as_deref().unwrap_or_default())
                })
        };
        self.earlier
            .iter()
            .filter(given)
            .flat_map(|run| run.refused.clone())
            .collect()
    }

    /// The agent was started with a prompt that holds the first `letters`, and so was told these. The others come next.
    pub fn is_given(&self, held: &Claimed, letters: usize) {
        let run = run_name(&held.task.id, held.lease.token);
        let untold = self.untold(letters);
        let is_told = |message: &&Message| {
            !is_letter(message) || untold.is_none_or(|first| message.seq < first)
        };
        self.unread
            .iter()
            .filter(is_told)
            .for_each(|message| self.site.board.told(&run, message));
    }

    /// What came after this event is not in its prompt.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The last event of which the letters are told by a prompt that holds the first `letters`.
    pub fn told_until(&self, letters: usize) -> u64 {
        self.untold(letters)
            .map_or(self.seen, |first| self.seen.min(first - 1))
    }

    /// The event of the first message that is not among the first `letters`.
    fn untold(&self, letters: usize) -> Option<u64> {
        let mut all = self.unread.iter().filter(|message| is_letter(message));
        all.nth(letters).map(|message| message.seq)
    }

    /// What stands above the item, as long as in a prompt, and without what no variable can hold.
    pub fn around(&self) -> String {
        prompt::head(&self.values.task.around, PromptLimits::default().around).replace('\0', "")
    }

    /// A message as its session is told while it runs.
    pub fn message(&self, message: &Message) -> Result<String, Error> {
        self.told(
            MESSAGE,
            &Assigned {
                notes: vec![letter(message)],
                ..self.values.clone()
            },
        )
    }

    /// What others have found out, as its session is told while it runs.
    pub fn relayed(&self, learned: Learned) -> Result<String, Error> {
        self.told(
            RELAY,
            &Assigned {
                knowledge: vec![learned],
                ..self.values.clone()
            },
        )
    }

    /// What a block of an answer names, drawn for this run; `None` where its program tells its agent's words from all others.
    pub fn nonce(&self) -> Option<&str> {
        Some(self.values.nonce.as_str()).filter(|nonce| !nonce.is_empty())
    }

    /// What holds for every task of the role.
    pub fn rules(&self, role: &Role, attendance: Attendance) -> Result<String, Error> {
        let attended = attendance == Attendance::Attended;
        self.told(
            rules(role),
            &Assigned {
                attended,
                ..self.values.clone()
            },
        )
    }

    /// The prompt that begins a session.
    pub fn first(&self, role: &Role) -> Result<Prompt, Error> {
        self.prompt(&role.template, &self.values)
    }

    /// The prompt with which a session goes on: only what is new since it stopped. Who looks at something is told all: it
    /// is another commit by now.
    pub fn resumed(&self, role: &Role) -> Result<Prompt, Error> {
        if role.does != Does::Work {
            return self.first(role);
        }
        let mut values = self.values.clone();
        let given = |run: &Metadata| Artifacts::open(&self.site.board, &run.run).read(PROMPT);
        let given: Vec<String> = self.earlier.iter().map(given).collect();
        let is_given = |words: &str| given.iter().any(|prompt| prompt.contains(words.trim()));
        if is_given(&values.task.description) {
            values.task.description.clear();
        }
        if values
            .task
            .done_when
            .iter()
            .all(|command| is_given(command))
        {
            values.task.done_when.clear();
        }
        let since = self.earlier.last().map(|run| run.started);
        let knows = |run: &Metadata, one: &Learned| {
            run.knowledge.contains(&one.id) || one.run.as_ref() == Some(&run.run)
        };
        values
            .knowledge
            .retain(|one| !self.earlier.iter().any(|run| knows(run, one)));
        values.findings = findings(&self.entries, since);
        values.answers = answers(&self.entries, since);
        values.notes = notes(&self.entries, since, &self.earlier);
        self.prompt(RESUME, &values)
    }

    /// The IDs of the learnings that stand in `prompt`.
    pub fn carried(&self, prompt: &str) -> Vec<String> {
        let ids = self.values.knowledge.iter().map(|one| &one.id);
        ids.filter(|id| prompt.contains(&format!("\"{id}\"")))
            .cloned()
            .collect()
    }

    /// What an agent is told that ended its turn without a signal, and one that was silent for too long.
    pub fn prods(&self, role: &Role) -> Result<Prods, Error> {
        let (undecided, silent) = (
            self.told(undecided(role), &self.values)?,
            self.told(SILENT, &self.values)?,
        );
        Ok(Prods {
            most: role.prods,
            undecided,
            silent,
        })
    }

    /// What an agent is told that says that it is done, and is not.
    pub fn refuted(&self, refutation: Refutation) -> Result<String, Error> {
        self.told(
            REFUTED,
            &Assigned {
                refutation: Some(refutation),
                ..self.values.clone()
            },
        )
    }

    fn told(&self, template: &str, values: &Assigned) -> Result<String, Error> {
        Ok(self.prompt(template, values)?.text)
    }

    fn prompt(&self, template: &str, values: &Assigned) -> Result<Prompt, Error> {
        let template = Template {
            beside: self.templates.clone(),
            ..self::template(self.site, template)?
        };
        Ok(assigned(&template, values, &PromptLimits::default())?)
    }
}

/// Checks the templates of `role`, its own and those that its sessions go on with.
pub fn check(site: &Site, role: &Role) -> Result<(), Error> {
    for name in templates(role) {
        prompt::check(&template(site, name)?)?;
    }
    Ok(())
}

/// The templates that runs of `role` may need.
pub fn templates(role: &Role) -> [&str; 8] {
    [
        &role.template,
        rules(role),
        RESUME,
        undecided(role),
        SILENT,
        REFUTED,
        MESSAGE,
        RELAY,
    ]
}

/// The template for what holds for every task of the role.
fn rules(role: &Role) -> &'static str {
    match role.does {
        Does::Work => "rules-work.md",
        Does::Review => "rules-review.md",
        Does::Plan => "rules-plan.md",
        Does::Answer => "rules-answer.md",
    }
}

/// The template for an agent that ended its turn without a signal, a verdict, a plan or an answer.
fn undecided(role: &Role) -> &'static str {
    match role.does {
        Does::Work => "prod-undecided.md",
        Does::Review => "prod-review.md",
        Does::Plan => "prod-plan.md",
        Does::Answer => "prod-answer.md",
    }
}

/// The board's own template of that name, else the built-in one.
fn template(site: &Site, name: &str) -> Result<Template, TemplateError> {
    let path = site.board.path("templates").join(name);
    let file = path.to_string_lossy().into_owned();
    match files::read_text(&path) {
        Ok(text) => return Ok(Template::new(file, text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(TemplateError::whole(
                file,
                format!("it can't be read: {error}"),
            ));
        }
    }
    Template::built_in(name).ok_or_else(|| {
        TemplateError::whole(
            name,
            "there is no such template in .tavern/templates, and none is built in",
        )
    })
}

/// Each with the number by which it is ticked.
fn open_steps(description: &str) -> Vec<String> {
    let steps = (1..)
        .zip(boxes(description))
        .filter(|(_, step)| !step.is_done);
    steps
        .map(|(number, step)| format!("{number}. {}", step.says))
        .collect()
}

/// What stands above the item where it is, as far as that is trusted; nothing of a queue that can't be read now.
fn around(site: &Site, held: &Claimed) -> String {
    let found = |board: &Board| {
        let text = board.read(&held.queue).ok()?;
        let document = text.content.open();
        let item = document.find(&held.task.id)?;
        Some(if Trust::of(site).prose(&document).is_ok() {
            document.around(item)
        } else {
            String::new()
        })
    };
    // What was saved meanwhile may be from before the claim.
    found(&site.board)
        .or_else(|| found(&site.board.clone().settled().ok()?))
        .unwrap_or_default()
}

/// The task's history. A log that can't be read leaves the runs' own records.
fn entries_of(site: &Site, held: &Claimed) -> Vec<Entry> {
    let mut entries = Vec::new();
    drop(walk_log(&site.board, Some(&held.task.id), &mut |entry| {
        entries.push(entry);
        true
    }));
    entries.reverse();
    entries
}

/// What people said when they brought the task back, and what it was told in other runs than `heard`, since `since` if that
/// is given. What answers a question is told with it.
fn notes(entries: &[Entry], since: Option<Timestamp>, heard: &[Metadata]) -> Vec<Remark> {
    let asked = exchanges(entries);
    let is_word = |entry: &&Entry| {
        let is_recent = since.is_none_or(|since| entry.time >= since);
        let is_answer = asked.iter().any(|(_, answer)| answer.seq == entry.seq);
        let is_heard = heard.iter().any(|run| entry.run.as_ref() == Some(&run.run));
        let is_said = match entry.kind {
            Kind::Withdrawn | Kind::Resumed | Kind::Revived | Kind::Reopened => !is_answer,
            Kind::Told => !is_heard,
            _ => false,
        };
        is_recent && is_said
    };
    let sent = |entry: &Entry| {
        entries
            .iter()
            .find(|sent| Some(sent.seq) == entry.sent)
            .and_then(Message::of)
    };
    let words = entries.iter().filter(is_word);
    words
        .filter_map(|entry| {
            sent(entry).map_or_else(|| note(entry), |message| letters(&[message]).pop())
        })
        .collect()
}

/// What was sent to it.
fn letters(unread: &[Message]) -> Vec<Remark> {
    unread
        .iter()
        .filter(|message| is_letter(message))
        .map(letter)
        .collect()
}

/// What the watcher said is for the run that it watched, and nobody's business in the next.
fn is_letter(message: &Message) -> bool {
    message.from != WATCHER
}

/// With its sender as the log has it: an agent can't pass for a person.
fn letter(message: &Message) -> Remark {
    let from = if message.run.is_some() {
        format!("{}, an agent", message.from)
    } else {
        message.from.clone()
    };
    let severity = message.urgency.map(|urgency| urgency.to_string());
    Remark {
        from,
        severity,
        text: message.text.trim().to_owned(),
    }
}

/// What reviews have found, since `since` if that is given.
fn findings(entries: &[Entry], since: Option<Timestamp>) -> Vec<Remark> {
    let is_finding = |entry: &&Entry| {
        entry.kind == Kind::Rejected && since.is_none_or(|since| entry.time >= since)
    };
    entries.iter().filter(is_finding).filter_map(note).collect()
}

/// What was asked and answered, since `since` if that is given.
fn answers(entries: &[Entry], since: Option<Timestamp>) -> Vec<Answered> {
    let recent = exchanges(entries)
        .into_iter()
        .filter(|(_, answer)| since.is_none_or(|since| answer.time >= since));
    let words = |entry: &Entry| entry.cause.clone().unwrap_or_default();
    recent
        .map(|(question, answer)| Answered {
            question: words(question),
            answer: words(answer),
        })
        .collect()
}

/// Each question with what came back for it: when the item was resumed, or when it was claimed with an answer under it.
fn exchanges(entries: &[Entry]) -> Vec<(&Entry, &Entry)> {
    let mut exchanges = Vec::new();
    let mut open = None;
    for entry in entries {
        match entry.kind {
            Kind::Asked => open = Some(entry),
            // A person who talks with the agent has its question before them.
            Kind::Claimed if entry.is_chat() => {}
            Kind::Resumed | Kind::Claimed => {
                exchanges.extend(
                    open.take()
                        .filter(|_| entry.cause.is_some())
                        .map(|question| (question, entry)),
                );
            }
            _ => {}
        }
    }
    exchanges
}

fn note(entry: &Entry) -> Option<Remark> {
    let from = entry.actor().unwrap_or("a person").to_owned();
    Some(Remark {
        from,
        text: entry.cause.clone()?,
        severity: None,
    })
}

/// What a reviewer is told of the work, of a task that is in review.
fn review_task(site: &Site, held: &Claimed, runs: &[Metadata]) -> Option<ReviewTask> {
    let task = &held.task;
    if task.status() != Status::Reviewing {
        return None;
    }
    let is_authors =
        |run: &&Metadata| run.role != held.lease.role && Some(run.agent.as_str()) == task.author();
    let last = runs.iter().rfind(is_authors);
    Some(ReviewTask {
        commit: task
            .commit()
            .map(|commit| commit.chars().take(12).collect()),
        author: task.author().unwrap_or("somebody").to_owned(),
        round: task.state.rounds + 1,
        said: last
            .map(|run| Artifacts::open(&site.board, &run.run).read("result.txt"))
            .unwrap_or_default(),
    })
}

/// Where a branch that has work forks from the integration branch, and in which paths the two conflict.
fn stand(
    site: &Site,
    held: &Claimed,
    branch: &Branch,
) -> Result<(Option<CommitId>, Option<String>), Error> {
    let repository = site.repository()?;
    let Some(tip) = repository.branch_tip(&branch.name)? else {
        return Ok((None, None));
    };
    let conflict = conflict(site, &held.queue, &branch.base, &tip)?;
    Ok((
        repository.fork(&branch.base, &tip)?,
        conflict.map(|conflict| named(&conflict.paths)),
    ))
}

/// What came of each run.
fn attempts(
    site: &Site,
    held: &Claimed,
    runs: &[Metadata],
    entries: &[Entry],
) -> Vec<EarlierAttempt> {
    let next = runs
        .iter()
        .skip(1)
        .map(|run| run.token)
        .chain([held.lease.token]);
    runs.iter()
        .zip(next)
        .map(|(run, next)| attempt(site, &held.task, run, next, entries))
        .collect()
}

/// What came of `run`, before `next` was given out. Its work was kept under its own token, or, by the run after it that
/// could not go on from it, under that one's.
fn attempt(
    site: &Site,
    task: &Task,
    run: &Metadata,
    next: Token,
    entries: &[Entry],
) -> EarlierAttempt {
    let artifacts = Artifacts::open(&site.board, &run.run);
    let entry = |kind| {
        entries
            .iter()
            .find(|entry| entry.kind == kind && (run.token..next).contains(&entry.seq))
    };
    let reason = run
        .reason
        .clone()
        .unwrap_or_else(|| DEAD_SUPERVISOR.to_owned());
    let (outcome, reason) = if let Some(entry) = entry(Kind::SentBack) {
        ("sent back", entry.cause.clone().unwrap_or(reason))
    } else {
        match run.outcome {
            Some(Outcome::Success) if entry(Kind::Rejected).is_some() => {
                ("rejected", "see what its review found".into())
            }
            Some(Outcome::Success) if entry(Kind::Parked).is_some() => ("parked", reason),
            outcome => (
                outcome.unwrap_or(Outcome::Killed).as_str(),
                reason.replace(IF_RIGHT, ""),
            ),
        }
    };
    let kept = |token| {
        let reference = salvage_ref(task, token);
        site.repository()
            .ok()?
            .commit_of(&reference)
            .ok()
            .flatten()
            .map(|_| reference)
    };
    EarlierAttempt {
        number: run.attempt,
        outcome: outcome.to_owned(),
        reason,
        output: artifacts.checked(),
        commits: commits(site, run),
        salvage: kept(next).or_else(|| kept(run.token)),
    }
}

fn commits(site: &Site, run: &Metadata) -> Vec<String> {
    let (Some(base), Some(tip)) = (&run.base, &run.commit) else {
        return Vec::new();
    };
    let (Ok(base), Ok(tip)) = (base.parse(), tip.parse()) else {
        return Vec::new();
    };
    let Ok(repository) = site.repository() else {
        return Vec::new();
    };
    let found = repository.commits_between(&base, &tip).unwrap_or_default();
    found
        .iter()
        .map(|commit| format!("{} {}", commit.id.short(), commit.subject))
        .collect()
}
