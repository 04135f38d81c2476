//! The machine on which a result was measured, so that a reader can judge it.

use std::fs;
use std::process::Command;

/// One line each: processor, memory, system, commit.
pub(super) fn description() -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    vec![
        format!("{cores} cores, {}", first_value("/proc/cpuinfo", "model name").unwrap_or("unknown processor".into())),
        format!("memory {}", first_value("/proc/meminfo", "MemTotal").unwrap_or("unknown".into())),
        format!("{} {}", said("uname", &["-sr"]), said("uname", &["-m"])),
        format!("commit {}", said("git", &["rev-parse", "--short", "HEAD"])),
        said("rustc", &["--version"]),
    ]
}

fn first_value(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(|_| format!("unknown {program}"), |it| String::from_utf8_lossy(&it.stdout).trim().to_owned())
}
