//! `tavern-queue`: see `src/cli/queue.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::queue::Args>()
}
