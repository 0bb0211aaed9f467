//! Access control: only the served page may send requests, in the browser that has opened the URL with the token.
//!
//! A foreign name may lead to this address (DNS rebinding), and any page may send requests to it (cross-site requests).
//! So the Host header and the origin are checked before the token.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::header::{COOKIE, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use sha2::{Digest, Sha256};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The secrets of this process.
pub struct Gate {
    /// The token in the URL. It works once, since browsers keep URLs in their history.
    token: String,
    is_used: AtomicBool,
    /// The secret in the browser's cookie.
    key: String,
    port: u16,
}

/// An accepted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// With a token in the URL: it gets the cookie, and is repeated without the token.
    AtTheDoor,
    Inside,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    WrongHost,
    OtherSite,
    Used,
    NoCookie,
}

impl TurnedAway {
    pub fn words(self) -> &'static str {
        match self {
            TurnedAway::WrongHost => {
                "403: wrong Host header; open the URL that `tavern serve` printed\n"
            }
            TurnedAway::OtherSite => {
                "403: request from another site; open the URL that `tavern serve` printed\n"
            }
            TurnedAway::Used => {
                "403: this URL was opened already, and each opens once; to open the board in another browser, type: tavern serve\n\
                 If you did not open it, end this server with Ctrl-C.\n"
            }
            TurnedAway::NoCookie => {
                "403: this browser has no access; open the URL that `tavern serve` printed in its terminal, with ?token=; \
                 if it was opened already, type: tavern serve\n"
            }
        }
    }
}

impl Gate {
    pub fn new(token: String, key: String, port: u16) -> Gate {
        Gate {
            token,
            is_used: AtomicBool::new(false),
            key,
            port,
        }
    }

    /// Returns the session cookie. Its name has the port, since all ports of a machine share cookies.
    pub fn cookie(&self) -> String {
        format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict",
            self.name(),
            self.key
        )
    }

    /// Decides whether the request with this `head` is accepted, on a connection to the address `at`.
    pub fn judge(&self, head: &Parts, at: SocketAddr) -> Result<Entrance, TurnedAway> {
        let host = only(&head.headers, &HOST).ok_or(TurnedAway::WrongHost)?;
        let is_served = |name: &str| names(at).iter().any(|own| own == name);
        if !is_served(host)
            || head
                .uri
                .authority()
                .is_some_and(|asked| asked.as_str() != host)
        {
            return Err(TurnedAway::WrongHost);
        }
        let mut site = head.headers.get_all(SITE).iter();
        if !site.all(|site| site == "same-origin" || site == "none") {
            return Err(TurnedAway::OtherSite);
        }
        let is_own = |origin: &HeaderValue| {
            origin.as_bytes().strip_prefix(b"http://") == Some(host.as_bytes())
        };
        let mut origins = head.headers.get_all(ORIGIN).iter();
        // Browsers send the origin with all requests but GET.
        let is_said = head.method == Method::GET || head.headers.contains_key(ORIGIN);
        if !is_said || !origins.all(is_own) {
            return Err(TurnedAway::OtherSite);
        }
        let is_door =
            head.method == Method::GET && head.uri.path() == "/" && head.uri.query().is_some();
        if self.has_cookie(&head.headers) {
            return Ok(if is_door {
                Entrance::AtTheDoor
            } else {
                Entrance::Inside
            });
        }
        let token = head
            .uri
            .query()
            .and_then(|query| query.strip_prefix("token="));
        if !is_door || !token.is_some_and(|token| is_same(token, &self.token)) {
            return Err(TurnedAway::NoCookie);
        }
        if self.is_used.swap(true, Ordering::SeqCst) {
            Err(TurnedAway::Used)
        } else {
            Ok(Entrance::AtTheDoor)
        }
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.name();
        headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(own, key)| own == name && is_same(key, &self.key))
    }

    fn name(&self) -> String {
        format!("tavern-{}", self.port)
    }
}

/// Compares digests, so that the time taken reveals nothing of the secret.
fn is_same(said: &str, secret: &str) -> bool {
    Sha256::digest(said) == Sha256::digest(secret)
}

/// Returns the names of the address in a URL.
fn names(at: SocketAddr) -> Vec<String> {
    let at = SocketAddr::new(at.ip().to_canonical(), at.port());
    let mut names = vec![at.to_string()];
    if at.ip().is_loopback() {
        names.push(format!("localhost:{}", at.port()));
    }
    // Browsers leave out the default port.
    if at.port() == 80 {
        let short = |name: &String| name.trim_end_matches(":80").to_owned();
        names.extend(names.iter().map(short).collect::<Vec<_>>());
    }
    names
}

