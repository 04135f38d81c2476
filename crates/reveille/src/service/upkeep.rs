//! Regular housekeeping of a service.
//!
//! Every process runs a round now and then and skips rows that another process has locked, so no
//! process leads and none waits. Knows no table: a round is a closure of the service.

use std::time::Duration;

use tokio::time::sleep;

use super::context::Context;

/// The pause after a round that did not finish.
const SOON: Duration = Duration::from_secs(1);

/// When the next round begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// There is more to do.
    Soon,
    /// After the interval.
    Later,
}

/// Runs a round every `interval` until the service ends; never when it is zero.
pub(crate) fn start<R, F>(context: &Context, interval: Duration, round: R)
where
    R: Fn() -> F + Send + 'static,
    F: Future<Output = Next> + Send,
{
    if interval.is_zero() {
        return;
    }
    let end = context.end().clone();
    context.spawn(async move {
        let mut pause = jittered(interval);
        while end.run_until_cancelled(sleep(pause)).await.is_some() {
            pause = match round().await {
                Next::Soon => SOON.min(interval),
                Next::Later => jittered(interval),
            };
        }
    });
}

/// Without jitter, processes that started together would all work on the same rows.
fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(0.75 + fastrand::f64() / 2.0)
}
