//! The `key=value` pairs of a URL, so that some can be taken out before the driver reads the rest.

/// The pairs of a URL's query, or of a whole `key=value` string.
#[derive(Debug)]
pub(super) struct Pairs {
    /// `postgres://…` up to the question mark; empty in the other form.
    front: String,
    pairs: Vec<(String, String)>,
}

impl Pairs {
    /// Split a URL. The faults name no value, since one of them is a password.
    pub(super) fn split(url: &str) -> Result<Self, String> {
        let url = url.trim();
        if url.is_empty() {
            return Err("the database URL is empty".to_owned());
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let (front, query) = url.split_once('?').unwrap_or((url, ""));
            let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(query_pair).collect::<Result<_, _>>()?;
            return Ok(Self { front: front.to_owned(), pairs });
        }
        if url.contains("://") {
            return Err("the database URL does not begin with postgres://".to_owned());
        }
        Ok(Self { front: String::new(), pairs: Words(url.chars().peekable()).pairs()? })
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The last value of a key, removed with all earlier ones.
    pub(super) fn take(&mut self, key: &str) -> Option<String> {
        let value = self.get(key).map(ToOwned::to_owned);
        self.pairs.retain(|(known, _)| known != key);
        value
    }

    /// What is left, in the form it came in.
    pub(super) fn rest(&self) -> String {
        if self.front.is_empty() {
            let quote = |value: &str| value.replace('\\', "\\\\").replace('\'', "\\'");
            let pairs = self.pairs.iter().map(|(key, value)| format!("{key}='{}'", quote(value)));
            return pairs.collect::<Vec<_>>().join(" ");
        }
        let pairs = self.pairs.iter().map(|(key, value)| format!("{}={}", encoded(key), encoded(value)));
        let query = pairs.collect::<Vec<_>>().join("&");
        if query.is_empty() { self.front.clone() } else { format!("{}?{query}", self.front) }
    }
}

fn query_pair(pair: &str) -> Result<(String, String), String> {
    let (key, value) = pair.split_once('=').ok_or("a part of the URL's query has no value")?;
    Ok((decoded(key)?, decoded(value)?))
}

fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [bytes.next().unwrap_or(b'-'), bytes.next().unwrap_or(b'-')];
        let value = std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(value.ok_or("the URL has a % that is not followed by two hexadecimal digits")?);
    }
    String::from_utf8(out).map_err(|_| "the URL's query is not UTF-8".to_owned())
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/,:".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The tokens of a `key=value` string: values may be quoted with `'`, and `\` takes the next
/// character as it is.
struct Words<'a>(std::iter::Peekable<std::str::Chars<'a>>);

impl Words<'_> {
    fn pairs(mut self) -> Result<Vec<(String, String)>, String> {
        let mut pairs = Vec::new();
        loop {
            self.skip_spaces();
            if self.0.peek().is_none() {
                return Ok(pairs);
            }
            let key = self.key()?;
            let value = self.value().ok_or_else(|| format!("the value of {key} in the database URL has no end"))?;
            pairs.push((key, value));
        }
    }

    fn skip_spaces(&mut self) {
        while self.0.next_if(|c| c.is_whitespace()).is_some() {}
    }

    fn key(&mut self) -> Result<String, String> {
        let mut key = String::new();
        while let Some(c) = self.0.next_if(|c| !c.is_whitespace() && *c != '=') {
            key.push(c);
        }
        self.skip_spaces();
        // What is not a pair may be a password that was not quoted, so it is not repeated.
        self.0.next_if_eq(&'=').ok_or("a word in the database URL is not of the form key=value")?;
        self.skip_spaces();
        Ok(key)
    }

    fn value(&mut self) -> Option<String> {
        let quoted = self.0.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        loop {
            match self.0.next() {
                Some('\\') => value.push(self.0.next()?),
                Some('\'') if quoted => return Some(value),
                Some(c) if !quoted && c.is_whitespace() => return Some(value),
                Some(c) => value.push(c),
                None if quoted => return None,
                None => return Some(value),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_survive_the_way_through() {
        let mut pairs = Pairs::split(r"host = db password='it\'s a \\ secret' sslmode=require").unwrap();

        assert_eq!(pairs.take("sslmode").as_deref(), Some("require"));
        assert_eq!(pairs.get("password"), Some(r"it's a \ secret"));
        assert_eq!(pairs.rest(), r"host='db' password='it\'s a \\ secret'");
    }

    #[test]
    fn a_url_keeps_its_front_and_loses_what_is_taken() {
        let mut pairs =
            Pairs::split("postgres://u:p%40@h/d?sslrootcert=%2Fetc%2Fca%20x.pem&options=-c%20a%3Db").unwrap();

        assert_eq!(pairs.take("sslrootcert").as_deref(), Some("/etc/ca x.pem"));
        assert_eq!(pairs.rest(), "postgres://u:p%40@h/d?options=-c%20a%3Db");
    }

    #[test]
    fn faults_do_not_repeat_what_may_be_a_password() {
        for url in ["", "mysql://hush", "hush", "password='hush", "postgres://a/b?hush", "postgres://a/b?x=%zz"] {
            let fault = Pairs::split(url).unwrap_err();
            assert!(!fault.contains("hush"), "{fault}");
        }
    }
}
