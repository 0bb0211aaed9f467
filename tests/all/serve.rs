//! `tavern-serve` asked as a browser asks it, and as one would that was led astray: over TCP, by hand.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{CONFIG, QUEUE, Ran, Running, Scratch, has, item, wait_until};

/// A page that is served.
struct Served {
    running: Running,
    address: String,
    /// It has opened the URL, and this was given for it.
    cookie: String,
    /// What it has opened.
    door: String,
}

/// What came back.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Served {
    fn start(scratch: &Scratch, arguments: &[&str]) -> Served {
        let log = scratch.folder().join("home/serve");
        let _ = fs::remove_file(&log);
        let running = scratch
            .program("tavern-serve")
            .args(arguments)
            .told_to(&log)
            .start();
        let told = || fs::read_to_string(&log).unwrap_or_default();
        wait_until("it says where it is", || told().contains("the page"));
        let url = told().lines().next().expect("a line").to_owned();
        let url = url.strip_prefix("http://").expect("it is a URL");
        let (address, door) = url.split_at(url.find('/').expect("it has a path"));
        let mut served = Served {
            running,
            address: address.to_owned(),
            cookie: String::new(),
            door: door.to_owned(),
        };
        let cookie = served.open().given().to_owned();
        served.cookie = cookie;
        served
    }

    /// The URL that it printed.
    fn open(&self) -> Answer {
        let host = format!("Host: {}", self.address);
        self.ask(&[&format!("GET {} HTTP/1.1", self.door), &host], "")
    }

    fn port(&self) -> &str {
        self.address.rsplit_once(':').expect("it has a port").1
    }

    fn cookie(&self) -> String {
        format!("Cookie: {}", self.cookie)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port().parse().expect("a number")))
            .expect("it listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("it is a socket");
        stream
    }

    /// These very lines, and a body.
    fn ask(&self, lines: &[&str], body: &str) -> Answer {
        let mut stream = self.connect();
        let length = format!("Content-Length: {}", body.len());
        let head = [lines, &["Connection: close", &length, "", ""]].concat();
        stream
            .write_all((head.join("\r\n") + body).as_bytes())
            .expect("it is read");
        let mut text = Vec::new();
        stream.read_to_end(&mut text).expect("it is answered");
        let text = String::from_utf8(text).expect("it is text");
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .expect("it has a status");
        Answer {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// As its own page asks.
    fn get(&self, path: &str) -> Answer {
        let host = format!("Host: {}", self.address);
        self.ask(
            &[
                &format!("GET {path} HTTP/1.1"),
                &host,
                &self.cookie(),
                "Sec-Fetch-Site: same-origin",
            ],
            "",
        )
    }

    fn post(&self, body: &str, more: &[&str]) -> Answer {
        let (host, cookie) = (format!("Host: {}", self.address), self.cookie());
        let first = [
            "POST /do HTTP/1.1",
            &host,
            &cookie,
            "Content-Type: application/json",
        ];
        self.ask(&[&first, more].concat(), body)
    }

    /// What its page has done, and what it came to.
    fn act(&self, deed: &str, item: &str, text: &str) -> Value {
        let body = serde_json::json!({"deed": deed, "item": item, "text": text}).to_string();
        let answer = self.post(
            &body,
            &[
                &format!("Origin: http://{}", self.address),
                "Sec-Fetch-Site: same-origin",
            ],
        );
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_str(&answer.body).expect("it is JSON")
    }

    fn events(&self, path: &str, more: &[&str]) -> Events {
        let mut stream = self.connect();
        let (first, host, cookie) = (
            format!("GET {path} HTTP/1.1"),
            format!("Host: {}", self.address),
            self.cookie(),
        );
        let head = [&[&*first, &host, &cookie], more, &["", ""]].concat();
        stream
            .write_all(head.join("\r\n").as_bytes())
            .expect("it is read");
        Events::read(stream)
    }

    fn end(self) -> Ran {
        self.running.signal(Signal::TERM);
        self.running.end().ends(143)
    }
}

impl Answer {
    /// The cookie that it sets, nothing if it sets none.
    fn given(&self) -> &str {
        let line = self
            .head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        line.and_then(|line| line.split(';').next())
            .unwrap_or_default()
    }
}

/// An event: its name, its number and its data.
type Event = (String, Option<u64>, Value);

/// A stream of events, which is read as it comes.
struct Events {
    come: Arc<Mutex<Vec<Event>>>,
    is_over: Arc<AtomicBool>,
    /// How many of each name were looked at. Parts of a page come in any order.
    seen: BTreeMap<String, usize>,
}

impl Events {
    fn read(stream: TcpStream) -> Events {
        let (come, is_over) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(AtomicBool::new(false)),
        );
        let (all, end) = (Arc::clone(&come), Arc::clone(&is_over));
        thread::spawn(move || {
            let (mut event, mut id) = (String::new(), None);
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if let Some(named) = line.strip_prefix("event: ") {
                    (event, id) = (named.to_owned(), None);
                } else if let Some(number) = line.strip_prefix("id: ") {
                    id = number.parse().ok();
                } else if let Some(data) = line.strip_prefix("data: ") {
                    let data = serde_json::from_str(data).expect("it is JSON");
                    all.lock()
                        .expect("nobody panics")
                        .push((event.clone(), id, data));
                }
            }
            end.store(true, Ordering::SeqCst);
        });
        Events {
            come,
            is_over,
            seen: BTreeMap::new(),
        }
    }

    /// The number and the data of the next event of this name that is meant.
    #[track_caller]
    fn next(&mut self, name: &str, is_meant: impl Fn(&Value) -> bool) -> (Option<u64>, Value) {
        let seen = self.seen.entry(name.to_owned()).or_default();
        let mut found = None;
        wait_until(&format!("the {name} that is meant is told"), || {
            let come = self.come.lock().expect("nobody panics");
            let own = come
                .iter()
                .filter(|(own, ..)| own == name)
                .enumerate()
                .skip(*seen);
            for (at, (_, id, data)) in own {
                *seen = at + 1;
                if is_meant(data) {
                    found = Some((*id, data.clone()));
                    return true;
                }
            }
            false
        });
        found.expect("it was waited for")
    }

    #[track_caller]
    fn ends(&self) {
        wait_until("the stream ends", || self.is_over.load(Ordering::SeqCst));
    }
}

