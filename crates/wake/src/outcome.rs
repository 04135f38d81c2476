//! What a claim found.
//!
//! Owns the five answers a claim can give. Promises that "nothing there" and "unknown" are never
//! the same value: a claim that lost a race has not shown that the queue is empty.
//!
//! Next: [`crate::poll_mode`].

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It succeeded, and there was nothing to take.
    Empty,
    /// It took less than it wanted: there is no more.
    UnderFilled,
    /// It took all it wanted: there may be more.
    Filled,
    /// There is work, but another claim holds it at this moment and may give it back.
    Contended,
    /// It did not succeed; nothing is known.
    Failed,
}

impl Outcome {
    /// Every outcome, in the order of the declaration.
    pub const ALL: [Self; 5] = [Self::Empty, Self::UnderFilled, Self::Filled, Self::Contended, Self::Failed];

    /// The outcome of a claim that wanted `wanted` and took `taken`.
    pub const fn of(taken: usize, wanted: usize) -> Self {
        if taken >= wanted && taken > 0 {
            Self::Filled
        } else if taken == 0 {
            Self::Empty
        } else {
            Self::UnderFilled
        }
    }

    /// Whether the claim took anything.
    pub const fn found_work(self) -> bool {
        matches!(self, Self::UnderFilled | Self::Filled)
    }

    /// Whether the claim showed that nothing is left.
    pub const fn shows_no_more(self) -> bool {
        matches!(self, Self::Empty | Self::UnderFilled)
    }

    /// The name for logs and metric labels; it never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::UnderFilled => "under_filled",
            Self::Filled => "filled",
            Self::Contended => "contended",
            Self::Failed => "failed",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
