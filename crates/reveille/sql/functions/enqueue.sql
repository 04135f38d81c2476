-- Enqueue one job as part of the caller's transaction, and return its id: the job exists if and
-- when that commits, and its queue is woken then. The arguments are JSON, kept as they are written.
-- Text, json and jsonb are taken, so that a literal needs no cast.
-- locks: see enqueue_items
create or replace function {schema}.enqueue(
  kind text, args text, queue text default 'default', priority int default 5, run_at timestamptz default null,
  delay interval default null, max_attempts int default 4, timeout interval default null, backoff text default null,
  unique_scope text default null, unique_key text default null, unique_window interval default null,
  on_conflict text default 'keep', tags text[] default null, metadata jsonb default null
)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  return (
    select item.id
    from {schema}.enqueue_items(array[kind], array[pg_catalog.convert_to((args::json)::text, 'UTF8')], array[queue], array[priority],
      array[run_at], array[extract(epoch from delay)::double precision], array[max_attempts],
      array[extract(epoch from timeout)::double precision], array[backoff], array[{schema}.job_tags(tags)],
      array[pg_catalog.convert_to(metadata::text, 'UTF8')], array[unique_scope], array[unique_key],
      array[extract(epoch from unique_window)::double precision], array[on_conflict], true) as item
  );
end
$reveille$;

comment on function {schema}.enqueue(text, text, text, int, timestamptz, interval, int, interval, text, text, text, interval, text,
  text[], jsonb)
  is 'Reveille: enqueues a job in the caller''s transaction';

create or replace function {schema}.enqueue(
  kind text, args json, queue text default 'default', priority int default 5, run_at timestamptz default null,
  delay interval default null, max_attempts int default 4, timeout interval default null, backoff text default null,
  unique_scope text default null, unique_key text default null, unique_window interval default null,
  on_conflict text default 'keep', tags text[] default null, metadata jsonb default null
)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  return {schema}.enqueue(kind, args::text, queue, priority, run_at, delay, max_attempts, timeout, backoff, unique_scope, unique_key,
    unique_window, on_conflict, tags, metadata);
end
$reveille$;

comment on function {schema}.enqueue(text, json, text, int, timestamptz, interval, int, interval, text, text, text, interval, text,
  text[], jsonb)
  is 'Reveille: enqueues a job in the caller''s transaction';

create or replace function {schema}.enqueue(
  kind text, args jsonb, queue text default 'default', priority int default 5, run_at timestamptz default null,
  delay interval default null, max_attempts int default 4, timeout interval default null, backoff text default null,
  unique_scope text default null, unique_key text default null, unique_window interval default null,
  on_conflict text default 'keep', tags text[] default null, metadata jsonb default null
)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
begin
  return {schema}.enqueue(kind, args::text, queue, priority, run_at, delay, max_attempts, timeout, backoff, unique_scope, unique_key,
    unique_window, on_conflict, tags, metadata);
end
$reveille$;

comment on function {schema}.enqueue(text, jsonb, text, int, timestamptz, interval, int, interval, text, text, text, interval, text,
  text[], jsonb)
  is 'Reveille: enqueues a job in the caller''s transaction';
