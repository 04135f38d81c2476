-- Settle jobs that are held under epochs and nonces, in the order of their ids. outcomes: 'done';
-- 'retry' (after a pause of delays seconds, by the job's own backoff if null, or dead if it was the
-- last attempt); 'snooze' (after delays seconds, uncharged); 'release' (at once, uncharged);
-- 'cancelled'; 'dead'. in_keep and in_keep_dead are how many seconds an ended job is kept; null for
-- ever. Returns one row for each: the answer ('recorded', or 'lost' when another worker has the job
-- or it has ended), the state it is in now, and the seconds until it is due again.
-- locks: the jobs ascending
create or replace function {schema}.settle_jobs(
  in_ids bigint[], in_epochs int[], in_nonces bigint[], in_outcomes text[], in_delays double precision[], in_codes text[],
  in_messages text[], in_took_ms double precision[], in_results bytea[], in_keep double precision,
  in_keep_dead double precision
)
returns table (item bigint, said text, state text, due_s double precision)
language plpgsql
set search_path = pg_catalog, pg_temp
as $reveille$
declare
  asked record;
  held {schema}.job;
begin
  for asked in
    select given.*
    from unnest(in_ids, in_epochs, in_nonces, in_outcomes, in_delays, in_codes, in_messages, in_took_ms, in_results)
      with ordinality as given (id, epoch, nonce, outcome, delay, code, message, took_ms, result, place)
    order by given.id, given.place
  loop
    item := asked.place;
    said := 'lost';
    state := null;
    due_s := null;
    select job.* into held
    from {schema}.job
    where job.id = asked.id and job.epoch = asked.epoch and job.nonce = asked.nonce
    for update;
    if found then
      said := 'recorded';
      if asked.outcome in ('retry', 'dead') then
        insert into {schema}.job_error (job, attempt, code, message, worker)
        values (held.id, held.attempt, coalesce(asked.code, 'failed'), coalesce(asked.message, ''), held.worker);
        -- By their order and not by attempts, which a redrive counts from the start.
        delete from {schema}.job_error
        where job_error.job = held.id
          and job_error.id <= (
            select older.id from {schema}.job_error as older where older.job = held.id order by older.id desc offset 20 limit 1
          );
      end if;
      state := case asked.outcome
        when 'done' then 'done'
        when 'cancelled' then 'cancelled'
        when 'dead' then 'dead'
        when 'retry' then case
          when held.cancel_requested then 'cancelled'
          when held.attempt >= held.max_attempts then 'dead'
          else 'scheduled'
        end
        when 'snooze' then case when held.cancel_requested then 'cancelled' else 'scheduled' end
        when 'release' then case when held.cancel_requested then 'cancelled' else 'scheduled' end
      end;
      if state is null then
        raise exception 'a job ends by done, retry, snooze, release, cancelled or dead, not by "%"', asked.outcome
          using errcode = 'invalid_parameter_value';
      elsif state = 'scheduled' then
        due_s := greatest(coalesce(
          asked.delay,
          case when asked.outcome = 'retry' then (
            select {schema}.retry_delay(job_body.backoff, held.attempt) from {schema}.job_body where job_body.id = held.id
          ) end,
          0
        ), 0);
        -- A backoff that was stored unchecked may be infinite: a century is as long, and can be
        -- added.
        due_s := least(due_s, 3162240000);
        update {schema}.job
        set due_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => due_s), nonce = null, worker = null,
          attempt = held.attempt - case when asked.outcome = 'retry' then 0 else 1 end,
          note = case when asked.outcome = 'retry' then null else asked.message end
        where job.id = held.id;
      else
        delete from {schema}.job where job.id = held.id;
        insert into {schema}.job_done (id, state, finished_at, keep_until, epoch, attempt, queue, worker, code, reason, took_ms,
          result)
        values (held.id, settle_jobs.state, pg_catalog.clock_timestamp(),
          pg_catalog.clock_timestamp()
            + pg_catalog.make_interval(secs => case when settle_jobs.state = 'dead' then in_keep_dead else in_keep end),
          held.epoch, held.attempt, held.queue, held.worker, asked.code, asked.message, asked.took_ms, asked.result);
      end if;
    end if;
    return next;
  end loop;
end
$reveille$;

comment on function {schema}.settle_jobs(bigint[], int[], bigint[], text[], double precision[], text[], text[],
  double precision[], bytea[], double precision, double precision)
  is 'Reveille: settles jobs that are held';
