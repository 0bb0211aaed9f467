//! Which version of a queue a saver had loaded, as the log tells.
//!
//! Every version is ours with the newest events taken back. The save rests on the one from which it differs in the fewest
//! facts of those that Tavern wrote; what a person changed they may change again. Texts are compared whole, for equality.

use std::collections::{HashMap, HashSet};

use super::entry::{Entry, TextChange};
use super::error::Error;
use super::find::Board;
use super::from_git::FromGit;
use super::known::{Saved, done_again};
use super::log::{MOST_LINES, task_of, walk_back, walk_log};
use super::queue::Queue;
use super::redo::said;
use super::since::Since;
use tavern_core::document::{Document, Item, parse, parse_alone};
use tavern_core::event::Kind;
use tavern_core::front::Front;
use tavern_core::lane::{LaneKind, LanePlace};
use tavern_core::merge::{Named, merge, prose};
use tavern_core::metadata::{Field, Fields, Key, Owner};
use tavern_core::patch::Patch;
use tavern_core::task::{Status, TaskId};
use tavern_core::text::apply;

/// The text that was loaded.
pub(super) struct Loaded {
    pub text: String,
    /// The items that were another then.
    pub stale: Vec<TaskId>,
    /// Of its items those that have got an ID since.
    pub named: Named,
}

impl Loaded {
    fn whole(text: &str) -> Loaded {
        Loaded {
            text: text.to_owned(),
            stale: Vec::new(),
            named: Named::new(),
        }
    }
}

/// What somebody saved.
pub(super) struct Save<'s> {
    pub text: &'s str,
    /// The event that the file shows which took the place of the one that was written to, or the first that none has shown: of that,
    /// what came with it and what came since, whoever wrote there knew nothing.
    pub replaced_at: Option<u64>,
    pub rests_on: Option<RestsOn<'s>>,
    /// How it came from git itself.
    pub from_git: Option<&'s FromGit>,
}

/// What is known to have been loaded, and is no version of Tavern's.
#[derive(Clone, Copy)]
pub(super) enum RestsOn<'s> {
    /// What git had brought or put there.
    Git(&'s str),
    /// What the saver has saved before.
    Own(&'s str),
}

impl<'s> RestsOn<'s> {
    pub(super) fn text(self) -> &'s str {
        let (RestsOn::Git(text) | RestsOn::Own(text)) = self;
        text
    }
}

