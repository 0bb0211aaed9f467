//! `tavern-status`: see `src/status.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::status::Args>()
}
