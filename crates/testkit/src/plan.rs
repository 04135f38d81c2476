//! What plan the server makes of a statement.

use reveille::database::{SchemaName, Statement};
use tokio_postgres::{Client, SimpleQueryMessage};

/// The generic plan, as our sessions use it. Works on PostgreSQL 15, which has no
/// `explain (generic_plan)`.
///
/// # Panics
/// When the statement cannot be prepared.
pub async fn generic_plan(client: &Client, schema: &SchemaName, statement: &Statement) -> String {
    let types: Vec<&str> = statement.types.iter().map(tokio_postgres::types::Type::name).collect();
    let listed = |parts: Vec<&str>| if parts.is_empty() { String::new() } else { format!("({})", parts.join(", ")) };
    let (nulls, types) = (listed(vec!["null"; types.len()]), listed(types));
    let prepare = format!(
        "set plan_cache_mode = force_generic_plan; deallocate all; prepare planned {types} as {}",
        statement.text(schema)
    );
    let prepared = client.batch_execute(&prepare).await;
    prepared.unwrap_or_else(|error| panic!("{} cannot be prepared: {error:?}", statement.name));
    let rows = client.simple_query(&format!("explain execute planned {nulls}")).await;
    let rows = rows.unwrap_or_else(|error| panic!("{} cannot be explained: {error:?}", statement.name));
    let line = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(ToOwned::to_owned),
        _ => None,
    };
    rows.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// Checks that the statement's plan is what its header promises, if it promises one.
///
/// # Panics
/// When the plan does not use the index.
pub async fn assert_planned(client: &Client, schema: &SchemaName, statement: &Statement) {
    let Some(index) = statement.planned_index() else { return };
    let plan = generic_plan(client, schema, statement).await;
    assert!(plan.contains(index), "{} does not use {index}:\n{plan}", statement.name);
}
