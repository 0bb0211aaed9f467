//! What agents do to git, by chance: what is merged is what they wrote, nothing that they made is lost, and what is
//! the owner's stays as it was. The judge is plain git, which does the same deeds in a copy of the repository.
//!
//! `TAVERN_TEST_SEED` is the first case, `TAVERN_TEST_ROUNDS` how many there are, `TAVERN_TEST_OFF` names what they do
//! without, and `TAVERN_TEST_ON` all deeds that they are made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::dice::{Dice, number, share, slice};
use crate::support::{AT_ONCE, CONFIG, QUEUE, Ran, Scratch, wait_until};

mod tables;

use self::tables::{
    BREAKS_SET_UP, COPIES, DATES, DEEDS, DROPPED, KEPT, OWNERS, PARTS, REFUSED, Reach, SET_UP,
    UNHIDE, UPDATE,
};

/// The files of a folder, a tree or an index.
type Files = BTreeMap<String, Vec<u8>>;

/// An item, and what its agent does.
struct Item {
    id: String,
    names: Vec<&'static str>,
    script: String,
}

/// What is the owner's, by plain git: references, stashes, what is staged, and files.
struct Owned {
    refs: Files,
    stash: Vec<String>,
    staged: String,
    files: Files,
}

/// What came of an item where plain git did its deeds.
struct Replay {
    code: Option<i32>,
    has_commits: bool,
    /// What may be merged at each path.
    ways: BTreeMap<String, Vec<Option<Vec<u8>>>>,
    begun: Files,
    /// Lines that the copies and the set-up brought, and no commit had.
    brought: BTreeSet<String>,
    /// A file that they made was changed.
    is_mixed: bool,
}

/// One case.
struct World {
    scratch: Scratch,
    dice: Dice,
    off: BTreeSet<String>,
    on: BTreeSet<String>,
    told: String,
    parts: BTreeSet<&'static str>,
    copies: Vec<&'static str>,
    setup: String,
    agents: u64,
    next: u64,
    wrong: Vec<String>,
}

impl World {
    fn begin(seed: u64) -> World {
        let names = |variable| {
            let names = std::env::var(variable).unwrap_or_default();
            names.split_whitespace().map(str::to_owned).collect()
        };
        let mut world = World {
            scratch: Scratch::empty(),
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            off: names("TAVERN_TEST_OFF"),
            on: names("TAVERN_TEST_ON"),
            told: format!("seed {seed}\n"),
            parts: BTreeSet::new(),
            copies: Vec::new(),
            setup: String::new(),
            agents: 1,
            next: 0,
            wrong: Vec::new(),
        };
        for _ in 0..8 {
            world.dice.below(2);
        }
        let work = world.scratch.work();
        world.ran(&work, "git init -q --initial-branch=main; mkdir src; echo a >src/a.rs; echo b >src/b.rs; seq 5 >list.txt; echo lock >pkg.lock; printf 'a\\r\\nb\\r\\n' >crlf.txt; printf '#!/bin/sh\\n' >run.sh; chmod +x run.sh; ln -s list.txt link; echo 'a secret' >text.flt");
        world.some_parts(false);
        world.ran(&work, "git add -A; git commit -qm Begin; echo last >last.txt; git add last.txt; git commit -qm Last");
        world.some_parts(true);
        let scratch = &world.scratch;
        scratch
            .run("tavern-init", &["--quiet", "--runner", "shell"])
            .succeeds();
        for name in COPIES {
            if work.join(name).symlink_metadata().is_ok() && world.is_chosen(name, 2) {
                world.copies.push(name);
            }
        }
        let steps = SET_UP.iter().filter(|(name, _)| world.is_chosen(name, 4));
        world.setup = steps.map(|(_, line)| *line).collect::<Vec<_>>().join("; ");
        world.agents += u64::from(world.is_chosen("two_agents", 4));
        let worktree = serde_json::json!({"copy": world.copies, "setup": world.setup});
        let limits = "base: main\nmax_attempts: 1\nmax_returns: 2\n";
        world
            .scratch
            .write(CONFIG, format!("{limits}{AT_ONCE}worktree: {worktree}\n"));
        let _ = writeln!(world.told, "worktree {worktree}, {} agents", world.agents);
        world
    }

