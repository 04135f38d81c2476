-- Let job $1, which waits for a time to come, run now. Returns its queue, or nothing when it does
-- not wait so.
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
