//! Connections and their responses: the page, and event streams of the board. A [`Desk`] answers queries on the board,
//! and each request must pass the [`Gate`].
//!
//! All is bounded: connections, heads, bodies, and the time to send or to read. Slow readers get the latest state;
//! nothing is kept for any of them.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use http_body_util::channel::{Channel, Sender};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, LOCATION, SET_COOKIE};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::runtime::Builder;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::action::Errand;
use super::asset::ASSETS;
use super::auth::{Entrance, Gate};
use super::page_state::{SeenParts, Showing, shown_line};
use super::query_worker::{Desk, RunLogs};
use crate::live::action::{done, program};
use crate::live::stream::LogTail;
use crate::live::style::Tone;
use tavern_sys::file_watch::WatchOrLook;
use tavern_sys::process::Bell;

/// Maximum number of connections at once; further ones wait.
const MOST_CONNECTIONS: usize = 64;

/// Maximum number of programs that run at once for the page.
const MOST_ERRANDS: usize = 4;

/// Maximum bytes of a request's body.
const MOST_OF_BODY: usize = 16 << 10;

/// Maximum bytes of a request's head.
const MOST_OF_HEAD: usize = 16 << 10;

/// Time limits for a request to arrive, and for a client that reads nothing.
const TO_SEND: Duration = Duration::from_secs(10);
const TO_READ: Duration = Duration::from_secs(60);

/// Time without news after which a heartbeat is sent.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// Minimum time between two reads of a run.
const BREATH: Duration = Duration::from_millis(100);

/// Maximum number of lines of a run sent at once.
const MOST_LINES: usize = 5_000;

/// The page can't run or load foreign content, be framed, or reveal its address.
const HEADERS: [(&str, &str); 8] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Whether the page can change the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageLeave {
    LookOnly,
    Act,
}

/// The state of the server.
pub struct Served {
    pub gate: Gate,
    pub leave: PageLeave,
    pub desk: Desk,
    /// Rings when a client connects.
    pub bell: Bell,
    pub showing: Arc<watch::Sender<Showing>>,
    /// Name of the board.
    pub name: String,
    /// The board's folder, and the folder where programs run.
    pub board: PathBuf,
    pub root: PathBuf,
    pub errands: Arc<Semaphore>,
    /// Distinguishes this process from others that serve a board at this address.
    pub instance: String,
}

impl Served {
    /// Returns the permits for programs that run at once.
    pub fn errands() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MOST_ERRANDS))
    }

    /// Returns true if no program of the page runs.
    pub fn is_idle(&self) -> bool {
        self.errands.available_permits() == MOST_ERRANDS
    }
}

type Body = BoxBody<Bytes, Infallible>;

/// Serves connections from a thread of its own, to the end of this process.
pub fn begin(listener: TcpListener, served: Arc<Served>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(MOST_CONNECTIONS)
        .build()?;
    thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || runtime.block_on(accept(listener, served)))?;
    Ok(())
}

async fn accept(listener: TcpListener, served: Arc<Served>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("the runtime has io");
    let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let permit = Arc::clone(&connections)
            .acquire_owned()
            .await
            .expect("it is never closed");
        let Ok((stream, _)) = listener.accept().await else {
            // For example, no file descriptors are left.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(at) = bound(&stream, TO_READ).and_then(|()| stream.local_addr()) else {
            continue;
        };
        let served = Arc::clone(&served);
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let served = Arc::clone(&served);
                async move { Ok::<_, Infallible>(answer(&served, request, at).await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(TO_SEND)
                .max_buf_size(MOST_OF_HEAD)
                .max_headers(64);
            // A broken connection is no error.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
            drop(permit);
        });
    }
}

/// Makes the system end a connection to a client that reads nothing for `time`. A timeout in this process would not see
/// data in the system's buffers.
fn bound(stream: impl AsFd, time: Duration) -> io::Result<()> {
    Ok(set_tcp_user_timeout(
        stream,
        time.as_millis().try_into().unwrap_or(u32::MAX),
    )?)
}

async fn answer(
    served: &Arc<Served>,
    request: Request<Incoming>,
    at: SocketAddr,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut response = match served.gate.judge(&head, at) {
        Err(denial) => plain(StatusCode::FORBIDDEN, denial.words()),
        Ok(Entrance::AtTheDoor) => {
            let mut response = plain(StatusCode::SEE_OTHER, "");
            put(&mut response, &LOCATION, "/");
            put(&mut response, &SET_COOKIE, &served.gate.cookie());
            response
        }
        Ok(Entrance::Inside) => route(served, &head, body).await,
    };
    for (name, value) in HEADERS {
        put(&mut response, &HeaderName::from_static(name), value);
    }
    response
}

