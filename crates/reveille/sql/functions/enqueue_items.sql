-- Enqueue jobs as part of the caller's transaction: arrays in parallel, of which only kinds and
-- args must be whole. check_jobs says what is refused.
--
--   run_ats, delays   when it is due: at that time, or after so many seconds; now if both are null.
--                     A time before the year 2000 counts as its beginning
--   scopes, keys      what makes it the same as another, see job_unique_key: it keeps such jobs out
--                     while it has not ended
--   windows           and for so many seconds, if that is longer
--   conflicts         what happens to a new job whose key is taken, see enqueue_conflict
--   notify            whether the nodes are notified with the commit, see announce_jobs
--
-- Returns one row for each, with its place in the arrays: the id, and whether it is that of an
-- existing job.
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
  item record;
  -- Who has the key of the item.
  taken record;
begin
  perform {schema}.check_jobs(in_kinds, in_args, in_queues, in_priorities, in_run_ats, in_delays, in_max_attempts, in_timeouts,
    in_backoffs, in_metadata, in_scopes, in_keys, in_windows, in_conflicts);

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
      -- Locks the key, and waits for another transaction that has it. A key that nobody had is of
      -- job 0 until its job has an id.
      insert into {schema}.job_unique as row_of_key (key, job, until)
      values (item.key, 0, null)
      on conflict (key) do update set job = row_of_key.job
      returning row_of_key.job, row_of_key.until into taken;
      existing := taken.job <> 0 and (
        taken.until > pg_catalog.clock_timestamp() or exists (select from {schema}.job where job.id = taken.job)
      );
    end if;
    if existing then
      id := taken.job;
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
