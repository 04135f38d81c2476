//! A little disorder.
//!
//! Owns a small generator of fractions. Without it, processes that lost PostgreSQL together come back together and look in
//! step for minutes. Not for secrets.
//!
//! Next: [`crate::pace`], [`crate::backoff`].

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Spreads durations around their value.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) fn new() -> Self {
        Self::seeded(RandomState::new().hash_one(0_u8))
    }

    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// `value`, shortened or lengthened by up to a tenth.
    pub(crate) fn spread(&mut self, value: Duration) -> Duration {
        value.mul_f64(0.9 + 0.2 * self.fraction())
    }

    /// A fraction in `0.0..1.0` (splitmix64).
    fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // The top 32 bits are exact in an f64.
        let top = u32::try_from(mixed >> 32).unwrap_or(u32::MAX);
        f64::from(top) / (f64::from(u32::MAX) + 1.0)
    }
}
