//! Tests that need more than PostgreSQL.

use crate::supervisor::environment;

/// Whether a test can run here. Prints why when it cannot; in CI, where no test may be skipped,
/// panics.
///
/// # Panics
/// When `present` is false and the environment has `CI`.
pub fn needs(present: bool, what: &str) -> bool {
    if !present {
        assert!(environment("CI").is_none(), "this test needs {what}, which CI must have");
        eprintln!("skipped: this test needs {what}");
    }
    present
}
