//! What kind of body a request may have.
//!
//! A body that has any bytes must be declared as JSON. Without this a page of any origin could send
//! one without a preflight: browsers send whatever a form can send. A content-encoding is refused,
//! because we would not decode it.

use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, TRANSFER_ENCODING};
use axum::http::{HeaderValue, StatusCode};
use hyper::body::Body;

use crate::problem::Problem;

pub(crate) const NOT_JSON: Problem = Problem::new(
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    "not_json",
    "a body needs the header content-type: application/json",
);
const ENCODED: Problem = Problem::new(
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    "unknown_encoding",
    "bodies are not decoded: send it without content-encoding",
);
const OTHERWISE_TRANSFERRED: Problem = Problem::new(
    StatusCode::NOT_IMPLEMENTED,
    "unknown_encoding",
    "the only transfer-encoding that is understood is chunked",
);

/// What the request head declares the body to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declared {
    Json,
    /// Nothing, or something else: the body must have no bytes.
    Other,
}

/// Refuses a body whose headers are reason enough.
pub(crate) fn judge(headers: &HeaderMap, body: &impl Body) -> Result<Declared, Problem> {
    // hyper treats every list that ends with chunked as chunked alone.
    if headers.get_all(TRANSFER_ENCODING).iter().any(|value| !is(value, "chunked")) {
        return Err(OTHERWISE_TRANSFERRED);
    }
    if body.is_end_stream() {
        return Ok(Declared::Other);
    }
    if headers.get(CONTENT_ENCODING).is_some_and(|value| !is(value, "identity")) {
        return Err(ENCODED);
    }
    if headers.get(CONTENT_TYPE).is_some_and(is_json) {
        return Ok(Declared::Json);
    }
    // A chunked body may still turn out to be empty.
    if body.size_hint().lower() > 0 { Err(NOT_JSON) } else { Ok(Declared::Other) }
}

fn is(value: &HeaderValue, word: &str) -> bool {
    value.to_str().is_ok_and(|text| text.trim().eq_ignore_ascii_case(word))
}

fn is_json(value: &HeaderValue) -> bool {
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}