    /// One time in so many, unless it is switched off.
    fn is_chosen(&mut self, name: &str, one_in: u64) -> bool {
        self.dice.below(one_in) == 0 && !self.off.contains(name)
    }

    fn some_parts(&mut self, are_owned: bool) {
        let work = self.scratch.work();
        for (name, is_owned, line) in PARTS {
            let is_second = *name == "modules_link" && self.parts.contains("modules");
            if *is_owned == are_owned && self.is_chosen(name, 2) && !is_second {
                self.ran(&work, line);
                self.parts.insert(name);
                let _ = writeln!(self.told, "part {name}: {line}");
            }
        }
    }

    fn sh(&self, folder: &Path, script: &str) -> Ran {
        let sh = self.scratch.command(Path::new("sh")).within(folder);
        sh.args(&["-eu", "-c", script]).run()
    }

    /// What a script prints, without the last newline; it must succeed.
    fn ran(&self, folder: &Path, script: &str) -> String {
        let ran = self.sh(folder, script);
        assert_eq!(ran.code, Some(0), "{}{script}\n{ran}", self.told);
        ran.stdout.trim_end().to_owned()
    }

    /// What does not hold is told at the end, with all else that does not.
    fn check(&mut self, holds: bool, kind: &str, what: impl std::fmt::Display) {
        if !holds {
            self.wrong.push(format!("{kind}: {what}"));
        }
    }

    fn pick(&mut self, many: usize) -> usize {
        usize::try_from(self.dice.below(many as u64)).expect("it is small")
    }

    fn items(&mut self, round: u64) -> Vec<Item> {
        let deeds = DEEDS.iter().filter(|(name, reach, _)| {
            let is_on = self.on.is_empty() || self.on.contains(*name);
            // What is merged of a submodule and pushed nowhere keeps the next worktree from having it.
            let is_on =
                is_on && !(self.setup.contains("submodule") && BREAKS_SET_UP.contains(name));
            let can = match reach {
                Reach::Own => true,
                Reach::Shared => self.agents == 1,
                Reach::Sub => self.parts.contains("submodule"),
            };
            is_on && can && !self.off.contains(*name)
        });
        let deeds: Vec<_> = deeds.collect();
        let mut items = Vec::new();
        for nth in 0..=self.pick(3) {
            let (id, mut names, mut script) =
                (format!("T-{round}{nth}"), Vec::new(), DATES.to_owned());
            for _ in 0..=self.pick(3) {
                let (name, _, line) = deeds[self.pick(deeds.len())];
                self.next += 1;
                names.push(*name);
                let line = line.replace("{n}", &self.next.to_string());
                let _ = write!(script, "\n{}", line.replace("{update}", UPDATE));
            }
            let _ = writeln!(self.told, "{id} {names:?}\n{script}");
            items.push(Item { id, names, script });
        }
        items
    }

    /// Works these items with Tavern, then has plain git do the same and compares.
    fn drain(&mut self, items: &[Item]) {
        let work = self.scratch.work();
        let mut text = "## Pending\n\n".to_owned();
        for Item { id, script, .. } in items {
            let script = script.replace('\n', "\n  ");
            let _ = write!(text, "- [ ] {id}: Do it\n  ```sh\n  {script}\n  ```\n");
        }
        self.scratch.change(QUEUE, "## Pending\n", &text);
        let before = self.owned(&work);
        let tip = "git rev-parse -q --verify tavern/integration || git rev-parse main";
        let mut base = self.ran(&work, tip);
        let twins: Vec<_> = (0..items.len()).map(|nth| self.twin(nth)).collect();
        let drain = self.scratch.program("tavern-drain");
        let mut drain = drain.args(&["--agents", &self.agents.to_string()]).start();
        wait_until("the drain has ended", || drain.has_ended());
        let drained = drain.end();
        let _ = writeln!(self.told, "{drained}");
        self.scratch.has_no_process();
        self.check(
            matches!(drained.code, Some(0 | 1 | 8)),
            "exit",
            format!("{:?}", drained.code),
        );
        let mut made = BTreeSet::new();
        for (nth, item) in items.iter().enumerate() {
            let twin = &twins[nth];
            base = self.look_at(item, twin, &base, &drained);
            // The later of two that failed may have begun at another commit, where it made nothing.
            if self.agents == 1 || self.scratch.item(&item.id)["status"] == "completed" {
                made.extend(self.made_in(twin));
            }
        }
        let kept = self.made_in(&work);
        for lost in made.difference(&kept) {
            self.check(false, "lost", format!("made {lost}"));
        }
        self.links_lead_somewhere();
        self.is_owners(&before);
        self.is_named_or_kept(&before, &drained);
        self.is_tidy(items);
    }

