//! `tavern-claim`: see `src/cli/claim.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::claim::Args>()
}