/// The version of `ours` on which the save rests, or the text of git's that it is known to rest on. What the saver knows of since is
/// in it. `returned` are the items of the save that were in no queue any more.
pub(super) fn loaded(
    board: &Board,
    queue: &Queue,
    ours: &str,
    save: &Save<'_>,
    returned: &HashSet<TaskId>,
) -> Result<Loaded, Error> {
    let (saved, replaced_at) = (save.text, save.replaced_at);
    let rests_on = save.rests_on.map(RestsOn::text);
    let mut loaded = Loaded::whole(rests_on.unwrap_or(ours));
    let (mine, theirs) = (parse(ours).0, parse(saved).0);
    let may_be_older = || may_be_older(board, &differing(&mine, &theirs));
    if replaced_at.is_none() && returned.is_empty() && !may_be_older()? {
        return Ok(loaded);
    }
    let (mut entries, mut looks) = (Vec::new(), 0);
    walk_log(board, None, &mut |entry| {
        if entry.queue.as_ref() == Some(&queue.id) {
            entries.extend(entry.steps());
        }
        looks += 1;
        looks < MOST_LINES
    })?;
    let saver = Saved::of(&theirs, &mine);
    let is_later =
        |entry: &&Entry| replaced_at.is_some_and(|at| entry.seq >= at || entry.through == Some(at));
    let later = entries.iter().take_while(is_later).count();
    let unseen = unseen(&entries, &mine, &theirs, &saver).max(later);
    let archived = out_of_archives(&entries);
    let lacking = archived
        .iter()
        .filter(|id| mine.find(id).is_some() && theirs.find(id).is_none());
    let lacking: Vec<TaskId> = lacking.cloned().collect();
    if unseen == 0 {
        loaded.text = without(&loaded.text, &lacking);
        loaded.stale = lacking;
        return Ok(loaded);
    }
    let (mut rewound, mut brought_back) = (Rewound::of(ours), HashSet::new());
    for entry in entries.into_iter().take(unseen) {
        let is_known =
            entry.is_by_hand() && !entry.is_restored() && saver.knows(&entry) == Some(true);
        let is_skipped = match &entry.change {
            // Who has it has seen it. What git added Tavern may have made right since.
            TextChange::Added { after, .. } => !entry.is_by_git() && saver.has(after),
            // What git took away nobody has taken out, and who still has it brings it back, unless git did so before.
            TextChange::Removed { before, .. } => {
                let is_back = entry
                    .task
                    .as_ref()
                    .is_some_and(|id| brought_back.contains(id));
                entry.is_by_git() && !entry.is_restored() && !is_back && saver.has(before)
            }
            _ => false,
        };
        if entry.is_by_git() && matches!(entry.change, TextChange::Added { .. }) {
            brought_back.extend(entry.task.clone());
        }
        if !is_skipped {
            let known = is_known.then(|| Again::Known(Box::new(entry.clone())));
            rewound.take_back(entry);
            rewound.again.extend(known);
        }
    }
    let Rewound {
        since,
        mut words,
        mut again,
        ..
    } = rewound.whole();
    let mut named = since.named(mine.front());
    let now = prose(rests_on.unwrap_or(ours));
    match save.rests_on {
        None => loaded.text = since.taken_back(ours),
        Some(rests_on) => {
            words = Some(now.clone());
            // What the saver knew of is in what they saved themselves; what git has done since it has done to that, too.
            let is_own = matches!(rests_on, RestsOn::Own(_));
            again.retain(|again| {
                again
                    .known()
                    .map_or(is_own, |entry| !is_own && entry.is_typed())
            });
        }
    }
    if let Some(words) = words {
        let known = again.iter().filter_map(Again::known);
        loaded.text = merge(
            &now,
            &loaded.text,
            &saver.with_known_lines(&words, known),
            &|_| false,
        )
        .text;
    }
    loaded.text = again
        .iter()
        .rev()
        .fold(loaded.text, |text, again| match again {
            // Who saves an old buffer goes on typing in it.
            Again::Known(entry) => done_again(&text, entry, &mut named).unwrap_or(text),
            // Nobody has taken out what git took away by putting the queue back: it has been popped from a stash.
            Again::Restored { before, after } => {
                let after = without_own(after, before, &text, &archived);
                merge(before, &text, &after, &|_| false).text
            }
        });
    loaded.named = named;
    // What neither has any more says nothing of which version it was.
    let is_gone = |id: &TaskId| mine.find(id).is_none() && theirs.find(id).is_none();
    let ids = parse(&loaded.text)
        .0
        .items()
        .iter()
        .filter_map(|item| item.id.clone())
        .collect::<Vec<_>>();
    let gone: Vec<TaskId> = ids
        .into_iter()
        .filter(is_gone)
        .chain(lacking.iter().cloned())
        .collect();
    loaded.text = without(&loaded.text, &gone);
    loaded.stale = since.tasks().cloned().chain(lacking).collect();
    loaded.stale.sort();
    loaded.stale.dedup();
    Ok(loaded)
}

/// The items of `ours` that whoever saved this had never seen. An item that the save has as it was shows that the text is older.
pub(super) fn never_seen(
    board: &Board,
    queue: &Queue,
    ours: &str,
    saved: &str,
) -> Result<HashSet<TaskId>, Error> {
    let save = Save {
        text: saved,
        replaced_at: None,
        rests_on: None,
        from_git: None,
    };
    let loaded = loaded(board, queue, ours, &save, &HashSet::new())?;
    let [mine, theirs, then] = [ours, saved, &loaded.text].map(|text| parse(text).0);
    let is_stale = |id: &TaskId| loaded.stale.contains(id) && theirs.find(id).is_some();
    if !differing(&mine, &theirs).iter().flatten().any(is_stale) {
        return Ok(HashSet::new());
    }
    let ids = mine.items().iter().filter_map(|item| item.id.clone());
    Ok(ids.filter(|id| then.find(id).is_none()).collect())
}

