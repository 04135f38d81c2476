//! The statements by which a batcher ends a session that it lost.

use crate::database::statement::statements;

statements! {
    /// The process id and the start of this session.
    SESSION = "batcher/session.sql" ();
    /// End a session that was lost.
    END_SESSION = "batcher/end_session.sql" (INT4, TEXT);
}
