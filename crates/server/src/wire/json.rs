//! Bodies: JSON that is parsed within limits, and payloads that are passed on byte for byte.
//!
//! Next: [`fault`] explains what is wrong with a body.

mod fault;
pub(crate) mod slip;

use std::fmt;
use std::marker::PhantomData;

use axum::http::StatusCode;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::heavy::heavy;
use crate::problem::Problem;

const EMPTY: Problem = Problem::new(StatusCode::BAD_REQUEST, "invalid_json", "Empty request body");

/// The body, an object, as a value. For an optional field null means absent, and unknown fields are
/// ignored.
pub(crate) fn parse<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Problem> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(EMPTY);
    }
    heavy(body.len(), || {
        let read = serde_json::from_slice(body).map(|Object(value)| value);
        read.map_err(|error| fault::of::<Object<T>>(body, &error))
    })
}

/// Parses a part of a body that was left unparsed.
pub(crate) fn parse_part<'b, T: Deserialize<'b>>(part: &'b RawValue) -> Result<T, Problem> {
    let text = part.get();
    serde_json::from_str(text).map_err(|error| fault::of::<T>(text.as_bytes(), &error))
}

/// For a field whose null is not the same as its absence.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A value that must be an object. Without this serde also accepts an array, whose entries become
/// the fields in the order in which they are declared.
#[derive(Debug, Default)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData))
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
    }
}

/// An array of at most `MOST` objects.
#[derive(Debug)]
pub(crate) struct Objects<T, const MOST: usize>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Objects<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Bounded(objects) = Bounded::<Object<T>, MOST>::deserialize(deserializer)?;
        Ok(Self(objects.into_iter().map(|Object(value)| value).collect()))
    }
}

/// An array of at most `MOST` entries, because even a small body has room for very many.
#[derive(Debug)]
pub(crate) struct Bounded<T, const MOST: usize>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Bounded<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Entries::<T, MOST>(PhantomData))
    }
}

struct Entries<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Entries<T, MOST> {
    type Value = Bounded<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of at most {MOST} entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if all.len() == MOST {
                return Err(serde::de::Error::invalid_length(MOST + 1, &self));
            }
            all.push(entry);
        }
        Ok(Bounded(all))
    }
}

/// A payload in an answer. A payload that was pushed over HTTP is JSON and is returned unchanged;
/// one that was pushed through the library may be anything.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Carried<'p> {
    Json(&'p RawValue),
    Other(String),
}

impl<'p> Carried<'p> {
    pub(crate) fn of(payload: &'p [u8]) -> Self {
        match serde_json::from_slice(payload) {
            Ok(json) => Self::Json(json),
            Err(_) => Self::Other(std::str::from_utf8(payload).map_or_else(|_| in_base64(payload), ToOwned::to_owned)),
        }
    }

    /// How `data` is encoded; nothing when it is the JSON that was pushed.
    pub(crate) fn encoding(&self, payload: &[u8]) -> Option<&'static str> {
        match self {
            Self::Json(_) => None,
            Self::Other(_) if std::str::from_utf8(payload).is_ok() => Some("text"),
            Self::Other(_) => Some("base64"),
        }
    }
}

fn in_base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_has_a_limit() {
        #[derive(Debug, Deserialize)]
        struct Body {
            list: Bounded<u8, 2>,
        }

        assert_eq!(parse::<Body>(br#"{"list":[1,2]}"#).unwrap().list.0, [1, 2]);
        let refused = parse::<Body>(br#"{"list":[1,2,3]}"#).unwrap_err();
        assert!(refused.sentence.contains("at most 2"), "{}", refused.sentence);
    }

    #[test]
    fn an_array_is_not_taken_for_an_object() {
        #[derive(Debug, Deserialize)]
        struct Place<'b> {
            queue: String,
            #[serde(borrow)]
            payload: &'b RawValue,
        }
        #[derive(Debug, Deserialize)]
        struct Body<'b> {
            #[serde(borrow)]
            items: Objects<Place<'b>, 5>,
        }

        let read = parse::<Body<'_>>(br#"{"items":[{"payload": 1.0 ,"queue":"q"}]}"#).unwrap();
        assert_eq!((read.items.0[0].queue.as_str(), read.items.0[0].payload.get()), ("q", "1.0"));
        for wrong in [&br#"[[{"queue":"q","payload":1}]]"#[..], br#"{"items":[["q",1]]}"#, b"[]", b"5", b"null"] {
            let refused = parse::<Body<'_>>(wrong).unwrap_err();
            assert!(refused.sentence.contains("must be an object"), "{}", refused.sentence);
        }
    }

    #[test]
    fn a_payload_is_not_changed() {
        for json in ["null", "1e400", r#"{"a" : 1.0,"a":2}"#, r#""\ud800""#, &"[".repeat(10)] {
            let kept = Carried::of(json.as_bytes());
            match kept {
                Carried::Json(raw) => assert_eq!(raw.get(), json),
                Carried::Other(text) => assert_eq!(text, json),
            }
        }
        assert_eq!(Carried::of(b"\xff").encoding(b"\xff"), Some("base64"));
        assert_eq!(Carried::of(b"plain").encoding(b"plain"), Some("text"));
        assert_eq!(Carried::of(b"{}").encoding(b"{}"), None);
    }

    #[test]
    fn an_empty_body_and_an_invalid_one_have_different_answers() {
        assert_eq!(parse::<serde_json::Value>(b" \n").unwrap_err().sentence, "Empty request body");
        assert_eq!(parse::<serde_json::Value>(b"{").unwrap_err().code, "invalid_json");
        assert_eq!(parse::<serde_json::Value>(b"\"x\"").unwrap_err().code, "invalid_request");
    }
}