/// `text` without the items `gone`: nobody takes them out of what they never stood in.
fn without(text: &str, gone: &[TaskId]) -> String {
    let mut since = Since::default();
    gone.iter().for_each(|id| since.set(id.clone(), None));
    since.taken_back(text)
}

/// The items that git put back of which Tavern had archived them: `entries` are the newest first.
fn out_of_archives(entries: &[Entry]) -> HashSet<TaskId> {
    let (mut back, mut archived) = (HashSet::new(), HashSet::new());
    for entry in entries {
        let Some(id) = &entry.task else { continue };
        if entry.is_restored() && matches!(entry.change, TextChange::Added { .. }) {
            back.insert(id);
        } else if back.remove(id) && entry.kind == Kind::Archived {
            archived.insert(id.clone());
        }
    }
    archived
}

/// `after`, to which git put a queue back, without what that brought and Tavern knew: it stood in `text` as it was then, or was
/// archived.
fn without_own(after: &str, before: &str, text: &str, archived: &HashSet<TaskId>) -> String {
    let [brought, before, text] = [after, before, text].map(|text| parse(text).0);
    let is_own = |id: &&TaskId| {
        before.find(id).is_none() && (text.find(id).is_some() || archived.contains(*id))
    };
    let own: Vec<TaskId> = brought
        .items()
        .iter()
        .filter_map(|item| item.id.as_ref())
        .filter(is_own)
        .cloned()
        .collect();
    without(after, &own)
}

/// `ours` with its newest events taken back.
struct Rewound<'t> {
    ours: &'t str,
    since: Since,
    /// The words between the items, if they were others.
    words: Option<String>,
    /// The newest first.
    again: Vec<Again>,
    /// The version after the time that is being taken back at which git put the queue back.
    restored_to: Option<String>,
}

/// What is done again to what was loaded.
enum Again {
    /// What whoever saved knows that they or others have done.
    Known(Box<Entry>),
    /// That git put the queue back to what HEAD holds.
    Restored { before: String, after: String },
}

impl Again {
    fn known(&self) -> Option<&Entry> {
        match self {
            Again::Known(entry) => Some(entry),
            Again::Restored { .. } => None,
        }
    }
}

impl<'t> Rewound<'t> {
    fn of(ours: &'t str) -> Rewound<'t> {
        Rewound {
            ours,
            since: Since::default(),
            words: None,
            again: Vec::new(),
            restored_to: None,
        }
    }

    fn take_back(&mut self, entry: Entry) {
        if entry.is_restored() && self.restored_to.is_none() {
            self.restored_to = Some(self.text());
        } else if !entry.is_restored() {
            self.end_restored();
        }
        match entry.change {
            TextChange::Prose { before, .. } => self.words = Some(before),
            _ => self.since.add(entry),
        }
    }

    fn whole(mut self) -> Rewound<'t> {
        self.end_restored();
        self
    }

    fn end_restored(&mut self) {
        if let Some(after) = self.restored_to.take() {
            let before = self.text();
            self.again.push(Again::Restored { before, after });
        }
    }

    fn text(&self) -> String {
        let text = self.since.taken_back(self.ours);
        match &self.words {
            Some(words) => merge(&prose(self.ours), &text, words, &|_| false).text,
            None => text,
        }
    }
}

