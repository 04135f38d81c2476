-- Enqueue jobs as part of the caller's transaction: arrays in parallel, of which only kinds and
-- args must be whole. Jobs are due at run_ats or after delays seconds, never both, else now; a time
-- before the year 2000 counts as its beginning, and none may lie after 2199. A unique scope makes a
-- job keep out others of the same key while it has not ended, and for windows seconds; conflicts
-- says what happens to a new job of that key: 'keep' (it is dropped), 'replace' (the one that waits
-- gets its arguments), 'reschedule' (the one that waits gets its time), 'error'. Returns one row
-- for each, in order: the id, and whether it is that of an existing job. If notify is true, the
-- nodes are notified with the commit, once for each queue that is not quiet.
-- locks: unique keys ascending, then the jobs that have them; a notification takes a lock on the
--        whole database while the caller commits
create or replace function {schema}.enqueue_items(
  in_kinds text[], in_args bytea[], in_queues text[], in_priorities int[], in_run_ats timestamptz[],
  in_delays double precision[], in_max_attempts int[], in_timeouts double precision[], in_backoffs text[],
  in_tags text[], in_metadata bytea[], in_scopes text[], in_keys text[], in_windows double precision[], in_conflicts text[],
  in_notify boolean
)
returns table (place bigint, id bigint, existing boolean)
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
declare
  fault text;
  item record;
  target record;
  name text;
