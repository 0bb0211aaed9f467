//! `tavern-drain`: see `src/cli/drain.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::drain::Args>()
}