/// `base`, in which the items that have `come` from other queues into `saved` are as whoever put them there had read them: in
/// the newest version of each that stands so.
pub(super) fn as_read(
    board: &Board,
    base: &str,
    saved: &str,
    come: &HashSet<TaskId>,
) -> Result<String, Error> {
    let document = parse(base).0;
    let (known, theirs) = (
        items(&document, &ByName::new()),
        items(&parse(saved).0, &ByName::new()),
    );
    let newer = |(name, facts): (Name, Facts<'_>)| {
        let id = name.clone().ok().filter(|id| come.contains(id))?;
        theirs
            .get(&name)
            .filter(|other| **other != facts)
            .map(|other| (id, (facts.status, other)))
    };
    let mut newer: HashMap<TaskId, (Status, &Facts<'_>)> =
        known.into_iter().filter_map(newer).collect();
    let (mut read, mut looks) = (Since::default(), 0);
    if newer.is_empty() {
        return Ok(base.to_owned());
    }
    walk_log(board, None, &mut |entry| {
        let change = &entry.change;
        for (text, said) in [
            (change.after(), change.to()),
            (change.before(), change.from()),
        ] {
            let (Some(text), Some(id)) = (text, &entry.task) else {
                continue;
            };
            let Some((status, theirs)) = newer.get_mut(id) else {
                continue;
            };
            *status = said.unwrap_or(*status);
            let (alone, status) = (parse_alone(text, document.front()), *status);
            let Some(item) = alone
                .items()
                .first()
                .filter(|item| facts(&alone, item, status) == **theirs)
            else {
                continue;
            };
            // It may have got its ID since.
            let patch = Patch {
                id: item.id.is_none().then(|| id.clone()),
                ..Patch::default()
            };
            newer.remove(id);
            read.set(
                id.clone(),
                Some((apply(text, &alone.change(item, &patch)), status)),
            );
        }
        looks += 1;
        !newer.is_empty() && looks < MOST_LINES
    })?;
    Ok(read.taken_back(base))
}

/// The items of which something that Tavern may have written is another in the save.
fn differing(ours: &Document<'_>, saved: &Document<'_>) -> HashSet<Name> {
    let mut mine = items(ours, &ByName::new());
    let mut theirs = items(saved, &mine);
    let titles: HashSet<&str> = ours
        .items()
        .iter()
        .filter(|item| item.id.is_some())
        .map(|item| ours.title(item))
        .collect();
    // One without an ID may have got one since, or have been moved.
    mine.retain(|name, _| name.is_ok() || theirs.contains_key(name));
    let may_be_known = |name: &Name, title: &str| titles.contains(title) || mine.contains_key(name);
    theirs.retain(|name, _| {
        name.as_ref()
            .err()
            .is_none_or(|title| may_be_known(name, title))
    });
    let names: HashSet<&Name> = mine.keys().chain(theirs.keys()).collect();
    let is_same = |name: &Name| mine.get(name) == theirs.get(name);
    names
        .into_iter()
        .filter(|name| !is_same(name))
        .cloned()
        .collect()
}

/// A version may be nearer to a save than ours only if the log tells of one of the items that are another in it.
fn may_be_older(board: &Board, differing: &HashSet<Name>) -> Result<bool, Error> {
    let (mut is_told, mut looks) = (differing.iter().any(Result::is_err), 0);
    if differing.is_empty() || is_told {
        return Ok(is_told);
    }
    walk_back(board, &mut |line| {
        is_told = task_of(line).is_some_and(|task| differing.contains(&Ok(task)));
        looks += 1;
        !is_told && looks < MOST_LINES
    })?;
    Ok(is_told)
}

/// What an item goes by: its ID, else its title.
type Name = Result<TaskId, String>;

/// What Tavern writes of an item: where it stands, and its own keys, whatever they mean there.
#[derive(PartialEq)]
struct Facts<'t> {
    status: Status,
    /// A person ticks also what stands under a lane that says the same.
    is_ticked: bool,
    keys: Vec<(Key, Field<'t>)>,
}

impl Facts<'_> {
    fn is_like(&self, other: &Facts<'_>, aspect: Aspect) -> bool {
        match aspect {
            Aspect::Status => (self.status, self.is_ticked) == (other.status, other.is_ticked),
            Aspect::Keys => self.keys == other.keys,
        }
    }
}

