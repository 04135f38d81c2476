//! From the database's errors to duroxide's.
//!
//! Promises that what may pass by itself is `retryable`, so that the runtime never fails a workflow
//! over a failover. Everything else is permanent and says why, with the server's own words.

use std::error::Error;

use duroxide::providers::ProviderError;
use reveille::database::DatabaseError;

/// An error of the database during an operation of the provider.
pub(crate) fn provider_error(operation: &str, error: &DatabaseError) -> ProviderError {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        message = format!("{message}: {deeper}");
        cause = deeper.source();
    }
    if error.is_transient() {
        ProviderError::retryable(operation, message)
    } else {
        ProviderError::permanent(operation, message)
    }
}

/// A stored text that cannot be read, or a value that cannot be written.
pub(crate) fn unreadable(operation: &str, what: &str, error: &serde_json::Error) -> ProviderError {
    ProviderError::permanent(operation, format!("Failed to deserialize {what}: {error}"))
}
