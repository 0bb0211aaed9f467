//! `tavern-log`: see `src/cli/log.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::log::Args>()
}