type ByName<'t> = HashMap<Name, Facts<'t>>;

/// What is ticked where nothing that has ended stands is as it was before: Tavern moves what it ends, and a person may leave it
/// there. Of an ID that is there twice the item counts that is as `known`, else one with keys of Tavern's, else the first.
fn items<'t>(document: &Document<'t>, known: &ByName<'_>) -> ByName<'t> {
    let is_of_open = |kind: &LaneKind| !kind.status().is_ended();
    let told = |item: &Item<'_>| {
        let lane = match document.place(item) {
            LanePlace::Lane(kind) => Some(kind).filter(|kind| item.checked && is_of_open(kind)),
            _ => None,
        };
        let facts = match lane {
            Some(lane) => Facts {
                is_ticked: false,
                ..facts(document, item, lane.status())
            },
            None => facts(document, item, item.status),
        };
        (name(document, item), facts)
    };
    let mut all: Vec<(Name, Facts<'_>)> = document.items().iter().rev().map(told).collect();
    all.sort_by_key(|(name, told)| (known.get(name) == Some(told), !told.keys.is_empty()));
    all.into_iter().collect()
}

fn name(document: &Document<'_>, item: &Item<'_>) -> Name {
    item.id
        .clone()
        .ok_or_else(|| document.title(item).to_owned())
}

fn facts<'t>(document: &Document<'t>, item: &Item<'_>, status: Status) -> Facts<'t> {
    let Fields(mut keys) = document.fields(item);
    keys.retain(|(key, _)| key.owner() == Owner::State && *key != Key::Status);
    keys.sort_by_key(|(key, _)| *key as u32);
    Facts {
        status,
        is_ticked: item.checked,
        keys,
    }
}

/// An event of the queue.
struct Passed<'e> {
    entry: &'e Entry,
    facts: Vec<FactChange>,
}

