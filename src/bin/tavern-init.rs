//! `tavern-init`: see `src/init.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::init::Args>()
}
