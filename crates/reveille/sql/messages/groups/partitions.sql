-- Where the groups named $1 (null for all) stand in the partitions of queue $2 (null for all):
-- those with at least $3 seconds of lag (0 for all), at most $4. Rows are looked up one by one, as
-- in messages/groups/list.sql.
-- locks:  nothing
select place.*
from (
  select partition_row.partition, queue.name as queue_name, consumer_group.name as consumer, partition.name, partition.uid,
         coalesce(cursor.committed, 0) as committed, partition_row.first_seq, partition_row.next_seq - 1 as newest,
         greatest(partition_row.next_seq - 1 - greatest(coalesce(cursor.committed, 0), partition_row.first_seq - 1), 0) as waiting,
         coalesce(cursor.lease_until > clock_timestamp(), false) as leased,
         extract(epoch from cursor.lease_until - clock_timestamp())::float8 as lease_s,
         coalesce(cursor.failures, 0) as failures, coalesce(cursor.deliveries, 0) as deliveries,
         coalesce(extract(epoch from clock_timestamp() - oldest.at), 0)::float8 as lag_s
  from {schema}.consumer_group
  join {schema}.queue on queue.id = consumer_group.queue
  join {schema}.partition_row on partition_row.queue = queue.id
  cross join lateral (
    select partition.name, partition.uid
    from {schema}.partition
    where partition.id = partition_row.partition
    limit 1
  ) as partition
  left join lateral (
    select cursor.committed, cursor.lease_until, cursor.failures, cursor.deliveries
    from {schema}.cursor
    where cursor.partition = partition_row.partition and cursor.grp = consumer_group.id
    limit 1
  ) as cursor on true
  left join lateral (
    select segment.at
    from {schema}.segment
    where segment.partition = partition_row.partition
      and segment.last_seq > greatest(coalesce(cursor.committed, 0), partition_row.first_seq - 1)
    order by segment.last_seq
    limit 1
  ) as oldest on true
  where ($1::text is null or consumer_group.name = $1) and ($2::text is null or queue.name = $2)
) as place
where place.lag_s >= $3::float8
order by place.partition, place.consumer
limit $4::bigint
