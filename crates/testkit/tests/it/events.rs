//! The list tests wait on.

use reveille_testkit::Events;

#[tokio::test]
async fn an_event_of_the_past_is_seen() {
    let events = Events::new();
    events.record("pushed");

    assert_eq!(events.until(|event| *event == "pushed").await, "pushed");
}

#[tokio::test]
async fn a_waiting_reader_is_woken_by_what_it_waits_for_only() {
    let events = Events::new();
    let mut reader = events.reader();

    let (found, ()) = tokio::join!(reader.until(|event| *event == 3), async {
        for event in 1..=3 {
            events.record(event);
            tokio::task::yield_now().await;
        }
    });

    assert_eq!(found, 3);
}

#[tokio::test]
async fn a_reader_passes_each_event_once_and_in_order() {
    let events = Events::new();
    for event in [1, 2, 1] {
        events.record(event);
    }
    let mut reader = events.reader();

    reader.until(|event| *event == 1).await;
    reader.until(|event| *event == 1).await;
    events.record(2);

    assert_eq!(reader.until(|event| *event == 2).await, 2);
    assert_eq!(events.count(|event| *event == 1), 2);
    assert_eq!(events.all(), [1, 2, 1, 2]);
}

#[tokio::test]
async fn a_reader_from_now_does_not_see_the_past() {
    let events = Events::new();
    events.record(1);
    let mut reader = events.reader_from_now();

    events.record(2);

    assert_eq!(reader.until(|_| true).await, 2);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "there were")]
async fn an_event_that_never_comes_fails_the_test() {
    Events::<u8>::new().until(|_| true).await;
}
