-- End the session $1 that began at $2, if it is still there, and wait up to five seconds for its
-- end: it may hold a statement that it has not begun yet, whose answer nobody would receive.
-- locks:  nothing
select pg_terminate_backend(pg_stat_activity.pid, 5000) as ended
from pg_stat_activity
where pg_stat_activity.pid = $1::int and pg_stat_activity.backend_start = $2::text::timestamptz
