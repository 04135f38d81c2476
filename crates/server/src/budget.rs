//! A limit on the bytes that all requests hold in memory together.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room is counted in pieces of this many bytes.
const PIECE: usize = 1024;

/// A number of bytes that all requests share. Clones share it too.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    room: Arc<Semaphore>,
    pieces: usize,
}

/// Bytes that were taken from a budget; dropping the share gives them back.
#[derive(Debug, Default)]
pub(crate) struct Share {
    permit: Option<OwnedSemaphorePermit>,
    /// Bytes of the permit that are not used yet.
    left: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        let pieces = bytes.div_ceil(PIECE).clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self { room: Arc::new(Semaphore::new(pieces)), pieces }
    }

    /// Adds bytes to a share; `false` when there is no room for them. A share that is larger than
    /// the whole budget is allowed when it is the only one.
    pub(crate) fn take(&self, share: &mut Share, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(share.left).filter(|more| *more > 0) else {
            share.left -= bytes;
            return true;
        };
        let held = share.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let pieces = more.div_ceil(PIECE).min(self.pieces.saturating_sub(held));
        let Ok(taken) = Arc::clone(&self.room).try_acquire_many_owned(u32::try_from(pieces).unwrap_or(u32::MAX)) else {
            return false;
        };
        share.left = (pieces * PIECE).saturating_sub(more);
        match &mut share.permit {
            Some(permit) => permit.merge(taken),
            none => *none = Some(taken),
        }
        true
    }

    /// All the room there is, for an answer that cannot be refused any more.
    pub(crate) fn take_what_is_left(&self) -> Share {
        let left = u32::try_from(self.room.available_permits()).unwrap_or(u32::MAX);
        Share { permit: Arc::clone(&self.room).try_acquire_many_owned(left).ok(), left: 0 }
    }

    /// How many bytes are taken.
    pub(crate) fn taken(&self) -> usize {
        (self.pieces - self.room.available_permits()) * PIECE
    }
}

/// Bytes that hold their share until the last of them is dropped.
pub(crate) fn held<B: AsRef<[u8]> + Send + 'static>(bytes: B, share: Share) -> Bytes {
    struct Held<B>(B, #[expect(dead_code, reason = "dropped with the bytes")] Share);

    impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
        fn as_ref(&self) -> &[u8] {
            self.0.as_ref()
        }
    }

    Bytes::from_owner(Held(bytes, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_comes_back_with_the_bytes() {
        let budget = Budget::new(10 * PIECE);
        let mut share = Share::default();
        assert!(budget.take(&mut share, 9 * PIECE));
        assert!(!budget.take(&mut Share::default(), 2 * PIECE));

        let bytes = held(vec![0; 9 * PIECE], share);
        let tail = bytes.slice(5..6);
        drop(bytes);
        assert_eq!(budget.taken(), 9 * PIECE, "a slice of them is still held");
        drop(tail);

        assert_eq!(budget.taken(), 0);
    }

    #[test]
    fn small_bites_fill_a_piece_before_the_next_is_taken() {
        let budget = Budget::new(2 * PIECE);
        let mut share = Share::default();

        for _ in 0..PIECE {
            assert!(budget.take(&mut share, 1));
        }
        assert_eq!(budget.taken(), PIECE);
        assert!(budget.take(&mut share, 1));
        assert_eq!(budget.taken(), 2 * PIECE);
    }

    #[test]
    fn what_is_larger_than_all_gets_through_alone() {
        let budget = Budget::new(2 * PIECE);
        let mut large = Share::default();

        assert!(budget.take(&mut large, 100 * PIECE));
        assert!(!budget.take(&mut Share::default(), 1));
        drop(large);
        assert!(budget.take(&mut Share::default(), 1));
    }
}
