//! Tools that people use for this and that take long: measured if `--all` asks for them, in few rounds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::timed::timed;
use crate::tool::{Bounds, Tool, answers, shell, title};

/// Those that are there, each with `size` items in a folder of its own.
pub fn peers(make: &dyn Fn(&str) -> PathBuf, size: usize) -> Vec<Box<dyn Tool>> {
    let mut peers: Vec<Box<dyn Tool>> = vec![
        Box::new(Refs::new(make("refs"), size, &HERE)),
        Box::new(Refs::new(make("push"), size, &PUSHED)),
    ];
    if is_yq_there() {
        peers.push(Box::new(Yq::new(make("yq"), size)));
    }
    if answers("backlog") {
        peers.push(Box::new(Backlog::new(&make("backlog"), size)));
    }
    // A list of ten thousand takes it minutes.
    if answers("task-master") && size <= 1_000 {
        peers.push(Box::new(TaskMaster::new(make("task-master"), size)));
    }
    peers
}

/// Those that are not, with what brings them.
pub fn missing() -> Vec<&'static str> {
    let all = [
        ("yq (apt-get install yq)", is_yq_there()),
        (
            "backlog (npm install --global backlog.md)",
            answers("backlog"),
        ),
        (
            "task-master (npm install --global task-master-ai)",
            answers("task-master"),
        ),
    ];
    all.into_iter()
        .filter(|(_, is_there)| !is_there)
        .map(|(name, _)| name)
        .collect()
}

/// Of the two programs of that name, the one that is a wrapper of `jq`.
fn is_yq_there() -> bool {
    shell("echo 'a: 1' | yq -y .a", Path::new("/"))
        .output()
        .is_ok_and(|output| output.status.success())
}

/// What takes a tenth of a second and more.
const SLOW: Bounds = Bounds {
    rounds: 3,
    claimers: 8,
    crowd: 1_000,
};

/// Refs of a git repository, here or behind a push: to create one that is there is refused.
struct Refs {
    folder: PathBuf,
    way: &'static Way,
}

/// Lines for a shell, in which `$commit` is what all refs point to.
struct Way {
    name: &'static str,
    list: &'static str,
    add: &'static str,
    claim: &'static str,
    done: &'static str,
}

const HERE: Way = Way {
    name: "git update-ref",
    list: "git for-each-ref --format='%(refname)' refs/items refs/claims refs/done",
    add: "git update-ref refs/items/N-$$ $commit",
    claim: "git update-ref refs/claims/$id $commit 0000000000000000000000000000000000000000",
    done: r"printf 'create refs/done/%s %s\ndelete refs/claims/%s\n' $id $commit $id | git update-ref --stdin",
};

const PUSHED: Way = Way {
    name: "git push",
    list: "git ls-remote origin 'refs/items/*' 'refs/claims/*' 'refs/done/*' | cut -f2",
    add: "git push -q origin $commit:refs/items/N-$$",
    // To push what is there already is no error, so each pushes what is its own.
    claim: "own=$(git -c user.name=b -c user.email=b@localhost commit-tree -m $$ $commit^{tree}) &&
        git push -q --force-with-lease=refs/claims/$id: origin $own:refs/claims/$id",
    done: "git push -q --atomic origin $commit:refs/done/$id :refs/claims/$id",
};

impl Refs {
    fn new(folder: PathBuf, size: usize, way: &'static Way) -> Refs {
        let items: String = (0..size)
            .map(|number| format!("create refs/items/T-{number:05} COMMIT\n"))
            .collect();
        fs::write(folder.join("items"), items).expect("the folder is ours");
        let make = r#"exec 2>&1; set -e; git init -q --bare items.git; git init -q .
            git -c user.name=b -c user.email=b@localhost commit -q --allow-empty -m Begin; git rev-parse HEAD >commit
            git remote add origin ./items.git; git push -q origin HEAD:refs/heads/main
            sed -i "s/COMMIT/$(cat commit)/" items; git update-ref --stdin <items; git -C items.git update-ref --stdin <items
            git pack-refs --all; git -C items.git pack-refs --all"#;
        timed(&mut shell(make, &folder));
        Refs { folder, way }
    }

