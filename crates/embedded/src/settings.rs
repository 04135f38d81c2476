//! The settings a server is started with.
//!
//! Refuses those that decide where the server lives and listens: the locks, the readiness check and
//! the promise "Unix socket only" rest on them.

use crate::Durability;
use crate::cluster_dir::PORT;
use crate::error::EmbeddedError;

/// One `name=value`, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    name: String,
    value: String,
}

const OURS: [&str; 7] = [
    "config_file",
    "data_directory",
    "hba_file",
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "unix_socket_permissions",
];

impl Setting {
    pub(crate) fn new(name: &str, value: &str) -> Result<Self, EmbeddedError> {
        let refuse = |reason| EmbeddedError::Setting { name: name.to_owned(), reason };
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if name.is_empty() || !name.chars().all(legal) {
            return Err(refuse("a name has only letters, digits, `_` and `.`"));
        }
        if OURS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(refuse("the supervisor decides where the server lives and listens"));
        }
        if value.contains('\0') {
            return Err(refuse("its value has a NUL byte"));
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }

    /// Reads `name=value`, as [`Self::argument`] writes it.
    pub(crate) fn parse(text: &str) -> Result<Self, EmbeddedError> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        Self::new(name, value)
    }

    pub(crate) fn argument(&self) -> String {
        format!("{}={}", self.name, self.value)
    }
}

/// Every `-c` of a server: defaults, then what the caller chose, in the order in which later ones
/// win.
pub(crate) fn arguments(durability: Durability, tcp_port: Option<u16>, chosen: &[Setting]) -> Vec<String> {
    let mut all = vec!["max_connections=200".to_owned()];
    if durability == Durability::Disposable {
        all.extend(["fsync=off", "synchronous_commit=off", "full_page_writes=off"].map(str::to_owned));
        all.extend(["wal_level=minimal", "max_wal_senders=0"].map(str::to_owned));
    }
    all.extend(chosen.iter().map(Setting::argument));
    all.push(format!("listen_addresses={}", if tcp_port.is_some() { "127.0.0.1" } else { "" }));
    all.push(format!("port={}", tcp_port.unwrap_or(PORT)));
    all.push("unix_socket_permissions=0700".to_owned());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_moves_the_server_is_refused() {
        for name in OURS {
            assert!(Setting::new(name, "x").is_err(), "{name} was accepted");
        }
        assert!(Setting::new("Listen_Addresses", "*").is_err());
    }

    #[test]
    fn a_name_that_would_be_another_option_is_refused() {
        for name in ["", "a=b", "-c", "a b", "work_mem;"] {
            assert!(Setting::new(name, "1").is_err(), "{name} was accepted");
        }
    }

    #[test]
    fn what_the_caller_chose_comes_after_the_defaults_and_wins() {
        let chosen = [Setting::new("wal_level", "replica").unwrap()];

        let all = arguments(Durability::Disposable, None, &chosen);

        let last = all.iter().rfind(|argument| argument.starts_with("wal_level=")).unwrap();
        assert_eq!(last, "wal_level=replica");
    }

    #[test]
    fn a_value_with_an_equals_sign_survives_the_command_line() {
        let setting = Setting::new("log_line_prefix", "a=b").unwrap();

        assert_eq!(Setting::parse(&setting.argument()).unwrap(), setting);
    }
}
