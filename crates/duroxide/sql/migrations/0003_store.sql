-- Create the tables of one provider: instances with their executions, history and values, and the
-- two queues.
-- locks: nothing that existed before
create table {schema}.instance (
  instance_id text primary key,
  name text not null,
  version text,
  current_execution_id bigint not null,
  parent_instance_id text,
  custom_status text,
  custom_status_version bigint not null default 0,
  settled_token text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);

create index instance_parent on {schema}.instance (parent_instance_id) where parent_instance_id is not null;

comment on table {schema}.instance is 'Reveille: orchestration instances; made by the first acknowledged turn';

create table {schema}.execution (
  instance_id text not null,
  execution_id bigint not null,
  status text not null,
  output text,
  event_count bigint not null default 0,
  started_at timestamptz not null default clock_timestamp(),
  completed_at timestamptz,
  primary key (instance_id, execution_id)
);

create table {schema}.history (
  instance_id text not null,
  execution_id bigint not null,
  event_id bigint not null,
  event text not null,
  primary key (instance_id, execution_id, event_id)
);

comment on table {schema}.history is 'Reveille: what happened in each execution; rows are added and pruned, never changed';

create table {schema}.mailbox (
  instance_id text primary key,
  known boolean not null,
  pinned bigint,
  lock_token text,
  locked_until timestamptz,
  settled_token text
)
with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

comment on table {schema}.mailbox is 'Reveille: one row for each instance that was started; the slot that holds its lock takes the turn';

comment on column {schema}.mailbox.settled_token is 'Reveille: of the last turn; as in instance, if both are read at one moment';

create table {schema}.message (
  id bigint generated always as identity primary key,
  instance_id text not null,
  work_item text not null,
  visible_at timestamptz not null,
  lock_token text,
  attempt_count integer not null default 0
)
with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

create index message_due on {schema}.message (visible_at, id);

create index message_instance on {schema}.message (instance_id);

comment on table {schema}.message is 'Reveille: messages for instances; one for an instance that was never started waits for its start';

create table {schema}.activity (
  id bigint generated always as identity primary key,
  instance_id text,
  execution_id bigint,
  activity_id bigint,
  session_id text,
  tag text,
  work_item text not null,
  due_at timestamptz not null,
  lock_token text,
  attempt_count integer not null default 0
)
with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

create index activity_due on {schema}.activity (due_at, id);

create unique index activity_token on {schema}.activity (lock_token) where lock_token is not null;

create index activity_identity on {schema}.activity (instance_id, execution_id, activity_id);

create index activity_session on {schema}.activity (session_id) where session_id is not null;

create index activity_session_due on {schema}.activity (due_at) where session_id is not null;

comment on column {schema}.activity.due_at is 'Reveille: when it may be taken; while it is locked, when the lock ends';

create table {schema}.session (
  session_id text primary key,
  owner_id text not null,
  locked_until timestamptz not null,
  last_activity_at timestamptz not null
);

create index session_owner on {schema}.session (owner_id);

create table {schema}.kv_store (
  instance_id text not null,
  key text not null,
  value text not null,
  updated_ms bigint not null,
  primary key (instance_id, key)
);

create table {schema}.kv_delta (
  instance_id text not null,
  key text not null,
  value text,
  updated_ms bigint not null,
  primary key (instance_id, key)
);

comment on table {schema}.kv_delta is 'Reveille: what the current execution changed; null is a deleted key. Merged into kv_store at its end';
