//! Names that were probably meant for others.
//!
//! Fields that nobody knows are passed over, for clients send more than a server needs. One that is almost a field we know is
//! no such thing: what was meant would not happen, and nobody would say so.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use strsim::normalized_damerau_levenshtein;

use crate::problem::Problem;
use crate::wire::told::shortened;

/// From here on a name is taken for a slip of another.
const LIKE: f64 = 0.7;

/// The name of these that was probably meant.
pub(super) fn meant<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    // Far too long to be like any of them, and dear to compare.
    if name.len() > 100 {
        return None;
    }
    let likeness = |known: &&str| normalized_damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase());
    let best = known.iter().map(|known| (likeness(known), *known)).max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= LIKE).then_some(best.1)
}

/// The names of a body's fields, if it is an object.
pub(crate) fn names(body: &[u8]) -> Vec<String> {
    let fields: BTreeMap<String, IgnoredAny> = serde_json::from_slice(body).unwrap_or_default();
    fields.into_keys().collect()
}

/// Refuses a body with a field that was probably meant for one of these.
pub(crate) fn refuse(body: &[u8], known: &[&str]) -> Result<(), Problem> {
    for name in names(body).iter().filter(|name| !known.contains(&name.as_str())) {
        if let Some(meant) = meant(name, known) {
            return Err(Problem::invalid(format!("{} is not known; did you mean {meant}?", shortened(name))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["queue", "options", "seconds"];

        assert_eq!(meant("option", &known), Some("options"));
        assert_eq!(meant("Seconds", &known), Some("seconds"));
        assert_eq!(meant("clientVersion", &known), None);
        assert!(refuse(br#"{"queue":1,"client":2}"#, &known).is_ok());
        assert!(refuse(br#"{"queu":1}"#, &known).unwrap_err().sentence.contains("did you mean queue?"));
    }
}
