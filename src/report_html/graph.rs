//! Layout of the dependency graph: an item stands to the right of its dependencies.

use std::collections::{BTreeMap, HashMap};

use super::chronicle::Chronicle;
use crate::sanitize::Legible;

/// The items that have links.
#[derive(Debug)]
pub(super) struct Graph {
    pub width: u32,
    pub height: u32,
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
}

/// An item in the graph.
#[derive(Debug)]
pub(super) struct GraphNode {
    pub item: usize,
    pub x: u32,
    pub y: u32,
    pub name: Legible,
    pub title: Legible,
    pub class: &'static str,
    pub sign: &'static str,
    pub told: String,
}

/// A link from a dependency to the item after it, or from a part to its whole.
#[derive(Debug)]
pub(super) struct GraphEdge {
    pub path: String,
    pub class: &'static str,
}

/// Pixels of an item, and from each to the next.
pub(super) const NODE: (u32, u32) = (200, 40);
const PITCH: (u32, u32) = (250, 52);
/// Margin around a group of linked items.
const MARGIN: u32 = 14;

/// Maximum number of items in a column; more of the same depth stand beside them.
const MOST_HIGH: usize = 14;

/// Maximum width of groups side by side.
const WIDE: u32 = 1_180;

/// Width of a title, in cells.
const CELLS: usize = 26;

impl Graph {
    /// Returns `None` if no items are linked.
    pub fn of(chronicle: &Chronicle) -> Option<Graph> {
        let links = Links::of(chronicle);
        if links.all.is_empty() {
            return None;
        }
        let mut places: HashMap<usize, (u32, u32)> = HashMap::new();
        let mut passes: HashMap<usize, Vec<(u32, u32)>> = HashMap::new();
        let (mut x, mut y, mut shelf, mut width) = (0, 0, 0, 0);
        for group in links.groups() {
            let columns = links.columns(&group);
            let high = columns.iter().map(Vec::len).max().unwrap_or_default() as u32;
            let size = (
                columns.len() as u32 * PITCH.0 + MARGIN,
                high * PITCH.1 + MARGIN,
            );
            if x > 0 && x + size.0 > WIDE {
                (x, y, shelf) = (0, y + shelf, 0);
            }
            for (column, slots) in columns.iter().enumerate() {
                // Shorter columns are centred.
                let above = (high - slots.len() as u32) * PITCH.1 / 2;
                for (row, slot) in slots.iter().enumerate() {
                    let place = (
                        x + MARGIN + column as u32 * PITCH.0,
                        y + MARGIN + above + row as u32 * PITCH.1,
                    );
                    match *slot {
                        ColumnSlot::Item(item) => drop(places.insert(item, place)),
                        ColumnSlot::Pass(link) => passes.entry(link).or_default().push(place),
                    }
                }
            }
            x += size.0;
            shelf = shelf.max(size.1);
            width = width.max(x);
        }
        let mut nodes: Vec<GraphNode> = places
            .iter()
            .map(|(item, (x, y))| node(chronicle, *item, *x, *y))
            .collect();
        nodes.sort_by_key(|node| (node.x, node.y));
        let edges = links.all.iter().enumerate().map(|(number, link)| {
            let passed = passes.get(&number).map(Vec::as_slice).unwrap_or_default();
            let class = if link.is_part { "part" } else { "after" };
            GraphEdge {
                path: path(places[&link.from], passed, places[&link.to]),
                class,
            }
        });
        Some(Graph {
            width,
            height: y + shelf + MARGIN,
            edges: edges.collect(),
            nodes,
        })
    }
}

fn node(chronicle: &Chronicle, number: usize, x: u32, y: u32) -> GraphNode {
    let item = &chronicle.items[number];
    GraphNode {
        item: number,
        x,
        y,
        name: item.name.cut(CELLS),
        title: item.title.cut(CELLS),
        class: item.hue().class(),
        sign: item.hue().sign(),
        told: format!(
            "{} {}: {}",
            item.name,
            item.title.cut(100),
            item.status_word()
        ),
    }
}

