//! Handlers, which do the work of a kind, and hooks, which watch them.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::job::Job;
use super::outcome::{IntoOutcome, Outcome};

pub(super) type Working = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A handler without the type of its arguments. Arguments that do not parse are an outcome: the job
/// is dead.
pub(super) type Handler = Box<dyn Fn(&[u8], Job) -> Result<Working, Outcome> + Send + Sync>;

pub(super) fn handler<A, Fut>(work: impl Fn(A, Job) -> Fut + Send + Sync + 'static) -> Handler
where
    A: DeserializeOwned + Send + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoOutcome,
{
    let work = Arc::new(work);
    Box::new(move |args, job| {
        let args = serde_json::from_slice(args).map_err(|error| {
            Outcome::dead("bad_args", format!("the arguments are not what the handler takes: {error}"))
        })?;
        let work = Arc::clone(&work);
        // Called inside, so that a panic before its first await is caught like any other.
        Ok(Box::pin(async move { work(args, job).await.into_outcome() }))
    })
}

/// Watches attempts, in the task that makes them: both must return soon, and a panic in them is
/// caught and logged.
pub trait Hook: Send + Sync + 'static {
    /// A handler is about to begin.
    fn before(&self, job: &Job) {
        let _ = job;
    }

    /// The handler ended; the outcome is not recorded yet.
    fn after(&self, job: &Job, outcome: &Outcome, took: Duration) {
        let _ = (job, outcome, took);
    }
}
