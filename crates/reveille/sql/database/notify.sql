-- Say $2 on channel $1.
-- locks: the database-wide notification queue, while this transaction commits
select pg_notify($1, $2)
