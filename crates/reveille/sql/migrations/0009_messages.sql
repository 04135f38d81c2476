-- Messages: queues of ordered partitions, consumer groups with one cursor for each partition, a log
-- of segments.
-- locks: nothing that exists
--
-- Lock order of every statement: partition rows ascending, then cursors ascending; skip-locked work
-- last. No statement waits for a partition row while it holds a cursor.
--
-- No foreign keys on hot tables: names are resolved to ids once, and ids are never reused.
--
-- The indexes of partition_row and cursor are not unique. Most updates of a cursor, and many of a
-- partition row, change an indexed column. With a unique index PostgreSQL would then check every
-- version of the row, and while a transaction is held open no version goes away.
--
-- Tables without a primary key have replica identity full: otherwise a publication of all tables
-- would refuse their updates.

create table {schema}.queue (
  id int generated always as identity primary key,
  uid uuid not null unique default gen_random_uuid(),
  name text not null unique,
  namespace text not null default '',
  task text not null default '',
  created_at timestamptz not null default clock_timestamp(),
  -- How long a claim lasts.
  lease interval not null default '60 seconds',
  -- How many failures a message may have before it becomes a dead letter, and the pause after each.
  retry_limit int not null default 3,
  retry_delay interval not null default '0',
  -- How often a message may be claimed without an answer before it becomes a dead letter.
  max_deliveries int not null default 25,
  -- Messages are hidden until they are this old; partitions until their newest message is.
  delay interval not null default '0',
  window_buffer interval not null default '0',
  -- Messages older than this are not delivered any more; zero for never.
  ttl interval not null default '0',
  -- How many messages may wait for the slowest group before pushes are refused; zero for any
  -- number.
  max_size bigint not null default 0,
  -- Which queue of a namespace or task is served first: higher before lower.
  priority int not null default 0,
  -- How long messages are kept: all of them; those that all groups have consumed; those that some
  -- group has not consumed. Zero for ever.
  retention interval not null default '0',
  completed_retention interval not null default '0',
  max_wait interval not null default '0',
  -- How long a transaction id is remembered; zero for not at all.
  dedup_window interval not null default '1 hour',
  dead_letters boolean not null default true,
  encrypted boolean not null default false,
  -- Whether an ack must name its lease; whether acks wait for the disk; whether SQL pushes notify;
  -- whether pops pause.
  require_lease boolean not null default false,
  durable_acks boolean not null default true,
  quiet boolean not null default false,
  paused boolean not null default false,
  -- Options of Queen's clients that have no effect here, as they were given.
  echo jsonb not null default '{}'
);
create index queue_namespace on {schema}.queue (namespace, task);

create table {schema}.partition (
  id int generated always as identity primary key,
  queue int not null,
  name text not null,
  uid uuid not null unique default gen_random_uuid(),
  created_at timestamptz not null default clock_timestamp(),
  unique (queue, name)
);

