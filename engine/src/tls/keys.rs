//! The keys of TLS 1.3, folded. A cipher's working state (AES's key schedule, GCM's table) is 600 bytes each way; the key it is made
//! from is 32. What most connections of a node do is wait, so a key is kept as it came, and unfolded when a record needs it: those in
//! use are kept unfolded, a bounded number on each thread, and those that rest are folded again. The ciphers are aws-lc's, the
//! protocol rustls's; this is its interface for such providers. What unfolding costs says examples/key_speed.rs.

use aws_lc_rs::aead::{self, Aad, LessSafeKey, UnboundKey};
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter, Nonce,
    OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload, Tls13AeadAlgorithm, UnsupportedOperationError,
    make_tls13_aad,
};
use rustls::{
    CipherSuite, CipherSuiteCommon, ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion,
    SupportedCipherSuite, Tls13CipherSuite,
};
use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys that one thread keeps unfolded: 0.6 MB.
const UNFOLDED_MAX: usize = 1_024;

/// The same suites; those of TLS 1.3 with keys that fold.
pub(super) fn fold(suites: &[SupportedCipherSuite]) -> Vec<SupportedCipherSuite> {
    suites.iter().map(|suite| find_folding(suite.suite()).map_or(*suite, SupportedCipherSuite::Tls13)).collect()
}

fn find_folding(name: CipherSuite) -> Option<&'static Tls13CipherSuite> {
    static SUITES: OnceLock<Vec<Tls13CipherSuite>> = OnceLock::new();
    let suites = SUITES.get_or_init(|| {
        let all = rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES.iter().filter_map(SupportedCipherSuite::tls13);
        all.filter_map(|suite| {
            let CipherSuiteCommon { suite: name, hash_provider, confidentiality_limit } = suite.common;
            let common = CipherSuiteCommon { suite: name, hash_provider, confidentiality_limit };
            let aead_alg = algorithm_of(name)?;
            Some(Tls13CipherSuite { common, hkdf_provider: suite.hkdf_provider, aead_alg, quic: None })
        })
        .collect()
    });
    suites.iter().find(|suite| suite.common.suite == name)
}

fn algorithm_of(name: CipherSuite) -> Option<&'static dyn Tls13AeadAlgorithm> {
    static AES_128: Algorithm = Algorithm(&aead::AES_128_GCM);
    static AES_256: Algorithm = Algorithm(&aead::AES_256_GCM);
    static CHACHA: Algorithm = Algorithm(&aead::CHACHA20_POLY1305);
    match name {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => Some(&AES_128),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => Some(&AES_256),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Some(&CHACHA),
        _ => None,
    }
}

/// Folds the keys of this thread that no record has needed since the last call.
pub(crate) fn rest() {
    UNFOLDED.with_borrow_mut(|unfolded| {
        for place in &mut unfolded.places {
            let is_used = place.as_mut().is_some_and(|kept| std::mem::take(&mut kept.is_used));
            if !is_used {
                *place = None;
            }
        }
        if unfolded.places.iter().all(Option::is_none) {
            unfolded.places = Vec::new();
        }
    });
}

struct Algorithm(&'static aead::Algorithm);

impl Tls13AeadAlgorithm for Algorithm {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Folded::new(self.0, key, iv))
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Folded::new(self.0, key, iv))
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(&self, _: AeadKey, _: Iv) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        // Nobody here takes keys out of a connection.
        Err(UnsupportedOperationError)
    }
}

/// One direction's key.
struct Folded {
    algorithm: &'static aead::Algorithm,
    key: AeadKey,
    iv: Iv,
    /// Never given twice.
    id: u64,
    /// Where it was kept unfolded last.
    place: u32,
}

struct Kept {
    id: u64,
    key: LessSafeKey,
    is_used: bool,
}

#[derive(Default)]
struct Unfolded {
    places: Vec<Option<Kept>>,
    /// Where the next one to go is looked for: those used since it last came by are passed over once.
    hand: usize,
}

thread_local! {
    static UNFOLDED: RefCell<Unfolded> = RefCell::default();
}

