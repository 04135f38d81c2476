//! Connecting: what is refused, in which words, and that nothing hangs or stays behind.

use std::time::Duration;

use reveille::database::{Database, DatabaseError, DatabaseOptions, Statement};
use reveille::service::{Idempotent, Retry};
use reveille_testkit::{TestCluster, TestDatabase};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::support::cluster::{Cluster, Setup, free_port};
use crate::support::{options, sessions, soon, until, with_causes};

async fn refused(options: DatabaseOptions) -> DatabaseError {
    soon(Database::connect(options)).await.expect_err("must be refused")
}

#[tokio::test]
async fn a_host_without_a_server_is_named() {
    let port = free_port();

    let error = refused(DatabaseOptions::new(format!("host=127.0.0.1 port={port} user=me"))).await;

    assert!(matches!(error, DatabaseError::Unreachable { .. }), "{error:?}");
    assert!(error.is_transient());
    assert_eq!(
        with_causes(&error),
        format!(
            "could not reach PostgreSQL at 127.0.0.1:{port}: check that it runs and that host and port are right: \
             Connection refused (os error 111)"
        )
    );
}

#[tokio::test]
async fn a_host_that_accepts_and_says_nothing_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = DatabaseOptions::new(format!("host=127.0.0.1 port={port} user=me"));
    let begun = Instant::now();

    let error = refused(options.connect_timeout(Duration::from_millis(300))).await;

    assert!(matches!(error, DatabaseError::Unreachable { .. }), "{error:?}");
    assert!(with_causes(&error).ends_with("no answer within 300ms"), "{}", with_causes(&error));
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_missing_socket_directory_is_named() {
    let error = refused(DatabaseOptions::new("host=/nowhere/at/all user=me dbname=shop")).await;

    assert!(error.to_string().starts_with("could not reach PostgreSQL at /nowhere/at/all:5432"), "{error}");
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_a_refused_login_and_is_not_repeated() {
    let cluster = Cluster::start(Setup {
        hba: "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n",
        ..Setup::default()
    });
    let admin = reveille_testkit::connect(&cluster.url("postgres")).await;
    admin.batch_execute("create role app login password 'right'").await.unwrap();

    for password in ["password=hush", ""] {
        let error = refused(DatabaseOptions::new(cluster.tcp(&format!("host=127.0.0.1 user=app {password}")))).await;

        assert!(matches!(&error, DatabaseError::Refused { user, .. } if user == "app"), "{error:?}");
        assert!(!error.is_transient());
        assert!(!format!("{error:?} {}", with_causes(&error)).contains("hush"));
    }
    let right = DatabaseOptions::new(cluster.tcp("host=127.0.0.1 user=app password=right"));
    soon(Database::connect(right)).await.unwrap().close().await;
}

#[tokio::test]
async fn a_missing_database_is_named() {
    let db = TestDatabase::empty().await;

    let error = refused(DatabaseOptions::new(db.url().replace(db.name(), "nowhere"))).await;

    assert!(error.to_string().starts_with("there is no database nowhere at /"), "{error}");
    assert_eq!(error.sqlstate(), Some("3D000"));
}

#[tokio::test]
async fn a_standby_is_refused_in_words_and_the_primary_behind_it_is_found() {
    let mut primary = Cluster::new();
    let standby = primary.standby();

    let error = refused(DatabaseOptions::new(standby.url("postgres"))).await;

    assert!(matches!(error, DatabaseError::ReadOnly { .. }), "{error:?}");
    assert!(error.to_string().contains("accepts no writes, it is a standby or set to read-only"), "{error}");
    let both = DatabaseOptions::new(in_order(&standby, &primary));
    soon(Database::connect(both)).await.unwrap().close().await;
}

fn in_order(first: &Cluster, last: &Cluster) -> String {
    let (dirs, ports) = ((first.dir().display(), last.dir().display()), (first.port(), last.port()));
    format!("host={},{} port={},{} user=postgres", dirs.0, dirs.1, ports.0, ports.1)
}

static WRITE: Statement = Statement { name: "test/write", sql: "create table public.written ()", types: &[] };

/// The error of the last host counts, and it says that the host accepts no writes: for a moment, in
/// a failover.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_waits_for_a_standby_at_the_end_of_the_list_to_be_promoted() {
    let mut primary = Cluster::new();
    let standby = tokio::task::block_in_place(|| primary.standby());
    let admin = reveille_testkit::connect(&standby.url("postgres")).await;
    let both = DatabaseOptions::new(in_order(&primary, &standby));
    let database = soon(Database::connect(both)).await.unwrap();
    let refused = Notify::new();
    let work = Idempotent(async || {
        let written = async { database.acquire().await?.execute(&WRITE, &[]).await }.await;
        if let Err(DatabaseError::ReadOnly { .. }) = written {
            refused.notify_one();
        }
        written
    });
    let promotion = async {
        refused.notified().await;
        admin.execute("select pg_promote()", &[]).await.unwrap();
    };

    tokio::task::block_in_place(|| drop(primary));
    let (written, ()) = soon(async { tokio::join!(Retry::default().attempts(u32::MAX).run(work), promotion) }).await;

    written.unwrap();
    database.close().await;
}

