//! `POST /api/v1/lease/{lease}/extend` gives a consumer more time, in all partitions of its lease.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::answer;
use crate::body_door::Whole;
use crate::problem::Problem;
use crate::service::Service;
use crate::wire::moment;
use crate::wire::names::{self, Names};

/// For whoever does not say how long.
const USUAL: Duration = Duration::from_secs(60);

/// The Python client sends no body at all, so whatever says no number of seconds means the usual.
pub(super) async fn extend(
    State(service): State<Arc<Service>>,
    Names(lease): Names<String>,
    Whole(body): Whole,
) -> Result<Response, Problem> {
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let time = match said["seconds"].as_f64() {
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|time| !time.is_zero())
            .ok_or_else(|| Problem::invalid("seconds must be more than zero"))?,
        None => USUAL,
    };
    let renewed = match names::lease(&lease) {
        Some(id) => service.messages.renew_strictly(id, Some(time)).await?,
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