    /// A copy of the repository, in which plain git works.
    fn twin(&self, nth: usize) -> PathBuf {
        let twin = self.scratch.folder().join(format!("twin-{nth}"));
        let line = format!(
            // Nobody's agent sees the owner's stash.
            "rm -rf '{0}'; cp -a . '{0}'; rm -rf '{0}'/.git/tavern; git -C '{0}' stash clear",
            twin.display()
        );
        self.ran(&self.scratch.work(), &line);
        twin
    }

    /// Compares what was merged of an item with what plain git makes of it. Gives the tip that the next one begins at.
    fn look_at(&mut self, item: &Item, twin: &Path, base: &str, drained: &Ran) -> String {
        let (work, id) = (self.scratch.work(), &item.id);
        let status = self.scratch.item(id);
        let line = format!(
            "git log --first-parent --format='%H %P' --grep='^Tavern-Item: {id}$' tavern/integration 2>/dev/null || true"
        );
        let merge = self.ran(&work, &line);
        let ids: Vec<_> = merge.split_whitespace().collect();
        let base = match ids[..] {
            [_, into, _] if self.agents == 1 => into.to_owned(),
            // What it was rebased on says nothing of where it began.
            [_, ..] => {
                let runs = status["runs"].as_array().expect("it was run");
                let base = runs.last().and_then(|run| run["base"].as_str());
                base.expect("it has a worktree").to_owned()
            }
            _ => base.to_owned(),
        };
        let Some(replay) = self.replay(item, twin, &base) else {
            self.check(false, "setup", format!("{id} can't be set up any more"));
            return base;
        };
        let who = format!("{id} {:?}", item.names);
        let is_completed = status["status"] == "completed";
        if let [merge, into, of] = ids[..] {
            let merged = self.tree(&work, of);
            let paths: BTreeSet<_> = merged.keys().chain(replay.ways.keys()).collect();
            for path in paths {
                let ways = replay.ways.get(path).cloned().unwrap_or(vec![None]);
                let is = merged.get(path).cloned();
                let Some(way) = ways.first() else { continue };
                let told = format!(
                    "{who}: {path} is {} and not {}",
                    shown(is.as_ref()),
                    shown(way.as_ref())
                );
                self.check(ways.contains(&is), "merged", told);
            }
            for line in &replay.brought {
                let line = format!("git grep -lxFe '{line}' {of} || true");
                let found = self.ran(&work, &line);
                self.check(
                    found.is_empty(),
                    "brought",
                    format!("{who}: {line}: {found}"),
                );
            }
            let line =
                format!("git merge-tree --write-tree --allow-unrelated-histories {into} {of}");
            let tree = self.sh(&work, &line).stdout;
            let is_gits = self.tree(&work, merge) == self.tree(&work, tree.trim());
            self.check(is_gits, "merge", format!("{who} is not what git merges"));
            let is_related = self.sh(&work, &format!("git merge-base {into} {of}")).code == Some(0);
            self.check(is_related, "unrelated", &who);
        }
        self.check(
            ids.is_empty() != is_completed,
            "unmerged",
            format!("{who} is {status}"),
        );
        // Where set-up and agent wrote to one file, what is the agent's is not judged.
        let is_unclear = replay.ways.values().any(Vec::is_empty);
        let mut paths = replay.ways.iter().filter(|(_, ways)| !ways.is_empty());
        let has_changed =
            paths.any(|(path, ways)| !ways.contains(&replay.begun.get(path).cloned()));
        let is_work = has_changed || replay.has_commits;
        self.check(
            !is_completed || is_work || is_unclear,
            "empty",
            format!("{who} is completed"),
        );
        let is_told = drained.stderr.contains(&format!("{id} blocked: "));
        let is_refused = item.names.iter().any(|name| REFUSED.contains(name));
        // Of two agents at once it is not known at which commit the later item began.
        let is_open = is_unclear || self.agents > 1;
        let may_fail = replay.is_mixed
            || replay.code != Some(0)
            || !has_changed
            || is_told
            || is_refused
            || is_open;
        let told = format!("{who} is {}: {}", status["status"], status["reason"]);
        self.check(is_completed || may_fail, "refused", told);
        self.check(!is_completed || replay.code == Some(0), "passed", &who);
        self.check(!is_completed || !replay.is_mixed, "mixed", &who);
        ids.first().map_or(base, |id| (*id).to_owned())
    }

