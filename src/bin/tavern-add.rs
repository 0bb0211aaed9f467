//! `tavern-add`: see `src/add.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::add::Args>()
}
