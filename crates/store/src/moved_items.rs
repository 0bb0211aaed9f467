//! Items that people moved from one queue to another, line by line or with the whole file. An ID is one item on the
//! whole board.
//!
//! An item that vanishes from one queue and appears in another was moved: it keeps its lease and newest state. The log
//! and the baselines record the move first; then the saves are merged as usual.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::baseline::Baseline;
use super::board::Board;
use super::change::{Change, QueueRewrite, Rewrite};
use super::entry::{Entry, HAND, LeaseEntry, TextChange};
use super::error::Error;
use super::file_version::{QueueFiles, Stamp};
use super::index::homes;
use super::log::walk_log;
use super::queue::{Queue, is_blank};
use super::recovery::up_to_date;
use super::rewind::Since;
use super::text_history::Texts;
use tavern_core::document::{Document, Item, parse};
use tavern_core::event::Kind;
use tavern_core::lease::Lease;
use tavern_core::merge::{bare, unite};
use tavern_core::task::{Status, TaskId, Timestamp};

/// The key of an item: its ID, else its text.
type Called = Result<TaskId, String>;

/// The items in the files of a board's queues.
pub(super) struct Standing(Vec<(Queue, HashSet<Called>)>);

impl Standing {
    /// Reads the files that are complete.
    pub(super) fn of(board: &Board) -> Result<Standing, Error> {
        let queues = board.queues()?.into_iter();
        let texts =
            queues.filter_map(|queue| Some((board.read_whole(&queue)?.ok()?.content, queue)));
        Ok(Standing(
            texts
                .map(|(text, queue)| (queue, named(&parse(&text).0)))
                .collect(),
        ))
    }

    /// Returns the queues other than `queue` that contain an item of its `document`.
    pub(super) fn elsewhere(
        &self,
        queue: &Queue,
        document: &Document<'_>,
        item: &Item<'_>,
    ) -> Vec<&Queue> {
        let name = name(document, item);
        let others = self
            .0
            .iter()
            .filter(|(other, names)| other.id != queue.id && names.contains(&name));
        others.map(|(other, _)| other).collect()
    }
}

fn named(document: &Document<'_>) -> HashSet<Called> {
    whole(document).map(|item| name(document, item)).collect()
}

/// Returns the items without their nested parts, which move with them.
fn whole<'d, 't>(document: &'d Document<'t>) -> impl Iterator<Item = &'d Item<'t>> {
    document.items().iter().filter(|item| item.within.is_none())
}

fn name(document: &Document<'_>, item: &Item<'_>) -> Called {
    item.id.clone().ok_or_else(|| bare(document.block(item)))
}

/// Returns the queues that Tavern has seen and that have no file any more.
pub(super) fn gone(board: &Board) -> Result<Vec<Queue>, Error> {
    Ok(gone_beside(board, &board.queues()?))
}

/// Like `gone`, given the existing `queues`.
pub(super) fn gone_beside(board: &Board, queues: &[Queue]) -> Vec<Queue> {
    let ids = Baseline::queues(board)
        .into_iter()
        .filter(|id| queues.iter().all(|queue| queue.id != *id));
    let gone = ids.map(|id| board.queue_of(&id));
    gone.filter(|queue| QueueFiles::of(board, queue).is_gone(queue))
        .collect()
}

/// Returns the moves out of queues that were edited (`by_hand`) or are gone, as a change of the baselines. The caller
/// holds the lock.
pub(super) fn moved(
    board: &Board,
    by_hand: &[(Queue, QueueFiles)],
    last: u64,
    now: Timestamp,
) -> Result<Change, Error> {
    if by_hand.is_empty() || board.is_git_at_work(by_hand.iter().map(|(queue, _)| queue)) {
        return Ok(Change::default());
    }
    let gone = gone(board)?;
    let mut moves = Moves {
        board,
        last,
        texts: BTreeMap::new(),
        items: Vec::new(),
    };
    let saved = by_hand
        .iter()
        .map(|(queue, _)| queue)
        .filter(|queue| !gone.contains(queue));
    let standing = Standing::of(board)?;
    for queue in saved.chain(&gone) {
        let Some(ours) = moves.accepted(queue)? else {
            continue;
        };
        let (document, is_gone) = (parse(&ours).0, gone.contains(queue));
        let saved = match board.read_whole(queue) {
            Some(Ok(text)) => Some(text.content),
            Some(Err(_)) if is_gone => None,
            // The content is unknown.
            _ => continue,
        };
        // In an emptied file all items count as removed, unless they are found elsewhere.
        let is_emptied = saved.as_deref().is_some_and(is_blank);
        let left = saved
            .as_ref()
            .map_or_else(HashSet::new, |saved| named(&parse(saved).0));
        if is_gone {
            // Records that its items were searched for.
            moves.text(queue)?;
        }
        let mut unseen = None;
        for item in whole(&document).filter(|item| !left.contains(&name(&document, item))) {
            let to = standing.elsewhere(queue, &document, item);
            match (&item.id, to.first()) {
                (Some(id), Some(_)) => {
                    let copies = moves.copies(id, &to)?;
                    // An editor that had never seen the item did not cut it.
                    if let (false, None, Some(saved)) = (copies.is_empty(), &unseen, &saved) {
                        unseen = Some(unseen_by(board, queue, &ours, saved));
                    }
                    let is_unseen = !copies.is_empty()
                        && unseen.as_ref().is_some_and(|unseen| unseen.contains(id));
                    if !is_unseen {
                        moves.item(queue, &document, (item, id), (&to, copies))?;
                    }
                }
                // An item without an ID has no state to move along.
                (None, Some(_)) if is_gone || is_emptied => {
                    moves
                        .text(queue)?
                        .set
                        .set_nameless(document.block(item), item.status);
                }
                _ => {}
            }
        }
    }
    Ok(moves.change(&gone, now))
}

