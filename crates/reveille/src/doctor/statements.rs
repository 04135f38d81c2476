//! The doctor's statements.

use crate::database::statement::statements;

statements! {
    /// The database's clock.
    CLOCK = "doctor/clock.sql" ();
    /// What keeps dead rows from being removed.
    XMIN_HOLDERS = "doctor/xmin_holders.sql" (FLOAT8, INT8);
    /// How full the queue of notifications is.
    NOTIFY_QUEUE = "doctor/notify_queue.sql" ();
    /// Connections allowed, reserved and in use.
    CONNECTIONS = "doctor/connections.sql" ();
    /// How many partitions have undelivered messages for a group that will not be woken for them.
    STRANDED = "doctor/stranded.sql" ();
}
