//! Texts that PostgreSQL's `text` cannot hold.

use duroxide::EventKind;
use duroxide::providers::{ExecutionMetadata, Provider, ProviderAdmin};
use reveille_testkit::TestDatabase;

use crate::fault_harness::{LONG, WAIT, about_order, event, open, start, started, take_turn};

/// A NUL, what stands for it in the database, and what stands for that.
const ODD: &str = "a\0b\u{1}0c\u{1}\u{1}1";

#[tokio::test]
async fn payloads_with_nul_characters_come_back_as_they_were() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&provider, LONG, WAIT).await.unwrap();
    let set = EventKind::KeyValueSet { key: ODD.to_owned(), value: ODD.to_owned(), last_updated_at_ms: 1 };
    let status = EventKind::CustomStatusUpdated { status: Some(ODD.to_owned()) };
    let completed = EventKind::OrchestrationCompleted { output: ODD.to_owned() };
    let kinds = [set, status, completed];
    let mut history = vec![started("order")];
    history.extend(kinds.into_iter().zip(2..).map(|(kind, id)| event("order", id, kind)));
    let about =
        ExecutionMetadata { status: Some("Completed".to_owned()), output: Some(ODD.to_owned()), ..about_order() };

    provider.ack_orchestration_item(&token, 1, history.clone(), vec![], vec![], about, vec![]).await.unwrap();

    assert_eq!(provider.read("order").await.unwrap(), history);
    assert_eq!(provider.get_kv_value("order", ODD).await.unwrap().as_deref(), Some(ODD));
    assert_eq!(provider.get_kv_all_values("order").await.unwrap()[ODD], ODD);
    assert_eq!(provider.get_custom_status("order", 0).await.unwrap(), Some((Some(ODD.to_owned()), 1)));
    assert_eq!(provider.get_instance_info("order").await.unwrap().output.as_deref(), Some(ODD));
    assert_eq!(provider.get_execution_info("order", 1).await.unwrap().output.as_deref(), Some(ODD));
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let (item, ..) = provider.fetch_orchestration_item(LONG, WAIT, None).await.unwrap().unwrap();
    assert_eq!(item.kv_snapshot[ODD].value, ODD);
}

#[tokio::test]
async fn a_name_with_a_nul_character_is_refused_in_words_and_for_good() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;

    let refused = provider.enqueue_for_orchestrator(start("or\0der"), None).await.unwrap_err();

    assert!(!refused.is_retryable(), "{refused:?}");
    assert!(refused.message.contains("0x00"), "{refused:?}");
}
