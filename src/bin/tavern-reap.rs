//! `tavern-reap`: see `src/reap.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::reap::Args>()
}
