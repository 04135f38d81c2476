-- The process id and the start of this session.
-- locks:  nothing
select pg_stat_activity.pid, pg_stat_activity.backend_start::text as started
from pg_stat_activity
where pg_stat_activity.pid = pg_backend_pid()
