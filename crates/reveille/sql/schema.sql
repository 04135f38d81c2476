-- The whole schema as the migrations and functions make it, to be read and compared, never run.
-- To write it anew: REVEILLE_BLESS=1 cargo test -p reveille --test it the_dump_of_the_schema

create table reveille.consumer_group (
  id integer not null generated always as identity,
  queue integer,
  begun_for integer,
  name text not null,
  mode text not null,
  from_at timestamp with time zone,
  created_at timestamp with time zone not null default clock_timestamp(),
  settled boolean not null default false,
  constraint consumer_group_begun_for_name_key unique (begun_for, name),
  constraint consumer_group_queue_name_key unique (queue, name),
  constraint consumer_group_pkey primary key (id),
  constraint consumer_group_check check (((queue is null) <> (begun_for is null))),
  constraint consumer_group_mode_check check ((mode = any (array['all'::text, 'new'::text, 'from'::text])))
);

create table reveille.cursor (
  partition integer not null,
  grp integer not null,
  committed bigint not null default 0,
  upto bigint not null default 0,
  due_at timestamp with time zone,
  lease_until timestamp with time zone,
  leased_through bigint not null default 0,
  epoch bigint not null default 0,
  nonce uuid,
  failures integer not null default 0,
  deliveries integer not null default 0
) with (fillfactor=30, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000, autovacuum_vacuum_cost_delay=0);
alter table reveille.cursor replica identity full;
create index cursor_due on reveille.cursor using btree (grp, due_at) where (due_at is not null);
create index cursor_nonce on reveille.cursor using btree (nonce) where (lease_until is not null);
create index cursor_place on reveille.cursor using btree (partition, grp);
create trigger forget_made after delete on reveille.cursor for each row execute function reveille.forget_cursor_made();
create trigger make_once before insert on reveille.cursor for each row execute function reveille.make_cursor_once();

create table reveille.cursor_made (
  partition integer not null,
  grp integer not null,
  constraint cursor_made_pkey primary key (partition, grp)
);

create table reveille.dead_letter (
  id bigint not null generated always as identity,
  queue integer not null,
  partition integer not null,
  grp integer not null,
  seq bigint not null,
  message_id uuid not null,
  transaction_id text not null,
  trace_id uuid,
  producer text,
  key_id integer,
  payload bytea not null,
  pushed_at timestamp with time zone not null,
  at timestamp with time zone not null default clock_timestamp(),
  failures integer not null,
  deliveries integer not null,
  error text,
  constraint dead_letter_pkey primary key (id)
);
create index dead_letter_group on reveille.dead_letter using btree (grp, id);
create index dead_letter_message on reveille.dead_letter using btree (partition, seq);
create index dead_letter_queue on reveille.dead_letter using btree (queue, id);

create table reveille.dedup (
  partition integer not null,
  key uuid not null,
  id uuid not null,
  until timestamp with time zone not null,
  constraint dedup_pkey primary key (partition, key)
);
create index dedup_until on reveille.dedup using brin (until) with (pages_per_range='16');

create table reveille.dedup_run (
  partition integer not null,
  low uuid not null,
  high uuid not null,
  keys uuid[] storage external,
  ids uuid[] storage external not null,
  until timestamp with time zone not null
) with (autovacuum_vacuum_insert_scale_factor=0, autovacuum_vacuum_insert_threshold=1000000, toast_tuple_target=8160);
alter table reveille.dedup_run replica identity full;
create index dedup_run_high on reveille.dedup_run using btree (partition, high);
create index dedup_run_until on reveille.dedup_run using brin (until) with (pages_per_range='16');

create table reveille.dedup_span (
  partition integer not null,
  low uuid not null,
  high uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  until timestamp with time zone not null
) with (autovacuum_vacuum_insert_scale_factor=0, autovacuum_vacuum_insert_threshold=1000000);
alter table reveille.dedup_span replica identity full;
create index dedup_span_high on reveille.dedup_span using btree (partition, high);
create index dedup_span_until on reveille.dedup_span using brin (until) with (pages_per_range='16');

create table reveille.function (
  name text not null,
  hash text not null,
  release text not null,
  replaced_at timestamp with time zone not null default clock_timestamp(),
  constraint function_pkey primary key (name)
);

