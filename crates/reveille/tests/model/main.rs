//! Random histories of a queue, in PostgreSQL and in a model of it: both must tell the same story.
//!
//! `histories` plays thousands of them, one step at a time; `concurrent_chaos` lets many clients loose at once and checks the
//! books afterwards; `mutations_chaos` breaks the rules on purpose, to show that the checks can fail.

#[cfg(test)]
mod chaos;
#[cfg(test)]
mod model;
#[cfg(test)]
mod play;
#[cfg(test)]
mod shrink;
#[cfg(test)]
mod story;
#[cfg(test)]
mod world;

#[cfg(test)]
mod histories;

#[cfg(test)]
mod concurrent_chaos;
#[cfg(test)]
mod mutations_chaos;
