//! `tavern-claim`: the verbs that shell loops call most, without the rest of `tavern`.

fn main() -> std::process::ExitCode {
    tavern::program::small()
}