    fn command(&self, line: &str) -> Command {
        shell(&format!("commit=$(cat commit); {line}"), &self.folder)
    }
}

impl Tool for Refs {
    fn name(&self) -> &'static str {
        self.way.name
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            rounds: 10,
            claimers: 32,
            crowd: 1_000,
        }
    }

    fn add(&self, _title: &str) -> Command {
        self.command(self.way.add)
    }

    fn claim(&self) -> Command {
        let first = r#"awk -F/ '{n[$3]++; if ($2 == "items") all[++k] = $3} END {for (i = 1; i <= k; i++) if (n[all[i]] == 1) {print all[i]; exit}}'"#;
        let Way { list, claim, .. } = self.way;
        self.command(&format!(
            "while id=$({list} | {first}); [ -n \"$id\" ]; do {claim} 2>/dev/null && echo $id && break; done; true"
        ))
    }

    fn taken(&self, said: &str) -> Option<String> {
        said.split_whitespace().next().map(str::to_owned)
    }

    fn done(&self, id: &str) -> Command {
        self.command(&format!("id={id}; {}", self.way.done))
    }

    fn held(&self) -> Vec<String> {
        let (_, said) = timed(&mut self.command(self.way.list));
        said.lines()
            .filter_map(|line| line.strip_prefix("refs/claims/"))
            .map(str::to_owned)
            .collect()
    }
}

/// A YAML list behind `flock`.
struct Yq {
    folder: PathBuf,
}

impl Yq {
    fn new(folder: PathBuf, size: usize) -> Yq {
        let items: String = (0..size)
            .map(|number| {
                format!(
                    "- id: T-{number:05}\n  title: {}\n  status: pending\n",
                    title(number)
                )
            })
            .collect();
        fs::write(folder.join("items.yaml"), items).expect("the folder is ours");
        Yq { folder }
    }
}

impl Tool for Yq {
    fn name(&self) -> &'static str {
        "flock + yq, not durable"
    }

    fn bounds(&self) -> Bounds {
        SLOW
    }

    fn add(&self, title: &str) -> Command {
        let item = format!(r#". + [{{"id": "N-'$$'", "title": "{title}", "status": "pending"}}]"#);
        shell(
            &format!("flock lock yq -y -i '{item}' items.yaml"),
            &self.folder,
        )
    }

    fn claim(&self) -> Command {
        let script = r#"id=$(yq -r '[.[] | select(.status == "pending")][0].id' items.yaml)
            [ "$id" = null ] || yq -y -i '(.[] | select(.id == "'$id'")).status = "held"' items.yaml; echo $id"#;
        fs::write(self.folder.join("claim.sh"), script).expect("the folder is ours");
        shell("flock lock sh claim.sh", &self.folder)
    }

    fn taken(&self, said: &str) -> Option<String> {
        said.split_whitespace()
            .next()
            .filter(|id| *id != "null")
            .map(str::to_owned)
    }

    fn done(&self, id: &str) -> Command {
        let set = format!(r#"(.[] | select(.id == "{id}")).status = "done""#);
        shell(
            &format!("flock lock yq -y -i '{set}' items.yaml"),
            &self.folder,
        )
    }

    fn held(&self) -> Vec<String> {
        let line = r#"yq -r '.[] | select(.status == "held").id' items.yaml"#;
        timed(&mut shell(line, &self.folder))
            .1
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    }
}

/// Backlog.md: a file for each item, and no claim: the first one that is to be done is looked up, then edited.
struct Backlog {
    folder: PathBuf,
}

impl Backlog {
    fn new(folder: &Path, size: usize) -> Backlog {
        timed(&mut shell(
            "git init -q . && backlog init bench --defaults",
            folder,
        ));
        let config = folder.join("backlog/config.yml");
        let text = fs::read_to_string(&config).expect("it was made");
        let text = text.replace("remote_operations: true", "remote_operations: false");
        fs::write(
            config,
            text.replace("active_branches: true", "active_branches: false"),
        )
        .expect("the folder is ours");
        for number in 1..=size {
            let title = title(number);
            let text = format!(
                "---\nid: TASK-{number}\ntitle: {title}\nstatus: To Do\nassignee: []\ncreated_date: '2026-11-22 10:00'\n\
                 labels: []\ndependencies: []\nordinal: {number}000\n---\n"
            );
            let name = format!(
                "backlog/tasks/task-{number} - {}.md",
                title.replace(' ', "-")
            );
            fs::write(folder.join(name), text).expect("the folder is ours");
        }
        Backlog {
            folder: folder.to_owned(),
        }
    }
}

impl Tool for Backlog {
    fn name(&self) -> &'static str {
        "Backlog.md"
    }

    fn bounds(&self) -> Bounds {
        SLOW
    }

    fn add(&self, title: &str) -> Command {
        shell(
            &format!("exec backlog task create '{title}' --plain"),
            &self.folder,
        )
    }

    fn claim(&self) -> Command {
        let line = "id=$(backlog task list --status 'To Do' --plain | grep -m1 -o 'TASK-[0-9]*'); [ -n \"$id\" ] &&
            backlog task edit $id --status 'In Progress' --assignee @bench --plain >/dev/null && echo $id; true";
        shell(line, &self.folder)
    }

    fn taken(&self, said: &str) -> Option<String> {
        said.split_whitespace().next().map(str::to_owned)
    }

    fn done(&self, id: &str) -> Command {
        shell(
            &format!("exec backlog task edit {id} --status Done --plain"),
            &self.folder,
        )
    }

    fn held(&self) -> Vec<String> {
        let line = "backlog task list --status 'In Progress' --plain | grep -o 'TASK-[0-9]*'";
        timed(&mut shell(&format!("{line}; true"), &self.folder))
            .1
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    }
}

