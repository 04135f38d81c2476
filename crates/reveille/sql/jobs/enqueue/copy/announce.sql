-- Wake workers of the queues $1 with the caller's commit: see the function.
-- locks:  nothing; at the commit a lock on the whole database
select {schema}.announce_jobs($1)
