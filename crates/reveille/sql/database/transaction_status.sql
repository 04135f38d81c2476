-- How transaction $1 ended: committed, aborted, in progress, or null if it is long forgotten; and
-- on which timeline. After a failover the same id may belong to another transaction, so the answer
-- counts only on the same timeline.
-- locks: nothing
select
  pg_xact_status($1::text::xid8) as status,
  left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline
