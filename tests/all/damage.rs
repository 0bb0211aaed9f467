//! Files that can't be written, and what damage to Tavern's own files and folders does to work.

use std::path::Path;

use crate::support::Scratch;

#[test]
fn a_claim_that_nobody_is_told_of_holds_nothing() {
    let scratch = Scratch::pending("- [ ] T-1: One\n");
    for form in ["text", "json", "env"] {
        let claim = scratch.program("tavern-claim").args(&["--format", form]);
        claim.told_to(Path::new("/dev/full")).run().ends(1);
        scratch.stands("T-1", "pending", 0);
    }
    scratch.run("tavern-log", &["-n", "1"]).ends(0).says("what was taken could not be told");
    scratch.run("tavern-claim", &[]).ends(0);
}

#[test]
fn a_claim_counts_though_its_files_could_not_be_written() {
    for place in ["log.appended", "submit.replaced", "submit.leased"] {
        for verb in ["tavern-renew", "tavern-report --failed x", "tavern-spawn", "tavern-release"] {
            let scratch = Scratch::board("- [ ] T-1: One\n  ```sh\n  true\n  ```\n");
            let claimed = scratch.failing(format!("{place}=error"), "tavern-claim", &["--format", "json"]).ends(0);
            let token = claimed.json()["lease"]["token"].to_string();
            let ran = scratch.line(&format!("{verb} T-1 --token {token}")).run();
            assert!(ran.code != Some(4), "{place}: {verb}: {ran}");
        }
    }
}
