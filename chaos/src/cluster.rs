//! The PostgreSQL of a run: durable, supervised as in production, and made to be killed.

use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reveille_embedded::Embedded;
use reveille_testkit::scenario::{Plain, process, supervisor};
use tokio::time::sleep;

/// A crash recovery on a busy machine fits in.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server in a directory of the run.
#[derive(Debug)]
pub(crate) struct Cluster {
    embedded: Option<Embedded>,
    dir: PathBuf,
    /// A directory with nothing but a link to the socket of the server that all processes use.
    link_dir: PathBuf,
}

impl Cluster {
    /// Makes a cluster in `dir` and starts it.
    pub(crate) fn start(dir: &Path) -> anyhow::Result<Self> {
        let mut cluster = Self { embedded: None, dir: dir.to_owned(), link_dir: dir.join("link") };
        cluster.open()?;
        fs::create_dir(&cluster.link_dir)?;
        symlink(cluster.own_socket(), cluster.socket())?;
        Ok(cluster)
    }

    /// Starts the server again after [`Self::close`].
    pub(crate) fn open(&mut self) -> anyhow::Result<()> {
        let options = supervisor::options()?.data_dir(&self.dir);
        let options = options.setting("max_connections", "200").setting("log_line_prefix", "%m [%p] %a ");
        self.embedded = Some(Embedded::start(&options).map_err(|error| anyhow::anyhow!(error.sentence()))?);
        Ok(())
    }

    /// For all processes: it leads to another server after [`Self::redirect_to`].
    fn url(&self) -> String {
        format!("host='{}' port=5432 user=postgres dbname=postgres", self.link_dir.display())
    }

    /// To this server, also after [`Self::redirect_to`].
    pub(crate) fn own_url(&self) -> String {
        self.embedded.as_ref().map(|embedded| embedded.connection_string("postgres")).unwrap_or_default()
    }

    /// What a proxy leads to.
    pub(crate) fn socket(&self) -> PathBuf {
        self.link_dir.join(".s.PGSQL.5432")
    }

    fn own_socket(&self) -> PathBuf {
        let port = self.embedded.as_ref().map_or(5432, Embedded::port);
        self.socket_dir().join(format!(".s.PGSQL.{port}"))
    }

    pub(crate) fn socket_dir(&self) -> PathBuf {
        self.embedded.as_ref().map(Embedded::socket_dir).unwrap_or_default()
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// From here on all new connections lead to `other`.
    pub(crate) fn redirect_to(&self, other: &Self) -> anyhow::Result<()> {
        let new = self.link_dir.join("new");
        symlink(other.own_socket(), &new)?;
        Ok(fs::rename(new, self.socket())?)
    }

    /// Kills the server so that it is not started again: its supervisor is stopped first.
    pub(crate) fn kill_for_good(&self) -> anyhow::Result<()> {
        kill(self.supervisor().context("there is no supervisor")?, Signal::SIGSTOP)?;
        Ok(kill(self.postmaster().context("PostgreSQL does not run")?, Signal::SIGKILL)?)
    }

    /// A connection of the run's own, as soon as there is one to be had.
    pub(crate) async fn admin(&self) -> anyhow::Result<Plain> {
        patiently(&self.url()).await
    }

    /// The same to this server, also after [`Self::redirect_to`].
    pub(crate) async fn admin_of_own(&self) -> anyhow::Result<Plain> {
        patiently(&self.own_url()).await
    }

    /// The postmaster, when it is there.
    fn postmaster(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.dir.join("pg/postmaster.pid")).ok()?;
        text.lines().next()?.trim().parse().ok().map(Pid::from_raw)
    }

    /// Ends the postmaster with a signal, and waits until another one answers. SIGKILL leaves the
    /// data as a power cut does, except for what is in the kernel's memory.
    pub(crate) async fn end_postmaster(&self, signal: Signal) -> anyhow::Result<()> {
        let before = self.postmaster().context("PostgreSQL does not run")?;
        kill(before, signal)?;
        let end = Instant::now() + PATIENCE;
        while self.postmaster().is_none_or(|now| now == before) {
            anyhow::ensure!(Instant::now() < end, "PostgreSQL was not started again");
            sleep(Duration::from_millis(10)).await;
        }
        self.admin().await.map(drop)
    }

