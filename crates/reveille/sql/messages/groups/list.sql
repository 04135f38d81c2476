-- Groups of queue $1 (null for all), by name $2 (null for all), with what waits for each: messages and since when, and how
-- many leases are alive. At most $3 groups.
-- locks:  nothing
with listed as materialized (
  select consumer_group.id, consumer_group.queue, consumer_group.name, consumer_group.mode, consumer_group.from_at,
         consumer_group.created_at, queue.name as queue_name
  from {schema}.consumer_group
  join {schema}.queue on queue.id = consumer_group.queue
  where ($1::text is null or queue.name = $1) and ($2::text is null or consumer_group.name = $2)
  order by queue.name, consumer_group.name
  limit $3::bigint
), place as (
  select listed.id, head.partition, head.next_seq - 1 - greatest(coalesce(cursor.committed, 0), head.first_seq - 1) as waiting,
         greatest(coalesce(cursor.committed, 0), head.first_seq - 1) as passed,
         cursor.lease_until > clock_timestamp() as leased
  from listed
  join {schema}.head on head.queue = listed.queue
  left join {schema}.cursor on cursor.partition = head.partition and cursor.grp = listed.id
), counted as (
  select place.id, count(*) as partitions, count(*) filter (where place.waiting > 0) as partitions_behind,
         sum(greatest(place.waiting, 0))::bigint as waiting, count(*) filter (where place.leased) as leases,
         min(oldest.at) as oldest_at
  from place
  left join lateral (
    select segment.at
    from {schema}.segment
    where segment.partition = place.partition and segment.last_seq > place.passed and place.waiting > 0
    order by segment.last_seq
    limit 1
  ) as oldest on true
  group by place.id
)
select listed.id, listed.queue, listed.queue_name, listed.name, listed.mode, listed.from_at, listed.created_at,
       coalesce(counted.partitions, 0) as partitions, coalesce(counted.partitions_behind, 0) as partitions_behind,
       coalesce(counted.waiting, 0) as waiting, coalesce(counted.leases, 0) as leases,
       extract(epoch from clock_timestamp() - counted.oldest_at)::float8 as lag_s
from listed
left join counted on counted.id = listed.id
order by listed.queue_name, listed.name
