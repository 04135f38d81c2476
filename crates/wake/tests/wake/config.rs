//! The seeds' names.

use reveille_wake::{Answer, ConfigFault, LongPollConfig, PaceCauses, PaceOptions, Policy, SEED_001};

use crate::rig::{Rig, ms, now, secs};

#[test]
fn defaults_are_the_seeds_unless_a_decision_says_otherwise() {
    let ours = LongPollConfig::default();
    let seed = LongPollConfig::SEED_001;

    assert!(!ours.enabled);
    assert_eq!(ours.fallback_poll_interval, secs(300));
    assert_eq!(ours.max_wait_time, secs(30));
    assert_eq!((ours.timer_grace_period, seed.timer_grace_period), (ms(0), ms(100)));
    assert_eq!((ours.aggressive_poll_duration, seed.aggressive_poll_duration), (secs(10), secs(60)));
    assert_eq!(ours.aggressive_exit_threshold, 5);
    assert_eq!(ours.notify_delivery_timeout, ms(100));
    assert_eq!(ours.policy, Policy::Competing);
    assert_eq!((ours.causes, seed.causes), (PaceCauses::DEFAULT, PaceCauses::SEED_001));
}

#[test]
fn the_paces_are_those_of_the_constants() {
    assert_eq!(LongPollConfig::default().pace_options(), PaceOptions::DEFAULT);
    assert_eq!(LongPollConfig::SEED_001.pace_options(), SEED_001);
}

#[test]
fn every_fault_is_reported_at_once() {
    let config = LongPollConfig {
        fallback_poll_interval: ms(0),
        max_wait_time: secs(100_000),
        notify_delivery_timeout: ms(0),
        ..LongPollConfig::on()
    };

    let faults = config.validate().unwrap_err();

    assert_eq!(faults.0.len(), 3);
    assert!(faults.0.contains(&ConfigFault::TooLong { setting: "max_wait_time", value: secs(100_000) }));
    assert!(faults.to_string().contains("fallback_poll_interval must be longer than zero; "), "{faults}");
    assert_eq!(LongPollConfig::on().validate(), Ok(LongPollConfig::on()));
}

#[tokio::test(start_paused = true)]
async fn disabled_means_a_fetch_returns_at_once() {
    let rig = Rig::with(LongPollConfig::default().dispatcher_options(), true).await;
    let begun = now();

    assert_eq!(rig.ask("mail", secs(30)).await, Answer::Nothing);
    rig.store.put("mail", [1]);
    assert_eq!(rig.ask("mail", secs(30)).await, Answer::Lease(1));

    assert_eq!(now(), begun);
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_never_longer_than_max_wait_time() {
    let rig = Rig::with(LongPollConfig::on().dispatcher_options(), true).await;
    let begun = now();

    assert_eq!(rig.ask("mail", secs(600)).await, Answer::Nothing);

    assert_eq!((now() - begun).as_secs(), 30);
}