    /// Does an item's deeds in the twin; nothing where it can't be set up.
    fn replay(&self, item: &Item, twin: &Path, base: &str) -> Option<Replay> {
        let (work, id) = (self.scratch.work(), &item.id);
        let tree = twin.join(".tavern/worktrees").join(id);
        let mut line = format!(
            "git fetch -q --no-tags --no-recurse-submodules '{}' '+refs/heads/*:refs/judge/*'; git -c core.hooksPath=/dev/null worktree add -q -b tavern/{id} .tavern/worktrees/{id} {base}",
            work.display()
        );
        for copy in &self.copies {
            let to = format!(".tavern/worktrees/{id}/{copy}");
            let _ = write!(line, "; [ -e {to} ] || cp -a {copy} {to}");
        }
        self.ran(twin, &line);
        if self.sh(&tree, &self.setup).code != Some(0) {
            return None;
        }
        let link = fs::read(tree.join(".git")).expect("it is a worktree");
        let files = self.walked(&tree, false);
        let kept = self.stored(&tree, "");
        // A clean-up may take away what git has of it.
        let brought = self.brought(&tree, &self.tree(&tree, base), &kept);
        let above = format!(
            "export GIT_CEILING_DIRECTORIES='{}/.tavern/worktrees'\n",
            twin.display()
        );
        let owners = ["config", "info/exclude"].map(|name| twin.join(".git").join(name));
        let settings = owners
            .each_ref()
            .map(|path| fs::read(path).unwrap_or_default());
        let code = self.sh(&tree, &(above + &item.script)).code;
        // What an agent sets is for itself alone.
        for (path, bytes) in owners.iter().zip(settings) {
            fs::write(path, bytes).expect("the folder is ours");
        }
        fs::write(tree.join(".git"), link).expect("the folder is ours");
        let then = self.walked(&tree, false);
        let (begun, head) = (self.tree(&tree, base), self.tree(&tree, "HEAD"));
        let staged = self.ran(
            &tree,
            "git -c core.quotePath=false ls-files -s | sed 's/ / x /; s/ 0\t/\t/'",
        );
        let staged = tree_of(&staged);
        let mut but = String::new();
        for (path, bytes) in &then {
            if bytes.starts_with(b"repository") && !staged.contains_key(path) {
                let _ = write!(but, " ':(exclude,top){path}'");
            }
        }
        let stored = self.stored(&tree, &but);
        // When git normalises what nobody has written is up to its timing.
        let is_open = |name: &&str| name.contains("line_ends") || *name == "attributes";
        let is_open = item.names.iter().any(is_open);
        let (mut ways, mut is_mixed) = (BTreeMap::new(), false);
        let has_brought = |path: &String| {
            let text = fs::read_to_string(tree.join(path)).unwrap_or_default();
            text.lines().any(|line| brought.contains(line))
        };
        for path in [&files, &then, &begun, &head, &staged]
            .into_iter()
            .flat_map(BTreeMap::keys)
        {
            let of = |trees: &[&Files]| trees.iter().map(|tree| tree.get(path).cloned()).collect();
            let was_there = kept.get(path) != begun.get(path);
            let is_stored = kept.get(path) == stored.get(path);
            let is_same = is_stored || !was_there && files.get(path) == then.get(path);
            // What git ignored at first, and does not any more, is the agent's.
            let was_ignored = files.contains_key(path) && !kept.contains_key(path);
            let is_elsewhere =
                !files.contains_key(path) && !begun.contains_key(path) && has_brought(path);
            if was_ignored && stored.contains_key(path) || is_elsewhere {
                ways.insert(path.clone(), Vec::new());
                continue;
            }
            let is_changed = was_there && !is_same && stored.contains_key(path);
            is_mixed |= is_changed && !begun.contains_key(path);
            let mut allowed: Vec<_> = if is_same && was_there {
                of(&[&begun])
            } else if was_there && kept.contains_key(path) && begun.contains_key(path) {
                // Places in it are the set-up's, and others its agent's.
                Vec::new()
            } else if is_same {
                of(&[&begun, &head, &staged])
            } else {
                of(&[&stored])
            };
            let is_judged = !allowed.is_empty();
            if is_open && is_judged && then.get(path).is_some_and(|bytes| bytes.contains(&b'\r')) {
                let id = self.ran(&tree, &format!("git hash-object '{path}'"));
                allowed.push(Some(format!("100644 {id}").into_bytes()));
            }
            ways.insert(path.clone(), allowed);
        }
        let has_commits = self.ran(&tree, "git rev-parse HEAD") != base;
        self.ran(&tree, "git clean -qfdX");
        Some(Replay {
            code,
            has_commits,
            ways,
            begun,
            brought,
            is_mixed,
        })
    }

