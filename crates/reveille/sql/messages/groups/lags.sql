-- For each queue named $1 that has groups: how many messages wait for the group that is furthest
-- behind, and how many leases are live. Rows are looked up one by one, so that the plan does not
-- depend on the statistics of the tables.
-- locks:  nothing
select queue.name as queue, max(counted.waiting) as waiting, sum(counted.leases)::bigint as leases
from {schema}.queue
join {schema}.consumer_group on consumer_group.queue = queue.id
cross join lateral (
  select coalesce(sum(greatest(partition_row.next_seq - 1 - greatest(coalesce(cursor.committed, 0), partition_row.first_seq - 1), 0)), 0)::bigint
           as waiting,
         count(*) filter (where cursor.lease_until > clock_timestamp()) as leases
  from {schema}.partition_row
  left join lateral (
    select cursor.committed, cursor.lease_until
    from {schema}.cursor
    where cursor.partition = partition_row.partition and cursor.grp = consumer_group.id
    limit 1
  ) as cursor on true
  where partition_row.queue = consumer_group.queue
) as counted
where queue.name = any ($1::text[])
group by queue.name
