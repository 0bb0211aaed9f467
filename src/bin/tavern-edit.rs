//! `tavern-edit`: see `src/edit.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::edit::Args>()
}
