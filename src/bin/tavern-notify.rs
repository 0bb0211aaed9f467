//! `tavern-notify`: see `src/notify.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::notify::Args>()
}
