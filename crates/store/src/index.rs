//! Looks items up by ID in all queues and archives of a board.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64;

use super::archived::{Archived, statuses};
use super::board::Board;
use super::content::Content;
use super::entry::{Entry, TextChange};
use super::error::Error;
use super::log::{MOST_LINES, logged_ids, task_of, walk_back};
use super::queue::Queue;
use tavern_core::document::{Document, Item};
use tavern_core::eligible::{ChildItem, at_work};
use tavern_core::merge::bare;
use tavern_core::metadata::Key;
use tavern_core::searches::Searches;
use tavern_core::task::{Status, Task, TaskId};

/// The items of all queues. A queue is read only when its items are needed, and parsed only if it may contain the ID.
/// Looking for an ID that is nowhere costs only a text search.
pub struct ItemIndex<'b> {
    pub(super) board: &'b Board,
    queues: OnceCell<Vec<IndexedQueue>>,
    /// The queues that contain each ID.
    places: OnceCell<BTreeMap<TaskId, Vec<String>>>,
    /// The home queues of IDs that occur in several queues.
    homes: OnceCell<HashMap<TaskId, String>>,
    archived: Archived<'b>,
    /// The commits of completed items.
    commits: OnceCell<HashMap<TaskId, String>>,
    /// All IDs in the log, including removed items.
    logged: OnceCell<HashSet<TaskId>>,
    searches: Searches,
}

struct IndexedQueue {
    queue: Queue,
    content: OnceCell<Content>,
    statuses: OnceCell<HashMap<TaskId, Status>>,
    searches: Searches,
}