/// task-master: one JSON file, and no claim: the next item is asked for, then its status is set.
struct TaskMaster {
    folder: PathBuf,
}

const TASKS: &str = ".taskmaster/tasks/tasks.json";

impl TaskMaster {
    fn new(folder: PathBuf, size: usize) -> TaskMaster {
        fs::create_dir_all(folder.join(".taskmaster/tasks")).expect("the folder is ours");
        let items: Vec<String> = (1..=size)
            .map(|number| {
                format!(
                    r#"{{"id":{number},"title":"{}","description":"What it is about","status":"pending","dependencies":[],"priority":"medium","details":"","testStrategy":"","subtasks":[]}}"#,
                    title(number)
                )
            })
            .collect();
        let list = format!(
            r#"{{"master":{{"tasks":[{}],"metadata":{{}}}}}}"#,
            items.join(",\n")
        );
        fs::write(folder.join(TASKS), list).expect("the folder is ours");
        TaskMaster { folder }
    }
}

impl Tool for TaskMaster {
    fn name(&self) -> &'static str {
        "task-master"
    }

    fn bounds(&self) -> Bounds {
        Bounds { rounds: 1, ..SLOW }
    }

    fn add(&self, title: &str) -> Command {
        shell(
            &format!("exec task-master add-task --title='{title}' --description=more"),
            &self.folder,
        )
    }

    fn claim(&self) -> Command {
        let line = r#"id=$(task-master next --format json | sed -n 's/^    "id": "\([0-9]*\)".*/\1/p' | head -n 1)
            [ -n "$id" ] && task-master set-status --id=$id --status=in-progress >/dev/null && echo $id; true"#;
        shell(line, &self.folder)
    }

    fn taken(&self, said: &str) -> Option<String> {
        said.split_whitespace().next().map(str::to_owned)
    }

    fn done(&self, id: &str) -> Command {
        shell(
            &format!("exec task-master set-status --id={id} --status=done"),
            &self.folder,
        )
    }

    fn held(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join(TASKS)).expect("it was made");
        let list: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let items = list["master"]["tasks"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let held = items.iter().filter(|item| item["status"] == "in-progress");
        held.filter_map(|item| Some(item["id"].as_str()?.to_owned()))
            .collect()
    }
}
