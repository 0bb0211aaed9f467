//! `tavern-merge-driver`: see `src/merge_driver.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::merge_driver::Args>()
}
