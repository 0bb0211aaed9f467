//! A plan: a planner's checklist, read into items to add, or its problems.
//!
//! Pure. Only titles, descriptions and a few keys of a planner's text reach a queue. A planner can't set an
//! item's owner, its progress or its approvers.

use serde_yaml::Value;

use crate::check::{check, first_of};
use crate::document::{Document, Item, parse};
use crate::eligible::DEFAULT_ROLE;
use crate::front::Front;
use crate::metadata::{Key, KeyUse, Meaning};
use crate::new_item::{NewItem, render, written_ids};
use crate::problem::{Problem, Severity};
use crate::suggestion::nearest;
use crate::task::{BadId, Expected, State, Status, Task, TaskId};

/// Limits of a plan.
pub struct Rules<'a> {
    /// Roles that planned items may have.
    pub roles: &'a [String],
    /// Default role of the queue that they go into; it need not be one of the allowed roles.
    pub role: &'a str,
    /// Maximum items of one plan.
    pub most: usize,
    /// Whether the plan may be empty, with a reason.
    pub may_be_empty: bool,
    /// Returns the status of an item of the board.
    pub status_of: &'a dyn Fn(&TaskId) -> Option<Status>,
}

/// A valid plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub items: Vec<Planned>,
    /// The reason for a plan without items.
    pub words: String,
}

/// An item of a plan, before it gets its final ID.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The item without ID, priority, `after` and tags.
    new: NewItem,
    priority: Option<u8>,
    tags: Vec<String>,
    after: Vec<Needed>,
}

/// A dependency of a planned item.
#[derive(Clone, Debug, PartialEq)]
enum Needed {
    /// The item at this index of the plan.
    Planned(usize),
    Known(TaskId),
}

/// Values that planned items inherit from the planning item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heritage {
    /// For items without a priority.
    pub priority: Option<u8>,
    /// For all items.
    pub tags: Vec<String>,
}

impl Plan {
    /// Maps all texts for people with the function.
    pub(super) fn tell(&mut self, told: &impl Fn(&str) -> String) {
        self.words = told(&self.words);
        for item in &mut self.items {
            item.new = std::mem::take(&mut item.new).with_words(told);
        }
    }
}

impl Planned {
    /// Returns all commands that are run for it.
    pub fn commands(&self) -> Vec<String> {
        self.new.commands()
    }

    /// Returns the final item; `ids` are those of all items of its plan.
    pub fn named(&self, at: usize, ids: &[TaskId], heritage: &Heritage) -> NewItem {
        let id_of = |needed: &Needed| match needed {
            Needed::Planned(at) => ids[*at].clone(),
            Needed::Known(id) => id.clone(),
        };
        let after: Vec<TaskId> = self.after.iter().map(id_of).collect();
        let own = self.tags.iter().filter(|tag| !heritage.tags.contains(tag));
        let tags: Vec<String> = heritage.tags.iter().chain(own).cloned().collect();
        let priority = self
            .priority
            .or(heritage.priority)
            .map(|priority| (Key::Priority, priority.into()));
        let mut fields: Vec<(Key, Value)> = priority.into_iter().collect();
        fields.extend(written_ids(&after).map(|after| (Key::After, after)));
        fields.extend((!tags.is_empty()).then(|| (Key::Tags, tags.into())));
        fields.extend(self.new.fields.iter().cloned());
        NewItem {
            id: ids.get(at).cloned(),
            fields,
            ..self.new.clone()
        }
    }
}

/// Parses the plan in `text`, or returns all its problems.
pub fn read(text: &str, rules: &Rules<'_>) -> Result<Plan, Vec<Problem>> {
    let (document, mut problems) = parse(text);
    let mut reader = Judge {
        document: &document,
        rules,
        problems: Vec::new(),
    };
    if *document.front() != Front::default() {
        let (message, hint) = ("a plan has no front matter", "set the keys at each item");
        reader.problems.push(Problem::error(
            "plan-front-matter",
            0..3.min(text.len()),
            message,
            hint,
        ));
    }
    let whole: Vec<&Item<'_>> = document
        .items()
        .iter()
        .filter(|item| item.within.is_none())
        .collect();
    let items: Vec<Planned> = whole.iter().map(|item| reader.item(item, &whole)).collect();
    for part in document.items().iter().filter(|item| item.within.is_some()) {
        reader.part(part);
    }
    reader.number(&items);
    problems.extend(reader.problems);
    problems.extend(
        check(&[("the plan", &document)], rules.status_of, &first_of)
            .problems
            .into_iter()
            .map(|(_, problem)| problem),
    );
    // In a queue the owner decides about a warning; here it would go unseen.
    problems
        .iter_mut()
        .for_each(|problem| problem.severity = Severity::Error);
    problems.sort_by_key(|problem| problem.span.start);
    let words = if items.is_empty() {
        text.trim().to_owned()
    } else {
        String::new()
    };
    if problems.is_empty() {
        Ok(Plan { items, words })
    } else {
        Err(problems)
    }
}

