//! `tavern-plan`: see `src/cli/plan.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::plan::Args>()
}
