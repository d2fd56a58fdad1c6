//! TLS towards the upstream: rustls with the system's roots, and those of a file.

use std::path::Path;

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::http_upstream::OriginError;

/// A configuration that trusts the system's certificates and, if given, those in a PEM file.
pub(super) fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, OriginError> {
    let mut roots = RootCertStore::empty();
    // A root that rustls cannot read is not trusted; the others still are.
    let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let refuse = |why: String| OriginError::Certificates { path: path.display().to_string(), why };
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))?;
        let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(|error| refuse(error.to_string()))?;
        let (added, _) = roots.add_parsable_certificates(certificates);
        if added == 0 {
            return Err(refuse("it holds no certificate".to_owned()));
        }
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder =
        builder.map_err(|error| OriginError::Certificates { path: "the system".to_owned(), why: error.to_string() })?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
