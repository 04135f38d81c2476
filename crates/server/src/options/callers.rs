//! The options that say which hosts and origins are allowed.

use super::ServerOptions;
use crate::origin::Callers;

impl Callers {
    /// What is wrong with these options.
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
    /// Names that clients may use for this server in `Host`, as a proxy passes them on. Addresses,
    /// `localhost` and names below it are always allowed. This keeps out names that the owner of a
    /// web page has bound to our address.
    ///
    /// Default: none. One with a scheme, a port or a path is refused.
    #[must_use]
    pub fn allowed_hosts<H: Into<String>>(mut self, names: impl IntoIterator<Item = H>) -> Self {
        self.callers.hosts = names.into_iter().map(Into::into).collect();
        self
    }

    /// Origins whose web pages may send requests, spelt as browsers do: `https://app.example`.
    /// Pages of this server's own host are always allowed.
    ///
    /// Default: none. One without a scheme, or with a path, is refused.
    #[must_use]
    pub fn allowed_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        self.callers.origins = origins.into_iter().map(Into::into).collect();
        self
    }
}