/// Returns a curve from the right of one item to the left of the other, through the points that it passes.
fn path(from: (u32, u32), passed: &[(u32, u32)], to: (u32, u32)) -> String {
    let (mut x, mut y) = (from.0 + NODE.0, from.1 + NODE.1 / 2);
    let mut path = format!("M{x} {y}");
    for (number, next) in passed.iter().chain([&to]).enumerate() {
        let (x2, y2) = (next.0, next.1 + NODE.1 / 2);
        let bend = (x2.saturating_sub(x) / 2).clamp(24, 120);
        path.push_str(&format!(
            "C{} {y} {} {y2} {x2} {y2}",
            x + bend,
            x2.saturating_sub(bend)
        ));
        (x, y) = (x2, y2);
        if number < passed.len() {
            x += NODE.0;
            path.push_str(&format!("H{x}"));
        }
    }
    path
}

/// An entry of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ColumnSlot {
    Item(usize),
    /// A point that a link passes, by the link's index.
    Pass(usize),
}

/// Returns the first item of a group, as far as it is known.
fn top(root: &HashMap<usize, usize>, mut of: usize) -> usize {
    while let Some(above) = root.get(&of).copied().filter(|above| *above != of) {
        of = above;
    }
    of
}

/// In a larger group links pass behind items.
const MOST_PASSED: usize = 80;

/// The links between items.
struct Links {
    all: Vec<Link>,
    before: HashMap<usize, Vec<usize>>,
}

#[derive(Clone, Copy)]
struct Link {
    from: usize,
    to: usize,
    is_part: bool,
}

impl Links {
    fn of(chronicle: &Chronicle) -> Links {
        let mut all = Vec::new();
        for (to, item) in chronicle.items.iter().enumerate() {
            all.extend(item.after_items.iter().map(|from| Link {
                from: *from,
                to,
                is_part: false,
            }));
            // A whole is put together after its parts have ended.
            all.extend(item.parent.map(|whole| Link {
                from: to,
                to: whole,
                is_part: true,
            }));
        }
        all.retain(|link| link.from != link.to);
        let mut before: HashMap<usize, Vec<usize>> = HashMap::new();
        for link in &all {
            before.entry(link.to).or_default().push(link.from);
        }
        Links { all, before }
    }

    /// Returns the groups of linked items, the largest first.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut root: HashMap<usize, usize> = HashMap::new();
        for link in &self.all {
            let (from, to) = (top(&root, link.from), top(&root, link.to));
            root.insert(from.max(to), from.min(to));
            root.entry(from.min(to)).or_insert(from.min(to));
        }
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut items: Vec<usize> = self
            .all
            .iter()
            .flat_map(|link| [link.from, link.to])
            .collect();
        items.sort_unstable();
        items.dedup();
        for item in items {
            groups.entry(top(&root, item)).or_default().push(item);
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        groups
    }

