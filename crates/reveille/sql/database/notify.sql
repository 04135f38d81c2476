-- Notify channel $1 with $2.
-- locks: the database-wide notification queue, while this transaction commits
select pg_notify($1, $2)