    /// Kills the supervisor, and waits until another is in charge.
    pub(crate) async fn kill_supervisor(&self) -> anyhow::Result<()> {
        let before = self.supervisor().context("there is no supervisor")?;
        kill(before, Signal::SIGKILL)?;
        let end = Instant::now() + PATIENCE;
        while self.supervisor().is_none_or(|now| now == before) {
            anyhow::ensure!(Instant::now() < end, "the supervisor was not replaced");
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// The child of this program that guards this directory.
    fn supervisor(&self) -> Option<Pid> {
        let dir = self.dir.as_os_str().as_encoded_bytes();
        let ours = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            process::parent(*pid).is_ok_and(|parent| parent == std::process::id())
                && words.any(|word| word == supervisor::WORD.as_bytes())
                && line.windows(dir.len()).any(|window| window == dir)
        };
        let mut pids = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.find(ours).and_then(|pid: u32| i32::try_from(pid).ok()).map(Pid::from_raw)
    }

    /// How often the server's log, or the one that was put aside, has `words`.
    pub(crate) fn logged(&self, words: &str) -> u64 {
        let logs = fs::read_dir(&self.dir).into_iter().flatten().filter_map(Result::ok);
        let logs = logs.filter(|entry| entry.file_name().to_string_lossy().starts_with("postgres.log"));
        logs.map(|entry| fs::read(entry.path()).unwrap_or_default())
            .map(|text| String::from_utf8_lossy(&text).matches(words).count() as u64)
            .sum()
    }

    /// Fills the disk for so long, with a file beside the data.
    pub(crate) async fn fill_disk(&self, lasts: Duration) -> anyhow::Result<()> {
        let ballast = self.dir.join("ballast");
        let (path, piece) = (ballast.clone(), vec![0_u8; 1 << 20]);
        let filled = tokio::task::spawn_blocking(move || {
            let mut file = File::create(&path)?;
            // Down to the last page: a whole piece at first, then what is left.
            for size in [piece.len(), 4096] {
                while file.write_all(&piece[..size]).is_ok() {}
            }
            std::io::Result::Ok(())
        });
        filled.await??;
        sleep(lasts).await;
        fs::remove_file(&ballast)?;
        let admin = self.admin().await?;
        // It answers before it can write again.
        let end = Instant::now() + PATIENCE;
        while admin.client.batch_execute("select pg_switch_wal()").await.is_err() {
            anyhow::ensure!(Instant::now() < end, "PostgreSQL does not write again");
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Stops the server.
    pub(crate) fn close(&mut self) {
        if let Some(supervisor) = self.supervisor() {
            let _ = kill(supervisor, Signal::SIGCONT);
        }
        if let Some(embedded) = self.embedded.take() {
            let _ = embedded.close(PATIENCE);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.close();
    }
}

/// A connection as soon as there is one to be had.
async fn patiently(url: &str) -> anyhow::Result<Plain> {
    let end = Instant::now() + PATIENCE;
    loop {
        match Plain::connect(url).await {
            Ok(plain) => return Ok(plain),
            Err(error) if Instant::now() > end => return Err(error.context("PostgreSQL does not come back")),
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// A small disk of its own for a directory: memory that is mounted there, which only root can do.
#[derive(Debug)]
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(crate) fn mount(dir: &Path) -> anyhow::Result<Self> {
        DirBuilder::new().mode(0o711).create(dir)?;
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1g,mode=0711", "tmpfs"]).arg(dir);
        let mounted = mount.status().context("cannot run mount")?;
        anyhow::ensure!(mounted.success(), "a small disk cannot be mounted here: a full disk is not exercised");
        Ok(Self(dir.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

/// A directory for everything of a run. PostgreSQL may run as another user, who must be able to
/// enter it.
pub(crate) fn directory(seed: u64) -> anyhow::Result<PathBuf> {
    let dir = std::env::temp_dir().join(format!("reveille-chaos-{}-{seed}", std::process::id()));
    DirBuilder::new().mode(0o711).create(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}
