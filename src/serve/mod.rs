//! `tavern-serve`: a live page of the board in a browser.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use uuid::Uuid;

use super::{CliError, Context, Exit, Verb};
use tavern_store::Board;
use tavern_sys::clock::Deadline;
use tavern_sys::process::Bell;

use auth::{Gate, is_loopback};
use broadcaster::Teller;
use page_state::Showing;
use query_worker::Desk;
use server::{PageLeave, Served, begin};

mod action;
mod asset;
mod auth;
mod broadcaster;
mod page_state;
mod query_worker;
mod server;

/// Show the board in a browser, as it changes; with --write, act from there
///
/// Prints a URL that opens once, in one browser; another browser needs a `tavern serve` of its own. The page shows the items by
/// status, those that need you, each agent's activity and output, the changes of items, runs and events. Ctrl-C ends it; no
/// other program needs it.
#[derive(clap::Args)]
pub struct Args {
    /// Only these queues, with their runs and events, by name or path [default: all queues]
    #[arg(value_name = "QUEUE")]
    pub queues: Vec<String>,

    /// The port [default: one that is free]
    #[arg(long, value_name = "PORT", default_value = "0", hide_default_value = true, value_parser = port)]
    pub port: u16,

    /// Let the page answer, approve, reject, pause, release and merge; without, it is read-only
    #[arg(long)]
    pub write: bool,

    /// Serve another address than this machine's own: all with access to it and the URL see the board, and with --write control
    /// it; nothing is encrypted
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<IpAddr>,
}

/// How long programs started by the page may go on after an end was requested.
const GRACE: Duration = Duration::from_secs(2);

fn port(text: &str) -> Result<u16, String> {
    let is_address = text.parse::<SocketAddr>().is_ok() || text.parse::<IpAddr>().is_ok();
    match text.parse() {
        Ok(port) => Ok(port),
        Err(_) if is_address => {
            Err("a port is a number; for an address: --listen ADDRESS".to_owned())
        }
        Err(_) => Err("a port is a number up to 65535".to_owned()),
    }
}

/// Address of the page.
#[derive(Serialize)]
struct Record<'a> {
    url: &'a str,
    address: SocketAddr,
    /// Whether the page can change the board.
    write: bool,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-serve";
    const EXAMPLES: &'static [&'static str] = &["tavern serve --write --port 8080"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        if let Some(address) = self.queues.iter().find(|name| as_address(name).is_some()) {
            return Err(other_address(address));
        }
        let board = context.board()?;
        let queues = context.files(&board.clone().settled()?, &self.queues)?;
        let named = if self.queues.is_empty() {
            Vec::new()
        } else {
            queues.into_iter().map(|queue| queue.id).collect()
        };
        let address = SocketAddr::new(self.listen.unwrap_or(Ipv4Addr::LOCALHOST.into()), self.port);
        let (listener, address) = listen(address)?;
        let [token, key] = [(); 2].map(|()| Uuid::new_v4().simple().to_string());
        let url = format!("http://{}/?token={token}", reached_by(address));
        let leave = if self.write {
            PageLeave::Act
        } else {
            PageLeave::LookOnly
        };
        let (out, _) = watch::channel(Showing::default());
        let out = Arc::new(out);
        let bell = Bell::new();
        let mut teller = Teller::new(
            context,
            board.clone(),
            &self.queues,
            bell.clone(),
            Arc::clone(&out),
        );
        let served = Arc::new(Served {
            gate: Gate::new(token, key, address.port()),
            leave,
            desk: Desk::open(context, &board, &named)?,
            bell,
            showing: out,
            name: name(&board),
            board: board.dir().to_owned(),
            root: board.root().to_owned(),
            errands: Served::errands(),
            instance: Uuid::new_v4().simple().to_string(),
        });
        // From now on a signal ends it gracefully.
        context.interrupt()?;
        begin(listener, Arc::clone(&served))?;
        context.out.address(
            &Record {
                url: &url,
                address,
                write: self.write,
            },
            &url,
        )?;
        context.out.flush()?;
        if !is_loopback(address.ip()) {
            context.out.note(meaning(address, leave));
        }
        let acts = if self.write {
            "the page can change the board"
        } else {
            "the page is read-only; to act from it: tavern serve --write"
        };
        let end = if std::io::stdin().is_terminal() {
            "; Ctrl-C ends it"
        } else {
            ""
        };
        context.out.note(format!("{acts}{end}"));
        let exit = teller.work()?;
        let (deadline, bell) = (Deadline::after(GRACE), Bell::new());
        while !served.is_idle() && !deadline.left().is_zero() {
            bell.wait(Duration::from_millis(20));
        }
        Ok(exit)
    }
}

fn as_address(name: &str) -> Option<IpAddr> {
    name.parse()
        .ok()
        .or_else(|| Some(name.parse::<SocketAddr>().ok()?.ip()))
}

fn other_address(address: &str) -> CliError {
    let message = format!("`{address}` is an address, and the default is 127.0.0.1 only");
    let hint = "with `--listen ADDRESS` everyone with access to that address and the URL sees the board; nothing is encrypted; over ssh: \
                `ssh -L 8123:127.0.0.1:8123 HOST`, with `tavern serve --port 8123` there";
    CliError::usage(message, hint)
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), CliError> {
    let bound =
        TcpListener::bind(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
    match bound {
        Ok((address, listener)) => Ok((listener, address)),
        Err(error) => {
            let hint = match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "another program has this port: take another, or leave out --port for one that is free"
                }
                std::io::ErrorKind::AddrNotAvailable => {
                    "name an address that this machine has: ip address"
                }
                _ => "take another --port, such as 8123",
            };
            let failed = CliError::new(Exit::Failed, format!("can't serve {address}"));
            Err(CliError {
                causes: vec![error.to_string()],
                ..failed
            }
            .with_hint(hint.to_owned()))
        }
    }
}

/// Returns the address by which a browser on this machine reaches the page.
fn reached_by(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Returns the consequences of serving beyond this machine.
fn meaning(address: SocketAddr, leave: PageLeave) -> String {
    let all = if address.ip().is_unspecified() {
        "any address of this machine"
    } else {
        "this address"
    };
    let may = match leave {
        PageLeave::LookOnly => "sees this board, and the output and changes of agents",
        PageLeave::Act => "sees this board, and answers, approves and merges in your name",
    };
    let from = if address.ip().is_unspecified() {
        format!(
            "; from elsewhere the URL has one of them in place of {}",
            reached_by(address).ip()
        )
    } else {
        String::new()
    };
    format!(
        "everyone with access to {all} and the URL {may}; nothing is encrypted, so the network can read the cookie{from}"
    )
}

/// Returns the name of the folder that the board is for.
fn name(board: &Board) -> String {
    board
        .root()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
