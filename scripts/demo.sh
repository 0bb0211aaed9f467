#!/bin/sh
# Shows it all at work in a temporary repository: `tavern demo`, with the `tavern` on the PATH, else built here.
set -eu
if command -v tavern >/dev/null 2>&1; then exec tavern demo "$@"; fi
exec cargo run --release --quiet --manifest-path "$(dirname "$0")/../Cargo.toml" -- demo "$@"
