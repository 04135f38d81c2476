//! Numbers that a person who runs a test may choose.

use crate::supervisor::environment;

/// The number in an environment variable, if there is one.
///
/// # Panics
/// When the variable holds anything else: a run that was meant to be long, or to have a certain
/// random seed, must not pass as another.
pub fn chosen(name: &str) -> Option<u64> {
    let said = environment(name)?;
    let number = said.to_str().and_then(|text| text.parse().ok());
    Some(number.unwrap_or_else(|| panic!("{name} is {}, which is not a number", said.display())))
}
