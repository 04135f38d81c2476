//! The orders a supervisor is started with, as command-line arguments.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};

use crate::Durability;
use crate::identity::RunAs;
use crate::settings::Setting;

/// What the program that starts the supervisor has decided: which binaries, which user, which
/// settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Duty {
    pub(crate) data_dir: PathBuf,
    pub(crate) binaries: PathBuf,
    pub(crate) major: u32,
    pub(crate) run_as: Option<RunAs>,
    pub(crate) durability: Durability,
    pub(crate) tcp_port: Option<u16>,
    pub(crate) linger: Duration,
    pub(crate) settings: Vec<Setting>,
}

impl Duty {
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        let mut add = |name: &str, value: OsString| all.extend([name.into(), value]);
        add("--data-dir", self.data_dir.clone().into());
        add("--binaries", self.binaries.clone().into());
        add("--major", self.major.to_string().into());
        let linger_ms = u64::try_from(self.linger.as_millis()).unwrap_or(u64::MAX);
        add("--linger-ms", linger_ms.to_string().into());
        if let Some(run_as) = self.run_as {
            add("--run-as", format!("{}:{}", run_as.uid, run_as.gid).into());
        }
        if let Some(port) = self.tcp_port {
            add("--tcp-port", port.to_string().into());
        }
        for setting in &self.settings {
            add("--setting", setting.argument().into());
        }
        if self.durability == Durability::Disposable {
            all.push("--disposable".into());
        }
        all
    }

    pub(crate) fn parse(mut parser: Parser) -> Result<Self, lexopt::Error> {
        let mut duty = Self {
            data_dir: PathBuf::new(),
            binaries: PathBuf::new(),
            major: 0,
            run_as: None,
            durability: Durability::Durable,
            tcp_port: None,
            linger: Duration::ZERO,
            settings: Vec::new(),
        };
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("data-dir") => duty.data_dir = parser.value()?.into(),
                Arg::Long("binaries") => duty.binaries = parser.value()?.into(),
                Arg::Long("major") => duty.major = parser.value()?.parse()?,
                Arg::Long("linger-ms") => duty.linger = Duration::from_millis(parser.value()?.parse()?),
                Arg::Long("run-as") => duty.run_as = Some(parser.value()?.parse_with(run_as)?),
                Arg::Long("tcp-port") => duty.tcp_port = Some(parser.value()?.parse()?),
                Arg::Long("setting") => duty.settings.push(parser.value()?.parse_with(Setting::parse)?),
                Arg::Long("disposable") => duty.durability = Durability::Disposable,
                other => return Err(other.unexpected()),
            }
        }
        if duty.data_dir.as_os_str().is_empty() || duty.binaries.as_os_str().is_empty() {
            return Err("--data-dir and --binaries are needed".into());
        }
        Ok(duty)
    }
}

fn run_as(text: &str) -> Result<RunAs, String> {
    let wrong = || format!("`{text}` is not UID:GID");
    let (uid, gid) = text.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str| u32::from_str(text).map_err(|_| wrong());
    Ok(RunAs { uid: number(uid)?, gid: number(gid)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duty_survives_the_command_line() {
        let duty = Duty {
            data_dir: "/var/lib/with space".into(),
            binaries: "/usr/lib/postgresql/15/bin".into(),
            major: 15,
            run_as: Some(RunAs { uid: 101, gid: 103 }),
            durability: Durability::Disposable,
            tcp_port: Some(6543),
            linger: Duration::from_secs(10),
            settings: vec![Setting::new("shared_preload_libraries", "a, 'b'").unwrap()],
        };

        let parsed = Duty::parse(Parser::from_args(duty.arguments())).unwrap();

        assert_eq!(parsed, duty);
    }

    #[test]
    fn a_duty_without_a_directory_is_refused() {
        assert!(Duty::parse(Parser::from_args(["--major", "15"])).is_err());
    }
}
