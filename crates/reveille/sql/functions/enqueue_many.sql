-- Enqueue many jobs as part of the caller's transaction, and return their ids in order. Each is an
-- object with kind and, optionally, args, queue, priority, run_at, delay_s, max_attempts,
-- timeout_s, backoff, unique_scope, unique_key, unique_window_s, on_conflict, tags and metadata.
-- Arguments are kept as they are written.
-- locks: see enqueue_items
create or replace function {schema}.enqueue_many(jobs json)
returns setof bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
declare
  strange text;
begin
  select key into strange
  from pg_catalog.json_array_elements(jobs) as item (value)
  cross join lateral pg_catalog.json_object_keys(item.value) as key
  where key not in ('kind', 'args', 'queue', 'priority', 'run_at', 'delay_s', 'max_attempts', 'timeout_s', 'backoff',
    'unique_scope', 'unique_key', 'unique_window_s', 'on_conflict', 'tags', 'metadata')
  limit 1;
  if strange is not null then
    raise exception 'a job has no field "%"', strange using errcode = 'invalid_parameter_value';
  end if;
  return query
  select added.id
  from (
    select
      pg_catalog.array_agg(value ->> 'kind' order by place) as kinds,
      pg_catalog.array_agg(pg_catalog.convert_to(coalesce((value -> 'args')::text, 'null'), 'UTF8') order by place) as args,
      pg_catalog.array_agg(value ->> 'queue' order by place) as queues,
      pg_catalog.array_agg((value ->> 'priority')::int order by place) as priorities,
      pg_catalog.array_agg((value ->> 'run_at')::timestamptz order by place) as run_ats,
      pg_catalog.array_agg((value ->> 'delay_s')::double precision order by place) as delays,
      pg_catalog.array_agg((value ->> 'max_attempts')::int order by place) as max_attempts,
      pg_catalog.array_agg((value ->> 'timeout_s')::double precision order by place) as timeouts,
      pg_catalog.array_agg(value ->> 'backoff' order by place) as backoffs,
      pg_catalog.array_agg(
        {schema}.job_tags(array(select pg_catalog.json_array_elements_text(value -> 'tags'))) order by place
      ) as tags,
      pg_catalog.array_agg(pg_catalog.convert_to((value -> 'metadata')::text, 'UTF8') order by place) as metadata,
      pg_catalog.array_agg(value ->> 'unique_scope' order by place) as scopes,
      pg_catalog.array_agg(value ->> 'unique_key' order by place) as keys,
      pg_catalog.array_agg((value ->> 'unique_window_s')::double precision order by place) as windows,
      pg_catalog.array_agg(value ->> 'on_conflict' order by place) as conflicts
    from pg_catalog.json_array_elements(jobs) with ordinality as item (value, place)
  ) as given
  cross join lateral {schema}.enqueue_items(given.kinds, given.args, given.queues, given.priorities, given.run_ats, given.delays,
    given.max_attempts, given.timeouts, given.backoffs, given.tags, given.metadata, given.scopes, given.keys, given.windows,
    given.conflicts, true) as added
  order by added.place;
end
$reveille$;

comment on function {schema}.enqueue_many(json) is 'Reveille: enqueues jobs in the caller''s transaction';