fn says(text: &str) -> impl Fn(&Value) -> bool {
    move |data: &Value| data.to_string().contains(text)
}

#[test]
fn nobody_comes_in_but_the_page_with_the_cookie() {
    let scratch = Scratch::board(&item("T-1", ""));
    let served = Served::start(&scratch, &[]);
    let (host, cookie) = (format!("Host: {}", served.address), served.cookie());
    let page = served.get("/");
    assert_eq!(page.status, 200);
    has(
        &page.head,
        &[
            "default-src 'none'; script-src 'self'",
            "frame-ancestors 'none'",
            "nosniff",
            "no-referrer",
            "no-store",
        ],
    );
    assert!(
        !page.body.contains("<script>") && !page.body.contains("T-1"),
        "{}",
        page.body
    );

    let denied: [(&[&str], &str); 10] = [
        (
            &["GET / HTTP/1.1", &host],
            "open the URL that `tavern serve` printed",
        ),
        (
            &["GET /?token=0 HTTP/1.1", &host],
            "this browser has no access",
        ),
        (
            &["GET /events HTTP/1.1", &host],
            "this browser has no access",
        ),
        (
            &["GET /page.js HTTP/1.1", &host],
            "this browser has no access",
        ),
        (&["GET / HTTP/1.1", &cookie], "wrong Host header"),
        // A name that leads here by now.
        (
            &["GET / HTTP/1.1", "Host: evil.example", &cookie],
            "wrong Host header",
        ),
        (
            &[
                "GET /item?of=T-1 HTTP/1.1",
                &format!("Host: evil.example:{}", served.port()),
                &cookie,
            ],
            "wrong Host header",
        ),
        // Pages of others.
        (
            &[
                "GET /item?of=T-1 HTTP/1.1",
                &host,
                &cookie,
                "Origin: http://evil.example",
            ],
            "another site",
        ),
        (
            &[
                "GET /events HTTP/1.1",
                &host,
                &cookie,
                "Sec-Fetch-Site: cross-site",
            ],
            "another site",
        ),
        (
            &[
                "GET /events HTTP/1.1",
                &host,
                &cookie,
                "Sec-Fetch-Site: same-site",
            ],
            "another site",
        ),
    ];
    for (lines, why) in denied {
        let answer = served.ask(lines, "");
        assert_eq!(answer.status, 403, "{lines:?}: {answer:?}");
        has(&answer.body, &[why]);
        has(
            &answer.head,
            &["content-security-policy: ", "content-type: text/plain"],
        );
    }
    // Nothing is a file, and nothing is sent but what it is.
    for path in ["/../Cargo.toml", "/.tavern/config.yaml", "/item/", "/do"] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
    assert_eq!(
        served
            .ask(
                &[
                    "PUT / HTTP/1.1",
                    &host,
                    &cookie,
                    &format!("Origin: http://{}", served.address)
                ],
                ""
            )
            .status,
        405
    );
    for name in ["../../config", "T-1@../../x", "T-1@1/../..", "%2e%2e"] {
        served
            .events(&format!("/stream?of={name}"), &[])
            .next("gone", |_| true);
    }
    drop(served.end());
}

