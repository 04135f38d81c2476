//! A ring counts as delivered when a look begins, not before.

use std::sync::Arc;

use reveille_wake::{Cause, Counters, Hub, HubOptions, Outcome, Policy, Waited};
use tokio::task::JoinSet;

use crate::hub::waiter;
use crate::rig::{ms, now, proven, secs, settle};

fn running_hub(counters: &Arc<Counters>) -> (Hub<&'static str>, JoinSet<()>) {
    let options = HubOptions::default().policy(Policy::One).delivery_timeout(ms(100)).observer(counters.clone());
    let (hub, runner) = Hub::new(options);
    hub.set_link(proven());
    let mut tasks = JoinSet::new();
    tasks.spawn(runner.run(std::future::pending()));
    (hub, tasks)
}

/// B10: in the seed a token in a buffer counted as delivered while everybody was busy.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_dawdles_is_overtaken_by_the_next() {
    let counters = Arc::new(Counters::default());
    let (hub, _tasks) = running_hub(&counters);
    let (mut dawdler, mut next) = (waiter(&hub), waiter(&hub));
    let begun = now();
    let ((), waited) = tokio::join!(
        async {
            let sleeping = dawdler.wait(now() + secs(60));
            let (woken, ()) = tokio::join!(sleeping, async { hub.ring(&"mail", Cause::Pushed) });
            assert_eq!(woken, Waited::Woken(Cause::Pushed));
        },
        next.wait(now() + secs(60)),
    );

    assert_eq!(waited, Waited::Woken(Cause::Pushed));
    assert!(now() - begun >= ms(100) && now() - begun < ms(105), "{:?}", now() - begun);
    assert_eq!(counters.undelivered(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_looks_in_time_is_left_alone() {
    let counters = Arc::new(Counters::default());
    let (hub, _tasks) = running_hub(&counters);
    let (mut prompt, mut next) = (waiter(&hub), waiter(&hub));
    hub.ring(&"mail", Cause::Pushed);
    assert_eq!(prompt.wait(now()).await, Waited::Woken(Cause::Pushed));

    prompt.look().found(Outcome::UnderFilled);

    assert_eq!(next.wait(now() + secs(60)).await, Waited::TimedOut);
    settle().await;
    assert_eq!(counters.undelivered(), 0);
}