/// Where an item stands, or what its keys say, was before an event, and is since, as in the save, or not.
struct FactChange {
    fact: (Name, Aspect),
    was_so: bool,
    is_so: bool,
    /// That it was, or is, not so tells of the save's age. What a person has made of what Tavern wrote they may take back.
    tells_before: bool,
    tells_after: bool,
    /// The save has the item.
    is_shown: bool,
    /// Whoever saved may have taken the item out: before and since it may be so.
    may_be_meant: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Aspect {
    Status,
    Keys,
}

/// Of how many of `entries` (the newest first) `saved` knows nothing.
fn unseen(
    entries: &[Entry],
    ours: &Document<'_>,
    saved: &Document<'_>,
    saver: &Saved<'_, '_>,
) -> usize {
    let mine = items(ours, &ByName::new());
    let theirs = items(saved, &mine);
    let mut statuses: HashMap<Name, Status> = mine
        .into_iter()
        .map(|(name, facts)| (name, facts.status))
        .collect();
    // Saves of which something is not known to whoever made this one.
    let by_hand = entries.iter().filter(|entry| entry.is_by_hand());
    let unknown: HashSet<u64> = by_hand
        .filter(|entry| saver.knows(entry) == Some(false))
        .map(Entry::save)
        .collect();
    let (mut passed, mut is_saved_since) = (Vec::new(), false);
    for entry in entries {
        let mut facts = if entry.change.is_of_item() {
            told(entry, ours.front(), &mut statuses, &theirs)
        } else {
            Vec::new()
        };
        // Whoever takes out what was there at a save of which they may know, or what they have added, means it.
        let may_be_meant = is_saved_since || entry.is_move_of_added();
        let mut texts = [entry.change.after(), entry.change.before()]
            .into_iter()
            .flatten();
        if may_be_meant && !texts.any(|text| saver.has(text)) {
            facts
                .iter_mut()
                .for_each(|told| told.may_be_meant = !theirs.contains_key(&told.fact.0));
        }
        passed.push(Passed { entry, facts });
        is_saved_since = is_saved_since || entry.is_by_hand() && !unknown.contains(&entry.save());
    }
    // What never was as it is in the save tells nothing of its age.
    let facts = passed.iter().flat_map(|event| &event.facts);
    let tells = |told: &&FactChange| !told.may_be_meant && (told.was_so || told.is_so);
    let telling: HashSet<_> = facts.filter(tells).map(|told| told.fact.clone()).collect();
    passed
        .iter_mut()
        .for_each(|event| event.facts.retain(|told| telling.contains(&told.fact)));
    // As they were before the oldest event.
    let mut wrong = Wrong::default();
    for Passed { facts, .. } in &passed {
        for told in facts {
            if told.was_so || told.may_be_meant || !told.tells_before {
                wrong.remove(told);
            } else {
                wrong.insert(told);
            }
        }
    }
    let mut best = None;
    for (newer, Passed { entry, facts }) in passed.iter().enumerate().rev() {
        // Nobody has loaded half of what came together, but for what git put there before somebody typed in it, and for whoever
        // wrote a line that Tavern has moved.
        let is_apart =
            |older: &Entry| older.save() != entry.save() || older.is_by_git() != entry.is_by_git();
        let is_whole = passed
            .get(newer + 1)
            .is_none_or(|older| is_apart(older.entry));
        let was_there = is_whole || entry.is_move_of_added();
        // Of several that are as near the oldest: what came later may never have been seen.
        if was_there && best.is_none_or(|(nearest, _)| wrong.count() < nearest) {
            best = Some((wrong.count(), newer + 1));
        }
        for told in facts {
            if told.is_so || told.may_be_meant {
                wrong.remove(told);
            } else if told.tells_after {
                wrong.insert(told);
            }
        }
    }
    // Whoever saved last is right.
    best.filter(|(nearest, _)| *nearest < wrong.count())
        .map_or(0, |(_, unseen)| unseen)
}

/// The facts that are others in a version than in the save.
#[derive(Default)]
struct Wrong<'p> {
    /// Of items that the save shows.
    shown: HashSet<&'p (Name, Aspect)>,
    /// Of those that it lacks.
    lacking: HashSet<&'p (Name, Aspect)>,
}

impl<'p> Wrong<'p> {
    fn of(&mut self, told: &FactChange) -> &mut HashSet<&'p (Name, Aspect)> {
        if told.is_shown {
            &mut self.shown
        } else {
            &mut self.lacking
        }
    }

    fn insert(&mut self, told: &'p FactChange) {
        self.of(told).insert(&told.fact);
    }

    fn remove(&mut self, told: &'p FactChange) {
        self.of(told).remove(&told.fact);
    }

    /// What a save shows tells more of its age than what it lacks: the saver may have taken that out.
    fn count(&self) -> (usize, usize) {
        (self.shown.len(), self.lacking.len())
    }
}

/// What an event tells of its items. `statuses` are those after it, and then those before it: where its lane says what an item
/// is, its own text does not.
fn told(
    entry: &Entry,
    front: &Front,
    statuses: &mut HashMap<Name, Status>,
    theirs: &ByName<'_>,
) -> Vec<FactChange> {
    let (after, before) = (entry.change.after(), entry.change.before());
    let [after, before] =
        [(after, entry.change.to()), (before, entry.change.from())].map(|(text, status)| {
            let document = parse_alone(text?, front);
            let item = document.items().first()?;
            // The log has a copy by its text alone, which tells nothing of the item.
            let name =
                Some(name(&document, item)).filter(|name| name.is_err() || entry.task.is_some())?;
            let status = status
                .or_else(|| statuses.get(&name).copied())
                .unwrap_or(item.status);
            statuses.insert(name.clone(), status);
            Some((name, facts(&document, item, status)))
        });
    // As git has it it may have stood otherwise, until Tavern made it right.
    let tells_state =
        !(entry.is_by_git() && !entry.is_restored() && (before.is_none() || after.is_none()));
    let mut names: Vec<&Name> = [&before, &after]
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .collect();
    names.dedup();
    let changes = names.into_iter().flat_map(|name| {
        let [before, after, now] = [
            named(before.as_ref(), name),
            named(after.as_ref(), name),
            standing(theirs, name),
        ];
        // Whoever types in an item leaves what Tavern wrote as it was.
        let changed = [Aspect::Status, Aspect::Keys]
            .into_iter()
            .filter(move |aspect| !are_like(before, after, *aspect));
        changed.map(move |aspect| FactChange {
            fact: (name.clone(), aspect),
            was_so: are_like(before, now, aspect),
            is_so: are_like(after, now, aspect),
            tells_before: !entry.is_typed() && (tells_state || before.is_some() != now.is_some()),
            tells_after: !entry.is_typed() && (tells_state || after.is_some() != now.is_some()),
            is_shown: now.is_some(),
            may_be_meant: false,
        })
    });
    // What a person has made of it tells nothing where the save has it neither so nor as it was: others have made it so since.
    changes
        .filter(|told| !entry.is_typed() || told.was_so || told.is_so)
        .collect()
}

