//! TLS to the server: which mode, whom we trust, and what a refused certificate means in words.
//!
//! The modes are libpq's, so that a URL means here what it means there: only `verify-ca` and
//! `verify-full` know whom they talk to, and `require` verifies the issuer only when `sslrootcert`
//! is given. `allow` is refused: it prefers plain text. The default without `sslmode` is decided in
//! [`super::address`].

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Address;
use super::error::DatabaseError;
use verify::{AnyCertificate, KnownIssuer, Name, is_an_authoritys_own};

mod verify;

/// How private a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Which issuers are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Without `sslrootcert`: the system's, where the mode verifies at all.
    Default,
    /// `sslrootcert=system`.
    System,
    /// `sslrootcert=<file>`.
    File(PathBuf),
}

impl TlsMode {
    pub(crate) fn on_the_wire(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }

    /// As libpq has it: `require` with a root certificate means `verify-ca`.
    fn with(self, roots: &Roots) -> Self {
        match (self, roots) {
            (Self::Require, Roots::File(_)) => Self::VerifyCa,
            (Self::Require, Roots::System) => Self::VerifyFull,
            _ => self,
        }
    }

    pub(crate) fn is_unverified(self, roots: &Roots) -> bool {
        matches!(self.with(roots), Self::Prefer | Self::Require)
    }
}

impl FromStr for TlsMode {
    type Err = String;

    fn from_str(mode: &str) -> Result<Self, String> {
        match mode {
            "disable" => Ok(Self::Disable),
            "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            "verify-ca" => Ok(Self::VerifyCa),
            "verify-full" => Ok(Self::VerifyFull),
            _ => Err("sslmode must be disable, prefer, require, verify-ca or verify-full".to_owned()),
        }
    }
}

/// Makes TLS sessions for one address.
pub(crate) type Tls = MakeRustlsConnect;

/// Load what the address needs: root certificates only if a certificate will be checked.
pub(crate) fn load(address: &Address) -> Result<Tls, DatabaseError> {
    let modes = address.endpoints.iter().map(|endpoint| endpoint.tls.with(&address.roots));
    let strictest = modes.max_by_key(|mode| *mode as u8).unwrap_or(TlsMode::Disable);
    let server = address.endpoints.first().map(|endpoint| endpoint.place.server.clone()).unwrap_or_default();
    let config =
        config(strictest, &address.roots).map_err(|reason| DatabaseError::Tls { server, reason, cause: None })?;
    Ok(MakeRustlsConnect::new(config))
}

fn config(mode: TlsMode, roots: &Roots) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match mode {
        TlsMode::Disable => builder.with_root_certificates(RootCertStore::empty()),
        TlsMode::Prefer | TlsMode::Require => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate::new(provider)))
        }
        TlsMode::VerifyCa | TlsMode::VerifyFull => {
            let name = if mode == TlsMode::VerifyFull { Name::TheServers } else { Name::Any };
            let verifier = KnownIssuer::new(trusted(roots)?, name, provider).map_err(|error| error.to_string())?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    Ok(builder.with_no_client_auth())
}

/// Whom we believe.
struct Trust {
    roots: RootCertStore,
    /// The certificates of `sslrootcert`: one of them may be the server's own.
    named: Vec<CertificateDer<'static>>,
}

fn trusted(roots: &Roots) -> Result<Trust, String> {
    let (mut store, mut named) = (RootCertStore::empty(), Vec::new());
    match roots {
        Roots::Default | Roots::System => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Roots::File(path) => {
            let unreadable = |error| format!("sslrootcert {} cannot be read: {error}", path.display());
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))? {
                let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
                store.add(certificate.clone()).map_err(|error| unreadable(error.to_string()))?;
                named.push(certificate);
            }
        }
    }
    if store.is_empty() {
        return Err(
            "no root certificate is known to verify the server's: name its issuer's with sslrootcert".to_owned()
        );
    }
    Ok(Trust { roots: store, named })
}

/// What a failed handshake means, or `None` when the error is about something else.
pub(crate) fn explain(error: &tokio_postgres::Error, server: &str) -> Option<String> {
    let source = error.source()?;
    if source.to_string() == "server does not support TLS" {
        return Some("the server offers none: switch ssl on there, or say sslmode=disable".to_owned());
    }
    let source = source.downcast_ref::<io::Error>()?.get_ref()?;
    Some(match source.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(refused) => certificate(refused, server),
        other => format!("the handshake failed ({other}): check the versions and ciphers of both sides"),
    })
}

fn certificate(refused: &CertificateError, server: &str) -> String {
    match refused {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "the server's certificate is for another name than {}: connect by a name that is in its subjectAltName, \
             or say sslmode=verify-ca",
            server.rsplit_once(':').map_or(server, |(host, _)| host)
        ),
        // A bad signature is what a renewed authority of the same name looks like.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "nobody we trust issued the server's certificate: name its issuer's certificate with sslrootcert".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired: renew it".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet: compare the clocks".to_owned()
        }
        other if is_an_authoritys_own(other) => {
            "the server's certificate is its own issuer's: name that very certificate with sslrootcert".to_owned()
        }
        other => format!("the server's certificate is refused ({other}): replace it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn require_verifies_nothing_unless_a_root_is_named() {
        assert!(TlsMode::Require.is_unverified(&Roots::Default));
        assert!(!TlsMode::Require.is_unverified(&Roots::File("ca.pem".into())));
        assert!(TlsMode::Prefer.is_unverified(&Roots::File("ca.pem".into())));
        assert!(!TlsMode::VerifyFull.is_unverified(&Roots::Default));
    }

    #[test]
    fn a_missing_root_file_is_named() {
        let fault = config(TlsMode::VerifyFull, &Roots::File("/nowhere/ca.pem".into())).unwrap_err();

        assert!(fault.starts_with("sslrootcert /nowhere/ca.pem cannot be read"), "{fault}");
    }
}
