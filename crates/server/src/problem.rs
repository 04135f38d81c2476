//! The answer to a request that fails.
//!
//! It has a stable `code` for programs, a sentence for people, and nothing internal.

use std::borrow::Cow;

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::net::TcpStream;

/// One way in which a request fails.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) sentence: Cow<'static, str>,
}

/// Trying again sooner would only find the same answer in our cache.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Sent to a client beyond the limit on connections, before anything was read from it.
const TOO_MANY_CLIENTS: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
    connection: close\r\ncontent-length: 76\r\n\r\n\
    {\"error\":\"too many clients are connected\",\"code\":\"too_many_connections\"}    ";

impl Problem {
    /// A problem whose sentence never changes.
    pub(crate) const fn new(status: StatusCode, code: &'static str, sentence: &'static str) -> Self {
        Self { status, code, sentence: Cow::Borrowed(sentence) }
    }

    /// The request is not valid.
    pub(crate) fn invalid(sentence: impl Into<Cow<'static, str>>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: "invalid_request", sentence: sentence.into() }
    }

    /// Whether the same request may succeed in a moment.
    fn is_temporary(&self) -> bool {
        matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let is_temporary = self.is_temporary();
        let mut answer = (self.status, Json(json!({ "error": self.sentence, "code": self.code }))).into_response();
        if is_temporary {
            answer.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
        }
        answer
    }
}

/// 503, with the time after which another try may succeed.
pub(crate) fn come_back_later(body: impl IntoResponse) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, RETRY_AFTER_SECONDS)], body).into_response()
}

/// Refuses a client without waiting for it: a client that does not read costs nothing.
pub(crate) fn turn_away(stream: &TcpStream) {
    let _ = stream.try_write(TOO_MANY_CLIENTS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_one_client_too_many_has_the_right_length() {
        let text = std::str::from_utf8(TOO_MANY_CLIENTS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();

        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{} bytes", body.len());
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["code"], "too_many_connections");
    }
}
