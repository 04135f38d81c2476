//! `reveille migrate`: brings the schema up to date, shows its state, prints it, or removes it.

use reveille::database::{Migrated, SchemaName, SchemaStatus, Uninstall, Uninstalled, migration_script};
use reveille::moment;
use serde_json::{Value, json};

use crate::args::Migrate;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::open_database::OpenDatabase;
use crate::output;

pub(crate) async fn run(step: Migrate, config: &Config) -> Result<Exit, Failure> {
    match step {
        Migrate::Up { json } => {
            let done = OpenDatabase::with(config, async |database| database.migrate().await).await?;
            print_as(json, || migrated_json(&done), || migrated_text(&done))?;
        }
        Migrate::Status { json } => {
            let status = OpenDatabase::with(config, async |database| database.schema_status().await).await?;
            print_as(json, || status_json(&status), || status_text(&status))?;
        }
        Migrate::Sql { from } => {
            let schema: SchemaName = config.database.schema.parse().map_err(|fault| {
                Failure::new(Exit::WrongUse, vec![format!("database.schema = {:?}: {fault}", config.database.schema)])
            })?;
            output::print(&migration_script(&schema, from))?;
        }
        Migrate::Uninstall { yes: false, .. } => {
            let schema = &config.database.schema;
            let sentence =
                format!("this removes schema {schema} with all its messages and jobs, for ever; say --yes to do it");
            return Err(Failure::refused(sentence));
        }
        Migrate::Uninstall { force, json, .. } => {
            let how = if force { Uninstall::Forced } else { Uninstall::Carefully };
            let done = OpenDatabase::with(config, async |database| database.uninstall(how).await).await?;
            print_as(json, || json!({ "dropped": done.dropped, "left": done.left }), || uninstalled_text(&done))?;
        }
    }
    Ok(Exit::Done)
}

fn print_as(json: bool, as_json: impl FnOnce() -> Value, as_text: impl FnOnce() -> String) -> Result<(), Failure> {
    if json { output::json(&as_json()) } else { output::print(&as_text()) }
}

fn migrated_json(done: &Migrated) -> Value {
    json!({ "migrations": versions(&done.migrations), "functions": done.functions })
}

fn migrated_text(done: &Migrated) -> String {
    if *done == Migrated::default() {
        return "nothing to do: the schema is up to date\n".to_owned();
    }
    let migrations = done.migrations.iter().map(|(version, name)| format!("applied migration {version} ({name})\n"));
    let functions = done.functions.iter().map(|name| format!("wrote function {name}\n"));
    migrations.chain(functions).collect()
}

fn status_json(status: &SchemaStatus) -> Value {
    let applied = status.applied.iter().map(|applied| {
        let at = moment::spell_seconds(applied.at);
        json!({ "version": applied.version, "name": applied.name, "applied_at": at })
    });
    json!({
        "schema": status.schema,
        "known": status.known,
        "found": status.found,
        "applied": applied.collect::<Vec<_>>(),
        "pending": versions(&status.pending),
        "changed": status.changed,
        "usable": status.usable().is_ok(),
    })
}

fn status_text(status: &SchemaStatus) -> String {
    let head =
        format!("schema {} is at version {}; this program knows {}\n", status.schema, status.found, status.known);
    let applied = status.applied.iter().map(|applied| {
        let changed = if status.changed.contains(&applied.version) { ", with another text than ours" } else { "" };
        let when = moment::spell_seconds(applied.at);
        format!("{:4}  {}  applied {when}{changed}\n", applied.version, applied.name)
    });
    let pending = status.pending.iter().map(|(version, name)| format!("{version:4}  {name}  missing\n"));
    std::iter::once(head).chain(applied).chain(pending).collect()
}

fn uninstalled_text(done: &Uninstalled) -> String {
    let dropped = done.dropped.iter().map(|object| format!("dropped {object}\n"));
    dropped.chain(done.left.iter().map(|object| format!("left {object}\n"))).collect()
}

fn versions(list: &[(i32, &'static str)]) -> Vec<Value> {
    list.iter().map(|(version, name)| json!({ "version": version, "name": name })).collect()
}
