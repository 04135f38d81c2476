-- Messages: queues of ordered partitions, consumer groups with one cursor for each partition, a log
-- of segments.
-- locks: nothing that exists
-- Lock order, for everybody: rows of head ascending, then rows of cursor ascending; skip-locked
-- work last. Nobody waits for a row of head while holding a cursor. No foreign keys on hot tables:
-- names are resolved to ids once, and ids are never reused.
-- The indexes of head and cursor are not unique. Most updates of a cursor, and many of head, change
-- an indexed column; then PostgreSQL checks every version of the row before it accepts that a
-- unique key is still unique, and while a transaction is held open no version goes away.
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
  -- How many failures a message may have before it goes to the dead letters, and the pause after
  -- each.
  retry_limit int not null default 3,
  retry_delay interval not null default '0',
  -- How often a message may be claimed without progress, whoever died of it.
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
  -- What is kept: everything this long, what all groups have consumed this long, what nobody
  -- consumed this long; zero for ever.
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
  -- As Queen's clients spell what has no meaning of its own here.
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

-- One row for each partition: the transaction that holds its lock gives out sequence numbers, so
-- that their order is commit order. A partition has one because ensure_all makes both in one
-- statement.
create table {schema}.partition_row (
  partition int not null,
  queue int not null,
  next_seq bigint not null default 1,
  first_seq bigint not null default 1,
  -- Set while there may be messages that not every group's cursor has been told of.
  new_since timestamptz,
  -- The newest message's time; never goes back.
  last_at timestamptz not null default 'epoch',
  -- The greatest transaction id that grows, of all its messages.
  key_high uuid,
  -- The stretch of the log that no row of dedup_span covers yet: where it begins, where the last of
  -- its keys lies, and the least and greatest of them; null while there is none.
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
  -- Redriven for one group; to every other it is as if deleted.
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
  -- Null while the cursors of the group are being made: a search by queue does not find it.
  queue int,
  -- The queue of a group whose cursors are being made; null afterwards.
  begun_for int,
  name text not null,
  -- Where it began: 'all', 'new' or 'from'; decided once, at its first pop.
  mode text not null check (mode in ('all', 'new', 'from')),
  from_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  -- Its cursors were made, and made good for what was pushed meanwhile.
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
  -- The highest sequence this cursor has been told of.
  upto bigint not null default 0,
  -- When the partition becomes claimable: now, a retry, a lease's end, a delay. Null when nothing
  -- waits.
  due_at timestamptz,
  lease_until timestamptz,
  leased_through bigint not null default 0,
  epoch bigint not null default 0,
  nonce uuid,
  -- Of the first unsettled message: failures said by consumers, and claims.
  failures int not null default 0,
  deliveries int not null default 0
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
alter table {schema}.cursor replica identity full;
create index cursor_place on {schema}.cursor (partition, grp);
create index cursor_due on {schema}.cursor (grp, due_at) where due_at is not null;
create index cursor_nonce on {schema}.cursor (nonce) where lease_until is not null;

-- That a group has one cursor in a partition: the triggers write a row when a cursor is made and
-- delete it with the cursor, and never between. An insert of a second cursor does nothing.
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
-- and arrive in order are found in the log itself, by dedup_span; ids that grow but arrive out of
-- order, by SQL, or whose segment was deleted before the window was over are in dedup_run; all
-- others are in dedup. A reader or writer of these tables holds the partition's row of head, and
-- reads in a statement that began after the row was locked: so two pushes cannot both find that an
-- id is new.

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
  -- The least and the greatest of its keys; they are no more than dedup_reach allows apart.
  low uuid not null,
  high uuid not null,
  -- Null when there is one, which is both.
  keys uuid[],
  ids uuid[] not null,
  until timestamptz not null
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000,
        toast_tuple_target = 8160);
alter table {schema}.dedup_run alter keys set storage external, alter ids set storage external;
alter table {schema}.dedup_run replica identity full;
create index dedup_run_high on {schema}.dedup_run (partition, high);
create index dedup_run_until on {schema}.dedup_run using brin (until) with (pages_per_range = 16);

-- A stretch of a partition's log, and the least and greatest of its keys that came in order. A
-- later stretch has greater keys: no two of a partition overlap.
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

-- Pushes made inside somebody else's transaction, or while pushes are paused. Names, not ids:
-- creating a partition there would block every other creator until that transaction ends.
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

-- Upkeep that one node at a time should do: a node takes the row, skipping locked ones, and moves
-- next_at on.
create table {schema}.upkeep (
  name text primary key,
  next_at timestamptz not null default clock_timestamp(),
  -- Where a round left off.
  mark bigint not null default 0,
  -- What the last round did.
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
