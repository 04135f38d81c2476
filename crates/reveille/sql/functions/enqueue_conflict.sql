-- Change an existing job when another of the same unique key is enqueued: 'keep' leaves it,
-- 'replace' gives it the arguments and 'reschedule' the time of the new job if it still waits,
-- 'error' refuses the new job.
-- locks: the job
create or replace function {schema}.enqueue_conflict(in_job bigint, in_conflict text, in_args bytea, in_run_at timestamptz)
returns void
language plpgsql
as $reveille$
begin
  if in_conflict = 'error' then
    raise exception 'job % has the same unique key', in_job using errcode = 'unique_violation', detail = in_job::text;
  elsif in_conflict = 'keep' then
    return;
  end if;
  perform from {schema}.job where job.id = in_job and job.nonce is null for no key update;
  if found and in_conflict = 'replace' then
    update {schema}.job_body set args = in_args where job_body.id = in_job;
  elsif found then
    update {schema}.job set due_at = in_run_at, note = null where job.id = in_job;
  end if;
end
$reveille$;

comment on function {schema}.enqueue_conflict(bigint, text, bytea, timestamptz)
  is 'Reveille: what a second job of the same unique key does to the first';