#[test]
fn a_url_that_stays_in_a_history_opens_once_and_its_token_is_no_cookie() {
    let scratch = Scratch::board("- [ ] T-1: One (approve: start)\n");
    let log = scratch.folder().join("home/serve");
    let served = Served::start(&scratch, &["--write"]);
    let again = served.open();
    assert_eq!((again.status, again.given()), (403, ""));
    has(
        &again.body,
        &["was opened already", "type: tavern serve", "Ctrl-C"],
    );
    // What a history has is no cookie, and opens nothing else.
    let token = served.door.strip_prefix("/?token=").expect("it has one");
    assert!(!served.cookie.contains(token), "{}", served.cookie);
    let (host, own) = (
        format!("Host: {}", served.address),
        format!("Origin: http://{}", served.address),
    );
    let stolen = format!("Cookie: tavern-{}={token}", served.port());
    for path in ["/", "/events", "/item?of=T-1"] {
        let first = format!("GET {path} HTTP/1.1");
        assert_eq!(served.ask(&[&first, &host, &stolen], "").status, 403);
    }
    let act = [
        "POST /do HTTP/1.1",
        &host,
        &stolen,
        &own,
        "Content-Type: application/json",
    ];
    let errand = r#"{"deed":"approve","item":"T-1"}"#;
    assert_eq!(served.ask(&act, errand).status, 403);
    assert_eq!(scratch.item("T-1")["allowed"], false, "nothing was done");
    // The browser that has opened it goes on by the same URL, and loses the token again.
    let door = served.get(&served.door);
    assert_eq!(door.status, 303);
    has(
        &door.head,
        &["location: /\r\n", "HttpOnly; SameSite=Strict"],
    );
    assert!(
        !door.head.contains("Max-Age") && !door.head.contains("Expires"),
        "it goes with the browser: {}",
        door.head
    );
    assert_eq!(served.get("/").status, 200);
    // Another browser has another one, and of what was before nothing opens there.
    let (before, port) = (served.cookie.clone(), served.port().to_owned());
    drop(served.end());
    fs::remove_file(&log).expect("it was told to");
    let other = Served::start(&scratch, &["--port", &port]);
    let first = format!("Cookie: {before}");
    let host = format!("Host: {}", other.address);
    assert_eq!(
        other.ask(&["GET / HTTP/1.1", &host, &first], "").status,
        403
    );
    drop(other.end());
}

