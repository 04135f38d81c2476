//! The settings our sessions run under, in the two ways they may be set.
//!
//! Direct: at login, for the whole session. Pooled: at the start of every transaction and only for
//! it, because a session behind a pooler is shared. READ COMMITTED is forced in both: our
//! statements lock the rows they read, and another isolation level, as a role's default, would turn
//! waits into errors. Names are looked up in `pg_catalog` alone, in both: otherwise any role that
//! may create in `public` could put a function there that we run with our rights.
//!
//! Next: [`super::connector`] sends the first, [`super::pipeline`] the second.

use std::fmt::Write;
use std::time::Duration;

use super::options::Settings;

/// A caller that dies between two statements of a transaction must not hold its locks for ever.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(60);

/// Everything of ours is written with its schema. `pg_temp` is named because it would come first if
/// it were not.
const SEARCH_PATH: &str = "pg_catalog,pg_temp";

/// The `options` of the login, after those the URL brings: ours are read last and win.
pub(crate) fn login_options(settings: &Settings, from_url: Option<&str>) -> String {
    let mut options = from_url.map(|options| format!("{options} ")).unwrap_or_default();
    for (name, value) in limits(settings) {
        let _ = write!(options, "-c {name}={value} ");
    }
    let _ = write!(options, "-c search_path={SEARCH_PATH} ");
    // `limit $1` makes a generic plan look dear, so that PostgreSQL would plan every claim again;
    // see research/postgres-performance.md, section 2. JIT has never paid for itself on our
    // statements. A small table may not be read whole either: the plan is kept, and the table
    // grows.
    options.push_str(
        "-c default_transaction_isolation=read\\ committed -c plan_cache_mode=force_generic_plan -c jit=off \
         -c enable_seqscan=off",
    );
    options
}

/// Opens a transaction that carries its own settings, in one message.
pub(crate) fn opening(settings: &Settings) -> String {
    // The plans inside functions are kept here, too.
    let mut sql = "begin isolation level read committed; set local enable_seqscan = off".to_owned();
    let _ = write!(sql, "; set local search_path = {SEARCH_PATH}");
    for (name, value) in limits(settings) {
        let _ = write!(sql, "; set local {name} = {value}");
    }
    sql
}

fn limits(settings: &Settings) -> [(&'static str, u128); 3] {
    [
        ("statement_timeout", milliseconds(settings.statement_timeout)),
        ("lock_timeout", milliseconds(settings.lock_timeout)),
        ("idle_in_transaction_session_timeout", milliseconds(IDLE_IN_TRANSACTION)),
    ]
}

/// Rounded up: to PostgreSQL zero is no limit, which a tenth of a millisecond does not mean.
fn milliseconds(limit: Duration) -> u128 {
    limit.as_micros().div_ceil(1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::DatabaseOptions;

    fn settings() -> Settings {
        let options = DatabaseOptions::new("host=/tmp user=me");
        options.statement_timeout(Duration::from_millis(1500)).lock_timeout(Duration::ZERO).settings().unwrap()
    }

    #[test]
    fn a_direct_session_is_set_at_login_after_what_the_url_says() {
        let options = login_options(&settings(), Some("-c work_mem=64MB"));

        assert!(options.starts_with("-c work_mem=64MB -c statement_timeout=1500 -c lock_timeout=0 "), "{options}");
        assert!(options.contains("default_transaction_isolation=read\\ committed"), "{options}");
        assert!(options.ends_with(" -c enable_seqscan=off"), "{options}");
    }

    #[test]
    fn a_very_short_limit_does_not_become_none() {
        assert_eq!(milliseconds(Duration::from_micros(100)), 1);
        assert_eq!(milliseconds(Duration::from_micros(1500)), 2);
        assert_eq!(milliseconds(Duration::ZERO), 0);
    }

    #[test]
    fn a_pooled_transaction_sets_nothing_beyond_itself() {
        let sql = opening(&settings());

        assert!(sql.starts_with("begin isolation level read committed; set local enable_seqscan = off; "), "{sql}");
        assert!(sql.split("; ").skip(1).all(|part| part.starts_with("set local ")), "{sql}");
    }
}
