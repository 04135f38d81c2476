//! `/api/v1/system/maintenance`: pausing all pushes, or all pops, on every node.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use reveille::messages::Switch;
use serde::Deserialize;
use serde_json::json;

use super::answer;
use crate::body_door::Whole;
use crate::problem::Problem;
use crate::service::Service;
use crate::wire::json::parse;

#[derive(Debug, Deserialize)]
struct Body {
    enabled: Option<bool>,
}

pub(super) async fn pushes(State(service): State<Arc<Service>>) -> Result<Response, Problem> {
    told(&service).await
}

pub(super) async fn switch_pushes(
    State(service): State<Arc<Service>>,
    Whole(body): Whole,
) -> Result<Response, Problem> {
    service.messages.turn(Switch::PushPaused, wanted(&body)?).await?;
    told(&service).await
}

pub(super) async fn pops(State(service): State<Arc<Service>>) -> Result<Response, Problem> {
    told(&service).await
}

pub(super) async fn switch_pops(State(service): State<Arc<Service>>, Whole(body): Whole) -> Result<Response, Problem> {
    service.messages.turn(Switch::PopPaused, wanted(&body)?).await?;
    told(&service).await
}

fn wanted(body: &[u8]) -> Result<bool, Problem> {
    parse::<Body>(body)?.enabled.ok_or_else(|| Problem::invalid("enabled must be true or false"))
}

async fn told(service: &Service) -> Result<Response, Problem> {
    let pushes = service.messages.is_on(Switch::PushPaused).await?;
    let pops = service.messages.is_on(Switch::PopPaused).await?;
    Ok(answer::ok(&json!({
        "maintenanceMode": pushes,
        "popMaintenanceMode": pops,
        "bufferedMessages": service.messages.buffered().await?,
        "bufferHealthy": true,
    })))
}
