//! Any line of an agent program is read without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tavern_run::runner::stream::read;

fuzz_target!(|line: &str| {
    read(line);
});
