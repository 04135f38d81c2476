//! The statements of the queues, by the step they belong to.

use crate::database::statement::statements;

statements! {
    /// Create queues and partitions.
    ENSURE = "messages/queue/make.sql" (TEXT_ARRAY, TEXT_ARRAY);
    /// Queues by name.
    FIND_QUEUES = "messages/queue/find.sql" (TEXT_ARRAY);
    /// Queues by namespace and task.
    SPACES = "messages/queue/spaces.sql" (TEXT, TEXT, INT8);
    /// Partitions by id.
    PARTITIONS = "messages/queue/partitions.sql" (INT4_ARRAY);
    /// Partitions by their public ids.
    PARTITIONS_BY_UID = "messages/queue/partitions_by_uid.sql" (UUID_ARRAY);
    /// A partition by its queue's name and its own.
    PARTITION_BY_NAME = "messages/queue/partition_by_name.sql" (TEXT, TEXT);

    /// Create or change a queue.
    CONFIGURE = "messages/queue/configure.sql"
        (TEXT, BOOL, TEXT, TEXT, FLOAT8, INT4, FLOAT8, INT4, FLOAT8, FLOAT8, FLOAT8, INT8, INT4, FLOAT8, FLOAT8, FLOAT8,
         FLOAT8, BOOL, BOOL, BOOL, BOOL, BOOL, BOOL, TEXT);
    /// Make cursors due that wait for a delay.
    HASTEN = "messages/queue/hasten.sql" (INT4);
    /// Queues with their sizes.
    LIST_QUEUES = "messages/queue/list.sql" (TEXT, TEXT, TEXT, TEXT, INT8);
    /// One queue with its size.
    DESCRIBE_QUEUE = "messages/queue/describe.sql" (TEXT);
    /// Namespaces.
    NAMESPACES = "messages/queue/namespaces.sql" (INT8);
    /// Tasks.
    TASKS = "messages/queue/tasks.sql" (INT8);
    /// Delete a queue.
    DELETE_QUEUE = "messages/queue/delete.sql" (TEXT);
    /// Remove what is left of a deleted queue.
    REMOVE_LEFTOVERS = "messages/queue/leftovers.sql" (INT4, INT4);
    /// Forget every message of a queue.
    PURGE = "messages/queue/purge.sql" (TEXT);
    /// Turn a switch.
    TURN_SWITCH = "messages/queue/switch.sql" (TEXT, BOOL);
    /// The switches.
    SWITCHES = "messages/queue/switches.sql" ();

    /// Append a batch to the logs of its partitions.
    APPEND = "messages/push/append.sql"
        (BOOL, TEXT_ARRAY, INT4_ARRAY, INT4_ARRAY, UUID_ARRAY, UUID_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4, INT4_ARRAY,
         INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, UUID_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, UUID_ARRAY, TEXT_ARRAY,
         UUID_ARRAY, INT8, UUID_ARRAY, UUID_ARRAY);
    /// Lock partition rows.
    LOCK_PARTITION_ROWS = "messages/push/lock.sql" (INT4_ARRAY);
    /// Transaction ids that were seen before.
    DUPLICATES = "messages/push/duplicates.sql" (INT4_ARRAY, UUID_ARRAY);
    /// Messages of a flush that were stored.
    HAPPENED = "messages/push/happened.sql" (INT4_ARRAY, UUID_ARRAY);
    /// Push in a caller's transaction.
    PUSH_ITEMS = "messages/outbox/in_transaction.sql"
        (TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, BYTEA_ARRAY, TEXT_ARRAY, UUID_ARRAY, TEXT_ARRAY, INT4_ARRAY);
    /// Move the outbox of queues into their logs.
    MOVE_QUEUES = "messages/outbox/move_queues.sql" (TEXT_ARRAY, INT4);
    /// Move the outbox of partitions into their logs.
    MOVE_PARTITIONS = "messages/outbox/move_to.sql" (INT4_ARRAY, INT4);
    /// Keep a flush while pushes are paused.
    BUFFER = "messages/outbox/put.sql"
        (TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, UUID_ARRAY, TEXT_ARRAY, INT4, BOOL);
    /// Whether pushes are paused.
    PUSH_PAUSED = "messages/push/paused.sql" ();
    /// How many messages wait.
    WAITING = "messages/push/waiting.sql" (INT4_ARRAY);

    /// Claim partitions and read the leased messages.
    CLAIM = "messages/pop/claim.sql"
        (INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, TIMESTAMPTZ_ARRAY, INT4_ARRAY, UUID_ARRAY, BOOL_ARRAY, INT8, BOOL);
    /// The same for plain queues.
    CLAIM_PLAIN = "messages/pop/claim_plain.sql"
        (INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, TIMESTAMPTZ_ARRAY, INT4_ARRAY, UUID_ARRAY, INT8);
    /// Mark new partitions ready.
    MARK_READY = "messages/pop/mark_queues_ready.sql" (INT4_ARRAY, TIMESTAMPTZ);
    /// When groups have something to claim next.
    DUES = "messages/pop/dues.sql" (INT4_ARRAY, INT4_ARRAY, TIMESTAMPTZ_ARRAY);
    /// Names that mean something else now.
    NAMES = "messages/pop/names.sql" (TEXT_ARRAY, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    /// Release lost claims.
    ABANDON = "messages/pop/abandon.sql" (UUID_ARRAY);
    /// Put back messages of lost claims that were acked by popping.
    UNDO = "messages/pop/undo.sql" (INT4_ARRAY, INT4_ARRAY, UUID_ARRAY, INT8_ARRAY, INT8_ARRAY);

    /// A group, if it exists.
    FIND_GROUP = "messages/group/find.sql" (INT4, TEXT);
    /// Create a group, or begin to.
    REGISTER = "messages/group/make.sql" (INT4, TEXT, TEXT, TIMESTAMPTZ, INT4, INT4);
    /// Create some cursors of a group that was begun.
    MAKE_CURSORS = "messages/group/step.sql" (INT4, INT4, INT4, INT4);
    /// Make a group that was begun known to its queue.
    FINISH_GROUP = "messages/group/finish.sql" (INT4, INT4);
    /// Mark ready, for a new group, what was pushed while it registered.
    CATCH_UP = "messages/group/catch_up.sql" (INT4, INT4, INT4);

    /// Ack whole leases.
    COMPLETE = "messages/settle/complete.sql" (INT4_ARRAY, INT4_ARRAY, UUID_ARRAY, INT8_ARRAY, BOOL_ARRAY);
    /// Settle leases in every other way.
    SETTLE = "messages/settle/rest.sql"
        (INT4_ARRAY, INT4_ARRAY, UUID_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BOOL_ARRAY);
    /// The same within a transaction.
    SETTLE_IN = "messages/settle/rest_in.sql"
        (INT4_ARRAY, INT4_ARRAY, UUID_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BOOL_ARRAY);
    /// Renew leases.
    RENEW = "messages/settle/renew.sql" (UUID_ARRAY, FLOAT8_ARRAY, BOOL_ARRAY);
    /// The partitions that leases still hold.
    LEASED = "messages/settle/leased.sql" (UUID_ARRAY);
    /// The positions of messages.
    RESOLVE = "messages/settle/resolve.sql" (INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY);

    /// A page of dead letters.
    DEAD_LETTERS = "messages/dead/list.sql" (TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, TEXT, INT8, INT8, INT8);
    /// The number of dead letters.
    COUNT_DEAD_LETTERS = "messages/dead/count.sql" (TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, TEXT);
    /// The ids of dead letters.
    DEAD_LETTER_IDS = "messages/dead/ids.sql" (TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, TEXT, INT8, INT8, BOOL);
    /// Put dead letters back.
    REDRIVE = "messages/dead/put_back.sql" (INT8_ARRAY);
    /// Delete dead letters.
    DELETE_DEAD_LETTERS = "messages/dead/delete.sql" (INT8_ARRAY);

    /// Groups, with their lag.
    GROUPS = "messages/groups/list.sql" (TEXT, TEXT, INT8, INT8);
    /// How far the groups of queues are behind.
    QUEUE_LAGS = "messages/groups/lags.sql" (TEXT_ARRAY);
    /// Where groups stand in their partitions.
    GROUP_PARTITIONS = "messages/groups/partitions.sql" (TEXT, TEXT, FLOAT8, INT8);
    /// A group, in one queue or in all.
    GROUP_QUEUES = "messages/groups/find.sql" (TEXT, TEXT);
    /// Forget a group.
    FORGET_GROUP = "messages/groups/forget.sql" (INT4);
    /// Delete a group's cursors.
    DELETE_CURSORS = "messages/groups/delete_cursors.sql" (INT4, INT4, INT4, INT8);
    /// Change where a group began.
    SUBSCRIBE = "messages/groups/subscribe.sql" (TEXT, TIMESTAMPTZ);
    /// Move a group's cursors.
    SEEK = "messages/groups/move.sql" (INT4, INT4, INT4, INT4, TEXT, TIMESTAMPTZ, INT8);
    /// The number of messages that wait for a group.
    COUNT_WAITING = "messages/groups/count.sql" (TEXT, TEXT);

    /// Messages, the newest first.
    BROWSE = "messages/browse/list.sql" (TEXT, TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, TEXT, INT8, INT8);
    /// One message.
    FIND_MESSAGE = "messages/browse/find.sql" (INT4, TEXT);
    /// The state of a message for each group.
    MESSAGE_STATES = "messages/browse/states.sql" (INT4, INT8);
    /// Delete one message.
    DELETE_MESSAGE = "messages/browse/delete.sql" (INT4, INT8);

    /// Add a trace of a message.
    ADD_TRACE = "messages/trace/add.sql" (INT4, TEXT, TEXT, TEXT, TEXT_ARRAY, BYTEA);
    /// The traces of a message.
    MESSAGE_TRACES = "messages/trace/of_message.sql" (INT4, TEXT, INT8, INT8, INT8);
    /// The traces with a name.
    NAMED_TRACES = "messages/trace/by_name.sql" (TEXT, INT8, INT8, INT8);
    /// The names of traces.
    TRACE_NAMES = "messages/trace/names.sql" (INT8, INT8);

    /// The number of pushes in the outbox.
    COUNT_BUFFERED = "messages/outbox/count.sql" ();

    /// Take an upkeep task that is due.
    TAKE_UPKEEP = "messages/upkeep/take.sql" (FLOAT8, TEXT_ARRAY);
    /// Record what an upkeep task did.
    REPORT_UPKEEP = "messages/upkeep/report.sql" (TEXT, INT8, TEXT, BOOL);
    /// What the upkeep tasks did.
    UPKEEP_TASKS = "messages/upkeep/figures.sql" ();
    /// Move the beginning of partitions past messages that need not be kept.
    RETIRE = "messages/upkeep/retire.sql" (INT4, INT8);
    /// Delete segments before the beginning of their partition.
    SWEEP = "messages/upkeep/sweep.sql" (INT4, INT8, INT8);
    /// Forget transaction ids.
    FORGET_KEYS = "messages/upkeep/dedup.sql" (INT8);
    /// Mark stranded partitions ready.
    RECONCILE = "messages/upkeep/reconcile.sql" (INT4, INT8);
    /// Delete cursors of deleted groups.
    ORPHANS = "messages/upkeep/orphans.sql" (INT4, INT8);
    /// Delete the remaining rows of deleted queues.
    LEFTOVERS = "messages/upkeep/leftovers.sql" (INT4);
}
