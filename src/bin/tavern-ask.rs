//! `tavern-ask`: see `src/cli/ask.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::ask::Args>()
}