impl Unfolded {
    /// A place for one more key.
    fn make_room(&mut self) -> usize {
        if self.places.len() < UNFOLDED_MAX {
            self.places.push(None);
            return self.places.len() - 1;
        }
        loop {
            self.hand = (self.hand + 1) % UNFOLDED_MAX;
            match self.places.get_mut(self.hand).and_then(Option::as_mut) {
                Some(kept) if kept.is_used => kept.is_used = false,
                _ => return self.hand,
            }
        }
    }
}

impl Folded {
    fn new(algorithm: &'static aead::Algorithm, key: AeadKey, iv: Iv) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(0);
        Self { algorithm, key, iv, id: IDS.fetch_add(1, Ordering::Relaxed), place: u32::MAX }
    }

    /// Does something with the unfolded key.
    fn with<T>(&mut self, act: impl FnOnce(&LessSafeKey, aead::Nonce) -> Option<T>, seq: u64) -> Option<T> {
        let nonce = aead::Nonce::assume_unique_for_key(Nonce::new(&self.iv, seq).0);
        UNFOLDED.with_borrow_mut(|unfolded| {
            let known = unfolded.places.get_mut(self.place as usize).and_then(Option::as_mut);
            if let Some(kept) = known.filter(|kept| kept.id == self.id) {
                kept.is_used = true;
                return act(&kept.key, nonce);
            }
            let key = LessSafeKey::new(UnboundKey::new(self.algorithm, self.key.as_ref()).ok()?);
            let done = act(&key, nonce);
            let place = unfolded.make_room();
            if let Some(free) = unfolded.places.get_mut(place) {
                *free = Some(Kept { id: self.id, key, is_used: true });
                self.place = place as u32;
            }
            done
        })
    }
}

impl Drop for Folded {
    fn drop(&mut self) {
        // A thread that ends has dropped them all.
        let _ = UNFOLDED.try_with(|unfolded| {
            if let Ok(mut unfolded) = unfolded.try_borrow_mut()
                && let Some(place) = unfolded.places.get_mut(self.place as usize)
                && place.as_ref().is_some_and(|kept| kept.id == self.id)
            {
                *place = None;
            }
        });
    }
}

impl MessageEncrypter for Folded {
    fn encrypt(&mut self, message: OutboundPlainMessage<'_>, seq: u64) -> Result<OutboundOpaqueMessage, Error> {
        let length = self.encrypted_payload_len(message.payload.len());
        let mut payload = PrefixedPayload::with_capacity(length);
        payload.extend_from_chunks(&message.payload);
        payload.extend_from_slice(&message.typ.to_array());
        let aad = Aad::from(make_tls13_aad(length));
        self.with(|key, nonce| key.seal_in_place_append_tag(nonce, aad, &mut payload).ok(), seq)
            .ok_or(Error::EncryptError)?;
        // RFC 8446, 5.2: on the outside every record is data of version 1.2.
        Ok(OutboundOpaqueMessage::new(ContentType::ApplicationData, ProtocolVersion::TLSv1_2, payload))
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len + 1 + self.algorithm.tag_len()
    }
}

impl MessageDecrypter for Folded {
    fn decrypt<'a>(
        &mut self,
        mut message: InboundOpaqueMessage<'a>,
        seq: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let payload = &mut message.payload;
        if payload.len() < self.algorithm.tag_len() {
            return Err(Error::DecryptError);
        }
        let aad = Aad::from(make_tls13_aad(payload.len()));
        let opened = self.with(|key, nonce| key.open_in_place(nonce, aad, payload).ok().map(|plain| plain.len()), seq);
        payload.truncate(opened.ok_or(Error::DecryptError)?);
        message.into_tls13_unpadded_message()
    }
}

