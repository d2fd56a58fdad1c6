//! TLS towards the upstream: rustls with the system's roots, and the certificates of a file.

use std::{path::Path, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};

use super::origin::OriginError;

/// A configuration that trusts the system's certificates and, if given, those in a PEM file.
pub(in crate::proxy) fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, OriginError> {
    let mut roots = RootCertStore::empty();
    // A root that rustls cannot read is not trusted; the others still are.
    let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let refuse = |path: &str, why: String| OriginError::Certificates { path: path.to_owned(), why };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| refuse("the system", error.to_string()))?;
    let Some(path) = ca_file else {
        return Ok(builder.with_root_certificates(roots).with_no_client_auth());
    };
    let refuse = |why: String| refuse(&path.display().to_string(), why);
    let given = CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))?;
    let given = given.collect::<Result<Vec<_>, _>>().map_err(|error| refuse(error.to_string()))?;
    let (added, _) = roots.add_parsable_certificates(given.iter().cloned());
    if added == 0 {
        return Err(refuse("it holds no certificate".to_owned()));
    }
    let verifier = GivenRoots::new(roots, provider, given).map_err(|error| refuse(error.to_string()))?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Verifies as rustls does, and takes a certificate of the file itself for the server's own: what `openssl req -x509`
/// makes calls itself a CA, which no server's certificate may be where a chain vouches for it. Here none needs to.
#[derive(Debug)]
struct GivenRoots {
    chains: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl GivenRoots {
    fn new(
        roots: RootCertStore,
        provider: Arc<CryptoProvider>,
        given: Vec<CertificateDer<'static>>,
    ) -> Result<Self, rustls::server::VerifierBuilderError> {
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        Ok(Self { chains, given })
    }
}

/// Whether being a CA is all that is wrong with a certificate: its dates are looked at before.
fn is_ca(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::Other(other))
        if other.to_string() == "CaUsedAsEndEntity")
}

impl ServerCertVerifier for GivenRoots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.chains.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            Err(error) if is_ca(&error) && self.given.iter().any(|given| given == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            Err(error) if is_ca(&error) => Err(Error::General(
                "the upstream's certificate is its own CA: give this very certificate as --ca-file".to_owned(),
            )),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    fn certificate(name: &str, year_of_end: i32, is_ca: bool) -> rcgen::Certificate {
        let mut made = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        made.not_before = rcgen::date_time_ymd(2001, 1, 1);
        made.not_after = rcgen::date_time_ymd(year_of_end, 1, 1);
        if is_ca {
            made.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        made.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate")
    }

    #[test]
    fn a_certificate_that_is_given_is_the_servers_own() {
        let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_500_000_000));
        for (name, given, shown, to, expected) in [
            ("a CA by itself", certificate("h", 2100, true), None, "h", Ok(())),
            ("no CA", certificate("h", 2100, false), None, "h", Ok(())),
            ("another name", certificate("h", 2100, true), None, "other", Err("not valid for name")),
            ("expired", certificate("h", 2010, true), None, "h", Err("expired")),
            ("a stranger", certificate("h", 2100, true), Some(certificate("h", 2100, true)), "h", Err("--ca-file")),
            (
                "a stranger, no CA",
                certificate("h", 2100, true),
                Some(certificate("h", 2100, false)),
                "h",
                Err("invalid"),
            ),
        ] {
            let mut roots = RootCertStore::empty();
            roots.add(given.der().clone()).expect("a root");
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let verifier = GivenRoots::new(roots, provider, vec![given.der().clone()]).expect("a verifier");
            let shown = shown.as_ref().unwrap_or(&given);
            let to = ServerName::try_from(to).expect("a name");
            let verified = verifier.verify_server_cert(shown.der(), &[], &to, &[], at);
            match expected {
                Ok(()) => assert!(verified.is_ok(), "{name}: {verified:?}"),
                Err(words) => {
                    let error = verified.expect_err(name).to_string();
                    assert!(error.contains(words), "{name}: {error}");
                }
            }
        }
    }
}