async fn route(served: &Arc<Served>, head: &Parts, body: Incoming) -> Response<Body> {
    let query = |name: &str| value_of(head.uri.query().unwrap_or_default(), name);
    match (&head.method, head.uri.path()) {
        (&Method::GET, "/events") => events(served, head),
        (&Method::GET, "/stream") => stream(served, head, query("of").unwrap_or_default()).await,
        (&Method::GET, "/item") => json(served.desk.item(query("of").unwrap_or_default()).await),
        (&Method::GET, "/work") => json(served.desk.work(query("of").unwrap_or_default()).await),
        (&Method::POST, "/do") => act(served, head, body).await,
        (&Method::GET, path) => match ASSETS.iter().find(|asset| asset.path == path) {
            Some(asset) => of_kind(asset.kind, asset.text),
            None => plain(StatusCode::NOT_FOUND, "404: not found\n"),
        },
        _ => {
            let mut response = plain(
                StatusCode::METHOD_NOT_ALLOWED,
                "405: GET, and POST to /do\n",
            );
            put(&mut response, &ALLOW, "GET, POST");
            response
        }
    }
}

/// Runs the program for a request of the page, as a user would, and returns its output.
async fn act(served: &Arc<Served>, head: &Parts, body: Incoming) -> Response<Body> {
    if served.leave == PageLeave::LookOnly {
        return plain(
            StatusCode::FORBIDDEN,
            "403: this page is read-only; to act from it: tavern serve --write\n",
        );
    }
    if head
        .headers
        .get(CONTENT_TYPE)
        .is_none_or(|kind| kind != "application/json")
    {
        return plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "415: send application/json\n",
        );
    }
    let body = match timeout(TO_SEND, Limited::new(body, MOST_OF_BODY).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return plain(StatusCode::PAYLOAD_TOO_LARGE, "413: request too long\n"),
        Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "408: request timed out\n"),
    };
    let Ok(errand) = serde_json::from_slice::<Errand>(&body) else {
        return plain(StatusCode::BAD_REQUEST, "400: unknown request\n");
    };
    let words = match errand.words() {
        Ok(words) => words,
        Err(why) => return said(&[], &why, Tone::Bad),
    };
    let Ok(permit) = Arc::clone(&served.errands).try_acquire_owned() else {
        return said(&words, "too many actions at once: try again", Tone::Bad);
    };
    let spec = program(&words, &served.board, &served.root);
    // The program goes on even if the browser is gone.
    let doing = spawn_blocking(move || (done(spec), drop(permit)).0);
    let (told, tone) = doing.await.unwrap_or_else(|_| (String::new(), Tone::Bad));
    said(&words, &told, tone)
}

/// Returns the command and its output as JSON.
fn said(words: &[String], told: &str, tone: Tone) -> Response<Body> {
    let command = if words.is_empty() {
        String::new()
    } else {
        format!("tavern {}", words.join(" "))
    };
    let value = serde_json::json!({
        "command": shown_line(&command).as_str(), "said": shown_line(told).as_str(), "done": tone != Tone::Bad
    });
    of_kind("application/json", value.to_string())
}

/// Streams changes of the board, from the last seen event on.
fn events(served: &Arc<Served>, head: &Parts) -> Response<Body> {
    let after = place(head).or_else(|| value_of(head.uri.query().unwrap_or_default(), "after"));
    let after = after.and_then(|id| id.parse().ok());
    let (out, response) = event_stream();
    let (served, showing) = (Arc::clone(served), served.showing.subscribe());
    tokio::spawn(async move { tell_board(&served, showing, after, out).await });
    response
}

/// Streams the output of a run, from where the client read last.
async fn stream(served: &Arc<Served>, head: &Parts, of: String) -> Response<Body> {
    let found = served.desk.logs(of).await;
    let (mut out, response) = event_stream();
    let place = place(head).unwrap_or_default();
    tokio::spawn(async move {
        match found {
            Ok(RunLogs { run, folder }) => {
                // The item may have a newer run by now.
                let of_run = place
                    .strip_prefix(&run)
                    .and_then(|place| place.strip_prefix('/'));
                tell_logs(&run, folder, of_run.unwrap_or_default(), out).await
            }
            Err(why) => {
                out.event("gone", &serde_json::json!({"why": why}).to_string(), "")
                    .await
            }
        }
    });
    response
}

/// Returns the ID of the last event that a returning browser has seen.
fn place(head: &Parts) -> Option<String> {
    head.headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok())
        .map(str::to_owned)
}

/// Sends each changed part of the state, and events of the log by their numbers.
async fn tell_board(
    served: &Served,
    mut showing: watch::Receiver<Showing>,
    mut after: Option<u64>,
    mut out: EventOut,
) -> Result<(), HungUp> {
    let hello = serde_json::json!({"board": shown_line(&served.name).as_str(), "acts": served.leave == PageLeave::Act,
        "instance": served.instance});
    out.event("hello", &hello.to_string(), "").await?;
    // The board may not have been read since the last client left.
    served.bell.ring();
    let (mut seen, mut has_log) = (SeenParts::default(), false);
    loop {
        let (news, last) = {
            let showing = showing.borrow_and_update();
            (showing.news(&mut seen), showing.last)
        };
        for (part, json) in news {
            out.event(part, &json, "").await?;
        }
        if !has_log || after != Some(last) {
            let news = served.desk.events(after).await;
            has_log = news.is_ok();
            for line in news.iter().flat_map(|news| &news.lines) {
                out.event("log", &line.json, &line.seq.to_string()).await?;
            }
            after = news.map_or(after, |news| Some(news.last));
        }
        // A failed query of the log is repeated sooner.
        let patience = if has_log { HEARTBEAT } else { BREATH * 10 };
        loop {
            match timeout(patience, showing.changed()).await {
                Ok(Ok(())) => break,
                Ok(Err(_)) => return Ok(()),
                Err(_) => out.heartbeat().await?,
            }
            if !has_log {
                break;
            }
        }
    }
}