    /// The lines of what was there before the agent that are in no commit, as git stores them.
    fn brought(&self, tree: &Path, begun: &Files, kept: &Files) -> BTreeSet<String> {
        let lines = |files: &Files| -> BTreeSet<String> {
            let mut found = BTreeSet::new();
            for entry in files.values() {
                let entry = String::from_utf8_lossy(entry);
                if let Some((mode, id)) = entry.split_once(' ')
                    && mode.starts_with("100")
                {
                    let text = self.ran(tree, &format!("git cat-file blob {id}"));
                    found.extend(text.lines().map(|line| line.trim_end().to_owned()));
                }
            }
            found
        };
        let (before, mut changed) = (lines(begun), kept.clone());
        changed.retain(|path, entry| begun.get(path) != Some(entry));
        lines(&changed)
            .difference(&before)
            .filter(|line| !line.is_empty() && !line.contains("hidden"))
            .cloned()
            .collect()
    }

    /// What `git add` would store of a worktree, but for `but`.
    fn stored(&self, tree: &Path, but: &str) -> Files {
        let line = format!(
            "cp -p \"$(git rev-parse --git-path index)\" \"$HOME/index\"; export GIT_INDEX_FILE=\"$HOME/index\"; {UNHIDE}; git add -A --sparse -- .{but} 2>/dev/null; git write-tree"
        );
        self.tree(tree, &self.ran(tree, &line))
    }

    /// The numbers of what was made and is there yet: in files, by references, in stashes, in submodules.
    fn made_in(&self, repository: &Path) -> BTreeSet<String> {
        let out = self.scratch.folder().join("home/out");
        let mut text = Vec::new();
        let sub = [
            repository.join(".git/modules/sub"),
            out.with_file_name("sub"),
        ];
        let places = std::iter::once(repository.to_owned()).chain(sub);
        for place in places.chain([self.bundled()]) {
            if place.exists() {
                self.ran(&place, &format!("{{ {KEPT}; }} >'{}'", out.display()));
                text.extend(fs::read(&out).expect("it was written"));
            }
        }
        for (path, bytes) in self.walked(&repository.join(".tavern"), true) {
            if path.starts_with("worktrees/") || path.contains("/files/") {
                text.extend([bytes, b"\n".to_vec()].concat());
            }
        }
        let text = String::from_utf8_lossy(&text);
        let made = text
            .lines()
            .filter_map(|line| Some(line.split_once("made ")?.1.trim()));
        let made = made.filter(|made| made.starts_with(|first: char| first.is_ascii_digit()));
        made.map(str::to_owned).collect()
    }

    /// A repository of all that was kept as bundles, and of what these rest on.
    fn bundled(&self) -> PathBuf {
        let kept = self.scratch.folder().join("home/kept");
        let line = format!(
            "git init -q --bare '{0}'; git -C '{0}' fetch -q \"$PWD\" '+refs/*:refs/work/*'; [ ! -e \"$HOME/sub\" ] || git -C '{0}' fetch -q \"$HOME/sub\" '+refs/*:refs/sub/*'; \
             for one in .tavern/runs/*/submodules/*.bundle; do [ ! -e \"$one\" ] || \
             git bundle list-heads \"$one\" | while read id name; do git -C '{0}' fetch -q \"$PWD/$one\" \"$name:refs/kept/$id\"; done; done",
            kept.display()
        );
        self.ran(&self.scratch.work(), &line);
        kept
    }

