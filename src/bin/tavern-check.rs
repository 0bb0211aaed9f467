//! `tavern-check`: see `src/cli/check.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::check::Args>()
}