begin
  select case
           when given.kind is null or given.kind = '' then 'the job''s kind is empty'
           when pg_catalog.octet_length(given.kind) > 128 then 'the job''s kind is longer than 128 bytes'
           when given.queue = '' then 'the queue''s name is empty'
           when pg_catalog.octet_length(given.queue) > 128 then 'the queue''s name is longer than 128 bytes'
           when given.run_at = '-infinity' or given.run_at >= '2200-01-01 00:00:00+00'
             then pg_catalog.format('the time must be finite and before the year 2200, not %s', given.run_at)
           when given.run_at is not null and given.delay is not null then 'a job has a run_at or a delay, not both'
           when given.args is null then 'the arguments are null: a JSON null is written ''null'''
           when pg_catalog.octet_length(given.args) > 16777216 then 'the arguments have more than 16 MiB'
           when pg_catalog.octet_length(given.metadata) > 16777216 then 'the metadata have more than 16 MiB'
           when given.priority not between 0 and 9 then pg_catalog.format('the priority must be 0 to 9, not %s', given.priority)
           when given.delay < 0 then pg_catalog.format('the delay must not be negative, not %s s', given.delay)
           when given.delay > 3162240000 then 'the delay must be at most 100 years'
           when given.max_attempts not between 1 and 1000
             then pg_catalog.format('the number of attempts must be 1 to 1000, not %s', given.max_attempts)
           when given.timeout <= 0 then pg_catalog.format('the timeout must be more than 0 s, not %s s', given.timeout)
           when given.timeout > 3162240000 then 'the timeout must be at most 100 years'
           when given.win > 3162240000 then 'the unique window must be at most 100 years'
           when given.win < 0 then pg_catalog.format('the unique window must not be negative, not %s s', given.win)
           when given.conflict not in ('keep', 'replace', 'reschedule', 'error')
             then pg_catalog.format('a conflict is answered by keep, replace, reschedule or error, not by "%s"', given.conflict)
           when given.scope is null and given.key is not null then 'a unique key needs a unique scope'
         end
  into fault
  from unnest(in_kinds, in_args, in_queues, in_priorities, in_run_ats, in_delays, in_max_attempts, in_timeouts, in_metadata,
         in_scopes, in_keys, in_windows, in_conflicts)
    as given (kind, args, queue, priority, run_at, delay, max_attempts, timeout, metadata, scope, key, win, conflict)
  where (given.kind is null or given.kind = '' or pg_catalog.octet_length(given.kind) > 128
    or given.queue = '' or pg_catalog.octet_length(given.queue) > 128
    or given.args is null or pg_catalog.octet_length(given.args) > 16777216
    or pg_catalog.octet_length(given.metadata) > 16777216
    or (given.run_at is not null and given.delay is not null)
    or given.run_at = '-infinity' or given.run_at >= '2200-01-01 00:00:00+00'
    or given.priority not between 0 and 9 or given.delay < 0 or given.delay > 3162240000
    or given.max_attempts not between 1 and 1000
    or given.timeout <= 0 or given.timeout > 3162240000 or given.win < 0 or given.win > 3162240000
    or given.conflict not in ('keep', 'replace', 'reschedule', 'error')
    or (given.scope is null and given.key is not null))
  limit 1;
  if fault is not null then
    raise exception '%', fault using errcode = 'invalid_parameter_value';
  end if;
  for name in select distinct backoff from pg_catalog.unnest(in_backoffs) as given (backoff) where backoff is not null loop
    perform {schema}.check_backoff(name);
  end loop;

  for item in
    select given.place, given.kind, given.args, coalesce(given.queue, 'default') as queue,
      coalesce(given.priority, 5) as priority,
      greatest(coalesce(given.run_at, pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => coalesce(given.delay, 0))),
        '2000-01-01') as run_at,
      coalesce(given.max_attempts, 4) as max_attempts, (given.timeout * 1000)::bigint as timeout_ms, given.backoff,
      pg_catalog.string_to_array(nullif(given.tags, ''), E'\n') as tags, given.metadata, given.conflict, given.win,
      case when given.scope is not null then
        {schema}.job_unique_key(given.scope, given.kind, coalesce(given.queue, 'default'), given.args, given.key)
      end as key
    from unnest(in_kinds, in_args, in_queues, in_priorities, in_run_ats, in_delays, in_max_attempts, in_timeouts, in_backoffs,
           in_tags, in_metadata, in_scopes, in_keys, in_windows, in_conflicts)
      with ordinality as given (kind, args, queue, priority, run_at, delay, max_attempts, timeout, backoff, tags, metadata, scope,
        key, win, conflict, place)
    -- All transactions lock keys in one order; jobs without a key are inserted as they came.
    order by key nulls first, given.place
  loop
    place := item.place;
    existing := false;
    if item.key is not null then
      insert into {schema}.job_unique as taken (key, job, until)
      values (item.key, 0, null)
      on conflict (key) do update set job = taken.job
      returning taken.job, taken.until into target;
      existing := target.job <> 0 and (
        target.until > pg_catalog.clock_timestamp() or exists (select from {schema}.job where job.id = target.job)
      );
    end if;
    if existing then
      id := target.job;
      perform {schema}.enqueue_conflict(id, coalesce(item.conflict, 'keep'), item.args, item.run_at);
    else
      insert into {schema}.job_body (kind, queue, priority, run_at, max_attempts, timeout_ms, backoff, unique_key, tags, metadata,
        args)
      values (item.kind, item.queue, item.priority, item.run_at, item.max_attempts, item.timeout_ms, item.backoff, item.key,
        item.tags, item.metadata, item.args)
      returning job_body.id into id;
      insert into {schema}.job (id, due_at, max_attempts, priority, queue)
      values (id, item.run_at, item.max_attempts, item.priority, item.queue);
      if item.key is not null then
        update {schema}.job_unique
        set job = enqueue_items.id, until = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => item.win)
        where job_unique.key = item.key;
      end if;
    end if;
    return next;
  end loop;

  if in_notify then
    perform {schema}.announce_jobs(
      array(select distinct coalesce(given.queue, 'default') from unnest(in_queues, in_kinds) as given (queue, kind))
    );
  end if;
end
$reveille$;

comment on function {schema}.enqueue_items(text[], bytea[], text[], int[], timestamptz[], double precision[], int[],
  double precision[], text[], text[], bytea[], text[], text[], double precision[], text[], boolean)
  is 'Reveille: enqueues jobs in the caller''s transaction';
