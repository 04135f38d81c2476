-- End the session of our own role that still runs transaction $1, so that its outcome is decided.
-- locks: nothing
select
  pg_terminate_backend(pid)
from pg_stat_activity
where backend_xid = $1::text::xid8::xid
