//! `tavern-plan`: see `src/plan.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::plan::Args>()
}