    /// Returns the columns of a group from left to right, each ordered by the rows of its dependencies.
    fn columns(&self, group: &[usize]) -> Vec<Vec<ColumnSlot>> {
        let depth = self.depths(group);
        let mut layers: BTreeMap<usize, Vec<ColumnSlot>> = BTreeMap::new();
        for item in group {
            layers
                .entry(depth[item])
                .or_default()
                .push(ColumnSlot::Item(*item));
        }
        let mut links_to: HashMap<usize, Vec<usize>> = HashMap::new();
        for (number, link) in self
            .all
            .iter()
            .enumerate()
            .filter(|(_, link)| depth.contains_key(&link.to))
        {
            links_to.entry(link.to).or_default().push(number);
            let between = depth[&link.from] + 1..depth[&link.to];
            for layer in between.filter(|_| group.len() <= MOST_PASSED) {
                layers
                    .entry(layer)
                    .or_default()
                    .push(ColumnSlot::Pass(number));
            }
        }
        let mut rows: HashMap<ColumnSlot, usize> = HashMap::new();
        let mut columns = Vec::new();
        for mut layer in layers.into_values() {
            let row_of = |link: &usize| {
                let from = ColumnSlot::Item(self.all[*link].from);
                rows.get(&ColumnSlot::Pass(*link))
                    .or_else(|| rows.get(&from))
                    .copied()
            };
            // The mean row of its dependencies, in sixteenths.
            let mean = |slot: &ColumnSlot| {
                let links = match slot {
                    ColumnSlot::Item(item) => {
                        links_to.get(item).map(Vec::as_slice).unwrap_or_default()
                    }
                    ColumnSlot::Pass(link) => std::slice::from_ref(link),
                };
                let before: Vec<usize> = links.iter().filter_map(row_of).collect();
                before.iter().sum::<usize>() * 16 / before.len().max(1)
            };
            layer.sort_by_cached_key(mean);
            let high = layer.len().div_ceil(layer.len().div_ceil(MOST_HIGH));
            for column in layer.chunks(high) {
                rows.extend(column.iter().enumerate().map(|(row, slot)| (*slot, row)));
                columns.push(column.to_vec());
            }
        }
        columns
    }

    /// Returns the depth of each item: the number of items in a chain to its left.
    fn depths(&self, group: &[usize]) -> HashMap<usize, usize> {
        let mut depth: HashMap<usize, usize> = group.iter().map(|item| (*item, 0)).collect();
        // A chain has at most this many items, so that a cycle ends too.
        for _ in 0..group.len() {
            let mut is_same = true;
            for item in group {
                let before = self.before.get(item).into_iter().flatten();
                let wanted = before
                    .map(|before| depth[before] + 1)
                    .max()
                    .unwrap_or_default()
                    .min(group.len());
                if wanted > depth[item] {
                    depth.insert(*item, wanted);
                    is_same = false;
                }
            }
            if is_same {
                break;
            }
        }
        depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(pairs: &[(usize, usize)]) -> Links {
        let all: Vec<Link> = pairs
            .iter()
            .map(|(from, to)| Link {
                from: *from,
                to: *to,
                is_part: false,
            })
            .collect();
        let mut before: HashMap<usize, Vec<usize>> = HashMap::new();
        for link in &all {
            before.entry(link.to).or_default().push(link.from);
        }
        Links { all, before }
    }

    #[test]
    fn what_comes_after_stands_to_the_right() {
        let links = links(&[(0, 1), (1, 2), (0, 2), (7, 8)]);
        assert_eq!(links.groups(), [vec![0, 1, 2], vec![7, 8]]);
        let pass = ColumnSlot::Pass(2);
        let columns = [
            vec![ColumnSlot::Item(0)],
            vec![ColumnSlot::Item(1), pass],
            vec![ColumnSlot::Item(2)],
        ];
        assert_eq!(links.columns(&[0, 1, 2]), columns);
        assert_eq!(
            path((0, 0), &[(250, 52)], (500, 0)),
            "M200 20C225 20 225 72 250 72H450C475 72 475 20 500 20"
        );
    }

    #[test]
    fn a_circle_has_an_end_and_many_beside_each_other_are_several_columns() {
        let circle = links(&[(0, 1), (1, 0)]);
        let items = circle.columns(&[0, 1]).concat();
        assert_eq!(
            items
                .iter()
                .filter(|slot| matches!(slot, ColumnSlot::Item(_)))
                .count(),
            2
        );
        let pairs: Vec<(usize, usize)> = (1..=40).map(|to| (0, to)).collect();
        let group: Vec<usize> = (0..=40).collect();
        let columns = links(&pairs).columns(&group);
        assert_eq!(
            columns.iter().map(Vec::len).collect::<Vec<_>>(),
            [1, 14, 14, 12]
        );
    }
}
