//! The tools that are measured beside one another, and those that a shell user has at hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::floor::Floor;
use crate::peer::{self, peers};
use crate::tavern::Board;
use crate::timed::timed;
use crate::tool::{Tool, answers, lanes, shell, title};

/// All of them, each with `size` items in a folder of its own; the floor first, then Tavern. The slow ones `with_peers`.
pub fn tools(folder: &Path, size: usize, with_peers: bool) -> Vec<Box<dyn Tool>> {
    let make = |name: &str| {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).expect("the folder is ours");
        folder
    };
    let mut tools: Vec<Box<dyn Tool>> = vec![
        Box::new(Floor::new(make("floor"), size)),
        Box::new(Board::new(&make("tavern"), size)),
        Box::new(Sed::new(make("sed"), size)),
    ];
    if answers("sqlite3") {
        tools.push(Box::new(Sqlite::new(
            make("sqlite"),
            size,
            "delete",
            "sqlite3",
        )));
        tools.push(Box::new(Sqlite::new(
            make("sqlite-wal"),
            size,
            "wal",
            "sqlite3, WAL",
        )));
    }
    if answers("task") {
        tools.push(Box::new(Taskwarrior::new(make("task"), size)));
    }
    if with_peers {
        tools.extend(peers(&make, size));
    }
    tools
}

/// The programs that are not there, with what brings them.
pub fn missing(with_peers: bool) -> Vec<&'static str> {
    let all = [
        ("sqlite3 (apt-get install sqlite3)", "sqlite3"),
        ("task (apt-get install taskwarrior)", "task"),
    ];
    let mut missing: Vec<&str> = all
        .into_iter()
        .filter(|(_, program)| !answers(program))
        .map(|(name, _)| name)
        .collect();
    if with_peers {
        missing.extend(peer::missing());
    }
    missing
}

/// One Markdown file, `flock`, `grep` and `sed`: not durable, and good for a list without lanes only.
struct Sed {
    folder: PathBuf,
}

impl Sed {
    fn new(folder: PathBuf, size: usize) -> Sed {
        let text: String = lanes(size)
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect();
        fs::write(folder.join("todo.md"), text).expect("the folder is ours");
        Sed { folder }
    }
}

impl Tool for Sed {
    fn name(&self) -> &'static str {
        "flock + sed, not durable"
    }

    fn add(&self, title: &str) -> Command {
        shell(
            &format!(
                "flock lock sh -c 'echo \"- [ ] T-{}: {title}\" >>todo.md'",
                std::process::id()
            ),
            &self.folder,
        )
    }

    fn claim(&self) -> Command {
        let line = r#"flock lock sh -c 'at=$(grep -n -m1 "^- \[ \]" todo.md) || exit 0; at=${at%%:*}; sed -n "${at}p" todo.md; sed -i "${at}s/\[ \]/[>]/" todo.md'"#;
        shell(line, &self.folder)
    }

    fn taken(&self, said: &str) -> Option<String> {
        said.split_whitespace()
            .find(|word| word.starts_with("T-"))
            .map(|word| word.trim_end_matches(':').to_owned())
    }

    fn done(&self, id: &str) -> Command {
        shell(
            &format!(r#"flock lock sed -i "/^- \[>\] {id}:/s/\[>\]/[x]/" todo.md"#),
            &self.folder,
        )
    }

    fn held(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("todo.md")).expect("it is there");
        text.lines()
            .filter(|line| line.starts_with("- [>]"))
            .filter_map(|line| self.taken(line))
            .collect()
    }
}

/// The `sqlite3` program on a table with an index: durable, in one journal mode or the other.
struct Sqlite {
    folder: PathBuf,
    name: &'static str,
}

