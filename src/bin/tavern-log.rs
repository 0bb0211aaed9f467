//! `tavern-log`: see `src/log.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::log::Args>()
}
