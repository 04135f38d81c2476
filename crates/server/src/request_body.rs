//! Reads the whole body of a request before any route sees it.
//!
//! Promises that a body is within the limit and complete in time, and that all bodies together stay
//! within a budget of bytes; a body counts until its last byte is dropped. So a route never holds
//! anything while it waits for its client's bytes. Refuses a body where no route reads one: a
//! waiting pop would keep it in memory.

use std::pin::pin;
use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::{Method, StatusCode};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::time::timeout;

use crate::budget::{Budget, Share, held};
use crate::fault::OVERLOADED;
use crate::options::Limits;
use crate::problem::Problem;

const TOO_LARGE: Problem =
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "the body is larger than this server accepts");
const TOO_SLOW: Problem = Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", "the body did not arrive in time");
const UNEXPECTED: Problem =
    Problem::new(StatusCode::BAD_REQUEST, "unexpected_body", "nothing reads the body of this request; send none");
const BROKEN: Problem = Problem::new(StatusCode::BAD_REQUEST, "body_broken", "the body could not be read");

/// Half of a connection's read buffer.
const COPIED_MAX: usize = 4096;

/// Reads bodies within the limits of the server.
#[derive(Debug, Clone)]
pub(crate) struct BodyReader {
    pub(crate) limits: Arc<Limits>,
    /// Bytes of bodies that are in memory.
    pub(crate) budget: Budget,
}

/// The body of a request, for a route.
pub(crate) struct Whole(pub(crate) Bytes);

impl<S: Sync> FromRequest<S> for Whole {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        request.into_body().collect().await.map(|body| Self(body.to_bytes())).map_err(|_| BROKEN)
    }
}

impl BodyReader {
    /// The whole body; it holds its share of the budget.
    pub(crate) async fn read(&self, method: &Method, body: Incoming) -> Result<Bytes, Problem> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let (most, beyond) = match *method {
            Method::POST | Method::PUT | Method::PATCH => (self.limits.max_body, TOO_LARGE),
            _ => (0, UNEXPECTED),
        };
        timeout(self.limits.body_timeout, self.read_at_most(most, beyond, body)).await.unwrap_or(Err(TOO_SLOW))
    }

    async fn read_at_most(&self, most: usize, beyond: Problem, body: Incoming) -> Result<Bytes, Problem> {
        // A client that announces too much is refused before it sends its body.
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > most {
            return Err(beyond);
        }
        let mut share = Share::default();
        let mut body = pin!(body);
        let mut pieces = Pieces::Nothing;
        while let Some(frame) = body.frame().await {
            let Ok(bytes) = frame.map_err(|_| BROKEN)?.into_data() else { continue };
            if pieces.len() + bytes.len() > most {
                return Err(beyond);
            }
            // Counts the bytes that came, not those announced: a slow client takes no room from
            // others.
            if !self.budget.take(&mut share, bytes.len()) {
                return Err(OVERLOADED);
            }
            pieces.add(bytes, announced);
        }
        Ok(pieces.whole(share))
    }
}

/// Most bodies come in one piece, which is copied only if it is small.
enum Pieces {
    Nothing,
    One(Bytes),
    Many(BytesMut),
}

impl Pieces {
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::One(bytes) => bytes.len(),
            Self::Many(bytes) => bytes.len(),
        }
    }

    fn add(&mut self, more: Bytes, announced: usize) {
        *self = match std::mem::replace(self, Self::Nothing) {
            Self::Nothing => Self::One(more),
            Self::One(first) => {
                let mut all = BytesMut::with_capacity(announced.min(2 * (first.len() + more.len()).max(1 << 20)));
                all.extend_from_slice(&first);
                all.extend_from_slice(&more);
                Self::Many(all)
            }
            Self::Many(mut all) => {
                all.extend_from_slice(&more);
                Self::Many(all)
            }
        }
    }

    fn whole(self, share: Share) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            // A slice of the connection's buffer would keep the whole buffer in memory until its
            // messages are stored.
            Self::One(bytes) if bytes.len() <= COPIED_MAX => held(bytes.to_vec(), share),
            Self::One(bytes) => held(bytes, share),
            Self::Many(bytes) => held(bytes, share),
        }
    }
}
