//! The names of locks.
//!
//! A lock on a turn is named by its nonce and its instance, so that a statement with the name finds
//! the one row that is locked. To the runtime it is an opaque text.

/// `count` new names that no other process can guess.
pub(crate) fn nonces(count: usize) -> Vec<String> {
    (0..count).map(|_| format!("{:032x}", fastrand::u128(..))).collect()
}

/// The name of a turn's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnToken {
    pub(crate) nonce: String,
    pub(crate) instance: String,
}

impl TurnToken {
    /// `None` for a text that is no token of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (nonce, instance) = text.split_once(':')?;
        Some(Self { nonce: nonce.to_owned(), instance: instance.to_owned() })
    }
}

impl std::fmt::Display for TurnToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.nonce, self.instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_any_instance_name() {
        let token = TurnToken { nonce: nonces(1).remove(0), instance: "a:b::c".to_owned() };

        assert_eq!(TurnToken::parse(&token.to_string()), Some(token));
    }

    #[test]
    fn no_two_nonces_are_the_same() {
        let mut names = nonces(1000);
        names.sort();
        names.dedup();

        assert_eq!(names.len(), 1000);
    }
}