struct Judge<'r, 't> {
    document: &'r Document<'t>,
    rules: &'r Rules<'r>,
    problems: Vec<Problem>,
}

impl Judge<'_, '_> {
    fn fault(
        &mut self,
        code: &'static str,
        span: std::ops::Range<usize>,
        message: String,
        hint: impl Into<String>,
    ) {
        self.problems
            .push(Problem::error(code, span, message, hint));
    }

    fn item(&mut self, item: &Item<'_>, whole: &[&Item<'_>]) -> Planned {
        let task = self.document.task_of(item);
        let is_told = self.may_say(item);
        if item.status != Status::Pending && !is_told {
            let message = format!(
                "a planned item begins as pending, and this one is {}",
                item.status
            );
            self.fault(
                "planned-status",
                item.head.clone(),
                message,
                "write an open box, `[ ]`, and no headings",
            );
        }
        if let Some(id) = item
            .id
            .as_ref()
            .filter(|id| (self.rules.status_of)(id).is_some())
        {
            let message = format!("there is an item `{id}` already");
            let hint = "remove the existing item from the plan; a new item needs another name, such as NEW-1";
            self.fault(
                "taken-id",
                item.head.start..item.head.start + id.as_str().len(),
                message,
                hint,
            );
        }
        if task
            .done_when
            .iter()
            .all(|command| command.trim().is_empty())
        {
            let message = "it has no `done_when`".to_owned();
            let hint = "add a `yaml task` block with `done_when: [a command that exits with 0 when it is done]`";
            self.fault("missing-done-when", item.head.clone(), message, hint);
        }
        if let Some(role) = task
            .role
            .as_ref()
            .filter(|role| !self.rules.roles.contains(role))
        {
            let known = self.rules.roles.iter().map(String::as_str);
            let hint = nearest(role, known.clone()).map_or_else(
                || format!("one of: {}", known.collect::<Vec<_>>().join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            self.fault(
                "unknown-role",
                item.head.clone(),
                format!("no role `{role}` works on items"),
                hint,
            );
        }
        if let Some(name) = item.after_names.first() {
            let message = format!("`{}` is not an ID", name.trim());
            self.fault(
                "unknown-dependency",
                item.head.clone(),
                message,
                BadId::HINT,
            );
        }
        let place = |id: &TaskId| whole.iter().position(|other| other.id.as_ref() == Some(id));
        let needed =
            |id: &TaskId| place(id).map_or_else(|| Needed::Known(id.clone()), Needed::Planned);
        let planned = Planned {
            new: self.new_item(&task),
            priority: self
                .document
                .fields(item)
                .get(Key::Priority)
                .map(|_| task.priority),
            tags: task.tags.clone(),
            after: task.after.iter().map(needed).collect(),
        };
        self.reads_again(item, &task, &planned);
        planned
    }

    /// Reports keys that a planner can't set. Returns whether a status is among them.
    fn may_say(&mut self, item: &Item<'_>) -> bool {
        let odd = self
            .document
            .entries(item)
            .into_iter()
            .filter_map(|entry| match entry.meaning {
                Meaning::Known(key, _) | Meaning::Absent(key) if !key.is_for(KeyUse::Planned) => {
                    Some((key, entry.at..entry.value.end))
                }
                _ => None,
            });
        let odd: Vec<_> = odd.collect();
        let is_status = odd.iter().any(|(key, _)| *key == Key::Status);
        for (key, span) in odd {
            let keys: Vec<&str> = Key::all_for(KeyUse::Planned).map(Key::as_str).collect();
            let message = format!("a planner can't set `{}`", key.as_str());
            self.fault(
                "forbidden-key",
                span,
                message,
                format!("remove it; allowed keys: {}", keys.join(", ")),
            );
        }
        is_status
    }

    fn new_item(&self, task: &Task) -> NewItem {
        let is_for_work = |role: &&str| self.rules.roles.iter().any(|known| known == role);
        let general = Some(self.rules.role)
            .filter(is_for_work)
            .unwrap_or(DEFAULT_ROLE);
        let role = task.role.as_deref().unwrap_or(general);
        let is_usual = role == DEFAULT_ROLE && self.rules.role == DEFAULT_ROLE;
        let mut fields: Vec<(Key, Value)> = (!is_usual)
            .then(|| (Key::Role, role.into()))
            .into_iter()
            .collect();
        fields.extend((!task.worktree).then(|| (Key::Worktree, Value::from(false))));
        let result = task.result.map(Expected::as_str);
        fields.extend(result.map(|result| (Key::Result, Value::from(result))));
        let mut yaml_fields = vec![(Key::DoneWhen, task.done_when.clone().into())];
        yaml_fields.extend(
            (!task.touches.is_empty()).then(|| (Key::Touches, task.touches.clone().into())),
        );
        NewItem {
            id: None,
            title: task.title.clone(),
            fields,
            yaml_fields,
            description: task.description.clone(),
        }
    }

    /// Checks that in a queue it reads as intended: a title may end like metadata, a text may hold a box.
    fn reads_again(&mut self, item: &Item<'_>, task: &Task, planned: &Planned) {
        let id = TaskId::nobody();
        let title = task.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let bare = Planned {
            priority: None,
            tags: Vec::new(),
            after: Vec::new(),
            ..planned.clone()
        };
        let block = render(&bare.named(0, std::slice::from_ref(&id), &Heritage::default()));
        let (document, problems) = parse(&block);
        let is_same = document.items().first().is_some_and(|first| {
            let again = document.task(first, id.clone());
            let is_alone = document
                .items()
                .iter()
                .all(|other| other.span == first.span || other.within.is_some());
            let kept = Task {
                priority: task.priority,
                after: task.after.clone(),
                tags: task.tags.clone(),
                ..again
            };
            // The usual role is not written, so roles are not compared.
            let (again, meant) = (
                Task { role: None, ..kept },
                Task {
                    role: None,
                    ..task.clone()
                },
            );
            is_alone
                && again
                    == Task {
                        id: id.clone(),
                        title: title.clone(),
                        state: State::default(),
                        ..meant
                    }
        });
        let is_odd = title.contains(char::is_control) || !problems.is_empty() || !is_same;
        // Its problem is reported already.
        let is_told =
            |told: &Problem| told.code == "plan-front-matter" || overlap(&told.span, &item.span);
        if is_odd && !item.quarantined && !self.problems.iter().any(is_told) {
            let message = "a queue would parse this differently".to_owned();
            self.fault(
                "odd-text",
                item.head.clone(),
                message,
                "simplify its title and text",
            );
        }
    }

    /// Reports a step that is planned instead of described.
    fn part(&mut self, part: &Item<'_>) {
        if part.is_more_than_words() {
            let message = "a step of an item can't have an ID, keys or a tick".to_owned();
            self.fault(
                "planned-part",
                part.head.clone(),
                message,
                "make it a separate item, without indentation",
            );
        }
    }

    fn number(&mut self, items: &[Planned]) {
        let text = self.document.text();
        let end = text.len();
        if items.len() > self.rules.most {
            let message = format!(
                "the plan has {} items; at most {} are allowed",
                items.len(),
                self.rules.most
            );
            self.fault(
                "too-many",
                end..end,
                message,
                "plan the first of them, and describe the rest in the last",
            );
        }
        let is_said = self.rules.may_be_empty && !text.trim().is_empty();
        if items.is_empty() && !is_said {
            let hint = if self.rules.may_be_empty {
                "write an item, `- [ ] P-1: TITLE`, or a sentence that says why no item is needed"
            } else {
                "write an item: `- [ ] P-1: TITLE`"
            };
            self.fault(
                "nothing-planned",
                0..end,
                "nothing is planned here".to_owned(),
                hint,
            );
        }
    }
}

fn overlap(one: &std::ops::Range<usize>, other: &std::ops::Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> TaskId {
        text.parse().expect("an ID")
    }

    fn read_with(text: &str, may_be_empty: bool) -> Result<Plan, Vec<Problem>> {
        let roles = ["coder", "drone"].map(str::to_owned);
        let status_of = |id: &TaskId| match id.as_str() {
            "T-1" => Some(Status::Pending),
            "T-2" => Some(Status::Dead),
            _ => None,
        };
        read(
            text,
            &Rules {
                roles: &roles,
                role: DEFAULT_ROLE,
                most: 3,
                may_be_empty,
                status_of: &status_of,
            },
        )
    }

    fn blocks(text: &str, heritage: &Heritage) -> String {
        let plan = read_with(text, false).unwrap_or_else(|problems| panic!("{problems:#?}"));
        let ids: Vec<TaskId> = (1..)
            .take(plan.items.len())
            .map(|number| id("T-9").child(number))
            .collect();
        plan.items
            .iter()
            .enumerate()
            .map(|(at, item)| render(&item.named(at, &ids, heritage)))
            .collect()
    }

    const PLAN: &str = "\
Two steps.

- [ ] P-1: Make the table (priority: 1)
  See specs/auth.md.

  - [ ] columns
  - [ ] keys

  ~~~yaml task
  done_when: [cargo test table]
  touches: [src/db/**]
  ~~~
- [ ] Log in (after: [P-1, T-1], role: drone, tags: ui, done_when: cargo test login, worktree: false, result: answer)
";

    #[test]
    fn a_plan_becomes_items_under_ids_of_the_board() {
        assert_eq!(
            blocks(PLAN, &Heritage::default()),
            "\
- [ ] T-9.1: Make the table (priority: 1)
  See specs/auth.md.

  - [ ] columns
  - [ ] keys

  ```yaml task
  done_when:
    - cargo test table
  touches: [src/db/**]
  ```
- [ ] T-9.2: Log in (after: [T-9.1, T-1], tags: [ui], role: drone, worktree: false, result: answer)

  ```yaml task
  done_when:
    - cargo test login
  ```
"
        );
        let heritage = Heritage {
            priority: Some(0),
            tags: vec!["auth".into(), "ui".into()],
        };
        let text = blocks(PLAN, &heritage);
        assert!(text.contains("(priority: 1, tags: [auth, ui])"), "{text}");
        assert!(
            text.contains("(priority: 0, after: [T-9.1, T-1], tags: [auth, ui], role: drone"),
            "{text}"
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let done = "done_when: true";
        for (text, expected) in [
            (String::new(), &[(1, "nothing-planned")][..]),
            ("Nothing to do.".to_owned(), &[(1, "nothing-planned")]),
            (
                "- [ ] P-1: a\n- [ ] P-2: b (done_when: \" \")\n".to_owned(),
                &[(1, "missing-done-when"), (2, "missing-done-when")],
            ),
            (
                format!("- [ ] P-1: a (after: P-7, {done})\n"),
                &[(1, "unknown-dependency")],
            ),
            (
                format!("- [ ] P-1: a (after: T-2, {done})\n"),
                &[(1, "dead-dependency")],
            ),
            (
                format!("- [ ] P-1: a (after: P-2, {done})\n- [ ] P-2: b (after: P-1, {done})\n"),
                &[(1, "dependency-cycle")],
            ),
            (
                format!("- [ ] P-1: a ({done})\n- [ ] P-1: b ({done})\n"),
                &[(1, "duplicate-id"), (2, "duplicate-id")],
            ),
            (format!("- [ ] T-1: a ({done})\n"), &[(1, "taken-id")]),
            (
                format!("- [ ] P-1: a (role: cdoer, {done})\n"),
                &[(1, "unknown-role")],
            ),
            (
                format!("- [ ] P-1: a (prioritty: 1, {done})\n"),
                &[(1, "unknown-key")],
            ),
            (
                format!("- [ ] P-1: a (priority: soon, {done})\n"),
                &[(1, "wrong-type")],
            ),
            (format!("- [x] P-1: a ({done})\n"), &[(1, "planned-status")]),
            (
                format!("## Completed\n- [ ] P-1: a ({done})\n"),
                &[(2, "planned-status")],
            ),
            (
                format!("---\nrunner: shell\n---\n- [ ] P-1: a ({done})\n"),
                &[(1, "plan-front-matter")],
            ),
            (
                format!("- [ ] P-1: a ({done})\n  - [ ] P-2: b (status: approved)\n"),
                &[(2, "planned-part")],
            ),
            (
                format!("- [ ] P-1: a ({done})\n- [] b ({done})\n"),
                &[(2, "odd-box")],
            ),
            (
                format!("- [ ] a (status: approved) ({done})\n"),
                &[(1, "odd-text")],
            ),
            (
                format!("- [ ] a ({done})\n").repeat(2),
                &[(2, "copied-item")],
            ),
            (
                (1..=4)
                    .map(|number| format!("- [ ] a{number} ({done})\n"))
                    .collect(),
                &[(5, "too-many")],
            ),
        ] {
            let problems = read_with(&text, false).expect_err(&text);
            let line = |problem: &Problem| 1 + text[..problem.span.start].matches('\n').count();
            let found: Vec<_> = problems
                .iter()
                .map(|problem| (line(problem), problem.code))
                .collect();
            assert_eq!(found, expected, "{text}");
            assert!(
                problems
                    .iter()
                    .all(|problem| problem.severity == Severity::Error && !problem.hint.is_empty())
            );
        }
    }

    #[test]
    fn a_woken_planner_may_find_nothing_to_do() {
        let plan = read_with("The item can't be saved.\n", true).expect("it says why");
        assert_eq!(
            plan,
            Plan {
                items: Vec::new(),
                words: "The item can't be saved.".into()
            }
        );
        assert!(read_with(" \n", true).is_err());
    }

    /// Pieces of which plans are made that are nearly right, or mean harm.
    const PIECES: &[&str] = &[
        "- [ ] P-1: Make it (done_when: ls)\n",
        "- [ ] P-2: And this (done_when: ls, after: P-1)\n",
        "- [ ] Bare (done_when: ls, after: T-1, tags: [a, \"b c\"])\n",
        "* [ ] Other bullet (done_when: ls)\n",
        "1. [ ] Numbered (done_when: ls)\n",
        "- [ ] Long\n  ~~~yaml task\n  done_when: [ls, \"a: b\"]\n  touches: [\"*.md\"]\n  ~~~\n",
        "- [ ] Title (review: none) (done_when: ls)\n",
        "- [ ] Title (status: approved)\n  ```yaml task\n  done_when: ls\n  ```\n",
        "- [ ] Harm (done_when: ls, allowed: true)\n",
        "- [ ] Block's name (done_when: ls) ^abc1\n",
        "  More of it.\n",
        "  - [ ] step\n",
        "  - [ ] T-66: step\n",
        "  - [x] T-67: step (status: completed)\n",
        "    - [ ] deep\n",
        "  ```sh\n  - [ ] T-68: in a fence\n  ```\n",
        "  ```sh\n",
        "  ~~~\n",
        "  <!--\n",
        "  -->\n",
        "  ## Completed\n",
        "## Completed\n",
        "## Pending\n",
        "  > - [ ] T-69: quoted\n",
        "  1. [ ] T-70: numbered step\n",
        "  ***\n",
        "  ---\n",
        "  Answer: yes\n",
        "\tTabbed\n",
        "lazy\n",
        "\n",
        "\n\n",
        "\r\n",
    ];

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

        /// Any plan adds only pending items with a planner's keys, and keeps the existing ones.
        #[test]
        fn nothing_is_smuggled(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 1..9), is_tail: bool) {
            let Ok(plan) = read_with(&pieces.concat(), false) else { return Ok(()) };
            let mut text = "## Pending\n\n- [ ] T-1: There\n".to_owned();
            if !is_tail {
                text.push_str("\n## Completed\n\n- [x] T-2: Done\n");
            }
            let before = parse(&text).0.items().len();
            let ids: Vec<TaskId> = (1..).take(plan.items.len()).map(|number| id("T-9").child(number)).collect();
            let steps = |document: &Document<'_>| document.items().iter().filter(|item| item.within.is_some()).count();
            for (at, planned) in plan.items.iter().enumerate() {
                let edits = parse(&text).0.add(Status::Pending, &render(&planned.named(at, &ids, &Heritage::default())));
                text = crate::text::apply(&text, &edits);
            }
            let (document, problems) = parse(&text);
            proptest::prop_assert_eq!(problems, vec![], "{}", text);
            proptest::prop_assert_eq!(document.items().len() - steps(&document), before + plan.items.len(), "{}", text);
            let told = document.items().iter().filter_map(|item| item.id.clone()).count();
            proptest::prop_assert_eq!(told, before + plan.items.len(), "only whole items have IDs: {}", text);
            for id in &ids {
                let item = document.find(id);
                proptest::prop_assert!(item.is_some_and(|item| item.status == Status::Pending && !item.quarantined), "{}", text);
                for entry in document.entries(item.expect("it is there")) {
                    assert!(matches!(entry.meaning, Meaning::Known(key, _) if key.is_for(KeyUse::Planned)), "{text}");
                }
                assert!(!document.task(item.expect("it is there"), id.clone()).done_when.is_empty(), "{text}");
            }
        }
    }
}
