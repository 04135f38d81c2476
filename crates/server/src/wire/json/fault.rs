//! Explains why a body cannot be read, in the terms of its sender.
//!
//! The parser reports Rust types, lines and columns, and repeats the value it found, however long.
//! Here that becomes the name of the field, what it should be and what it is. An unknown report
//! gets a general sentence: the parser's own words are never sent.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::error::Category;

use super::slip;
use crate::problem::Problem;
use crate::wire::quote::shortened;

/// What is wrong with a body that could not be read as a `T`.
pub(super) fn of<'b, T: Deserialize<'b>>(body: &'b [u8], error: &serde_json::Error) -> Problem {
    match error.classify() {
        Category::Data => Problem::invalid(in_words(&place::<T>(body), &without_position(error))),
        Category::Syntax | Category::Eof | Category::Io => Problem {
            status: StatusCode::BAD_REQUEST,
            code: "invalid_json",
            sentence: format!("Invalid JSON: {}", shortened(&error.to_string())).into(),
        },
    }
}

/// The place of the fault in the body. The body is parsed a second time for this, so that valid
/// bodies need not track their place.
fn place<'b, T: Deserialize<'b>>(body: &'b [u8]) -> String {
    let mut parser = serde_json::Deserializer::from_slice(body);
    let place = serde_path_to_error::deserialize::<_, T>(&mut parser).err().map(|error| error.path().to_string());
    // The parser calls the whole body a dot.
    place.filter(|place| place != ".").unwrap_or_default()
}

fn without_position(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.rfind(" at line ") {
        text.truncate(end);
    }
    text
}

fn in_words(place: &str, fault: &str) -> String {
    let what = if place.is_empty() { "the body".to_owned() } else { shortened(place) };
    let sentence = if let Some(rest) = fault.strip_prefix("invalid type: ").or(fault.strip_prefix("invalid value: ")) {
        rest.rsplit_once(", expected ").and_then(|(found, wanted)| {
            Some(format!("{what} must be {}, not {}", wanted_in_words(wanted)?, found_in_words(found)?))
        })
    } else if let Some(rest) = fault.strip_prefix("invalid length ") {
        rest.split_once(", expected ").map(|(_, wanted)| format!("{what} must be {wanted}"))
    } else if let Some(name) = fault.strip_prefix("duplicate field ") {
        Some(format!("{} comes twice", inside(place, name.trim_matches('`'))))
    } else if let Some(rest) = fault.strip_prefix("unknown field `") {
        rest.rsplit_once("`, expected ").map(|(name, known)| unknown(place, name, known))
    } else if fault.starts_with("must ") || fault.starts_with("is ") {
        // Our own words about a field.
        Some(format!("{what} {fault}"))
    } else {
        None
    };
    sentence.unwrap_or_else(|| format!("{what} is not what is expected there"))
}

/// The path of a field: the place where it was found and its name, unless the place ends with it.
fn inside(place: &str, name: &str) -> String {
    let is_named = place == name || place.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    shortened(&match place {
        "" => name.to_owned(),
        _ if is_named => place.to_owned(),
        _ => format!("{place}.{name}"),
    })
}

fn unknown(place: &str, name: &str, known: &str) -> String {
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let what = inside(place, name);
    match slip::meant(name, &known) {
        Some(meant) => format!("{what} is not known; did you mean {meant}?"),
        None => format!("{what} is not known; there are {}", known.join(", ")),
    }
}

fn wanted_in_words(wanted: &str) -> Option<&str> {
    Some(match wanted {
        "f64" | "f32" => "a number",
        "i64" | "i32" | "u64" | "u32" | "usize" => "a whole number",
        "a string" | "a borrowed string" => "a text",
        "a boolean" => "true or false",
        "an object" => "an object",
        ours if ours.starts_with("an array of at most ") => ours,
        _ => return None,
    })
}

fn found_in_words(found: &str) -> Option<String> {
    let quoted = |prefix: &str| found.strip_prefix(prefix)?.strip_suffix('`').map(shortened);
    match found {
        "null" => Some("null".to_owned()),
        "map" => Some("an object".to_owned()),
        "sequence" => Some("an array".to_owned()),
        _ => found
            .strip_prefix("string \"")
            .and_then(|text| text.strip_suffix('"'))
            .map(|text| format!("the text \"{}\"", shortened(text)))
            .or_else(|| quoted("integer `"))
            .or_else(|| quoted("floating point `"))
            .or_else(|| quoted("boolean `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_the_parser_is_repeated() {
        let known = "unknown field `leasTime`, expected one of `leaseTime`, `ttl`";

        assert_eq!(
            in_words("a", "invalid type: string \"x, expected y\", expected f64"),
            r#"a must be a number, not the text "x, expected y""#
        );
        assert_eq!(
            in_words("", "invalid type: sequence, expected an object"),
            "the body must be an object, not an array"
        );
        assert_eq!(in_words("options", known), "options.leasTime is not known; did you mean leaseTime?");
        assert_eq!(in_words("options.leasTime", known), "options.leasTime is not known; did you mean leaseTime?");
        assert_eq!(in_words("a", "duplicate field `b`"), "a.b comes twice");
        for strange in ["data did not match any variant of untagged enum X", "invalid type: map, expected struct X"] {
            assert_eq!(in_words("a", strange), "a is not what is expected there");
        }
    }
}
