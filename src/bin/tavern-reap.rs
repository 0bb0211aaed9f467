//! `tavern-reap`: see `src/cli/reap.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::reap::Args>()
}
