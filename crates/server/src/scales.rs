//! Weighs answers: how many bytes wait until their clients take them.
//!
//! Promises that the answers of all routes together stay within `max_in_flight`. A GET whose answer
//! finds no room is refused with 429. A request that changed something must be answered whatever
//! its answer weighs, so a route with large answers reserves room before it begins.

use axum::body::Body;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::body::Body as _;

use crate::budget::{Share, held};
use crate::context::Context;
use crate::fault::OVERLOADED;
use crate::problem::Problem;

/// Smaller answers fit into a socket's own buffer.
const WEIGHED_FROM: usize = 16 * 1024;
/// About how many bytes an answer takes for one message of many.
pub(crate) const ITEM_BYTES: usize = 300;

/// Reserves room for an answer of about so many bytes, before anything is done.
pub(crate) fn room_for(context: &Context, bytes: usize) -> Result<Share, Problem> {
    let mut share = Share::default();
    if bytes < WEIGHED_FROM || context.answers.take(&mut share, bytes) {
        return Ok(share);
    }
    context.figures.overloaded.add(1);
    Err(OVERLOADED)
}

/// The same answer, holding its share of the room until the system has taken its last byte.
pub(crate) async fn weigh(context: &Context, method: &Method, answer: Response) -> Response {
    let bytes = answer.size_hint().lower();
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if bytes < WEIGHED_FROM {
        return answer;
    }
    let share = match room_for(context, bytes) {
        Ok(share) => share,
        Err(problem) if method == Method::GET => return problem.into_response(),
        // The request was carried out, so its client needs the answer.
        Err(_) => context.answers.take_what_is_left(),
    };
    let (head, body) = answer.into_parts();
    match body.collect().await {
        Ok(whole) => Response::from_parts(head, Body::from(held(whole.to_bytes(), share))),
        Err(_) => Response::from_parts(head, Body::empty()),
    }
}
