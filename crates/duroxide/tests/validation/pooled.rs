//! A choice of the suite behind a transaction pooler, where each statement travels unnamed inside a
//! transaction of its own: every statement of the provider at least once, and those that race.

macro_rules! pooled {
    ($($group:ident { $($name:ident,)* })*) => {
        $(mod $group { $(
            #[tokio::test]
            async fn $name() {
                let Some(factory) = crate::factory::Factory::pooled().await else { return };
                duroxide::provider_validation::$group::$name(&factory).await;
            }
        )* })*
    };
}

pooled! {
    atomicity {
        test_atomicity_failure_rollback,
        test_multi_operation_atomic_ack,
        test_concurrent_ack_prevention,
    }
    bulk_deletion {
        test_delete_instance_bulk_cascades_to_children,
    }
    cancellation {
        test_batch_cancellation_deletes_multiple_activities,
    }
    capability_filtering {
        test_concurrent_filtered_fetch_no_double_lock,
    }
    custom_status {
        test_custom_status_version_increments,
    }
    deletion {
        test_cascade_delete_hierarchy,
        test_force_delete_prevents_ack_recreation,
    }
    error_handling {
        test_duplicate_event_id_rejection,
        test_lock_expiration_during_ack,
    }
    instance_locking {
        test_concurrent_instance_fetching,
        test_multi_threaded_no_duplicate_processing,
        test_multi_threaded_lock_expiration_recovery,
    }
    kv_store {
        test_kv_delta_merged_on_completion,
        test_kv_delta_clear_all_tombstones_store,
    }
    lock_expiration {
        test_worker_lock_renewal_extends_timeout,
        test_abandon_work_item_with_delay,
    }
    management {
        test_get_system_metrics,
        test_get_queue_depths,
        test_get_instance_stats_kv_merged,
        test_list_executions,
    }
    multi_execution {
        test_continue_as_new_creates_new_execution,
    }
    poison_message {
        abandon_orchestration_item_ignore_attempt_decrements,
    }
    prune {
        test_prune_bulk,
    }
    queue_semantics {
        test_worker_queue_fifo_ordering,
        test_timer_delayed_visibility,
    }
    race_replay {
        test_continue_as_new_unregistered_backoff,
    }
    sessions {
        test_concurrent_session_claim_only_one_wins,
        test_renew_session_lock_active,
        test_cleanup_removes_expired_no_items,
    }
}
