-- Keep the live sessions of owners $1 for another $2 seconds from now, unless they were idle for $3
-- seconds.
-- locks:  the sessions, in the order of their names
with live as materialized (
  select session_id
  from {schema}.session
  where owner_id = any ($1)
    and locked_until > clock_timestamp()
    and last_activity_at > clock_timestamp() - make_interval(secs => $3)
  order by session_id
  for no key update
)
update {schema}.session s
set locked_until = clock_timestamp() + make_interval(secs => $2)
from live
where s.session_id = live.session_id
returning true as renewed
