//! The ways to verify a certificate, as libpq's `require`, `verify-ca` and `verify-full` do.
//!
//! All of them prove that the server holds the certificate's key; they differ in whom they believe.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, VerifierBuilderError};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::Trust;

/// Believes any certificate.
#[derive(Debug)]
pub(super) struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl AnyCertificate {
    pub(super) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self { provider }
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Which name a certificate must carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Any,
    TheServers,
}

/// Believes a certificate from a trusted issuer, and one that is trusted itself although it is an
/// authority's own: so are those made as PostgreSQL's documentation shows.
#[derive(Debug)]
pub(super) struct KnownIssuer {
    strict: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
    name: Name,
}

impl KnownIssuer {
    pub(super) fn new(trust: Trust, name: Name, provider: Arc<CryptoProvider>) -> Result<Self, VerifierBuilderError> {
        let strict = WebPkiServerVerifier::builder_with_provider(Arc::new(trust.roots), provider).build()?;
        Ok(Self { strict, named: trust.named, name })
    }
}

impl ServerCertVerifier for KnownIssuer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.strict.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let Err(Error::InvalidCertificate(refused)) = &verdict else { return verdict };
        let any_name = self.name == Name::Any;
        match refused {
            // The name is checked last, after issuer, dates and use, so nothing else is wrong.
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } if any_name => {}
            // The dates are checked before the use.
            refused if is_an_authoritys_own(refused) && self.named.iter().any(|named| named == end_entity) => {
                if !any_name {
                    verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                }
            }
            _ => return verdict,
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.strict.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.strict.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.strict.supported_verify_schemes()
    }
}

/// Whether a server shows a certificate that is made to issue others. The TLS library has no word
/// of its own for it.
pub(super) fn is_an_authoritys_own(refused: &CertificateError) -> bool {
    matches!(refused, CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity"))
}
