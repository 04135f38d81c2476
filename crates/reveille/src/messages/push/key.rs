//! The key under which a transaction id is remembered.

use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid, Version};

/// The id itself if it is a UUID in its usual spelling (clients send ids that grow, and these fill
/// an index from one end); else a UUID of version 8 made of its hash. A UUID that has version 8
/// itself is hashed, so that no producer can choose the key of another id. The SQL function
/// `dedup_key` does the same.
pub(super) fn dedup_key(transaction_id: &str) -> Uuid {
    match Uuid::try_parse(transaction_id) {
        Ok(id) if is_plain(transaction_id) && id.get_version() != Some(Version::Custom) => id,
        _ => {
            let digest = Sha256::digest(transaction_id);
            let bytes = std::array::from_fn(|i| digest[i]);
            Builder::from_custom_bytes(bytes).into_uuid()
        }
    }
}

/// Whether keys like this one grow with time: the log itself remembers these.
pub(super) fn grows(key: &Uuid) -> bool {
    key.get_version_num() == 7
}

/// With hyphens and in lower case. Other spellings are other ids.
fn is_plain(text: &str) -> bool {
    text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_uuid_is_its_own_key() {
        let id = Uuid::now_v7();

        assert_eq!(dedup_key(&id.to_string()), id);
        assert_eq!(dedup_key(&Uuid::nil().to_string()), Uuid::nil());
    }

    #[test]
    fn other_spellings_are_other_ids() {
        let id = Uuid::now_v7();
        let spellings = [id.to_string(), id.simple().to_string(), id.braced().to_string(), id.urn().to_string()];
        let upper = id.to_string().to_uppercase();

        let mut keys: Vec<Uuid> = spellings.iter().map(|text| dedup_key(text)).collect();
        keys.extend((upper != id.to_string()).then(|| dedup_key(&upper)));
        let all = keys.len();
        keys.sort();
        keys.dedup();

        assert_eq!(keys.len(), all);
    }

    #[test]
    fn a_producer_cannot_choose_the_key_of_another_id() {
        let hashed = dedup_key("order 7");

        assert_eq!(hashed.get_version(), Some(Version::Custom));
        assert_ne!(dedup_key(&hashed.to_string()), hashed);
    }
}
