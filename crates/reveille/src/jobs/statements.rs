//! The statements of jobs, by the step they belong to.

use crate::database::statement::statements;

statements! {
    /// Enqueue jobs that are not unique.
    ENQUEUE = "jobs/enqueue/plain.sql"
        (TEXT_ARRAY, BYTEA_ARRAY, TEXT_ARRAY, INT2_ARRAY, TIMESTAMPTZ_ARRAY, FLOAT8_ARRAY, INT2_ARRAY, INT8_ARRAY, TEXT_ARRAY,
         TEXT_ARRAY, BYTEA_ARRAY);
    /// Enqueue jobs, unique ones too, or in a transaction of the caller's.
    ENQUEUE_CAREFULLY = "jobs/enqueue/careful.sql"
        (TEXT_ARRAY, BYTEA_ARRAY, TEXT_ARRAY, INT4_ARRAY, FLOAT8_ARRAY, FLOAT8_ARRAY, INT4_ARRAY, FLOAT8_ARRAY, TEXT_ARRAY,
         TEXT_ARRAY, BYTEA_ARRAY, TEXT_ARRAY, TEXT_ARRAY, FLOAT8_ARRAY, TEXT_ARRAY, BOOL);
    /// Number jobs that are to be copied.
    NUMBER = "jobs/enqueue/copy/number.sql" (INT8);
    /// Copy the bodies of jobs.
    COPY_BODIES = "jobs/enqueue/copy/bodies.sql" ();
    /// Copy jobs.
    COPY_JOBS = "jobs/enqueue/copy/jobs.sql" ();
    /// Wake workers for jobs that were copied.
    ANNOUNCE = "jobs/enqueue/copy/announce.sql" (TEXT_ARRAY);

    /// Claim due jobs.
    TAKE = "jobs/claim/take.sql"
        (TEXT_ARRAY, INT4_ARRAY, TIMESTAMPTZ_ARRAY, INT8_ARRAY, INT8, TEXT, INT8, FLOAT8, FLOAT8, FLOAT8);
    /// Read when queues are due next.
    NEXT = "jobs/claim/next.sql" (TEXT_ARRAY);
    /// Give back a lost claim.
    ABANDON = "jobs/claim/abandon.sql" (INT8_ARRAY, TEXT, TEXT_ARRAY, FLOAT8);

    /// Complete jobs.
    COMPLETE = "jobs/settle/complete.sql" (INT8_ARRAY, INT4_ARRAY, INT8_ARRAY, FLOAT8_ARRAY, FLOAT8);
    /// Settle jobs in every other way.
    SETTLE = "jobs/settle/rest.sql"
        (INT8_ARRAY, INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY, FLOAT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, FLOAT8_ARRAY, BYTEA_ARRAY, FLOAT8,
         FLOAT8);
    /// Renew leases.
    RENEW = "jobs/settle/renew.sql" (INT8_ARRAY, INT4_ARRAY, INT8_ARRAY, FLOAT8_ARRAY);
    /// Note the progress of a job.
    PROGRESS = "jobs/settle/progress.sql" (INT8, INT4, INT8, BYTEA);

    /// Cancel a job.
    CANCEL = "jobs/admin/cancel.sql" (INT8, FLOAT8);
    /// Let a job run now.
    RETRY_NOW = "jobs/admin/retry_now.sql" (INT8);
    /// Change the priority of a job.
    REPRIORITISE = "jobs/admin/reprioritise.sql" (INT8, INT2);
    /// Make dead jobs ready again.
    REDRIVE = "jobs/admin/bring_back.sql" (INT8_ARRAY, TEXT, TEXT, TEXT, INT8);
    /// Delete a job.
    DELETE = "jobs/admin/delete.sql" (INT8);
    /// Pause a queue, or let it go on.
    SWITCH = "jobs/admin/switch.sql" (TEXT, BOOL, BOOL);

    /// Everything known about a job.
    EXPLAIN = "jobs/inspect/explain.sql" (INT8);
    /// The failed attempts of a job.
    ERRORS = "jobs/inspect/errors.sql" (INT8);
    /// Dead jobs.
    DEAD = "jobs/inspect/dead.sql" (TEXT, INT8, INT8);
    /// Queues and what they hold.
    QUEUES = "jobs/inspect/queues.sql" (INT8);
    /// How many jobs there are of each kind.
    DEPTHS = "jobs/inspect/depths.sql" (INT8);

    /// Delete ended jobs.
    SWEEP = "jobs/upkeep/sweep.sql" (INT8);
    /// Lock unique keys.
    HOLD_KEYS = "jobs/upkeep/hold_keys.sql" (BYTEA, INT8);
    /// Delete unique keys.
    FORGET_KEYS = "jobs/upkeep/forget_keys.sql" (BYTEA_ARRAY);
}
