//! The statements of a lane: how it ends a session that it lost.

use crate::database::statement::statements;

statements! {
    /// Which session this is.
    SESSION = "batcher/session.sql" ();
    /// End a session that was lost.
    END_SESSION = "batcher/end_session.sql" (INT4, TEXT);
}
