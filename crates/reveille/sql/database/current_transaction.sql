-- This transaction's id, and the timeline on which it is written.
-- locks: nothing; gives the transaction an id if it has none
select
  pg_current_xact_id()::text as xid,
  left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline
