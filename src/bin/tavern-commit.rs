//! `tavern-commit`: see `src/cli/commit.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::commit::Args>()
}
