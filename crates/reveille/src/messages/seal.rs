//! Encryption at rest: AES-256-GCM under one of several keys.
//!
//! Owns the keys of this process, and never shows them. A sealed payload is its nonce, the
//! ciphertext and the tag. It is bound to its message's id, so that payloads cannot be exchanged in
//! the table. The number of the key is stored beside it; the key with the highest number seals.
//! Promises that nothing is stored in the clear when a key is missing: the error names the key.

use std::collections::BTreeMap;
use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use super::error::MessagesError;
use super::ids::MessageId;
use super::payload::Payload;

/// Keys by number, as a caller gives them.
#[derive(Clone, Default)]
pub(crate) struct KeyRing(BTreeMap<i32, [u8; 32]>);

impl KeyRing {
    pub(super) fn insert(&mut self, id: i32, key: [u8; 32]) {
        self.0.insert(id, key);
    }
}

/// Only the numbers.
impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Seals and opens payloads.
pub(super) struct Seal {
    keys: BTreeMap<i32, LessSafeKey>,
    random: SystemRandom,
}

impl Seal {
    pub(super) fn new(ring: &KeyRing) -> Self {
        // 32 bytes are always a key of this cipher.
        let usable = |key: &[u8; 32]| UnboundKey::new(&AES_256_GCM, key).map(LessSafeKey::new).ok();
        let keys = ring.0.iter().filter_map(|(id, key)| Some((*id, usable(key)?))).collect();
        Self { keys, random: SystemRandom::new() }
    }

    /// The number of the key that seals.
    pub(super) fn write_key(&self) -> Option<i32> {
        self.keys.keys().next_back().copied()
    }

    /// Seals a payload under that key.
    pub(super) fn seal(&self, key_id: i32, id: MessageId, payload: &[u8]) -> Result<Vec<u8>, MessagesError> {
        let key = self.key(key_id)?;
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| MessagesError::Sealed)?;
        let mut sealed = Vec::with_capacity(NONCE_LEN + payload.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(payload);
        let tag = key.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(id.0.as_bytes()),
            &mut sealed[NONCE_LEN..],
        );
        sealed.extend_from_slice(tag.map_err(|_| MessagesError::Sealed)?.as_ref());
        Ok(sealed)
    }

    /// Opens a stored payload; without a key number it is plain.
    pub(super) fn open(&self, key_id: Option<i32>, id: MessageId, stored: Vec<u8>) -> Result<Payload, MessagesError> {
        let Some(key_id) = key_id else { return Ok(Payload::new(stored)) };
        let key = self.key(key_id)?;
        let mut sealed = stored;
        let nonce = sealed.first_chunk().copied().ok_or(MessagesError::Sealed)?;
        let opened =
            key.open_within(Nonce::assume_unique_for_key(nonce), Aad::from(id.0.as_bytes()), &mut sealed, NONCE_LEN..);
        let length = opened.map_err(|_| MessagesError::Sealed)?.len();
        sealed.truncate(length);
        Ok(Payload::new(sealed))
    }

    fn key(&self, key_id: i32) -> Result<&LessSafeKey, MessagesError> {
        self.keys.get(&key_id).ok_or(MessagesError::NoKey { key_id })
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").field("keys", &self.keys.keys()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(keys: &[(i32, u8)]) -> Seal {
        let mut ring = KeyRing::default();
        for (id, byte) in keys {
            ring.insert(*id, [*byte; 32]);
        }
        Seal::new(&ring)
    }

    #[test]
    fn what_was_sealed_opens_as_it_was_and_the_newest_key_seals() {
        let (both, id) = (seal(&[(1, 1), (7, 7)]), MessageId::new());

        for payload in [&b""[..], b"{}", &vec![0; 70_000]] {
            let sealed = both.seal(both.write_key().unwrap(), id, payload).unwrap();
            assert_eq!(seal(&[(7, 7)]).open(Some(7), id, sealed.clone()).unwrap().as_bytes(), payload);
            assert!(payload.is_empty() || !sealed.windows(payload.len()).any(|part| part == payload));
        }
    }

    #[test]
    fn a_changed_byte_another_message_and_another_key_are_refused_in_words() {
        let (keys, id) = (seal(&[(7, 7)]), MessageId::new());
        let sealed = keys.seal(7, id, b"secret").unwrap();
        let mut changed = sealed.clone();
        changed[15] ^= 1;

        let refused = |result: Result<Payload, MessagesError>| result.unwrap_err().to_string();

        let broken = "a payload could not be opened: it was changed, or sealed with another key of the same number";
        assert_eq!(refused(keys.open(Some(7), id, changed)), broken);
        assert_eq!(refused(keys.open(Some(7), MessageId::new(), sealed.clone())), broken);
        assert_eq!(refused(seal(&[(7, 8)]).open(Some(7), id, sealed.clone())), broken);
        assert_eq!(refused(keys.open(Some(7), id, vec![1, 2, 3])), broken);
        assert_eq!(refused(seal(&[]).open(Some(7), id, sealed)), "the encryption key 7 is not loaded");
    }

    #[test]
    fn keys_are_not_shown() {
        let mut ring = KeyRing::default();
        ring.insert(3, [171; 32]);

        assert_eq!(format!("{ring:?}"), "{3}");
    }
}
