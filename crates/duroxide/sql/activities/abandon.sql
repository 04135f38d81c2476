-- Give back the activities under tokens $1; they are due again after $2 seconds. With $3 the
-- attempt does not count.
-- locks:  the activities
-- fences: the tokens; an expired lock may still be given back by its last holder
update {schema}.activity
set
  lock_token = null,
  due_at = clock_timestamp() + make_interval(secs => $2),
  attempt_count = case when $3 then greatest(attempt_count - 1, 0) else attempt_count end
where lock_token = any ($1)
returning true as returned
