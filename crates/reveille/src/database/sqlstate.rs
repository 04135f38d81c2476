//! What a SQLSTATE means for the sender of the statement: one pure table.
//!
//! Promises a verdict for every five characters, known or not: first the exact code, then its
//! class, else [`SqlClass::Permanent`]. Knows no connection and no error type.
//!
//! Next: [`super::error`], which turns a verdict into a sentence.

/// What can be done about an error, by its SQLSTATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SqlClass {
    /// The same statement may succeed when it is sent again: a deadlock, a serialization failure, a
    /// plan gone stale.
    Transient,
    /// The connection is gone or the server is stopping; ask again on another connection.
    Shutdown,
    /// The server has no connection, memory or disk left for us.
    Exhausted,
    /// A statement, lock or idle limit ended it.
    Timeout,
    /// The values are refused (class 22, 23, 44, 54): another try ends the same, without the bad
    /// item it succeeds.
    Data,
    /// The role lacks a right.
    Permission,
    /// The login itself was refused.
    Refused,
    /// There is no database of that name.
    MissingDatabase,
    /// A table, column, function or schema that should be there is not.
    MissingObject,
    /// The session may only read.
    ReadOnly,
    /// A named statement belongs to another session: a transaction pooler stands in between.
    Pooler,
    /// Anything else: a mistake in a statement, or a broken server.
    Permanent,
}

/// Codes that do not follow their class. Sorted, so that a reader finds one and a test can check
/// it.
const CODES: &[(&str, SqlClass)] = &[
    ("25006", SqlClass::ReadOnly),
    ("25P03", SqlClass::Timeout), // idle in transaction for too long
    ("26000", SqlClass::Pooler),
    ("3D000", SqlClass::MissingDatabase),
    ("3F000", SqlClass::MissingObject),
    ("40002", SqlClass::Data), // a deferred constraint, found at commit
    ("42501", SqlClass::Permission),
    ("42703", SqlClass::MissingObject), // column
    ("42704", SqlClass::MissingObject), // type, role, …
    ("42883", SqlClass::MissingObject), // function
    ("42P01", SqlClass::MissingObject), // table
    ("42P05", SqlClass::Pooler),        // our statement's name is taken in a session that is not ours
    ("55006", SqlClass::Transient),     // object in use, as a database being cloned
    ("55P03", SqlClass::Timeout),       // lock_timeout, or nowait
    ("55P04", SqlClass::Transient),
    ("57014", SqlClass::Timeout), // statement_timeout, or the statement was cancelled
    ("57P01", SqlClass::Shutdown),
    ("57P02", SqlClass::Shutdown),
    ("57P03", SqlClass::Shutdown), // starting up or shutting down
    ("57P04", SqlClass::MissingDatabase),
    ("57P05", SqlClass::Shutdown), // idle session ended
];

const CLASSES: &[(&str, SqlClass)] = &[
    ("08", SqlClass::Shutdown), // 08P01 too: PgBouncer says it when the server behind it went away
    ("22", SqlClass::Data),
    ("23", SqlClass::Data),
    ("28", SqlClass::Refused),
    ("40", SqlClass::Transient),
    ("44", SqlClass::Data), // with check option
    ("53", SqlClass::Exhausted),
    ("54", SqlClass::Data), // a value too long for an index, an array too large: one item's fault
];

/// The verdict for a SQLSTATE.
pub fn classify(code: &str) -> SqlClass {
    let exact = CODES.iter().find(|(known, _)| *known == code);
    let class = CLASSES.iter().find(|(class, _)| code.starts_with(class));
    exact.or(class).map_or(SqlClass::Permanent, |(_, class)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_place_in_the_table() {
        assert!(CODES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(CLASSES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(CODES.iter().all(|(code, _)| code.len() == 5));
        assert!(CLASSES.iter().all(|(class, _)| class.len() == 2));
    }

    #[test]
    fn codes_are_judged_by_what_can_be_done_about_them() {
        let expected = [
            ("40001", SqlClass::Transient), // serialization_failure
            ("40P01", SqlClass::Transient), // deadlock_detected
            ("08006", SqlClass::Shutdown),
            ("08P01", SqlClass::Shutdown),
            ("57P01", SqlClass::Shutdown),
            ("53300", SqlClass::Exhausted), // too_many_connections
            ("53100", SqlClass::Exhausted), // disk_full
            ("57014", SqlClass::Timeout),
            ("55P03", SqlClass::Timeout),
            ("22021", SqlClass::Data), // character_not_in_repertoire
            ("23505", SqlClass::Data), // unique_violation
            ("54000", SqlClass::Data),
            ("42501", SqlClass::Permission),
            ("28P01", SqlClass::Refused),
            ("28000", SqlClass::Refused),
            ("3D000", SqlClass::MissingDatabase),
            ("42P01", SqlClass::MissingObject),
            ("3F000", SqlClass::MissingObject),
            ("25006", SqlClass::ReadOnly),
            ("26000", SqlClass::Pooler),
            ("42601", SqlClass::Permanent), // syntax_error
            ("25P02", SqlClass::Permanent), // in_failed_sql_transaction
            ("XX000", SqlClass::Permanent),
            ("ZZZZZ", SqlClass::Permanent),
            ("", SqlClass::Permanent),
        ];

        for (code, class) in expected {
            assert_eq!(classify(code), class, "{code}");
        }
    }
}
