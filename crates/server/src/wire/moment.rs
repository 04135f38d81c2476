//! Times as clients write them.

use std::time::SystemTime;

use super::quote::quoted;
use crate::problem::Problem;

/// The time, or a problem that names its field.
pub(crate) fn moment_of(name: &str, text: &str) -> Result<SystemTime, Problem> {
    reveille::moment::read(text).ok_or_else(|| {
        Problem::invalid(format!("{name} must be a time such as 2026-05-16T10:20:30Z, not {}", quoted(text)))
    })
}
