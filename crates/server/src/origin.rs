//! Whose requests are answered: decided by the request head, before any of the body is read.
//!
//! There is no authentication yet, and a browser reaches loopback for every page it shows. So a
//! page of another origin must be able to do nothing here, neither by a request to our address nor
//! by a name of its own that resolves to it. Programs need nothing: every program that can open a
//! socket is a client, and only browsers send the origin of a page.
//!
//! Decided by `Host`, `Sec-Fetch-Site`, `Sec-Fetch-Dest` and `Origin`, which a page cannot choose.
//! Never by `Sec-Fetch-Mode` or the user agent: Node's fetch sends both and is no browser.
//!
//! Next: [`crate::content`] judges the body's type, [`crate::router::only_reads`] says where a link
//! may lead.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::header::{HOST, HeaderName, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, Version};

use crate::problem::Problem;
use crate::router;
use crate::wire::quote::shortened;

static SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
static DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");

const NO_HOST: Problem =
    Problem::new(StatusCode::BAD_REQUEST, "invalid_host", "a request of HTTP/1.1 has exactly one Host header");

/// Which hosts and origins are allowed beside the local ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Callers {
    /// Names of this server, beside addresses and loopback names.
    pub(crate) hosts: Vec<String>,
    /// Origins whose pages may send requests.
    pub(crate) origins: Vec<String>,
}

impl Callers {
    /// Whether this is a host name alone, without scheme, port or path.
    pub(crate) fn is_host(text: &str) -> bool {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    }

    /// Whether an origin is spelt as browsers spell it: `https://app.example`, with a port unless
    /// it is the scheme's default.
    pub(crate) fn is_origin(text: &str) -> bool {
        let authority = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        authority.is_some_and(|authority| {
            !authority.is_empty()
                && !authority.contains(|letter: char| "/?#@,".contains(letter) || letter.is_whitespace())
        })
    }

    /// Refuses a request under a foreign name or from a foreign page.
    pub(crate) fn admit(&self, head: &Parts) -> Result<(), Problem> {
        let path = head.uri.path();
        if !router::is_probe(path) {
            self.admit_host(head)?;
        }
        let site = text(&head.headers, &SITE);
        let origin = text(&head.headers, &ORIGIN);
        let is_local = match origin {
            Some(origin) => is_own(origin, host_of(head)) && !is_foreign(site),
            None => !is_foreign(site),
        };
        if is_local || origin.is_some_and(|origin| self.has_origin(origin)) || is_link(head, path) {
            return Ok(());
        }
        Err(foreign_origin(origin))
    }

    fn admit_host(&self, head: &Parts) -> Result<(), Problem> {
        let mut hosts = head.headers.get_all(HOST).iter();
        let old = head.version < Version::HTTP_11;
        match (hosts.next(), hosts.next()) {
            (None, None) if old => return Ok(()),
            (Some(_), None) => {}
            _ => return Err(NO_HOST),
        }
        let host = host_of(head).unwrap_or_default();
        if self.has_host(host) { Ok(()) } else { Err(foreign_host(host)) }
    }

    fn has_host(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else { return false };
        is_address(name) || is_loopback(name) || self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }

    fn has_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }
}

/// The host the request names. An absolute URI counts more than the header.
fn host_of(head: &Parts) -> Option<&str> {
    head.uri.authority().map(Authority::as_str).or_else(|| text(&head.headers, &HOST))
}

/// A value that is not text counts as empty, which matches nothing.
fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// `None` for a host with misplaced brackets.
fn without_port(host: &str) -> Option<&str> {
    if host.starts_with('[') {
        let end = host.find(']')? + 1;
        return (end == host.len() || host[end..].starts_with(':')).then(|| &host[..end]);
    }
    Some(host.split_once(':').map_or(host, |(name, _)| name))
}

fn is_address(name: &str) -> bool {
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<Ipv4Addr>().is_ok(),
    }
}

/// Browsers and resolvers never send these names to a name server.
fn is_loopback(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let top = name.rsplit('.').next().unwrap_or_default();
    top.eq_ignore_ascii_case("localhost")
}

/// Whether a browser reports a page of another origin. A page of the same site counts as one, too:
/// another port of this machine is another program.
fn is_foreign(site: Option<&str>) -> bool {
    !matches!(site, None | Some("same-origin" | "none"))
}

/// The scheme does not count: behind a proxy the page may have TLS while our socket has none.
fn is_own(origin: &str, host: Option<&str>) -> bool {
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    matches!((authority, host), (Some(of), Some(host)) if of.eq_ignore_ascii_case(host))
}

/// Whether a user followed a link to a page that only shows something.
fn is_link(head: &Parts, path: &str) -> bool {
    head.method == Method::GET && text(&head.headers, &DESTINATION) == Some("document") && router::only_reads(path)
}

fn foreign_host(host: &str) -> Problem {
    let name = shortened(without_port(host).unwrap_or(host));
    let sentence = if Callers::is_host(&name) {
        format!("this server is not known as {name}; if it should be, start it with --allowed-host {name}")
    } else {
        format!("{name:?} is no name of this server; names are allowed with --allowed-host")
    };
    Problem { status: StatusCode::FORBIDDEN, code: "foreign_host", sentence: sentence.into() }
}

fn foreign_origin(origin: Option<&str>) -> Problem {
    let origin = origin.map(shortened).filter(|origin| Callers::is_origin(origin));
    let sentence = match origin {
        Some(origin) => {
            format!("a web page of {origin} asks for this; if it may, start the server with --allowed-origin {origin}")
        }
        None => "a web page of another origin asks for this; origins are allowed with --allowed-origin".to_owned(),
    };
    Problem { status: StatusCode::FORBIDDEN, code: "foreign_origin", sentence: sentence.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_origins_to_allow_are_spelt_as_clients_send_them() {
        for host in ["queue.example", "queue", "a_b.example"] {
            assert!(Callers::is_host(host), "{host}");
        }
        for host in ["", "http://queue.example", "queue.example:80", "queue.example/", "a b"] {
            assert!(!Callers::is_host(host), "{host}");
        }
        for origin in ["https://app.example", "http://localhost:3000", "http://[::1]:80"] {
            assert!(Callers::is_origin(origin), "{origin}");
        }
        for origin in ["", "null", "app.example", "https://", "https://app.example/", "https://me@app.example", "*"] {
            assert!(!Callers::is_origin(origin), "{origin}");
        }
    }

    #[test]
    fn a_port_is_separated_from_a_name() {
        assert_eq!(without_port("[::1]:80"), Some("[::1]"));
        assert_eq!(without_port("a:80"), Some("a"));
        assert_eq!(without_port("[::1]x"), None);
        assert_eq!(without_port("[::1"), None);
    }
}
