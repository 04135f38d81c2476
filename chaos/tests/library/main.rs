//! Many clients of the library at once, without a fault of process or network, and an audit
//! afterwards.
//!
//! The checker of the chaos run knows only what clients saw. The audit here also knows the rows, so
//! that it can check whether every answer (a sequence, an epoch, a transaction id that was seen
//! before) is true. `concurrent` runs the clients; `mutations` breaks rules of SQL functions on
//! purpose, to show that the audit can fail.

#[cfg(test)]
mod clients;

#[cfg(test)]
mod concurrent;
#[cfg(test)]
mod mutations;
