//! What this node shows to clients, and what it asks of them: certificates by name (SNI), versions, cipher suites, the authorities
//! of client certificates. Read from files as a whole: where anything of it is wrong, what was before stays.

use super::keys::fold;
use godwit_core::settings::TlsSettings;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{ALL_CIPHER_SUITES, Ticketer, default_provider, sign};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig, SignatureScheme, SupportedProtocolVersion, version};
use std::sync::Arc;

/// All of a node's listeners share one.
#[derive(Clone, Debug)]
pub(crate) struct Certificates(Arc<ServerConfig>);

impl Certificates {
    /// Reads all files.
    ///
    /// # Errors
    /// A sentence that names the file or word that does not fit.
    pub(crate) fn read(settings: &TlsSettings) -> Result<Self, String> {
        let provider = Arc::new(provider(&settings.cipher_suites)?);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions(&settings.version_min)?)
            .map_err(|error| format!("tls.version_min: {error}"))?;
        let builder = match settings.client_certificates.as_str() {
            "" | "none" => builder.with_no_client_auth(),
            word @ ("optional" | "required") => {
                let roots = Arc::new(authorities(&settings.client_authorities_file)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = if word == "optional" { verifier.allow_unauthenticated() } else { verifier };
                let verifier = verifier.build().map_err(|error| format!("tls.client_authorities_file: {error}"))?;
                builder.with_client_cert_verifier(verifier)
            }
            other => return Err(format!("tls.client_certificates: {other}: is none of none, optional, required")),
        };
        let mut config = builder.with_cert_resolver(Arc::new(Names::read(settings)?));
        // A client resumes by what it holds itself: nothing is kept for it here. With client certificates no
        // session is resumed: a ticket holds the certificate as it was verified once, and it may have expired, or lost its authority.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        if matches!(settings.client_certificates.as_str(), "" | "none") {
            config.ticketer = Ticketer::new().map_err(|error| format!("tls: {error}"))?;
            config.send_tls13_tickets = 1;
        }
        // The operator's order of suites counts, or else the strongest first.
        config.ignore_client_order = true;
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0)
    }
}

/// The named suites; all that rustls has, AEAD every one, where none is named.
fn provider(names: &[String]) -> Result<CryptoProvider, String> {
    let mut provider = default_provider();
    if !names.is_empty() {
        let find = |name: &String| {
            let suite = ALL_CIPHER_SUITES.iter().find(|suite| format!("{:?}", suite.suite()) == *name);
            let known = || ALL_CIPHER_SUITES.iter().map(|suite| format!("{:?}", suite.suite())).collect::<Vec<_>>();
            suite.copied().ok_or_else(|| format!("tls.cipher_suites: {name}: is none of {}", known().join(", ")))
        };
        provider.cipher_suites = names.iter().map(find).collect::<Result<_, _>>()?;
    }
    provider.cipher_suites = fold(&provider.cipher_suites);
    Ok(provider)
}

static BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
static NEWEST: &[&SupportedProtocolVersion] = &[&version::TLS13];

fn versions(least: &str) -> Result<&'static [&'static SupportedProtocolVersion], String> {
    match least {
        "" | "1.2" => Ok(BOTH),
        "1.3" => Ok(NEWEST),
        other => Err(format!("tls.version_min: {other}: is neither 1.2 nor 1.3")),
    }
}

fn authorities(file: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in read_chain(file, "tls.client_authorities_file")? {
        roots.add(certificate).map_err(|error| format!("tls.client_authorities_file: {file}: {error}"))?;
    }
    Ok(roots)
}

fn read_chain(file: &str, key: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let invalid = |error: &dyn std::fmt::Display| format!("{key}: {file}: {error}");
    let chain: Vec<_> = CertificateDer::pem_file_iter(file)
        .map_err(|error| invalid(&error))?
        .collect::<Result<_, _>>()
        .map_err(|error| invalid(&error))?;
    if chain.is_empty() { Err(invalid(&"holds no certificate")) } else { Ok(chain) }
}

/// The certificates by the names they are for; the first answers whoever names none of them.
#[derive(Debug)]
struct Names {
    first: Arc<CertifiedKey>,
    /// The first, and others for a name of its: with keys of other kinds.
    for_none: Vec<Arc<CertifiedKey>>,
    by_name: Vec<(String, Arc<CertifiedKey>)>,
}

impl Names {
    fn read(settings: &TlsSettings) -> Result<Self, String> {
        let mut first = None;
        let mut by_name: Vec<(String, Arc<CertifiedKey>)> = Vec::new();
        for pair in &settings.certificates {
            let chain = read_chain(&pair.certificate_file, "tls.certificate_files")?;
            let invalid = |error: &dyn std::fmt::Display| format!("tls.key_files: {}: {error}", pair.key_file);
            let key = PrivateKeyDer::from_pem_file(&pair.key_file).map_err(|error| invalid(&error))?;
            let key = sign::any_supported_type(&key).map_err(|error| invalid(&error))?;
            let names = chain.first().map(dns_names).unwrap_or_default();
            let certified = Arc::new(CertifiedKey::new(chain, key));
            certified.keys_match().map_err(|_| invalid(&"is not the key of its certificate"))?;
            by_name.extend(names.into_iter().map(|name| (name, Arc::clone(&certified))));
            first.get_or_insert(certified);
        }
        let first: Arc<CertifiedKey> =
            first.ok_or("tls: a TLS listener needs tls.certificate_files and tls.key_files")?;
        let named: Vec<&String> =
            by_name.iter().filter(|(_, key)| Arc::ptr_eq(key, &first)).map(|(name, _)| name).collect();
        let alike = by_name.iter().filter(|(name, _)| named.contains(&name)).map(|(_, key)| Arc::clone(key));
        let for_none = std::iter::once(Arc::clone(&first)).chain(alike).collect();
        Ok(Self { first, for_none, by_name })
    }

    /// The certificate for a name whose key the client can check; where there is none of these, any for the name.
    fn find(&self, asked: &str, schemes: &[SignatureScheme]) -> Option<&Arc<CertifiedKey>> {
        let asked = asked.to_ascii_lowercase();
        let of_domain = asked.split_once('.').map(|(_, domain)| format!("*.{domain}"));
        let named = || [Some(&asked), of_domain.as_ref()].into_iter().flatten();
        let all = || named().flat_map(|name| self.by_name.iter().filter(move |(known, _)| known == name));
        let mut keys = all().map(|(_, key)| key);
        keys.find(|key| can_check(key, schemes)).or_else(|| all().map(|(_, key)| key).next())
    }

    /// The same for a client that names no host, or one that is not known.
    fn find_default(&self, schemes: &[SignatureScheme]) -> &Arc<CertifiedKey> {
        let mut of_first = self.for_none.iter();
        of_first.find(|key| can_check(key, schemes)).unwrap_or(&self.first)
    }
}

fn dns_names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let parsed = webpki::EndEntityCert::try_from(certificate);
    parsed.map(|parsed| parsed.valid_dns_names().map(str::to_ascii_lowercase).collect()).unwrap_or_default()
}

/// Whether a client that knows these schemes can check what the certificate's key signs.
fn can_check(key: &CertifiedKey, schemes: &[SignatureScheme]) -> bool {
    key.key.choose_scheme(schemes).is_some()
}

impl ResolvesServerCert for Names {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        let named = hello.server_name().and_then(|name| self.find(name, schemes));
        Some(Arc::clone(named.unwrap_or_else(|| self.find_default(schemes))))
    }
}
