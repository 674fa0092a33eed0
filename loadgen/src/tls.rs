//! TLS of the load's own clients: rustls as any client uses it, and a certificate that is verified. What it costs is the
//! generator's, not the server's.
use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::plan::TlsPlan;

/// Whom all clients of a load believe.
#[derive(Clone)]
pub(crate) struct Believed {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Believed {
    /// # Errors
    /// A sentence that says which file or name does not fit.
    pub(crate) fn read(plan: &TlsPlan) -> Result<Self, String> {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", plan.authorities_file);
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(&plan.authorities_file).map_err(|error| told(&error))? {
            roots.add(certificate.map_err(|error| told(&error))?).map_err(|error| told(&error))?;
        }
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        // Every handshake is a whole one: what a new client costs is what is measured.
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from(plan.name.clone()).map_err(|error| format!("{}: {error}", plan.name))?;
        Ok(Self { config: Arc::new(config), name })
    }

    pub(crate) fn begin(&self) -> Result<Box<Tls>, String> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let mut connection = connection.map_err(|error| format!("a handshake could not begin: {error}"))?;
        connection.set_buffer_limit(None);
        Ok(Box::new(Tls { connection, sealed: 0 }))
    }
}

/// One client's.
pub(crate) struct Tls {
    connection: ClientConnection,
    /// How much at the front of its pending bytes is ciphertext already.
    sealed: usize,
}

impl Tls {
    /// Opens what came; what has to be answered is added to `pending`.
    pub(crate) fn open(&mut self, mut bytes: &[u8], pending: &mut Vec<u8>, plain: &mut Vec<u8>) -> Result<(), String> {
        while !bytes.is_empty() {
            self.connection.read_tls(&mut bytes).map_err(|error| format!("records: {error}"))?;
            self.connection.process_new_packets().map_err(|error| format!("the server's TLS: {error}"))?;
            match self.connection.reader().read_to_end(plain) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(format!("records: {error}")),
            }
        }
        self.seal(pending).map_err(|error| format!("records: {error}"))
    }

    /// Makes ciphertext of what was added to `pending` since.
    pub(crate) fn seal(&mut self, pending: &mut Vec<u8>) -> io::Result<()> {
        let plain = pending.split_off(self.sealed.min(pending.len()));
        if !plain.is_empty() {
            self.connection.writer().write_all(&plain)?;
        }
        while self.connection.wants_write() {
            self.connection.write_tls(pending)?;
        }
        self.sealed = pending.len();
        Ok(())
    }

    /// So many bytes of it have left.
    pub(crate) fn left(&mut self, bytes: usize) {
        self.sealed = self.sealed.saturating_sub(bytes);
    }
}
