//! `tavern-schedule`: see `src/schedule.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::schedule::Args>()
}