impl Sqlite {
    fn new(folder: PathBuf, size: usize, journal: &str, name: &'static str) -> Sqlite {
        let mut script = format!(
            "PRAGMA journal_mode={journal};
             CREATE TABLE items (number INTEGER PRIMARY KEY, id TEXT UNIQUE, title TEXT, body TEXT, priority INTEGER, status TEXT, agent TEXT);
             CREATE INDEX next ON items (status, priority, number);
             BEGIN;\n"
        );
        for number in 0..size {
            script.push_str(&format!(
                "INSERT INTO items (id, title, body, priority, status) VALUES ('T-{number:05}', '{}', 'What it is about stands in a line beneath it.', 2, 'pending');\n",
                title(number)
            ));
        }
        script.push_str("COMMIT;\n");
        fs::write(folder.join("make.sql"), script).expect("the folder is ours");
        timed(&mut shell("sqlite3 items.db <make.sql", &folder));
        Sqlite { folder, name }
    }

    fn command(&self, sql: &str) -> Command {
        let mut command = Command::new("sqlite3");
        command
            .args(["-cmd", ".timeout 60000", "items.db", sql])
            .current_dir(&self.folder);
        command
    }
}

impl Tool for Sqlite {
    fn name(&self) -> &'static str {
        self.name
    }

    fn add(&self, title: &str) -> Command {
        self.command(&format!(
            "PRAGMA synchronous=FULL; INSERT INTO items (id, title, priority, status) VALUES (hex(randomblob(6)), '{title}', 2, 'pending') RETURNING id"
        ))
    }

    fn claim(&self) -> Command {
        self.command(
            "PRAGMA synchronous=FULL; UPDATE items SET status = 'in_progress', agent = 'bench' WHERE number =
             (SELECT number FROM items WHERE status = 'pending' ORDER BY priority, number LIMIT 1) RETURNING id",
        )
    }

    fn taken(&self, said: &str) -> Option<String> {
        said.split_whitespace().next().map(str::to_owned)
    }

    fn done(&self, id: &str) -> Command {
        self.command(&format!("PRAGMA synchronous=FULL; UPDATE items SET status = 'completed' WHERE id = '{id}' AND status = 'in_progress'"))
    }

    fn held(&self) -> Vec<String> {
        let (_, said) =
            timed(&mut self.command("SELECT id FROM items WHERE status = 'in_progress'"));
        said.split_whitespace().map(str::to_owned).collect()
    }
}

/// Taskwarrior, which has no claim: the next item is looked up, then started.
struct Taskwarrior {
    folder: PathBuf,
}

impl Taskwarrior {
    fn new(folder: PathBuf, size: usize) -> Taskwarrior {
        fs::write(
            folder.join("rc"),
            "data.location=data\nconfirmation=off\nverbose=nothing\nhooks=off\n",
        )
        .expect("the folder is ours");
        fs::create_dir(folder.join("data")).expect("the folder is ours");
        let items: Vec<String> = (0..size)
            .map(|number| {
                format!(
                    "{{\"status\":\"pending\",\"description\":\"{}\"}}",
                    title(number)
                )
            })
            .collect();
        fs::write(
            folder.join("items.json"),
            format!("[{}]", items.join(",\n")),
        )
        .expect("the folder is ours");
        timed(&mut shell("TASKRC=rc task import items.json", &folder));
        Taskwarrior { folder }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = shell(line, &self.folder);
        command
            .env("TASKRC", self.folder.join("rc"))
            .env("TASKDATA", self.folder.join("data"));
        command
    }
}

impl Tool for Taskwarrior {
    fn name(&self) -> &'static str {
        "taskwarrior"
    }

    fn add(&self, title: &str) -> Command {
        self.command(&format!("exec task add '{title}'"))
    }

    fn claim(&self) -> Command {
        self.command("id=$(task rc.verbose=nothing +PENDING -ACTIVE limit:1 _uuid | head -n 1); [ -n \"$id\" ] && task \"$id\" start >/dev/null && echo \"$id\"; true")
    }

    fn taken(&self, said: &str) -> Option<String> {
        said.split_whitespace().next().map(str::to_owned)
    }

    fn done(&self, id: &str) -> Command {
        self.command(&format!("exec task {id} done"))
    }

    fn held(&self) -> Vec<String> {
        let (_, said) = timed(&mut self.command("task +ACTIVE _uuid; true"));
        said.split_whitespace().map(str::to_owned).collect()
    }
}
