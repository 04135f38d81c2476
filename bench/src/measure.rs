//! Rates and quantiles.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use reveille_testkit::scenario::quantile;

/// Runs `workers` loops of `work` until `span` is over, and returns how many rounds they did per
/// second.
pub(crate) async fn rate<W, F>(span: Duration, workers: usize, work: W) -> anyhow::Result<f64>
where
    W: Fn(usize) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    counted(span, workers, async |worker| work(worker).await.map(|()| 1)).await
}

/// The same for work that returns how much it did.
pub(crate) async fn counted<W>(span: Duration, workers: usize, work: W) -> anyhow::Result<f64>
where
    W: AsyncFn(usize) -> anyhow::Result<usize>,
{
    counted_up_to(u64::MAX, span, workers, work).await
}

/// The same, and over as soon as `most` was done.
pub(crate) async fn counted_up_to<W>(most: u64, span: Duration, workers: usize, work: W) -> anyhow::Result<f64>
where
    W: AsyncFn(usize) -> anyhow::Result<usize>,
{
    let done = AtomicU64::new(0);
    let began = Instant::now();
    let loops = (0..workers).map(|worker| {
        let (work, done) = (&work, &done);
        async move {
            while began.elapsed() < span && done.load(Ordering::Relaxed) < most {
                let did = work(worker).await?;
                done.fetch_add(did as u64, Ordering::Relaxed);
            }
            anyhow::Ok(())
        }
    });
    try_join_all(loops).await?;
    #[expect(clippy::cast_precision_loss, reason = "a rate has three significant digits")]
    let done = done.into_inner() as f64;
    Ok(done / began.elapsed().as_secs_f64())
}

/// The middle one.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The median of the rounds' own ratios: both sides of each were measured in the same seconds.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    median(&ratios)
}
