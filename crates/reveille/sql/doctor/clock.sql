-- The database's clock.
-- locks: nothing
select clock_timestamp() as now
