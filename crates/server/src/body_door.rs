//! Takes in the body of a request, whole, before any route sees it.
//!
//! Promises that a body is within the limit and complete in time, and that all of them together
//! stay within a budget of bytes, each until the last of its bytes is dropped. A route therefore
//! never holds anything while it waits for its client's bytes. Refuses a body where no route reads
//! one: it would be kept for as long as a pop waits.

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

/// Half of what a connection reads into.
const COPIED_MAX: usize = 4096;

/// What may come in.
#[derive(Debug, Clone)]
pub(crate) struct Doorway {
    pub(crate) limits: Arc<Limits>,
    /// Bytes of bodies that came and are still needed.
    pub(crate) bodies: Budget,
}

/// The body as it was taken in, for a route.
pub(crate) struct Whole(pub(crate) Bytes);

impl<S: Sync> FromRequest<S> for Whole {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        request.into_body().collect().await.map(|body| Self(body.to_bytes())).map_err(|_| BROKEN)
    }
}

impl Doorway {
    /// The body, whole; it holds its share of the budget.
    pub(crate) async fn take_in(&self, method: &Method, body: Incoming) -> Result<Bytes, Problem> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let (most, beyond) = match *method {
            Method::POST | Method::PUT | Method::PATCH => (self.limits.max_body, TOO_LARGE),
            _ => (0, UNEXPECTED),
        };
        timeout(self.limits.body_timeout, self.read(body, most, beyond)).await.unwrap_or(Err(TOO_SLOW))
    }

    async fn read(&self, body: Incoming, most: usize, beyond: Problem) -> Result<Bytes, Problem> {
        // A client that announces too much is told before it sends it.
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
            // By what has come, not by what was announced: a client that dawdles takes no room from
            // others.
            if !self.bodies.take(&mut share, bytes.len()) {
                return Err(OVERLOADED);
            }
            pieces.add(bytes, announced);
        }
        Ok(pieces.whole(share))
    }
}

/// Most bodies come in one piece, which need not be copied unless it is small.
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
            // As a part of the connection's buffer it would keep the whole of it for as long as its
            // messages are on their way.
            Self::One(bytes) if bytes.len() <= COPIED_MAX => held(bytes.to_vec(), share),
            Self::One(bytes) => held(bytes, share),
            Self::Many(bytes) => held(bytes, share),
        }
    }
}