#[cfg(test)]
mod tests {
    use super::{UNFOLDED, UNFOLDED_MAX, fold, rest};
    use rustls::crypto::aws_lc_rs::{ALL_CIPHER_SUITES, cipher_suite, default_provider};
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, SupportedCipherSuite};
    use std::io::{Read, Write};
    use std::sync::Arc;

    const CERTIFICATE: &[u8] = include_bytes!("../../tests/tls/localhost.crt");
    const KEY: &[u8] = include_bytes!("../../tests/tls/localhost.key");

    /// A server whose keys fold and a client whose do not, speaking one suite, after their handshake.
    fn pair(suite: SupportedCipherSuite) -> (ServerConnection, ClientConnection) {
        let with = |cipher_suites| Arc::new(rustls::crypto::CryptoProvider { cipher_suites, ..default_provider() });
        let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
        let mut believed = RootCertStore::empty();
        believed.add(chain[0].clone()).unwrap();
        let server = ServerConfig::builder_with_provider(with(fold(&[suite])))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from_pem_slice(KEY).unwrap())
            .unwrap();
        let client = ClientConfig::builder_with_provider(with(vec![suite]))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(believed)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        while server.is_handshaking() || client.is_handshaking() {
            carry(&mut client, &mut server);
            carry(&mut server, &mut client);
        }
        (server, client)
    }

    fn carry<A, B>(
        from: &mut impl std::ops::DerefMut<Target = rustls::ConnectionCommon<A>>,
        to: &mut impl std::ops::DerefMut<Target = rustls::ConnectionCommon<B>>,
    ) {
        let mut records = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut records).unwrap();
        }
        let mut rest = records.as_slice();
        while !rest.is_empty() {
            to.read_tls(&mut rest).unwrap();
            to.process_new_packets().unwrap();
        }
    }

    fn exchange(server: &mut ServerConnection, client: &mut ClientConnection, text: &[u8]) {
        for _ in 0..2 {
            server.writer().write_all(text).unwrap();
            carry(server, client);
            let mut heard = vec![0; text.len()];
            client.reader().read_exact(&mut heard).unwrap();
            assert_eq!(heard, text);
            client.writer().write_all(text).unwrap();
            carry(client, server);
            server.reader().read_exact(&mut heard).unwrap();
            assert_eq!(heard, text);
        }
    }

    #[test]
    fn what_a_folded_key_seals_every_other_implementation_of_the_suite_opens_and_back() {
        let suites = ALL_CIPHER_SUITES.iter().filter(|suite| suite.tls13().is_some());
        assert_eq!(suites.clone().count(), 3);
        for suite in suites {
            let (mut server, mut client) = pair(*suite);
            assert_eq!(server.negotiated_cipher_suite().unwrap().suite(), suite.suite());
            for length in [1, 15, 16, 17, 1_000, 16_000] {
                exchange(&mut server, &mut client, &vec![7; length]);
                rest();
            }
            client.refresh_traffic_keys().unwrap();
            exchange(&mut server, &mut client, b"after a key update");
        }
    }

    #[test]
    fn more_connections_than_are_kept_unfolded_all_go_on_and_what_rests_is_folded() {
        let mut pairs: Vec<_> = (0..30).map(|_| pair(cipher_suite::TLS13_AES_128_GCM_SHA256)).collect();
        let unfolded = || UNFOLDED.with_borrow(|unfolded| unfolded.places.iter().flatten().count());
        UNFOLDED.with_borrow_mut(|unfolded| unfolded.places.resize_with(UNFOLDED_MAX - 20, || None));
        for round in 0..5_u8 {
            for (server, client) in &mut pairs {
                exchange(server, client, &[round; 100]);
            }
        }
        assert!((20..=UNFOLDED_MAX).contains(&unfolded()), "{}", unfolded());
        rest();
        let (server, client) = &mut pairs[0];
        exchange(server, client, b"again");
        rest();
        assert_eq!(unfolded(), 2, "only what was used since");
        pairs.clear();
        assert_eq!(unfolded(), 0, "a connection's keys go with it");
    }

    #[test]
    fn a_record_that_was_touched_is_refused() {
        let (mut server, mut client) = pair(cipher_suite::TLS13_AES_256_GCM_SHA384);
        client.writer().write_all(b"to be believed").unwrap();
        let mut record = Vec::new();
        client.write_tls(&mut record).unwrap();
        let last = record.len() - 1;
        record[last] ^= 1;
        server.read_tls(&mut record.as_slice()).unwrap();
        assert!(server.process_new_packets().is_err());
    }
}
