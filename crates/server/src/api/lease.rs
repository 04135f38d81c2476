//! `POST /api/v1/lease/{lease}/extend` gives a consumer more time, in all partitions of its lease.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use reveille::moment;
use serde::Deserialize;
use serde_json::json;

use super::answer;
use crate::context::Context;
use crate::problem::Problem;
use crate::request_body::Whole;
use crate::wire::json::{parse, slip};
use crate::wire::names::{self, Names};

/// For clients that give no time.
const USUAL: Duration = Duration::from_secs(60);

#[derive(Debug, Default, Deserialize)]
struct Body {
    seconds: Option<f64>,
}

/// The Python client sends no body at all, and others send an empty object: both mean [`USUAL`].
pub(super) async fn extend(
    State(context): State<Arc<Context>>,
    Names(lease): Names<String>,
    Whole(body): Whole,
) -> Result<Response, Problem> {
    let time = time_in(&body)?;
    let renewed = match names::lease(&lease) {
        Some(id) => context.messages.renew_strictly(id, Some(time)).await?,
        None => None,
    };
    let until = renewed.map(|renewed| moment::spell(renewed.until));
    Ok(answer::ok(&json!({
        "leaseId": lease,
        "success": renewed.is_some(),
        "renewed": renewed.map_or(0, |renewed| renewed.partitions),
        "error": renewed.is_none().then_some("invalid or expired lease"),
        "newExpiresAt": until,
        "expiresAt": until,
        "lease_expires_at": until,
    })))
}

fn time_in(body: &[u8]) -> Result<Duration, Problem> {
    if body.is_empty() {
        return Ok(USUAL);
    }
    let fields: Body = parse(body)?;
    slip::refuse(body, &["seconds"])?;
    let Some(seconds) = fields.seconds else { return Ok(USUAL) };
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| {
        Problem::invalid(format!("seconds must be more than zero, and less than a lifetime, not {seconds:e}"))
    })
}
