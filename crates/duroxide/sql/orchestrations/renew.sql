-- Keep the turn of instance $1 under token $2 for another $3 seconds from now, if its lock has not
-- ended.
-- locks:  the mailbox
-- fences: the token
update {schema}.mailbox
set locked_until = clock_timestamp() + make_interval(secs => $3)
where instance_id = $1
  and lock_token = $2
  and locked_until > clock_timestamp()
returning true as renewed
