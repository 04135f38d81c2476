//! Which right a refused role lacks, in the words of GRANT.
//!
//! Reads PostgreSQL's message in English; for any other message the remedy is a general one.

/// What to do about "permission denied for schema reveille".
pub(crate) fn remedy(user: &str, message: &str) -> String {
    let granted = message.strip_prefix("permission denied for ").and_then(|what| what.split_once(' '));
    let granted = granted.and_then(|(kind, name)| right(kind, name));
    match granted {
        Some((right, object)) => format!("as its owner, `grant {right} on {object} to {}`", quoted(user)),
        None => "grant it, or connect as the schema's owner".to_owned(),
    }
}

fn right(kind: &str, name: &str) -> Option<(&'static str, String)> {
    let right = match kind {
        "schema" | "sequence" => "usage",
        "table" => "select, insert, update, delete",
        "function" => "execute",
        "database" => "create, connect",
        _ => return None,
    };
    Some((right, format!("{kind} {}", quoted(name))))
}

/// As SQL wants it: bare while it is an ordinary lower-case name.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_names_its_object_is_answered_with_a_grant() {
        let remedy = |message| remedy("limited", message);

        assert_eq!(
            remedy("permission denied for schema reveille"),
            "as its owner, `grant usage on schema reveille to limited`"
        );
        assert_eq!(
            remedy("permission denied for table Odd one"),
            "as its owner, `grant select, insert, update, delete on table \"Odd one\" to limited`"
        );
    }

    #[test]
    fn another_refusal_is_answered_with_a_general_remedy() {
        for message in ["must be owner of table job", "permission denied for tablespace", "Keine Berechtigung"] {
            assert_eq!(remedy("limited", message), "grant it, or connect as the schema's owner");
        }
    }
}
