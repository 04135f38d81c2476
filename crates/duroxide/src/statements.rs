//! The statements of this crate, one file each.
//!
//! Next: [`crate::store`], which runs them.

use reveille::database::Statement;
use reveille::service::Survey;
use tokio_postgres::types::Type;

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $path:literal ($($type:ident),* $(,)?);)*) => {
        $(
            $(#[$doc])*
            pub(crate) static $name: Statement = Statement {
                name: concat!("duroxide/", $path),
                sql: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $path)),
                types: &[$(Type::$type),*],
            };
        )*

        /// Every statement that is sent as it stands.
        #[cfg(test)]
        pub(crate) static ALL: &[&Statement] = &[$(&$name),*];
    };
}

statements! {
    /// Claim instances that have messages.
    CLAIM_TURNS = "orchestrations/claim.sql" (TEXT_ARRAY, INT8, FLOAT8, INT8, INT8);
    /// What claimed turns need beside their messages, if the claim could not see it.
    TURN_CONTENT = "orchestrations/content.sql" (TEXT_ARRAY, TEXT_ARRAY);
    /// Commit a turn.
    SETTLE_TURN = "orchestrations/settle.sql" (
        TEXT, TEXT, INT8, TEXT, TEXT, TEXT, INT8, TEXT, TEXT, BOOL, TEXT, BOOL, INT8_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, BOOL,
        TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY, FLOAT8_ARRAY, BOOL_ARRAY, BOOL_ARRAY
    );
    /// Give a turn back.
    ABANDON_TURN = "orchestrations/abandon.sql" (TEXT, TEXT, FLOAT8, BOOL);
    /// Keep a turn.
    RENEW_TURN = "orchestrations/renew.sql" (TEXT, TEXT, FLOAT8);
    /// Add a message.
    ENQUEUE_MESSAGE = "orchestrations/enqueue.sql" (TEXT, TEXT, FLOAT8, FLOAT8, BOOL, BOOL);

    /// Claim activities that are of no session.
    CLAIM_PLAIN = "activities/claim_plain.sql" (TEXT_ARRAY, INT8, FLOAT8, TEXT_ARRAY, BOOL, BOOL);
    /// Claim activities.
    CLAIM_ACTIVITIES = "activities/claim.sql" (TEXT_ARRAY, INT8, FLOAT8, TEXT, FLOAT8, TEXT_ARRAY, BOOL, BOOL);
    /// Add an activity.
    ENQUEUE_ACTIVITY = "activities/enqueue.sql" (TEXT, INT8, INT8, TEXT, TEXT, TEXT);
    /// Remove an activity and record its outcome.
    SETTLE_ACTIVITY = "activities/settle.sql" (TEXT, TEXT, TEXT);
    /// Remove an activity, record its outcome, and take the next.
    RELAY_ACTIVITY = "activities/relay.sql" (TEXT, TEXT, TEXT, TEXT, FLOAT8, TEXT_ARRAY, BOOL, BOOL);
    /// Keep an activity.
    RENEW_ACTIVITY = "activities/renew.sql" (TEXT, FLOAT8);
    /// Give activities back.
    ABANDON_ACTIVITIES = "activities/abandon.sql" (TEXT_ARRAY, FLOAT8, BOOL);

    /// Keep sessions.
    RENEW_SESSIONS = "sessions/renew.sql" (TEXT_ARRAY, FLOAT8, FLOAT8);
    /// Remove sessions nobody needs.
    CLEAN_SESSIONS = "sessions/clean.sql" ();

    /// The events of an execution.
    READ_HISTORY = "history/read.sql" (TEXT, INT8);
    /// Append events outside a turn.
    APPEND_HISTORY = "history/append.sql" (TEXT, INT8, INT8_ARRAY, TEXT_ARRAY);
    /// The custom status.
    CUSTOM_STATUS = "history/custom_status.sql" (TEXT);
    /// How large an instance is.
    INSTANCE_STATS = "history/stats.sql" (TEXT);
    /// Values of an instance.
    READ_VALUES = "kv/read.sql" (TEXT, TEXT);

    /// Instances by status.
    LIST_INSTANCES = "admin/list.sql" (TEXT);
    /// Executions of an instance.
    LIST_EXECUTIONS = "admin/executions.sql" (TEXT, INT8);
    /// One instance.
    READ_INSTANCE = "admin/instance.sql" (TEXT);
    /// Children of an instance.
    LIST_CHILDREN = "admin/children.sql" (TEXT);
    /// Counts of everything.
    COUNT_ALL = "admin/metrics.sql" ();
    /// Counts of what waits.
    COUNT_WAITING = "admin/depths.sql" ();
    /// Delete instances.
    DELETE_INSTANCES = "admin/delete.sql" (TEXT_ARRAY, BOOL);
    /// Find instances to delete or prune.
    FIND_INSTANCES = "admin/find.sql" (TEXT_ARRAY, INT8, INT8, BOOL);
    /// Remove old executions.
    PRUNE_EXECUTIONS = "admin/prune.sql" (TEXT, INT8, INT8);
}

/// What the heartbeat reads about turns.
pub(crate) const SURVEY_TURNS: Survey = Survey::new(include_str!("../sql/orchestrations/survey.sql"));

/// What the heartbeat reads about activities.
pub(crate) const SURVEY_ACTIVITIES: Survey = Survey::new(include_str!("../sql/activities/survey.sql"));

#[cfg(test)]
mod plans;

#[cfg(test)]
mod tests {
    use reveille::database::{Database, DatabaseOptions, SchemaName};
    use reveille_testkit::TestDatabase;

    use super::*;

    #[tokio::test]
    async fn every_statement_can_be_prepared() {
        let test = TestDatabase::empty().await;
        let schema: SchemaName = "We\"ird".parse().unwrap();
        let database = Database::connect(DatabaseOptions::new(test.url())).await.unwrap();
        let store = database.with_schema(schema.clone()).unwrap();
        store.migrate_from(&crate::schema::SOURCE).await.unwrap();

        let client = test.client().await;

        for statement in ALL {
            let prepared = client.prepare_typed(&statement.text(&schema), statement.types).await;
            assert!(prepared.is_ok(), "{}: {:?}", statement.name, prepared.err());
        }
    }

    #[tokio::test]
    async fn a_schema_is_migrated_once_and_apart_from_the_others() {
        let test = TestDatabase::empty().await;
        let database = Database::connect(DatabaseOptions::new(test.url())).await.unwrap();
        let (one, other) = (
            database.with_schema("one".parse().unwrap()).unwrap(),
            database.with_schema("other".parse().unwrap()).unwrap(),
        );

        let first = one.migrate_from(&crate::schema::SOURCE).await.unwrap();
        let again = one.migrate_from(&crate::schema::SOURCE).await.unwrap();
        let apart = other.migrate_from(&crate::schema::SOURCE).await.unwrap();

        assert_eq!(first.migrations, [(3, "store")]);
        assert_eq!(again.migrations, []);
        assert_eq!(apart, first);
    }
}