-- One row for each partition. The transaction that holds its lock assigns sequence numbers, so that
-- their order is the order of commits. A partition has one row because ensure_all inserts both in
-- one statement.
create table {schema}.partition_row (
  partition int not null,
  queue int not null,
  next_seq bigint not null default 1,
  first_seq bigint not null default 1,
  -- Since when the partition has had new messages for which it was not marked ready; else null.
  new_since timestamptz,
  -- The newest message's time; never goes back.
  last_at timestamptz not null default 'epoch',
  -- The greatest growing transaction id of all its messages.
  key_high uuid,
  -- The end of the log that no row of dedup_span covers yet: where it begins, the sequence of its
  -- last key, and the least and greatest of its keys; null while it has none.
  span_from bigint,
  span_to bigint,
  span_low uuid,
  span_high uuid
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
alter table {schema}.partition_row replica identity full;
create index partition_row_partition on {schema}.partition_row (partition);
create index partition_row_new on {schema}.partition_row (queue, new_since) where new_since is not null;
create index partition_row_queue on {schema}.partition_row (queue, partition);

-- Up to 256 messages of one partition, keyed by the last one's sequence: the segment that holds
-- sequence s is the first one with last_seq >= s.
create table {schema}.segment (
  partition int not null,
  last_seq bigint not null,
  n int not null,
  bytes int not null,
  at timestamptz not null,
  -- Which key the payloads are sealed with; null for plain ones.
  key_id int,
  -- Positions of messages that were deleted one by one.
  gone int[],
  -- Set for redriven messages: only this group sees them.
  only_grp int,
  ids uuid[] not null,
  -- Null where it equals the message's id.
  transaction_ids text[],
  payloads bytea[] not null,
  trace_ids uuid[],
  producers text[],
  primary key (partition, last_seq)
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000);
alter table {schema}.segment
  alter ids set storage external,
  alter transaction_ids set storage external,
  alter payloads set storage external;

create table {schema}.consumer_group (
  id int generated always as identity primary key,
  -- Null while the cursors of the group are being created: a search by queue does not find it.
  queue int,
  -- The queue of a group whose cursors are being created; null afterwards.
  begun_for int,
  name text not null,
  -- Where it began: 'all', 'new' or 'from'; decided once, at its first pop.
  mode text not null check (mode in ('all', 'new', 'from')),
  from_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  -- Its cursors were created, and have caught up with pushes from that time.
  settled boolean not null default false,
  check ((queue is null) <> (begun_for is null)),
  unique (queue, name),
  unique (begun_for, name)
);

create table {schema}.cursor (
  partition int not null,
  grp int not null,
  -- Everything up to here is settled.
  committed bigint not null default 0,
  -- The highest sequence for which the cursor was marked ready.
  upto bigint not null default 0,
  -- When the partition becomes claimable for the group: now, after a retry delay, at the end of a
  -- lease, after a delay. Null if no message waits.
  due_at timestamptz,
  lease_until timestamptz,
  leased_through bigint not null default 0,
  epoch bigint not null default 0,
  nonce uuid,
  -- Of the first unsettled message: failures that consumers reported, and claims.
  failures int not null default 0,
  deliveries int not null default 0
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
alter table {schema}.cursor replica identity full;
create index cursor_place on {schema}.cursor (partition, grp);
create index cursor_due on {schema}.cursor (grp, due_at) where due_at is not null;
create index cursor_nonce on {schema}.cursor (nonce) where lease_until is not null;

-- Ensures that a group has one cursor in a partition: triggers insert a row when a cursor is
-- created and delete it with the cursor. The insert of a second cursor does nothing.
create table {schema}.cursor_made (
  partition int not null,
  grp int not null,
  primary key (partition, grp)
);

create function {schema}.make_cursor_once()
returns trigger
language plpgsql
as $reveille$
begin
  insert into {schema}.cursor_made (partition, grp)
  values (new.partition, new.grp)
  on conflict do nothing;
  if not found then
    return null;
  end if;
  return new;
end
$reveille$;
create trigger make_once before insert on {schema}.cursor
  for each row execute function {schema}.make_cursor_once();

create function {schema}.forget_cursor_made()
returns trigger
language plpgsql
as $reveille$
begin
  delete from {schema}.cursor_made
  where cursor_made.partition = old.partition and cursor_made.grp = old.grp;
  return null;
end
$reveille$;
create trigger forget_made after delete on {schema}.cursor
  for each row execute function {schema}.forget_cursor_made();

create table {schema}.dead_letter (
  id bigint generated always as identity primary key,
  queue int not null,
  partition int not null,
  grp int not null,
  seq bigint not null,
  message_id uuid not null,
  transaction_id text not null,
  trace_id uuid,
  producer text,
  key_id int,
  payload bytea not null,
  pushed_at timestamptz not null,
  at timestamptz not null default clock_timestamp(),
  failures int not null,
  deliveries int not null,
  error text
);
create index dead_letter_queue on {schema}.dead_letter (queue, id);
create index dead_letter_group on {schema}.dead_letter (grp, id);
create index dead_letter_message on {schema}.dead_letter (partition, seq);

-- Transaction ids of the last dedup_window are in three tables. Ids that grow (UUIDs of version 7)
-- and arrive in order are found in the log itself, by dedup_span. Ids that grow but arrive out of
-- order, by SQL, or whose segment was deleted before the window was over, are in dedup_run. All
-- others are in dedup. A reader or writer of these tables holds the partition row, and reads in a
-- statement that began after the row was locked: so two pushes cannot both find that an id is new.

-- Ids that do not grow. The key is the id itself when it is a UUID, else a hash of it.
create table {schema}.dedup (
  partition int not null,
  key uuid not null,
  id uuid not null,
  until timestamptz not null,
  primary key (partition, key)
);
create index dedup_until on {schema}.dedup using brin (until) with (pages_per_range = 16);

-- A run of ids that grow: one row for many ids.
create table {schema}.dedup_run (
  partition int not null,
  -- The least and the greatest of its keys; dedup_reach limits the distance.
  low uuid not null,
  high uuid not null,
  -- Null if there is only one key, which is both.
  keys uuid[],
  ids uuid[] not null,
  until timestamptz not null
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000,
        toast_tuple_target = 8160);
alter table {schema}.dedup_run alter keys set storage external, alter ids set storage external;
alter table {schema}.dedup_run replica identity full;
create index dedup_run_high on {schema}.dedup_run (partition, high);
create index dedup_run_until on {schema}.dedup_run using brin (until) with (pages_per_range = 16);

-- A span of a partition's log, with the least and greatest of its keys that arrived in order. A
-- later span has greater keys, so the spans of a partition never overlap.
create table {schema}.dedup_span (
  partition int not null,
  low uuid not null,
  high uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  until timestamptz not null
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000);
alter table {schema}.dedup_span replica identity full;
create index dedup_span_high on {schema}.dedup_span (partition, high);
create index dedup_span_until on {schema}.dedup_span using brin (until) with (pages_per_range = 16);

-- Pushes in a caller's transaction, or while pushes are paused. Names, not ids: creating a
-- partition there would block every other creator until that transaction ends.
create table {schema}.outbox (
  id bigint generated always as identity primary key,
  queue text not null,
  partition text not null,
  message_id uuid not null,
  transaction_id text,
  trace_id uuid,
  producer text,
  -- As in segment.
  key_id int,
  payload bytea not null,
  at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
create index outbox_queue on {schema}.outbox (queue, id);

create table {schema}.trace (
  id bigint generated always as identity primary key,
  partition int not null,
  transaction_id text not null,
  consumer_group text,
  event_type text not null default 'info',
  names text[] not null default '{}',
  body bytea not null,
  at timestamptz not null default clock_timestamp()
);
create index trace_message on {schema}.trace (partition, transaction_id, id);
create index trace_names on {schema}.trace using gin (names);

-- Upkeep tasks, each done by one node at a time: a node takes the row, skipping locked ones, and
-- moves next_at on.
create table {schema}.upkeep (
  name text primary key,
  next_at timestamptz not null default clock_timestamp(),
  -- Where a run stopped.
  mark bigint not null default 0,
  -- What the last run did.
  done_at timestamptz,
  figures jsonb not null default '{}'
);
insert into {schema}.upkeep (name) values ('retention'), ('dedup'), ('reconcile'), ('leftovers');

-- Switches of the whole system.
create table {schema}.switch (
  name text primary key,
  engaged boolean not null default false,
  changed_at timestamptz not null default clock_timestamp()
);
insert into {schema}.switch (name) values ('push_paused'), ('pop_paused');
