//! The doctor's questions to PostgreSQL.

use crate::database::statement::statements;

statements! {
    /// The database's clock.
    CLOCK = "doctor/clock.sql" ();
    /// Who keeps dead rows from being removed.
    XMIN_HOLDERS = "doctor/xmin_holders.sql" (FLOAT8, INT8);
    /// How full the queue of notifications is.
    NOTIFY_QUEUE = "doctor/notify_queue.sql" ();
    /// Connections allowed, reserved and in use.
    CONNECTIONS = "doctor/connections.sql" ();
    /// How many cursors nobody would ever look at.
    STRANDED = "doctor/stranded.sql" ();
}
