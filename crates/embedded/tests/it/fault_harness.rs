//! Waiting for conditions, and the processes of a cluster as the kernel sees them.

use std::cmp::Reverse;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What "nothing is left behind" may take.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(15);
/// What a start may take on a busy machine.
pub(crate) const UP_WITHIN: Duration = Duration::from_secs(60);

/// Waits for a condition; the only place where tests read the clock.
#[track_caller]
pub(crate) fn until(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < limit, "waited {limit:?} in vain for {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Waits for a value.
#[track_caller]
pub(crate) fn until_some<T>(limit: Duration, what: &str, mut search: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    until(limit, what, || {
        found = search();
        found.is_some()
    });
    found.unwrap()
}

/// Every process that names the directory on its command line, and every backend that holds its
/// `alive.lock`: those have titles instead of command lines. Zombies have neither.
pub(crate) fn processes_of(data_dir: &Path) -> Vec<i32> {
    let (name, alive_lock) = (data_dir.to_string_lossy(), data_dir.join("alive.lock"));
    let is_backend = |pid: i32, line: &str| {
        let standard_input = || fs::read_link(format!("/proc/{pid}/fd/0"));
        line.starts_with("postgres: ") && standard_input().is_ok_and(|input| input == alive_lock)
    };
    let belongs = |pid: &i32| command_line(*pid).is_some_and(|line| line.contains(&*name) || is_backend(*pid, &line));
    all_pids().into_iter().filter(belongs).collect()
}

/// The processes that guard the directory. A killed one may be followed by another at once.
pub(crate) fn supervisors_of(data_dir: &Path) -> Vec<i32> {
    with_argument(data_dir, "guard")
}

/// The processes that make its cluster.
pub(crate) fn makers_of(data_dir: &Path) -> Vec<i32> {
    let unfinished = data_dir.join("pg.new");
    let ours = |pid: &i32| command_line(*pid).is_some_and(|line| line.contains(&*unfinished.to_string_lossy()));
    all_pids().into_iter().filter(ours).collect()
}

fn with_argument(data_dir: &Path, argument: &str) -> Vec<i32> {
    let (middle, dir) = (format!("\0{argument}\0"), format!("\0{}\0", data_dir.display()));
    let ours = |line: &String| line.contains(&middle) && line.contains(&dir);
    all_pids().into_iter().filter(|pid| command_line(*pid).as_ref().is_some_and(ours)).collect()
}

fn all_pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn command_line(pid: i32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// `R`, `S`, `T` (stopped), `Z` (zombie) … or `None` when there is no such process.
pub(crate) fn state_of(pid: i32) -> Option<char> {
    stat(pid, STATE)?.chars().next()
}

/// Fields of `/proc/PID/stat`, counted from the one after the name.
const STATE: usize = 0;
const START_TIME: usize = 19;

fn stat(pid: i32, field: usize) -> Option<String> {
    let text = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
    let (_, fields) = text.rsplit_once(") ")?;
    fields.split(' ').nth(field).map(str::to_owned)
}

/// Whether a process still runs; one that only waits to be reaped does not.
pub(crate) fn runs(pid: i32) -> bool {
    state_of(pid).is_some_and(|state| state != 'Z')
}

/// The names of a process's threads, as far as the kernel keeps them (15 bytes).
pub(crate) fn threads_of(pid: i32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).map(|name| name.trim().into()).collect()
}

/// Sends a signal; a process that has gone meanwhile is no fault of the test.
pub(crate) fn signal(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

/// Whether a process that was sent SIGSTOP can do nothing more: stopped, or waiting in the kernel
/// for a child that is.
pub(crate) fn is_halted(pid: i32) -> bool {
    !runs(pid) || matches!(state_of(pid), Some('T' | 'D'))
}

pub(crate) fn signal_all(pids: &[i32], what: Signal) {
    for pid in pids {
        signal(*pid, what);
    }
}

/// Kills them as if at one moment: stopped first, none has time to do anything about the end of
/// another. Children go before their parents, because the kernel wakes stopped processes when their
/// parent dies.
pub(crate) fn kill_at_once(pids: &[i32]) {
    let mut youngest_first = pids.to_vec();
    youngest_first
        .sort_by_key(|pid| Reverse((stat(*pid, START_TIME).and_then(|ticks| ticks.parse::<u64>().ok()), *pid)));
    signal_all(pids, Signal::SIGSTOP);
    for _ in 0..200 {
        if pids.iter().all(|pid| is_halted(*pid)) {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    signal_all(&youngest_first, Signal::SIGKILL);
}

/// Whether a lock can be had, which for `alive.lock` means that no process of the cluster lives.
pub(crate) fn is_free(lock: &Path) -> bool {
    match fs::File::options().read(true).write(true).open(lock) {
        Ok(file) => file.try_lock().is_ok(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Ends whatever is left of a cluster whose test failed, and nothing else.
pub(crate) fn end_leftovers(data_dir: &Path) {
    // A path this short could be in anybody's command line.
    assert!(data_dir.as_os_str().as_bytes().len() > 12, "{} is no directory of a test", data_dir.display());
    kill_at_once(&processes_of(data_dir));
}
