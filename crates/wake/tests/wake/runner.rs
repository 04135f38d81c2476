//! Due times that wake, on the paused clock.

use reveille_wake::{Cause, DueSource, Hub, HubOptions, Waited};
use tokio::task::JoinSet;

use crate::hub::waiter;
use crate::rig::{ms, now, proven, secs, settle};

fn running(options: HubOptions) -> (Hub<&'static str>, JoinSet<()>) {
    let (hub, runner) = Hub::new(options);
    hub.set_link(proven());
    let mut tasks = JoinSet::new();
    tasks.spawn(runner.run(std::future::pending()));
    (hub, tasks)
}

#[tokio::test(start_paused = true)]
async fn a_key_is_woken_at_its_due_time_and_not_before() {
    let (hub, _tasks) = running(HubOptions::default());
    let mut armed = waiter(&hub);
    let begun = now();

    hub.wake_after("mail", DueSource::Announced, ms(1500));

    assert_eq!(armed.wait(begun + secs(60)).await, Waited::Woken(Cause::Due));
    let late = now() - begun;
    assert!(late >= ms(1500) && late <= ms(1502), "{late:?}");
}

/// B6: the length of a sleep that has begun was never changed.
#[tokio::test(start_paused = true)]
async fn an_earlier_due_time_shortens_the_sleep() {
    let (hub, _tasks) = running(HubOptions::default());
    let mut armed = waiter(&hub);
    let begun = now();
    hub.wake_after("mail", DueSource::Announced, secs(30));
    settle().await; // the runner sleeps for thirty seconds now

    hub.wake_after("mail", DueSource::Lease, secs(2));

    assert_eq!(armed.wait(begun + secs(60)).await, Waited::Woken(Cause::LeaseExpired));
    assert!(now() - begun <= ms(2002), "{:?}", now() - begun);
}

#[tokio::test(start_paused = true)]
async fn a_due_time_taken_back_wakes_no_waiter() {
    let (hub, _tasks) = running(HubOptions::default());
    let mut armed = waiter(&hub);
    hub.set_due("mail", DueSource::Round, Some(secs(2)));

    hub.set_due("mail", DueSource::Round, None);

    assert_eq!(armed.wait(now() + secs(10)).await, Waited::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn a_due_time_in_the_past_wakes_at_once() {
    let (hub, _tasks) = running(HubOptions::default());
    let mut armed = waiter(&hub);

    hub.wake_after("mail", DueSource::Announced, ms(0));

    assert_eq!(armed.wait(now() + secs(1)).await, Waited::Woken(Cause::Due));
}

#[tokio::test(start_paused = true)]
async fn grace_is_added_to_every_due_time() {
    let (hub, _tasks) = running(HubOptions::default().grace(ms(100)));
    let mut armed = waiter(&hub);
    let begun = now();

    hub.wake_after("mail", DueSource::Announced, secs(1));

    assert_eq!(armed.wait(begun + secs(60)).await, Waited::Woken(Cause::Due));
    assert!(now() - begun >= ms(1100));
}

#[tokio::test(start_paused = true)]
async fn a_due_time_beyond_the_limit_wakes_every_key() {
    let (hub, _tasks) = running(HubOptions::default().max_dues(1));
    let mut armed = waiter(&hub);
    hub.wake_after("letters", DueSource::Announced, secs(1));

    hub.wake_after("mail", DueSource::Announced, secs(5));

    assert_eq!(armed.wait(now() + secs(60)).await, Waited::Woken(Cause::Due));
}

#[tokio::test(start_paused = true)]
async fn a_delay_read_from_a_row_may_be_anything() {
    let (hub, _tasks) = running(HubOptions::default());

    hub.wake_after("mail", DueSource::Announced, std::time::Duration::MAX);
    settle().await;

    assert_eq!(hub.dues(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_runner_ends_when_asked() {
    let (hub, runner) = Hub::<u8>::new(HubOptions::default());
    hub.wake_after(1, DueSource::Announced, secs(3600));

    runner.run(async {}).await;
}
