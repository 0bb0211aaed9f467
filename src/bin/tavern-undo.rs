//! `tavern-undo`: see `src/undo.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::undo::Args>()
}
