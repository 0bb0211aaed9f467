//! Adds a plan's items and completes its planning item, in one atomic change.

use super::change::Step;
use super::entry::{Entry, TextChange};
use super::error::Error;
use super::index::ItemIndex;
use super::queue::Text;
use super::submit::Note;
use super::transaction::View;
use tavern_core::document::{Written, parse};
use tavern_core::event::{Event, Kind};
use tavern_core::front::DEFAULT_PRIORITY;
use tavern_core::lease::Lease;
use tavern_core::new_item::render;
use tavern_core::plan::{Heritage, Plan};
use tavern_core::task::{Status, Task, TaskId};
use tavern_core::text::apply_in_place;

impl View<'_> {
    /// Commits `event`, which ends the planning item, together with the items of `plan`, named by its ID and a number.
    pub(super) fn plan(
        &self,
        text: &Text,
        own: &TaskId,
        event: &Event,
        note: &Note,
        plan: &Plan,
        to: Status,
    ) -> Result<(Vec<Step>, Task, Option<Lease>), Error> {
        let no_task = || Error::NoTask(own.clone());
        let (document, _) = text.content.parse();
        let item = document.find(own).ok_or_else(no_task)?;
        let task = document.task(item, own.clone());
        let index = ItemIndex::among(self.board, &self.known.queues);
        let is_free = |id: &TaskId| document.find(id).is_none() && !index.knows(id, &text.queue);
        let ids = (1..).map(|number| own.child(number)).filter(is_free);
        let ids: Vec<TaskId> = ids.take(plan.items.len()).collect();
        let priority = Some(item.priority).filter(|priority| *priority != DEFAULT_PRIORITY);
        let heritage = Heritage {
            priority,
            tags: task.tags.clone(),
        };
        let mut content = text.content.to_string();
        let mut steps = Vec::new();
        for (at, planned) in plan.items.iter().enumerate() {
            let (queue, _) = parse(&content);
            let edits = queue.add(to, &render(&planned.named(at, &ids, &heritage)));
            let written = queue.written(None, &edits, &ids[at], to);
            let Written { block: after, .. } = written.ok_or_else(|| Error::Quarantined {
                task: ids[at].clone(),
            })?;
            let entry = Entry {
                task: Some(ids[at].clone()),
                queue: Some(text.queue.id.clone()),
                agent: note.agent.clone(),
                run: note.run.clone(),
                change: TextChange::Added {
                    from: None,
                    to,
                    after,
                },
                ..Entry::new(Kind::Added, self.now)
            };
            apply_in_place(&mut content, &edits);
            steps.push(Step {
                edits,
                ..entry.into()
            });
        }
        let content = text.content.clone().with_text(content);
        let (document, _) = content.parse();
        let item = document.find(own).ok_or_else(no_task)?;
        let (mut end, task) = self.board.step(
            &text.queue,
            &document,
            item,
            own.clone(),
            event,
            note,
            self.now,
        )?;
        let names: Vec<&str> = ids.iter().map(TaskId::as_str).collect();
        end.entry.cause = Some(if names.is_empty() {
            plan.words.clone()
        } else {
            names.join(", ")
        });
        steps.push(end);
        Ok((steps, task, None))
    }
}
