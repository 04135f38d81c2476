-- Keep the activity under token $1 for another $2 seconds from now, if its lock has not ended.
-- Touches its session. Returns nothing if the token is not held.
-- locks:  the activity, then its session
-- fences: the token
with renewed as (
  update {schema}.activity
  set due_at = clock_timestamp() + make_interval(secs => $2)
  where lock_token = $1
    and due_at > clock_timestamp()
  returning session_id
), touched as (
  update {schema}.session s
  set last_activity_at = clock_timestamp()
  from renewed
  where s.session_id = renewed.session_id
    and s.locked_until > clock_timestamp()
)
select true as renewed
from renewed