#[test]
fn what_is_served_beyond_this_machine_is_asked_for_and_told() {
    let scratch = Scratch::board(&item("T-1", ""));
    let run = |arguments: &[&str]| scratch.run("tavern-serve", arguments);
    for address in ["0.0.0.0", "192.0.2.1:8123", "::"] {
        run(&[address])
            .ends(2)
            .says("is an address")
            .says("--listen ADDRESS")
            .says("nothing is encrypted");
    }
    run(&["--port", "0.0.0.0:80"])
        .ends(2)
        .says("--listen ADDRESS");
    run(&["--port", "65536"]).ends(2);
    run(&["--listen", "192.0.2.1"])
        .ends(1)
        .says("name an address that this machine has");
    run(&["nope"]).ends(2).says("nope");
    let served = Served::start(&scratch, &["--listen", "0.0.0.0", "--write"]);
    let told = fs::read_to_string(scratch.folder().join("home/serve")).expect("it is told");
    has(
        &told,
        &[
            "everyone with access to any address of this machine",
            "in your name",
            "nothing is encrypted",
        ],
    );
    // There, too, only by its address.
    assert_eq!(served.get("/").status, 200);
    let astray = served.ask(
        &[
            "GET / HTTP/1.1",
            &format!("Host: 0.0.0.0:{}", served.port()),
            &served.cookie(),
        ],
        "",
    );
    assert_eq!(astray.status, 403);
    run(&["--port", served.port()])
        .ends(1)
        .says("another program has this port");
    drop(served.end());
}

