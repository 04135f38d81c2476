//! What the kernel knows of a process.

use std::fs;

use anyhow::Context;

/// The clock of `/proc` ticks a hundred times a second on every Linux there is.
const TICKS_PER_S: f64 = 100.0;

/// One process, or with its children.
#[derive(Debug, Clone, Copy)]
pub enum Processes {
    /// This one.
    One(u32),
    /// A parent and its children, those that have ended included.
    Family(u32),
}

impl Processes {
    /// Seconds of processor time so far.
    pub fn cpu_s(self) -> anyhow::Result<f64> {
        match self {
            Self::One(pid) => Ok(Stat::of(pid)?.own_s),
            Self::Family(parent) => {
                let Stat { own_s, ended_children_s, .. } = Stat::of(parent)?;
                let pids = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
                // A child that ends while we read is counted with the ended ones the next time.
                let children = pids.filter_map(|pid| Stat::of(pid).ok()).filter(|stat| stat.parent == parent);
                Ok(own_s + ended_children_s + children.map(|stat| stat.own_s).sum::<f64>())
            }
        }
    }
}

/// The largest resident size a process ever had, in megabytes.
pub fn peak_mb(pid: u32) -> anyhow::Result<f64> {
    memory_mb(pid, "VmHWM:")
}

/// The resident size of a process, in megabytes.
pub fn resident_mb(pid: u32) -> anyhow::Result<f64> {
    memory_mb(pid, "VmRSS:")
}

fn memory_mb(pid: u32, what: &str) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the process has ended")?;
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    Ok(kilobytes.with_context(|| format!("no {what} in the status of {pid}"))? * 1024.0 / 1e6)
}

/// The parent of a process.
pub fn parent(pid: u32) -> anyhow::Result<u32> {
    Ok(Stat::of(pid)?.parent)
}

struct Stat {
    parent: u32,
    own_s: f64,
    ended_children_s: f64,
}

impl Stat {
    fn of(pid: u32) -> anyhow::Result<Self> {
        Self::read(&fs::read_to_string(format!("/proc/{pid}/stat"))?).with_context(|| format!("the stat of {pid}"))
    }

    /// The second field is a name that may contain anything, so counting begins behind it.
    fn read(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let seconds = |field: usize| Some(fields.get(field)?.parse::<f64>().ok()? / TICKS_PER_S);
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            own_s: seconds(11)? + seconds(12)?,
            ended_children_s: seconds(13)? + seconds(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = Stat::read("7 (a) b (c) S 3 7 7 0 -1 0 0 0 0 0 150 50 20 10 20 0 1 0").unwrap();

        assert_eq!(stat.parent, 3);
        assert!((stat.own_s - 2.0).abs() < 1e-9 && (stat.ended_children_s - 0.3).abs() < 1e-9);
    }
}
