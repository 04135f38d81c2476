//! A client of a running server, over HTTP.
//!
//! One connection for each request. Promises that every request ends: with the server's answer, or
//! with a sentence that says whether trying again may help. Knows nothing about queues.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::table::printable;

const USUAL: &str = "http://127.0.0.1:6632";
const USUAL_PORT: u16 = 6632;

const CONNECTING: Duration = Duration::from_secs(10);
/// The server itself ends requests that take longer than 30 s, with an answer.
const ANSWERING: Duration = Duration::from_secs(40);
/// The characters of a name that have no other meaning in an address.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    /// Host and port, for both the connection and the header `Host`.
    authority: String,
    /// A path before the paths of the API, for a server behind a proxy.
    prefix: String,
}

impl Default for ServerUrl {
    fn default() -> Self {
        Self { authority: USUAL.trim_start_matches("http://").to_owned(), prefix: String::new() }
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.prefix)
    }
}

impl ServerUrl {
    /// `http://host:port`, with or without a path.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("is no address of a server, such as {USUAL}");
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err("begins with https, which is not supported yet: use http".to_owned()),
            _ => return Err(wrong()),
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        if uri.query().is_some() || uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("has a user or a query, which mean nothing to a server of ours".to_owned());
        }
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(USUAL_PORT));
        Ok(Self { authority, prefix: uri.path().trim_end_matches('/').to_owned() })
    }
}

/// A name as it stands in a path or query.
pub(crate) fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NAME).to_string()
}

/// The parameters that have a value, after a question mark.
pub(crate) fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let pairs = parameters.iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded((*value)?))));
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// An answer that is no fault.
#[derive(Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    body: Bytes,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum RemoteError {
    /// No server answers, or not now: trying again may help.
    Away(String),
    /// The server refuses, and trying again changes nothing.
    Refused(Fault),
    /// The answer is not that of a Reveille server.
    Strange(String),
}

/// A fault in the words of the server.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Fault {
    #[serde(skip)]
    pub(crate) status: u16,
    pub(crate) code: String,
    error: String,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(sentence) => f.write_str(sentence),
            // The server's sentence may repeat names that other clients chose.
            Self::Refused(Fault { error, status, code }) => {
                write!(f, "{} ({status}, {})", printable(error), printable(code))
            }
            Self::Strange(why) => write!(f, "the server's answer cannot be understood: is it one of ours? ({why})"),
        }
    }
}

/// A client of one server.
#[derive(Debug)]
pub(crate) struct Remote<'u> {
    url: &'u ServerUrl,
}

impl<'u> Remote<'u> {
    pub(crate) fn new(url: &'u ServerUrl) -> Self {
        Self { url }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Answer, RemoteError> {
        self.send(Method::GET, path, Bytes::new(), ANSWERING).await
    }

    /// A request that may wait at the server.
    pub(crate) async fn get_waiting(&self, path: &str, wait: Duration) -> Result<Answer, RemoteError> {
        self.send(Method::GET, path, Bytes::new(), ANSWERING.saturating_add(wait)).await
    }

    pub(crate) async fn post(&self, path: &str, body: String) -> Result<Answer, RemoteError> {
        self.send(Method::POST, path, body.into(), ANSWERING).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Answer, RemoteError> {
        self.send(Method::DELETE, path, Bytes::new(), ANSWERING).await
    }

    async fn send(&self, method: Method, path: &str, body: Bytes, patience: Duration) -> Result<Answer, RemoteError> {
        let authority = &self.url.authority;
        let connecting = timeout(CONNECTING, TcpStream::connect(authority)).await;
        let stream = match connecting {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                let what =
                    format!("no server answers at http://{authority}: is `reveille serve` running there? ({error})");
                return Err(RemoteError::Away(what));
            }
            Err(_) => {
                return Err(RemoteError::Away(format!("http://{authority} does not answer within {CONNECTING:?}")));
            }
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url.prefix))
            .header(HOST, authority)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .body(Full::new(body))
            .map_err(|error| RemoteError::Strange(error.to_string()))?;
        match timeout(patience, exchange(stream, request)).await {
            Ok(Ok(answer)) => answer.without_fault(),
            Ok(Err(error)) => {
                let what =
                    format!("the connection to http://{authority} broke; whether it was done is not known ({error})");
                Err(RemoteError::Away(what))
            }
            Err(_) => Err(RemoteError::Away(format!(
                "http://{authority} did not answer within {patience:?}; whether it was done is not known"
            ))),
        }
    }
}

async fn exchange(stream: TcpStream, request: Request<Full<Bytes>>) -> Result<Answer, hyper::Error> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let reply = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        Ok(Answer { status: head.status, body: body.collect().await?.to_bytes() })
    };
    // The connection moves the bytes, and is dropped once there is an answer.
    tokio::select! {
        biased;
        answer = reply => answer,
        Err(broken) = connection => Err(broken),
    }
}

impl Answer {
    /// Whether the server had nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.status == StatusCode::NO_CONTENT
    }

    /// The body as it came.
    pub(crate) fn text(&self) -> Result<&str, RemoteError> {
        std::str::from_utf8(&self.body).map_err(|error| RemoteError::Strange(error.to_string()))
    }

    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, RemoteError> {
        serde_json::from_slice(&self.body).map_err(|error| RemoteError::Strange(error.to_string()))
    }

    fn without_fault(self) -> Result<Self, RemoteError> {
        if self.status.is_success() {
            return Ok(self);
        }
        let fault: Fault = serde_json::from_slice(&self.body).unwrap_or_default();
        let fault = Fault { status: self.status.as_u16(), ..fault };
        match self.status {
            _ if fault.error.is_empty() => Err(RemoteError::Strange(self.status.to_string())),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Err(RemoteError::Away(RemoteError::Refused(fault).to_string()))
            }
            _ => Err(RemoteError::Refused(fault)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_port_and_path() {
        let url = |authority: &str, prefix: &str| ServerUrl { authority: authority.into(), prefix: prefix.into() };

        assert_eq!(ServerUrl::parse(USUAL), Ok(ServerUrl::default()));
        assert_eq!(ServerUrl::parse("http://db.example.com/"), Ok(url("db.example.com:6632", "")));
        assert_eq!(ServerUrl::parse("http://[::1]:80/queues/"), Ok(url("[::1]:80", "/queues")));
        for wrong in
            ["", "localhost:6632", "127.0.0.1", "ftp://x", "https://x", "http://me@x", "http://x?a=b", "http://"]
        {
            assert!(ServerUrl::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_encoded_and_absent_parameters_are_left_out() {
        assert_eq!(encoded("a/b ü?"), "a%2Fb%20%C3%BC%3F");
        assert_eq!(query(&[("queue", Some("a&b")), ("from", None), ("limit", Some("3"))]), "?queue=a%26b&limit=3");
        assert_eq!(query(&[("queue", None)]), "");
    }
}
