//! Answers of several routes.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use reveille::messages::Page;
use serde::Serialize;

use crate::problem::Problem;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const UNWRITABLE: Problem =
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "this server could not write its answer");

/// Which page of a list is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRequest {
    pub(super) limit: u32,
    pub(super) offset: u32,
}

impl PageRequest {
    /// The same for the library.
    pub(super) fn in_messages(self) -> Result<Page, Problem> {
        Ok(Page::new(self.limit, self.offset)?)
    }
}

/// Which page of a list this is, beside the list itself.
#[derive(Debug, Serialize)]
pub(super) struct Pagination {
    limit: u32,
    offset: u32,
    total: i64,
    #[serde(rename = "hasMore")]
    has_more: bool,
}

impl Pagination {
    /// A page that ended early, because of its bytes, has a lower limit: the next page begins that
    /// much further on.
    pub(super) fn new(PageRequest { limit, offset }: PageRequest, shown: usize, total: i64) -> Self {
        let behind = i64::from(offset) + i64::try_from(shown).unwrap_or(i64::MAX);
        let has_more = behind < total;
        let cut = u32::try_from(shown).ok().filter(|shown| has_more && *shown > 0);
        Self { limit: cut.unwrap_or(limit), offset, total, has_more }
    }
}

/// No content: no body, and no header about its length or type. A 204 with such a header makes
/// Node's client drop the connection.
pub(super) fn nothing() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => of_bytes(status, bytes),
        Err(_) => UNWRITABLE.into_response(),
    }
}

pub(super) fn ok(value: &impl Serialize) -> Response {
    json(StatusCode::OK, value)
}

pub(super) fn of_bytes(status: StatusCode, bytes: impl Into<Bytes>) -> Response {
    (status, [(CONTENT_TYPE, JSON)], Body::from(bytes.into())).into_response()
}
