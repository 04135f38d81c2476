-- Give back, without counting the attempts, the jobs that worker $2 claimed under the nonces $1 and
-- never received, from the queues $3, leased for at most $4 seconds. Returns the queues of the jobs
-- that were given back.
-- locks:  the jobs (skip locked: another transaction gives back a locked one)
-- plan:   index scan using job_due
with held as materialized (
  select job.id
  from unnest($3::text[]) as asked (queue)
  cross join generate_series(0, 9) as priorities (priority)
  cross join lateral (
    select
      job.id,
      job.nonce,
      job.worker
    from {schema}.job
    where job.queue = asked.queue
      and job.priority = priorities.priority::smallint
      and job.due_at between clock_timestamp() and clock_timestamp() + make_interval(secs => $4)
      and job.nonce = any ($1::bigint[])
      and job.worker = $2
    for no key update skip locked
  ) as job
)
update {schema}.job
set
  due_at = clock_timestamp(),
  nonce = null,
  worker = null,
  cancel_requested = false,
  attempt = job.attempt - 1
where job.id = any (array(select id from held))
returning job.queue
