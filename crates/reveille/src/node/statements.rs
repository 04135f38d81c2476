//! The statements of a node: how it joins, lives, tells the others and leaves.

use crate::database::statement::statements;

statements! {
    /// Make a node known.
    JOIN = "node/join.sql" (INT8, TEXT);
    /// A node lives; its link is proven; who else lives.
    HEARTBEAT = "node/heartbeat.sql" (INT8, TEXT, TEXT, TEXT, FLOAT8);
    /// Tell the other nodes.
    BROADCAST = "node/broadcast.sql" (TEXT, TEXT_ARRAY, INT8, FLOAT8);
    /// A node leaves.
    LEAVE = "node/leave.sql" (INT8);
}
