//! Any three versions, set apart by NUL, merge without a panic; a side that changed nothing changes not a byte; and no ID
//! that a side has added is lost.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use tavern_core::document::parse;
use tavern_core::merge::merge;

fn ids(text: &str) -> BTreeSet<String> {
    let (document, _) = parse(text);
    document
        .items()
        .iter()
        .filter_map(|item| item.id.as_ref().map(ToString::to_string))
        .collect()
}

fuzz_target!(|text: &str| {
    let mut versions = text.splitn(3, '\0');
    let mut next = || versions.next().unwrap_or_default();
    let (base, ours, theirs) = (next(), next(), next());
    let merged = |ours: &str, theirs: &str| merge(base, ours, theirs, &|_| false);
    assert_eq!(merged(base, theirs).text, theirs);
    assert_eq!(merged(ours, base).text, ours);
    assert_eq!(merged(ours, ours).text, ours);
    let result = merged(ours, theirs);
    merge(base, ours, theirs, &|_| true);
    let (was, now) = (ids(base), ids(&result.text));
    for id in ids(ours)
        .union(&ids(theirs))
        .filter(|id| !was.contains(*id))
    {
        assert!(result.has_markers || now.contains(id), "`{id}` is lost");
    }
});