#[test]
fn a_page_only_shows_unless_it_was_asked_for() {
    let scratch = Scratch::board("- [ ] T-1: One (approve: start)\n");
    let served = Served::start(&scratch, &[]);
    let own = format!("Origin: http://{}", served.address);
    let errand = r#"{"deed":"approve","item":"T-1"}"#;
    let answer = served.post(errand, &[&own]);
    assert_eq!(answer.status, 403);
    has(&answer.body, &["tavern serve --write"]);
    drop(served.end());
    let served = Served::start(&scratch, &["--write"]);
    let own = format!("Origin: http://{}", served.address);
    let long = format!(
        "{{\"deed\":\"tell\",\"item\":\"T-1\",\"text\":\"{}\"}}",
        "x".repeat(20_000)
    );
    let refused: [(&str, &[&str], u16); 6] = [
        (errand, &[], 403),
        (errand, &["Origin: http://evil.example"], 403),
        (errand, &["Origin: null"], 403),
        (errand, &[&own, "Sec-Fetch-Site: cross-site"], 403),
        (r#"{"deed":"edit","item":"T-1"}"#, &[&own], 400),
        (&long, &[&own], 413),
    ];
    for (body, more, status) in refused {
        assert_eq!(served.post(body, more).status, status, "{more:?}");
    }
    // As a form is sent, which needs no leave.
    let (host, cookie) = (format!("Host: {}", served.address), served.cookie());
    let form = [
        "POST /do HTTP/1.1",
        &host,
        &cookie,
        &own,
        "Content-Type: text/plain",
    ];
    assert_eq!(served.ask(&form, errand).status, 415);
    let without = [
        "POST /do HTTP/1.1",
        &host,
        &own,
        "Content-Type: application/json",
    ];
    assert_eq!(served.ask(&without, errand).status, 403);
    assert_eq!(scratch.item("T-1")["allowed"], false, "nothing was done");
    assert_eq!(served.act("approve", "T-1", "")["done"], true);
    drop(served.end());
}

#[test]
fn a_question_is_answered_and_work_is_approved_and_merged() {
    let scratch = Scratch::pending(
        "- [ ] T-1: Ask\n  ```sh\n  tavern report --waiting 'which, one?'\n  ```\n- [ ] T-2: Write (review: person)\n  ```sh\n  \
         echo new > new.txt\n  ```\n",
    );
    for _ in 0..2 {
        scratch.run("tavern-agent", &["--once", "--name", "Frodo"]);
    }
    let served = Served::start(&scratch, &["--write"]);
    let mut events = served.events("/events", &[]);
    events.next("hello", |hello| hello["acts"] == true);
    events.next("needs", says("which, one?"));
    let (number, _) = events.next("log", says("Frodo finished T-2"));
    // No shell reads what is said.
    let told = served.act("tell", "T-1", "the $(touch x) `second`; --one\nof two");
    assert_eq!(told["done"], true, "{told}");
    has(
        told["command"].as_str().expect("it is said"),
        &["tavern tell T-1 -- the $(touch x) `second`; --one of two"],
    );
    assert_eq!(
        scratch.item("T-1")["reason"],
        "the $(touch x) `second`; --one of two"
    );
    events.next("needs", |needs| !says("which, one?")(needs));
    // A refusal says what to type.
    let told = served.act("merge", "T-2", "");
    assert_eq!(told["done"], false, "{told}");
    let told = served.act("reject", "T-1", "no");
    assert_eq!(told["done"], false, "{told}");
    has(told["said"].as_str().expect("it is said"), &["T-1"]);
    assert_eq!(
        served.act("tell", "T-1", " ")["said"],
        "type a message first"
    );
    let work = served.get("/work?of=T-2");
    has(&work.body, &["+++ b/new.txt", "+new", "tavern diff T-2"]);
    has(
        &served.get("/item?of=T-2").body,
        &["in review", "tavern status T-2"],
    );
    assert_eq!(served.act("approve", "T-2", "")["done"], true);
    events.next("items", says(r#""status":"approved""#));
    let told = served.act("merge", "T-2", "");
    assert_eq!(told["done"], true, "{told}");
    events.next("items", says(r#""status":"completed""#));
    scratch.stands("T-2", "completed", 1);
    has(&scratch.merged(), &["new.txt"]);
    // Who comes again is told what happened meanwhile, and nothing twice.
    let number = number.expect("events of the log have numbers");
    let mut again = served.events("/events", &[&format!("Last-Event-ID: {number}")]);
    let (next, _) = again.next("log", |_| true);
    assert_eq!(next, Some(number + 1));
    again.next("log", says("T-2 was merged"));
    drop(served.end());
}

#[test]
fn a_change_and_what_a_run_prints_are_told_as_they_come_until_the_end() {
    let script = "echo first; until [ -e ~/go ]; do sleep 0.1; done; echo last; echo 1 >one.txt";
    let scratch = Scratch::pending(&format!("- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n"));
    let served = Served::start(&scratch, &[]);
    let mut events = served.events("/events", &[]);
    events.next("items", says("One"));
    let agent = scratch
        .program("tavern-agent")
        .args(&["--once", "--name", "Frodo"])
        .start();
    events.next("agents", says("Frodo"));
    events.next("items", says("in_progress"));
    let mut stream = served.events("/stream?of=T-1", &[]);
    let run = stream.next("run", |_| true).1["run"]
        .as_str()
        .expect("a name")
        .to_owned();
    stream.next("lines", says("first"));
    fs::write(scratch.folder().join("home/go"), "").expect("it is ours");
    stream.next("lines", says("last"));
    events.next("items", says("completed"));
    drop(agent.end());
    events.next("runs", says(r#""outcome":"success""#));
    scratch.write(
        ".tavern/queues/other.md",
        "---\nid: other\n---\n- [ ] O-1: Of another queue\n",
    );
    events.next("items", says("Of another queue"));
    // From where it was read last.
    let log = scratch.read(format!(".tavern/runs/{run}/output.log"));
    let place = log.find("last").expect("it is there");
    let mut rest = served.events(
        &format!("/stream?of={run}"),
        &[&format!("Last-Event-ID: {run}/0-{place}-0")],
    );
    let (_, lines) = rest.next("lines", |_| true);
    assert_eq!(lines, serde_json::json!([["last", ""]]));
    // With all of these open it ends at once.
    served.end().says_not("did not end");
    events.ends();
    stream.ends();
}

#[test]
fn what_is_wrong_with_a_board_is_told_and_an_empty_one_is_shown() {
    let scratch = Scratch::board("");
    let served = Served::start(&scratch, &[]);
    let mut events = served.events("/events", &[]);
    events.next("items", |items| {
        items["items"].as_array().is_some_and(Vec::is_empty)
    });
    events.next("fault", Value::is_null);
    let problems = |told: &'static str| {
        move |head: &Value| {
            head["problems"]
                .as_array()
                .is_some_and(|all| all.iter().any(says(told)) != told.is_empty())
        }
    };
    let config = scratch.read(CONFIG);
    let begun = Instant::now();
    scratch.write(CONFIG, "roles: [\n");
    events.next("head", problems("config.yaml"));
    // It is watched: what is not is looked at once a minute.
    assert!(
        begun.elapsed() < Duration::from_secs(50),
        "{:?}",
        begun.elapsed()
    );
    scratch.write(CONFIG, config);
    events.next("head", problems(""));
    scratch.write(QUEUE, b"- [ ] T-1: \xff\n");
    events.next("head", problems("main"));
    scratch.write(QUEUE, "- [ ] T-1: Well again\n");
    events.next("items", says("Well again"));
    // The only queue is away for a moment, as git and some editors have it.
    let (queue, aside) = (scratch.work().join(QUEUE), scratch.work().join("aside"));
    fs::rename(&queue, &aside).expect("it is there");
    events.next("items", |items| items["items"] == serde_json::json!([]));
    fs::rename(&aside, &queue).expect("it is there");
    events.next("items", says("Well again"));
    scratch.write(QUEUE, "- [ ] T-1: Well again\n- [ ] NEW\n");
    events.next("items", says("NEW"));
    drop(served.end());
}

#[test]
fn a_board_that_is_removed_stays_so_and_no_other_list_is_shown() {
    let scratch = Scratch::board("- [ ] T-1: One\n- [ ] two\n");
    let served = Served::start(&scratch, &[]);
    let mut events = served.events("/events", &[]);
    events.next("items", says("One"));
    has(&served.get("/item?of=main:2").body, &["two"]);
    let other = scratch.write("../home/secret.md", "- [ ] Nobody's business\n");
    for path in ["../home/secret.md", &other.display().to_string()] {
        let answer = served.get(&format!("/item?of={path}:1"));
        assert!(
            !answer.body.contains("business") && answer.body.contains("no such item"),
            "{}",
            answer.body
        );
    }
    let parts = [".tavern", ".git/tavern"].map(|part| scratch.work().join(part));
    parts
        .iter()
        .for_each(|part| fs::remove_dir_all(part).expect("nobody writes there"));
    events.next("fault", says("the board is gone"));
    assert!(!parts.iter().any(|part| part.exists()), "it is made again");
    drop(served.end());
}

#[test]
fn a_diff_that_takes_for_ever_holds_up_nobody_but_who_asks() {
    let scratch = Scratch::board("- [ ] T-1: One\n");
    scratch.git(&["checkout", "--quiet", "-b", "tavern/T-1"]);
    scratch.write("new.txt", "new\n");
    scratch.git(&["add", "new.txt"]);
    scratch.git(&["commit", "--quiet", "-m", "New", "new.txt"]);
    scratch.git(&["checkout", "--quiet", "-"]);
    // Who reads the file that was added waits for who writes to this pipe.
    let blob = scratch.git(&["rev-parse", "tavern/T-1:new.txt"]);
    let object = scratch
        .folder()
        .join(format!("work/.git/objects/{}/{}", &blob[..2], &blob[2..]));
    fs::remove_file(&object).expect("it is loose");
    mkfifoat(CWD, &object, Mode::RUSR | Mode::WUSR).expect("it is ours");
    let served = Served::start(&scratch, &[]);
    let mut events = served.events("/events", &[]);
    events.next("items", says("One"));
    thread::scope(|scope| {
        let diff = scope.spawn(|| served.get("/work?of=T-1"));
        let mut writer = None;
        wait_until("somebody reads the file", || {
            let opened = fs::OpenOptions::new()
                .write(true)
                .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
                .open(&object);
            writer = opened.ok();
            writer.is_some()
        });
        scratch.write(
            ".tavern/queues/other.md",
            "---\nid: other\n---\n- [ ] O-1: Of another queue\n",
        );
        events.next("items", says("Of another queue"));
        scratch.run("tavern-tell", &["T-1", "Go on"]).ends(0);
        events.next("log", says("T-1"));
        has(&served.get("/item?of=T-1").body, &["T-1 One"]);
        served
            .events("/stream?of=T-1", &[])
            .next("gone", says("no run yet"));
        assert!(!diff.is_finished(), "it waits still");
        drop(writer);
        assert_eq!(diff.join().expect("it is answered").status, 200);
    });
    drop(served.end());
}

#[test]
fn of_many_needs_the_first_are_told_and_how_many_more_there_are() {
    let items: String = (1..=302)
        .map(|number| format!("- [ ] T-{number}: One (approve: start)\n"))
        .collect();
    let scratch = Scratch::board(&items);
    let served = Served::start(&scratch, &[]);
    let (_, told) = served.events("/events", &[]).next("needs", |_| true);
    let needs = told["needs"].as_array().expect("a list");
    assert_eq!(
        (needs.len(), &needs[299]["task"], &told["left_out"]),
        (300, &"T-300".into(), &2.into())
    );
    drop(served.end());
}

#[test]
fn runs_and_events_are_those_of_the_named_queues() {
    let scratch = Scratch::pending(&item("T-1", ""));
    scratch.write(
        ".tavern/queues/other.md",
        format!("---\nid: other\n---\n## Pending\n\n{}", item("O-1", "")),
    );
    for queue in ["main", "other"] {
        scratch
            .run("tavern-agent", &["--once", "--queue", queue])
            .ends(0);
    }
    let served = Served::start(&scratch, &["main"]);
    let mut events = served.events("/events", &[]);
    let (_, runs) = events.next("runs", |_| true);
    has(&runs.to_string(), &["T-1@"]);
    assert!(!says("O-1")(&runs), "{runs}");
    events.next("log", says("T-1"));
    // What comes next is told behind all that was there.
    scratch.run("tavern-tell", &["O-1", "Not told"]);
    // A random ID may begin like one of the fixture's.
    let last = ["Last of all", "--queue", "main", "--id", "L-1"];
    scratch.run("tavern-add", &last).ends(0);
    events.next("log", says("L-1"));
    let come = events.come.lock().expect("nobody panics");
    let told: Vec<&Value> = come
        .iter()
        .filter(|(name, ..)| name == "log")
        .map(|(.., data)| data)
        .collect();
    assert!(!told.iter().any(|event| says("O-1")(event)), "{told:?}");
    drop(come);
    drop(served.end());
}

/// Begins something in each place that a page has.
const HOSTILE: [&str; 5] = [
    "</title></script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "\u{202e}gpj.exe\u{2066}\u{200b}\u{feff}\u{1b}[2J",
    "data: x event: hello id: 9",
    "javascript:alert(1)",
];

#[test]
fn hostile_words_are_words_and_no_line_is_endless() {
    let all = HOSTILE.join(" ");
    let items: String = HOSTILE
        .iter()
        .enumerate()
        .map(|(at, words)| format!("- [ ] T-{at}1: {words}\n  {words}\n"))
        .collect();
    let scratch = Scratch::pending(&format!(
        "{items}- [ ] T-9: Say it\n  ```sh\n  cat ~/words\n  cat ~/words >x.txt\n  ```\n"
    ));
    scratch.write(
        "../home/words",
        format!(
            "{all}\r\n\ndata: {{}}\n\n{}\n",
            "<b>\u{202e}".repeat(1 << 20)
        ),
    );
    scratch.run("tavern-agent", &["--once"]).ends(0);
    let served = Served::start(&scratch, &[]);
    let obeyed = |c: char| {
        c.is_control() && !['\n', '\t'].contains(&c)
            || "\u{202e}\u{2066}\u{200b}\u{feff}".contains(c)
    };
    let mut events = served.events("/events", &[]);
    let mut stream = served.events("/stream?of=T-9", &[]);
    let (_, items) = events.next("items", says("onerror"));
    let (_, lines) = stream.next("lines", says("<b>"));
    let texts = [
        items.to_string(),
        lines.to_string(),
        served.get("/item?of=T-21").body,
        served.get("/work?of=T-9").body,
    ];
    for text in texts {
        assert!(text.len() < 1 << 20, "{} bytes", text.len());
        let mut values = vec![serde_json::from_str::<Value>(&text).expect("JSON")];
        while let Some(value) = values.pop() {
            match value {
                Value::String(text) => assert_eq!(text.find(obeyed), None, "{text:?}"),
                Value::Array(all) => values.extend(all),
                Value::Object(all) => values.extend(all.into_iter().map(|(_, value)| value)),
                _ => {}
            }
        }
    }
    // None of it is served as a page.
    for path in ["/item?of=T-11", "/work?of=T-9"] {
        has(
            &served.get(path).head,
            &["content-type: application/json", "nosniff"],
        );
    }
    drop(served.end());
}
