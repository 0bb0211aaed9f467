//! `tavern-check`: see `src/check.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::check::Args>()
}
