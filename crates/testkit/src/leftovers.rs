//! Databases of runs that could not clean up after themselves.

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use tokio_postgres::Client;

/// Names the process that makes a database, so that a later run knows whether it still lives.
pub(crate) fn name_for_this_process() -> String {
    format!("test_{}_{:08x}", std::process::id(), crate::database::random())
}

/// Drops the databases of processes that are gone. Of several runs at a time one does it.
pub(crate) async fn sweep(admin: &Client) {
    let lock = "select pg_try_advisory_lock(hashtext('reveille test leftovers'))";
    if !admin.query_one(lock, &[]).await.is_ok_and(|row| row.get(0)) {
        return;
    }
    let named = "select datname::text from pg_database where datname like 'test\\_%' or datname like 'building\\_%'";
    let names = admin.query(named, &[]).await.expect("databases can be listed");
    for name in names.iter().map(|row| row.get::<_, &str>(0)).filter(|name| maker_is_gone(name)) {
        let drop = format!("drop database if exists {name} with (force)");
        if let Err(error) = admin.batch_execute(&drop).await {
            eprintln!("cannot drop the left-over database {name}: {error}");
        }
    }
}

/// A reused process id only delays the cleaning.
fn maker_is_gone(name: &str) -> bool {
    let pid = name.split('_').nth(1).and_then(|pid| pid.parse().ok());
    pid.is_some_and(|pid| kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_a_living_process_is_left_alone() {
        assert!(!maker_is_gone(&name_for_this_process()));
        assert!(!maker_is_gone("test_of_somebody"));
        assert!(maker_is_gone("test_2147483647_00000000"));
    }
}
