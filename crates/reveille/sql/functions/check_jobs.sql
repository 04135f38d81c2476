-- Refuse jobs that cannot be enqueued, with a fault of one of them. The arrays are in parallel, as
-- enqueue_items takes them. job_tags has checked the tags.
-- locks: nothing
create or replace function {schema}.check_jobs(
  in_kinds text[], in_args bytea[], in_queues text[], in_priorities int[], in_run_ats timestamptz[],
  in_delays double precision[], in_max_attempts int[], in_timeouts double precision[], in_backoffs text[],
  in_metadata bytea[], in_scopes text[], in_keys text[], in_windows double precision[], in_conflicts text[]
)
returns void
language plpgsql
as $reveille$
declare
  fault text;
  backoff text;
begin
  select checked.fault
  into fault
  from (
    select
      case
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
      end as fault
    from unnest(in_kinds, in_args, in_queues, in_priorities, in_run_ats, in_delays, in_max_attempts, in_timeouts, in_metadata,
           in_scopes, in_keys, in_windows, in_conflicts)
      as given (kind, args, queue, priority, run_at, delay, max_attempts, timeout, metadata, scope, key, win, conflict)
  ) as checked
  where checked.fault is not null
  limit 1;
  if fault is not null then
    raise exception '%', fault using errcode = 'invalid_parameter_value';
  end if;
  for backoff in select distinct given.text from pg_catalog.unnest(in_backoffs) as given (text) where given.text is not null loop
    perform {schema}.check_backoff(backoff);
  end loop;
end
$reveille$;

comment on function {schema}.check_jobs(text[], bytea[], text[], int[], timestamptz[], double precision[], int[],
  double precision[], text[], bytea[], text[], text[], double precision[], text[])
  is 'Reveille: refuses jobs that cannot be enqueued';