/// Returns the only value of a header; `None` if there are none, or several.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        None
    } else {
        Some(value)
    }
}

/// Returns whether only this machine can reach the address.
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    type Headers<'h> = &'h [(&'h str, &'h str)];

    fn judge(method: &str, path: &str, headers: Headers<'_>) -> Result<Entrance, TurnedAway> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).expect("it is one").into_parts();
        let at = "127.0.0.1:8123".parse().expect("an address");
        Gate::new("secret".to_owned(), "key".to_owned(), 8123).judge(&head, at)
    }

    #[test]
    fn only_the_served_page_comes_in_with_the_cookie() {
        let (host, cookie) = (
            ("host", "127.0.0.1:8123"),
            ("cookie", "a=b; tavern-8123=key"),
        );
        let (own, other) = (
            ("origin", "http://127.0.0.1:8123"),
            ("origin", "http://evil.example"),
        );
        assert_eq!(judge("GET", "/", &[host, cookie]), Ok(Entrance::Inside));
        assert_eq!(
            judge("GET", "/", &[("host", "localhost:8123"), cookie]),
            Ok(Entrance::Inside)
        );
        for headers in [&[host] as Headers<'_>, &[host, cookie]] {
            assert_eq!(
                judge("GET", "/?token=secret", headers),
                Ok(Entrance::AtTheDoor)
            );
        }
        assert_eq!(
            judge("POST", "/do", &[host, cookie, own]),
            Ok(Entrance::Inside)
        );
        let denied: [(&str, &str, Headers<'_>, TurnedAway); 18] = [
            ("GET", "/", &[host], TurnedAway::NoCookie),
            ("GET", "/?token=secre", &[host], TurnedAway::NoCookie),
            ("GET", "/?token=", &[host], TurnedAway::NoCookie),
            ("GET", "/?token=key", &[host], TurnedAway::NoCookie),
            (
                "GET",
                "/",
                &[host, ("cookie", "tavern-8123=secret")],
                TurnedAway::NoCookie,
            ),
            ("GET", "/item?token=secret", &[host], TurnedAway::NoCookie),
            ("POST", "/?token=secret", &[host, own], TurnedAway::NoCookie),
            (
                "GET",
                "/",
                &[host, ("cookie", "tavern-8124=key")],
                TurnedAway::NoCookie,
            ),
            ("GET", "/", &[cookie], TurnedAway::WrongHost),
            (
                "GET",
                "/",
                &[("host", "evil.example:8123"), cookie],
                TurnedAway::WrongHost,
            ),
            (
                "GET",
                "/",
                &[("host", "127.0.0.1:8124"), cookie],
                TurnedAway::WrongHost,
            ),
            (
                "GET",
                "/",
                &[("host", "127.0.0.1"), cookie],
                TurnedAway::WrongHost,
            ),
            (
                "GET",
                "/",
                &[host, ("host", "evil.example"), cookie],
                TurnedAway::WrongHost,
            ),
            (
                "GET",
                "http://evil.example/",
                &[host, cookie],
                TurnedAway::WrongHost,
            ),
            (
                "GET",
                "/",
                &[host, cookie, ("sec-fetch-site", "same-site")],
                TurnedAway::OtherSite,
            ),
            ("GET", "/", &[host, cookie, other], TurnedAway::OtherSite),
            ("POST", "/do", &[host, cookie, other], TurnedAway::OtherSite),
            ("POST", "/do", &[host, cookie], TurnedAway::OtherSite),
        ];
        for (method, path, headers, denial) in denied {
            assert_eq!(
                judge(method, path, headers),
                Err(denial),
                "{method} {path} {headers:?}"
            );
        }
        assert_eq!(
            judge("POST", "/do", &[host, cookie, ("origin", "null")]),
            Err(TurnedAway::OtherSite)
        );
    }

    #[test]
    fn an_address_has_the_names_by_which_a_browser_asks_for_it() {
        let names = |at: &str| names(at.parse().expect("an address"));
        assert_eq!(names("[::1]:8123"), ["[::1]:8123", "localhost:8123"]);
        assert_eq!(names("[::ffff:10.0.0.2]:8123"), ["10.0.0.2:8123"]);
        assert_eq!(
            names("127.0.0.1:80"),
            ["127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"]
        );
    }
}
