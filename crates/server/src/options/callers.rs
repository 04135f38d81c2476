//! The part of the options that says who may ask.

use super::ServerOptions;
use crate::origin::Callers;

impl Callers {
    /// What is wrong with them, in words.
    pub(super) fn faults(&self) -> impl Iterator<Item = &'static str> {
        let faults = [
            (
                self.hosts.iter().all(|host| Self::is_host(host)),
                "an allowed host is a name such as queue.example, without scheme, port and path",
            ),
            (
                self.origins.iter().all(|origin| Self::is_origin(origin)),
                "an allowed origin is spelt as browsers do, such as https://app.example or http://app.example:8080",
            ),
        ];
        faults.into_iter().filter_map(|(fine, fault)| (!fine).then_some(fault))
    }
}

impl ServerOptions {
    /// Names by which clients may call this server, as a proxy passes them on. Addresses,
    /// `localhost` and names below it need no word: what is kept out are names that a web page has
    /// bound to our address.
    ///
    /// Default: none. One with a scheme, a port or a path is refused.
    #[must_use]
    pub fn allowed_hosts<H: Into<String>>(mut self, names: impl IntoIterator<Item = H>) -> Self {
        self.callers.hosts = names.into_iter().map(Into::into).collect();
        self
    }

    /// Origins whose web pages may ask, spelt as browsers do: `https://app.example`. Pages that this server's own host served
    /// need no word.
    ///
    /// Default: none. One without a scheme, or with a path, is refused.
    #[must_use]
    pub fn allowed_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        self.callers.origins = origins.into_iter().map(Into::into).collect();
        self
    }
}
