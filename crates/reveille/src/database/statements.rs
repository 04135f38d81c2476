//! The statements of the database layer.
//!
//! Next: [`super::statement`] for what a statement is.

use super::statement::statements;

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
    /// Send a notification on a channel.
    NOTIFY = "database/notify.sql" (TEXT, TEXT);

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
    /// The signatures under a function's name, and which of them this transaction wrote.
    SIGNATURES = "database/migrate/signatures.sql" (TEXT, TEXT);
    /// Everything that lives in the schema.
    OBJECTS = "database/migrate/objects.sql" (TEXT);
    /// Everything our migrations made.
    MADE = "database/migrate/made.sql" ();

}
