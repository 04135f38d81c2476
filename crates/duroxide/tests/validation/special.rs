//! The functions of the suite that take something else than a factory, or need the machine for
//! themselves.

use std::time::Duration;

use duroxide::provider_validation::instance_locking::test_multi_threaded_lock_expiration_recovery;
use duroxide::provider_validation::long_polling::{
    test_fetch_respects_timeout_upper_bound, test_long_poll_waits_for_timeout,
    test_long_poll_work_item_waits_for_timeout, test_short_poll_returns_immediately,
    test_short_poll_work_item_returns_immediately,
};
use duroxide::provider_validation::race_replay::test_continue_as_new_transition_delivery;

use crate::factory::{Factory, alone_in_both_modes, in_both_modes};

/// Those that this file tests.
pub(crate) const LISTED: &[&str] = &[
    "instance_locking::test_multi_threaded_lock_expiration_recovery",
    "long_polling::test_fetch_respects_timeout_upper_bound",
    "long_polling::test_long_poll_waits_for_timeout",
    "long_polling::test_long_poll_work_item_waits_for_timeout",
    "long_polling::test_short_poll_returns_immediately",
    "long_polling::test_short_poll_work_item_returns_immediately",
    "race_replay::test_continue_as_new_transition_delivery",
];

/// Its second fetch comes 100 ms after the end of a lock that the first is thought to have taken in
/// no time.
#[tokio::test]
async fn multi_threaded_lock_expiration_recovery() {
    alone_in_both_modes(|factory| async move { test_multi_threaded_lock_expiration_recovery(&factory).await }).await;
}

const THRESHOLD: Duration = Duration::from_millis(500);

#[tokio::test]
async fn short_poll_returns_immediately() {
    let factory = Factory::short();
    test_short_poll_returns_immediately(&factory.provider().await, THRESHOLD).await;
}

#[tokio::test]
async fn short_poll_work_item_returns_immediately() {
    let factory = Factory::short();
    test_short_poll_work_item_returns_immediately(&factory.provider().await, THRESHOLD).await;
}

#[tokio::test]
async fn short_poll_respects_timeout_upper_bound() {
    let factory = Factory::short();
    test_fetch_respects_timeout_upper_bound(&factory.provider().await).await;
}

#[tokio::test]
async fn long_poll_waits_for_timeout() {
    let factory = Factory::waiting();
    test_long_poll_waits_for_timeout(&factory.provider().await).await;
}

#[tokio::test]
async fn long_poll_work_item_waits_for_timeout() {
    let factory = Factory::waiting();
    test_long_poll_work_item_waits_for_timeout(&factory.provider().await).await;
}

#[tokio::test]
async fn long_poll_respects_timeout_upper_bound() {
    let factory = Factory::waiting();
    test_fetch_respects_timeout_upper_bound(&factory.provider().await).await;
}

#[tokio::test]
async fn continue_as_new_transition_delivery_of_0_1_30() {
    in_both_modes(|factory| async move { test_continue_as_new_transition_delivery(&factory, "0.1.30").await }).await;
}

#[tokio::test]
async fn continue_as_new_transition_delivery_of_0_1_31() {
    in_both_modes(|factory| async move { test_continue_as_new_transition_delivery(&factory, "0.1.31").await }).await;
}
