//! Any text is read for its front matter without a panic, and what is wrong can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tavern_core::front::read;
use tavern_core::problem::render;

fuzz_target!(|text: &str| {
    let mut problems = Vec::new();
    let (_, body) = read(text, &mut problems);
    assert!(text.is_char_boundary(body));
    for problem in &problems {
        render("path", text, problem);
    }
});
