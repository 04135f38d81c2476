//! Connection strings without their passwords, so that they may be shown.
//!
//! Promises that no password is returned, even if the text is not a valid connection string: in
//! doubt more is hidden than necessary.

const MASK: &str = "***";
const SECRET_KEYS: &[&str] = &["password", "sslpassword"];

/// A connection string without its passwords.
pub(crate) fn masked(url: &str) -> String {
    match url.split_once("://") {
        // A password in the other form may also contain these letters.
        Some((scheme, rest)) if !scheme.contains('=') => format!("{scheme}://{}", masked_url(rest)),
        _ => masked_pairs(url).unwrap_or_else(|| MASK.to_owned()),
    }
}

/// Hides from the first colon to the last `@`, so that a password with a stray `/`, `?` or `@` is
/// hidden whole.
fn masked_url(rest: &str) -> String {
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, rest),
    };
    let user = user.map(|user| match user.split_once(':') {
        Some((name, _)) => format!("{name}:{MASK}@"),
        // The `@` stood in the query, perhaps in a password there.
        None if user.contains('?') => format!("{MASK}@"),
        None => format!("{user}@"),
    });
    let (front, query) = rest.split_once('?').map_or((rest, None), |(front, query)| (front, Some(query)));
    let query = query.map(|query| {
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((key, _)) if SECRET_KEYS.contains(&key) => format!("{key}={MASK}"),
            _ => pair.to_owned(),
        });
        format!("?{}", pairs.collect::<Vec<_>>().join("&"))
    });
    format!("{}{front}{}", user.unwrap_or_default(), query.unwrap_or_default())
}

/// `key=value` pairs, values quoted with `'` or not. `None` for any other text.
fn masked_pairs(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        let key = key.trim();
        if key.is_empty() || key.contains(|letter: char| letter.is_whitespace() || letter == '\'') {
            return None;
        }
        let after = after.trim_start();
        let end = end_of_value(after)?;
        let value = if SECRET_KEYS.contains(&key) { MASK } else { &after[..end] };
        out.push(format!("{key}={value}"));
        rest = after[end..].trim_start();
    }
    Some(out.join(" "))
}

fn end_of_value(text: &str) -> Option<usize> {
    let quoted = text.starts_with('\'');
    let mut letters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()?),
            '\'' if quoted => return Some(at + 1),
            letter if !quoted && letter.is_whitespace() => return Some(at),
            _ => {}
        }
    }
    (!quoted).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_and_the_rest_is_shown() {
        assert_eq!(masked("postgres://me:hush@db:5432/shop"), "postgres://me:***@db:5432/shop");
        assert_eq!(masked("postgres://me@db/shop?sslmode=require"), "postgres://me@db/shop?sslmode=require");
        assert_eq!(masked("postgres://db/shop?user=me&password=hush"), "postgres://db/shop?user=me&password=***");
        assert_eq!(masked("host=db user=me password=hush dbname=shop"), "host=db user=me password=*** dbname=shop");
        assert_eq!(masked(r"password = 'it\'s hush' host='a b'"), "password=*** host='a b'");
    }

    #[test]
    fn what_is_not_understood_is_hidden() {
        let secrets = [
            "postgres://me:hu/sh@db/shop",
            "postgres://me:hu?sh@db/shop",
            "postgres://me:hu@sh@db/shop",
            "hush",
            "password='hush",
            "host=db hush password=x",
            "mysql://me:hush@db",
            "postgres://db/shop?user=me&password=hush@x",
            "password=hush://x host=db",
        ];
        for secret in secrets {
            let shown = masked(secret);
            assert!(!shown.contains("sh@") && !shown.contains("hush"), "{secret} is shown as {shown}");
        }
    }
}
