-- Forget those of the unique keys $1, which the transaction holds, whose job has ended and whose
-- window has passed. A statement of its own after they were taken: only then does it see the job
-- that a key was given to meanwhile.
-- locks:  the keys
delete from {schema}.job_unique
where key = any ($1)
  and (until is null or until <= clock_timestamp())
  and not exists (
    select
    from {schema}.job
    where job.id = job_unique.job
  )
