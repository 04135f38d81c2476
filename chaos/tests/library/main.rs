//! Many clients of the library at once, without a fault of process or network, and the books
//! afterwards.
//!
//! Beside the big run, whose checker knows only what clients saw: the books here also know the
//! rows, so that they can say whether every answer (a sequence, an epoch, a transaction id that was
//! seen before) is true. `concurrent` lets clients loose; `mutations` breaks rules of SQL functions
//! on purpose, to show that the books can fail.

#[cfg(test)]
mod clients;

#[cfg(test)]
mod concurrent;
#[cfg(test)]
mod mutations;
