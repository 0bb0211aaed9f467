//! `tavern-watch`: see `src/watch.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::watch::Args>()
}