create table reveille.job (
  id bigint not null,
  due_at timestamp with time zone not null,
  nonce bigint,
  epoch integer not null default 0,
  attempt smallint not null default 0,
  max_attempts smallint not null,
  priority smallint not null,
  cancel_requested boolean not null default false,
  queue text collate "C" not null,
  worker text,
  note text,
  progress bytea,
  constraint job_pkey primary key (id),
  constraint job_check check (((nonce is null) = (worker is null))),
  constraint job_check1 check (((nonce is not null) or (not cancel_requested))),
  constraint job_priority_check check (((priority >= 0) and (priority <= 9)))
) with (fillfactor=80, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=20000, autovacuum_vacuum_cost_delay=0);
create index job_due on reveille.job using btree (queue, priority, due_at, id);

create table reveille.job_body (
  id bigint not null generated always as identity,
  kind text not null,
  queue text collate "C" not null,
  priority smallint not null,
  created_at timestamp with time zone not null default clock_timestamp(),
  run_at timestamp with time zone not null,
  max_attempts smallint not null,
  timeout_ms bigint,
  backoff text,
  unique_key bytea,
  tags text[],
  metadata bytea,
  args bytea not null,
  constraint job_body_pkey primary key (id),
  constraint job_body_kind_check check ((kind <> ''::text)),
  constraint job_body_max_attempts_check check (((max_attempts >= 1) and (max_attempts <= 1000))),
  constraint job_body_priority_check check (((priority >= 0) and (priority <= 9))),
  constraint job_body_queue_check check ((queue <> ''::text)),
  constraint job_body_timeout_ms_check check ((timeout_ms > 0))
) with (autovacuum_vacuum_insert_scale_factor=0, autovacuum_vacuum_insert_threshold=1000000);

create table reveille.job_done (
  id bigint not null,
  state text not null,
  finished_at timestamp with time zone not null,
  keep_until timestamp with time zone,
  epoch integer not null,
  attempt smallint not null,
  queue text collate "C" not null,
  worker text,
  code text,
  reason text,
  took_ms double precision,
  result bytea,
  constraint job_done_pkey primary key (id),
  constraint job_done_state_check check ((state = any (array['done'::text, 'cancelled'::text, 'dead'::text])))
) with (autovacuum_vacuum_insert_scale_factor=0, autovacuum_vacuum_insert_threshold=1000000);
create index job_done_dead on reveille.job_done using btree (queue, id) where (state = 'dead'::text);
create index job_done_keep on reveille.job_done using btree (keep_until) where (keep_until is not null);

create table reveille.job_error (
  id bigint not null generated always as identity,
  job bigint not null,
  at timestamp with time zone not null default clock_timestamp(),
  attempt smallint not null,
  code text not null,
  message text not null,
  worker text,
  constraint job_error_pkey primary key (job, id)
);

create table reveille.job_queue (
  name text collate "C" not null,
  paused boolean not null default false,
  quiet boolean not null default false,
  constraint job_queue_pkey primary key (name),
  constraint job_queue_name_check check (((name <> ''::text) and (octet_length(name) <= 128)))
);

create table reveille.job_unique (
  key bytea not null,
  job bigint not null,
  until timestamp with time zone,
  constraint job_unique_pkey primary key (key)
);

create table reveille.migration (
  version integer not null,
  name text not null,
  checksum text not null,
  made text[] not null,
  applied_at timestamp with time zone not null default clock_timestamp(),
  constraint migration_pkey primary key (version),
  constraint migration_version_check check ((version > 0))
);

create table reveille.node (
  id bigint not null,
  name text not null,
  started_at timestamp with time zone not null default clock_timestamp(),
  beat_at timestamp with time zone not null,
  constraint node_pkey primary key (id)
) with (fillfactor=50, autovacuum_vacuum_threshold=50, autovacuum_vacuum_scale_factor=0);

create table reveille.outbox (
  id bigint not null generated always as identity,
  queue text not null,
  partition text not null,
  message_id uuid not null,
  transaction_id text,
  trace_id uuid,
  producer text,
  key_id integer,
  payload bytea not null,
  at timestamp with time zone not null default clock_timestamp(),
  constraint outbox_pkey primary key (id)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_cost_delay=0);
create index outbox_queue on reveille.outbox using btree (queue, id);

create table reveille.partition (
  id integer not null generated always as identity,
  queue integer not null,
  name text not null,
  uid uuid not null default gen_random_uuid(),
  created_at timestamp with time zone not null default clock_timestamp(),
  constraint partition_queue_name_key unique (queue, name),
  constraint partition_uid_key unique (uid),
  constraint partition_pkey primary key (id)
);

