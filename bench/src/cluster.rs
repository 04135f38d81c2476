//! The private PostgreSQL of one run: durable, new, and gone afterwards.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use reveille::database::{Database, DatabaseOptions};
use reveille_embedded::{Embedded, EmbeddedOptions};
use reveille_testkit::scenario::supervisor;

/// A server with fsync on, as in production.
#[derive(Debug)]
pub(crate) struct Cluster {
    embedded: Option<Embedded>,
    dir: PathBuf,
}

impl Cluster {
    pub(crate) fn start() -> anyhow::Result<Self> {
        Self::start_with(|options| options)
    }

    /// With settings of the scenario's own.
    pub(crate) fn start_with(choose: impl FnOnce(EmbeddedOptions) -> EmbeddedOptions) -> anyhow::Result<Self> {
        let dir = std::env::temp_dir().join(format!("reveille-bench-{}", std::process::id()));
        let options = supervisor::options()?.data_dir(&dir);
        let embedded = Embedded::start(&choose(options)).map_err(|error| anyhow::anyhow!(error.sentence()))?;
        Ok(Self { embedded: Some(embedded), dir })
    }

    pub(crate) fn url(&self) -> String {
        self.embedded.as_ref().map(|embedded| embedded.connection_string("postgres")).unwrap_or_default()
    }

    /// The same for another of its databases, as a URL: not every driver reads the other form.
    pub(crate) fn url_of(&self, database: &str) -> String {
        let Some(embedded) = &self.embedded else { return String::new() };
        let encoded = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        };
        let host: String = embedded.socket_dir().to_string_lossy().bytes().map(encoded).collect();
        format!("postgres://postgres@{host}:{}/{database}", embedded.port())
    }

    pub(crate) async fn database(&self) -> anyhow::Result<Database> {
        let database = Database::connect(DatabaseOptions::new(self.url())).await?;
        database.migrate().await.context("cannot migrate the schema")?;
        Ok(database)
    }

    /// Prints what the server's log has about a crash, because the log goes with the directory.
    fn print_crash(&self) {
        let log = std::fs::read_to_string(self.dir.join("postgres.log")).unwrap_or_default();
        for line in log.lines().filter(|line| line.contains("PANIC:") || line.contains("was terminated by signal")) {
            eprintln!("reveille-bench: PostgreSQL logged: {line}");
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.print_crash();
        if let Some(embedded) = self.embedded.take() {
            let _ = embedded.close(Duration::from_secs(30));
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