    /// Each commit of a submodule that is merged is in a repository that its owner has when the worktrees are gone.
    fn links_lead_somewhere(&mut self) {
        let work = self.scratch.work();
        let line = "git rev-list tavern/integration 2>/dev/null | while read one; do git ls-tree -r $one; done | grep '^160000' | sort -u || true";
        for link in self.ran(&work, line).lines() {
            let (id, path) = link[14..].split_once('\t').expect("a path");
            let sub = self.scratch.folder().join("home/sub");
            let mut places = [work.join(".git/modules").join(path), work.clone(), sub].into_iter();
            let has = format!("git cat-file -e {id}");
            let is_there =
                places.any(|place| place.exists() && self.sh(&place, &has).code == Some(0));
            self.check(is_there, "dangling", link);
        }
    }

    fn owned(&self, work: &Path) -> Owned {
        let refs = self.ran(work, "git for-each-ref --format='%(refname) %(objectname)' | grep -v -e ^refs/heads/tavern/ -e ^refs/tavern/ -e ^refs/judge/ -e ^refs/stash || true");
        let refs = refs.lines().filter_map(|line| line.split_once(' '));
        let mut files = self.walked(work, true);
        files.retain(|path, _| !path.starts_with(".tavern/"));
        for (name, bytes) in self.walked(&work.join(".git/hooks"), true) {
            files.insert(format!(".git/hooks/{name}"), bytes);
        }
        for name in [".git/config", ".git/info/exclude", ".git/HEAD"] {
            files.insert(name.into(), fs::read(work.join(name)).unwrap_or_default());
        }
        let stash = self.ran(work, "git stash list --format=%H");
        Owned {
            refs: refs.map(|(name, id)| (name.into(), id.into())).collect(),
            stash: stash.lines().map(str::to_owned).collect(),
            staged: self.ran(work, "git ls-files -s"),
            files,
        }
    }

    /// What is the owner's is as it was.
    fn is_owners(&mut self, before: &Owned) {
        let work = self.scratch.work();
        let after = self.owned(&work);
        let told = format!("{:?} was {:?}", after.stash, before.stash);
        self.check(after.stash == before.stash, "stash", told);
        self.check(before.staged == after.staged, "staged", &after.staged);
        for (kind, before, after) in [
            ("file", &before.files, &after.files),
            ("reference", &before.refs, &after.refs),
        ] {
            let names: BTreeSet<_> = after.keys().chain(before.keys()).collect();
            for name in names {
                self.check(after.get(name) == before.get(name), kind, name);
            }
        }
        let fsck = self.sh(&work, "git fsck --no-dangling --no-progress 2>&1");
        self.check(fsck.code == Some(0), "fsck", fsck.stdout);
    }

    /// What the owner had is reachable yet, or it is said that it is not. What the owner dropped does not come back, or
    /// it is said that it does.
    fn is_named_or_kept(&mut self, before: &Owned, drained: &Ran) {
        let (work, drained) = (self.scratch.work(), drained.to_string());
        let refs = before.refs.iter();
        let refs = refs.map(|(name, id)| (name.as_str(), String::from_utf8_lossy(id)));
        let stash = before.stash.iter().map(|id| ("stash", id.into()));
        let there = self.ran(
            &work,
            "git rev-list --objects --all $(git stash list --format=%H)",
        );
        for (name, id) in refs.chain(stash) {
            let is_named = name
                .rsplit('/')
                .next()
                .is_some_and(|short| drained.contains(short));
            let is_there = there.lines().any(|line| line.starts_with(&*id));
            self.check(
                is_there || is_named,
                "owner_lost",
                format!("{name} at {id}"),
            );
        }
        for one in self.ran(&work, DROPPED).lines() {
            let told = format!("{one} is on tavern/integration, and not on main");
            self.check(drained.contains(&one[..7]), "dropped", told);
        }
    }

