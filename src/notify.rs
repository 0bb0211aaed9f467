//! `tavern-notify`: notify people of items that need them.

use tavern_core::notice::Notice;
use tavern_run::notices::{Delivery, tell_people_now, try_channels};
use tavern_run::{Error, Trust};

use super::flags::DryRun;
use super::{CliError, Context, Exit, Verb};

/// Notify people of items that need them, by the channels of config.yaml
///
/// Agents, `tavern drain` and `tavern watch` send notices themselves; this program is for an idle board, from cron for example,
/// and for testing a channel. Each channel sends each notice once. A failed one is retried later, for a day, and at once by
/// this program.
#[derive(clap::Args)]
pub struct Args {
    /// Send a test by each channel, now
    #[arg(long)]
    pub test: bool,

    #[command(flatten)]
    pub plan: DryRun,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-notify";
    const EXAMPLES: &'static [&'static str] = &["tavern notify --test"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let workspace = context.site(context.board()?)?;
        if workspace.config.notify.is_empty() {
            context.out.note("config.yaml names no channel: see `notify` there, such as notify: {me: {desktop: true}}");
            return Ok(Exit::Done);
        }
        // Without trusted settings no notification can be sent, so fail with the reason.
        Trust::of(&workspace).settings().map_err(Error::from)?;
        let told = if self.test {
            Some(try_channels(&workspace)?)
        } else {
            tell_people_now(&workspace)?
        };
        let Some(told) = told else {
            context
                .out
                .note("another program is sending notices now, these too");
            return Ok(Exit::Done);
        };
        for delivery in &told {
            context.out.record(delivery, line(delivery))?;
        }
        if told.is_empty() {
            context.out.note("no notices to send");
        }
        if let Some(exit) = context.interrupted() {
            return Ok(exit);
        }
        let has_failed = told.iter().any(|delivery| delivery.failure.is_some());
        Ok(if has_failed { Exit::Failed } else { Exit::Done })
    }
}

fn line(delivery: &Delivery) -> String {
    let lines: Vec<String> = delivery.notices.iter().map(Notice::line).collect();
    let failure = delivery
        .failure
        .iter()
        .map(|why| format!(" (not sent: {why})"));
    format!(
        "{}: {}{}",
        delivery.channel,
        lines.join("\n  "),
        failure.collect::<String>()
    )
}
