//! The context of an agent's prompts: the task, its history and the rules, gathered for the templates.

use super::artifacts::Artifacts;
use super::children::results;
use super::error::Error;
use super::knowledge::known_of;
use super::plan;
use super::record::{DEAD_SUPERVISOR, Metadata, run_name, runs_of};
use super::report::most_attempts;
use super::trust::Trust;
use super::verify::IF_RIGHT;
use super::workspace::Workspace;
use super::worktree::{Branch, Worktree, conflict, named, salvage_ref};
use crate::prompt::{
    self, Answered, Assigned, AssignedTask, EarlierAttempt, Learned, Prompt, PromptLimits,
    Refutation, Remark, ReviewTask, Template, TemplateError, assigned,
};
use crate::runner::permission::is_yes;
use crate::runner::{Outcome, PROMPT, Prods, Runner, Usage};
use tavern_core::event::Kind;
use tavern_core::lease::Token;
use tavern_core::monitor::Reaction;
use tavern_core::monitor::WATCHER;
use tavern_core::steps::boxes;
use tavern_core::task::{Status, Task, Timestamp};
use tavern_git::CommitId;
use tavern_store::config::{Does, Role};
use tavern_store::{Board, Claimed, Entry, Message, walk_log};
use tavern_sys::files;

/// The template for a resumed session.
const RESUME: &str = "resume.md";
/// The template for a message to a running session.
const MESSAGE: &str = "message.md";
/// The template for other agents' findings during a run.
const RELAY: &str = "relay.md";
/// The template for an agent that was silent for too long.
const SILENT: &str = "prod-silent.md";
/// The template for an agent that wrongly reports that it is done.
const REFUTED: &str = "prod-refuted.md";

/// The command with which an agent ticks a step.
const TICK: [&str; 3] = ["tavern", "report", "--step"];

/// The reader of the program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attendance {
    /// The supervisor, to the end.
    Followed,
    /// A person, at the terminal.
    Attended,
}

/// The context of a held task, for the prompts of one run.
pub struct PromptContext<'a> {
    workspace: &'a Workspace,
    values: Assigned,
    /// The texts of all templates that its session may receive.
    templates: String,
    /// Earlier runs of this session.
    earlier: Vec<Metadata>,
    entries: Vec<Entry>,
    /// Messages to deliver with the prompt.
    unread: Vec<Message>,
    /// The last event of the log that was read for them.
    seen: u64,
}

