//! A provider that is measured in a process of its own.
//!
//! Ours too: this program again, so that no provider shares the measuring process or the threads of
//! the others. Commands and answers are lines of JSON; see the crate `workload` in `bench/peers`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use duroxide::providers::Provider;
use reveille_duroxide::PostgresProvider;
use reveille_testkit::scenario::progress;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The first argument that makes this program the child which measures our provider.
pub(crate) const CHILD: &str = "measure-reveille-duroxide";
/// So many connections for each of them that no call waits for one.
const CONNECTIONS: &str = "20";

/// A child process, its input and its output.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    _child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    pub(crate) fn start(name: &'static str, program: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).env("DUROXIDE_PG_POOL_MAX", CONNECTIONS).env("RUST_LOG", "off");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let commands = child.stdin.take().context("a child without standard input")?;
        let answers = BufReader::new(child.stdout.take().context("a child without standard output")?).lines();
        Ok(Self { name, _child: child, commands, answers })
    }

    /// Sends a command and waits for its answer.
    pub(crate) async fn ask(&mut self, command: Value) -> anyhow::Result<Value> {
        self.commands.write_all(format!("{command}\n").as_bytes()).await?;
        loop {
            let line = self.answers.next_line().await?;
            let line = line.with_context(|| format!("{} ended in the middle of {command}", self.name))?;
            let Ok(mut answer) = serde_json::from_str::<Value>(&line) else { continue };
            if let Some(error) = answer["error"].as_str() {
                anyhow::bail!("{} could not do {command}: {error}", self.name);
            }
            if let Some(ok) = answer.get_mut("ok") {
                return Ok(ok.take());
            }
        }
    }
}

/// Builds the peers and returns the path of the first one's program.
pub(crate) async fn build_peers() -> anyhow::Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    progress("building the peers (bench/peers); the first time this takes some minutes");
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--quiet", "--manifest-path"]).arg(workspace.join("Cargo.toml"));
    // A workspace of its own, wherever ours is built.
    build.arg("--target-dir").arg(workspace.join("target"));
    let built = build.status().await.context("cannot run cargo")?;
    anyhow::ensure!(built.success(), "the peers could not be built");
    Ok(workspace.join("target/release/duroxide-peers"))
}

/// The child's side, for our provider.
pub(crate) fn measure(url: String) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(workload::serve(Ours, url))
}

struct Ours;

#[async_trait]
impl workload::Peer for Ours {
    async fn open(&self, url: &str, schema: &str) -> anyhow::Result<Arc<dyn Provider>> {
        let options = PostgresProvider::options().url(url).schema(schema);
        Ok(Arc::new(options.pool_size(CONNECTIONS.parse()?).open().await?))
    }

    fn waits(&self) -> bool {
        true
    }

    fn listener(&self) -> Option<&'static str> {
        Some("application_name like '% listen'")
    }

    fn spoil_history(&self, schema: &str) -> String {
        format!("update {schema}.history set event = 'not an event' where instance_id = $1")
    }

    fn attempts(&self, schema: &str) -> String {
        format!("select coalesce(max(attempt_count), 0) from {schema}.message where instance_id = $1")
    }
}

/// The list of numbers under `name`.
pub(crate) fn numbers(answer: &Value, name: &str) -> Vec<f64> {
    answer[name].as_array().map(|list| list.iter().filter_map(Value::as_f64).collect()).unwrap_or_default()
}

/// The number under `name`.
pub(crate) fn number(answer: &Value, name: &str) -> anyhow::Result<f64> {
    answer[name].as_f64().with_context(|| format!("there is no {name} in {answer}"))
}

/// A command without settings.
pub(crate) fn order(what: &str) -> Value {
    json!({ "do": what })
}
