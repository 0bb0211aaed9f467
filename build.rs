//! Programs and tests that are built for testing load at a fixed address: a third of the time to start, and tests start
//! tens of thousands. What is released keeps its random address.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").as_deref() == Ok("debug") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-tests=-no-pie");
    }
}
