//! Parses texts into values. An invalid text becomes a fault, and reading goes on, so that all
//! faults are found.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::fault::Faults;
use super::layers::{Effective, Setting};
use super::{queues, units};
use crate::remote::ServerUrl;

pub(super) struct Reader<'a> {
    effective: &'a Effective,
    faults: &'a mut Faults,
    #[cfg(test)]
    pub(super) read_keys: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(effective: &'a Effective, faults: &'a mut Faults) -> Self {
        Self {
            effective,
            faults,
            #[cfg(test)]
            read_keys: Vec::new(),
        }
    }

    pub(super) fn text(&mut self, key: &str) -> String {
        self.setting(key).map(|setting| setting.text.clone()).unwrap_or_default()
    }

    /// An empty text counts as absent.
    pub(super) fn some_text(&mut self, key: &str) -> Option<String> {
        Some(self.text(key)).filter(|text| !text.is_empty())
    }

    /// Texts separated by commas.
    pub(super) fn list(&mut self, key: &str) -> Vec<String> {
        let text = self.text(key);
        text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(ToOwned::to_owned).collect()
    }

    pub(super) fn address(&mut self, key: &str) -> SocketAddr {
        let parse = |text: &str| {
            // No host, or localhost, means this machine.
            let port =
                text.strip_prefix("localhost").unwrap_or(text).strip_prefix(':').and_then(|port| port.parse().ok());
            let here = port.map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
            here.or_else(|| text.parse().ok())
                .ok_or_else(|| "is no address with a port, such as 127.0.0.1:6632".to_owned())
        };
        self.parsed(key, parse).unwrap_or((Ipv4Addr::LOCALHOST, 0).into())
    }

    pub(super) fn server(&mut self, key: &str) -> ServerUrl {
        self.parsed(key, ServerUrl::parse).unwrap_or_default()
    }

    pub(super) fn count(&mut self, key: &str) -> usize {
        let parse = |text: &str| text.parse().map_err(|_| "is no whole number".to_owned());
        // Not zero: the services refuse zero, which would be a second fault for one cause.
        self.parsed(key, parse).unwrap_or(1)
    }

    /// A factor such as 2 or 1.5.
    pub(super) fn factor(&mut self, key: &str) -> f64 {
        let parse = |text: &str| match text.parse::<f64>() {
            Ok(factor) if factor.is_finite() && factor >= 1.0 => Ok(factor),
            _ => Err("is no factor of at least 1, such as 1.5".to_owned()),
        };
        self.parsed(key, parse).unwrap_or(1.0)
    }

    /// Encryption keys. The fault does not repeat them.
    pub(super) fn keys(&mut self, key: &str) -> Vec<(i32, [u8; 32])> {
        let Some(setting) = self.setting(key) else { return Vec::new() };
        queues::keys(&setting.text).unwrap_or_else(|| {
            self.faults.add(format!(
                "{key} is neither 64 hexadecimal digits nor a list of number:digits ({})",
                setting.source
            ));
            Vec::new()
        })
    }

    pub(super) fn size(&mut self, key: &str) -> usize {
        self.parsed(key, units::size).unwrap_or_default()
    }

    pub(super) fn time(&mut self, key: &str) -> Duration {
        self.parsed(key, units::time).unwrap_or(Duration::from_secs(1))
    }

    pub(super) fn some_time(&mut self, key: &str) -> Option<Duration> {
        self.some_text(key)?;
        Some(self.time(key))
    }

    /// A time between two rounds of a loop: zero would be a loop without a pause.
    pub(super) fn pause(&mut self, key: &str) -> Duration {
        let parse = |text: &str| match units::time(text)? {
            Duration::ZERO => Err("must be more than 0".to_owned()),
            time => Ok(time),
        };
        self.parsed(key, parse).unwrap_or(Duration::from_secs(1))
    }

    pub(super) fn some_pause(&mut self, key: &str) -> Option<Duration> {
        self.some_text(key)?;
        Some(self.pause(key))
    }

    pub(super) fn switch<T>(&mut self, key: &str, on: T, off: T) -> T {
        let parse = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Ok(true),
            "false" | "off" | "no" | "0" => Ok(false),
            _ => Err("is neither true nor false".to_owned()),
        };
        if self.parsed(key, parse).unwrap_or(true) { on } else { off }
    }

    /// One of these words; the first for any other word.
    pub(super) fn choice<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> T {
        self.parsed(key, |text| chosen(text, words)).unwrap_or(words[0].1)
    }

    pub(super) fn some_choice<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        self.some_text(key)?;
        self.parsed(key, |text| chosen(text, words))
    }

    fn parsed<T>(&mut self, key: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let setting = self.setting(key)?;
        match parse(setting.text.trim()) {
            Ok(value) => Some(value),
            Err(why) => {
                self.faults.add(format!("{key} = {:?} {why} ({})", setting.text, setting.source));
                None
            }
        }
    }

    fn setting(&mut self, key: &str) -> Option<&'a Setting> {
        #[cfg(test)]
        self.read_keys.push(key.to_owned());
        self.effective.get(key)
    }
}

fn chosen<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("is none of {}", words.join(", "))
    })
}
