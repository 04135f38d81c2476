-- Messages: queues of ordered partitions, consumer groups with one cursor for each partition, a log of segments.
-- locks: nothing that exists
-- Lock order, for everybody: head rows ascending, then cursor rows ascending; skip-locked work last. Nobody waits for a
-- head while holding a cursor. No foreign keys on hot tables: names are resolved to ids once, and ids are never reused.

create table {schema}.queue (
  id int generated always as identity primary key,
  uid uuid not null unique default gen_random_uuid(),
  name text not null unique,
  namespace text not null default '',
  task text not null default '',
  created_at timestamptz not null default clock_timestamp(),
  -- How long a claim lasts.
  lease interval not null default '60 seconds',
  -- How many failures a message may have before it goes to the dead letters, and the pause after each.
  retry_limit int not null default 3,
  retry_delay interval not null default '0',
  -- How often a message may be claimed without progress, whoever died of it.
  max_deliveries int not null default 25,
  -- Messages are hidden until they are this old; partitions until their newest message is.
  delay interval not null default '0',
  window_buffer interval not null default '0',
  -- Messages older than this are not delivered any more; zero for never.
  ttl interval not null default '0',
  -- How many messages may wait for the slowest group before pushes are refused; zero for any number.
  max_size bigint not null default 0,
  -- Which queue of a namespace or task is served first: higher before lower.
  priority int not null default 0,
  -- What is kept: everything this long, what all groups have consumed this long, what nobody consumed this long; zero for
  -- ever.
  retention interval not null default '0',
  completed_retention interval not null default '0',
  max_wait interval not null default '0',
  -- How long a transaction id is remembered; zero for not at all.
  dedup_window interval not null default '1 hour',
  dead_letters boolean not null default true,
  encrypted boolean not null default false,
  -- Whether an ack must name its lease; whether acks wait for the disk; whether SQL pushes notify; whether pops pause.
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

-- One row for each partition: whoever holds its lock gives out sequence numbers, so that their order is commit order.
create table {schema}.head (
  partition int primary key,
  queue int not null,
  next_seq bigint not null default 1,
  first_seq bigint not null default 1,
  -- Set while there may be messages that not every group's cursor has been told of.
  fresh_at timestamptz,
  -- The newest message's time; never goes back.
  last_at timestamptz not null default 'epoch'
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
create index head_fresh on {schema}.head (queue, fresh_at) where fresh_at is not null;
create index head_queue on {schema}.head (queue, partition);

-- Up to 256 messages of one partition, keyed by the last one's sequence: the segment that holds sequence s is the first
-- one with last_seq >= s.
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
  queue int not null,
  name text not null,
  -- Where it began: 'all', 'new' or 'from'; decided once, at its first pop.
  mode text not null check (mode in ('all', 'new', 'from')),
  from_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  -- Its cursors were made, and made good for what was pushed meanwhile.
  settled boolean not null default false,
  unique (queue, name)
);

create table {schema}.cursor (
  partition int not null,
  grp int not null,
  -- Everything up to here is settled.
  committed bigint not null default 0,
  -- The highest sequence this cursor has been told of.
  upto bigint not null default 0,
  -- When the partition becomes claimable: now, a retry, a lease's end, a delay. Null when nothing waits.
  due_at timestamptz,
  lease_until timestamptz,
  leased_through bigint not null default 0,
  epoch bigint not null default 0,
  nonce uuid,
  -- Of the first unsettled message: failures said by consumers, and claims.
  failures int not null default 0,
  deliveries int not null default 0,
  primary key (partition, grp)
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
create index cursor_due on {schema}.cursor (grp, due_at) where due_at is not null;
create index cursor_nonce on {schema}.cursor (nonce) where lease_until is not null;

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

-- Transaction ids seen lately. The key is the id itself when it is a UUID, else a hash of it: clients send ids that grow,
-- and those fill the index from one end.
create table {schema}.dedup (
  partition int not null,
  key uuid not null,
  id uuid not null,
  until timestamptz not null,
  primary key (partition, key)
);
create index dedup_until on {schema}.dedup using brin (until) with (pages_per_range = 16);

-- Pushes made inside somebody else's transaction, or while pushes are paused. Names, not ids: creating a partition there
-- would block every other creator until that transaction ends.
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
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
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

-- Things one node at a time should do: whoever is rung takes the row, skipping locked ones, and moves next_at on.
create table {schema}.chore (
  name text primary key,
  next_at timestamptz not null default clock_timestamp(),
  -- Where a round left off.
  mark bigint not null default 0,
  -- What the last round did.
  done_at timestamptz,
  figures jsonb not null default '{}'
);
insert into {schema}.chore (name) values ('retention'), ('dedup'), ('reconcile'), ('leftovers');

-- Switches of the whole system.
create table {schema}.switch (
  name text primary key,
  engaged boolean not null default false,
  changed_at timestamptz not null default clock_timestamp()
);
insert into {schema}.switch (name) values ('push_paused'), ('pop_paused');
