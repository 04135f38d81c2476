-- Jobs: what waits or runs (narrow and hot), what it is to do (written once), how it ended, and
-- what went wrong on the way.
-- locks: nothing that exists
-- Lock order, for everybody: unique keys ascending, then jobs ascending; skip-locked work last.
-- Queues are plain names: nobody has to make one before its first job, and so no caller's open
-- transaction keeps others from using it.

create table {schema}.job_body (
  id bigint generated always as identity primary key,
  kind text not null check (kind <> ''),
  queue text collate "C" not null check (queue <> ''),
  -- 0 is served first, 9 last.
  priority smallint not null check (priority between 0 and 9),
  created_at timestamptz not null default clock_timestamp(),
  run_at timestamptz not null,
  max_attempts smallint not null check (max_attempts between 1 and 1000),
  -- How long one attempt may take; null for as long as it likes.
  timeout_ms bigint check (timeout_ms > 0),
  -- The pauses between attempts, as retry_delay reads them; null for the usual ones.
  backoff text,
  unique_key bytea,
  tags text[],
  metadata bytea,
  -- JSON, kept byte for byte.
  args bytea not null
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000);

-- A job that has not ended. Running means: it has a nonce; then due_at is the end of its lease.
create table {schema}.job (
  id bigint primary key,
  due_at timestamptz not null,
  -- Of the claim that holds it; null while nobody does. With the epoch, which only rises, it is the
  -- fence.
  nonce bigint,
  epoch int not null default 0,
  -- How often it was claimed; given back unharmed does not count.
  attempt smallint not null default 0,
  max_attempts smallint not null,
  priority smallint not null check (priority between 0 and 9),
  cancel_requested boolean not null default false,
  queue text collate "C" not null,
  worker text,
  -- Why it waits, when that is not the schedule.
  note text,
  -- What its handler last said about how far it is.
  progress bytea,
  check ((nonce is null) = (worker is null)),
  check (nonce is not null or not cancel_requested)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_cost_delay = 0);
create index job_due on {schema}.job (queue, priority, due_at, id);

-- How a job ended.
create table {schema}.job_done (
  id bigint primary key,
  state text not null check (state in ('done', 'cancelled', 'dead')),
  finished_at timestamptz not null,
  -- When it may be forgotten; null for not by itself.
  keep_until timestamptz,
  epoch int not null,
  attempt smallint not null,
  queue text collate "C" not null,
  worker text,
  -- Why it ended so, in one word and in a sentence; null when it simply succeeded.
  code text,
  reason text,
  took_ms double precision,
  result bytea
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000);
create index job_done_keep on {schema}.job_done (keep_until) where keep_until is not null;
create index job_done_dead on {schema}.job_done (queue, id) where state = 'dead';

-- What went wrong, attempt by attempt; the latest ones of each job.
create table {schema}.job_error (
  id bigint generated always as identity,
  job bigint not null,
  at timestamptz not null default clock_timestamp(),
  attempt smallint not null,
  code text not null,
  message text not null,
  worker text,
  primary key (job, id)
);

-- Who has a key. The row counts while its job has not ended, and until its window has passed.
create table {schema}.job_unique (
  key bytea primary key,
  job bigint not null,
  until timestamptz
);

-- Queues about which something is said; any other name is a queue as well.
create table {schema}.job_queue (
  name text collate "C" primary key check (name <> '' and octet_length(name) <= 128),
  paused boolean not null default false,
  -- Whether the SQL functions of jobs do without a notification.
  quiet boolean not null default false
);
