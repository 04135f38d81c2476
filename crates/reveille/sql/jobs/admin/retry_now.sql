-- Let the scheduled job $1 run now. Returns its queue, or nothing when it is not scheduled.
-- locks:  the job
-- plan:   index scan using job_pkey
update {schema}.job
set
  due_at = clock_timestamp(),
  note = null
where id = $1
  and nonce is null
  and due_at > clock_timestamp()
returning queue
