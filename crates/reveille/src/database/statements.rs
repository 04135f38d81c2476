//! The statements of the database layer, and the list of all statements of this crate.
//!
//! Next: [`super::statement`] for what a statement is.

use super::statement::{Statement, statements};

statements! {
    /// This transaction's id and the server's timeline, for [`super::resolve`].
    CURRENT_TRANSACTION = "database/current_transaction.sql" ();
    /// How a transaction ended, and on which timeline the answer is true.
    TRANSACTION_STATUS = "database/transaction_status.sql" (TEXT);
    /// End the session that still holds a transaction open.
    END_TRANSACTION = "database/end_transaction.sql" (TEXT);
    /// The server's version, for poolers that do not pass it on.
    SERVER_VERSION = "database/server_version.sql" ();
    /// Settings that decide what a commit is worth.
    DURABILITY = "database/durability.sql" ();
    /// Say something on a channel.
    NOTIFY = "database/notify.sql" (TEXT, TEXT);

    /// Which session this is.
    SESSION = "database/lane/session.sql" ();
    /// End a session that was lost.
    END_SESSION = "database/lane/end_session.sql" (INT4, TEXT);

    /// Whether the bookkeeping tables and the schema exist.
    INSTALLED = "database/migrate/installed.sql" (TEXT);
    /// One migrator at a time for each schema.
    LOCK = "database/migrate/lock.sql" (INT8);
    /// Migrations that were applied.
    APPLIED = "database/migrate/applied.sql" ();
    /// Note that a migration was applied, with what it made.
    RECORD = "database/migrate/record.sql" (INT4, TEXT, TEXT, TEXT);
    /// Functions as they were last replaced.
    FUNCTIONS = "database/migrate/functions.sql" ();
    /// Note a function's text.
    RECORD_FUNCTION = "database/migrate/record_function.sql" (TEXT, TEXT, TEXT);
    /// Forget a function that is no more.
    FORGET_FUNCTION = "database/migrate/forget_function.sql" (TEXT);
    /// The signatures under a function's name, and which of them are fresh.
    SIGNATURES = "database/migrate/signatures.sql" (TEXT, TEXT);
    /// Everything that lives in the schema.
    OBJECTS = "database/migrate/objects.sql" (TEXT);
    /// Everything our migrations made.
    MADE = "database/migrate/made.sql" ();

    /// Make a node known.
    JOIN = "database/wake/join.sql" (INT8, TEXT);
    /// A node lives; its link is proven; who else lives.
    HEARTBEAT = "database/wake/heartbeat.sql" (INT8, TEXT, TEXT, TEXT, FLOAT8);
    /// Tell the other nodes.
    HERALD = "database/wake/herald.sql" (TEXT, TEXT_ARRAY, INT8, FLOAT8);
    /// A node leaves.
    LEAVE = "database/wake/leave.sql" (INT8);

    /// The database's clock.
    CLOCK = "database/examine/clock.sql" ();
    /// Who keeps dead rows from being removed.
    XMIN_HOLDERS = "database/examine/xmin_holders.sql" (FLOAT8, INT8);
    /// How full the queue of notifications is.
    NOTIFY_QUEUE = "database/examine/notify_queue.sql" ();
    /// Connections allowed, reserved and in use.
    CONNECTIONS = "database/examine/connections.sql" ();
    /// How many cursors nobody would ever look at.
    STRANDED = "database/examine/stranded.sql" ();
}

/// Every statement of this crate.
pub fn all() -> impl Iterator<Item = &'static Statement> {
    ALL.iter().chain(crate::messages::STATEMENTS).chain(crate::jobs::STATEMENTS).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_file_begins_with_its_contract() {
        for statement in all() {
            assert!(statement.sql.starts_with("-- "), "{} says not what it does", statement.name);
            assert!(statement.sql.contains("\n-- locks:"), "{} says not what it locks", statement.name);
        }
    }

    #[test]
    fn no_comment_names_the_schema() {
        // A name with a line break would end the comment.
        for statement in all() {
            let comments = statement.sql.lines().filter_map(|line| line.split_once("--")).map(|(_, comment)| comment);
            assert!(comments.into_iter().all(|comment| !comment.contains("{schema}")), "{}", statement.name);
        }
    }

    #[test]
    fn names_are_unique_and_every_parameter_has_a_type() {
        let mut names = HashSet::new();
        for statement in all() {
            assert!(names.insert(statement.name), "{} is declared twice", statement.name);
            let highest = (1..40).rev().find(|n| statement.sql.contains(&format!("${n}"))).unwrap_or(0);
            assert_eq!(highest, statement.types.len(), "{}", statement.name);
        }
    }
}
