//! Any text is read as settings, or its flaw has a place in it.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tavern_store::config::{Config, ConfigError};

fuzz_target!(|text: &str| {
    if let Err(ConfigError::Flawed(flaw)) = Config::parse(text, Path::new("config.yaml")) {
        assert!(
            flaw.span
                .clone()
                .is_none_or(|span| text.get(span).is_some())
        );
    }
});
