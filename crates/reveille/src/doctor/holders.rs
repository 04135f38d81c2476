//! What keeps dead rows from being removed: the usual reason why a queue in PostgreSQL becomes
//! slow.
//!
//! A role without `pg_monitor` sees only its own sessions, so finding none is then no proof.

use std::time::Duration;

use super::finding::Finding;
use super::statements::XMIN_HOLDERS;
use crate::database::connection::Connection;
use crate::database::error::DatabaseError;

/// More than a person reads.
const MOST: i64 = 20;

/// A session, transaction or slot that keeps dead rows from being removed.
#[derive(Debug, Clone, PartialEq)]
pub struct XminHolder {
    /// `session`, `prepared transaction` or `replication slot`.
    pub kind: String,
    /// The session's process id and application, the transaction's or the slot's name.
    pub who: String,
    /// For how many seconds; infinite for an unused replication slot.
    pub seconds: f64,
}

pub(super) async fn read(connection: &Connection, older_than: Duration) -> Result<Vec<XminHolder>, DatabaseError> {
    let rows = connection.query(&XMIN_HOLDERS, &[&older_than.as_secs_f64(), &MOST]).await?;
    let holder = |row: &tokio_postgres::Row| XminHolder {
        kind: row.get("kind"),
        who: row.get("who"),
        seconds: row.get("seconds"),
    };
    Ok(rows.iter().map(holder).collect())
}

pub(super) fn judge(holders: &[XminHolder], older_than: Duration) -> Finding {
    let Some(worst) = holders.first() else {
        return Finding::ok("xmin", format!("no session we can see has held a snapshot for {older_than:?}"));
    };
    let since = if worst.seconds.is_finite() { format!("for {:.0} s", worst.seconds) } else { "while unused".into() };
    let others = match holders.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let sentence =
        format!("{} {} keeps dead rows from being removed {since}{others}: queues become slow", worst.kind, worst.who);
    let remedy = match worst.kind.as_str() {
        "session" => "end that transaction, or set idle_in_transaction_session_timeout for its role",
        "prepared transaction" => "commit or roll it back with COMMIT PREPARED or ROLLBACK PREPARED",
        _ => "drop the slot with pg_drop_replication_slot, or bring its consumer back",
    };
    Finding::warn("xmin", sentence, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_holder_is_named_with_its_remedy() {
        let holder = |kind: &str, seconds| XminHolder { kind: kind.into(), who: "x".into(), seconds };

        let finding = judge(&[holder("replication slot", f64::INFINITY), holder("session", 400.0)], Duration::ZERO);

        assert_eq!(
            finding.sentence,
            "replication slot x keeps dead rows from being removed while unused, and 1 more: queues become slow"
        );
        assert!(finding.remedy.contains("pg_drop_replication_slot"));
    }
}