impl<'b> ItemIndex<'b> {
    pub fn of(board: &'b Board) -> ItemIndex<'b> {
        let (queues, places, homes, commits, logged, searches) = Default::default();
        ItemIndex {
            board,
            queues,
            places,
            homes,
            archived: Archived::of(board),
            commits,
            logged,
            searches,
        }
    }

    /// Like [`ItemIndex::of`], given the board's queues.
    pub(super) fn among(board: &'b Board, queues: &[Queue]) -> ItemIndex<'b> {
        let index = ItemIndex::of(board);
        let queues: Vec<IndexedQueue> = queues.iter().cloned().map(IndexedQueue::of).collect();
        ItemIndex {
            queues: OnceCell::from(queues),
            ..index
        }
    }

    /// Discards the entries of `queue`, which was just rewritten.
    pub(super) fn look_again(&mut self, queue: &Queue) {
        (self.homes, self.logged) = Default::default();
        let mut queues = self.queues.get_mut().into_iter().flatten();
        let Some(at) = queues.find(|at| at.queue.path == queue.path) else {
            return;
        };
        let before = std::mem::replace(at, IndexedQueue::of(at.queue.clone()));
        if let Some(places) = self.places.get_mut() {
            for id in before.statuses(self.board).keys() {
                let places = places.entry(id.clone()).or_default();
                places.retain(|place| *place != queue.id);
            }
            note_places(places, at, self.board);
        }
    }

    /// Returns the status of item `id` in a queue other than `but`; of several, that of the original.
    pub(super) fn status_of(&self, id: &TaskId, but: &Queue) -> Option<Status> {
        let others = self
            .queues()
            .iter()
            .filter(|queue_index| queue_index.queue.path != but.path);
        let found = others.filter_map(|at| Some((&at.queue.id, at.status_of(self.board, id)?)));
        let found: Vec<(&String, Status)> = found.collect();
        let is_home = |(queue, _): &&(&String, Status)| self.homes().get(id) == Some(*queue);
        let home = if found.len() > 1 {
            found.iter().find(is_home)
        } else {
            None
        };
        home.or(found.first()).map(|(_, status)| *status)
    }

    /// Returns true if `id` in `queue` is a copy of an item in another queue.
    pub(super) fn is_copy(&self, id: &TaskId, queue: &Queue) -> bool {
        self.status_of(id, queue).is_some()
            && self.homes().get(id).is_some_and(|home| *home != queue.id)
    }

    /// Returns a queue other than `but` that contains `id`; of several, that of the original.
    pub(super) fn elsewhere(&self, id: &TaskId, but: &Queue) -> Option<&Queue> {
        let others = self.places().get(id)?.iter();
        let others: Vec<&String> = others.filter(|place| **place != but.id).collect();
        let is_home = |place: &&&String| self.homes().get(id) == Some(**place);
        let home = match others[..] {
            [] => return None,
            [only] => only,
            [first, ..] => others.iter().find(is_home).unwrap_or(&first),
        };
        let mut queues = self.queues().iter().map(|at| &at.queue);
        queues.find(|queue| queue.id == *home)
    }

    fn homes(&self) -> &HashMap<TaskId, String> {
        self.homes.get_or_init(|| {
            let several = self.places().iter().filter(|(_, places)| places.len() > 1);
            let several = several.map(|(id, places)| (id.clone(), places.clone()));
            homes(self.board, several.collect()).unwrap_or_default()
        })
    }

    fn places(&self) -> &BTreeMap<TaskId, Vec<String>> {
        self.places.get_or_init(|| {
            let mut places = BTreeMap::new();
            for at in self.queues() {
                note_places(&mut places, at, self.board);
            }
            places
        })
    }

    /// Returns the children of `parent` in queues other than `but`. Archived children have ended successfully.
    pub(super) fn children_of(&self, parent: &TaskId, but: &Queue) -> Vec<ChildItem> {
        let others = self
            .queues()
            .iter()
            .filter(|queue_index| queue_index.queue.path != but.path);
        let contents = others.map(|queue_index| queue_index.content(self.board));
        let named = contents.filter(|content| content.contains(parent.as_str()));
        named
            .flat_map(|content| children(&content.open(), parent))
            .collect()
    }

    /// Returns the items in queues other than `but` that are [`at_work`].
    pub(super) fn at_work(&self, but: &Queue) -> Vec<Task> {
        let others = self
            .queues()
            .iter()
            .filter(|queue_index| queue_index.queue.path != but.path);
        let contents = others.map(|queue_index| queue_index.content(self.board));
        let may_say = contents.filter(|content| content.contains(Key::Touches.as_str()));
        may_say
            .flat_map(|content| at_work(&content.open()))
            .collect()
    }

    /// Returns the children of `parent` in all queues and archives.
    pub(super) fn offspring(&self, parent: &TaskId) -> Vec<Task> {
        let all = self
            .contents()
            .filter(|content| may_have_children(content, parent));
        all.flat_map(|content| offspring(&content.open(), parent))
            .collect()
    }

    /// Returns the commit of the completed item `id`, in any queue or archive.
    pub fn commit_of(&self, id: &TaskId) -> Option<String> {
        if self.commits.get().is_none() && self.searches.are_few() {
            return self.search_commit_of(id);
        }
        let all = || {
            let contents: Vec<&Content> = self.contents().collect();
            contents.into_iter().rev().flat_map(commits).collect()
        };
        self.commits.get_or_init(all).get(id).cloned()
    }

    /// Returns the texts of all queues, then of all archives. An unreadable queue is empty.
    pub(super) fn contents(&self) -> impl Iterator<Item = &Content> {
        let live = self
            .queues()
            .iter()
            .map(|queue_index| queue_index.content(self.board));
        live.chain(self.archived.contents())
    }

    /// Parses only the item itself.
    fn search_commit_of(&self, id: &TaskId) -> Option<String> {
        let name = format!("{id}:");
        self.contents().find_map(|content| {
            memmem::find_iter(content.as_bytes(), &name).find_map(|at| {
                let start = content[..at].rfind('\n').map_or(0, |end| end + 1);
                let end = content[at..]
                    .find("\n- ")
                    .map_or(content.len(), |end| at + end);
                let part = content.clone().with_text(content[start..end].to_owned());
                let (document, _) = part.parse();
                let item = document
                    .find(id)
                    .filter(|item| item.status == Status::Completed)?;
                document.task_of(item).commit().map(str::to_owned)
            })
        })
    }

    /// Returns true if any queue or archive has an item `id`.
    pub(super) fn has(&self, id: &TaskId) -> bool {
        self.queues()
            .iter()
            .any(|queue_index| queue_index.status_of(self.board, id).is_some())
            || self.archived(id).is_some()
    }

    fn queues(&self) -> &[IndexedQueue] {
        self.queues.get_or_init(|| {
            let queues = self.board.queues().unwrap_or_default();
            queues.into_iter().map(IndexedQueue::of).collect()
        })
    }

    /// Returns true if the log mentions `id`. The log is read once for all calls.
    pub(super) fn is_logged(&self, id: &TaskId) -> bool {
        let all = || logged_ids(self.board).unwrap_or_default();
        self.logged.get_or_init(all).contains(id)
    }

    /// Returns the status of the archived item `id`.
    pub(super) fn archived(&self, id: &TaskId) -> Option<Status> {
        self.archived.status_of(id)
    }

    /// Returns true if `id` is in a queue other than `but`, or in an archive.
    pub(super) fn knows(&self, id: &TaskId, but: &Queue) -> bool {
        self.status_of(id, but).is_some() || self.archived(id).is_some()
    }
}

fn note_places(places: &mut BTreeMap<TaskId, Vec<String>>, at: &IndexedQueue, board: &Board) {
    for id in at.statuses(board).keys() {
        places
            .entry(id.clone())
            .or_default()
            .push(at.queue.id.clone());
    }
}

impl IndexedQueue {
    fn of(queue: Queue) -> IndexedQueue {
        let (content, statuses, searches) = Default::default();
        IndexedQueue {
            queue,
            content,
            statuses,
            searches,
        }
    }

    fn content(&self, board: &Board) -> &Content {
        // An unreadable queue does not block the others.
        self.content.get_or_init(|| {
            board
                .read(&self.queue)
                .map(|text| text.content)
                .unwrap_or_default()
        })
    }

    fn status_of(&self, board: &Board, id: &TaskId) -> Option<Status> {
        let content = self.content(board);
        let is_in = || content.contains(&format!("{id}:"));
        if self.statuses.get().is_none() && self.searches.are_few() && !is_in() {
            return None;
        }
        self.statuses(board).get(id).copied()
    }

    fn statuses(&self, board: &Board) -> &HashMap<TaskId, Status> {
        self.statuses
            .get_or_init(|| statuses(&self.content(board).open()))
    }
}

/// Returns the commits of completed items. The first item of a duplicated ID counts, so it comes last.
fn commits(content: &Content) -> Vec<(TaskId, String)> {
    let (document, _) = content.parse();
    let completed = document
        .items()
        .iter()
        .rev()
        .filter(|item| item.status == Status::Completed);
    completed
        .filter_map(|item| {
            Some((
                item.id.clone()?,
                document.task_of(item).commit()?.to_owned(),
            ))
        })
        .collect()
}

/// Returns the children of `parent` in a document.
pub fn children(document: &Document<'_>, parent: &TaskId) -> Vec<ChildItem> {
    let child = |task: Task| ChildItem {
        status: task.status(),
        id: task.id,
        on_failure: task.on_failure,
    };
    offspring(document, parent).into_iter().map(child).collect()
}

/// Returns true if the text may contain children of `parent`: a child names its parent, or is indented under it.
/// Parsing a long queue for an item without children would dominate all other costs.
fn may_have_children(content: &str, parent: &TaskId) -> bool {
    let mut named = memmem::find_iter(content.as_bytes(), parent.as_str());
    let Some(first) = named.next() else {
        return false;
    };
    let is_indented = |line: &&str| line.trim().is_empty() || line.starts_with([' ', '\t']);
    let mut under = content[first..].lines().skip(1).take_while(is_indented);
    named.next().is_some() || under.any(|line| line.contains('['))
}

/// Returns the children of `parent` as full tasks.
pub(super) fn offspring(document: &Document<'_>, parent: &TaskId) -> Vec<Task> {
    let is_child = |item: &&Item<'_>| document.parent_of(item) == Some(parent);
    let children = document.naming(parent).filter(is_child);
    children
        .filter_map(|item| Some(document.task(item, item.id.clone()?)))
        .collect()
}

/// Returns the home queue of each ID that is in several of `places`; the other items are copies. The home is the queue
/// in its lease, else the last one in the log, else the first: `main`, then by name.
pub fn homes(
    board: &Board,
    mut places: BTreeMap<TaskId, Vec<String>>,
) -> Result<HashMap<TaskId, String>, Error> {
    places.retain(|_, places| places.len() > 1);
    let mut homes = HashMap::new();
    if places.is_empty() {
        return Ok(homes);
    }
    for (id, places) in &places {
        let lease = board.lease(id).ok().flatten();
        homes.extend(
            lease
                .filter(|lease| places.contains(&lease.queue))
                .map(|lease| (id.clone(), lease.queue)),
        );
    }
    let mut lines = 0;
    walk_back(board, &mut |line| {
        lines += 1;
        if let Some(task) = task_of(line).filter(|task| !homes.contains_key(task))
            && let Some(places) = places.get(&task)
            && let Ok(Entry {
                queue: Some(queue),
                change,
                ..
            }) = serde_json::from_slice(line)
            && places.contains(&queue)
            && !matches!(change, TextChange::Removed { .. })
        {
            homes.insert(task, queue);
        }
        homes.len() < places.len() && lines < MOST_LINES
    })?;
    for (id, mut places) in places {
        places.sort_by_key(|queue| (queue != "main", queue.clone()));
        homes.entry(id).or_insert_with(|| places.swap_remove(0));
    }
    Ok(homes)
}

/// Returns a fresh random ID.
pub(super) fn mint(is_taken: &mut dyn FnMut(&TaskId) -> bool) -> TaskId {
    loop {
        // The first half contains the UUID's version.
        let (_, random) = uuid::Uuid::new_v4().as_u64_pair();
        let id = TaskId::mint(random, |_| false);
        if !is_taken(&id) {
            return id;
        }
    }
}

/// Returns an ID derived from an item's text, so that clones that claim it independently give it the same ID.
pub(super) fn mint_from(block: &str, is_taken: &dyn Fn(&TaskId) -> bool) -> TaskId {
    TaskId::mint(xxh3_64(bare(block).as_bytes()), is_taken)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tavern_core::document::parse;

    use super::*;

    #[test]
    fn new_ids_are_drawn_from_all_that_there_are() {
        let drawn: Vec<String> = (0..1000)
            .map(|_| mint(&mut |_| false).to_string())
            .collect();
        for at in 2..5 {
            let characters: HashSet<u8> = drawn.iter().map(|id| id.as_bytes()[at]).collect();
            assert_eq!(characters.len(), 32, "{at}");
        }
    }

    #[test]
    fn what_may_have_children_is_seen_without_reading_all() {
        let parent = "T-1".parse().expect("an ID");
        for (content, may) in [
            ("- [ ] T-1: One\n- [ ] T-2: Two\n", false),
            ("- [ ] T-1: One\n  Words.\n\n- [ ] T-2: Two\n", false),
            ("- [ ] T-2: Two\n", false),
            ("- [ ] T-1: One\n- [ ] T-2: Two (parent: T-1)\n", true),
            ("- [ ] T-1: One\n\n  - [ ] T-2: A part\n", true),
            ("- [ ] T-1: One\r\n\t- [x] T-2: A part\r\n", true),
        ] {
            let children = offspring(&parse(content).0, &parent);
            assert_eq!(may_have_children(content, &parent), may, "{content}");
            assert!(may || children.is_empty(), "{content}");
        }
    }
}