fn named<'f, 't>(told: Option<&'f (Name, Facts<'t>)>, name: &Name) -> Option<&'f Facts<'t>> {
    told.filter(|(other, _)| other == name)
        .map(|(_, facts)| facts)
}

/// Neither is there, or both say the same.
fn are_like(one: Option<&Facts<'_>>, other: Option<&Facts<'_>>, aspect: Aspect) -> bool {
    one.zip(other)
        .map_or(one.is_none() && other.is_none(), |(one, other)| {
            one.is_like(other, aspect)
        })
}

/// As it is in the save, where one without an ID may go on from its title.
fn standing<'n, 't>(theirs: &'n ByName<'t>, name: &Name) -> Option<&'n Facts<'t>> {
    let goes_on = |title: &String| {
        let is_it = |other: &Name| {
            other
                .as_ref()
                .is_err_and(|other| !title.is_empty() && other.starts_with(title))
        };
        theirs
            .iter()
            .find(|(other, _)| is_it(other))
            .map(|(_, facts)| facts)
    };
    theirs
        .get(name)
        .or_else(|| name.as_ref().err().and_then(goes_on))
}

/// How far what was saved is from what may have been loaded: the items in which something that Tavern wrote is another, then lines.
pub(super) fn distance(loaded: &str, saved: &str) -> (usize, u64) {
    let mut lines = Tally::default();
    lines.count(loaded, 1);
    lines.count(saved, -1);
    (
        differing(&parse(loaded).0, &parse(saved).0).len(),
        lines.distance,
    )
}

/// How often each line that says something is in a version and not in the save, or the other way round.
#[derive(Default)]
struct Tally<'t> {
    more: HashMap<&'t str, i64>,
    distance: u64,
}

impl<'t> Tally<'t> {
    fn count(&mut self, text: &'t str, times: i64) {
        for line in said(text) {
            let more = self.more.entry(line).or_default();
            self.distance -= more.unsigned_abs();
            *more += times;
            self.distance += more.unsigned_abs();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An editor has loaded what git wrote before Tavern made it right, and goes on with it: words that it saved before are known.
    #[test]
    fn what_tavern_wrote_tells_more_of_what_was_loaded_than_how_many_words_were_typed() {
        let loaded = "## Pending\n\n- [ ] T-1: one\n\n## Completed\n";
        let typed = "Some.\n\nMore.\n\nStill more.\n\nThe last.\n\n";
        let saved = format!("{typed}{loaded}");
        let known = format!("{typed}## Pending\n\n## Completed\n\n- [x] T-1: one (attempt: 1)\n");
        assert!(distance(loaded, &saved) < distance(&known, &saved));
        // Of two in which that is the same it is the one with more of the words.
        assert!(
            distance(&saved, &format!("{saved}Typed.\n"))
                < distance(loaded, &format!("{saved}Typed.\n"))
        );
    }
}
