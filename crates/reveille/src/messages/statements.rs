//! The statements of the queues, by the step they belong to.

use crate::database::statement::statements;

statements! {
    /// Make queues and partitions.
    ENSURE = "messages/queue/make.sql" (TEXT_ARRAY, TEXT_ARRAY);
    /// Queues by name.
    FIND_QUEUES = "messages/queue/find.sql" (TEXT_ARRAY);
    /// Queues by namespace and task.
    SPACES = "messages/queue/spaces.sql" (TEXT, TEXT, INT8);
    /// Partitions by id.
    PARTITIONS = "messages/queue/partitions.sql" (INT4_ARRAY);
    /// Partitions by their names for the outside world.
    PARTITIONS_BY_UID = "messages/queue/partitions_by_uid.sql" (UUID_ARRAY);
    /// A partition by its queue's name and its own.
    PARTITION_BY_NAME = "messages/queue/partition_by_name.sql" (TEXT, TEXT);

    /// Make or change a queue.
    CONFIGURE = "messages/queue/configure.sql"
        (TEXT, BOOL, TEXT, TEXT, FLOAT8, INT4, FLOAT8, INT4, FLOAT8, FLOAT8, FLOAT8, INT8, INT4, FLOAT8, FLOAT8, FLOAT8,
         FLOAT8, BOOL, BOOL, BOOL, BOOL, BOOL, BOOL, TEXT);
    /// Let cursors that wait for a delay be looked at.
    HASTEN = "messages/queue/hasten.sql" (INT4);
    /// Queues with what they hold.
    LIST_QUEUES = "messages/queue/list.sql" (TEXT, TEXT, TEXT, TEXT, INT8);
    /// One queue with what it holds.
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
    /// How the switches are.
    SWITCHES = "messages/queue/switches.sql" ();

    /// Append a flush to the logs of its partitions.
    APPEND = "messages/push/append.sql"
        (BOOL, TEXT_ARRAY, INT4_ARRAY, INT4_ARRAY, UUID_ARRAY, UUID_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4, INT4_ARRAY,
         INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, UUID_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, UUID_ARRAY, TEXT_ARRAY,
         UUID_ARRAY, INT8, UUID_ARRAY, UUID_ARRAY);
    /// Take the heads of partitions.
    LOCK_PARTITION_ROWS = "messages/push/lock.sql" (INT4_ARRAY);
    /// Which keys were seen before.
    DUPLICATES = "messages/push/duplicates.sql" (INT4_ARRAY, UUID_ARRAY);
    /// What of a flush took effect.
    HAPPENED = "messages/push/happened.sql" (INT4_ARRAY, UUID_ARRAY);
    /// Push in somebody's transaction.
    PUSH_ITEMS = "messages/outbox/in_transaction.sql"
        (TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, BYTEA_ARRAY, TEXT_ARRAY, UUID_ARRAY, TEXT_ARRAY, INT4_ARRAY);
    /// Bring foreign pushes into the logs of queues.
    MOVE_QUEUES = "messages/outbox/move_queues.sql" (TEXT_ARRAY, INT4);
    /// Bring foreign pushes into the logs of partitions.
    MOVE_PARTITIONS = "messages/outbox/move_to.sql" (INT4_ARRAY, INT4);
    /// Keep a flush while pushes are paused.
    BUFFER = "messages/outbox/put.sql"
        (TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, UUID_ARRAY, TEXT_ARRAY, INT4, BOOL);
    /// Whether pushes are paused.
    PUSH_PAUSED = "messages/push/paused.sql" ();
    /// How many messages wait.
    WAITING = "messages/push/waiting.sql" (INT4_ARRAY);

    /// Claim partitions and read what they lease.
    CLAIM = "messages/pop/claim.sql"
        (INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, TIMESTAMPTZ_ARRAY, INT4_ARRAY, UUID_ARRAY, BOOL_ARRAY, INT8, BOOL);
    /// The same for the common case.
    CLAIM_PLAIN = "messages/pop/claim_plain.sql"
        (INT4_ARRAY, INT4_ARRAY, INT4_ARRAY, TIMESTAMPTZ_ARRAY, INT4_ARRAY, UUID_ARRAY, INT8);
    /// Tell cursors what was pushed.
    MARK_READY = "messages/pop/tell.sql" (INT4_ARRAY, TIMESTAMPTZ);
    /// When groups have something to claim next.
    DUES = "messages/pop/dues.sql" (INT4_ARRAY, INT4_ARRAY, TIMESTAMPTZ_ARRAY);
    /// What has come into being.
    NAMES = "messages/pop/names.sql" (TEXT_ARRAY, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    /// Release what was claimed and reached nobody.
    ABANDON = "messages/pop/abandon.sql" (UUID_ARRAY);
    /// Take back what was acked by having been popped and reached nobody.
    UNDO = "messages/pop/undo.sql" (INT4_ARRAY, INT4_ARRAY, UUID_ARRAY, INT8_ARRAY, INT8_ARRAY);

    /// A group, if it is known.
    FIND_GROUP = "messages/group/find.sql" (INT4, TEXT);
    /// Make a group known.
    REGISTER = "messages/group/make.sql" (INT4, TEXT, TEXT, TIMESTAMPTZ, INT4, INT4);
    /// Make some cursors of a group that is begun.
    MAKE_CURSORS = "messages/group/step.sql" (INT4, INT4, INT4, INT4);
    /// Make a group known that was begun.
    FINISH_GROUP = "messages/group/finish.sql" (INT4, INT4);
    /// Tell a new group's cursors what was pushed while it registered.
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
    /// Which partitions leases still hold.
    LEASED = "messages/settle/leased.sql" (UUID_ARRAY);
    /// Where messages are.
    RESOLVE = "messages/settle/resolve.sql" (INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY);

    /// A page of dead letters.
    DEAD_LETTERS = "messages/dead/list.sql" (TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, TEXT, INT8, INT8, INT8);
    /// How many dead letters there are.
    COUNT_DEAD_LETTERS = "messages/dead/count.sql" (TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, TEXT);
    /// Which dead letters there are.
    DEAD_LETTER_IDS = "messages/dead/ids.sql" (TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, TEXT, INT8, INT8, BOOL);
    /// Put dead letters back.
    REDRIVE = "messages/dead/put_back.sql" (INT8_ARRAY);
    /// Delete dead letters.
    DELETE_DEAD_LETTERS = "messages/dead/delete.sql" (INT8_ARRAY);

    /// Groups, and what waits for them.
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
    /// Say where a group began.
    SUBSCRIBE = "messages/groups/subscribe.sql" (TEXT, TIMESTAMPTZ);
    /// Move a group's cursors.
    SEEK = "messages/groups/move.sql" (INT4, INT4, INT4, INT4, TEXT, TIMESTAMPTZ, INT8);
    /// What waits for a group.
    COUNT_WAITING = "messages/groups/count.sql" (TEXT, TEXT);

    /// Messages, the newest first.
    BROWSE = "messages/browse/list.sql" (TEXT, TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, TEXT, INT8, INT8);
    /// One message.
    FIND_MESSAGE = "messages/browse/find.sql" (INT4, TEXT);
    /// What groups made of a message.
    MESSAGE_STATES = "messages/browse/states.sql" (INT4, INT8);
    /// Delete one message.
    DELETE_MESSAGE = "messages/browse/delete.sql" (INT4, INT8);

    /// Note an event of a message.
    ADD_TRACE = "messages/trace/add.sql" (INT4, TEXT, TEXT, TEXT, TEXT_ARRAY, BYTEA);
    /// What was noted of a message.
    MESSAGE_TRACES = "messages/trace/of_message.sql" (INT4, TEXT, INT8, INT8, INT8);
    /// What was noted under a name.
    NAMED_TRACES = "messages/trace/by_name.sql" (TEXT, INT8, INT8, INT8);
    /// Under which names something was noted.
    TRACE_NAMES = "messages/trace/names.sql" (INT8, INT8);

    /// How many pushes wait in the outbox.
    COUNT_BUFFERED = "messages/outbox/count.sql" ();

    /// Take a chore that is due.
    TAKE_UPKEEP = "messages/upkeep/take.sql" (FLOAT8, TEXT_ARRAY);
    /// Say what a chore did.
    REPORT_UPKEEP = "messages/upkeep/report.sql" (TEXT, INT8, TEXT, BOOL);
    /// What chores did.
    UPKEEP_TASKS = "messages/upkeep/figures.sql" ();
    /// Move the beginning of partitions past what need not be kept.
    RETIRE = "messages/upkeep/retire.sql" (INT4, INT8);
    /// Give back space.
    SWEEP = "messages/upkeep/sweep.sql" (INT4, INT8, INT8);
    /// Forget transaction ids.
    FORGET_KEYS = "messages/upkeep/dedup.sql" (INT8);
    /// Repair what nobody was told of.
    RECONCILE = "messages/upkeep/reconcile.sql" (INT4, INT8);
    /// Delete cursors of groups that are gone.
    ORPHANS = "messages/upkeep/orphans.sql" (INT4, INT8);
    /// Delete what deleted queues have left.
    LEFTOVERS = "messages/upkeep/leftovers.sql" (INT4);
}