    /// Nothing is left of the work but what is to be kept.
    fn is_tidy(&mut self, items: &[Item]) {
        let work = self.scratch.work();
        for Item { id, names, .. } in items {
            let has_inside = names.iter().any(|name| name.starts_with("worktree_inside"));
            let is_left = work.join(".tavern/worktrees").join(id).exists();
            let is_kept = has_inside || self.scratch.item(id)["status"] != "completed";
            self.check(
                !is_left || is_kept,
                "left",
                format!("the worktree of {id} {names:?}"),
            );
        }
        let left = "find .git -name '*.lock' -not -path '.git/tavern/*'; find ../tmp -mindepth 1";
        let left = self.ran(&work, left);
        self.check(left.is_empty(), "left", left);
        let places = self.ran(
            &work,
            "git worktree list --porcelain | sed -n 's/^worktree //p'",
        );
        for place in places.lines() {
            self.check(
                Path::new(place).exists(),
                "left",
                format!("an entry of {place}"),
            );
        }
    }

    /// The files of a commit or a tree, but for the board's.
    fn tree(&self, folder: &Path, what: &str) -> Files {
        let line = format!("git -c core.quotePath=false ls-tree -r --full-tree {what}");
        let mut files = tree_of(&self.ran(folder, &line));
        files.retain(|path, _| !path.starts_with(".tavern/"));
        files
    }

    /// The files under a folder, with what git sees of their modes. Repositories inside stand for themselves, unless
    /// `is_all`.
    fn walked(&self, folder: &Path, is_all: bool) -> Files {
        let mut files = Files::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(one) = folders.pop() {
            for entry in fs::read_dir(&one).into_iter().flatten().flatten() {
                let (path, kind) = (entry.path(), entry.file_type().expect("it has one"));
                let bytes = if path.ends_with(".git") {
                    continue;
                } else if kind.is_symlink() {
                    let target = fs::read_link(&path).expect("it is a link");
                    format!("link {}", target.display()).into_bytes()
                } else if kind.is_dir() && path.join(".git").exists() && !is_all {
                    let head = self.sh(&path, "git rev-parse -q --verify HEAD").stdout;
                    format!("repository {head}").into_bytes()
                } else if kind.is_dir() {
                    folders.push(path);
                    continue;
                } else if kind.is_file() {
                    let mode = entry.metadata().expect("it is there").permissions().mode();
                    let bytes = fs::read(&path).expect("it can be read");
                    [format!("{} ", mode & 0o100).into_bytes(), bytes].concat()
                } else {
                    continue;
                };
                let name = path.strip_prefix(folder).expect("it is in it");
                files.insert(name.display().to_string(), bytes);
            }
        }
        files
    }
}

fn shown(file: Option<&Vec<u8>>) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(file.map_or(b"nothing", Vec::as_slice))
}

/// What `git ls-tree` prints, by the path.
fn tree_of(text: &str) -> Files {
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    let entry = |(about, path): (&str, &str)| {
        let (mode, id) = (about.split(' ').next(), about.rsplit(' ').next());
        let bytes = [mode, id].map(Option::unwrap_or_default).join(" ");
        (path.to_owned(), bytes.into_bytes())
    };
    lines.map(entry).collect()
}

#[test]
fn what_agents_do_to_git_is_merged_or_kept_and_the_owners_stays() {
    let first = number("TAVERN_TEST_SEED", 1 + 1000 * slice().unwrap_or(0) as u64);
    let rounds = number("TAVERN_TEST_ROUNDS", share(64, 32).into());
    let mut wrong = Vec::new();
    for seed in first..first + rounds {
        let mut world = World::begin(seed);
        let items = world.items(1);
        world.drain(&items);
        let (name, line) = OWNERS[world.pick(OWNERS.len())];
        if world.is_chosen("second_drain", 2) && !world.off.contains(name) {
            let ran = world.sh(&world.scratch.work(), line);
            let _ = writeln!(world.told, "{name}: {line}\n{ran}");
            let items = world.items(2);
            world.drain(&items);
        }
        if !world.wrong.is_empty() {
            wrong.push(format!(
                "=== {}--- wrong\n{}\n",
                world.told,
                world.wrong.join("\n")
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {rounds} cases\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
