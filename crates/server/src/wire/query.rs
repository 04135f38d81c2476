//! The part of an address behind the question mark.

use std::time::{Duration, SystemTime};

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

use super::moment;
use crate::problem::Problem;

const UNREADABLE: Problem =
    Problem::new(StatusCode::BAD_REQUEST, "invalid_request", "the query is not percent-encoded UTF-8");
/// More than any route knows.
const PARAMETERS_MAX: usize = 64;

/// Parameters by name; an empty one counts as absent, and of several with one name the first counts.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Self::parse(parts.uri.query().unwrap_or_default()).ok_or(UNREADABLE)
    }
}

impl Query {
    fn parse(text: &str) -> Option<Self> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(PARAMETERS_MAX);
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(name)?, decoded(value)?))
        });
        pairs.collect::<Option<Vec<_>>>().map(Self)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(crate) fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(ToOwned::to_owned)
    }

    /// True when it says `true` or `1`.
    pub(crate) fn is(&self, name: &str) -> bool {
        matches!(self.text(name), Some("true" | "1"))
    }

    /// A whole number. What is larger than fits is the largest that does: it is a limit, and we have lower ones.
    pub(crate) fn count(&self, name: &'static str) -> Result<Option<u32>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits {
            return Err(Problem::invalid(format!("{name} must be a whole number, not {text:?}")));
        }
        Ok(Some(text.parse().unwrap_or(u32::MAX)))
    }

    /// A time in milliseconds.
    pub(crate) fn milliseconds(&self, name: &'static str) -> Result<Option<Duration>, Problem> {
        Ok(self.count(name)?.map(|ms| Duration::from_millis(ms.into())))
    }

    /// A moment as RFC 3339 spells it.
    pub(crate) fn moment(&self, name: &'static str) -> Result<Option<SystemTime>, Problem> {
        self.text(name).map(|text| moment::expect(name, text)).transpose()
    }
}

fn decoded(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_decoded_and_empty_is_absent() {
        let query = Query::parse("a=%F0%9F%A6%86+x&b=&b=2&c&d=1&e=true&f=yes&=x&&a=second").unwrap();

        assert_eq!(query.text("a"), Some("🦆 x"));
        assert_eq!(query.text("b"), Some("2"));
        assert_eq!(query.text("c"), None);
        assert!(query.is("d") && query.is("e") && !query.is("f") && !query.is("g"));
        assert!(Query::parse("a=%ff").is_none());
    }

    #[test]
    fn numbers_are_bounded_and_nonsense_is_refused() {
        let query = Query::parse("a=5&b=99999999999999999999&c=-1&d=1.5&e=x&f=%00").unwrap();

        assert_eq!(query.count("a").unwrap(), Some(5));
        assert_eq!(query.count("b").unwrap(), Some(u32::MAX));
        for wrong in ["c", "d", "e", "f"] {
            assert!(query.count(wrong).is_err(), "{wrong}");
        }
        assert_eq!(query.count("z").unwrap(), None);
        assert_eq!(query.milliseconds("a").unwrap(), Some(Duration::from_millis(5)));
    }
}
