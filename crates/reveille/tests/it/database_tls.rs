//! TLS: who is trusted, and what a refused certificate is called.

use reveille::database::{Database, DatabaseError, DatabaseOptions, Warning};

use crate::support::certificates::Certificates;
use crate::support::cluster::{Cluster, Setup};
use crate::support::{soon, with_causes};

/// A server whose certificate is for `db.internal`, reachable at localhost.
struct Secured {
    certificates: Certificates,
    cluster: Cluster,
}

impl Secured {
    fn start() -> Self {
        Self::with(Certificates::for_server("db.internal"))
    }

    fn with(certificates: Certificates) -> Self {
        let cluster = Cluster::start(Setup {
            hba: "local all all trust\nhostssl all all 127.0.0.1/32 trust\n",
            settings: vec!["ssl=on".into()],
            files: certificates.files(),
        });
        Self { certificates, cluster }
    }

    async fn connect(&self, rest: &str) -> Result<Database, DatabaseError> {
        let rest = rest.replace("CA", &self.certificates.authority().display().to_string());
        let options = DatabaseOptions::new(self.cluster.tcp(&format!("user=postgres {rest}")));
        soon(Database::connect(options)).await
    }
}

#[tokio::test]
async fn certificates_are_judged_as_the_mode_says() {
    let server = Secured::start();

    // The name and the issuer are right.
    let database =
        server.connect("host=db.internal hostaddr=127.0.0.1 sslmode=verify-full sslrootcert=CA").await.unwrap();
    assert!(!database.warnings().contains(&Warning::UnverifiedTls));
    database.close().await;

    // The issuer is right, the name is not checked.
    let database = server.connect("host=localhost sslmode=verify-ca sslrootcert=CA").await.unwrap();
    assert!(!database.warnings().contains(&Warning::UnverifiedTls));
    database.close().await;

    // Nothing is checked, and that is a warning.
    let database = server.connect("host=localhost sslmode=require").await.unwrap();
    assert!(database.warnings().contains(&Warning::UnverifiedTls));
    database.close().await;
}

#[tokio::test]
async fn a_certificate_for_another_name_is_explained() {
    let server = Secured::start();

    let error = server.connect("host=localhost sslmode=verify-full sslrootcert=CA").await.unwrap_err();

    assert!(matches!(error, DatabaseError::Tls { .. }), "{error:?}");
    assert!(!error.is_transient());
    assert!(
        error.to_string().contains(
            "the server's certificate is for another name than localhost: connect by a name that is in its \
             subjectAltName, or say sslmode=verify-ca"
        ),
        "{}",
        with_causes(&error)
    );
}

#[tokio::test]
async fn a_certificate_of_an_unknown_issuer_is_explained() {
    let server = Secured::start();
    let stranger = Certificates::for_server("db.internal");

    for mode in ["verify-ca", "verify-full", "require"] {
        let rest = format!(
            "host=db.internal hostaddr=127.0.0.1 sslmode={mode} sslrootcert={}",
            stranger.authority().display()
        );
        let error = server.connect(&rest).await.unwrap_err();

        assert!(
            error.to_string().contains("nobody we trust issued the server's certificate"),
            "{mode}: {}",
            with_causes(&error)
        );
    }
}

#[tokio::test]
async fn a_certificate_that_is_its_own_issuer_is_accepted_when_it_is_named() {
    let server = Secured::with(Certificates::of_their_own("db.internal"));

    for (mode, host, accepted) in [
        ("verify-full", "db.internal", true),
        ("verify-full", "elsewhere", false),
        ("verify-ca", "elsewhere", true),
        ("require", "elsewhere", true),
    ] {
        let rest = format!("host={host} hostaddr=127.0.0.1 sslmode={mode} sslrootcert=CA");
        let connected = server.connect(&rest).await;
        assert_eq!(connected.is_ok(), accepted, "{mode} {host}: {connected:?}");
        match connected {
            Ok(database) => database.close().await,
            Err(error) => {
                assert!(error.to_string().contains("for another name than elsewhere"), "{}", with_causes(&error));
            }
        }
    }
    let stranger = Certificates::of_their_own("db.internal");
    let rest =
        format!("host=db.internal hostaddr=127.0.0.1 sslmode=verify-ca sslrootcert={}", stranger.authority().display());
    let error = server.connect(&rest).await.unwrap_err();
    assert!(error.to_string().contains("name that very certificate with sslrootcert"), "{}", with_causes(&error));
}

#[tokio::test]
async fn a_server_without_tls_is_not_mistaken_for_one_with_a_bad_certificate() {
    let cluster = Cluster::new();
    let options = DatabaseOptions::new(cluster.tcp("host=127.0.0.1 user=postgres sslmode=require"));

    let error = soon(Database::connect(options)).await.unwrap_err();

    assert!(error.to_string().contains("the server offers none: switch ssl on there"), "{}", with_causes(&error));
    let preferred = DatabaseOptions::new(cluster.tcp("host=127.0.0.1 user=postgres sslmode=prefer"));
    soon(Database::connect(preferred)).await.unwrap().close().await;
}

#[tokio::test]
async fn a_root_file_that_is_not_there_is_named() {
    let options = DatabaseOptions::new("host=db user=me sslmode=verify-full sslrootcert=/nowhere/ca.pem");

    let error = soon(Database::connect(options)).await.unwrap_err();

    assert!(error.to_string().contains("sslrootcert /nowhere/ca.pem cannot be read"), "{error}");
}