impl<'a> PromptContext<'a> {
    /// Gathers the context for an agent of `runner`. `answer_tool` is the tool for its answer, if it does not answer
    /// in text.
    pub fn gather(
        workspace: &'a Workspace,
        held: &Claimed,
        worktree: &Worktree,
        runner: &dyn Runner,
        answer_tool: Option<&str>,
    ) -> Result<PromptContext<'a>, Error> {
        let (task, lease) = (&held.task, &held.lease);
        // A board may have thousands of runs.
        let is_first = worktree.is_new && !held.has_history;
        let mut earlier = if is_first {
            Vec::new()
        } else {
            runs_of(&workspace.board, &task.id)?
        };
        let review = review_task(workspace, held, &earlier);
        // Runs in another role are not this one's past, nor are another reviewer's.
        let is_review = workspace.does(held, Does::Review);
        earlier.retain(|run| run.role == lease.role && (!is_review || run.agent == lease.agent));
        let branch = worktree.branch.as_ref();
        let (base, conflict) = branch
            .filter(|_| !is_first)
            .map_or(Ok((None, None)), |branch| stand(workspace, held, branch))?;
        let entries = if earlier.is_empty() && !held.has_history {
            Vec::new()
        } else {
            entries_of(workspace, held)
        };
        // If the log can't be read now, the next run receives the messages.
        let (unread, seen) = workspace.board.messages(&task.id, 0).unwrap_or_default();
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
                around: around(workspace, held),
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
            earlier: attempts(workspace, held, &earlier, &entries),
            mode: task.mode().as_str().to_owned(),
            integration: workspace.integration().to_owned(),
            result: workspace
                .expected(held)
                .map(|result| result.as_str().to_owned()),
            attended: false,
            answer_tool: answer_tool.map(str::to_owned),
            review,
            findings: findings(&entries, None),
            answers: answers(&entries, None),
            notes: notes(&entries, None, &[]),
            letters: letters(&unread),
            max_attempts: most_attempts(workspace, task, &held.lease.role),
            planning: workspace
                .does(held, Does::Plan)
                .then(|| plan::planning(workspace, held, worktree)),
            children: if task.status() == Status::InProgress {
                results(workspace, held.children(&workspace.board))
            } else {
                Vec::new()
            },
            knowledge: known_of(workspace, task),
            refutation: None,
            nonce: if runner.keeps_words_apart() {
                String::new()
            } else {
                uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
            },
        };
        let texts = |name: &&str| Ok(template(workspace, name)?.text);
        let templates = templates(workspace.role(&lease.role)?)
            .iter()
            .map(texts)
            .collect::<Result<_, Error>>()?;
        Ok(PromptContext {
            workspace,
            values,
            templates,
            earlier,
            entries,
            unread,
            seen,
        })
    }

    /// Returns true if the session must not continue, because the attempts start anew since its run `last`. This is so
    /// if a person revived the item, a child is to be retried, or a gang's run was restarted. A review counts no
    /// attempts.
    fn begins_anew(&self, held: &Claimed, last: &Metadata) -> bool {
        let is_revived = |entry: &Entry| entry.kind == Kind::Revived && entry.seq > last.token;
        let has_failed =
            |entry: &Entry| entry.kind == Kind::Failed && entry.token == Some(last.token);
        let is_restarted = |entry: &Entry| {
            entry.deed == Some(Reaction::Restarted) && entry.token == Some(last.token)
        };
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

    /// Returns the session of the last run by `runner` if it can continue, and its model if known.
    pub fn session(&self, held: &Claimed, runner: &str) -> Option<(String, Option<String>)> {
        let last = self
            .earlier
            .last()
            .filter(|last| last.runner == runner && !self.begins_anew(held, last))?;
        Some((last.session.clone()?, last.model.clone()))
    }

    /// Returns the usage of all earlier runs of `session`.
    pub fn spent_in(&self, session: &str) -> Usage {
        let mut all = Usage::default();
        let of = |run: &&Metadata| run.session.as_deref() == Some(session);
        self.earlier
            .iter()
            .filter(of)
            .for_each(|run| all.add(&run.usage));
        all
    }

    /// Returns the permissions that earlier runs were refused and a person has since granted.
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

    /// Marks the messages as delivered that the agent's prompt holds: the first `letters`. The others come next.
    pub fn is_given(&self, held: &Claimed, letters: usize) {
        let run = run_name(&held.task.id, held.lease.token);
        let untold = self.untold(letters);
        let is_told = |message: &&Message| {
            !is_letter(message) || untold.is_none_or(|first| message.seq < first)
        };
        self.unread
            .iter()
            .filter(is_told)
            .for_each(|message| self.workspace.board.mark_delivered(&run, message));
    }

    /// Returns the last event that its prompt covers.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the last event with all letters in a prompt that holds the first `letters`.
    pub fn delivered_until(&self, letters: usize) -> u64 {
        self.untold(letters)
            .map_or(self.seen, |first| self.seen.min(first - 1))
    }

    /// Returns the event of the first message that is not among the first `letters`.
    fn untold(&self, letters: usize) -> Option<u64> {
        let mut all = self.unread.iter().filter(|message| is_letter(message));
        all.nth(letters).map(|message| message.seq)
    }

    /// Returns the text above the item, limited as in a prompt, and without NUL, which an environment variable can't
    /// hold.
    pub fn around(&self) -> String {
        prompt::head(&self.values.task.around, PromptLimits::default().around).replace('\0', "")
    }

    /// Returns the text that delivers a message to the running session.
    pub fn message(&self, message: &Message) -> Result<String, Error> {
        self.render(
            MESSAGE,
            &Assigned {
                notes: vec![letter(message)],
                ..self.values.clone()
            },
        )
    }

    /// Returns the text that relays another agent's finding to the running session.
    pub fn relayed(&self, learned: Learned) -> Result<String, Error> {
        self.render(
            RELAY,
            &Assigned {
                knowledge: vec![learned],
                ..self.values.clone()
            },
        )
    }

    /// Returns the nonce that an answer's block must name, random for each run. `None` if its program keeps its agent's
    /// words apart.
    pub fn nonce(&self) -> Option<&str> {
        Some(self.values.nonce.as_str()).filter(|nonce| !nonce.is_empty())
    }

    /// Returns the rules for every task of the role.
    pub fn rules(&self, role: &Role, attendance: Attendance) -> Result<String, Error> {
        let attended = attendance == Attendance::Attended;
        self.render(
            rules(role),
            &Assigned {
                attended,
                ..self.values.clone()
            },
        )
    }

    /// Returns the prompt that begins a session.
    pub fn first(&self, role: &Role) -> Result<Prompt, Error> {
        self.prompt(&role.template, &self.values)
    }

    /// Returns the prompt that resumes a session: only the news since it stopped. Roles other than work get the full
    /// prompt, because the commit is another one by now.
    pub fn resumed(&self, role: &Role) -> Result<Prompt, Error> {
        if role.does != Does::Work {
            return self.first(role);
        }
        let mut values = self.values.clone();
        let given = |run: &Metadata| Artifacts::open(&self.workspace.board, &run.run).read(PROMPT);
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

    /// Returns the IDs of the learnings that `prompt` contains.
    pub fn carried(&self, prompt: &str) -> Vec<String> {
        let ids = self.values.knowledge.iter().map(|one| &one.id);
        ids.filter(|id| prompt.contains(&format!("\"{id}\"")))
            .cloned()
            .collect()
    }

    /// Returns the nudges for an agent that ended its turn without a signal, and for one that was silent for too long.
    pub fn prods(&self, role: &Role) -> Result<Prods, Error> {
        let (undecided, silent) = (
            self.render(undecided(role), &self.values)?,
            self.render(SILENT, &self.values)?,
        );
        Ok(Prods {
            most: role.prods,
            undecided,
            silent,
        })
    }

    /// Returns the text for an agent that wrongly reports that it is done.
    pub fn refuted(&self, refutation: Refutation) -> Result<String, Error> {
        self.render(
            REFUTED,
            &Assigned {
                refutation: Some(refutation),
                ..self.values.clone()
            },
        )
    }

    fn render(&self, template: &str, values: &Assigned) -> Result<String, Error> {
        Ok(self.prompt(template, values)?.text)
    }

    fn prompt(&self, template: &str, values: &Assigned) -> Result<Prompt, Error> {
        let template = Template {
            beside: self.templates.clone(),
            ..self::template(self.workspace, template)?
        };
        Ok(assigned(&template, values, &PromptLimits::default())?)
    }
}

/// Checks the templates of `role`, its own and those for its running or resumed sessions.
pub fn check(workspace: &Workspace, role: &Role) -> Result<(), Error> {
    for name in templates(role) {
        prompt::check(&template(workspace, name)?)?;
    }
    Ok(())
}

/// Returns the templates that runs of `role` may need.
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

/// Returns the template with the rules for every task of the role.
fn rules(role: &Role) -> &'static str {
    match role.does {
        Does::Work => "rules-work.md",
        Does::Review => "rules-review.md",
        Does::Plan => "rules-plan.md",
        Does::Answer => "rules-answer.md",
    }
}

