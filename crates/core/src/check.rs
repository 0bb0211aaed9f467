//! Problems between items: duplicate IDs, dependencies that lead nowhere or in a cycle.
//!
//! Knows all documents of a board at once, but no files.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::document::{Document, Item};
use crate::eligible::{OWN_DEPENDENCY, no_such_item, waits_for_own};
use crate::merge::marks;
use crate::problem::Problem;
use crate::suggestion::nearest;
use crate::task::{BadId, Status, TaskId};

/// The problems found. Documents and items are given by their index in the given slices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The document, and the problem in it.
    pub problems: Vec<(usize, Problem)>,
    /// Items (document, index) that are neither claimed nor changed until an error is fixed, with the error
    /// and its fix. Items that their own document quarantines are not repeated.
    pub quarantined: HashMap<(usize, usize), (String, String)>,
    /// Items with the ID of an item in another document.
    pub copies: HashSet<(usize, usize)>,
}

/// Checks all documents of a board together, each with its name for messages. `archived` returns the status
/// of items that are in none of them. `homes` resolves IDs that stand in several documents.
pub fn check<'t>(
    documents: &[(&str, &Document<'t>)],
    archived: &dyn Fn(&TaskId) -> Option<Status>,
    homes: &Homes<'_>,
) -> Findings {
    let mut checker = Checker::of(documents, archived, homes);
    checker.duplicates();
    checker.copies();
    checker.dependencies();
    checker.cycles();
    for (number, (_, document)) in documents.iter().enumerate() {
        checker.findings.problems.extend(
            marks(document.text())
                .into_iter()
                .map(|mark| (number, mark)),
        );
    }
    checker.torn();
    checker.misplaced();
    checker.nameless();
    checker
        .findings
        .problems
        .sort_by_key(|(document, problem)| (*document, problem.span.start));
    checker.findings
}

/// Maps IDs with the documents that contain them to the document with the item itself, not a copy.
pub type Homes<'h> = dyn Fn(BTreeMap<TaskId, Vec<usize>>) -> HashMap<TaskId, usize> + 'h;

/// Picks the first document of each ID; within a document the first item of an ID counts.
pub fn first_of(places: BTreeMap<TaskId, Vec<usize>>) -> HashMap<TaskId, usize> {
    places
        .into_iter()
        .filter_map(|(id, places)| Some((id, *places.first()?)))
        .collect()
}

/// Returns whether [`check`] plainly finds nothing that keeps the item of document `number` from being
/// worked. Only that item and its dependencies are read; if one of their IDs is there twice, all documents
/// are.
pub fn is_sound(
    documents: &[(&str, &Document<'_>)],
    archived: &dyn Fn(&TaskId) -> Option<Status>,
    (number, item): (usize, &Item<'_>),
) -> bool {
    let named = |id: &TaskId| {
        documents
            .iter()
            .flat_map(|(_, document)| document.named(id))
            .collect::<Vec<_>>()
    };
    let is_known = |needed: &TaskId| !named(needed).is_empty() || archived(needed).is_some();
    let is_double = item.id.as_ref().is_some_and(|id| named(id).len() > 1);
    let is_torn = documents[number].1.script_beside(item).is_some();
    if item.quarantined || is_double || is_torn || !item.after.iter().all(is_known) {
        return false;
    }
    // Check that nothing leads back to the item.
    let (mut seen, mut open) = (HashSet::new(), vec![item]);
    while let Some(next) = open.pop() {
        if !next.after_names.is_empty() {
            return false;
        }
        for needed in next.after.iter().filter(|needed| seen.insert(*needed)) {
            let others = named(needed);
            if item.id.as_ref() == Some(needed) || others.len() > 1 {
                return false;
            }
            open.extend(others.first().filter(|other| !other.status.is_ended()));
        }
    }
    true
}

/// An item and its place.
struct Node<'d, 't> {
    document: usize,
    index: usize,
    item: &'d Item<'t>,
    /// Nodes that it waits for by other names than IDs.
    named: Vec<usize>,
}

/// Returns the part of a title that looks like the start of another item, outside of code spans.
fn swallowed(title: &str) -> Option<&str> {
    let found = ["[ ] ", "[x] "]
        .iter()
        .filter_map(|mark| title.find(mark))
        .min()?;
    let at = found
        .checked_sub(2)
        .filter(|at| title.is_char_boundary(*at))?;
    let is_bullet = matches!(&title[at..found], "- " | "* " | "+ ");
    (is_bullet && !title[..at].contains('`')).then(|| &title[at..])
}

struct Checker<'d, 't> {
    documents: &'d [(&'d str, &'d Document<'t>)],
    archived: &'d dyn Fn(&TaskId) -> Option<Status>,
    nodes: Vec<Node<'d, 't>>,
    /// The first node of each ID, in the document that has the item.
    by_id: HashMap<&'d TaskId, usize>,
    findings: Findings,
}

impl<'d, 't> Checker<'d, 't> {
    fn of(
        documents: &'d [(&'d str, &'d Document<'t>)],
        archived: &'d dyn Fn(&TaskId) -> Option<Status>,
        homes: &Homes<'_>,
    ) -> Checker<'d, 't> {
        let mut nodes = Vec::new();
        for (number, (_, document)) in documents.iter().enumerate() {
            let waits = |item: &Item<'_>| !(item.after.is_empty() && item.after_names.is_empty());
            let named = document
                .items()
                .iter()
                .enumerate()
                .filter(|(_, item)| item.id.is_some() || waits(item));
            let first = nodes.len();
            nodes.extend(named.map(|(index, item)| Node {
                document: number,
                index,
                item,
                named: Vec::new(),
            }));
            for at in first..nodes.len() {
                let named = document
                    .named_by(nodes[at].item)
                    .unwrap_or_default()
                    .into_iter();
                // Items without dependencies are in no cycle.
                let node = |index| {
                    nodes[first..]
                        .binary_search_by_key(&index, |node| node.index)
                        .ok()
                };
                nodes[at].named = named
                    .filter_map(|index| Some(first + node(index)?))
                    .collect();
            }
        }
        let mut by_id = HashMap::with_capacity(nodes.len());
        let mut places: BTreeMap<TaskId, Vec<usize>> = BTreeMap::new();
        for (number, node) in nodes.iter().enumerate() {
            let Some(id) = &node.item.id else { continue };
            let first: usize = *by_id.entry(id).or_insert(number);
            let first = nodes[first].document;
            if first != node.document {
                let places = places.entry(id.clone()).or_insert_with(|| vec![first]);
                places.extend((places.last() != Some(&node.document)).then_some(node.document));
            }
        }
        let homes = if places.is_empty() {
            HashMap::new()
        } else {
            homes(places)
        };
        for (number, node) in nodes.iter().enumerate().rev() {
            let Some(id) = &node.item.id else { continue };
            if homes.get(id) == Some(&node.document) {
                by_id.insert(id, number);
            }
        }
        Checker {
            documents,
            archived,
            nodes,
            by_id,
            findings: Findings::default(),
        }
    }

    /// Reports duplicate IDs within one document, which are ambiguous.
    fn duplicates(&mut self) {
        let mut told = HashSet::new();
        for double in 0..self.nodes.len() {
            let first = self.first_of(double);
            if first == double || self.nodes[first].document != self.nodes[double].document {
                continue;
            }
            self.duplicate(double, first);
            if told.insert(first) {
                self.duplicate(first, double);
            }
        }
    }

    fn first_of(&self, node: usize) -> usize {
        self.nodes[node]
            .item
            .id
            .as_ref()
            .map_or(node, |id| self.by_id[id])
    }

    fn name(&self, node: usize) -> &'d str {
        self.nodes[node]
            .item
            .id
            .as_ref()
            .map_or_else(|| self.title(node), TaskId::as_str)
    }

    fn title(&self, node: usize) -> &'d str {
        let Node { document, item, .. } = self.nodes[node];
        self.documents[document].1.title(item)
    }

    fn duplicate(&mut self, node: usize, other: usize) {
        let item = self.nodes[node].item;
        let message = format!(
            "`{}` is also the ID of the item at {}",
            self.name(node),
            self.place_of(other, node)
        );
        let (code, hint) = if self.title(node) == self.title(other) {
            (
                "copied-item",
                "remove one of them, or remove its ID to make it a separate item",
            )
        } else {
            (
                "duplicate-id",
                "give one of them another ID, or remove its ID and it gets a fresh one",
            )
        };
        let span = item.id_span().unwrap_or_else(|| item.head.clone());
        self.error(&[node], node, Problem::error(code, span, message, hint));
    }

    /// Reports copies: the item is in one document, and one with its ID in another is never worked. All
    /// copies of one document are reported together.
    fn copies(&mut self) {
        let mut copies: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
        for copy in 0..self.nodes.len() {
            let item = self.first_of(copy);
            let [here, there] = [copy, item].map(|node| self.nodes[node].document);
            if here == there {
                continue;
            }
            self.findings.copies.insert((here, self.nodes[copy].index));
            if self.title(copy) == self.title(item) {
                copies.entry((here, there)).or_default().push(copy);
            } else {
                self.duplicate(copy, item);
            }
        }
        for ((here, there), copies) in copies {
            let there = self.documents[there].0;
            let (message, hint) = match copies.len() - 1 {
                0 => (
                    format!("this is a copy of the item in {there}; agents skip it"),
                    "remove it",
                ),
                more => (
                    format!(
                        "this and {more} more are copies of items in {there}; agents skip them"
                    ),
                    "remove them, or move the file elsewhere",
                ),
            };
            let hint = format!("{hint}; without an ID, each is a separate item");
            for node in copies.iter().map(|copy| &self.nodes[*copy]) {
                let place = (node.document, node.index);
                self.findings
                    .quarantined
                    .entry(place)
                    .or_insert_with(|| (message.clone(), hint.clone()));
            }
            let item = self.nodes[copies[0]].item;
            let span = item.id_span().unwrap_or_else(|| item.head.clone());
            self.findings
                .problems
                .push((here, Problem::warning("copied-item", span, message, hint)));
        }
    }

    fn dependencies(&mut self) {
        for number in 0..self.nodes.len() {
            let item = self.nodes[number].item;
            if item.status.is_ended() || item.aside {
                continue;
            }
            let document = self.documents[self.nodes[number].document].1;
            let names = item
                .after_names
                .iter()
                .map(|name| &**name)
                .chain(item.after.iter().map(TaskId::as_str));
            let own: Vec<&str> = names.filter(|name| self.is_own(number, name)).collect();
            if let Err(name) = document.named_by(item)
                && !own.contains(&name)
            {
                let hint = format!(
                    "{}; or write a title or a heading of this file",
                    BadId::HINT
                );
                let unnamed = || document.names_nothing(item);
                let span = name.is_empty().then(unnamed).flatten();
                let span = span.unwrap_or_else(|| self.span_of(number, name.trim()));
                let message = no_such_item(document, item, name);
                self.error(
                    &[number],
                    number,
                    Problem::error("unknown-dependency", span, message, hint),
                );
            }
            for needed in &item.after {
                let status = match self.by_id.get(needed) {
                    Some(node) => Some(self.nodes[*node].item.status),
                    None => (self.archived)(needed),
                };
                match status {
                    _ if own.contains(&needed.as_str()) => {}
                    None => self.unknown(number, needed),
                    Some(Status::Cancelled) => self.warning(
                        number,
                        needed.as_str(),
                        "cancelled-dependency",
                        format!("this waits for `{needed}`, which was cancelled"),
                        format!("remove `{needed}` from `after`, or reopen `{needed}`"),
                    ),
                    Some(Status::Dead) => self.warning(
                        number,
                        needed.as_str(),
                        "dead-dependency",
                        format!("this waits for `{needed}`, which is in the dead letter lane"),
                        format!("bring `{needed}` back"),
                    ),
                    Some(_) => {}
                }
            }
            if let Some(parent) = &item.parent
                && !self.by_id.contains_key(parent)
                && (self.archived)(parent).is_none()
            {
                self.warning(
                    number,
                    parent.as_str(),
                    "unknown-parent",
                    format!("there is no item `{parent}`"),
                    "correct the ID, or remove `parent`".to_owned(),
                );
            }
        }
    }

    /// Reports a dependency of `node` on a line with an owner's mark. Returns whether it is one.
    fn is_own(&mut self, node: usize, name: &str) -> bool {
        let Some(mark) = self.documents[self.nodes[node].document].1.own_mark(name) else {
            return false;
        };
        let name = name.trim();
        self.warning(
            node,
            name,
            "own-dependency",
            format!("this {}", waits_for_own(name, mark)),
            OWN_DEPENDENCY.to_owned(),
        );
        true
    }

    /// Reports text right below an item that may be meant as its script.
    fn torn(&mut self) {
        for (number, (_, document)) in self.documents.iter().enumerate() {
            let items = document.items().iter().enumerate();
            for (index, item) in items.filter(|(_, it)| !it.status.is_ended() && !it.aside) {
                if let Some(problem) = document.script_beside(item) {
                    let words = (problem.message.clone(), problem.hint.clone());
                    self.findings.quarantined.insert((number, index), words);
                    self.findings.problems.push((number, problem));
                }
            }
        }
    }

    /// Reports dead items that were never tried: a claimed item has an ID. An appended line is made pending
    /// by the next program.
    fn misplaced(&mut self) {
        for (number, (_, document)) in self.documents.iter().enumerate() {
            let untried = document
                .items()
                .iter()
                .filter(|item| item.status == Status::Dead && item.id.is_none());
            let problem = |item: &Item<'_>| {
                let (message, hint) = (
                    "this was never tried, but is in the dead letter lane",
                    "move it to `## Pending`",
                );
                (
                    number,
                    Problem::warning("untried-dead-letter", item.head.clone(), message, hint),
                )
            };
            self.findings.problems.extend(untried.map(problem));
        }
    }

    /// Warns of problems of items without an ID. Two lines that read the same are two items, but may be one
    /// that was pasted twice. A line may hold two items if the first lacked a line end.
    fn nameless(&mut self) {
        for (number, (_, document)) in self.documents.iter().enumerate() {
            let mut first: HashMap<&str, usize> = HashMap::new();
            for item in document.items() {
                let mut warn = |code, message: String, hint: String| {
                    self.findings.problems.push((
                        number,
                        Problem::warning(code, item.head.clone(), message, hint),
                    ));
                };
                if let Some(swallowed) = swallowed(document.title(item)) {
                    let message =
                        format!("an item begins in the middle of this line: `{swallowed}`");
                    warn(
                        "swallowed-item",
                        message,
                        "put it on a line of its own".to_owned(),
                    );
                }
                if item.id.is_some() || item.status.is_ended() || item.quarantined {
                    continue;
                }
                let line = *first
                    .entry(document.block(item).trim_end())
                    .or_insert(item.line);
                if line != item.line {
                    let message =
                        format!("this item repeats the item in line {line}; agents work on both");
                    warn(
                        "copied-item",
                        message,
                        "remove one of them, or name the difference".to_owned(),
                    );
                }
            }
        }
    }

    fn unknown(&mut self, node: usize, needed: &TaskId) {
        // With many problems a search for the nearest ID is too slow.
        let ids = self
            .by_id
            .keys()
            .take(if self.findings.problems.len() < 20 {
                usize::MAX
            } else {
                0
            });
        let mut near: Vec<&str> = ids.map(|id| id.as_str()).collect();
        near.sort_unstable();
        let hint = match nearest(needed.as_str(), near) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("correct the ID, or remove `{needed}` from `after`"),
        };
        let (span, message) = (
            self.span_of(node, needed.as_str()),
            format!("there is no item `{needed}` to wait for"),
        );
        self.error(
            &[node],
            node,
            Problem::error("unknown-dependency", span, message, hint),
        );
    }

    /// Reports each dependency cycle once, with one path through it.
    fn cycles(&mut self) {
        for group in self.groups() {
            let members: HashSet<usize> = group.iter().copied().collect();
            let path = self.way_round(&members, group[0]);
            let ids: Vec<String> = path
                .iter()
                .chain(path.first())
                .map(|node| self.name(*node).to_owned())
                .collect();
            let shown = match ids.len() {
                0..=12 => ids.join(" → "),
                count => {
                    format!(
                        "{} → … ({} more) → {}",
                        ids[..6].join(" → "),
                        count - 11,
                        ids[count - 5..].join(" → ")
                    )
                }
            };
            let first = path[0];
            let (next, name) = (
                self.name(path.get(1).copied().unwrap_or(first)),
                self.name(first),
            );
            let span = self.span_of(first, next);
            let hint = format!(
                "remove `{next}` from the `after` of `{name}`, or break the cycle elsewhere"
            );
            self.error(
                &group,
                first,
                Problem::error(
                    "dependency-cycle",
                    span,
                    format!("dependency cycle: {shown}"),
                    hint,
                ),
            );
        }
    }

    /// Returns the item's dependencies that haven't ended.
    fn needs(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let Node { item, named, .. } = &self.nodes[node];
        let after = item
            .after
            .iter()
            .filter_map(|id| self.by_id.get(id).copied());
        after
            .chain(named.iter().copied())
            .filter(|needed| !self.nodes[*needed].item.status.is_ended())
    }

    /// Returns the groups of items that all wait for one another, in the order of the documents. Tarjan's
    /// strongly connected components, without recursion, since a chain of dependencies may be long.
    fn groups(&self) -> Vec<Vec<usize>> {
        const UNSEEN: usize = usize::MAX;
        let count = self.nodes.len();
        let mut order = vec![UNSEEN; count];
        let mut low = vec![0; count];
        let mut is_open = vec![false; count];
        let mut open = Vec::new();
        let mut seen = 0;
        let mut groups = Vec::new();
        for root in 0..count {
            let Node { item, named, .. } = &self.nodes[root];
            // Items without dependencies are in no cycle, and most have none.
            if order[root] != UNSEEN
                || (item.after.is_empty() && named.is_empty())
                || item.status.is_ended()
            {
                continue;
            }
            let mut path = vec![(root, self.needs(root))];
            (order[root], low[root], is_open[root]) = (seen, seen, true);
            seen += 1;
            open.push(root);
            while let Some((node, needs)) = path.last_mut() {
                let node = *node;
                match needs.next() {
                    Some(next) if order[next] == UNSEEN => {
                        (order[next], low[next], is_open[next]) = (seen, seen, true);
                        seen += 1;
                        open.push(next);
                        path.push((next, self.needs(next)));
                    }
                    Some(next) if is_open[next] => low[node] = low[node].min(order[next]),
                    Some(_) => {}
                    None => {
                        path.pop();
                        if let Some((above, _)) = path.last() {
                            low[*above] = low[*above].min(low[node]);
                        }
                        if low[node] == order[node] {
                            let start =
                                open.iter().rposition(|member| *member == node).unwrap_or(0);
                            let mut group = open.split_off(start);
                            group.iter().for_each(|member| is_open[*member] = false);
                            group.sort_unstable();
                            if group.len() > 1 || self.needs(node).any(|needed| needed == node) {
                                groups.push(group);
                            }
                        }
                    }
                }
            }
        }
        groups.sort_unstable();
        groups
    }

    /// Returns a shortest path from `start` back to itself.
    fn way_round(&self, members: &HashSet<usize>, start: usize) -> Vec<usize> {
        let mut from: HashMap<usize, usize> = HashMap::new();
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for next in self.needs(node).filter(|next| members.contains(next)) {
                if next == start {
                    let mut path = vec![node];
                    while let Some(before) = path
                        .last()
                        .filter(|last| **last != start)
                        .and_then(|last| from.get(last))
                    {
                        path.push(*before);
                    }
                    path.reverse();
                    return path;
                }
                if next != start && !from.contains_key(&next) {
                    from.insert(next, node);
                    queue.push_back(next);
                }
            }
        }
        vec![start]
    }

    /// Reports the problem in the document of `at`, and quarantines the items that it holds up.
    fn error(&mut self, nodes: &[usize], at: usize, problem: Problem) {
        for node in nodes
            .iter()
            .map(|node| &self.nodes[*node])
            .filter(|node| !node.item.quarantined)
        {
            let error = || (problem.message.clone(), problem.hint.clone());
            self.findings
                .quarantined
                .entry((node.document, node.index))
                .or_insert_with(error);
        }
        self.findings
            .problems
            .push((self.nodes[at].document, problem));
    }

    fn warning(
        &mut self,
        node: usize,
        name: &str,
        code: &'static str,
        message: String,
        hint: String,
    ) {
        let span = self.span_of(node, name);
        self.findings.problems.push((
            self.nodes[node].document,
            Problem::warning(code, span, message, hint),
        ));
    }

    /// Returns where the item's keys name the other one.
    fn span_of(&self, node: usize, name: &str) -> std::ops::Range<usize> {
        let Node { document, item, .. } = self.nodes[node];
        let text = self.documents[document].1.text();
        let places = [
            item.metadata.clone(),
            item.block.as_ref().map(|block| block.content.clone()),
            Some(item.head.end..item.span.end),
        ];
        for place in places.into_iter().flatten() {
            if let Some(at) = text[place.clone()].find(name) {
                return place.start + at..place.start + at + name.len();
            }
        }
        item.head.clone()
    }

    /// `line 12`, or `queue other, line 12` if the reader is in another document.
    fn place_of(&self, node: usize, reader: usize) -> String {
        let Node { document, item, .. } = self.nodes[node];
        if document == self.nodes[reader].document {
            format!("line {}", item.line)
        } else {
            format!("{}, line {}", self.documents[document].0, item.line)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse;

    /// `(document, code, text of the span)` of each problem, and the IDs of the quarantined items.
    fn found(texts: &[&str]) -> (Vec<(usize, &'static str, String)>, Vec<String>) {
        let parsed: Vec<Document<'_>> = texts.iter().map(|text| parse(text).0).collect();
        let named: Vec<(&str, &Document<'_>)> =
            ["one", "two", "three"].into_iter().zip(&parsed).collect();
        let archived = |id: &TaskId| match id.as_str() {
            "OLD-1" => Some(Status::Completed),
            "OLD-2" => Some(Status::Cancelled),
            _ => None,
        };
        let findings = check(&named, &archived, &first_of);
        for (at, document) in parsed.iter().enumerate() {
            let open = document
                .items()
                .iter()
                .enumerate()
                .filter(|(_, item)| !item.status.is_ended());
            for (index, item) in open {
                let place = (at, index);
                let is_kept =
                    findings.quarantined.contains_key(&place) || findings.copies.contains(&place);
                let named_so = |id| {
                    parsed
                        .iter()
                        .map(|document| document.named(id).len())
                        .sum::<usize>()
                };
                let is_plain = !is_kept
                    && item
                        .id
                        .iter()
                        .chain(&item.after)
                        .all(|id| named_so(id) <= 1);
                assert_eq!(
                    is_sound(&named, &archived, (at, item)),
                    is_plain,
                    "{texts:?} {item:?}"
                );
            }
        }
        let problems = findings.problems.iter();
        let problems = problems.map(|(at, problem)| {
            (
                *at,
                problem.code,
                texts[*at][problem.span.clone()].to_owned(),
            )
        });
        let problems = problems.collect();
        let mut quarantined: Vec<(usize, usize)> = findings.quarantined.into_keys().collect();
        quarantined.sort_unstable();
        let ids = quarantined.into_iter().map(|(at, index)| {
            let item = &parsed[at].items()[index];
            format!("{at}:{}", item.id.as_ref().map_or("", TaskId::as_str))
        });
        (problems, ids.collect())
    }

    #[test]
    fn a_clean_board_has_no_findings() {
        let texts = [
            "- [ ] T-1: a (after: [T-2, OLD-1])\n- [ ] b\n- [x] b\n- [ ] b\n  more\n- [ ] `- [ ] x` is text\n",
            "- [ ] T-2: c (parent: T-1)\n",
        ];
        assert_eq!(found(&texts), (vec![], vec![]));
    }

    #[test]
    fn each_finding_names_its_place_and_quarantines_its_items() {
        type Row = (
            &'static [&'static str],
            &'static [(usize, &'static str, &'static str)],
            &'static [&'static str],
        );
        let rows: [Row; 14] = [
            (
                &["- [ ] T-1: a\n- [ ] T-1: b\n- [ ] T-2: c\n"],
                &[(0, "duplicate-id", "T-1"), (0, "duplicate-id", "T-1")],
                &["0:T-1", "0:T-1"],
            ),
            (
                &["- [ ] T-1: a\n", "- [ ] T-1: b\n- [ ] T-2: c\n"],
                &[(1, "duplicate-id", "T-1")],
                &["1:T-1"],
            ),
            (
                &[
                    "- [x] T-1: a\n- [ ] T-2: b\n- [ ] T-3: c (after: T-1)\n",
                    "- [ ] T-1: a\n- [ ] T-2: b\n",
                ],
                &[(1, "copied-item", "T-1")],
                &["1:T-1", "1:T-2"],
            ),
            (
                &["- [ ] a\n- [ ] b\n- [ ] a\n", "- [ ] b\n"],
                &[(0, "copied-item", "a")],
                &[],
            ),
            (
                &["- [x] T-1: a- [ ] b\n"],
                &[(0, "swallowed-item", "T-1: a- [ ] b")],
                &[],
            ),
            (
                &["- [ ] T-1: a (after: T-7)\n- [ ] T-2: c\n"],
                &[(0, "unknown-dependency", "T-7")],
                &["0:T-1"],
            ),
            (
                &["- [ ] a (after: T-7)\n"],
                &[(0, "unknown-dependency", "T-7")],
                &["0:"],
            ),
            (&["- [x] T-1: a (after: T-7)\n"], &[], &[]),
            (
                &["## Dead Letter\n- [ ] T-1: tried\n- [ ] a\n## Pending\n- [ ] b\n"],
                &[(0, "untried-dead-letter", "a")],
                &[],
            ),
            (
                &["- [ ] T-1: a (after: T-1)\n"],
                &[(0, "dependency-cycle", "T-1")],
                &["0:T-1"],
            ),
            (
                &[
                    "- [ ] T-1: a (after: T-2)\n- [ ] T-3: c (after: T-1)\n",
                    "- [ ] T-2: b (after: T-1)\n",
                ],
                &[(0, "dependency-cycle", "T-2")],
                &["0:T-1", "1:T-2"],
            ),
            // A completed item waits for nothing, so it closes no circle.
            (
                &["- [ ] T-1: a (after: T-2)\n- [x] T-2: b (after: T-1)\n"],
                &[],
                &[],
            ),
            (
                &["- [ ] T-1: a (after: T-2, OLD-2)\n- [x] T-2: b (status: cancelled)\n"],
                &[
                    (0, "cancelled-dependency", "T-2"),
                    (0, "cancelled-dependency", "OLD-2"),
                ],
                &[],
            ),
            (
                &["- [ ] T-1: a (after: T-2, parent: T-9)\n- [ ] T-2: b (status: dead)\n"],
                &[(0, "dead-dependency", "T-2"), (0, "unknown-parent", "T-9")],
                &[],
            ),
        ];
        for (texts, problems, quarantined) in rows {
            let expected: Vec<_> = problems
                .iter()
                .map(|(at, code, span)| (*at, *code, (*span).to_owned()))
                .collect();
            assert_eq!(
                found(texts),
                (
                    expected,
                    quarantined.iter().map(|id| (*id).to_owned()).collect()
                ),
                "{texts:?}"
            );
        }
    }

    #[test]
    fn a_cycle_is_told_with_its_way_round() {
        let text = "- [ ] T-1: a (after: [T-4, T-2])\n- [ ] T-2: b (after: T-3)\n- [ ] T-3: c (after: T-1)\n- [ ] T-4: d (after: T-2)\n";
        let (document, _) = parse(text);
        let findings = check(&[("main", &document)], &|_| None, &first_of);
        assert_eq!(findings.problems.len(), 1);
        assert_eq!(
            findings.problems[0].1.message,
            "dependency cycle: T-1 → T-2 → T-3 → T-1"
        );
        assert_eq!(findings.quarantined.len(), 4);
    }

    #[test]
    fn long_chains_need_no_deep_stack() {
        let mut text: String = (1..50_000)
            .map(|n| format!("- [ ] T-{n}: x (after: T-{})\n", n - 1))
            .collect();
        text.push_str("- [ ] T-0: x (after: T-49999)\n");
        let (document, _) = parse(&text);
        let findings = check(&[("main", &document)], &|_| None, &first_of);
        assert_eq!(findings.problems.len(), 1);
        assert_eq!(findings.quarantined.len(), 50_000);
    }
}
