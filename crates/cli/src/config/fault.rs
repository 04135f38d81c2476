//! All faults of the configuration, reported at once.

use crate::exit::{Exit, Failure};

/// Faults in the order they were found.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    pub(crate) fn add(&mut self, sentence: String) {
        self.0.push(sentence);
    }

    pub(crate) fn extend(&mut self, sentences: impl Iterator<Item = String>) {
        self.0.extend(sentences);
    }

    pub(crate) fn none_or_failure(self) -> Result<(), Failure> {
        if self.0.is_empty() { Ok(()) } else { Err(Failure::new(Exit::WrongUse, self.0)) }
    }

    #[cfg(test)]
    pub(crate) fn sentences(&self) -> &[String] {
        &self.0
    }
}

/// The name that was probably meant.
pub(crate) fn nearest<'a>(meant: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let likeness = |name: &str| {
        let whole = strsim::normalized_damerau_levenshtein(meant, name);
        // The right name in the wrong section counts like a typing error.
        if last(meant) == last(name) { whole.max(0.9) } else { whole }
    };
    let best = names.map(|name| (likeness(name), name)).max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (best.0 >= 0.7).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["http.listen", "http.max_body", "database.url", "database.listen_url"];

    #[test]
    fn a_slip_and_a_wrong_section_are_recognised() {
        let nearest = |meant| nearest(meant, NAMES.into_iter());

        assert_eq!(nearest("http.listn"), Some("http.listen"));
        assert_eq!(nearest("htp.max_body"), Some("http.max_body"));
        assert_eq!(nearest("url"), Some("database.url"));
        assert_eq!(nearest("postgres.url"), Some("database.url"));
        assert_eq!(nearest("frobnicate"), None);
    }
}