create table reveille.partition_row (
  partition integer not null,
  queue integer not null,
  next_seq bigint not null default 1,
  first_seq bigint not null default 1,
  new_since timestamp with time zone,
  last_at timestamp with time zone not null default '1970-01-01 00:00:00+00'::timestamp with time zone,
  key_high uuid,
  span_from bigint,
  span_to bigint,
  span_low uuid,
  span_high uuid
) with (fillfactor=30, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000, autovacuum_vacuum_cost_delay=0);
alter table reveille.partition_row replica identity full;
create index partition_row_new on reveille.partition_row using btree (queue, new_since) where (new_since is not null);
create index partition_row_partition on reveille.partition_row using btree (partition);
create index partition_row_queue on reveille.partition_row using btree (queue, partition);

create table reveille.queue (
  id integer not null generated always as identity,
  uid uuid not null default gen_random_uuid(),
  name text not null,
  namespace text not null default ''::text,
  task text not null default ''::text,
  created_at timestamp with time zone not null default clock_timestamp(),
  lease interval not null default '00:01:00'::interval,
  retry_limit integer not null default 3,
  retry_delay interval not null default '00:00:00'::interval,
  max_deliveries integer not null default 25,
  delay interval not null default '00:00:00'::interval,
  window_buffer interval not null default '00:00:00'::interval,
  ttl interval not null default '00:00:00'::interval,
  max_size bigint not null default 0,
  priority integer not null default 0,
  retention interval not null default '00:00:00'::interval,
  completed_retention interval not null default '00:00:00'::interval,
  max_wait interval not null default '00:00:00'::interval,
  dedup_window interval not null default '01:00:00'::interval,
  dead_letters boolean not null default true,
  encrypted boolean not null default false,
  require_lease boolean not null default false,
  durable_acks boolean not null default true,
  quiet boolean not null default false,
  paused boolean not null default false,
  echo jsonb not null default '{}'::jsonb,
  constraint queue_name_key unique (name),
  constraint queue_uid_key unique (uid),
  constraint queue_pkey primary key (id)
);
create index queue_namespace on reveille.queue using btree (namespace, task);

create table reveille.segment (
  partition integer not null,
  last_seq bigint not null,
  n integer not null,
  bytes integer not null,
  at timestamp with time zone not null,
  key_id integer,
  gone integer[],
  only_grp integer,
  ids uuid[] storage external not null,
  transaction_ids text[] storage external,
  payloads bytea[] storage external not null,
  trace_ids uuid[],
  producers text[],
  constraint segment_pkey primary key (partition, last_seq)
) with (autovacuum_vacuum_insert_scale_factor=0, autovacuum_vacuum_insert_threshold=1000000);

create table reveille.switch (
  name text not null,
  engaged boolean not null default false,
  changed_at timestamp with time zone not null default clock_timestamp(),
  constraint switch_pkey primary key (name)
);

create table reveille.trace (
  id bigint not null generated always as identity,
  partition integer not null,
  transaction_id text not null,
  consumer_group text,
  event_type text not null default 'info'::text,
  names text[] not null default '{}'::text[],
  body bytea not null,
  at timestamp with time zone not null default clock_timestamp(),
  constraint trace_pkey primary key (id)
);
create index trace_message on reveille.trace using btree (partition, transaction_id, id);
create index trace_names on reveille.trace using gin (names);

create table reveille.upkeep (
  name text not null,
  next_at timestamp with time zone not null default clock_timestamp(),
  mark bigint not null default 0,
  done_at timestamp with time zone,
  figures jsonb not null default '{}'::jsonb,
  constraint upkeep_pkey primary key (name)
);

