//! Any text is read without a panic, and each of its items can be changed: the item is as asked for, and the bytes of all
//! others stay.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tavern_core::document::parse;
use tavern_core::new_item::{NewItem, render};
use tavern_core::patch::Patch;
use tavern_core::problem::render as shown;
use tavern_core::task::{Status, TaskId};
use tavern_core::text::apply;

fuzz_target!(|text: &str| {
    let (document, problems) = parse(text);
    assert_eq!(apply(text, &[]), text);
    for problem in &problems {
        shown("path", text, problem);
    }
    let marker: TaskId = "ZZ-999".parse().expect("it is an ID");
    let is_known = document.find(&marker).is_some();
    for item in document.items().iter().take(8) {
        let block = document.block(item);
        assert!(text.contains(block));
        document.task(item, marker.clone());
        document.shell(item);
        for status in [Status::InProgress, Status::Completed] {
            let patch = Patch {
                id: Some(marker.clone()),
                status: Some(status),
                ..Patch::default()
            };
            let result = apply(text, &document.change(item, &patch));
            if !item.quarantined && !is_known {
                let (changed, _) = parse(&result);
                let found = changed.find(&marker).expect("the item is still there");
                assert_eq!(found.status, status);
            }
        }
    }
    let new = NewItem {
        id: Some(marker.clone()),
        title: "new".into(),
        ..NewItem::default()
    };
    let added = apply(text, &document.add(Status::Pending, &render(&new)));
    if !is_known {
        assert!(
            parse(&added).0.find(&marker).is_some(),
            "the new item is there"
        );
    }
});
