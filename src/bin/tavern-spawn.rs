//! `tavern-spawn`: see `src/spawn.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::spawn::Args>()
}