/// Returns the template for an agent that ended its turn without a signal, a verdict, a plan or an answer.
fn undecided(role: &Role) -> &'static str {
    match role.does {
        Does::Work => "prod-undecided.md",
        Does::Review => "prod-review.md",
        Does::Plan => "prod-plan.md",
        Does::Answer => "prod-answer.md",
    }
}

/// Returns the board's own template of that name, else the built-in one.
fn template(workspace: &Workspace, name: &str) -> Result<Template, TemplateError> {
    let path = workspace.board.path("templates").join(name);
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

/// Returns the open steps, each with the number that ticks it.
fn open_steps(description: &str) -> Vec<String> {
    let steps = (1..)
        .zip(boxes(description))
        .filter(|(_, step)| !step.is_done);
    steps
        .map(|(number, step)| format!("{number}. {}", step.says))
        .collect()
}

/// Returns the text above the item in its queue, if it is trusted; empty if the queue can't be read now.
fn around(workspace: &Workspace, held: &Claimed) -> String {
    let found = |board: &Board| {
        let text = board.read(&held.queue).ok()?;
        let document = text.content.open();
        let item = document.find(&held.task.id)?;
        Some(if Trust::of(workspace).prose(&document).is_ok() {
            document.around(item)
        } else {
            String::new()
        })
    };
    // The saved file may be from before the claim.
    found(&workspace.board)
        .or_else(|| found(&workspace.board.clone().settled().ok()?))
        .unwrap_or_default()
}

/// Returns the task's history. If the log can't be read, only the runs' own records remain.
fn entries_of(workspace: &Workspace, held: &Claimed) -> Vec<Entry> {
    let mut entries = Vec::new();
    drop(walk_log(
        &workspace.board,
        Some(&held.task.id),
        &mut |entry| {
            entries.push(entry);
            true
        },
    ));
    entries.reverse();
    entries
}

/// Returns people's remarks from bringing the task back, and messages delivered to runs other than `heard`, after
/// `since` if given. Answers to questions are excluded; they appear with their questions.
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

/// Returns the messages sent to it.
fn letters(unread: &[Message]) -> Vec<Remark> {
    unread
        .iter()
        .filter(|message| is_letter(message))
        .map(letter)
        .collect()
}

/// Returns true unless the message is from the watcher: those concern only the run that it watched.
fn is_letter(message: &Message) -> bool {
    message.from != WATCHER
}

/// Returns the message with its sender from the log, so that an agent can't pass for a person.
fn letter(message: &Message) -> Remark {
    let from = if message.run.is_some() {
        format!("{}, an agent", message.from)
    } else {
        message.from.clone()
    };
    let severity = message.urgency.map(|urgency| urgency.as_str().to_owned());
    Remark {
        from,
        severity,
        text: message.text.trim().to_owned(),
    }
}

/// Returns the findings of reviews, after `since` if given.
fn findings(entries: &[Entry], since: Option<Timestamp>) -> Vec<Remark> {
    let is_finding = |entry: &&Entry| {
        entry.kind == Kind::Rejected && since.is_none_or(|since| entry.time >= since)
    };
    entries.iter().filter(is_finding).filter_map(note).collect()
}

/// Returns questions and their answers, after `since` if given.
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

/// Pairs each question with its answer: the item's resumption, or its claim with an answer under it.
fn exchanges(entries: &[Entry]) -> Vec<(&Entry, &Entry)> {
    let mut exchanges = Vec::new();
    let mut open = None;
    for entry in entries {
        match entry.kind {
            Kind::Asked => open = Some(entry),
            // A chat does not answer the question.
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

/// Returns the reviewer's context, for a task in review.
fn review_task(workspace: &Workspace, held: &Claimed, runs: &[Metadata]) -> Option<ReviewTask> {
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
        last_words: last
            .map(|run| Artifacts::open(&workspace.board, &run.run).read("result.txt"))
            .unwrap_or_default(),
    })
}

/// Returns where the branch forks from the integration branch, and the paths in which the two conflict.
fn stand(
    workspace: &Workspace,
    held: &Claimed,
    branch: &Branch,
) -> Result<(Option<CommitId>, Option<String>), Error> {
    let repository = workspace.repository()?;
    let Some(tip) = repository.branch_tip(&branch.name)? else {
        return Ok((None, None));
    };
    let conflict = conflict(workspace, &held.queue, &branch.base, &tip)?;
    Ok((
        repository.fork(&branch.base, &tip)?,
        conflict.map(|conflict| named(&conflict.paths)),
    ))
}

/// Returns the result of each run.
fn attempts(
    workspace: &Workspace,
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
        .map(|(run, next)| attempt(workspace, &held.task, run, next, entries))
        .collect()
}

/// Returns the result of `run`, before the token `next` was issued. Its work was salvaged under its own token, or
/// under the next run's if that run could not continue from it.
fn attempt(
    workspace: &Workspace,
    task: &Task,
    run: &Metadata,
    next: Token,
    entries: &[Entry],
) -> EarlierAttempt {
    let artifacts = Artifacts::open(&workspace.board, &run.run);
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
                ("rejected", "see the findings of its review".into())
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
        workspace
            .repository()
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
        commits: commits(workspace, run),
        salvage: kept(next).or_else(|| kept(run.token)),
    }
}

fn commits(workspace: &Workspace, run: &Metadata) -> Vec<String> {
    let (Some(base), Some(tip)) = (&run.base, &run.commit) else {
        return Vec::new();
    };
    let (Ok(base), Ok(tip)) = (base.parse(), tip.parse()) else {
        return Vec::new();
    };
    let Ok(repository) = workspace.repository() else {
        return Vec::new();
    };
    let found = repository.commits_between(&base, &tip).unwrap_or_default();
    found
        .iter()
        .map(|commit| format!("{} {}", commit.id.short(), commit.subject))
        .collect()
}
