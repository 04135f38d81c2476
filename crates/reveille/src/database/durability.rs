//! What a commit is worth on this server.
//!
//! Reads four settings and warns in words about those that can lose acknowledged work. A single
//! server without standbys is not warned about: that is most servers, and its operator knows.

use std::collections::HashMap;

use super::connection::Connection;
use super::error::DatabaseError;
use super::statements::DURABILITY;
use super::warning::Warning;

/// The settings that decide it, as our sessions see them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Durability {
    /// Whether commits reach the disk.
    pub fsync: bool,
    /// Whether a page torn by a power cut can be restored.
    pub full_page_writes: bool,
    /// When a commit is answered.
    pub synchronous_commit: String,
    /// The standbys that take part in that; empty for none.
    pub synchronous_standby_names: String,
}

impl Durability {
    pub(crate) async fn read(connection: &Connection) -> Result<Self, DatabaseError> {
        let rows = connection.query(&DURABILITY, &[]).await?;
        let mut settings: HashMap<String, String> =
            rows.iter().map(|row| (row.get("name"), row.get("setting"))).collect();
        let mut take = |name: &str| settings.remove(name).unwrap_or_default();
        Ok(Self {
            fsync: take("fsync") == "on",
            full_page_writes: take("full_page_writes") == "on",
            synchronous_commit: take("synchronous_commit"),
            synchronous_standby_names: take("synchronous_standby_names"),
        })
    }

    /// What can lose acknowledged work.
    pub fn warnings(&self) -> Vec<Warning> {
        let has_standbys = !self.synchronous_standby_names.is_empty();
        let commit = match self.synchronous_commit.as_str() {
            "off" => Some(Warning::AsynchronousCommit),
            "local" if has_standbys => Some(Warning::LocalCommit),
            _ => None,
        };
        let fsync = (!self.fsync).then_some(Warning::FsyncOff);
        let pages = (!self.full_page_writes).then_some(Warning::FullPageWritesOff);
        [fsync, pages, commit].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(synchronous_commit: &str, standbys: &str) -> Durability {
        Durability {
            fsync: true,
            full_page_writes: true,
            synchronous_commit: synchronous_commit.into(),
            synchronous_standby_names: standbys.into(),
        }
    }

    #[test]
    fn a_single_server_with_default_settings_is_not_warned_about() {
        assert_eq!(settings("on", "").warnings(), []);
        assert_eq!(settings("local", "").warnings(), []);
    }

    #[test]
    fn what_can_lose_acknowledged_work_is_named() {
        let careless = Durability { synchronous_commit: "off".into(), ..Durability::default() };

        assert_eq!(careless.warnings(), [Warning::FsyncOff, Warning::FullPageWritesOff, Warning::AsynchronousCommit]);
        assert_eq!(settings("local", "standby1").warnings(), [Warning::LocalCommit]);
    }
}
