//! What waiting costs: looks per hour.

use reveille_wake::{Answer, Dispatcher, DispatcherOptions, Hub, HubOptions, Patience, PollModeOptions};
use tokio::task::JoinSet;

use crate::rig::{Rig, SEED_001, Store, ms, now, proven, secs, settle};

const KEYS: [&str; 4] = ["mail", "letters", "parcels", "cards"];

/// B9: waiters that time out every 30 s and come back, for an hour.
async fn looks_in_an_hour(poll_mode: PollModeOptions) -> usize {
    let rig = Rig::with(DispatcherOptions::default().poll_mode(poll_mode), true).await;
    let begun = now();
    let mut tasks = JoinSet::new();
    for key in KEYS {
        let door = rig.door.clone();
        tasks.spawn(async move {
            while now() - begun < secs(3600) {
                let patience = Patience::Until(now() + secs(30));
                let ticket = door.request([key], (), patience).expect("there is room");
                assert_eq!(ticket.await, Answer::Nothing);
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(rig.counters.missed(), 0);
    rig.store.looks()
}

/// B9: one look at the start, then one fallback look for all keys every five minutes.
#[tokio::test(start_paused = true)]
async fn idle_costs_a_look_in_five_minutes_for_all_keys_together() {
    let looks = looks_in_an_hour(PollModeOptions::DEFAULT).await;

    assert!(looks <= 14, "{looks} looks in an hour");
}

/// B9: the seed's table, for comparison: it never rests for long after a fallback look.
#[tokio::test(start_paused = true)]
async fn the_seeds_table_is_far_from_idle() {
    let looks = looks_in_an_hour(SEED_001).await;

    assert!(looks > 10_000, "{looks} looks in an hour");
}

/// Sixteen dispatchers and a thousand keys: no look at all between two fallback looks.
#[tokio::test(start_paused = true)]
async fn a_thousand_keys_cost_no_more_than_one() {
    let (hub, runner) = Hub::new(HubOptions::default());
    hub.set_link(proven());
    let mut tasks = JoinSet::new();
    tasks.spawn(runner.run(std::future::pending()));
    let stores: Vec<Store> = (0..16).map(|_| Store::default()).collect();
    let names: Vec<&'static str> = (0..1000).map(|n| &*format!("queue {n}").leak()).collect();
    let mut tickets = Vec::new();
    for store in &stores {
        let (dispatcher, door) = Dispatcher::new(&hub, store.clone(), DispatcherOptions::default());
        tasks.spawn(dispatcher.run(std::future::pending()));
        let patience = Patience::Until(now() + secs(3600));
        tickets.extend(names.iter().map(|name| door.request([*name], (), patience).unwrap()));
    }
    settle().await;
    let before: usize = stores.iter().map(Store::looks).sum();

    for _ in 0..290 {
        tokio::time::advance(ms(1000)).await;
        settle().await;
    }

    let looks: usize = stores.iter().map(Store::looks).sum::<usize>() - before;
    // 1000 demands are two rounds of 512; what the first dispatcher found empty the other fifteen
    // need not look at.
    assert_eq!((before, looks), (2, 0));
}
