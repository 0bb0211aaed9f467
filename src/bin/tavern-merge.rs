//! `tavern-merge`: see `src/cli/merge.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::merge::Args>()
}
