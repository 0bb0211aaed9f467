//! `tavern-drain`: see `src/drain.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::drain::Args>()
}
