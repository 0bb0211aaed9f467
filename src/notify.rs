//! `tavern-notify`: notify people of items that need them.

use tavern_core::notice::Notice;
use tavern_run::notices::{Delivery, tell_people_now, try_channels};
use tavern_run::{Error, Trust};

use super::flags::DryRun;
use super::{CliError, Context, Exit, Verb};

/// Tell people what needs them, by the channels of config.yaml
///
/// Agents, `tavern drain` and `tavern watch` do so by themselves; this is for a board on which nobody works, from cron for
/// example, and to see whether a channel works. Each notice is told once by each channel. One that fails is tried again after a
/// while, for a day, and at once by this program.
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

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let site = context.site(context.board()?)?;
        if site.config.notify.is_empty() {
            context.out.note("config.yaml names no channel: see `notify` there, such as notify: {me: {desktop: true}}");
            return Ok(Exit::Done);
        }
        // Without trusted settings no notification can be sent, so fail with the reason.
        Trust::of(&site).settings().map_err(Error::from)?;
        let told = if self.test {
            Some(try_channels(&site)?)
        } else {
            tell_people_now(&site)?
        };
        let Some(told) = told else {
            context
                .out
                .note("another program tells people at the moment, this too");
            return Ok(Exit::Done);
        };
        for delivery in &told {
            context.out.record(delivery, line(delivery))?;
        }
        if told.is_empty() {
            context.out.note("there is nothing to tell");
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
        .map(|why| format!(" (not told: {why})"));
    format!(
        "{}: {}{}",
        delivery.channel,
        lines.join("\n  "),
        failure.collect::<String>()
    )
}
