//! `tavern-top`: see `src/top.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::top::Args>()
}
