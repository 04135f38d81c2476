-- Delete those of the unique keys $1, which the transaction has locked, whose job has ended and
-- whose window has passed. A statement of its own after they were locked: only so it sees a job
-- that was given a key meanwhile.
-- locks:  the keys
delete from {schema}.job_unique
where key = any ($1)
  and (until is null or until <= clock_timestamp())
  and not exists (
    select
    from {schema}.job
    where job.id = job_unique.job
  )
