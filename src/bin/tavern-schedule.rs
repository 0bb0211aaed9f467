//! `tavern-schedule`: see `src/cli/schedule.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::schedule::Args>()
}
