-- Let one migrator work at a time; $1 is made from the schema's name.
-- locks: advisory lock $1 until the transaction ends
select pg_advisory_xact_lock($1)
