//! Takes in the body of a request, whole, before any route sees it.
//!
//! Promises that a body is within the limit and complete in time. A route therefore never holds anything while it waits
//! for its client's bytes.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use tokio::time::timeout;

use crate::options::Limits;
use crate::problem::Problem;

const TOO_LARGE: Problem = Problem {
    status: StatusCode::PAYLOAD_TOO_LARGE,
    code: "body_too_large",
    sentence: "the body is larger than this server accepts",
};
const TOO_SLOW: Problem =
    Problem { status: StatusCode::REQUEST_TIMEOUT, code: "body_too_slow", sentence: "the body did not arrive in time" };
const BROKEN: Problem =
    Problem { status: StatusCode::BAD_REQUEST, code: "body_broken", sentence: "the body could not be read" };

pub(crate) async fn take_in(State(limits): State<Arc<Limits>>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    // A client that announces too much is told before it sends it.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limits.max_body {
        return TOO_LARGE.into_response();
    }
    match timeout(limits.body_timeout, Limited::new(body, limits.max_body).collect()).await {
        Ok(Ok(whole)) => next.run(Request::from_parts(head, Body::from(whole.to_bytes()))).await,
        Ok(Err(error)) if error.is::<LengthLimitError>() => TOO_LARGE.into_response(),
        Ok(Err(_)) => BROKEN.into_response(),
        Err(_) => TOO_SLOW.into_response(),
    }
}
