-- Groups of queue $1 (null for all), by name $2 (null for all), each with the messages that wait
-- for it, since when they wait, and how many leases are live. By queue and name, at most $3 groups
-- after the first $4; nothing is read of the others. Rows are looked up one by one, so that the
-- plan does not depend on the statistics of the tables.
-- locks:  nothing
with listed as materialized (
  select consumer_group.id, consumer_group.queue, consumer_group.name, consumer_group.mode, consumer_group.from_at,
         consumer_group.created_at, queue.name as queue_name
  from {schema}.consumer_group
  join {schema}.queue on queue.id = consumer_group.queue
  where ($1::text is null or queue.name = $1) and ($2::text is null or consumer_group.name = $2)
  order by queue.name, consumer_group.name
  limit $3::bigint
  offset $4::bigint
)
select listed.id, listed.queue, listed.queue_name, listed.name, listed.mode, listed.from_at, listed.created_at,
       counted.partitions, counted.partitions_behind, counted.waiting, counted.leases,
       extract(epoch from clock_timestamp() - counted.oldest_at)::float8 as lag_s
from listed
cross join lateral (
  select count(*) as partitions, count(*) filter (where place.waiting > 0) as partitions_behind,
         coalesce(sum(greatest(place.waiting, 0)), 0)::bigint as waiting, count(*) filter (where place.leased) as leases,
         min(oldest.at) as oldest_at
  from (
    select partition_row.partition, greatest(coalesce(cursor.committed, 0), partition_row.first_seq - 1) as passed,
           partition_row.next_seq - 1 - greatest(coalesce(cursor.committed, 0), partition_row.first_seq - 1) as waiting,
           cursor.lease_until > clock_timestamp() as leased
    from {schema}.partition_row
    left join lateral (
      select cursor.committed, cursor.lease_until
      from {schema}.cursor
      where cursor.partition = partition_row.partition and cursor.grp = listed.id
      limit 1
    ) as cursor on true
    where partition_row.queue = listed.queue
  ) as place
  left join lateral (
    select segment.at
    from {schema}.segment
    where segment.partition = place.partition and segment.last_seq > place.passed and place.waiting > 0
    order by segment.last_seq
    limit 1
  ) as oldest on true
) as counted
order by listed.queue_name, listed.name
