//! duroxide's own validation suite, function by function, as the tests of `reveille-duroxide` list
//! it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::provider_validation::instance_locking::test_multi_threaded_lock_expiration_recovery;
use duroxide::provider_validation::long_polling::{
    test_fetch_respects_timeout_upper_bound, test_long_poll_waits_for_timeout,
    test_long_poll_work_item_waits_for_timeout, test_short_poll_returns_immediately,
    test_short_poll_work_item_returns_immediately,
};
use duroxide::provider_validation::race_replay::test_continue_as_new_transition_delivery;
use duroxide::provider_validations::ProviderFactory;
use duroxide::providers::Provider;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bed::Bed;

type Check = Box<dyn FnOnce(Factory) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// One entry for each listed function.
macro_rules! validations {
    ($($group:ident { $($name:ident,)* })*) => {
        /// Every function that takes a factory.
        pub(super) fn all() -> Vec<(&'static str, super::Check)> {
            vec![$($((
                concat!(stringify!($group), "::", stringify!($name)),
                super::check(|factory| async move {
                    duroxide::provider_validation::$group::$name(&factory).await;
                }),
            ),)*)*]
        }
    };
}
use validations;

#[path = "../../../../crates/duroxide/tests/validation/list.rs"]
mod list;

const LOCK: Duration = Duration::from_secs(1);
const SHORT: Duration = Duration::from_millis(500);

struct Factory {
    bed: Bed,
    /// The schema of the latest provider, which is the one that the suite examines.
    schema: Mutex<String>,
}

fn check<F, R>(run: F) -> Check
where
    F: FnOnce(Factory) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    Box::new(move |factory| Box::pin(run(factory)))
}

/// Runs every function, `at_once` at a time, and returns how many there were and which failed.
pub(crate) async fn run(bed: &Bed, at_once: usize) -> anyhow::Result<Value> {
    let mut checks = list::all();
    checks.extend(special(bed.peer.waits()));
    let total = checks.len();
    // The slowest ones stand at the end of the list.
    checks.reverse();
    // A failed function panics; its name is the answer.
    std::panic::set_hook(Box::new(|_| {}));
    let (mut running, mut failed) = (JoinSet::new(), Vec::new());
    let mut left = checks.into_iter();
    loop {
        while running.len() < at_once {
            let Some((name, check)) = left.next() else { break };
            let factory = Factory { bed: bed.clone(), schema: Mutex::default() };
            running.spawn(async move {
                let mut alone = JoinSet::new();
                alone.spawn(check(factory));
                (name, alone.join_next().await.is_some_and(|ended| ended.is_ok()))
            });
        }
        match running.join_next().await {
            None => break,
            Some(Ok((_, true))) => {}
            Some(Ok((name, false))) => failed.push(name),
            Some(Err(_)) => failed.push("a function that was not run"),
        }
    }
    let _ = std::panic::take_hook();
    Ok(json!({ "passed": total - failed.len(), "total": total, "failed": failed }))
}

/// The functions that take something else than a factory, and one that the tests list apart.
fn special(waits: bool) -> Vec<(&'static str, Check)> {
    let mut checks: Vec<(&'static str, Check)> = vec![
        (
            "instance_locking::test_multi_threaded_lock_expiration_recovery",
            check(|factory| async move { test_multi_threaded_lock_expiration_recovery(&factory).await }),
        ),
        (
            "race_replay::test_continue_as_new_transition_delivery(0.1.30)",
            check(|factory| async move { test_continue_as_new_transition_delivery(&factory, "0.1.30").await }),
        ),
        (
            "race_replay::test_continue_as_new_transition_delivery(0.1.31)",
            check(|factory| async move { test_continue_as_new_transition_delivery(&factory, "0.1.31").await }),
        ),
        (
            "long_polling::test_fetch_respects_timeout_upper_bound",
            check(|factory| async move {
                test_fetch_respects_timeout_upper_bound(&*factory.create_provider().await).await;
            }),
        ),
    ];
    if waits {
        checks.push((
            "long_polling::test_long_poll_waits_for_timeout",
            check(|factory| async move { test_long_poll_waits_for_timeout(&*factory.create_provider().await).await }),
        ));
        checks.push((
            "long_polling::test_long_poll_work_item_waits_for_timeout",
            check(|factory| async move {
                test_long_poll_work_item_waits_for_timeout(&*factory.create_provider().await).await;
            }),
        ));
    } else {
        checks.push((
            "long_polling::test_short_poll_returns_immediately",
            check(|factory| async move {
                test_short_poll_returns_immediately(&*factory.create_provider().await, SHORT).await;
            }),
        ));
        checks.push((
            "long_polling::test_short_poll_work_item_returns_immediately",
            check(|factory| async move {
                test_short_poll_work_item_returns_immediately(&*factory.create_provider().await, SHORT).await;
            }),
        ));
    }
    checks
}

impl Factory {
    fn latest(&self) -> String {
        let schema = self.schema.lock().unwrap_or_else(PoisonError::into_inner);
        format!("\"{schema}\"")
    }
}

#[async_trait]
impl ProviderFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let (schema, provider) = self.bed.open_named().await.expect("a provider opens");
        *self.schema.lock().unwrap_or_else(PoisonError::into_inner) = schema;
        provider
    }

    fn lock_timeout(&self) -> Duration {
        LOCK
    }

    fn short_poll_threshold(&self) -> Duration {
        SHORT
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        let plain = self.bed.plain().await.expect("a connection opens");
        let spoil = self.bed.peer.spoil_history(&self.latest());
        plain.client.execute(&spoil, &[&instance]).await.expect("history can be spoilt");
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let plain = self.bed.plain().await.expect("a connection opens");
        let row = plain.client.query_one(&self.bed.peer.attempts(&self.latest()), &[&instance]).await;
        let attempts: i32 = row.expect("attempts can be read").get(0);
        u32::try_from(attempts).expect("attempts are not negative")
    }
}