/// Sends lines as they come, each batch with its position in the logs.
async fn tell_logs(
    run: &str,
    folder: PathBuf,
    place: &str,
    mut out: EventOut,
) -> Result<(), HungUp> {
    out.event("run", &serde_json::json!({"run": run}).to_string(), "")
        .await?;
    let (rings, mut watch) = (Arc::new(Notify::new()), None);
    let mut tail = LogTail::after(&folder, place);
    loop {
        if watch.is_none() {
            // The folder does not exist before the run begins.
            let rings = Arc::clone(&rings);
            watch = WatchOrLook::new([folder.clone()], move |_| rings.notify_one()).ok();
        }
        let read = spawn_blocking(move || {
            let mut lines = tail.more();
            // More lines at once would not be read, so the oldest are dropped.
            let left_out = lines.len().saturating_sub(MOST_LINES);
            if left_out > 0 {
                lines.drain(..left_out);
                lines.insert(
                    0,
                    (format!("… {left_out} lines are left out here"), Tone::Faint),
                );
            }
            (tail, lines)
        });
        let Ok((read, lines)) = read.await else {
            return Ok(());
        };
        tail = read;
        if !lines.is_empty() {
            let line = |(text, tone): &(String, Tone)| (shown_line(text).to_string(), tone.word());
            let lines: Vec<_> = lines.iter().map(line).collect();
            let json = serde_json::to_string(&lines).unwrap_or_default();
            out.event("lines", &json, &format!("{run}/{}", tail.place()))
                .await?;
        }
        tokio::time::sleep(BREATH).await;
        let patience = if watch.is_some() {
            HEARTBEAT
        } else {
            BREATH * 10
        };
        while !tail.is_behind() && timeout(patience, rings.notified()).await.is_err() {
            out.heartbeat().await?;
            if watch.is_none() {
                break;
            }
        }
    }
}

/// The sending end of an event stream.
struct EventOut(Sender<Bytes>);

/// The client is gone.
struct HungUp;

impl EventOut {
    async fn event(&mut self, name: &str, json: &str, id: &str) -> Result<(), HungUp> {
        let id = if id.is_empty() {
            String::new()
        } else {
            format!("id: {id}\n")
        };
        // JSON has no line breaks.
        self.send(format!("event: {name}\n{id}data: {json}\n\n"))
            .await
    }

    async fn heartbeat(&mut self) -> Result<(), HungUp> {
        self.send(": still here\n\n".to_owned()).await
    }

    async fn send(&mut self, text: String) -> Result<(), HungUp> {
        self.0
            .send_data(Bytes::from(text))
            .await
            .map_err(|_| HungUp)
    }
}

/// Returns the sending end of an event stream, and its response.
fn event_stream() -> (EventOut, Response<Body>) {
    let (send, body) = Channel::new(1);
    let mut response = Response::new(body.boxed());
    put(&mut response, &CONTENT_TYPE, "text/event-stream");
    (EventOut(send), response)
}

fn json(reply: Result<String, String>) -> Response<Body> {
    match reply {
        Ok(json) => of_kind("application/json", json),
        // The page shows the reason; its request was in order.
        Err(why) => of_kind(
            "application/json",
            serde_json::json!({"fault": why}).to_string(),
        ),
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = of_kind("text/plain; charset=utf-8", text);
    *response.status_mut() = status;
    response
}

fn of_kind(kind: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed());
    put(&mut response, &CONTENT_TYPE, kind);
    response
}

fn put(response: &mut Response<Body>, name: &HeaderName, value: &str) {
    response
        .headers_mut()
        .insert(name, value.parse().expect("it is plain"));
}

/// Returns the value of `name` in a query.
fn value_of(query: &str, name: &str) -> Option<String> {
    let value = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(own, _)| *own == name)?
        .1;
    let (mut bytes, mut rest) = (Vec::new(), value.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpStream;

    #[test]
    fn a_connection_that_nobody_reads_from_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let reader =
            TcpStream::connect(listener.local_addr().expect("it has one")).expect("it listens");
        let (mut writer, _) = listener.accept().expect("it was connected to");
        bound(&writer, Duration::from_millis(300)).expect("it is a socket");
        // The test itself must not wait forever.
        writer
            .set_write_timeout(Some(TO_READ))
            .expect("it is a socket");
        let error = loop {
            if let Err(error) = writer.write_all(&[0; 1 << 12]) {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(reader);
    }
}
