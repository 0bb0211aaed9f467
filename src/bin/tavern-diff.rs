//! `tavern-diff`: see `src/cli/diff.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::diff::Args>()
}
