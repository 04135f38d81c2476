//! What a client is told when it does not get what it asked for.
//!
//! A stable `code` for programs, a sentence for people, nothing internal.

use std::borrow::Cow;

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::net::TcpStream;

/// One way of not getting it.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) sentence: Cow<'static, str>,
}

/// Trying again sooner would only find the same answer in our cache.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// What is sent to one client too many, before anything was read from it.
const FULL_HOUSE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
    connection: close\r\ncontent-length: 76\r\n\r\n\
    {\"error\":\"too many clients are connected\",\"code\":\"too_many_connections\"}    ";

impl Problem {
    /// One that is always told in the same words.
    pub(crate) const fn new(status: StatusCode, code: &'static str, sentence: &'static str) -> Self {
        Self { status, code, sentence: Cow::Borrowed(sentence) }
    }

    /// The request says something that cannot be.
    pub(crate) fn invalid(sentence: impl Into<Cow<'static, str>>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: "invalid_request", sentence: sentence.into() }
    }

    /// Whether the same request may be answered differently in a moment.
    fn passes(&self) -> bool {
        matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let passes = self.passes();
        let mut answer = (self.status, Json(json!({ "error": self.sentence, "code": self.code }))).into_response();
        if passes {
            answer.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
        }
        answer
    }
}

/// 503, with the time after which another try may be answered differently.
pub(crate) fn come_back_later(body: impl IntoResponse) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, RETRY_AFTER_SECONDS)], body).into_response()
}

/// Tells a client to come back later, without waiting for it: a client that does not listen costs
/// nothing.
pub(crate) fn turn_away(stream: &TcpStream) {
    let _ = stream.try_write(FULL_HOUSE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_one_too_many_says_its_length_truly() {
        let text = std::str::from_utf8(FULL_HOUSE).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();

        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{} bytes", body.len());
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["code"], "too_many_connections");
    }
}
