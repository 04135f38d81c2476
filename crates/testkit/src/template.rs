//! The migrated database that tests are cloned from.

use reveille::database::{Database, DatabaseOptions, schema_fingerprint};
use tokio_postgres::Client;

use crate::cluster;
use crate::database::admin;

/// Templates of older schemas that are kept: switching between two branches need not build each
/// time.
const KEPT: i64 = 5;

/// The name of the template for this build's schema, made if it is not there.
pub(crate) async fn migrated() -> String {
    let name = format!("template_{}", &schema_fingerprint()[..16]);
    let admin = admin().await;
    if !exists(&admin, &name).await {
        make(&admin, &name).await;
    }
    name
}

async fn exists(admin: &Client, name: &str) -> bool {
    let found = admin.query_opt("select from pg_database where datname = $1", &[&name]).await;
    found.expect("databases can be listed").is_some()
}

/// Built under another name and renamed when whole: a run that dies half way leaves no half
/// template.
async fn make(admin: &Client, name: &str) {
    let lock = "select pg_advisory_lock(hashtext('reveille test template'))";
    admin.execute(lock, &[]).await.expect("a lock can be taken");
    if !exists(admin, name).await {
        let building = format!("building_{}", std::process::id());
        let run = async |sql: String| admin.batch_execute(&sql).await.expect("a template can be made");
        run(format!("drop database if exists {building} with (force)")).await;
        run(format!("create database {building} template template0")).await;
        migrate(&cluster::shared().connection_string(&building)).await;
        run(format!("alter database {building} rename to {name}")).await;
        run(format!("alter database {name} is_template true allow_connections false")).await;
        drop_old(admin).await;
    }
    let unlock = "select pg_advisory_unlock(hashtext('reveille test template'))";
    admin.execute(unlock, &[]).await.expect("a lock can be given back");
}

async fn migrate(url: &str) {
    let database = Database::connect(DatabaseOptions::new(url)).await.expect("the template can be reached");
    database.migrate().await.expect("the template can be migrated");
    database.close().await;
}

async fn drop_old(admin: &Client) {
    let old = "select datname::text from pg_database where datname like 'template\\_%' order by oid desc offset $1";
    for row in admin.query(old, &[&KEPT]).await.expect("databases can be listed") {
        let name: &str = row.get(0);
        // Another checkout may be cloning it right now; then it stays until the next time.
        let _ = admin.batch_execute(&format!("alter database {name} is_template false")).await;
        let _ = admin.batch_execute(&format!("drop database if exists {name}")).await;
    }
}
