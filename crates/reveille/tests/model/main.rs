//! Random histories of a queue, in PostgreSQL and in a model of it: both must agree.
//!
//! `histories` plays thousands of them, one step at a time; `mutations` breaks a rule on purpose,
//! to show that the comparison can fail. Many clients at once are in `chaos/tests/library`.

#[cfg(test)]
mod model;
#[cfg(test)]
mod play;
#[cfg(test)]
mod shrink;
#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod story;

#[cfg(test)]
mod histories;

#[cfg(test)]
mod mutations;
