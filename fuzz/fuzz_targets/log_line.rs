//! Any line is read as an event or refused; what is read is written, and read again, as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tavern_store::Entry;

fuzz_target!(|line: &[u8]| {
    if let Ok(entry) = serde_json::from_slice::<Entry>(line) {
        let written = serde_json::to_string(&entry).expect("it is plain data");
        let again = serde_json::from_str::<Entry>(&written).expect("it was just written");
        assert_eq!(again, entry);
    }
});
