//! `tavern-queue`: see `src/queue.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::queue::Args>()
}
