-- Note the progress $4 of job $1, held under epoch $2 and nonce $3. Returns nothing when the lease
-- is lost.
-- locks:  the job
-- plan:   index scan using job_pkey
-- fences: epoch and nonce
update {schema}.job
set progress = $4
where job.id = $1
  and job.epoch = $2
  and job.nonce = $3
returning job.cancel_requested