/// Returns the items of `ours` that the author of the save had never seen.
fn unseen_by(board: &Board, queue: &Queue, ours: &str, saved: &str) -> HashSet<TaskId> {
    let loaded = Texts::of(board, queue).nearest(ours, saved).text;
    let (mine, then) = (parse(ours).0, parse(&loaded).0);
    let ids = mine.items().iter().filter_map(|item| item.id.clone());
    ids.filter(|id| then.find(id).is_none()).collect()
}

struct Moves<'b> {
    board: &'b Board,
    last: u64,
    /// By queue.
    texts: BTreeMap<String, Accepted>,
    items: Vec<MovedItem>,
}

/// A queue from which, or to which, items were moved.
struct Accepted {
    queue: Queue,
    /// Its text in the baseline; for a queue that Tavern has not seen yet, the text of the file.
    ours: String,
    sight: QueueFiles,
    /// Whether the file has external edits. If so it stays as it is and is merged next; else it is written.
    is_saved: bool,
    set: Since,
}

struct MovedItem {
    id: TaskId,
    from: String,
    to: String,
    status: Status,
    block: String,
    /// The leases of the item and of its parts.
    leases: Vec<Lease>,
}

impl Moves<'_> {
    /// Returns the known text of a queue; `None` if Tavern has never seen it.
    fn accepted(&self, queue: &Queue) -> Result<Option<String>, Error> {
        let seen = Baseline::read(self.board, queue);
        seen.map(|seen| up_to_date(self.board, self.last, queue, &seen))
            .transpose()
    }

    fn text(&mut self, queue: &Queue) -> Result<&mut Accepted, Error> {
        if !self.texts.contains_key(&queue.id) {
            let found = QueueFiles::of(self.board, queue);
            let is_saved = !found.is_seen(self.board, queue);
            let sight = QueueFiles::known(self.board, queue).unwrap_or(found);
            let ours = match self.accepted(queue)? {
                Some(ours) => ours,
                None => self.board.read(queue)?.content.into_string(),
            };
            let accepted = Accepted {
                queue: queue.clone(),
                ours,
                sight,
                is_saved,
                set: Since::default(),
            };
            self.texts.insert(queue.id.clone(), accepted);
        }
        Ok(self.texts.get_mut(&queue.id).expect("it was just put in"))
    }

    /// Returns those of the queues `to` that contained the item before.
    fn copies(&self, id: &TaskId, to: &[&Queue]) -> Result<Vec<String>, Error> {
        let mut copies = Vec::new();
        for other in to {
            let accepted = self.accepted(other)?;
            copies.extend(
                accepted
                    .filter(|text| parse(text).0.find(id).is_some())
                    .map(|_| other.id.clone()),
            );
        }
        Ok(copies)
    }

    /// Records that `item`, gone from `queue`, was moved to the first of the queues `to`. Some of them had `copies` of
    /// it before.
    fn item(
        &mut self,
        queue: &Queue,
        document: &Document<'_>,
        (item, id): (&Item<'_>, &TaskId),
        (to, copies): (&[&Queue], Vec<String>),
    ) -> Result<(), Error> {
        // Both queues had it before: if the other one is its home, only a copy was removed.
        if !copies.is_empty() {
            let places = copies.into_iter().chain([queue.id.clone()]).collect();
            let home = homes(self.board, BTreeMap::from([(id.clone(), places)]))?.remove(id);
            if home.is_some_and(|home| home != queue.id) {
                return Ok(());
            }
        }
        let is_part =
            |part: &&Item<'_>| item.span.start <= part.span.start && part.span.end <= item.span.end;
        let ids = document
            .items()
            .iter()
            .filter(is_part)
            .filter_map(|part| part.id.as_ref());
        let leases = ids.filter_map(|id| self.board.lease(id).ok().flatten());
        let to = to[0];
        let leases = leases
            .filter(|lease| lease.queue == queue.id)
            .map(|lease| Lease {
                queue: to.id.clone(),
                ..lease
            });
        let (status, block, leases) = (
            item.status,
            document.block(item).to_owned(),
            leases.collect(),
        );
        self.text(queue)?.set.set(id.clone(), None);
        let copied = self.accepted(to)?.and_then(|text| copied(&text, id));
        let is_older = match &copied {
            Some(copied) => is_version(self.board, id, copied)?,
            None => false,
        };
        let block = match copied.filter(|_| !is_older) {
            Some(copied) => unite(&block, &copied).unwrap_or(block),
            None => block,
        };
        let accepted = self.text(to)?;
        accepted.is_saved |= !is_older;
        accepted.set.set(id.clone(), Some((block.clone(), status)));
        let (from, to) = (queue.id.clone(), to.id.clone());
        self.items.push(MovedItem {
            id: id.clone(),
            from,
            to,
            status,
            block,
            leases,
        });
        Ok(())
    }

    fn change(self, gone: &[Queue], now: Timestamp) -> Change {
        let mut change = Change::default();
        let mut blocks: HashMap<String, HashMap<TaskId, String>> = HashMap::new();
        for Accepted {
            queue,
            ours,
            mut sight,
            is_saved,
            set,
        } in self.texts.into_values()
        {
            if is_saved {
                sight.file = Some(Stamp::NONE);
            }
            let mut content = set.taken_back(&ours);
            let (document, _) = parse(&content);
            let items = whole(&document)
                .filter_map(|item| Some((item.id.clone()?, document.block(item).to_owned())));
            blocks.insert(queue.id.clone(), items.collect());
            // A renamed queue leaves nothing behind.
            let is_renamed = document.items().is_empty() && gone.contains(&queue);
            if is_renamed {
                content.clear();
            }
            change.files.push(Rewrite::Queue(QueueRewrite {
                queue,
                expected: sight,
                content,
                is_shown: is_saved,
            }));
        }
        let states = self.board.states().unwrap_or_default();
        let known = |task: &TaskId| states.get(task)?.status();
        let entry = |task: &TaskId, queue: &str, change: TextChange, lease: Option<Lease>| Entry {
            moved: known(task).map(|status| (status, status)),
            task: Some(task.clone()),
            queue: Some(queue.to_owned()),
            agent: Some(HAND.to_owned()),
            token: lease.as_ref().map(|lease| lease.token),
            change,
            lease: lease.map(|lease| LeaseEntry::Put(Box::new(lease))),
            ..Entry::new(Kind::Moved, now)
        };
        for MovedItem {
            id,
            from,
            to,
            status,
            block,
            mut leases,
        } in self.items
        {
            let after = blocks[&to].get(&id).unwrap_or(&block).clone();
            let own = leases
                .iter()
                .position(|lease| lease.task == id)
                .map(|at| leases.remove(at));
            change.entries.push(entry(
                &id,
                &from,
                TextChange::Removed {
                    from: status,
                    before: block,
                },
                None,
            ));
            change.entries.push(entry(
                &id,
                &to,
                TextChange::Added {
                    from: Some(status),
                    to: status,
                    after,
                },
                own,
            ));
            let parts = leases.into_iter();
            change
                .entries
                .extend(parts.map(|lease| {
                    entry(&lease.task.clone(), &to, TextChange::Nothing, Some(lease))
                }));
        }
        change
    }
}

fn copied(text: &str, id: &TaskId) -> Option<String> {
    let document = parse(text).0;
    document
        .find(id)
        .map(|item| document.block(item).to_owned())
}

/// Returns true if the item's text was `block` at some time.
fn is_version(board: &Board, id: &TaskId, block: &str) -> Result<bool, Error> {
    let (block, mut is_version) = (bare(block), false);
    walk_log(board, Some(id), &mut |entry| {
        let mut texts = [entry.change.after(), entry.change.before()]
            .into_iter()
            .flatten();
        is_version = texts.any(|text| bare(text) == block);
        !is_version
    })?;
    Ok(is_version)
}
