//! A text taken apart into layers of equal shape: code, comments, quoted text.
//!
//! Promises that each layer has the lines of the original, with everything that belongs to another
//! layer blanked, so a line number found in one is right in all.
//!
//! Next: [`super::rust`] and [`super::sql`], which know where each language's comments and strings
//! end.

/// What a stretch of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    Code,
    Comment,
    Quoted,
}

/// The three layers of a text.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    pub(crate) code: String,
    pub(crate) comments: String,
    /// Strings with their quotes.
    pub(crate) quoted: String,
}

impl Layers {
    /// Takes a text apart, of which the layer of each byte is known.
    pub(crate) fn of(text: &str, kinds: &[Layer]) -> Self {
        let letters = |own: Layer| {
            let letter =
                move |(at, letter): (usize, char)| if kinds[at] == own || letter == '\n' { letter } else { ' ' };
            text.char_indices().map(letter).collect()
        };
        Self { code: letters(Layer::Code), comments: letters(Layer::Comment), quoted: letters(Layer::Quoted) }
    }

    /// Takes a text apart; `stretch_at` says what begins at a position and where it ends (always
    /// further on).
    pub(crate) fn split(text: &str, stretch_at: fn(&[char], usize) -> (Layer, usize)) -> Self {
        let letters: Vec<char> = text.chars().collect();
        let mut layers = Self::default();
        let mut at = 0;
        while at < letters.len() {
            let (layer, end) = stretch_at(&letters, at);
            let end = end.clamp(at + 1, letters.len());
            layers.push(layer, &letters[at..end]);
            at = end;
        }
        layers
    }

    fn push(&mut self, layer: Layer, stretch: &[char]) {
        let all =
            [(Layer::Code, &mut self.code), (Layer::Comment, &mut self.comments), (Layer::Quoted, &mut self.quoted)];
        for (own, text) in all {
            text.extend(stretch.iter().map(|&letter| if own == layer || letter == '\n' { letter } else { ' ' }));
        }
    }
}

/// Whether `word` stands at this position.
pub(crate) fn stands_at(letters: &[char], at: usize, word: &str) -> bool {
    word.chars().enumerate().all(|(n, letter)| letters.get(at + n) == Some(&letter))
}

/// The end of the line that holds this position.
pub(crate) fn end_of_line(letters: &[char], at: usize) -> usize {
    letters[at..].iter().position(|&letter| letter == '\n').map_or(letters.len(), |n| at + n)
}

/// The position after a block comment that opens at `at`; both languages nest them.
pub(crate) fn end_of_block_comment(letters: &[char], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut here = at;
    while here < letters.len() {
        if stands_at(letters, here, "/*") {
            depth += 1;
            here += 2;
        } else if stands_at(letters, here, "*/") {
            depth -= 1;
            here += 2;
        } else {
            here += 1;
        }
        if depth == 0 {
            return here;
        }
    }
    letters.len()
}

/// The position after quoted text that opens at `at` with `quote`.
pub(crate) fn end_of_quoted(letters: &[char], at: usize, quote: char, escapes: Escapes) -> usize {
    let mut here = at + 1;
    while here < letters.len() {
        match (letters[here], escapes) {
            ('\\', Escapes::Backslash) => here += 2,
            (letter, _) if letter == quote => return here + 1,
            _ => here += 1,
        }
    }
    letters.len()
}

/// How a quote is written inside quoted text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escapes {
    Backslash,
    /// Twice the quote, which reads as two quoted texts without anything between.
    Doubling,
}
