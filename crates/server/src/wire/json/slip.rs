//! Misspelt field names.
//!
//! Unknown fields are ignored, because clients send more than a server needs. A field whose name is
//! almost a known one is refused: otherwise it would have no effect, and its client would not
//! notice.

use std::fmt;

use axum::http::StatusCode;
use serde::de::{Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};
use strsim::normalized_damerau_levenshtein;

use crate::problem::Problem;
use crate::wire::quote::shortened;

/// From this likeness on a name counts as a misspelling.
const LIKE: f64 = 0.7;
/// More than any route knows. Each field is compared with all known ones, so a body must not have
/// millions.
const FIELDS_MAX: usize = 64;

const TOO_MANY: Problem =
    Problem::new(StatusCode::BAD_REQUEST, "invalid_request", "the body has more fields than any route knows");

/// The known name that was probably meant.
pub(super) fn meant<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    // Far too long to be like any of them, and expensive to compare.
    if name.len() > 100 {
        return None;
    }
    let likeness = |known: &&str| normalized_damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase());
    let best = known.iter().map(|known| (likeness(known), *known)).max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= LIKE).then_some(best.1)
}

/// The field names of a body that is known to be an object.
pub(crate) fn names(body: &[u8]) -> Result<Vec<String>, Problem> {
    serde_json::Deserializer::from_slice(body).deserialize_map(Names).map_err(|_| TOO_MANY)
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut names = Vec::new();
        while let Some((name, IgnoredAny)) = fields.next_entry()? {
            if names.len() == FIELDS_MAX {
                return Err(A::Error::custom(TOO_MANY.sentence));
            }
            names.push(name);
        }
        Ok(names)
    }
}

/// Refuses a body with a field that is probably a misspelling of one of these.
pub(crate) fn refuse(body: &[u8], known: &[&str]) -> Result<(), Problem> {
    for name in names(body)?.iter().filter(|name| !known.contains(&name.as_str())) {
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
    fn a_misspelling_is_recognised_and_an_unrelated_name_is_not() {
        let known = ["queue", "options", "seconds"];

        assert_eq!(meant("option", &known), Some("options"));
        assert_eq!(meant("Seconds", &known), Some("seconds"));
        assert_eq!(meant("clientVersion", &known), None);
        assert!(refuse(br#"{"queue":1,"client":2}"#, &known).is_ok());
        let many: Vec<String> = (0..65).map(|n| format!(r#""{n}":1"#)).collect();
        assert!(refuse(format!("{{{}}}", many[1..].join(",")).as_bytes(), &known).is_ok());
        assert!(refuse(format!("{{{}}}", many.join(",")).as_bytes(), &known).is_err());
        assert!(refuse(br#"{"queu":1}"#, &known).unwrap_err().sentence.contains("did you mean queue?"));
    }
}
