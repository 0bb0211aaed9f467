//! `tavern`: every program as a verb, and the list of them all.

fn main() -> std::process::ExitCode {
    tavern::multicall::main()
}
