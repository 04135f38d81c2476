//! What waiting costs, in claim rounds per hour.

use reveille_wake::{Answer, Dispatcher, DispatcherOptions, Hub, HubOptions, Patience, PollModeOptions};
use tokio::task::JoinSet;

use crate::rig::{Rig, SEED_001, Store, ms, now, proven, secs, settle};

const KEYS: [&str; 4] = ["mail", "letters", "parcels", "cards"];

/// B9: waiters that time out every 30 s and come back, for an hour.
async fn rounds_in_an_hour(poll_mode: PollModeOptions) -> usize {
    let rig = Rig::with(DispatcherOptions::default().poll_mode(poll_mode), true).await;
    let begun = now();
    let mut tasks = JoinSet::new();
    for key in KEYS {
        let handle = rig.handle.clone();
        tasks.spawn(async move {
            while now() - begun < secs(3600) {
                let patience = Patience::Until(now() + secs(30));
                let ticket = handle.request([key], (), patience).expect("there is room");
                assert_eq!(ticket.await, Answer::Nothing);
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(rig.counters.missed(), 0);
    rig.store.rounds()
}

/// B9: one round at the start, then one fallback round for all keys every five minutes.
#[tokio::test(start_paused = true)]
async fn idle_costs_one_round_in_five_minutes_for_all_keys_together() {
    let rounds = rounds_in_an_hour(PollModeOptions::DEFAULT).await;

    assert!(rounds <= 14, "{rounds} rounds in an hour");
}

/// B9: the earlier set of causes for comparison, with which every fallback round begins polling.
#[tokio::test(start_paused = true)]
async fn the_earlier_set_of_causes_is_far_from_idle() {
    let rounds = rounds_in_an_hour(SEED_001).await;

    assert!(rounds > 10_000, "{rounds} rounds in an hour");
}

/// Sixteen dispatchers and a thousand keys: no round at all between two fallback rounds.
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
        let (dispatcher, handle) = Dispatcher::new(&hub, store.clone(), DispatcherOptions::default());
        tasks.spawn(dispatcher.run(std::future::pending()));
        let patience = Patience::Until(now() + secs(3600));
        tickets.extend(names.iter().map(|name| handle.request([*name], (), patience).unwrap()));
    }
    settle().await;
    let before: usize = stores.iter().map(Store::rounds).sum();

    for _ in 0..290 {
        tokio::time::advance(ms(1000)).await;
        settle().await;
    }

    let rounds: usize = stores.iter().map(Store::rounds).sum::<usize>() - before;
    // 1000 demands are two rounds of 512. The other fifteen dispatchers need not claim from keys
    // that the first one found empty.
    assert_eq!((before, rounds), (2, 0));
}
