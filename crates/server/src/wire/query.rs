//! The query of a request: the part of its address after the question mark.

use std::time::{Duration, SystemTime};

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

use super::moment::moment_of;
use super::quote::quoted;
use crate::problem::Problem;

const UNREADABLE: Problem =
    Problem::new(StatusCode::BAD_REQUEST, "invalid_request", "the query is not percent-encoded UTF-8");
/// More than any route knows.
const PARAMETERS_MAX: usize = 64;

const TOO_MANY: Problem =
    Problem::new(StatusCode::BAD_REQUEST, "invalid_request", "the query has more parameters than any route knows");

/// Parameters by name. An empty one counts as absent; of several with the same name the first
/// counts.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

impl Query {
    fn parse(text: &str) -> Result<Self, Problem> {
        let mut read = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            if read.len() == PARAMETERS_MAX {
                return Err(TOO_MANY);
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            read.push((decoded(name).ok_or(UNREADABLE)?, decoded(value).ok_or(UNREADABLE)?));
        }
        Ok(Self(read))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(crate) fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(ToOwned::to_owned)
    }

    /// A boolean. Python spells it `True`; any other word, such as `yes`, is refused.
    pub(crate) fn flag(&self, name: &'static str) -> Result<Option<bool>, Problem> {
        match self.text(name).map(str::to_ascii_lowercase).as_deref() {
            None => Ok(None),
            Some("true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(other) => Err(Problem::invalid(format!("{name} must be true or false, not {}", quoted(other)))),
        }
    }

    /// As [`flag`](Self::flag); false by default.
    pub(crate) fn is(&self, name: &'static str) -> Result<bool, Problem> {
        self.flag(name).map(|flag| flag == Some(true))
    }

    /// A whole number. A number that does not fit becomes the largest that does: all of these are
    /// limits, and our own are lower.
    pub(crate) fn count(&self, name: &'static str) -> Result<Option<u32>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits {
            return Err(Problem::invalid(format!("{name} must be a whole number, not {}", quoted(text))));
        }
        Ok(Some(text.parse().unwrap_or(u32::MAX)))
    }

    /// A whole number that is not zero.
    pub(crate) fn some(&self, name: &'static str) -> Result<Option<u32>, Problem> {
        match self.count(name)? {
            Some(0) => Err(Problem::invalid(format!("{name} must be at least 1"))),
            count => Ok(count),
        }
    }

    /// A time in milliseconds.
    pub(crate) fn milliseconds(&self, name: &'static str) -> Result<Option<Duration>, Problem> {
        Ok(self.count(name)?.map(|ms| Duration::from_millis(ms.into())))
    }

    /// A time in the format of RFC 3339.
    pub(crate) fn moment(&self, name: &'static str) -> Result<Option<SystemTime>, Problem> {
        self.text(name).map(|text| moment_of(name, text)).transpose()
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
    fn a_query_is_decoded_and_empty_is_absent() {
        let query = Query::parse("a=%F0%9F%A6%86+x&b=&b=2&c&d=1&e=True&f=yes&=x&&a=second&h=0&i=FALSE").unwrap();

        assert_eq!(query.text("a"), Some("🦆 x"));
        assert_eq!(query.text("b"), Some("2"));
        assert_eq!(query.text("c"), None);
        let flags = ["d", "e", "g", "h", "i"].map(|name| query.flag(name).unwrap());
        assert_eq!(flags, [Some(true), Some(true), None, Some(false), Some(false)]);
        assert!(query.is("f").is_err() && !query.is("g").unwrap());
        assert_eq!(Query::parse("a=%ff").unwrap_err().code, "invalid_request");
        assert!(Query::parse(&"a=1&".repeat(64)).is_ok() && Query::parse(&"a=1&".repeat(65)).is_err());
    }

    #[test]
    fn numbers_are_bounded_and_nonsense_is_refused() {
        let query = Query::parse("a=5&b=99999999999999999999&c=-1&d=1.5&e=x&f=%00&g=0").unwrap();

        assert_eq!(query.count("a").unwrap(), Some(5));
        assert_eq!(query.count("b").unwrap(), Some(u32::MAX));
        for wrong in ["c", "d", "e", "f"] {
            assert!(query.count(wrong).is_err(), "{wrong}");
        }
        assert_eq!(query.count("z").unwrap(), None);
        assert_eq!((query.some("a").unwrap(), query.count("g").unwrap()), (Some(5), Some(0)));
        assert!(query.some("g").is_err());
        assert_eq!(query.milliseconds("a").unwrap(), Some(Duration::from_millis(5)));
    }
}
