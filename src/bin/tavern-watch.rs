//! `tavern-watch`: see `src/cli/watch.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::watch::Args>()
}