#[tokio::test]
async fn a_session_that_is_read_only_by_default_is_refused() {
    let db = TestDatabase::empty().await;

    let error =
        refused(DatabaseOptions::new(format!("{} options='-c default_transaction_read_only=on'", db.url()))).await;

    assert!(matches!(error, DatabaseError::ReadOnly { .. }), "{error:?}");
}

#[tokio::test]
async fn unusable_options_are_refused_before_anything_is_tried() {
    let error = refused(DatabaseOptions::new("user=me").schema("").pool_size(0)).await;

    assert!(matches!(&error, DatabaseError::Options(faults) if faults.faults().len() == 3), "{error:?}");
}

#[tokio::test]
async fn the_error_for_a_role_without_rights_names_the_right_it_lacks() {
    let db = TestDatabase::empty().await;
    let role = format!("r{}", db.name());
    let admin = db.client().await;
    admin.batch_execute(&format!("create role {role} login")).await.unwrap();
    let url = db.url().replace("user=postgres", &format!("user={role}"));
    let database = soon(Database::connect(DatabaseOptions::new(url))).await.unwrap();

    let error = soon(database.migrate()).await.unwrap_err();

    assert!(matches!(&error, DatabaseError::Permission { user, .. } if *user == role), "{error:?}");
    assert!(with_causes(&error).contains("permission denied for database"), "{}", with_causes(&error));
    database.close().await;
}

#[tokio::test]
async fn a_server_without_room_says_so() {
    let cluster = TestCluster::start(|options| {
        options.setting("max_connections", "4").setting("superuser_reserved_connections", "0")
    });
    let database = soon(Database::connect(DatabaseOptions::new(cluster.url("postgres")))).await.unwrap();
    let mut held = Vec::new();

    let error = loop {
        match database.connection(reveille::database::Purpose::Dedicated("test")).await {
            Ok(connection) => held.push(connection),
            Err(error) => break error,
        }
    };

    assert!(matches!(error, DatabaseError::Exhausted { .. }), "{error:?}");
    assert_eq!(error.sqlstate(), Some("53300"));
    database.close().await;
}

#[tokio::test]
async fn refused_connections_leave_no_session_behind() {
    let db = TestDatabase::empty().await;

    for _ in 0..5 {
        let read_only = format!("{} options='-c default_transaction_read_only=on'", db.url());
        refused(DatabaseOptions::new(read_only)).await;
    }

    until("every session is gone", async || sessions(&db).await == 0).await;
}

#[tokio::test]
async fn sessions_carry_their_limits_their_isolation_and_their_purpose() {
    let db = TestDatabase::empty().await;
    let admin = db.client().await;
    let serializable = format!("alter database {} set default_transaction_isolation = 'serializable'", db.name());
    admin.batch_execute(&serializable).await.unwrap();
    let chosen = options(&db).statement_timeout(Duration::from_millis(1234)).application_name("shop");
    let database = soon(Database::connect(chosen)).await.unwrap();
    let connection = database.connection(reveille::database::Purpose::Dedicated("push")).await.unwrap();

    let rows = connection.query(&SETTINGS, &[]).await.unwrap();

    let settings: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let expected = [
        ("application_name", "shop push"),
        ("idle_in_transaction_session_timeout", "60000"),
        ("lock_timeout", "10000"),
        ("statement_timeout", "1234"),
        ("transaction_isolation", "read committed"),
    ];
    assert_eq!(settings, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    database.close().await;
}

static SETTINGS: Statement = Statement {
    name: "test/settings",
    sql: "select name, setting from pg_settings where name in ('application_name', 'statement_timeout', 'lock_timeout', \
          'idle_in_transaction_session_timeout', 'transaction_isolation') order by name",
    types: &[],
};
