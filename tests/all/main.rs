//! The one test program: everything that is tested through real programs, files and processes.
#![expect(clippy::disallowed_methods, reason = "tests make and break files, and start the programs, on purpose")]

mod support;

#[test]
fn every_program_is_in_reach() {
    let scratch = support::Scratch::repository();
    scratch.run("tavern", &["--version"]).succeeds();
    assert_eq!(scratch.git(&["log", "--format=%an %s"]), "Rosie Begin");
}
