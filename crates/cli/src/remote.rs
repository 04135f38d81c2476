//! A running server, asked over HTTP.
//!
//! One connection for each question. Promises that every question ends: with the server's answer,
//! or with a sentence that says whether asking again may help. Knows nothing of queues.

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
/// A server gives up on what takes longer than 30 s by itself, and says so.
const ANSWERING: Duration = Duration::from_secs(40);
/// What a name may contain in an address without meaning something there.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    /// Host and port, as both a connection and the header `Host` want them.
    authority: String,
    /// What comes before the paths we know, for a server behind a proxy.
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

/// Parameters that were said, behind their question mark.
pub(crate) fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let said = parameters.iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded((*value)?))));
    let said: Vec<String> = said.collect();
    if said.is_empty() { String::new() } else { format!("?{}", said.join("&")) }
}

/// What was answered, and that it is no fault.
#[derive(Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    body: Bytes,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum RemoteError {
    /// Nobody answers there, or not now: asking again may help.
    Away(String),
    /// The server refuses; it stays so until somebody changes something.
    Refused(Fault),
    /// Whatever answers there is no server of ours.
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
            // What a server says repeats what others named.
            Self::Refused(Fault { error, status, code }) => {
                write!(f, "{} ({status}, {})", printable(error), printable(code))
            }
            Self::Strange(why) => write!(f, "the server's answer cannot be understood: is it one of ours? ({why})"),
        }
    }
}

/// Asks one server.
#[derive(Debug)]
pub(crate) struct Remote<'u> {
    url: &'u ServerUrl,
}

impl<'u> Remote<'u> {
    pub(crate) fn new(url: &'u ServerUrl) -> Self {
        Self { url }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Answer, RemoteError> {
        self.ask(Method::GET, path, Bytes::new(), ANSWERING).await
    }

    /// A question that the server may take its time with.
    pub(crate) async fn get_waiting(&self, path: &str, wait: Duration) -> Result<Answer, RemoteError> {
        self.ask(Method::GET, path, Bytes::new(), ANSWERING.saturating_add(wait)).await
    }

    pub(crate) async fn post(&self, path: &str, body: String) -> Result<Answer, RemoteError> {
        self.ask(Method::POST, path, body.into(), ANSWERING).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Answer, RemoteError> {
        self.ask(Method::DELETE, path, Bytes::new(), ANSWERING).await
    }

    async fn ask(&self, method: Method, path: &str, body: Bytes, patience: Duration) -> Result<Answer, RemoteError> {
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
    let asked = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        Ok(Answer { status: head.status, body: body.collect().await?.to_bytes() })
    };
    // The connection moves the bytes; it is of no interest once there is an answer.
    tokio::select! {
        biased;
        answer = asked => answer,
        Err(broken) = connection => Err(broken),
    }
}

impl Answer {
    /// Whether there was nothing to answer with.
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
    fn names_are_encoded_and_what_was_not_said_is_left_out() {
        assert_eq!(encoded("a/b ü?"), "a%2Fb%20%C3%BC%3F");
        assert_eq!(query(&[("queue", Some("a&b")), ("from", None), ("limit", Some("3"))]), "?queue=a%26b&limit=3");
        assert_eq!(query(&[("queue", None)]), "");
    }
}
