//! Weighs answers: how many bytes wait until their clients take them.
//!
//! Promises that the answers of all routes together stay within `max_in_flight`. A question whose
//! answer finds no room is to be asked again. What was done must be told whatever it weighs, so a
//! route that does much asks for room before it begins.

use axum::body::Body;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::body::Body as _;

use crate::budget::{Share, held};
use crate::fault::OVERLOADED;
use crate::problem::Problem;
use crate::service::Service;

/// Smaller answers fit into a socket's own buffer.
const WEIGHED_FROM: usize = 16 * 1024;
/// What is told about one message of many takes about so many bytes.
pub(crate) const TOLD: usize = 300;

/// Room for an answer of about so many bytes, before anything is done.
pub(crate) fn room_for(service: &Service, bytes: usize) -> Result<Share, Problem> {
    let mut share = Share::default();
    if bytes < WEIGHED_FROM || service.answers.take(&mut share, bytes) {
        return Ok(share);
    }
    service.figures.overloaded.add(1);
    Err(OVERLOADED)
}

/// The same answer, holding its share of the room until the last byte of it was given to the
/// system.
pub(crate) async fn weigh(service: &Service, asked: &Method, answer: Response) -> Response {
    let bytes = answer.size_hint().lower();
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if bytes < WEIGHED_FROM {
        return answer;
    }
    let share = match room_for(service, bytes) {
        Ok(share) => share,
        Err(problem) if asked == Method::GET => return problem.into_response(),
        // It was done, and must be told.
        Err(_) => service.answers.take_what_is_left(),
    };
    let (head, body) = answer.into_parts();
    match body.collect().await {
        Ok(whole) => Response::from_parts(head, Body::from(held(whole.to_bytes(), share))),
        Err(_) => Response::from_parts(head, Body::empty()),
    }
}
