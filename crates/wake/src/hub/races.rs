//! The runner decides to sleep while a due time is added.
//!
//! Run with the command in `crates/wake/README.md`.

use std::time::Duration;

use super::{Hub, HubOptions};
use crate::dues::DueSource;

/// B6: between computing the sleep and falling asleep.
#[test]
fn a_due_time_that_is_added_while_the_runner_falls_asleep_is_seen() {
    let schedules = option_env!("SHUTTLE_SCHEDULES").and_then(|number| number.parse().ok());
    shuttle::check_random(
        || {
            let (hub, runner) = Hub::new(HubOptions::default());
            hub.wake_after(1, DueSource::Announced, Duration::from_secs(30));
            runner.compute_sleep();
            let other = hub.clone();
            let earlier = shuttle::thread::spawn(move || {
                other.wake_after(2, DueSource::Announced, Duration::from_secs(2));
            });

            shuttle::future::block_on(runner.hurried());

            earlier.join().expect("it ends");
        },
        schedules.unwrap_or(20_000),
    );
}
