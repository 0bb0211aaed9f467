//! The runner of programs that speak the Agent Client Protocol. A program is added as a row of
//! [`super::programs`], or by a command line in the configuration.

use std::path::Path;

use tavern_core::eligible::NotReady;
use tavern_sys::process::Spec;

use super::acp_link::{AcpLink, AcpSettings};
use super::command::CommandRunner;
use super::job::Job;
use super::programs::AcpHabits;
use super::tool_rules::ToolRules;
use super::{Kept, ProgramState, Ready, Runner, Session, conversation, variable_of};

/// Starts a program and follows it by the Agent Client Protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acp {
    /// Its command line, with the files that it reads and writes.
    pub command: CommandRunner,
    /// The mode to work in, instead of the program's known one.
    pub mode: Option<String>,
    pub rules: ToolRules,
}

impl Acp {
    fn habits(&self) -> AcpHabits {
        let unknown = AcpHabits {
            tells_tokens: true,
            tells_usd: true,
            ..AcpHabits::default()
        };
        self.command
            .known()
            .map_or(unknown, |program| program.habits)
    }

    fn settings(&self, job: &Job) -> AcpSettings {
        let habits = self.habits();
        let is_set =
            |name: &str| variable_of(&job.env, name).is_some_and(|value| !value.is_empty());
        let ways = habits.sign_in.iter().filter(|(_, name)| is_set(name));
        AcpSettings {
            mode: self.mode.clone().or(habits.mode.map(str::to_owned)),
            sign_in: ways.map(|(way, _)| (*way).to_owned()).collect(),
            is_given_model: self.command.argv.iter().any(|arg| arg.contains("{model}")),
            counts: habits.counts,
            rules: self.rules.clone(),
        }
    }
}

impl Runner for Acp {
    fn check(&self, env: &[(String, String)]) -> Result<Ready, NotReady> {
        let mode = self.mode.as_deref().zip(self.habits().mode);
        if let Some((mode, only)) = mode
            && self.command.is_boxed
            && mode != only
        {
            let name = &self.command.name;
            return Err(NotReady::new(
                format!(
                    "in the mode `{mode}` the runner `{name}` has a sandbox of its own, which fails in Tavern's"
                ),
                format!("write `mode: {only}`, or `sandbox: false` for the role"),
            ));
        }
        self.command.check(env)
    }

    fn keeps(&self) -> Kept {
        let habits = self.habits();
        Kept {
            usd: habits.tells_usd,
            tokens: habits.tells_tokens,
            turns: false,
        }
    }

    fn variables(&self) -> Vec<&'static str> {
        self.command.variables()
    }

    fn state(&self, env: &[(String, String)], worktree: &Path) -> ProgramState {
        self.command.state(env, worktree)
    }

    fn is_led_by_repository(&self) -> bool {
        self.command.is_led_by_repository()
    }

    fn hears(&self) -> bool {
        true
    }

    fn may_run(&self, words: &[&str]) -> bool {
        self.rules.may_run(&words.join(" "))
    }

    /// Only the program knows; if it does not, the run begins a new one.
    fn knows_session(&self, _job: &Job) -> bool {
        true
    }

    fn spec(&self, job: &Job) -> Result<Spec, NotReady> {
        self.command.bare_spec(job)
    }

    fn attended(&self, job: &Job) -> Result<Spec, NotReady> {
        let name = &self.command.name;
        let program = self.command.known().ok_or_else(|| {
            NotReady::new(
                format!(
                    "the runner `{name}` speaks the Agent Client Protocol, which no person reads"
                ),
                "choose another: --runner claude",
            )
        })?;
        let chat = CommandRunner::new(name, program.chat.split(' '));
        chat.bare_spec(job)
    }

    fn start(&self, job: &Job) -> Result<Session, NotReady> {
        let link = AcpLink::of(job, self.settings(job));
        Ok(conversation::start(self.spec(job)?, job, Box::new(link))?)
    }
}
