//! `tavern-renew`: see `src/renew.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::renew::Args>()
}
