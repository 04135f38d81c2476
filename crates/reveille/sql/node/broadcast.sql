-- Send the payloads $2 to the other nodes, one notification each, on channel $1, if another node
-- than $3 had a heartbeat within $4 seconds. Runs after the commit that it announces, so a node
-- that joins meanwhile is either seen here or claims by itself. A hint need not survive a crash, so
-- it does not wait for the disk.
-- locks: the queue of notifications, at commit
select pg_notify($1, payload)
from unnest($2) as payload
where set_config('synchronous_commit', 'off', true) is not null
  and exists (
    select
    from {schema}.node
    where id <> $3
      and beat_at >= clock_timestamp() - make_interval(secs => $4)
  )
