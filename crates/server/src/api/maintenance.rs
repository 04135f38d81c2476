//! `/api/v1/system/maintenance`: pausing all pushes, or all pops, on every node.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use reveille::messages::Switch;
use serde::Deserialize;
use serde_json::json;

use super::answer;
use crate::context::Context;
use crate::problem::Problem;
use crate::request_body::Whole;
use crate::wire::json::parse;

#[derive(Debug, Deserialize)]
struct Body {
    enabled: Option<bool>,
}

pub(super) async fn pushes(State(context): State<Arc<Context>>) -> Result<Response, Problem> {
    switches(&context).await
}

pub(super) async fn switch_pushes(
    State(context): State<Arc<Context>>,
    Whole(body): Whole,
) -> Result<Response, Problem> {
    context.messages.turn(Switch::PushPaused, wanted(&body)?).await?;
    switches(&context).await
}

pub(super) async fn pops(State(context): State<Arc<Context>>) -> Result<Response, Problem> {
    switches(&context).await
}

pub(super) async fn switch_pops(State(context): State<Arc<Context>>, Whole(body): Whole) -> Result<Response, Problem> {
    context.messages.turn(Switch::PopPaused, wanted(&body)?).await?;
    switches(&context).await
}

fn wanted(body: &[u8]) -> Result<bool, Problem> {
    parse::<Body>(body)?.enabled.ok_or_else(|| Problem::invalid("enabled must be true or false"))
}

async fn switches(context: &Context) -> Result<Response, Problem> {
    let pushes = context.messages.is_on(Switch::PushPaused).await?;
    let pops = context.messages.is_on(Switch::PopPaused).await?;
    Ok(answer::ok(&json!({
        "maintenanceMode": pushes,
        "popMaintenanceMode": pops,
        "bufferedMessages": context.messages.buffered().await?,
        "bufferHealthy": true,
    })))
}
