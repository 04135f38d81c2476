//! The statements of a node: it joins, sends heartbeats and hints, and leaves.

use crate::database::statement::statements;

statements! {
    /// Make a node known.
    JOIN = "node/join.sql" (INT8, TEXT);
    /// Report that a node lives, prove its link, and list the other live nodes.
    HEARTBEAT = "node/heartbeat.sql" (INT8, TEXT, TEXT, TEXT, FLOAT8);
    /// Send hints to the other nodes.
    BROADCAST = "node/broadcast.sql" (TEXT, TEXT_ARRAY, INT8, FLOAT8);
    /// Remove a node.
    LEAVE = "node/leave.sql" (INT8);
}