-- Functions, by their signatures.
create function reveille.announce_jobs(in_queues text[]) returns void;
create function reveille.any_key_seen(in_partitions integer[], in_keys uuid[]) returns boolean;
create function reveille.bury(in_partition integer, in_group integer, in_queue integer, in_seq bigint, in_failures integer, in_deliveries integer, in_error text) returns void;
create function reveille.check_backoff(in_backoff text) returns void;
create function reveille.check_jobs(in_kinds text[], in_args bytea[], in_queues text[], in_priorities integer[], in_run_ats timestamp with time zone[], in_delays double precision[], in_max_attempts integer[], in_timeouts double precision[], in_backoffs text[], in_metadata bytea[], in_scopes text[], in_keys text[], in_windows double precision[], in_conflicts text[]) returns void;
create function reveille.complete(token text, result json default null::json, keep interval default '24:00:00'::interval) returns void;
create function reveille.cursor_of(in_partition integer, in_grp integer) returns table(tid tid, committed bigint, upto bigint, due_at timestamp with time zone, leased_through bigint, nonce uuid);
create function reveille.dead_letters(in_queue text, in_group text, in_partition text, in_since timestamp with time zone, in_before timestamp with time zone, in_text text) returns table(id bigint, queue text, partition text, partition_uid uuid, consumer text, seq bigint, message_id uuid, transaction_id text, trace_id uuid, producer text, key_id integer, payload bytea, pushed_at timestamp with time zone, at timestamp with time zone, failures integer, deliveries integer, error text);
create function reveille.dedup_key(in_transaction_id text) returns uuid;
create function reveille.dedup_reach(in_key uuid) returns uuid;
create function reveille.described(in_queue reveille.queue) returns table(id integer, uid uuid, name text, namespace text, task text, created_s double precision, lease double precision, retry_limit integer, retry_delay double precision, max_deliveries integer, delay double precision, window_buffer double precision, ttl double precision, max_size bigint, priority integer, retention double precision, completed_retention double precision, max_wait double precision, dedup_window double precision, dead_letters boolean, encrypted boolean, require_lease boolean, durable_acks boolean, quiet boolean, paused boolean, echo text, partitions bigint, messages bigint);
create function reveille.enqueue(kind text, args json, queue text default 'default'::text, priority integer default 5, run_at timestamp with time zone default null::timestamp with time zone, delay interval default null::interval, max_attempts integer default 4, timeout interval default null::interval, backoff text default null::text, unique_scope text default null::text, unique_key text default null::text, unique_window interval default null::interval, on_conflict text default 'keep'::text, tags text[] default null::text[], metadata jsonb default null::jsonb) returns bigint;
create function reveille.enqueue(kind text, args jsonb, queue text default 'default'::text, priority integer default 5, run_at timestamp with time zone default null::timestamp with time zone, delay interval default null::interval, max_attempts integer default 4, timeout interval default null::interval, backoff text default null::text, unique_scope text default null::text, unique_key text default null::text, unique_window interval default null::interval, on_conflict text default 'keep'::text, tags text[] default null::text[], metadata jsonb default null::jsonb) returns bigint;
create function reveille.enqueue(kind text, args text, queue text default 'default'::text, priority integer default 5, run_at timestamp with time zone default null::timestamp with time zone, delay interval default null::interval, max_attempts integer default 4, timeout interval default null::interval, backoff text default null::text, unique_scope text default null::text, unique_key text default null::text, unique_window interval default null::interval, on_conflict text default 'keep'::text, tags text[] default null::text[], metadata jsonb default null::jsonb) returns bigint;
create function reveille.enqueue_conflict(in_job bigint, in_conflict text, in_args bytea, in_run_at timestamp with time zone) returns void;
create function reveille.enqueue_items(in_kinds text[], in_args bytea[], in_queues text[], in_priorities integer[], in_run_ats timestamp with time zone[], in_delays double precision[], in_max_attempts integer[], in_timeouts double precision[], in_backoffs text[], in_tags text[], in_metadata bytea[], in_scopes text[], in_keys text[], in_windows double precision[], in_conflicts text[], in_notify boolean) returns table(place bigint, id bigint, existing boolean);
create function reveille.enqueue_many(jobs json) returns setof bigint;
create function reveille.ensure(in_queue text, in_partitions text[]) returns table(queue integer, partition integer, name text, uid uuid);
create function reveille.ensure_all(in_queues text[], in_partitions text[]) returns table(queue integer, partition integer, queue_name text, name text, uid uuid);
create function reveille.fail(token text, code text, message text, delay interval default null::interval) returns void;
create function reveille.finish_group(in_group integer, in_through integer) returns boolean;
create function reveille.forget_cursor_made() returns trigger;
create function reveille.growing_seen(in_partitions integer[], in_keys uuid[]) returns table(partition integer, key uuid, id uuid);
create function reveille.hint_channel() returns text;
create function reveille.job_tags(in_tags text[]) returns text;
create function reveille.job_unique_key(in_scope text, in_kind text, in_queue text, in_args bytea, in_key text) returns bytea;
create function reveille.lease_end(in_partition integer, in_start bigint, in_share bigint, in_bytes bigint) returns table(through bigint);
create function reveille.make_cursor_once() returns trigger;
create function reveille.make_cursors(in_group integer, in_after integer, in_through integer, in_most integer) returns integer;
create function reveille.mark_ready(queues integer[], since timestamp with time zone default '1970-01-01 00:00:00+00'::timestamp with time zone) returns integer;
create function reveille.message_id() returns uuid;
create function reveille.move_outbox(in_queues text[], in_limit integer) returns table(queue integer, partition integer, taken bigint, moved bigint);
create function reveille.move_partitions(in_partitions integer[], in_limit integer) returns table(queue integer, partition integer, taken bigint, moved bigint);
create function reveille.note_if_new(in_partitions integer[], in_keys uuid[], in_ids uuid[], in_untils timestamp with time zone[]) returns boolean;
create function reveille.note_keys(in_partitions integer[], in_keys uuid[], in_ids uuid[], in_untils timestamp with time zone[]) returns bigint;
create function reveille.partition_row_of(in_partition integer) returns table(tid tid, queue integer, next_seq bigint, first_seq bigint, last_at timestamp with time zone);
create function reveille.push(queue text, payload bytea, partition text default 'Default'::text, transaction_id text default null::text, trace_id uuid default null::uuid, producer text default null::text) returns uuid;
create function reveille.push(queue text, payload json, partition text default 'Default'::text, transaction_id text default null::text, trace_id uuid default null::uuid, producer text default null::text) returns uuid;
create function reveille.push(queue text, payload jsonb, partition text default 'Default'::text, transaction_id text default null::text, trace_id uuid default null::uuid, producer text default null::text) returns uuid;
create function reveille.push(queue text, payload text, partition text default 'Default'::text, transaction_id text default null::text, trace_id uuid default null::uuid, producer text default null::text) returns uuid;
create function reveille.push_items(in_queues text[], in_partitions text[], in_ids uuid[], in_payloads bytea[], in_transaction_ids text[], in_trace_ids uuid[], in_producers text[], in_key_ids integer[]) returns void;
create function reveille.push_many(queue text, payloads bytea[], partition text default 'Default'::text, transaction_ids text[] default null::text[], producer text default null::text) returns uuid[];
create function reveille.push_many(queue text, payloads json[], partition text default 'Default'::text, transaction_ids text[] default null::text[], producer text default null::text) returns uuid[];
create function reveille.push_many(queue text, payloads jsonb[], partition text default 'Default'::text, transaction_ids text[] default null::text[], producer text default null::text) returns uuid[];
create function reveille.push_many(queue text, payloads text[], partition text default 'Default'::text, transaction_ids text[] default null::text[], producer text default null::text) returns uuid[];
create function reveille.redrive(letters bigint[]) returns table(queue integer, partition integer, messages integer);
create function reveille.refuse_duplicates() returns boolean;
create function reveille.register(in_queue integer, in_name text, in_mode text, in_from timestamp with time zone, in_groups integer default 2147483647, in_most integer default 2147483647) returns table(grp integer, through integer);
create function reveille.remove_leftovers(in_queue integer, in_limit integer) returns bigint;
create function reveille.retry_delay(in_backoff text, in_failures integer) returns double precision;
create function reveille.seek(in_group integer, in_partition integer, in_after integer, in_most integer, in_place text, in_at timestamp with time zone, in_seq bigint) returns table(partition integer, committed bigint, clamped boolean, more boolean);
create function reveille.segment_parts(in_partition integer, in_start bigint, in_through bigint, in_grp integer) returns table(first bigint, at timestamp with time zone, key_id integer, gone bigint[], ids uuid[], transaction_ids text[], payloads bytea[], trace_ids uuid[], producers text[]);
create function reveille.seq_at(in_partition integer, low bigint, high bigint, moment timestamp with time zone) returns bigint;
create function reveille.settle(partitions integer[], groups integer[], nonces uuid[], throughs bigint[], outcomes text[], errors text[], strict boolean[]) returns table(item integer, said text, released boolean, dead boolean, more boolean, due_s double precision, before bigint, committed bigint, durable boolean);
create function reveille.settle_job(in_token text, in_outcome text, in_delay interval, in_code text, in_message text, in_result json, in_keep interval) returns void;
create function reveille.settle_jobs(in_ids bigint[], in_epochs integer[], in_nonces bigint[], in_outcomes text[], in_delays double precision[], in_codes text[], in_messages text[], in_took_ms double precision[], in_results bytea[], in_keep double precision, in_keep_dead double precision) returns table(item bigint, said text, state text, due_s double precision);
create function reveille.snooze(token text, delay interval) returns void;
create function reveille.version() returns text;
